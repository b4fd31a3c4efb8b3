package main

import (
	"testing"

	"github.com/tidemill/tidemill/guest-sdk/go"
	"github.com/tidemill/tidemill/guest-sdk/go/tidemilltest"
)

const minuteMs = 60_000

func TestAnEventPassesOnceAnHour(t *testing.T) {
	q := tidemilltest.New(t, &Dedup{}).TimeMode(tidemill.TimeModeProcessingTime)
	for _, step := range []struct {
		timeMs int64
		bodies []string
		passes string
	}{
		{0, []string{"first", "again"}, "first"},
		{60*minuteMs - 1, []string{"late"}, ""},
		{60 * minuteMs, []string{"new"}, "new"},
	} {
		for _, body := range step.bodies {
			q.Input("e1", Event{ID: "e1", Body: &body})
		}
		passed := ""
		for _, event := range q.SetTimeMs(step.timeMs).RunBatch() {
			passed += *event.Body
		}
		if passed != step.passes {
			t.Errorf("at %d ms %q passed, want %q", step.timeMs, passed, step.passes)
		}
	}
}

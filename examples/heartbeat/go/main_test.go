package main

import (
	"slices"
	"testing"
	"time"

	"github.com/tidemill/tidemill/guest-sdk/go"
	"github.com/tidemill/tidemill/guest-sdk/go/tidemilltest"
)

const minuteMs = int64(time.Minute / time.Millisecond)

func TestASensorIsReportedOnceWhenFiveMinutesHavePassed(t *testing.T) {
	q := tidemilltest.New(t, &Heartbeat{}).TimeMode(tidemill.TimeModeProcessingTime)
	q.Input("s1", Reading{Celsius: 20})
	for _, step := range []struct {
		timeMs int64
		want   []Silent
	}{
		{0, nil},
		{5*minuteMs - 1, nil},
		{5 * minuteMs, []Silent{{Sensor: "s1", LastSeen: time.UnixMilli(0).UTC(), Celsius: 20}}},
		{60 * minuteMs, nil},
	} {
		if got := q.SetTimeMs(step.timeMs).RunBatch(); !slices.Equal(got, step.want) {
			t.Errorf("at %d ms emitted %+v, want %+v", step.timeMs, got, step.want)
		}
	}
}

func TestEveryReadingMovesTheTimer(t *testing.T) {
	q := tidemilltest.New(t, &Heartbeat{}).TimeMode(tidemill.TimeModeProcessingTime)
	for _, minute := range []int64{0, 4, 8} {
		if got := q.SetTimeMs(minute*minuteMs).Input("s1", Reading{}).RunBatch(); len(got) != 0 {
			t.Errorf("in minute %d emitted %+v", minute, got)
		}
	}
	if got := q.Timers("s1"); !slices.Equal(got, []int64{13 * minuteMs}) {
		t.Errorf("the timers are %v", got)
	}
}

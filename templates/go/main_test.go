package main

import (
	"slices"
	"testing"

	"github.com/tidemill/tidemill/guest-sdk/go"
	"github.com/tidemill/tidemill/guest-sdk/go/tidemilltest"
)

func TestVisitsAreCountedUntilHalfAnHourHasPassedWithoutOne(t *testing.T) {
	query := tidemilltest.New(t, &Counter{}).TimeMode(tidemill.TimeModeProcessingTime)
	query.Input("ada", Visit{Page: "/"}, Visit{Page: "/prices"})
	if got, want := query.RunBatch(), []Visits{{User: "ada", Visits: 2, Here: true}}; !slices.Equal(got, want) {
		t.Errorf("emitted %+v, want %+v", got, want)
	}

	query.SetTimeMs(quietMs)
	if got, want := query.RunBatch(), []Visits{{User: "ada", Visits: 2, Here: false}}; !slices.Equal(got, want) {
		t.Errorf("emitted %+v, want %+v", got, want)
	}
	if _, ok := tidemilltest.Value[int64](query, "visits", "ada"); ok {
		t.Error("the state of a user that has left is still there")
	}
}

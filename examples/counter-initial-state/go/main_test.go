package main

import (
	"slices"
	"testing"

	"github.com/tidemill/tidemill/guest-sdk/go/tidemilltest"
)

func TestCountingBeginsAtTheInitialState(t *testing.T) {
	q := tidemilltest.NewWithInitialState(t, &Counter{})
	q.InitialState("x", Start{Count: 10}).InitialState("y", Start{Count: 5}).RunInitialState()
	got := q.Input("x", Input{Value: "a"}, Input{Value: "b"}).RunBatch()
	if want := []Count{{ID: "x", Count: 12}}; !slices.Equal(got, want) {
		t.Errorf("emitted %+v, want %+v", got, want)
	}
	if n, ok := tidemilltest.Value[int64](q.Query, "count", "y"); n != 5 || !ok {
		t.Errorf("y counts %d, %v", n, ok)
	}
}

package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tidemill/tidemill/guest-sdk/go"
)

// withInitialState begins with state of another place.
type withInitialState struct {
	handlers
	n tidemill.Value[counted]
	// The clock of the initial rows, and whether there was something before each.
	seen tidemill.Value[string]
}

func (w *withInitialState) init(h *tidemill.Handle) error {
	return errors.Join(h.State("n", &w.n), h.State("seen", &w.seen))
}

func (w *withInitialState) initial(row Initial, timers *tidemill.Timers) error {
	exists, err := w.n.Exists()
	if err != nil {
		return err
	}
	seen := fmt.Sprintf("now %d wm %d exists %s", timers.ProcessingTimeMs(), timers.WatermarkMs(), repr(exists))
	if err := errors.Join(w.seen.Update(seen), add(&w.n, int(row.N))); err != nil || row.Timer == nil {
		return err
	}
	return timers.Register(*row.Timer)
}

func (w *withInitialState) rows(rows *tidemill.Rows[Step], _ *tidemill.Timers, emit emit) error {
	all := collect(rows)
	if err := add(&w.n, len(all)); err != nil {
		return err
	}
	n, err := orNone(w.n.Get())
	if err != nil {
		return err
	}
	if err := emit("ROWS", repr(n)); err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(row Step) bool { return or(row.Op) == "seen" }) {
		return nil
	}
	seen, err := orNone(w.seen.Get())
	if err != nil {
		return err
	}
	return emit("SEEN", repr(seen))
}

func (w *withInitialState) timer(at int64, _ *tidemill.Timers, emit emit) error {
	n, err := orNone(w.n.Get())
	if err != nil {
		return err
	}
	return emit("TIMER", repr(tuple{at, n}))
}

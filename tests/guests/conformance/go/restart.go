package main

import "github.com/tidemill/tidemill/guest-sdk/go"

// restart counts through restarts, with timers beside the count.
type restart struct {
	handlers
	n        tidemill.Value[counted]
	timeMode tidemill.TimeMode
}

func (r *restart) init(h *tidemill.Handle) error {
	r.timeMode = h.Query().TimeMode
	return h.State("n", &r.n)
}

func (r *restart) rows(rows *tidemill.Rows[Step], timers *tidemill.Timers, emit emit) error {
	xs := numbers(rows)
	if err := add(&r.n, len(xs)); err != nil {
		return err
	}
	for _, x := range xs {
		// A large number is a time.
		if x > 1000 {
			if err := timers.Register(x); err != nil {
				return err
			}
		}
	}
	n, _, err := r.n.Get()
	if err != nil {
		return err
	}
	var registered any
	if r.timeMode != tidemill.TimeModeNone {
		if registered, err = timers.List(); err != nil {
			return err
		}
	}
	now, wm := timers.ProcessingTimeMs(), timers.WatermarkMs()
	return emit("ROWS", repr(tuple{n.N, xs, "now", now, "wm", wm, "timers", registered}))
}

func (r *restart) timer(at int64, timers *tidemill.Timers, emit emit) error {
	n, err := orNone(r.n.Get())
	if err != nil {
		return err
	}
	return emit("TIMER", repr(tuple{at, "now", timers.ProcessingTimeMs(), "wm", timers.WatermarkMs(), n}))
}

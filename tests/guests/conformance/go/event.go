package main

import (
	"errors"
	"strings"

	"github.com/tidemill/tidemill/guest-sdk/go"
)

// counted is a row of one column, which Python prints as a tuple.
type counted struct{ N int64 }

// eventTime registers timers of event time.
type eventTime struct {
	handlers
	cnt tidemill.Value[counted]
	// What to do when the timer of that time fires.
	todo tidemill.Map[int64, string]
}

func (e *eventTime) init(h *tidemill.Handle) error {
	return errors.Join(h.State("cnt", &e.cnt), h.State("todo", &e.todo))
}

func (e *eventTime) rows(rows *tidemill.Rows[Step], timers *tidemill.Timers, emit emit) error {
	wm := timers.WatermarkMs()
	for row := range rows.All() {
		if err := add(&e.cnt, 1); err != nil {
			return err
		}
		out, err := e.one(or(row.Op), or(row.B), timers)
		if err != nil {
			return err
		}
		var ts any
		if row.Ts != nil {
			ts = row.Ts.UnixMilli()
		}
		if err := emit("ROW", repr(tuple{ts, row.Op, row.B, out})); err != nil {
			return err
		}
	}
	return emit("rows-done", repr(tuple{"wm", wm, "now", timers.ProcessingTimeMs()}))
}

func (e *eventTime) one(op string, at int64, timers *tidemill.Timers) (any, error) {
	switch op {
	case "reg":
		return nil, timers.Register(at)
	case "regWm":
		return nil, timers.Register(timers.WatermarkMs() + at)
	case "del":
		return nil, timers.Delete(at)
	case "list":
		return timers.List()
	}
	what, plans := strings.CutPrefix(op, "plan:")
	if !plans {
		return nil, nil
	}
	if err := e.todo.Update(at, what); err != nil {
		return nil, err
	}
	return nil, timers.Register(at)
}

func (e *eventTime) timer(at int64, timers *tidemill.Timers, emit emit) error {
	wm := timers.WatermarkMs()
	what, err := orNone(e.todo.Get(at))
	if err != nil {
		return err
	}
	switch what {
	case "past":
		err = timers.Register(at - 10)
	case "atWm":
		err = timers.Register(wm)
	case "later":
		err = timers.Register(wm + 1)
	}
	if err != nil {
		return err
	}
	cnt, err := orNone(e.cnt.Get())
	if err != nil {
		return err
	}
	return emit("TIMER", repr(tuple{at, "wm", wm, "now", timers.ProcessingTimeMs(), what, cnt}))
}

// add counts n more.
func add(v *tidemill.Value[counted], n int) error {
	before, _, err := v.Get()
	if err != nil {
		return err
	}
	return v.Update(counted{before.N + int64(n)})
}

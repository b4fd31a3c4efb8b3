package main

import (
	"errors"
	"strings"

	"github.com/tidemill/tidemill/guest-sdk/go"
)

// processingTime registers timers of processing time: times are offsets to the batch's, or absolute where the op says
// `Abs`.
type processingTime struct {
	handlers
	// What to do when the timer of that time fires.
	todo tidemill.Map[int64, string]
	cnt  tidemill.Value[counted]
}

func (p *processingTime) init(h *tidemill.Handle) error {
	return errors.Join(h.State("todo", &p.todo), h.State("cnt", &p.cnt))
}

func (p *processingTime) rows(rows *tidemill.Rows[Step], timers *tidemill.Timers, emit emit) error {
	for row := range rows.All() {
		if err := add(&p.cnt, 1); err != nil {
			return err
		}
		out, err := p.one(or(row.Op), or(row.B), timers)
		if err != nil {
			return err
		}
		if err := emit(or(row.Op), repr(out)); err != nil {
			return err
		}
	}
	return emit("rows-done", repr(tuple{timers.ProcessingTimeMs(), timers.WatermarkMs()}))
}

func (p *processingTime) one(op string, d int64, timers *tidemill.Timers) (any, error) {
	now := timers.ProcessingTimeMs()
	switch op {
	case "reg":
		return nil, timers.Register(now + d)
	case "regAbs":
		return nil, timers.Register(d)
	case "del":
		return nil, timers.Delete(now + d)
	case "delAbs":
		return nil, timers.Delete(d)
	case "list":
		return timers.List()
	}
	what, plans := strings.CutPrefix(op, "plan:")
	if !plans {
		return "noop", nil
	}
	if err := p.todo.Update(now+d, what); err != nil {
		return nil, err
	}
	return nil, timers.Register(now + d)
}

func (p *processingTime) timer(at int64, timers *tidemill.Timers, emit emit) error {
	now := timers.ProcessingTimeMs()
	what, err := orNone(p.todo.Get(at))
	if err != nil {
		return err
	}
	before, err := timers.List()
	if err != nil {
		return err
	}
	// What registers a time that is due does so once, or it is due for ever.
	again := func(expiryMs int64) error {
		if err := p.todo.Remove(at); err != nil {
			return err
		}
		return timers.Register(expiryMs)
	}
	switch what {
	case "rearm":
		err = timers.Register(now + 1000)
	case "same":
		err = again(at)
	case "past":
		err = again(at - 10)
	case "mid":
		err = again(at + 1)
	case "delNext":
		err = timers.Delete(at + 1)
	case "clear":
		err = p.cnt.Clear()
	}
	if err != nil {
		return err
	}
	cnt, err := orNone(p.cnt.Get())
	if err != nil {
		return err
	}
	return emit("TIMER", repr(tuple{at, now, what, before, cnt}))
}

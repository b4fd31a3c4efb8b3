package main

import (
	"errors"
	"strconv"
	"time"

	"github.com/tidemill/tidemill/guest-sdk/go"
)

// held is a row of one nullable column, which Python prints as a tuple.
type held struct{ N *int64 }

// ttl has value, list and map state that expire.
type ttl struct {
	handlers
	v tidemill.Value[held]
	l tidemill.List[held]
	m tidemill.Map[string, *int64]
	// Without TTL.
	n tidemill.Value[held]
}

func (t *ttl) init(h *tidemill.Handle) error {
	expires, err := ttlOf(h, "5000")
	if err != nil {
		return err
	}
	return errors.Join(
		h.State("v", &t.v, expires),
		h.State("l", &t.l, expires),
		h.State("m", &t.m, expires),
		h.State("n", &t.n),
	)
}

func (t *ttl) rows(rows *tidemill.Rows[Step], timers *tidemill.Timers, emit emit) error {
	for row := range rows.All() {
		out, err := t.one(or(row.Op), or(row.A), row.B)
		if err != nil {
			return err
		}
		if err := emit(or(row.Op), repr(out)); err != nil {
			return err
		}
	}
	return emit("now", repr(tuple{timers.ProcessingTimeMs(), timers.WatermarkMs()}))
}

func (t *ttl) one(op, a string, b *int64) (any, error) {
	switch op {
	case "set":
		return nil, errors.Join(t.v.Update(held{b}), t.n.Update(held{b}))
	case "append":
		return nil, t.l.Append(held{b})
	case "put":
		return nil, t.l.Put([]held{{b}, {next(b)}})
	case "mset":
		return nil, t.m.Update(a, b)
	case "mremove":
		return nil, t.m.Remove(a)
	case "clear":
		return nil, t.v.Clear()
	case "get":
		return t.get()
	default:
		return nil, tidemill.NewError("NO_SUCH_OP", "%s", op)
	}
}

// get is all that there is.
func (t *ttl) get() (any, error) {
	var errs []error
	noted := func(value any, err error) any {
		errs = append(errs, err)
		return value
	}
	boolean := func(value bool, err error) any { return noted(value, err) }
	all := tuple{
		boolean(t.v.Exists()),
		noted(orNone(t.v.Get())),
		boolean(t.l.Exists()),
		noted(list(t.l.All())),
		boolean(t.m.Exists()),
		noted(entries(&t.m)),
		boolean(t.m.ContainsKey("p")),
		noted(orNone(t.n.Get())),
	}
	return all, errors.Join(errs...)
}

// ttlOf is the TTL of the parameter `ttl_ms`; zero is none.
func ttlOf(h *tidemill.Handle, otherwise string) (tidemill.StateOption, error) {
	ms, err := strconv.ParseInt(parameter(h, "ttl_ms", otherwise), 10, 64)
	return tidemill.TTL(time.Duration(ms) * time.Millisecond), err
}

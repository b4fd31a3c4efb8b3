package main

import (
	"errors"
	"strings"

	"github.com/tidemill/tidemill/guest-sdk/go"
)

type pair struct {
	X *int32
	Y *string
}

type number struct{ X *int32 }

type name struct{ K *string }

// crud: every row is one operation on one of the state variables.
type crud struct {
	handlers
	v tidemill.Value[pair]
	l tidemill.List[number]
	m tidemill.Map[name, number]
}

func (c *crud) init(h *tidemill.Handle) error {
	return errors.Join(h.State("v", &c.v), h.State("l", &c.l), h.State("m", &c.m))
}

// An op that begins with `!` lets its error pass; the error of others is what they emit.
func (c *crud) rows(rows *tidemill.Rows[Step], _ *tidemill.Timers, emit emit) error {
	for row := range rows.All() {
		op, passes := strings.CutPrefix(or(row.Op), "!")
		value, err := c.one(op, row.A, row.B)
		out := repr(value)
		if err != nil {
			var coded *tidemill.Error
			if passes || !errors.As(err, &coded) {
				return err
			}
			out = coded.Code
		}
		if err := emit(or(row.Op), out); err != nil {
			return err
		}
	}
	return nil
}

// one does an operation and answers what Python would print.
func (c *crud) one(op string, a *string, b *int64) (any, error) {
	x := number{}
	if b != nil {
		x = number{ptr(int32(*b))}
	}
	key := name{a}
	switch op {
	case "v.exists":
		return c.v.Exists()
	case "v.get":
		return orNone(c.v.Get())
	case "v.update":
		return nil, c.v.Update(pair{X: x.X, Y: a})
	case "v.updateNulls":
		return nil, c.v.Update(pair{})
	case "v.clear":
		return nil, c.v.Clear()
	case "l.exists":
		return c.l.Exists()
	case "l.get":
		return c.l.Get()
	case "l.put":
		return nil, c.l.Put([]number{x, {next(x.X)}})
	case "l.putEmpty":
		return nil, c.l.Put(nil)
	case "l.append":
		return nil, c.l.Append(x)
	case "l.appendList":
		return nil, c.l.Append(x, x)
	case "l.appendEmpty":
		return nil, c.l.Append()
	case "l.clear":
		return nil, c.l.Clear()
	case "m.exists":
		return c.m.Exists()
	case "m.get":
		value, ok, err := c.m.Get(key)
		if err != nil || !ok {
			return nil, err
		}
		// PySpark answers a Row here, and a tuple everywhere else.
		return literal("Row(x=" + repr(value.X) + ")"), nil
	case "m.contains":
		return c.m.ContainsKey(key)
	case "m.update":
		return nil, c.m.Update(key, x)
	case "m.remove":
		return nil, c.m.Remove(key)
	case "m.keys":
		return list(c.m.Keys())
	case "m.values":
		return list(c.m.Values())
	case "m.iter":
		return entries(&c.m)
	case "m.clear":
		return nil, c.m.Clear()
	default:
		return nil, tidemill.NewError("NO_SUCH_OP", "%s", op)
	}
}

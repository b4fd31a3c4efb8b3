package main

import (
	"slices"
	"strconv"

	"github.com/tidemill/tidemill/guest-sdk/go"
)

// evolution has a variable whose kind and schema the parameters give, so that they can change over a restart: what was
// there is emitted, then a row is written.
//
// `kind` is `v`, `l`, `m` or `none`; `schema` names the row type, `val` and `text` what is written; `name` and `ttl_ms`
// are the variable's; `map_key` is `k`, `kl` or `int` and names the type of a map's key; `also` is the kind of a second
// variable with the same schema, `extra` names a further one, `drop` one to delete.
type evolution struct {
	handlers
	// None of them, one, or two.
	variables []variable
	extra     *tidemill.Value[int64]
	told      told
}

func (e *evolution) init(h *tidemill.Handle) error {
	if name := parameter(h, "drop", ""); name != "" {
		if err := h.DeleteIfExists(name); err != nil {
			return err
		}
	}
	val, err := strconv.ParseInt(parameter(h, "val", "1"), 10, 64)
	if err != nil {
		return err
	}
	e.told = told{val: val, text: parameter(h, "text", "")}
	if schema := parameter(h, "schema", ""); schema != "" {
		if err := e.declare(h, schema); err != nil {
			return err
		}
	}
	if name, wanted := h.Parameter("extra"); wanted {
		e.extra = new(tidemill.Value[int64])
		return h.State(name, e.extra)
	}
	return nil
}

func (e *evolution) declare(h *tidemill.Handle, schema string) error {
	declare, known := schemas[schema]
	if !known {
		return tidemill.NewError("NO_SUCH_SCHEMA", "%s", schema)
	}
	for _, wanted := range []struct{ name, kind string }{
		{parameter(h, "name", "v"), parameter(h, "kind", "v")},
		{"also", parameter(h, "also", "")},
	} {
		if wanted.kind == "" {
			continue
		}
		declared, err := declare(h, wanted.name, wanted.kind)
		if err != nil {
			return err
		}
		e.variables = append(e.variables, declared)
	}
	return nil
}

func (e *evolution) rows(rows *tidemill.Rows[Step], _ *tidemill.Timers, emit emit) error {
	all := collect(rows)
	if len(e.variables) == 0 {
		return emit("got", "-")
	}
	// A row with the op `look` writes nothing.
	writes := slices.ContainsFunc(all, func(row Step) bool { return or(row.Op) != "look" })
	for _, variable := range e.variables {
		got, err := variable.got()
		if err != nil {
			return err
		}
		if writes {
			if err := variable.write(e.told); err != nil {
				return err
			}
		}
		if err := emit("got", repr(got)); err != nil {
			return err
		}
	}
	if e.extra == nil {
		return nil
	}
	extra, err := orNone(e.extra.Get())
	if err != nil {
		return err
	}
	if extra != nil {
		if err := emit("extra", repr(extra)); err != nil {
			return err
		}
	}
	return e.extra.Update(1)
}

// variable is a declared variable: what is there, and one write.
type variable interface {
	got() (any, error)
	write(told told) error
}

type aValue[T stored[T]] struct{ tidemill.Value[T] }

func (v *aValue[T]) got() (any, error)     { return orNone(v.Get()) }
func (v *aValue[T]) write(told told) error { return v.Update(of[T](told)) }

type aList[T stored[T]] struct{ tidemill.List[T] }

func (l *aList[T]) got() (any, error)     { return l.Get() }
func (l *aList[T]) write(told told) error { return l.Append(of[T](told)) }

type aMap[K stored[K], T stored[T]] struct{ tidemill.Map[K, T] }

func (m *aMap[K, T]) got() (any, error)     { return entries(&m.Map) }
func (m *aMap[K, T]) write(told told) error { return m.Update(of[K](told), of[T](told)) }

// declare makes a variable of one kind whose rows are of type T.
func declare[T stored[T]](h *tidemill.Handle, name, kind string) (variable, error) {
	expires, err := ttlOf(h, "0")
	if err != nil {
		return nil, err
	}
	switch kind {
	case "v":
		v := &aValue[T]{}
		return v, h.State(name, &v.Value, expires)
	case "l":
		l := &aList[T]{}
		return l, h.State(name, &l.List, expires)
	case "m":
		switch parameter(h, "map_key", "k") {
		case "k":
			return declareMap[k, T](h, name, expires)
		case "kl":
			return declareMap[kl, T](h, name, expires)
		case "int":
			return declareMap[intK, T](h, name, expires)
		}
	}
	return nil, tidemill.NewError("NO_SUCH_KIND", "%s", kind)
}

func declareMap[K stored[K], T stored[T]](h *tidemill.Handle, name string, expires tidemill.StateOption) (variable, error) {
	m := &aMap[K, T]{}
	return m, h.State(name, &m.Map, expires)
}

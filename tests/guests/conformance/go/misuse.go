package main

import (
	"errors"
	"time"

	"github.com/tidemill/tidemill/guest-sdk/go"
)

// misuse counts, and does what should not be done: the parameters `init`, `rows`, `timer` and `close` say what is done
// there.
type misuse struct {
	handlers
	n                        tidemill.Value[int64]
	inRows, inTimer, inClose string
}

func (m *misuse) init(h *tidemill.Handle) error {
	if err := h.State("n", &m.n); err != nil {
		return err
	}
	m.inRows, m.inTimer, m.inClose = parameter(h, "rows", ""), parameter(h, "timer", ""), parameter(h, "close", "")
	expires, err := ttlOf(h, "1000")
	if err != nil {
		return err
	}
	name := parameter(h, "name", "")
	var (
		value tidemill.Value[int64]
		list  tidemill.List[int64]
		table tidemill.Map[int64, int64]
	)
	switch told := parameter(h, "init", ""); told {
	case "":
		return nil
	case "boom":
		return errors.New("boom")
	case "value":
		return h.State(name, &value)
	case "list":
		return h.State(name, &list)
	case "map":
		return h.State(name, &table)
	case "ttl value":
		return h.State("t", &value, expires)
	case "ttl list":
		return h.State("t", &list, expires)
	case "ttl map":
		return h.State("t", &table, expires)
	case "ttl below a millisecond":
		return h.State("t", &value, tidemill.TTL(time.Nanosecond))
	case "get":
		_, _, err = m.n.Get()
	case "update":
		err = m.n.Update(1)
	case "exists":
		_, err = m.n.Exists()
	case "clear":
		err = m.n.Clear()
	case "list exists":
		if err = h.State("l", &list); err == nil {
			_, err = list.Exists()
		}
	case "map exists":
		if err = h.State("m", &table); err == nil {
			_, err = table.Exists()
		}
	case "delete":
		err = h.DeleteIfExists(name)
	default:
		return tidemill.NewError("NO_SUCH_OP", "%s", told)
	}
	return err
}

func (m *misuse) rows(rows *tidemill.Rows[Step], timers *tidemill.Timers, emit emit) error {
	all := collect(rows)
	switch m.inRows {
	case "":
		n, _, err := m.n.Get()
		if err != nil {
			return err
		}
		n += int64(len(all))
		if err := m.n.Update(n); err != nil {
			return err
		}
		return emit("n", repr(n))
	case "boom":
		return errors.New("boom")
	case "coded":
		return tidemill.NewError("OF_MY_OWN", "boom")
	case "register":
		return timers.Register(1)
	case "register now":
		return timers.Register(0)
	case "delete":
		return timers.Delete(1)
	case "list":
		listed, err := timers.List()
		if err != nil {
			return err
		}
		return emit("timers", repr(listed))
	case "times":
		return errors.Join(emit("now", repr(timers.ProcessingTimeMs())), emit("wm", repr(timers.WatermarkMs())))
	case "nothing":
		return nil
	case "two":
		return errors.Join(emit("1", "1"), emit("2", "2"))
	default:
		return tidemill.NewError("NO_SUCH_OP", "%s", m.inRows)
	}
}

func (m *misuse) timer(int64, *tidemill.Timers, emit) error {
	if m.inTimer == "boom" {
		return errors.New("boom")
	}
	return nil
}

func (m *misuse) close() error {
	switch m.inClose {
	case "":
		return nil
	case "boom":
		return errors.New("boom")
	case "get":
		_, _, err := m.n.Get()
		return err
	default:
		return tidemill.NewError("NO_SUCH_OP", "%s", m.inClose)
	}
}

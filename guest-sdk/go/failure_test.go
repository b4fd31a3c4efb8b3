package tidemill_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/guest-sdk/go"
	"github.com/tidemill/tidemill/guest-sdk/go/tidemilltest"
)

func wantFailure(t *testing.T, err error, code, message string, group uint32) *tidemilltest.Failure {
	t.Helper()
	var failure *tidemilltest.Failure
	if !errors.As(err, &failure) {
		t.Fatalf("got %v, want a failure", err)
	}
	if failure.Code != code || !strings.Contains(failure.Message, message) || failure.Group != group {
		t.Errorf("got %s: %s in group %d, want %s: %s in group %d", failure.Code, failure.Message, failure.Group, code, message, group)
	}
	return failure
}

// failing is a processor that calls fail in one of its handlers.
func failing(where string, fail func() error) *scripted {
	in := func(here string) error {
		if here == where {
			return fail()
		}
		return nil
	}
	return &scripted{
		init: func(*tidemill.Handle) error { return in("init") },
		rows: func(key string, _ *tidemill.Rows[int64], timers *tidemill.Timers, _ *tidemill.Out[pair]) error {
			if key == "b" {
				return errors.Join(timers.Register(0), in("rows"))
			}
			return nil
		},
		timer:   func(string, int64, *tidemill.Timers, *tidemill.Out[pair]) error { return in("timer") },
		initial: func(string, int64, *tidemill.Timers) error { return in("initial state") },
		close:   func() error { return in("close") },
	}
}

func TestAnErrorOfEachHandlerReachesTheHostWithItsMessageAndGroup(t *testing.T) {
	for where, group := range map[string]uint32{"init": 0, "rows": 2, "timer": 1, "initial state": 1, "close": 0} {
		q := tidemilltest.NewWithInitialState(t, failing(where, func() error {
			return fmt.Errorf("in %s: %w", where, errors.New("broken"))
		}))
		q.TimeMode(tidemill.TimeModeProcessingTime)
		var err error
		if where == "initial state" {
			err = q.InitialState("a", 1).TryInitialState()
		} else {
			_, err = q.Input("a", 1).Input("b", 1).TryBatch()
		}
		wantFailure(t, err, "USER_CODE", "in "+where+": broken", group)
	}
}

func TestAPanicOfEachHandlerReachesTheHostWithItsStack(t *testing.T) {
	for where, group := range map[string]uint32{"init": 0, "rows": 2, "timer": 1, "initial state": 1, "close": 0} {
		q := tidemilltest.NewWithInitialState(t, failing(where, func() error {
			var none map[string]int
			none["x"]++
			return nil
		}))
		q.TimeMode(tidemill.TimeModeProcessingTime)
		var err error
		if where == "initial state" {
			err = q.InitialState("a", 1).TryInitialState()
		} else {
			_, err = q.Input("a", 1).Input("b", 1).TryBatch()
		}
		failure := wantFailure(t, err, "USER_CODE", "assignment to entry in nil map", group)
		if where := "failure_test.go:"; !strings.Contains(failure.Stack, where) || strings.Contains(failure.Stack, "(*program[") {
			t.Errorf("the stack is\n%s\nand should be the author's lines", failure.Stack)
		}
	}
}

func TestAPanicWithWordsKeepsThem(t *testing.T) {
	_, err := run(t, &scripted{rows: func(string, *tidemill.Rows[int64], *tidemill.Timers, *tidemill.Out[pair]) error {
		panic("no price")
	}}, 1)
	wantFailure(t, err, "USER_CODE", "panic: no price", 1)
}

func TestAnErrorWithACodeOfTheAuthorsKeepsItAlsoWhenItIsWrapped(t *testing.T) {
	overdrawn := tidemill.NewError("OVERDRAWN", "by %d", 5)
	for _, err := range []error{overdrawn, fmt.Errorf("account: %w", overdrawn)} {
		_, got := run(t, &scripted{rows: func(string, *tidemill.Rows[int64], *tidemill.Timers, *tidemill.Out[pair]) error {
			return err
		}}, 1)
		wantFailure(t, got, "OVERDRAWN", "by 5", 1)
	}
}

func TestABatchThatFailsHasNoEffect(t *testing.T) {
	var v tidemill.Value[int64]
	q := tidemilltest.New(t, &scripted{
		state: map[string]tidemill.StateVariable{"v": &v},
		rows: func(_ string, rows *tidemill.Rows[int64], _ *tidemill.Timers, _ *tidemill.Out[pair]) error {
			n, _ := rows.Next()
			must(t, v.Update(n))
			if n < 0 {
				return errors.New("negative")
			}
			return nil
		},
	})
	q.Input("a", 1).RunBatch()
	_, err := q.Input("a", -1).TryBatch()
	wantFailure(t, err, "USER_CODE", "negative", 1)
	if n, ok := tidemilltest.Value[int64](q, "v", "a"); n != 1 || !ok {
		t.Errorf("the value is %d, %v", n, ok)
	}
}

func TestStateIsOutOfReachInInitAndClose(t *testing.T) {
	var v tidemill.Value[int64]
	var l tidemill.List[int64]
	var m tidemill.Map[int64, int64]
	accesses := map[string]func() error{
		"value get":    func() error { _, _, err := v.Get(); return err },
		"value exists": func() error { _, err := v.Exists(); return err },
		"value update": func() error { return v.Update(1) },
		"value clear":  func() error { return v.Clear() },
		"list get":     func() error { _, err := l.Get(); return err },
		"list append":  func() error { return l.Append(1) },
		"map get":      func() error { _, _, err := m.Get(1); return err },
		"map update":   func() error { return m.Update(1, 1) },
		"map all":      func() error { _, err := m.All(); return err },
	}
	for name, access := range accesses {
		_, err := run(t, &scripted{init: func(h *tidemill.Handle) error {
			must(t, errors.Join(h.State("v", &v), h.State("l", &l), h.State("m", &m)))
			return access()
		}}, 1)
		t.Run(name+" in init", func(t *testing.T) { wantFailure(t, err, invalidHandleState, "", 0) })
		_, err = run(t, &scripted{
			state: map[string]tidemill.StateVariable{"v": &v, "l": &l, "m": &m},
			close: access,
		}, 1)
		t.Run(name+" in close", func(t *testing.T) { wantFailure(t, err, invalidHandleState, "", 0) })
	}
}

func TestAVariableThatInitDidNotMakeIsTold(t *testing.T) {
	var v tidemill.Value[int64]
	in(t, nil, func() {
		wantCode(t, v.Update(1), "STATE_STORE_HANDLE_NOT_INITIALIZED")
		_, _, err := v.Get()
		wantCode(t, err, "STATE_STORE_HANDLE_NOT_INITIALIZED")
	})
}

func TestAFaultOfApplyFailsTheCallEvenIfTheAuthorDropsIt(t *testing.T) {
	var kept *tidemill.Out[pair]
	var l tidemill.List[int64]
	q := tidemilltest.NewWithInitialState(t, &scripted{
		state: map[string]tidemill.StateVariable{"l": &l},
		rows: func(_ string, _ *tidemill.Rows[int64], _ *tidemill.Timers, out *tidemill.Out[pair]) error {
			kept = out
			return nil
		},
		initial: func(key string, n int64, _ *tidemill.Timers) error {
			if key == "b" {
				must(t, kept.Emit(pair{key, n})) // not in this phase, which the host finds out
				_, _ = l.Get()                   // applies it
			}
			return nil
		},
	})
	q.Input("a", 1).RunBatch()
	err := q.InitialState("a", 1).InitialState("b", 1).InitialState("c", 1).TryInitialState()
	wantFailure(t, err, invalidHandleState, "emit", 2)
}

func TestAnotherGoroutineIsRefused(t *testing.T) {
	var l tidemill.List[int64]
	in(t, map[string]tidemill.StateVariable{"l": &l}, func() {
		refused := make(chan error)
		go func() {
			_, err := l.Get()
			refused <- err
		}()
		wantCode(t, <-refused, "CALL_FROM_ANOTHER_GOROUTINE")
		_, err := l.Get()
		must(t, err)
	})
}

func TestWhatIsLoggedReachesTheHost(t *testing.T) {
	q := tidemilltest.New(t, &scripted{rows: func(key string, _ *tidemill.Rows[int64], _ *tidemill.Timers, _ *tidemill.Out[pair]) error {
		tidemill.Infof("key %s", key)
		tidemill.Errorf("%d rows", 0)
		return nil
	}})
	q.Input("a", 1).RunBatch()
	want := []tidemilltest.Message{{Level: tidemill.LevelInfo, Text: "key a"}, {Level: tidemill.LevelError, Text: "0 rows"}}
	if got := q.TakeLog(); !slices.Equal(got, want) {
		t.Errorf("logged %v, want %v", got, want)
	}
}

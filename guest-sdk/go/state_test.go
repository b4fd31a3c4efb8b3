package tidemill_test

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemill/tidemill/guest-sdk/go"
	"github.com/tidemill/tidemill/guest-sdk/go/tidemilltest"
)

// in runs a handler over one key with one row.
func in(t *testing.T, state map[string]tidemill.StateVariable, handle func()) {
	t.Helper()
	_, err := run(t, &scripted{
		state: state,
		rows: func(string, *tidemill.Rows[int64], *tidemill.Timers, *tidemill.Out[pair]) error {
			handle()
			return nil
		},
	}, 1)
	must(t, err)
}

func TestAValueIsReadAfterItWasWrittenClearedAndPushedOutOfTheBuffer(t *testing.T) {
	var v tidemill.Value[string]
	var other tidemill.List[string]
	in(t, map[string]tidemill.StateVariable{"v": &v, "other": &other}, func() {
		wantValue := func(want string, wantOk bool) {
			t.Helper()
			got, ok, err := v.Get()
			must(t, err)
			exists, err := v.Exists()
			must(t, err)
			if got != want || ok != wantOk || exists != wantOk {
				t.Errorf("the value is %q, %v, and exists: %v", got, ok, exists)
			}
		}
		wantValue("", false)
		must(t, v.Update("x"))
		wantValue("x", true)
		must(t, v.Clear())
		wantValue("", false)
		must(t, v.Update(""))
		wantValue("", true) // empty is not absent
		must(t, v.Update("y"))
		for range 100 {
			must(t, other.Append(strings.Repeat("z", 1000)))
		}
		wantValue("y", true)
	})
}

func TestAMapIsReadWithItsPendingWrites(t *testing.T) {
	var m tidemill.Map[string, int64]
	entries := func() map[string]int64 {
		t.Helper()
		all, err := m.All()
		must(t, err)
		return maps.Collect(all)
	}
	in(t, map[string]tidemill.StateVariable{"m": &m}, func() {
		must(t, m.Update("a", 1))
		must(t, m.Update("b", 2))
		must(t, m.Update("a", 3))
		if n, ok, err := m.Get("a"); n != 3 || !ok || err != nil {
			t.Errorf("a is %d, %v, %v after it was put twice", n, ok, err)
		}
		must(t, m.Remove("b"))
		if ok, err := m.ContainsKey("b"); ok || err != nil {
			t.Errorf("b is there after it was removed (%v)", err)
		}
		if got := entries(); !maps.Equal(got, map[string]int64{"a": 3}) {
			t.Errorf("the entries are %v", got)
		}
		if n, ok, err := m.Get("a"); n != 3 || !ok || err != nil {
			t.Errorf("a is %d, %v, %v after the writes were applied", n, ok, err)
		}
		must(t, m.Clear())
		if _, ok, err := m.Get("a"); ok || err != nil {
			t.Errorf("a is there after the map was cleared (%v)", err)
		}
		must(t, m.Update("c", 4))
		if got := entries(); !maps.Equal(got, map[string]int64{"c": 4}) {
			t.Errorf("the entries are %v after clear and put", got)
		}
		exists, err := m.Exists()
		must(t, err)
		keys, err := m.Keys()
		must(t, err)
		values, err := m.Values()
		must(t, err)
		if k, v := slices.Collect(keys), slices.Collect(values); !exists || !slices.Equal(k, []string{"c"}) || !slices.Equal(v, []int64{4}) {
			t.Errorf("exists %v, keys %v, values %v", exists, k, v)
		}
	})
}

func TestTheTwoZerosAreOneKeyOfAMap(t *testing.T) {
	var m tidemill.Map[float64, int64]
	in(t, map[string]tidemill.StateVariable{"m": &m}, func() {
		must(t, m.Update(math.Copysign(0, -1), 1))
		if n, ok, err := m.Get(0); n != 1 || !ok || err != nil {
			t.Errorf("0.0 is %d, %v, %v", n, ok, err)
		}
	})
}

func TestAKeyThatIsNullIsRefused(t *testing.T) {
	var m tidemill.Map[*string, int64]
	in(t, map[string]tidemill.StateVariable{"m": &m}, func() {
		wantCode(t, m.Update(nil, 1), "ILLEGAL_STATE_STORE_VALUE.NULL_VALUE")
		_, _, err := m.Get(nil)
		wantCode(t, err, "ILLEGAL_STATE_STORE_VALUE.NULL_VALUE")
	})
}

func TestAListOfMoreThanABufferReadsBackWholeAndInOrder(t *testing.T) {
	var l tidemill.List[string]
	want := make([]string, 300)
	for i := range want {
		want[i] = strings.Repeat(string(rune('a'+i%26)), 1000)
	}
	in(t, map[string]tidemill.StateVariable{"l": &l}, func() {
		must(t, l.Append("before"))
		must(t, l.Put(want))
		got, err := l.Get()
		must(t, err)
		if !slices.Equal(got, want) {
			t.Errorf("read %d elements, want %d", len(got), len(want))
		}
		must(t, l.Append("after"))
		all, err := l.All()
		must(t, err)
		if n := len(slices.Collect(all)); n != 301 {
			t.Errorf("walked %d elements, want 301", n)
		}
		must(t, l.Clear())
		if exists, err := l.Exists(); exists || err != nil {
			t.Errorf("the list exists after clear (%v)", err)
		}
	})
}

func TestAWalkOverPagesShowsWhatWasThereWhenItBegan(t *testing.T) {
	var l tidemill.List[int64]
	var walked []int64
	q := tidemilltest.New(t, &scripted{
		state: map[string]tidemill.StateVariable{"l": &l},
		rows: func(string, *tidemill.Rows[int64], *tidemill.Timers, *tidemill.Out[pair]) error {
			must(t, l.Append(1, 2, 3, 4, 5))
			all, err := l.All()
			must(t, err)
			for n := range all {
				walked = append(walked, n)
				must(t, l.Append(n*10))
				_, err := l.Exists() // applies it
				must(t, err)
			}
			return nil
		},
	}).SmallChunks(8, 2)
	q.Input("a", 1).RunBatch()
	if !slices.Equal(walked, []int64{1, 2, 3, 4, 5}) {
		t.Errorf("walked %v", walked)
	}
	if got := tidemilltest.List[int64](q, "l", "a"); !slices.Equal(got, []int64{1, 2, 3, 4, 5, 10, 20, 30, 40, 50}) {
		t.Errorf("the list is %v", got)
	}
}

func TestAnEmptyListIsRefused(t *testing.T) {
	var l tidemill.List[int64]
	in(t, map[string]tidemill.StateVariable{"l": &l}, func() {
		wantCode(t, l.Put(nil), "ILLEGAL_STATE_STORE_VALUE.EMPTY_LIST_VALUE")
		wantCode(t, l.Append(), "ILLEGAL_STATE_STORE_VALUE.EMPTY_LIST_VALUE")
	})
}

func TestAValueThatItsTypeCannotHoldIsRefusedAndNothingOfItIsWritten(t *testing.T) {
	type price struct {
		Amount tidemill.Decimal `tidemill:"amount,decimal(4,2)"`
		At     time.Time
	}
	var v tidemill.Value[price]
	var s tidemill.Value[string]
	in(t, map[string]tidemill.StateVariable{"v": &v, "s": &s}, func() {
		wantCode(t, v.Update(price{Amount: tidemill.NewDecimal(100, 0)}), "NUMERIC_VALUE_OUT_OF_RANGE")
		wantCode(t, v.Update(price{Amount: tidemill.NewDecimal(1, 3)}), "NUMERIC_VALUE_OUT_OF_RANGE")
		wantCode(t, v.Update(price{At: time.Unix(math.MaxInt64/1000, 0)}), "NUMERIC_VALUE_OUT_OF_RANGE")
		wantCode(t, s.Update("\xff"), "INVALID_ROW")
		for _, value := range []interface{ Exists() (bool, error) }{&v, &s} {
			if exists, err := value.Exists(); exists || err != nil {
				t.Errorf("something was written (%v)", err)
			}
		}
	})
}

func TestStateExpiresAndReadingDoesNotRefreshIt(t *testing.T) {
	var v tidemill.Value[int64]
	q := tidemilltest.New(t, &scripted{
		state:   map[string]tidemill.StateVariable{"v": &v},
		options: []tidemill.StateOption{tidemill.TTL(time.Second)},
		rows: func(key string, rows *tidemill.Rows[int64], _ *tidemill.Timers, out *tidemill.Out[pair]) error {
			_, ok, err := v.Get()
			if err != nil || ok {
				return err
			}
			n, _ := rows.Next()
			must(t, v.Update(n))
			return out.Emit(pair{key, n})
		},
	}).TimeMode(tidemill.TimeModeProcessingTime)
	for _, step := range []struct {
		timeMs int64
		emits  int
	}{{0, 1}, {999, 0}, {1000, 1}, {1999, 0}, {2000, 1}} {
		if got := q.SetTimeMs(step.timeMs).Input("a", step.timeMs).RunBatch(); len(got) != step.emits {
			t.Errorf("at %d ms emitted %v, want %d rows", step.timeMs, got, step.emits)
		}
	}
}

func TestMistakesOfADeclarationAreTold(t *testing.T) {
	var v, w tidemill.Value[int64]
	declare := func(mode tidemill.TimeMode, init func(h *tidemill.Handle) error) error {
		_, err := tidemilltest.New(t, &scripted{init: init}).TimeMode(mode).TryBatch()
		return err
	}
	for code, init := range map[string]func(h *tidemill.Handle) error{
		"STATE_STORE_CANNOT_USE_COLUMN_FAMILY_WITH_INVALID_NAME": func(h *tidemill.Handle) error {
			return h.State(" v", &v)
		},
		"STATE_STORE_CANNOT_CREATE_COLUMN_FAMILY_WITH_RESERVED_CHARS": func(h *tidemill.Handle) error {
			return h.State("$v", &v)
		},
		"STATEFUL_PROCESSOR_DUPLICATE_STATE_VARIABLE_DEFINED": func(h *tidemill.Handle) error {
			must(t, h.State("v", &v))
			return h.State("v", &w)
		},
		"STATEFUL_PROCESSOR_TTL_DURATION_MUST_BE_POSITIVE": func(h *tidemill.Handle) error {
			return h.State("v", &v, tidemill.TTL(time.Microsecond))
		},
		"STATEFUL_PROCESSOR_INCORRECT_TIME_MODE_TO_ASSIGN_TTL": func(h *tidemill.Handle) error {
			return h.State("v", &v, tidemill.TTL(time.Second))
		},
	} {
		wantCode(t, declare(tidemill.TimeModeEventTime, init), code)
	}
}

func TestAVariableThatIsDroppedIsGone(t *testing.T) {
	var v tidemill.Value[int64]
	drop := false
	q := tidemilltest.New(t, &scripted{
		init: func(h *tidemill.Handle) error {
			if drop {
				return h.DeleteIfExists("v")
			}
			return h.State("v", &v)
		},
		rows: func(string, *tidemill.Rows[int64], *tidemill.Timers, *tidemill.Out[pair]) error {
			if drop {
				return nil
			}
			return v.Update(1)
		},
	})
	q.Input("a", 1).RunBatch()
	if n, ok := tidemilltest.Value[int64](q, "v", "a"); n != 1 || !ok {
		t.Fatalf("the value is %d, %v", n, ok)
	}
	drop = true
	q.Input("a", 1).RunBatch()
	if _, ok := tidemilltest.Value[int64](q, "v", "a"); ok {
		t.Error("the value is still there")
	}
}

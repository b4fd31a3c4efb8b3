package tidemill_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/guest-sdk/go"
	"github.com/tidemill/tidemill/guest-sdk/go/tidemilltest"
)

// The code of a call where there is no grouping key.
const invalidHandleState = "STATEFUL_PROCESSOR_CANNOT_PERFORM_OPERATION_WITH_INVALID_HANDLE_STATE"

// pair is what the processors of these tests emit.
type pair struct {
	Key string
	N   int64
}

// scripted is a processor whose handlers a test gives. State variables are the test's, and made anew in each batch.
type scripted struct {
	state   map[string]tidemill.StateVariable
	options []tidemill.StateOption
	init    func(h *tidemill.Handle) error
	rows    func(key string, rows *tidemill.Rows[int64], timers *tidemill.Timers, out *tidemill.Out[pair]) error
	timer   func(key string, expiryMs int64, timers *tidemill.Timers, out *tidemill.Out[pair]) error
	initial func(key string, n int64, timers *tidemill.Timers) error
	close   func() error
}

func (s *scripted) Init(h *tidemill.Handle) error {
	for name, v := range s.state {
		if err := h.State(name, v, s.options...); err != nil {
			return err
		}
	}
	if s.init != nil {
		return s.init(h)
	}
	return nil
}

func (s *scripted) HandleInputRows(key string, rows *tidemill.Rows[int64], timers *tidemill.Timers, out *tidemill.Out[pair]) error {
	if s.rows == nil {
		return nil
	}
	return s.rows(key, rows, timers, out)
}

func (s *scripted) HandleExpiredTimer(key string, expiryMs int64, timers *tidemill.Timers, out *tidemill.Out[pair]) error {
	if s.timer == nil {
		return nil
	}
	return s.timer(key, expiryMs, timers, out)
}

func (s *scripted) HandleInitialState(key string, n int64, timers *tidemill.Timers) error {
	return s.initial(key, n, timers)
}

func (s *scripted) Close() error {
	if s.close == nil {
		return nil
	}
	return s.close()
}

// run runs rows in one batch, over one key.
func run(t *testing.T, s *scripted, rows ...int64) ([]pair, error) {
	t.Helper()
	return tidemilltest.New(t, s).TimeMode(tidemill.TimeModeProcessingTime).Input("a", rows...).TryBatch()
}

// must ends a test whose processor has no reason to fail.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	var failure *tidemilltest.Failure
	var coded *tidemill.Error
	switch {
	case errors.As(err, &failure) && failure.Code == code:
	case errors.As(err, &coded) && coded.Code == code:
	default:
		t.Errorf("got the error %v, want one with the code %s", err, code)
	}
}

func TestAGroupWhoseRowsSpanThreeChunksIsOneSequence(t *testing.T) {
	q := tidemilltest.New(t, &scripted{
		rows: func(key string, rows *tidemill.Rows[int64], _ *tidemill.Timers, out *tidemill.Out[pair]) error {
			for n := range rows.All() {
				if err := out.Emit(pair{key, n}); err != nil {
					return err
				}
			}
			return nil
		},
	}).SmallChunks(8, 2)
	got := q.Input("a", 1, 2, 3, 4, 5).Input("b", 6).RunBatch()
	want := []pair{{"a", 1}, {"a", 2}, {"a", 3}, {"a", 4}, {"a", 5}, {"b", 6}}
	if !slices.Equal(got, want) {
		t.Errorf("emitted %v, want %v", got, want)
	}
}

func TestAHandlerThatReadsOnlyItsFirstRowDoesNotDisturbTheNextGroup(t *testing.T) {
	q := tidemilltest.New(t, &scripted{
		rows: func(key string, rows *tidemill.Rows[int64], _ *tidemill.Timers, out *tidemill.Out[pair]) error {
			n, _ := rows.Next()
			return out.Emit(pair{key, n})
		},
	}).SmallChunks(8, 2)
	got := q.Input("a", 1, 2, 3, 4, 5, 6).Input("b", 7, 8).Input("c", 9).RunBatch()
	if want := []pair{{"a", 1}, {"b", 7}, {"c", 9}}; !slices.Equal(got, want) {
		t.Errorf("emitted %v, want %v", got, want)
	}
}

func TestASecondLoopGoesOnWhereTheFirstStopped(t *testing.T) {
	var first, second []int64
	_, err := run(t, &scripted{
		rows: func(_ string, rows *tidemill.Rows[int64], _ *tidemill.Timers, _ *tidemill.Out[pair]) error {
			for n := range rows.All() {
				first = append(first, n)
				break
			}
			second = slices.Collect(rows.All())
			return nil
		},
	}, 1, 2, 3)
	must(t, err)
	if !slices.Equal(first, []int64{1}) || !slices.Equal(second, []int64{2, 3}) {
		t.Errorf("read %v, then %v", first, second)
	}
}

func TestTextOfRowsStaysWhenLaterChunksHaveCome(t *testing.T) {
	var kept []string
	q := tidemilltest.New(t, processorOf(func(_ string, rows *tidemill.Rows[string]) {
		kept = append(kept, slices.Collect(rows.All())...)
	})).SmallChunks(1, 1)
	q.Input("a", "one", "two").Input("b", "three").RunBatch()
	if strings.Join(kept, " ") != "one two three" {
		t.Errorf("kept %q", kept)
	}
}

func TestEveryBatchHasAProcessorOfItsOwn(t *testing.T) {
	q := tidemilltest.New(t, &remembering{})
	q.Input("a", 1).RunBatch()
	if got := q.Input("a", 1).RunBatch(); !slices.Equal(got, []int64{1}) {
		t.Errorf("the second batch counts %v: it remembers the first", got)
	}
}

// remembering counts in a field, which an author should not.
type remembering struct{ seen int64 }

func (*remembering) Init(*tidemill.Handle) error { return nil }

func (r *remembering) HandleInputRows(_ string, rows *tidemill.Rows[int64], _ *tidemill.Timers, out *tidemill.Out[int64]) error {
	for range rows.All() {
		r.seen++
	}
	return out.Emit(r.seen)
}

// processorOf makes a processor of a handler that only reads.
func processorOf[K, I any](read func(K, *tidemill.Rows[I])) tidemill.Processor[K, I, pair] {
	return reading[K, I](read)
}

type reading[K, I any] func(K, *tidemill.Rows[I])

func (reading[K, I]) Init(*tidemill.Handle) error { return nil }

func (r reading[K, I]) HandleInputRows(key K, rows *tidemill.Rows[I], _ *tidemill.Timers, _ *tidemill.Out[pair]) error {
	r(key, rows)
	return nil
}

package tidemilltest

import (
	"testing"

	"github.com/tidemill/tidemill/guest-sdk/go"
	"github.com/tidemill/tidemill/guest-sdk/go/internal/contract"
	"github.com/tidemill/tidemill/guest-sdk/go/internal/memory"
)

// QueryWithInitialState is a [Query] of a processor that takes an initial state.
type QueryWithInitialState[K, I, O, S any] struct {
	*Query[K, I, O]
	initialState groups
}

// NewWithInitialState is [New] for a processor that takes an initial state.
func NewWithInitialState[K, I, O, S any](t testing.TB, p tidemill.InitialStateProcessor[K, I, O, S]) *QueryWithInitialState[K, I, O, S] {
	q := newQuery[K, I, O](t, func() { tidemill.RegisterWithInitialState(p) })
	return &QueryWithInitialState[K, I, O, S]{Query: q}
}

// InitialState adds rows of a key to the initial state.
func (q *QueryWithInitialState[K, I, O, S]) InitialState(key K, rows ...S) *QueryWithInitialState[K, I, O, S] {
	q.t.Helper()
	add(q.t, &q.initialState, key, rows)
	return q
}

// RunInitialState runs a bootstrap batch over the initial state that was added. Timers that it registers fire in a later
// batch. A batch that fails ends the test.
func (q *QueryWithInitialState[K, I, O, S]) RunInitialState() {
	q.t.Helper()
	if err := q.TryInitialState(); err != nil {
		q.t.Fatalf("the bootstrap batch failed: %v", err)
	}
}

// TryInitialState is RunInitialState for a batch that may fail, with a [Failure].
func (q *QueryWithInitialState[K, I, O, S]) TryInitialState() error {
	q.t.Helper()
	schema := planOf[S](q.t).Schema()
	q.initialStateSchema = &schema
	_, err := q.run(func(host *memory.Host) *contract.Failure {
		return q.phase(host, memory.InitialState, q.initialState.take(), q.program.HandleInitialState)
	})
	q.initialStateSchema, q.initialState = nil, groups{}
	return err
}

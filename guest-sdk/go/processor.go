package tidemill

// Processor is a stateful processor: handlers that the host calls per grouping key, in every batch on a fresh instance.
// What must outlive a batch belongs into state variables, not into fields. An error of a handler, or a panic, fails the
// batch, which then has had no effect.
//
// K is the grouping key. A struct names the query's key columns, any other type takes the only one. With a pointer, a
// NULL is a key like any other; without, a row with a NULL key is a bad row. I has the columns of the input that the
// handlers want; others are not even read. O has those that they emit.
type Processor[K, I, O any] interface {
	// Init makes the state variables, by [Handle.State]. There is no grouping key yet, so state cannot be read or
	// written. Which variables are made may depend on the query's settings, not on run id, batch id or time.
	Init(h *Handle) error

	// HandleInputRows handles the rows of one grouping key in this batch. Rows that are left unread are skipped.
	HandleInputRows(key K, rows *Rows[I], timers *Timers, out *Out[O]) error
}

// TimerHandler is for processors that register timers.
type TimerHandler[K, O any] interface {
	// HandleExpiredTimer handles one timer of a grouping key, after all input of the batch. It is deleted unless it is
	// registered again here.
	HandleExpiredTimer(key K, expiryMs int64, timers *Timers, out *Out[O]) error
}

// Closer is for processors that want a last word.
type Closer interface {
	// Close is the last call of a batch, before it is committed. It changes and emits nothing.
	Close() error
}

// InitialStateProcessor is a processor that takes an initial state, registered by [RegisterWithInitialState]. S has the
// columns of a row of the initial state that the handler wants.
type InitialStateProcessor[K, I, O, S any] interface {
	Processor[K, I, O]

	// HandleInitialState handles one row of the initial state, before any input of the query. Timers that are registered
	// here fire from the first batch of input on.
	HandleInitialState(key K, row S, timers *Timers) error
}

// Register makes a processor known to the host. It is called once, in an init function. The types are found in the
// processor's methods.
func Register[K, I, O any](p Processor[K, I, O]) {
	register[K, I, O, struct{}](p, nil)
}

// RegisterWithInitialState is Register for a processor that takes an initial state.
func RegisterWithInitialState[K, I, O, S any](p InitialStateProcessor[K, I, O, S]) {
	register(Processor[K, I, O](p), func(p Processor[K, I, O]) initialStateHandler[K, S] {
		return p.(InitialStateProcessor[K, I, O, S])
	})
}

type initialStateHandler[K, S any] interface {
	HandleInitialState(key K, row S, timers *Timers) error
}

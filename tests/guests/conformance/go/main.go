// The programs of the recorded scenarios (tests/conformance/README.md), each as its original in Python, so that what
// they emit can be held against what Spark emitted, letter by letter. The parameter `program` picks one.
package main

import (
	"slices"
	"time"

	"github.com/tidemill/tidemill/guest-sdk/go"
)

// Step has the columns of all scenarios; each uses some.
type Step struct {
	Op *string
	A  *string
	B  *int64
	Ts *time.Time
}

// Answer is what every program emits.
type Answer struct {
	Key *string
	Ev  string
	Out string
}

// Initial is a row of the initial state.
type Initial struct {
	N     int64
	Timer *int64
}

// emit emits a row of the key in hand.
type emit func(ev, out string) error

// program is one of the programs.
type program interface {
	init(h *tidemill.Handle) error
	rows(rows *tidemill.Rows[Step], timers *tidemill.Timers, emit emit) error
	timer(expiryMs int64, timers *tidemill.Timers, emit emit) error
	initial(row Initial, timers *tidemill.Timers) error
	close() error
}

// handlers are those that most programs do without.
type handlers struct{}

func (handlers) timer(int64, *tidemill.Timers, emit) error { return nil }
func (handlers) initial(Initial, *tidemill.Timers) error   { return nil }
func (handlers) close() error                              { return nil }

var programs = map[string]program{
	"crud":      &crud{},
	"ttl":       &ttl{},
	"timers":    &processingTime{},
	"event":     &eventTime{},
	"initial":   &withInitialState{},
	"iterators": &iterators{},
	"keys":      &keys{},
	"misuse":    &misuse{},
	"evolution": &evolution{},
	"restart":   &restart{},
}

// Conformance is the processor.
type Conformance struct{ program program }

// Init picks the program.
func (c *Conformance) Init(h *tidemill.Handle) error {
	name := parameter(h, "program", "")
	picked, ok := programs[name]
	if !ok {
		return tidemill.NewError("NO_SUCH_PROGRAM", "%s", name)
	}
	c.program = picked
	return c.program.init(h)
}

// HandleInputRows is the program's.
func (c *Conformance) HandleInputRows(key *string, rows *tidemill.Rows[Step], timers *tidemill.Timers, out *tidemill.Out[Answer]) error {
	return c.program.rows(rows, timers, emitter(key, out))
}

// HandleExpiredTimer is the program's.
func (c *Conformance) HandleExpiredTimer(key *string, expiryMs int64, timers *tidemill.Timers, out *tidemill.Out[Answer]) error {
	return c.program.timer(expiryMs, timers, emitter(key, out))
}

// HandleInitialState is the program's.
func (c *Conformance) HandleInitialState(_ *string, row Initial, timers *tidemill.Timers) error {
	return c.program.initial(row, timers)
}

// Close is the program's.
func (c *Conformance) Close() error { return c.program.close() }

func emitter(key *string, out *tidemill.Out[Answer]) emit {
	return func(ev, text string) error { return out.Emit(Answer{Key: key, Ev: ev, Out: text}) }
}

func parameter(h *tidemill.Handle, name, otherwise string) string {
	if told, ok := h.Parameter(name); ok {
		return told
	}
	return otherwise
}

// or is what a nullable column holds, or the zero value.
func or[T any](column *T) (value T) {
	if column != nil {
		value = *column
	}
	return value
}

func ptr[T any](value T) *T { return &value }

// next is one more; NULL for NULL.
func next[N int32 | int64](n *N) *N {
	if n == nil {
		return nil
	}
	return ptr(*n + 1)
}

// collect is all rows of the key.
func collect(rows *tidemill.Rows[Step]) []Step { return slices.Collect(rows.All()) }

func init() { tidemill.RegisterWithInitialState(&Conformance{}) }

func main() {}

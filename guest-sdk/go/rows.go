package tidemill

import (
	"iter"
	"reflect"
	"unsafe"

	"github.com/tidemill/tidemill/guest-sdk/go/internal/contract"
	"github.com/tidemill/tidemill/guest-sdk/go/internal/row"
	"github.com/tidemill/tidemill/guest-sdk/go/internal/session"
)

// Rows are the rows of one grouping key in a batch, in the order of the source. They are pulled as they are read, so
// there may be any number of them, and they can be read once: a second loop goes on where the first stopped.
type Rows[I any] struct {
	session *session.Session
	plan    *row.Plan
	current I
}

// All walks the rows.
func (r *Rows[I]) All() iter.Seq[I] {
	// Small enough to be inlined, and the row lies in the heap already: a loop over it allocates nothing.
	return func(yield func(I) bool) {
		for r.advance() && yield(r.current) {
		}
	}
}

// Next is the next row; false if there is none.
func (r *Rows[I]) Next() (I, bool) {
	if !r.advance() {
		var none I
		return none, false
	}
	return r.current, true
}

func (r *Rows[I]) advance() bool {
	packed, more, fault := r.session.NextRow()
	if fault == nil && more {
		fault = r.plan.Decode(packed, unsafe.Pointer(&r.current), true)
	}
	if fault != nil {
		// Rows come from the host as the plan asks for them, so this is a fault of a write before, or a host that breaks
		// the contract: nothing that a loop over rows could deal with. It ends the call as a failure.
		panic(errorOf(fault))
	}
	return more
}

// Out is where a handler emits rows.
type Out[O any] struct {
	session *session.Session
	plan    *row.Plan
	current O
}

// Emit emits a row. It is published with the batch.
func (o *Out[O]) Emit(value O) error {
	head, fault := o.session.Open("emit", contract.OpEmit, 0)
	if fault != nil {
		return errorOf(fault)
	}
	// In the heap, once: what is encoded through package unsafe would be moved there each time.
	o.current = value
	s := o.session
	if s.Ops, fault = o.plan.Encode(s.Ops, unsafe.Pointer(&o.current), row.Signed); fault != nil {
		s.Abandon(head)
		return errorOf(fault)
	}
	s.Close(head)
	return nil
}

func planOf[T any]() (*row.Plan, *contract.Fault) { return row.Of(reflect.TypeFor[T]()) }

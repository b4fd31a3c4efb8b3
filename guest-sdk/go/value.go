package tidemill

import (
	"unsafe"

	"github.com/tidemill/tidemill/guest-sdk/go/internal/contract"
	"github.com/tidemill/tidemill/guest-sdk/go/internal/row"
	"github.com/tidemill/tidemill/guest-sdk/go/internal/session"
)

// Value is one value of type T per grouping key. Init makes it, by [Handle.State]; in a handler it is that of the key
// in hand. Reads see the writes before them.
type Value[T any] struct {
	session  *session.Session
	variable contract.Variable
	plan     *row.Plan
	current  T
}

// Get is the value; false if there is none.
func (v *Value[T]) Get() (value T, ok bool, err error) {
	packed, ok, fault := v.session.Value(v.variable)
	if fault == nil && ok {
		fault = v.plan.Decode(packed, unsafe.Pointer(&v.current), false)
	}
	if fault != nil || !ok {
		return value, false, errorOf(fault)
	}
	return v.current, true, nil
}

// Exists is whether there is a value.
func (v *Value[T]) Exists() (bool, error) {
	ok, fault := v.session.ValueExists(v.variable)
	return ok, errorOf(fault)
}

// Update replaces the value, and starts its TTL anew.
func (v *Value[T]) Update(value T) error {
	s := v.session
	head, fault := s.Open("valueState.update", contract.OpValuePut, v.variable)
	if fault != nil {
		return errorOf(fault)
	}
	v.current = value
	if s.Ops, fault = v.plan.Encode(s.Ops, unsafe.Pointer(&v.current), row.Signed); fault != nil {
		s.Abandon(head)
		return errorOf(fault)
	}
	s.Wrote(v.variable, s.Close(head))
	return nil
}

// Clear removes the value.
func (v *Value[T]) Clear() error {
	fault := v.session.Clear("valueState.clear", v.variable)
	if fault == nil {
		v.session.Cleared(v.variable)
	}
	return errorOf(fault)
}

func (v *Value[T]) declare(s *session.Session, name string, settings stateSettings) (fault *contract.Fault) {
	if v.plan, fault = planOf[T](); fault != nil {
		return fault
	}
	if v.variable, fault = s.Host.ValueState(name, v.plan.StoredSchema(), settings.ttlMs); fault == nil {
		v.session = s
	}
	return fault
}

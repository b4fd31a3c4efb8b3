package tidemill

import (
	"iter"
	"unsafe"

	"github.com/tidemill/tidemill/guest-sdk/go/internal/contract"
	"github.com/tidemill/tidemill/guest-sdk/go/internal/row"
	"github.com/tidemill/tidemill/guest-sdk/go/internal/session"
)

// List is a list of elements of type T per grouping key, in order of insertion. Init makes it, by [Handle.State]; in a
// handler it is that of the key in hand. Reads see the writes before them.
type List[T any] struct {
	session  *session.Session
	variable contract.Variable
	plan     *row.Plan
	pending  session.Pending
	current  T
}

// Get is all elements; nil if there are none.
func (l *List[T]) Get() ([]T, error) {
	pages, fault := l.read()
	if fault != nil {
		return nil, errorOf(fault)
	}
	var elements []T
	for {
		packed, more, fault := pages.next()
		if fault == nil && more {
			fault = l.plan.Decode(packed, unsafe.Pointer(&l.current), false)
		}
		if fault != nil || !more {
			return elements, errorOf(fault)
		}
		elements = append(elements, l.current)
	}
}

// All walks the elements as they are now; what is written meanwhile does not show. It reads page by page, so a list may
// be larger than memory. An element that cannot be read ends the handler with its error.
func (l *List[T]) All() (iter.Seq[T], error) {
	pages, fault := l.read()
	return walk[T](pages, l.plan), errorOf(fault)
}

// Exists is whether there is an element.
func (l *List[T]) Exists() (bool, error) {
	if _, fault := l.session.Ready("listState.exists", &l.pending); fault != nil {
		return false, errorOf(fault)
	}
	ok, fault := l.session.Exists(l.variable)
	return ok, errorOf(fault)
}

// Put replaces the list. An empty one is refused: that is Clear.
func (l *List[T]) Put(elements []T) error {
	return errorOf(l.write("listState.put", contract.OpListPut, elements))
}

// Append adds elements at the end. None at all are refused.
func (l *List[T]) Append(elements ...T) error {
	return errorOf(l.write("listState.appendList", contract.OpListAppend, elements))
}

// Clear removes all elements.
func (l *List[T]) Clear() error {
	fault := l.session.Clear("listState.clear", l.variable)
	if fault == nil {
		l.pending.Note(l.session)
	}
	return errorOf(fault)
}

func (l *List[T]) read() (*pages, *contract.Fault) {
	group, fault := l.session.Ready("listState.get", &l.pending)
	if fault != nil {
		return nil, fault
	}
	first, fault := l.session.Host.GetList(l.variable, group)
	return &pages{session: l.session, page: first}, fault
}

// write writes elements, as many ops as they need: what does not fit one is appended by the next.
func (l *List[T]) write(operation string, op uint32, elements []T) *contract.Fault {
	s := l.session
	if fault := s.Group(operation); fault != nil {
		return fault
	}
	if len(elements) == 0 {
		return &contract.Fault{Code: contract.EmptyListValue, Message: "`" + operation + "` with no elements; `Clear` removes a list"}
	}
	for len(elements) > 0 {
		head, fault := s.Open(operation, op, l.variable)
		if fault != nil {
			return fault
		}
		for start := len(s.Ops); len(elements) > 0 && len(s.Ops)-start < session.ApplyAtBytes; elements = elements[1:] {
			l.current = elements[0]
			length := len(s.Ops)
			s.Ops = append(s.Ops, 0, 0, 0, 0, 0, 0, 0, 0)
			if s.Ops, fault = l.plan.Encode(s.Ops, unsafe.Pointer(&l.current), row.Signed); fault != nil {
				s.Abandon(head)
				return fault
			}
			putLength(s.Ops, length)
		}
		s.Close(head)
		l.pending.Note(s)
		op = contract.OpListAppend
	}
	return nil
}

func (l *List[T]) declare(s *session.Session, name string, settings stateSettings) (fault *contract.Fault) {
	if l.plan, fault = planOf[T](); fault != nil {
		return fault
	}
	if l.variable, fault = s.Host.ListState(name, l.plan.StoredSchema(), settings.ttlMs); fault == nil {
		l.session = s
	}
	return fault
}

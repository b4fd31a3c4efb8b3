package session

import (
	"github.com/tidemill/tidemill/guest-sdk/go/internal/contract"
	"github.com/tidemill/tidemill/guest-sdk/go/internal/word"
)

const (
	// ApplyAtBytes is where pending ops are applied. More buys no speed, and the host holds a copy.
	ApplyAtBytes = 64 << 10
	opHeadBytes  = 16
)

// Place is where the payload of an op lies, as long as it is pending.
type Place struct {
	generation uint32
	start, end uint32
}

// Open begins an op for the group in hand. What is appended to s.Ops until [Session.Close] is its payload.
func (s *Session) Open(operation string, op uint32, v contract.Variable) (head int, fault *contract.Fault) {
	if fault := s.Group(operation); fault != nil {
		return 0, fault
	}
	if len(s.Ops) >= ApplyAtBytes {
		if fault := s.Apply(); fault != nil {
			return 0, fault
		}
	}
	head = len(s.Ops)
	s.Ops = word.Append64(s.Ops, uint64(op)|uint64(v)<<32)
	s.Ops = word.Append64(s.Ops, uint64(s.group))
	return head, nil
}

// Close ends the op that was opened.
func (s *Session) Close(head int) Place {
	start := head + opHeadBytes
	word.Store32(s.Ops, head+12, uint32(len(s.Ops)-start))
	return Place{generation: s.generation, start: uint32(start), end: uint32(len(s.Ops))}
}

// Clear adds the op that removes all that the group has in a variable.
func (s *Session) Clear(operation string, v contract.Variable) *contract.Fault {
	head, fault := s.Open(operation, contract.OpClear, v)
	if fault == nil {
		s.Close(head)
	}
	return fault
}

// Abandon takes back the op that was opened.
func (s *Session) Abandon(head int) { s.Ops = s.Ops[:head] }

// Payload is the payload of an op, if it is still pending.
func (s *Session) Payload(p Place) ([]byte, bool) {
	if p.generation != s.generation {
		return nil, false
	}
	return s.Ops[p.start:p.end], true
}

// Apply applies what is pending. A fault is answered again by every call after it, since the ops after it are gone.
func (s *Session) Apply() *contract.Fault {
	if s.fault != nil {
		return s.fault
	}
	if len(s.Ops) == 0 {
		return nil
	}
	if fault := s.guard(); fault != nil {
		return fault
	}
	op, fault := s.Host.Apply(s.Ops)
	if fault != nil {
		fault.Of = s.groupOf(op)
		s.fault = fault
	}
	s.Ops = s.Ops[:0]
	s.generation++
	return fault
}

// groupOf is the group that op number op belongs to.
func (s *Session) groupOf(op uint32) *contract.Group {
	head := 0
	for range op {
		head += opHeadBytes + int(word.Load32(s.Ops, head+12))
	}
	group := word.Load32(s.Ops, head+8)
	return &group
}

// Pending is whether a variable, or the timers, have writes of the group in hand that were not applied.
type Pending struct {
	generation uint32
	group      contract.Group
	some       bool
}

// Note notes a write.
func (p *Pending) Note(s *Session) {
	*p = Pending{generation: s.generation, group: s.group, some: true}
}

// Of is whether there are any of the group in hand.
func (p *Pending) Of(s *Session) bool {
	return p.some && p.generation == s.generation && p.group == s.group
}

// Apply applies them, so that a read sees them.
func (p *Pending) Apply(s *Session) *contract.Fault {
	if p.Of(s) {
		return s.Apply()
	}
	return nil
}

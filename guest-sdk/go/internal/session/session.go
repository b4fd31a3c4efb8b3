// Package session is the heart of the SDK: the chunk in hand, the ops that wait for the host, and what is known of the
// group's values.
//
// Invariants: ops are applied before the next chunk is pulled; a read that may miss a pending write applies it first;
// what is known of a group's values is forgotten when the group or the chunk changes. A fault of Apply fails the call
// even if the author drops the error.
package session

import (
	"runtime"
	"strings"

	"github.com/tidemill/tidemill/guest-sdk/go/internal/contract"
	"github.com/tidemill/tidemill/guest-sdk/go/internal/word"
)

// Session is shared by all that a processor holds.
type Session struct {
	Host     contract.Host
	TimeMode uint8
	// Ops that have not been applied.
	Ops []byte

	feed
	// Grows when ops are applied; tells whether a [Place] still holds.
	generation uint32
	// By variable; those that are no value states stay unknown.
	known []known
	// Grows with every group and chunk; tells whether a known value still holds.
	serial uint64
	// Where the host wants the group in hand noted.
	handled *contract.Group
	// The first fault of Apply in this call.
	fault *contract.Fault

	// How many goroutines there were when the batch began, before Init, and which one the call runs in.
	goroutines int
	owner      string
}

// known is what is known of a value state of the group in hand without asking.
type known struct {
	serial uint64
	how    how
	// In the chunk, or of what was written.
	place Place
	// What the host answered.
	fetched []byte
}

type how uint8

const (
	unknown how = iota
	absent
	prefetched
	written // if it was applied since, the host knows it
	fetched
)

// New begins a session over a host.
func New(host contract.Host, timeMode uint8) *Session {
	return &Session{
		Host:       host,
		TimeMode:   timeMode,
		Ops:        make([]byte, 0, ApplyAtBytes+ApplyAtBytes/8),
		generation: 1,
		handled:    host.InHand(),
		goroutines: runtime.NumGoroutine(),
	}
}

// Begin begins a call of a phase.
func (s *Session) Begin() {
	s.feed = feed{}
	s.serial++
	s.Ops, s.fault = s.Ops[:0], nil
	s.generation++
	s.owner = goroutine()
}

// Group is a fault where there is no group in hand.
func (s *Session) Group(operation string) *contract.Fault {
	if s == nil {
		return &contract.Fault{Code: contract.HandleNotInitialized,
			Message: "`" + operation + "` of a state variable that Init has not made: h.State(\"name\", &p.field)"}
	}
	if !s.inGroup {
		return &contract.Fault{Code: contract.InvalidHandleState,
			Message: "`" + operation + "` needs a grouping key: it works in HandleInputRows, HandleExpiredTimer and HandleInitialState, not in Init or Close"}
	}
	return nil
}

// InHand is the group in hand, if there is one.
func (s *Session) InHand() *contract.Group {
	if !s.inGroup {
		return nil
	}
	group := s.group
	return &group
}

// --- walking the input of a call

// NextGroup goes to the next group of the call, past the rows of the one in hand that nobody read. False at the end.
func (s *Session) NextGroup() (bool, *contract.Fault) {
	for {
		for s.groupsLeft > 0 {
			s.enterGroup()
			if !s.continued { // else the rest of a group whose handler stopped reading
				return true, nil
			}
		}
		continues := s.continues
		more, fault := s.pull()
		if fault == nil && !more && continues {
			fault = cutShort()
		}
		if fault != nil || !more {
			s.leaveGroup()
			return false, fault
		}
	}
}

// Key is the packed key of the group in hand.
func (s *Session) Key() []byte { return s.key }

// NextRow is the next row of the group in hand, from further chunks as needed.
func (s *Session) NextRow() ([]byte, bool, *contract.Fault) {
	for {
		if row, ok := s.row(); ok {
			return row, true, nil
		}
		if !s.continues {
			return nil, false, nil
		}
		if more, fault := s.pull(); fault != nil {
			return nil, false, fault
		} else if !more {
			return nil, false, cutShort()
		}
		s.enterGroup()
		if !s.continued {
			return nil, false, cutShort()
		}
	}
}

func (s *Session) enterGroup() {
	s.enter()
	s.serial++
	for n := range s.values {
		length, present := int(word.Load32(s.chunk, s.at)), word.Load32(s.chunk, s.at+4)
		start := s.at + lengthBytes
		s.at = start + length
		v := s.prefetched[n]
		switch present {
		case 0:
			s.learn(v, absent)
		case 1:
			s.learn(v, prefetched).place = Place{start: uint32(start), end: uint32(s.at)}
		}
	}
	*s.handled = s.group
}

func (s *Session) leaveGroup() {
	s.inGroup = false
	s.serial++
	*s.handled = contract.NoGroup
}

// pull takes the next chunk. What is pending is applied first, since the groups of the chunk in hand end here.
func (s *Session) pull() (bool, *contract.Fault) {
	if fault := s.Apply(); fault != nil {
		return false, fault
	}
	if fault := s.guard(); fault != nil {
		return false, fault
	}
	chunk, more := s.Host.NextChunk()
	if !more {
		return false, nil
	}
	s.serial++
	s.load(chunk)
	return true, nil
}

// --- value states

// Value is the row of a value state, from what is known or from the host. It is valid until the next call of the session.
func (s *Session) Value(v contract.Variable) (row []byte, ok bool, fault *contract.Fault) {
	if fault := s.Group("valueState.get"); fault != nil {
		return nil, false, fault
	}
	if k := s.knownOf(v); k != nil {
		switch k.how {
		case absent:
			return nil, false, nil
		case prefetched:
			return s.chunk[k.place.start:k.place.end], true, nil
		case fetched:
			return k.fetched, true, nil
		case written:
			if row, pending := s.Payload(k.place); pending {
				return row, true, nil
			}
		}
	}
	if fault := s.guard(); fault != nil {
		return nil, false, fault
	}
	row, ok, fault = s.Host.GetValue(v, s.group)
	switch {
	case fault != nil:
		return nil, false, fault
	case !ok:
		s.learn(v, absent)
		return nil, false, nil
	}
	s.learn(v, fetched).fetched = row
	return row, true, nil
}

// ValueExists is whether there is a value.
func (s *Session) ValueExists(v contract.Variable) (bool, *contract.Fault) {
	if fault := s.Group("valueState.exists"); fault != nil {
		return false, fault
	}
	if k := s.knownOf(v); k != nil && k.how != unknown {
		return k.how != absent, nil
	}
	return s.Exists(v)
}

// Exists asks the host whether there is a value, an element or an entry.
func (s *Session) Exists(v contract.Variable) (bool, *contract.Fault) {
	if fault := s.guard(); fault != nil {
		return false, fault
	}
	return s.Host.Exists(v, s.group)
}

// Wrote notes that a value was put.
func (s *Session) Wrote(v contract.Variable, place Place) { s.learn(v, written).place = place }

// Cleared notes that a value was removed.
func (s *Session) Cleared(v contract.Variable) { s.learn(v, absent) }

func (s *Session) knownOf(v contract.Variable) *known {
	if int(v) < len(s.known) && s.known[v].serial == s.serial {
		return &s.known[v]
	}
	return nil
}

func (s *Session) learn(v contract.Variable, what how) *known {
	for int(v) >= len(s.known) {
		s.known = append(s.known, known{})
	}
	k := &s.known[v]
	k.serial, k.how = s.serial, what
	return k
}

// Check is the fault of Apply in this call, if there was one: raised again for an author who dropped the error.
func (s *Session) Check() *contract.Fault { return s.fault }

// --- reads that go to the host

// Ready prepares a read of lists, maps or timers from the host: there must be a group, and pending writes must be
// applied.
func (s *Session) Ready(operation string, pending *Pending) (contract.Group, *contract.Fault) {
	if fault := s.Group(operation); fault != nil {
		return 0, fault
	}
	if fault := s.guard(); fault != nil {
		return 0, fault
	}
	return s.group, pending.Apply(s)
}

// NextPage goes on with a read.
func (s *Session) NextPage(rest contract.Cursor) (contract.Page, *contract.Fault) {
	if fault := s.guard(); fault != nil {
		return contract.Page{}, fault
	}
	return s.Host.NextPage(rest)
}

// guard refuses calls from goroutines that the author began. They run when a handler waits, and could run while the
// host is handing over bytes, when a call of the host is a trap. Only a handler that began some pays for the look.
func (s *Session) guard() *contract.Fault {
	if runtime.NumGoroutine() <= s.goroutines || s.owner == "" || goroutine() == s.owner {
		return nil
	}
	return &contract.Fault{Code: contract.OtherGoroutine,
		Message: "state, timers, rows and output belong to the goroutine that the handler runs in: hand it the results through a channel"}
}

// goroutine is the name of the one that runs, `goroutine 7`.
func goroutine() string {
	var stack [64]byte
	name, _, _ := strings.Cut(string(stack[:runtime.Stack(stack[:], false)]), " [")
	return name
}

func cutShort() *contract.Fault {
	return &contract.Fault{Code: contract.ContractBroken, Message: "the host announced more rows of a group than it sent"}
}

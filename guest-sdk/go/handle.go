package tidemill

import (
	"fmt"
	"time"

	"github.com/tidemill/tidemill/guest-sdk/go/internal/contract"
	"github.com/tidemill/tidemill/guest-sdk/go/internal/session"
)

// TimeMode says when timers and TTL move.
type TimeMode uint8

const (
	// TimeModeNone: no timers, no TTL.
	TimeModeNone TimeMode = contract.TimeModeNone
	// TimeModeProcessingTime: both follow the processing time of the batch.
	TimeModeProcessingTime TimeMode = contract.TimeModeProcessingTime
	// TimeModeEventTime: timers follow the watermark; no TTL.
	TimeModeEventTime TimeMode = contract.TimeModeEventTime
)

func (m TimeMode) String() string { return [...]string{"none", "processing-time", "event-time"}[m] }

// OutputMode says what emitted rows mean to a sink with keys.
type OutputMode uint8

const (
	// OutputModeAppend: emitted rows are final.
	OutputModeAppend OutputMode = iota
	// OutputModeUpdate: an emitted row replaces the one before of its key.
	OutputModeUpdate
)

func (m OutputMode) String() string { return [...]string{"append", "update"}[m] }

// Query is what a processor is told about its query.
type Query struct {
	// QueryID is the same over restarts, RunID that of this start of the query.
	QueryID, RunID string
	BatchID        uint64
	TimeMode       TimeMode
	OutputMode     OutputMode
	// Key, Input and InitialState are columns, in DDL; the last is empty where the query has no initial state.
	Key, Input, InitialState string
	// Parameters are the settings of the query, and the host's own, which begin with `tidemill.`.
	Parameters map[string]string
}

// Handle is what Init works with: the query that a processor runs in, and the making of state variables.
type Handle struct {
	session *session.Session
	query   Query
}

// Query is all that is known of the query.
func (h *Handle) Query() Query { return h.query }

// Parameter is a setting of the query; false if it has none of this name.
func (h *Handle) Parameter(name string) (string, bool) {
	value, ok := h.query.Parameters[name]
	return value, ok
}

// State makes a state variable: v is a [Value], [List] or [Map] of the processor. One that has the name and kind of an
// earlier one finds its state. Its row type may gain fields (pointers), lose some, reorder them, and widen numbers.
// The name has up to 300 characters.
func (h *Handle) State(name string, v StateVariable, options ...StateOption) error {
	var settings stateSettings
	for _, option := range options {
		if err := option(&settings); err != nil {
			return err
		}
	}
	if fault := v.declare(h.session, name, settings); fault != nil {
		return errorOf(fault)
	}
	return nil
}

// DeleteIfExists drops a variable that an earlier version of the processor made, for all grouping keys. No effect if
// there is none.
func (h *Handle) DeleteIfExists(name string) error {
	return errorOf(h.session.Host.DeleteIfExists(name))
}

// StateVariable is what [Handle.State] makes.
type StateVariable interface {
	declare(s *session.Session, name string, settings stateSettings) *contract.Fault
}

// StateOption is a setting of a state variable.
type StateOption func(*stateSettings) error

type stateSettings struct{ ttlMs uint64 }

// TTL lets a value, an element of a list or an entry of a map expire so long after it was written, each on its own, in
// processing time. It counts milliseconds; zero is never.
func TTL(ttl time.Duration) StateOption {
	return func(settings *stateSettings) error {
		if ttl != 0 && ttl < time.Millisecond {
			return &Error{Code: contract.TTLNotPositive, Message: fmt.Sprintf("a TTL of %v: it is at least a millisecond", ttl)}
		}
		settings.ttlMs = uint64(ttl.Milliseconds())
		return nil
	}
}

package tidemill

import (
	"slices"

	"github.com/tidemill/tidemill/guest-sdk/go/internal/contract"
	"github.com/tidemill/tidemill/guest-sdk/go/internal/session"
	"github.com/tidemill/tidemill/guest-sdk/go/internal/word"
)

// Timers are the timers of the grouping key whose handler runs, and the only clock there is. All times are milliseconds
// since the epoch, UTC: time.Time has UnixMilli for them.
//
// A timer is identified by its expiry. It fires once, in the first batch whose time (processing time or watermark, by
// the query's time mode) is not before its expiry. One registered in the past fires in this batch, or in the next if it
// was registered by a timer's handler.
type Timers struct {
	session *session.Session
	time    contract.Time
	pending session.Pending
	// Whether a timer fires, which, and those that handlers of its group deleted in this phase.
	fires   bool
	firing  int64
	deleted []int64
}

// ProcessingTimeMs is the time of the batch.
func (t *Timers) ProcessingTimeMs() int64 { return t.time.ProcessingTimeMs }

// WatermarkMs is the watermark; 0 until there is one.
func (t *Timers) WatermarkMs() int64 { return t.time.WatermarkMs }

// Register registers a timer; no effect if there is one at expiryMs.
func (t *Timers) Register(expiryMs int64) error {
	return errorOf(t.write("registerTimer", contract.OpTimerRegister, expiryMs))
}

// Delete deletes a timer; no effect if there is none at expiryMs. If it is due in this batch, it does not fire.
func (t *Timers) Delete(expiryMs int64) error {
	fault := t.write("deleteTimer", contract.OpTimerDelete, expiryMs)
	// Outside of the timer phase none was handed out, so the host looks at its own list.
	if fault == nil && t.fires {
		t.deleted = append(t.deleted, expiryMs)
	}
	return errorOf(fault)
}

// List is the timers as they are now, earliest first; the one that fires is among them.
func (t *Timers) List() ([]int64, error) {
	if fault := t.check("listTimers"); fault != nil {
		return nil, errorOf(fault)
	}
	group, fault := t.session.Ready("listTimers", &t.pending)
	if fault != nil {
		return nil, errorOf(fault)
	}
	page, fault := t.session.Host.ListTimers(group)
	expiries := slices.Clone(page.ExpiriesMs)
	for fault == nil && page.More {
		page, fault = t.session.Host.NextTimers(page.Rest)
		expiries = append(expiries, page.ExpiriesMs...)
	}
	if fault != nil {
		return nil, errorOf(fault)
	}
	if t.fires && !slices.Contains(t.deleted, t.firing) {
		// Its deletion is applied already, so the host does not list it unless it was registered anew.
		if at, listed := slices.BinarySearch(expiries, t.firing); !listed {
			expiries = slices.Insert(expiries, at, t.firing)
		}
	}
	return expiries, nil
}

func (t *Timers) check(operation string) *contract.Fault {
	if t.session.TimeMode == contract.TimeModeNone {
		return &contract.Fault{Code: contract.InvalidTimeMode,
			Message: "`" + operation + "` needs a query with time mode processing-time or event-time; this one has none"}
	}
	return nil
}

func (t *Timers) write(operation string, op uint32, expiryMs int64) *contract.Fault {
	if fault := t.check(operation); fault != nil {
		return fault
	}
	s := t.session
	head, fault := s.Open(operation, op, 0)
	if fault != nil {
		return fault
	}
	s.Ops = word.Append64(s.Ops, uint64(expiryMs))
	s.Close(head)
	t.pending.Note(s)
	return nil
}

// beginGroup: nothing of a new group was deleted yet.
func (t *Timers) beginGroup() { t.deleted = t.deleted[:0] }

// beginFiring prepares the firing of a timer; false if a handler of its group deleted it in this phase. Its deletion is
// queued before the handler runs, so that a handler that registers the same time again keeps it.
func (t *Timers) beginFiring(expiryMs int64) (bool, *contract.Fault) {
	if slices.Contains(t.deleted, expiryMs) {
		return false, nil
	}
	fault := t.write("deleteTimer", contract.OpTimerDelete, expiryMs)
	t.fires, t.firing = true, expiryMs
	return true, fault
}

func (t *Timers) endFiring() { t.fires = false }

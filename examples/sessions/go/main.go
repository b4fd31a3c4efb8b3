// Cuts each user's events into sessions: one ends when 30 minutes have passed without an event, by the time of the
// events.
package main

import (
	"slices"
	"time"

	"github.com/tidemill/tidemill/guest-sdk/go"
)

const gap = 30 * time.Minute

// Event is a row of the source; its key column is the query's.
type Event struct {
	At time.Time
}

// Open is a session that may still grow. Its timer is at its end.
type Open struct {
	First, Last time.Time
	Events      int64
}

func (o Open) end() time.Time { return o.Last.Add(gap) }

// Session is a session that has ended.
type Session struct {
	User        string
	First, Last time.Time
	// Last + 30 minutes: when it was known that no more comes.
	Ended  time.Time
	Events int64
}

// Sessions is the processor.
type Sessions struct {
	// Ordered by time. There is more than one when events are further apart than the gap, and the watermark is behind
	// them.
	open tidemill.List[Open]
}

// Init makes the state variable.
func (p *Sessions) Init(h *tidemill.Handle) error {
	return h.State("open", &p.open)
}

// HandleInputRows adds events to the user's sessions.
func (p *Sessions) HandleInputRows(_ string, rows *tidemill.Rows[Event], timers *tidemill.Timers, _ *tidemill.Out[Session]) error {
	sessions, err := p.open.Get()
	if err != nil {
		return err
	}
	for _, session := range sessions {
		if err := timers.Delete(session.end().UnixMilli()); err != nil {
			return err
		}
	}
	for event := range rows.All() {
		sessions = append(sessions, Open{First: event.At, Last: event.At, Events: 1})
	}
	sessions = merge(sessions)
	for _, session := range sessions {
		if err := timers.Register(session.end().UnixMilli()); err != nil {
			return err
		}
	}
	return p.open.Put(sessions)
}

// HandleExpiredTimer emits the sessions that have ended.
func (p *Sessions) HandleExpiredTimer(user string, expiryMs int64, _ *tidemill.Timers, out *tidemill.Out[Session]) error {
	sessions, err := p.open.Get()
	if err != nil {
		return err
	}
	var open []Open
	for _, session := range sessions {
		if session.end().UnixMilli() > expiryMs {
			open = append(open, session)
			continue
		}
		ended := Session{User: user, First: session.First, Last: session.Last, Ended: session.end(), Events: session.Events}
		if err := out.Emit(ended); err != nil {
			return err
		}
	}
	if len(open) == 0 {
		return p.open.Clear()
	}
	return p.open.Put(open)
}

// merge joins what is less than the gap apart. Events may come in any order, so one can join two sessions.
func merge(sessions []Open) (merged []Open) {
	slices.SortStableFunc(sessions, func(a, b Open) int { return a.First.Compare(b.First) })
	for _, session := range sessions {
		if len(merged) > 0 {
			before := &merged[len(merged)-1]
			if session.First.Before(before.end()) {
				if session.Last.After(before.Last) {
					before.Last = session.Last
				}
				before.Events += session.Events
				continue
			}
		}
		merged = append(merged, session)
	}
	return merged
}

func init() { tidemill.Register(&Sessions{}) }

func main() {}

// Lets each event through once, and forgets it after an hour.
package main

import (
	"time"

	"github.com/tidemill/tidemill/guest-sdk/go"
)

const remembered = time.Hour

// Event is a row of the source, and of the output.
type Event struct {
	ID   string
	Body *string
}

// Dedup is the processor.
type Dedup struct {
	seen tidemill.Value[bool]
}

// Init makes the state variable.
func (p *Dedup) Init(h *tidemill.Handle) error {
	return h.State("seen", &p.seen, tidemill.TTL(remembered))
}

// HandleInputRows lets the first event of an id through.
func (p *Dedup) HandleInputRows(_ string, rows *tidemill.Rows[Event], _ *tidemill.Timers, out *tidemill.Out[Event]) error {
	// Repeats are not even read, and do not prolong the hour.
	seen, err := p.seen.Exists()
	if err != nil || seen {
		return err
	}
	first, ok := rows.Next()
	if !ok {
		return nil
	}
	if err := p.seen.Update(true); err != nil {
		return err
	}
	return out.Emit(first)
}

func init() { tidemill.Register(&Dedup{}) }

func main() {}

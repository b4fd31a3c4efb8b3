// Counts the visits of a user, and tells when the user has left: after half an hour without one.
package main

import "github.com/tidemill/tidemill/guest-sdk/go"

// Without a visit for so long, a user has left.
const quietMs = 30 * 60 * 1000

// Visit has the columns that are wanted of the input; others are not even read.
type Visit struct {
	Page string
}

// Visits is what comes out.
type Visits struct {
	User   string
	Visits int64
	Here   bool
}

// Counter is the processor.
type Counter struct {
	visits tidemill.Value[int64]
}

// Init makes the state variables.
func (c *Counter) Init(h *tidemill.Handle) error {
	return h.State("visits", &c.visits)
}

// HandleInputRows counts the visits of a user in this batch.
func (c *Counter) HandleInputRows(user string, rows *tidemill.Rows[Visit], timers *tidemill.Timers, out *tidemill.Out[Visits]) error {
	visits, _, err := c.visits.Get()
	if err != nil {
		return err
	}
	for visit := range rows.All() {
		tidemill.Debugf("%s visits %s", user, visit.Page)
		visits++
	}
	if err := c.visits.Update(visits); err != nil {
		return err
	}

	expiries, err := timers.List()
	if err != nil {
		return err
	}
	for _, expiryMs := range expiries {
		if err := timers.Delete(expiryMs); err != nil {
			return err
		}
	}
	if err := timers.Register(timers.ProcessingTimeMs() + quietMs); err != nil {
		return err
	}
	return out.Emit(Visits{User: user, Visits: visits, Here: true})
}

// HandleExpiredTimer tells that a user has left.
func (c *Counter) HandleExpiredTimer(user string, _ int64, _ *tidemill.Timers, out *tidemill.Out[Visits]) error {
	visits, _, err := c.visits.Get()
	if err != nil {
		return err
	}
	if err := c.visits.Clear(); err != nil {
		return err
	}
	return out.Emit(Visits{User: user, Visits: visits, Here: false})
}

func init() { tidemill.Register(&Counter{}) }

func main() {}

// Counts rows per key, and begins where an earlier system stopped.
package main

import "github.com/tidemill/tidemill/guest-sdk/go"

// Input is a row of the source; its key column is the query's.
type Input struct {
	Value string
}

// Start is a row of the initial state; its key column is the query's.
type Start struct {
	Count int64
}

// Count is what is known of an id.
type Count struct {
	ID    string
	Count int64
}

// Counter is the processor.
type Counter struct {
	count tidemill.Value[int64]
}

// Init makes the state variable.
func (c *Counter) Init(h *tidemill.Handle) error {
	return h.State("count", &c.count)
}

// HandleInputRows counts the rows of an id.
func (c *Counter) HandleInputRows(id string, rows *tidemill.Rows[Input], _ *tidemill.Timers, out *tidemill.Out[Count]) error {
	count, _, err := c.count.Get()
	if err != nil {
		return err
	}
	for row := range rows.All() {
		// An empty value is a sign of life, not a count.
		if row.Value != "" {
			count++
		}
	}
	if err := c.count.Update(count); err != nil {
		return err
	}
	return out.Emit(Count{ID: id, Count: count})
}

// HandleInitialState takes over a count.
func (c *Counter) HandleInitialState(_ string, row Start, _ *tidemill.Timers) error {
	return c.count.Update(row.Count)
}

func init() { tidemill.RegisterWithInitialState(&Counter{}) }

func main() {}

// Counts rows per key, and keeps what it saw: a value, a list and a map per grouping key.
package main

import (
	"errors"

	"github.com/tidemill/tidemill/guest-sdk/go"
)

// Input is a row of the source; its key column is the query's.
type Input struct {
	N int64
}

// Count is what is known of a key.
type Count struct {
	Key string
	// Rows so far.
	Count int64
	// Elements of the list, one per row.
	Listed int64
	// Entries of the map, one per value of n.
	Distinct int64
}

// Counter is the processor.
type Counter struct {
	count tidemill.Value[int64]
	seen  tidemill.List[int64]
	times tidemill.Map[int64, int64]
}

// Init makes the state variables.
func (c *Counter) Init(h *tidemill.Handle) error {
	return errors.Join(
		h.State("count", &c.count),
		h.State("seen", &c.seen),
		h.State("times", &c.times),
	)
}

// HandleInputRows counts the rows of a key.
func (c *Counter) HandleInputRows(key string, rows *tidemill.Rows[Input], _ *tidemill.Timers, out *tidemill.Out[Count]) error {
	count, _, err := c.count.Get()
	if err != nil {
		return err
	}
	for row := range rows.All() {
		count++
		if err := c.seen.Append(row.N); err != nil {
			return err
		}
		times, _, err := c.times.Get(row.N)
		if err != nil {
			return err
		}
		if err := c.times.Update(row.N, times+1); err != nil {
			return err
		}
	}
	if err := c.count.Update(count); err != nil {
		return err
	}
	seen, err := c.seen.Get()
	if err != nil {
		return err
	}
	values, err := c.times.Keys()
	if err != nil {
		return err
	}
	distinct := int64(0)
	for range values {
		distinct++
	}
	return out.Emit(Count{Key: key, Count: count, Listed: int64(len(seen)), Distinct: distinct})
}

func init() { tidemill.Register(&Counter{}) }

func main() {}

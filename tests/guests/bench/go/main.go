// Counts per key and nothing else, as the Rust guest beside it does, so that a benchmark measures the way to the
// processor and back.
package main

import "github.com/tidemill/tidemill/guest-sdk/go"

type input struct {
	// N is what the row counts for.
	N int64
}

type count struct {
	Key   string
	Count int64
}

type counter struct {
	count tidemill.Value[int64]
}

func (c *counter) Init(h *tidemill.Handle) error {
	return h.State("count", &c.count)
}

func (c *counter) HandleInputRows(key string, rows *tidemill.Rows[input], _ *tidemill.Timers, out *tidemill.Out[count]) error {
	n, _, err := c.count.Get()
	if err != nil {
		return err
	}
	for row := range rows.All() {
		n += row.N
	}
	if err := c.count.Update(n); err != nil {
		return err
	}
	return out.Emit(count{Key: key, Count: n})
}

func init() { tidemill.Register(&counter{}) }

func main() {}

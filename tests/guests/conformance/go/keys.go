package main

import "github.com/tidemill/tidemill/guest-sdk/go"

// keys counts per key, and tells what the rows of a batch brought.
type keys struct {
	handlers
	n tidemill.Value[int64]
}

func (k *keys) init(h *tidemill.Handle) error { return h.State("n", &k.n) }

func (k *keys) rows(rows *tidemill.Rows[Step], _ *tidemill.Timers, emit emit) error {
	xs := numbers(rows)
	n, _, err := k.n.Get()
	if err != nil {
		return err
	}
	n += int64(len(xs))
	if err := k.n.Update(n); err != nil {
		return err
	}
	return emit("ROWS", repr(tuple{n, xs}))
}

// numbers is what the rows of the key have in b.
func numbers(rows *tidemill.Rows[Step]) []int64 {
	var xs []int64
	for row := range rows.All() {
		xs = append(xs, or(row.B))
	}
	return xs
}

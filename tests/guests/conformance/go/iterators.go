package main

import (
	"errors"
	"iter"
	"strings"

	"github.com/tidemill/tidemill/guest-sdk/go"
)

// padded is a row of more than 100 bytes, so that some thousands are several pages.
type padded struct {
	X   int64
	Pad string
}

func paddedOf(x int64) padded { return padded{x, strings.Repeat("-", 100)} }

// iterators walks more than one page, two walks at a time, and with other calls between the steps of one.
type iterators struct {
	handlers
	v tidemill.Value[int64]
	l tidemill.List[padded]
	m tidemill.Map[int64, padded]
}

func (i *iterators) init(h *tidemill.Handle) error {
	return errors.Join(h.State("v", &i.v), h.State("l", &i.l), h.State("m", &i.m))
}

func (i *iterators) rows(rows *tidemill.Rows[Step], _ *tidemill.Timers, emit emit) error {
	for row := range rows.All() {
		out, err := i.one(or(row.Op), or(row.B))
		if err != nil {
			return err
		}
		if err := emit(or(row.Op), repr(out)); err != nil {
			return err
		}
	}
	return nil
}

func (i *iterators) one(op string, n int64) (any, error) {
	switch op {
	case "l.fill":
		elements := make([]padded, n)
		for x := range elements {
			elements[x] = paddedOf(int64(x))
		}
		return nil, i.l.Put(elements)
	case "m.fill":
		for x := range n {
			if err := i.m.Update(x, paddedOf(x)); err != nil {
				return nil, err
			}
		}
		return nil, nil
	case "l.first":
		elements, err := i.l.All()
		if err != nil {
			return nil, err
		}
		for first := range elements {
			return first.X, nil
		}
		return nil, nil
	case "l.sum":
		return sum(i.l.All())
	case "m.sum":
		return i.sumEntries()
	case "m.sumKeys":
		return sum(keysAsRows(i.m.Keys()))
	case "m.sumValues":
		return sum(i.m.Values())
	case "l.twice":
		return sumPairs(i.l.All, i.l.All)
	case "l.andMap":
		return sumPairs(i.l.All, i.m.Values)
	case "l.busy":
		return i.busyList()
	case "m.busy":
		return i.busyMap()
	default:
		return nil, tidemill.NewError("NO_SUCH_OP", "%s", op)
	}
}

func (i *iterators) sumEntries() (any, error) {
	entries, err := i.m.All()
	if err != nil {
		return nil, err
	}
	var n, sum int64
	for key, value := range entries {
		n++
		sum += key + value.X
	}
	return tuple{n, sum}, nil
}

// busyList writes to all kinds of state, and reads them, while a list is walked.
func (i *iterators) busyList() (any, error) {
	elements, err := i.l.All()
	if err != nil {
		return nil, err
	}
	seen := 0
	for element := range elements {
		seen++
		sum, _, err := i.v.Get()
		if err := errors.Join(
			err,
			i.v.Update(sum+element.X),
			i.m.Update(element.X, element),
			i.l.Append(paddedOf(-element.X)),
		); err != nil {
			return nil, err
		}
	}
	sum, _, err := i.v.Get()
	keys, err2 := i.m.Keys()
	elements, err3 := i.l.All()
	if err := errors.Join(err, err2, err3); err != nil {
		return nil, err
	}
	return tuple{seen, sum, count(keys), count(elements)}, nil
}

// busyMap removes the entries of a map while it is walked.
func (i *iterators) busyMap() (any, error) {
	keys, err := i.m.Keys()
	if err != nil {
		return nil, err
	}
	seen := 0
	for key := range keys {
		if err := i.m.Remove(key); err != nil {
			return nil, err
		}
		there, err := i.m.ContainsKey(key)
		if err != nil {
			return nil, err
		}
		if !there {
			seen++
		}
	}
	exists, err := i.m.Exists()
	return tuple{seen, exists}, err
}

// sum is how many rows there are, and the sum of their numbers.
func sum(rows iter.Seq[padded], err error) (any, error) {
	if err != nil {
		return nil, err
	}
	var n, sum int64
	for row := range rows {
		n++
		sum += row.X
	}
	return tuple{n, sum}, nil
}

// sumPairs is sum over two walks at once, step by step.
func sumPairs(walkOnes, walkOthers func() (iter.Seq[padded], error)) (any, error) {
	ones, err := walkOnes()
	if err != nil {
		return nil, err
	}
	others, err := walkOthers()
	if err != nil {
		return nil, err
	}
	var n, sum int64
	for one := range ones {
		// A second loop goes on where the first stopped. Not iter.Pull: state belongs to the goroutine of the handler.
		for other := range others {
			n++
			sum += one.X + other.X
			break
		}
	}
	return tuple{n, sum}, nil
}

func keysAsRows(keys iter.Seq[int64], err error) (iter.Seq[padded], error) {
	return func(yield func(padded) bool) {
		for key := range keys {
			if !yield(padded{X: key}) {
				return
			}
		}
	}, err
}

func count[T any](items iter.Seq[T]) (n int) {
	for range items {
		n++
	}
	return n
}

package main

import (
	"maps"
	"slices"
	"testing"

	"github.com/tidemill/tidemill/guest-sdk/go/tidemilltest"
)

func input(values ...int64) (rows []Input) {
	for _, n := range values {
		rows = append(rows, Input{N: n})
	}
	return rows
}

func TestCountsGoOnFromBatchToBatch(t *testing.T) {
	q := tidemilltest.New(t, &Counter{})
	q.Input("a", input(1, 2, 1)...).Input("b", input(7, 7)...)
	want := []Count{{Key: "a", Count: 3, Listed: 3, Distinct: 2}, {Key: "b", Count: 2, Listed: 2, Distinct: 1}}
	if got := q.RunBatch(); !slices.Equal(got, want) {
		t.Errorf("emitted %+v, want %+v", got, want)
	}
	q.Input("a", input(9)...)
	want = []Count{{Key: "a", Count: 4, Listed: 4, Distinct: 3}}
	if got := q.RunBatch(); !slices.Equal(got, want) {
		t.Errorf("emitted %+v, want %+v", got, want)
	}
	if got := tidemilltest.List[int64](q, "seen", "a"); !slices.Equal(got, []int64{1, 2, 1, 9}) {
		t.Errorf("the list is %v", got)
	}
	if got := tidemilltest.Map[int64, int64](q, "times", "a"); !maps.Equal(got, map[int64]int64{1: 2, 2: 1, 9: 1}) {
		t.Errorf("the map is %v", got)
	}
}

func TestAKeyWithMoreRowsThanAChunkIsOneSequence(t *testing.T) {
	q := tidemilltest.New(t, &Counter{}).SmallChunks(2, 3)
	q.Input("a", input(slices.Repeat([]int64{1}, 20)...)...).Input("b", input(2, 2)...)
	var counts []int64
	for _, row := range q.RunBatch() {
		counts = append(counts, row.Count)
	}
	if !slices.Equal(counts, []int64{20, 2}) {
		t.Errorf("counted %v, want 20 and 2", counts)
	}
}

package memory

import (
	"fmt"
	"slices"
	"sort"

	"github.com/tidemill/tidemill/guest-sdk/go/internal/contract"
)

// Key is a packed grouping key.
type Key = string

type kind uint8

const (
	valueKind kind = iota
	listKind
	mapKind
)

func (k kind) String() string { return [...]string{"value", "list", "map"}[k] }

// stored is a row with the time from which it is not seen; 0 is never.
type stored struct {
	row      []byte
	expiryMs int64
}

func (s stored) alive(nowMs int64) bool { return s.expiryMs == 0 || nowMs < s.expiryMs }

type place struct {
	variable string
	key      Key
}

// State is what a query keeps from batch to batch.
type State struct {
	kinds  map[string]kind
	values map[place]stored
	lists  map[place][]stored
	maps   map[place]map[string]stored
	timers map[Key][]int64 // in order
}

// NewState is empty.
func NewState() *State {
	return &State{
		kinds:  map[string]kind{},
		values: map[place]stored{},
		lists:  map[place][]stored{},
		maps:   map[place]map[string]stored{},
		timers: map[Key][]int64{},
	}
}

// clone is a copy that knows nothing of the original: the state of a batch that may fail.
func (s *State) clone() *State {
	c := NewState()
	for name, k := range s.kinds {
		c.kinds[name] = k
	}
	for at, value := range s.values {
		c.values[at] = value
	}
	for at, list := range s.lists {
		c.lists[at] = slices.Clone(list)
	}
	for at, entries := range s.maps {
		c.maps[at] = map[string]stored{}
		for key, value := range entries {
			c.maps[at][key] = value
		}
	}
	for key, timers := range s.timers {
		c.timers[key] = slices.Clone(timers)
	}
	return c
}

func (s *State) declare(name string, k kind) *contract.Fault {
	if before, exists := s.kinds[name]; exists && before != k {
		return &contract.Fault{Code: "STATE_STORE_INVALID_VARIABLE_TYPE_CHANGE",
			Message: fmt.Sprintf("`%s` was a %v state and is declared as a %v state", name, before, k)}
	}
	s.kinds[name] = k
	return nil
}

func (s *State) dropVariable(name string) {
	delete(s.kinds, name)
	for at := range s.values {
		if at.variable == name {
			delete(s.values, at)
		}
	}
	for at := range s.lists {
		if at.variable == name {
			delete(s.lists, at)
		}
	}
	for at := range s.maps {
		if at.variable == name {
			delete(s.maps, at)
		}
	}
}

// Value is the row of a value state; false if there is none.
func (s *State) Value(name string, key Key, nowMs int64) ([]byte, bool) {
	value, ok := s.values[place{name, key}]
	return value.row, ok && value.alive(nowMs)
}

// List is the rows of a list state.
func (s *State) List(name string, key Key, nowMs int64) (rows [][]byte) {
	for _, element := range s.lists[place{name, key}] {
		if element.alive(nowMs) {
			rows = append(rows, element.row)
		}
	}
	return rows
}

// Map is the entries of a map state, in the order of their packed keys.
func (s *State) Map(name string, key Key, nowMs int64) (entries [][2][]byte) {
	for entry, value := range s.maps[place{name, key}] {
		if value.alive(nowMs) {
			entries = append(entries, [2][]byte{[]byte(entry), value.row})
		}
	}
	sort.Slice(entries, func(i, j int) bool { return string(entries[i][0]) < string(entries[j][0]) })
	return entries
}

// Timers are the timers of a key, earliest first.
func (s *State) Timers(key Key) []int64 { return slices.Clone(s.timers[key]) }

func (s *State) putEntry(at place, entry string, value stored) {
	if s.maps[at] == nil {
		s.maps[at] = map[string]stored{}
	}
	s.maps[at][entry] = value
}

func (s *State) clear(at place) {
	delete(s.values, at)
	delete(s.lists, at)
	delete(s.maps, at)
}

func (s *State) registerTimer(key Key, expiryMs int64) {
	if at, exists := slices.BinarySearch(s.timers[key], expiryMs); !exists {
		s.timers[key] = slices.Insert(s.timers[key], at, expiryMs)
	}
}

func (s *State) deleteTimer(key Key, expiryMs int64) {
	if at, exists := slices.BinarySearch(s.timers[key], expiryMs); exists {
		s.timers[key] = slices.Delete(s.timers[key], at, at+1)
	}
}

// DueTimers are the timers that are due, by key in the order of their earliest.
func (s *State) DueTimers(thresholdMs int64) (keys []Key, due map[Key][]int64) {
	due = map[Key][]int64{}
	for key, timers := range s.timers {
		end, _ := slices.BinarySearch(timers, thresholdMs+1)
		if end > 0 {
			keys, due[key] = append(keys, key), slices.Clone(timers[:end])
		}
	}
	sort.Slice(keys, func(i, j int) bool {
		if first, second := due[keys[i]][0], due[keys[j]][0]; first != second {
			return first < second
		}
		return keys[i] < keys[j]
	})
	return keys, due
}

// Evict removes what has expired.
func (s *State) Evict(nowMs int64) {
	expired := func(value stored) bool { return !value.alive(nowMs) }
	for at, value := range s.values {
		if expired(value) {
			delete(s.values, at)
		}
	}
	for at, list := range s.lists {
		s.lists[at] = slices.DeleteFunc(list, expired)
	}
	for _, entries := range s.maps {
		for key, value := range entries {
			if expired(value) {
				delete(entries, key)
			}
		}
	}
}

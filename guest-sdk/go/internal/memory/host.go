// Package memory is the host as a native test sees it: the contract of wit/world.wit over maps, byte for byte. Written to
// be compared with, not to be fast. Breaches of the contract that a host answers with a trap are faults here.
package memory

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidemill/tidemill/guest-sdk/go/internal/contract"
)

// A name of a state variable has at most so many characters.
const nameCharactersMax = 300

// Phase is which export is being called.
type Phase uint8

// The phases of a batch.
const (
	Init Phase = iota
	InitialState
	Input
	Timer
	Close
)

func (p Phase) String() string {
	return [...]string{"init", "handle-initial-state", "handle-input-rows", "handle-expired-timer", "close"}[p]
}

// Host is the host of one batch.
type Host struct {
	State *State
	// Packed rows in the order in which they were emitted.
	Output [][]byte

	phase     Phase
	timeMode  uint8
	time      contract.Time
	limits    Limits
	variables []variable
	dropped   []string
	feed      feed
	cursors   map[contract.Cursor]any // []item or []int64: what an open read has left
	opened    contract.Cursor
	inHand    contract.Group
}

type variable struct {
	name  string
	kind  kind
	ttlMs uint64
}

// item is a row, or an entry of two: what a page never cuts.
type item [][]byte

// New begins a batch over a copy of state.
func New(state *State, timeMode uint8, time contract.Time, limits Limits) *Host {
	return &Host{State: state.clone(), timeMode: timeMode, time: time, limits: limits, cursors: map[contract.Cursor]any{}}
}

// Open opens a phase with what it feeds to the processor.
func (h *Host) Open(phase Phase, groups []Waiting) {
	h.phase, h.feed = phase, feed{left: groups}
	clear(h.cursors)
}

// InHand is where the group in hand is noted.
func (h *Host) InHand() *contract.Group { return &h.inHand }

// NextChunk is input.next.
func (h *Host) NextChunk() ([]byte, bool) {
	var values []contract.Variable
	for v := range h.variables {
		if h.variables[v].kind == valueKind {
			values = append(values, contract.Variable(v))
		}
	}
	return h.feed.next(h.limits, values, func(key Key, v contract.Variable) ([]byte, bool) {
		return h.State.Value(h.variables[v].name, key, h.time.ProcessingTimeMs)
	})
}

// ValueState is state.get-value-state.
func (h *Host) ValueState(name, _ string, ttlMs uint64) (contract.Variable, *contract.Fault) {
	return h.declare(name, valueKind, ttlMs)
}

// ListState is state.get-list-state.
func (h *Host) ListState(name, _ string, ttlMs uint64) (contract.Variable, *contract.Fault) {
	return h.declare(name, listKind, ttlMs)
}

// MapState is state.get-map-state.
func (h *Host) MapState(name, _, _ string, ttlMs uint64) (contract.Variable, *contract.Fault) {
	return h.declare(name, mapKind, ttlMs)
}

// DeleteIfExists is state.delete-if-exists.
func (h *Host) DeleteIfExists(name string) *contract.Fault {
	if fault := h.onlyInInit("deleteIfExists"); fault != nil {
		return fault
	}
	if h.isDeclared(name) {
		return duplicate(name)
	}
	h.dropped = append(h.dropped, name)
	h.State.dropVariable(name)
	return nil
}

func (h *Host) declare(name string, k kind, ttlMs uint64) (contract.Variable, *contract.Fault) {
	if fault := h.onlyInInit("getState"); fault != nil {
		return 0, fault
	}
	if fault := checkName(name); fault != nil {
		return 0, fault
	}
	if h.isDeclared(name) || slices.Contains(h.dropped, name) {
		return 0, duplicate(name)
	}
	if ttlMs != 0 && h.timeMode != contract.TimeModeProcessingTime {
		return 0, &contract.Fault{Code: "STATEFUL_PROCESSOR_INCORRECT_TIME_MODE_TO_ASSIGN_TTL",
			Message: fmt.Sprintf("`%s` has a TTL, which needs time mode processing-time", name)}
	}
	if fault := h.State.declare(name, k); fault != nil {
		return 0, fault
	}
	h.variables = append(h.variables, variable{name, k, ttlMs})
	return contract.Variable(len(h.variables) - 1), nil
}

func (h *Host) isDeclared(name string) bool {
	return slices.ContainsFunc(h.variables, func(v variable) bool { return v.name == name })
}

// Exists is state.exists.
func (h *Host) Exists(v contract.Variable, of contract.Group) (bool, *contract.Fault) {
	name, key, fault := h.resolve(v, of)
	if fault != nil {
		return false, fault
	}
	switch h.variables[v].kind {
	case valueKind:
		_, ok := h.State.Value(name, key, h.time.ProcessingTimeMs)
		return ok, nil
	case listKind:
		return len(h.State.List(name, key, h.time.ProcessingTimeMs)) > 0, nil
	default:
		return len(h.State.Map(name, key, h.time.ProcessingTimeMs)) > 0, nil
	}
}

// GetValue is state.get-value.
func (h *Host) GetValue(v contract.Variable, of contract.Group) ([]byte, bool, *contract.Fault) {
	name, key, fault := h.resolve(v, of)
	if fault != nil {
		return nil, false, fault
	}
	row, ok := h.State.Value(name, key, h.time.ProcessingTimeMs)
	return row, ok, nil
}

// GetList is state.get-list.
func (h *Host) GetList(v contract.Variable, of contract.Group) (contract.Page, *contract.Fault) {
	name, key, fault := h.resolve(v, of)
	if fault != nil {
		return contract.Page{}, fault
	}
	var items []item
	for _, row := range h.State.List(name, key, h.time.ProcessingTimeMs) {
		items = append(items, item{row})
	}
	return h.page(items), nil
}

// GetMapValue is state.get-map-value.
func (h *Host) GetMapValue(v contract.Variable, of contract.Group, mapKey []byte) ([]byte, bool, *contract.Fault) {
	name, key, fault := h.resolve(v, of)
	if fault != nil {
		return nil, false, fault
	}
	for _, entry := range h.State.Map(name, key, h.time.ProcessingTimeMs) {
		if string(entry[0]) == string(mapKey) {
			return entry[1], true, nil
		}
	}
	return nil, false, nil
}

// ContainsKey is state.contains-key.
func (h *Host) ContainsKey(v contract.Variable, of contract.Group, mapKey []byte) (bool, *contract.Fault) {
	_, ok, fault := h.GetMapValue(v, of, mapKey)
	return ok, fault
}

// GetMap is state.get-map.
func (h *Host) GetMap(v contract.Variable, of contract.Group, part contract.Part) (contract.Page, *contract.Fault) {
	name, key, fault := h.resolve(v, of)
	if fault != nil {
		return contract.Page{}, fault
	}
	var items []item
	for _, entry := range h.State.Map(name, key, h.time.ProcessingTimeMs) {
		switch part {
		case contract.Keys:
			items = append(items, item{entry[0]})
		case contract.Values:
			items = append(items, item{entry[1]})
		default:
			items = append(items, item{entry[0], entry[1]})
		}
	}
	return h.page(items), nil
}

// NextPage is state.next-page.
func (h *Host) NextPage(of contract.Cursor) (contract.Page, *contract.Fault) {
	items, open := h.cursors[of].([]item)
	if !open {
		return contract.Page{}, broken("a cursor that is not open")
	}
	delete(h.cursors, of)
	return h.page(items), nil
}

// ListTimers is timers.list-timers.
func (h *Host) ListTimers(of contract.Group) (contract.TimerPage, *contract.Fault) {
	key, inChunk := h.feed.inChunk[of]
	if !inChunk {
		return contract.TimerPage{}, broken("a group that is not in the chunk")
	}
	return h.timerPage(h.State.Timers(key)), nil
}

// NextTimers is timers.next-timers.
func (h *Host) NextTimers(of contract.Cursor) (contract.TimerPage, *contract.Fault) {
	expiries, open := h.cursors[of].([]int64)
	if !open {
		return contract.TimerPage{}, broken("a cursor that is not open")
	}
	delete(h.cursors, of)
	return h.timerPage(expiries), nil
}

// page is the first items of a read; the rest stays open.
func (h *Host) page(items []item) (page contract.Page) {
	first := items[:min(len(items), h.limits.RowsPerPage)]
	for _, item := range first {
		for _, row := range item {
			page.Rows = appendRow(page.Rows, row, 0)
		}
	}
	if rest := items[len(first):]; len(rest) > 0 {
		page.More, page.Rest = true, h.openCursor(rest)
	}
	return page
}

func (h *Host) timerPage(expiries []int64) (page contract.TimerPage) {
	page.ExpiriesMs = expiries[:min(len(expiries), h.limits.RowsPerPage)]
	if rest := expiries[len(page.ExpiriesMs):]; len(rest) > 0 {
		page.More, page.Rest = true, h.openCursor(rest)
	}
	return page
}

func (h *Host) openCursor(left any) contract.Cursor {
	h.opened++
	h.cursors[h.opened] = left
	return h.opened
}

func (h *Host) resolve(v contract.Variable, of contract.Group) (name string, key Key, fault *contract.Fault) {
	if int(v) >= len(h.variables) {
		return "", "", broken("an unknown variable")
	}
	key, inChunk := h.feed.inChunk[of]
	if !inChunk {
		return "", "", broken("a group that is not in the chunk")
	}
	return h.variables[v].name, key, nil
}

func (h *Host) onlyInInit(operation string) *contract.Fault {
	if h.phase == Init {
		return nil
	}
	return &contract.Fault{Code: contract.InvalidHandleState, Message: fmt.Sprintf("`%s` in %v: it works in init only", operation, h.phase)}
}

func checkName(name string) *contract.Fault {
	if strings.HasPrefix(name, "$") {
		return &contract.Fault{Code: "STATE_STORE_CANNOT_CREATE_COLUMN_FAMILY_WITH_RESERVED_CHARS",
			Message: fmt.Sprintf("`%s` begins with `$`", name)}
	}
	if name == "" || strings.TrimSpace(name) != name || name == "default" || utf8.RuneCountInString(name) > nameCharactersMax ||
		strings.ContainsFunc(name, unicode.IsControl) {
		return &contract.Fault{Code: "STATE_STORE_CANNOT_USE_COLUMN_FAMILY_WITH_INVALID_NAME",
			Message: fmt.Sprintf("`%s` is no name of a state variable", name)}
	}
	return nil
}

func duplicate(name string) *contract.Fault {
	return &contract.Fault{Code: "STATEFUL_PROCESSOR_DUPLICATE_STATE_VARIABLE_DEFINED",
		Message: fmt.Sprintf("`%s` is declared twice, or declared and deleted", name)}
}

func broken(what string) *contract.Fault {
	return &contract.Fault{Code: contract.ContractBroken, Message: what}
}

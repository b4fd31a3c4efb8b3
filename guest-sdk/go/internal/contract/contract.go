// Package contract has the words of wit/world.wit as plain Go: what a processor asks of its host, what the host asks
// of a processor, and the one place where the two meet. Two hosts exist: the component's imports (package component)
// and maps in memory for tests (package memory).
package contract

import "math"

// Group is a grouping key that the host has handed out in the call in hand.
type Group = uint32

// NoGroup is noted where there is no group in hand.
const NoGroup Group = math.MaxUint32

// Variable is the number of a state variable.
type Variable = uint32

// Cursor is an open read.
type Cursor = uint32

// Host is what a processor may call. Bytes that it answers are the processor's, and stay as they are.
type Host interface {
	NextChunk() ([]byte, bool)

	// A TTL of 0 is none.
	ValueState(name, value string, ttlMs uint64) (Variable, *Fault)
	ListState(name, element string, ttlMs uint64) (Variable, *Fault)
	MapState(name, key, value string, ttlMs uint64) (Variable, *Fault)
	DeleteIfExists(name string) *Fault

	Exists(Variable, Group) (bool, *Fault)
	// A row of no columns has no bytes, so the bool says whether there is a value.
	GetValue(Variable, Group) ([]byte, bool, *Fault)
	GetList(Variable, Group) (Page, *Fault)
	GetMapValue(v Variable, of Group, key []byte) ([]byte, bool, *Fault)
	ContainsKey(v Variable, of Group, key []byte) (bool, *Fault)
	GetMap(Variable, Group, Part) (Page, *Fault)
	NextPage(Cursor) (Page, *Fault)

	ListTimers(Group) (TimerPage, *Fault)
	NextTimers(Cursor) (TimerPage, *Fault)

	// Apply applies ops in order. Of a fault it also answers which op it was, counted from 0.
	Apply(ops []byte) (op uint32, fault *Fault)

	// InHand is where the group whose handler runs is noted, for the last words of a processor that dies.
	InHand() *Group
}

// Program is a registered processor: what a host may call, in the order of the phases.
type Program interface {
	// Init begins a batch, on a processor that knows nothing of another one.
	Init(Host, Query) (Plan, *Failure)
	HandleInitialState(Time) *Failure
	HandleInputRows(Time) *Failure
	HandleExpiredTimer(Time) *Failure
	Close() *Failure
}

// Modes of time and output, as the enums of the contract count them.
const (
	TimeModeNone = iota
	TimeModeProcessingTime
	TimeModeEventTime
)

// Query is what a processor is told about its query.
type Query struct {
	QueryID, RunID       string
	BatchID              uint64
	TimeMode, OutputMode uint8
	Key, Input           string
	// InitialState is nil where the query has none.
	InitialState *string
	// Parameters are sorted by name.
	Parameters []Parameter
}

// Parameter is a setting of a query.
type Parameter struct{ Name, Value string }

// Plan is what a processor gives and wants.
type Plan struct {
	Output, Columns, Key string
	// InitialState is nil where the processor is given none.
	InitialState *string
}

// Time is the only clock of a processor, in milliseconds since the epoch.
type Time struct{ ProcessingTimeMs, WatermarkMs int64 }

// Fault is a misuse that an author can correct.
type Fault struct {
	Code, Message string
	// Of is the group whose op failed, where that need not be the group in hand.
	Of *Group
}

// Failure is why a phase gave up.
type Failure struct {
	Of                   *Group
	Code, Message, Stack string
}

// Part is what a read of a map gives.
type Part uint8

// The parts of a map.
const (
	Keys Part = iota
	Values
	Entries
)

// Page is some rows of a list or map, each with its length. More is whether Rest goes on.
type Page struct {
	Rows []byte
	Rest Cursor
	More bool
}

// TimerPage is some expiries of timers.
type TimerPage struct {
	ExpiriesMs []int64
	Rest       Cursor
	More       bool
}

// Levels of log messages.
const (
	Trace = iota
	Debug
	Info
	Warn
	Error
)

// Log hands a message to the log of the host. The host in charge sets it.
var Log = func(level uint8, message string) {}

var programs []Program

// Register makes a program known to the host.
func Register(p Program) { programs = append(programs, p) }

// Registered answers the programs that were registered.
func Registered() []Program { return programs }

// Take answers the program that register registers, and forgets it.
func Take(register func()) Program {
	before := programs
	register()
	taken := programs[len(programs)-1]
	programs = before
	return taken
}

// Package tidemilltest runs a processor in a native test: the same handlers, the same bytes between them and the host, with
// state, timers and TTL in memory and time that the test sets.
//
//	q := tidemilltest.New(t, &Counter{})
//	q.Input("a", Visit{Page: "/"}, Visit{Page: "/help"})
//	rows := q.RunBatch()
//
// What is the host's is not here: late rows are not dropped, NULLs in columns that are no pointers are not bad rows but
// errors of the handler, and the watermark is what the test says. `tidemill test` tests the component with all of that.
package tidemilltest

import (
	"reflect"
	"sort"
	"sync"
	"testing"
	"unsafe"

	"github.com/tidemill/tidemill/guest-sdk/go"
	"github.com/tidemill/tidemill/guest-sdk/go/internal/contract"
	"github.com/tidemill/tidemill/guest-sdk/go/internal/memory"
	"github.com/tidemill/tidemill/guest-sdk/go/internal/row"
)

// Query runs a processor batch by batch, on a fresh processor each time, as a host does.
type Query[K, I, O any] struct {
	t       testing.TB
	program contract.Program

	timeMode   tidemill.TimeMode
	outputMode tidemill.OutputMode
	parameters []contract.Parameter
	time       contract.Time
	batchID    uint64
	limits     memory.Limits
	state      *memory.State
	input      groups
	log        []Message

	initialStateSchema *string
}

// Message is what a processor has logged.
type Message struct {
	Level tidemill.Level
	Text  string
}

// New begins a query without state, in time mode none, at time 0 and without a watermark.
func New[K, I, O any](t testing.TB, p tidemill.Processor[K, I, O]) *Query[K, I, O] {
	return newQuery[K, I, O](t, func() { tidemill.Register(p) })
}

// running is held while a processor runs: the log and the registered processor belong to the program as a whole.
var running sync.Mutex

func newQuery[K, I, O any](t testing.TB, register func()) *Query[K, I, O] {
	running.Lock()
	defer running.Unlock()
	return &Query[K, I, O]{
		t:       t,
		program: contract.Take(register),
		limits:  memory.Limits{GroupsPerChunk: 128, RowsPerChunk: 1024, RowsPerPage: 1024},
		state:   memory.NewState(),
	}
}

// TimeMode sets the time mode.
func (q *Query[K, I, O]) TimeMode(mode tidemill.TimeMode) *Query[K, I, O] {
	q.timeMode = mode
	return q
}

// OutputMode sets the output mode.
func (q *Query[K, I, O]) OutputMode(mode tidemill.OutputMode) *Query[K, I, O] {
	q.outputMode = mode
	return q
}

// Parameter gives the query a setting.
func (q *Query[K, I, O]) Parameter(name, value string) *Query[K, I, O] {
	q.parameters = append(q.parameters, contract.Parameter{Name: name, Value: value})
	sort.SliceStable(q.parameters, func(i, j int) bool { return q.parameters[i].Name < q.parameters[j].Name })
	return q
}

// SmallChunks makes chunks and pages of at most so many rows and keys, so that a few rows cross their borders.
func (q *Query[K, I, O]) SmallChunks(keys, rows int) *Query[K, I, O] {
	q.limits = memory.Limits{GroupsPerChunk: max(keys, 1), RowsPerChunk: max(rows, 1), RowsPerPage: max(rows, 1)}
	return q
}

// SetTimeMs sets the processing time of the batches to come, in milliseconds since the epoch.
func (q *Query[K, I, O]) SetTimeMs(processingTimeMs int64) *Query[K, I, O] {
	q.time.ProcessingTimeMs = processingTimeMs
	return q
}

// SetWatermarkMs sets the watermark of the batches to come, in milliseconds since the epoch.
func (q *Query[K, I, O]) SetWatermarkMs(watermarkMs int64) *Query[K, I, O] {
	q.time.WatermarkMs = watermarkMs
	return q
}

// Input adds rows of a key to the next batch.
func (q *Query[K, I, O]) Input(key K, rows ...I) *Query[K, I, O] {
	q.t.Helper()
	add(q.t, &q.input, key, rows)
	return q
}

// RunBatch runs a batch: the input that was added, then timers that are due, then expiry of TTLs. It answers what was
// emitted. A batch that fails ends the test.
func (q *Query[K, I, O]) RunBatch() []O {
	q.t.Helper()
	emitted, err := q.TryBatch()
	if err != nil {
		q.t.Fatalf("the batch failed: %v", err)
	}
	return emitted
}

// TryBatch is RunBatch for a batch that may fail, with a [Failure]. It has had no effect then, and its input is gone.
func (q *Query[K, I, O]) TryBatch() ([]O, error) {
	q.t.Helper()
	host, err := q.run(func(host *memory.Host) *contract.Failure {
		if failure := q.phase(host, memory.Input, q.input.take(), q.program.HandleInputRows); failure != nil {
			return failure
		}
		return q.phase(host, memory.Timer, q.dueTimers(host), q.program.HandleExpiredTimer)
	})
	q.input = groups{}
	if err != nil {
		return nil, err
	}
	emitted := make([]O, len(host.Output))
	for i, packed := range host.Output {
		emitted[i] = unpack[O](q.t, packed)
	}
	return emitted, nil
}

// Schemas are the schemas that the processor gives and wants, in DDL: input columns, key, output.
func (q *Query[K, I, O]) Schemas() (columns, key, output string) {
	q.t.Helper()
	plan, failure := q.program.Init(memory.New(q.state, uint8(q.timeMode), q.time, q.limits), q.query())
	if failure != nil {
		q.t.Fatal(failureOf(failure))
	}
	return plan.Columns, plan.Key, plan.Output
}

// Timers are the timers that a key has, earliest first.
func (q *Query[K, I, O]) Timers(key K) []int64 {
	q.t.Helper()
	return q.state.Timers(packKey(q.t, key))
}

// TakeLog is what the processor has logged since the last call.
func (q *Query[K, I, O]) TakeLog() []Message {
	log := q.log
	q.log = nil
	return log
}

// run runs a batch, and keeps its state if it did not fail.
func (q *Query[K, I, O]) run(phases func(*memory.Host) *contract.Failure) (*memory.Host, error) {
	running.Lock()
	defer running.Unlock()
	before := contract.Log
	defer func() { contract.Log = before }()
	contract.Log = func(level uint8, text string) { q.log = append(q.log, Message{tidemill.Level(level), text}) }

	host := memory.New(q.state, uint8(q.timeMode), q.time, q.limits)
	query := q.query()
	q.batchID++
	_, failure := q.program.Init(host, query)
	if failure == nil {
		failure = phases(host)
	}
	if failure == nil {
		host.Open(memory.Close, nil)
		failure = q.program.Close()
	}
	if failure != nil {
		return nil, failureOf(failure)
	}
	host.State.Evict(q.time.ProcessingTimeMs)
	q.state = host.State
	return host, nil
}

func (q *Query[K, I, O]) phase(host *memory.Host, phase memory.Phase, groups []memory.Waiting, call func(contract.Time) *contract.Failure) *contract.Failure {
	if len(groups) == 0 {
		return nil
	}
	host.Open(phase, groups)
	return call(q.time)
}

func (q *Query[K, I, O]) dueTimers(host *memory.Host) (groups []memory.Waiting) {
	thresholdMs := q.time.ProcessingTimeMs
	switch q.timeMode {
	case tidemill.TimeModeNone:
		return nil
	case tidemill.TimeModeEventTime:
		thresholdMs = q.time.WatermarkMs
	}
	keys, due := host.State.DueTimers(thresholdMs)
	for _, key := range keys {
		waiting := memory.Waiting{Key: key}
		for _, expiryMs := range due[key] {
			waiting.Rows = append(waiting.Rows, pack(q.t, expiryMs, row.Signed))
		}
		groups = append(groups, waiting)
	}
	return groups
}

func (q *Query[K, I, O]) query() contract.Query {
	return contract.Query{
		QueryID:      "00000000-0000-0000-0000-000000000000",
		RunID:        "00000000-0000-0000-0000-000000000001",
		BatchID:      q.batchID,
		TimeMode:     uint8(q.timeMode),
		OutputMode:   uint8(q.outputMode),
		Key:          planOf[K](q.t).Schema(),
		Input:        planOf[I](q.t).Schema(),
		InitialState: q.initialStateSchema,
		Parameters:   q.parameters,
	}
}

// groups are rows by key, in the order of the keys' bytes.
type groups map[memory.Key][][]byte

func (g groups) take() (waiting []memory.Waiting) {
	for key, rows := range g {
		waiting = append(waiting, memory.Waiting{Key: key, Rows: rows})
	}
	sort.Slice(waiting, func(i, j int) bool { return waiting[i].Key < waiting[j].Key })
	return waiting
}

func add[K, T any](t testing.TB, to *groups, key K, rows []T) {
	t.Helper()
	if *to == nil {
		*to = groups{}
	}
	packedKey := packKey(t, key)
	for _, row := range rows {
		(*to)[packedKey] = append((*to)[packedKey], packRow(t, row))
	}
}

func packRow[T any](t testing.TB, value T) []byte { return pack(t, value, row.Signed) }

func packKey[K any](t testing.TB, key K) memory.Key { return string(pack(t, key, row.Unsigned)) }

func pack[T any](t testing.TB, value T, zero row.Zero) []byte {
	t.Helper()
	packed, fault := planOf[T](t).Encode(nil, unsafe.Pointer(&value), zero)
	if fault != nil {
		t.Fatalf("%v is no row: %s: %s", value, fault.Code, fault.Message)
	}
	return packed
}

func unpack[T any](t testing.TB, packed []byte) (value T) {
	t.Helper()
	if fault := planOf[T](t).Decode(packed, unsafe.Pointer(&value), false); fault != nil {
		t.Fatalf("a row is no %T: %s: %s", value, fault.Code, fault.Message)
	}
	return value
}

func planOf[T any](t testing.TB) *row.Plan {
	t.Helper()
	plan, fault := row.Of(reflect.TypeFor[T]())
	if fault != nil {
		t.Fatalf("%v is no row: %s", reflect.TypeFor[T](), fault.Message)
	}
	return plan
}

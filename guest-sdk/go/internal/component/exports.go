//go:build wasip1

package component

import (
	"strconv"
	"strings"
	"unsafe"

	"github.com/tidemill/tidemill/guest-sdk/go/internal/contract"
)

const nanosPerMilli = 1_000_000

// lastWords is what the adapter logs when the program dies; adapter.wat defines the layout.
var lastWords = struct {
	inHand contract.Group
	length uint32
	text   [128]byte
}{inHand: contract.NoGroup}

func init() {
	words := "panic in group " + "0000000000" + ": the program ends itself, by os.Exit or because the Go runtime cannot go on"
	lastWords.length = uint32(copy(lastWords.text[:], words))
	contract.Log = func(level uint8, message string) {
		if paused {
			return
		}
		m, length := textPointer(strings.ToValidUTF8(message, "\uFFFD"))
		loggingLog(uint32(level), m, length)
	}
}

var program contract.Program

//go:wasmexport tidemill:processor/handler@0.1.0#init
func exportInit(queryID unsafe.Pointer, queryIDLen uint32, runID unsafe.Pointer, runIDLen uint32, batchID uint64,
	timeMode, outputMode uint32, key unsafe.Pointer, keyLen uint32, input unsafe.Pointer, inputLen uint32,
	hasInitial uint32, initial unsafe.Pointer, initialLen uint32, parameters unsafe.Pointer, parametersLen uint32) unsafe.Pointer {
	query := contract.Query{
		QueryID:    clone(queryID, queryIDLen),
		RunID:      clone(runID, runIDLen),
		BatchID:    batchID,
		TimeMode:   uint8(timeMode),
		OutputMode: uint8(outputMode),
		Key:        clone(key, keyLen),
		Input:      clone(input, inputLen),
	}
	if hasInitial != 0 {
		schema := clone(initial, initialLen)
		query.InitialState = &schema
	}
	for _, p := range unsafe.Slice((*[4]uint32)(parameters), parametersLen) {
		query.Parameters = append(query.Parameters, contract.Parameter{
			Name:  strings.Clone(stringAt(p[0], p[1])),
			Value: strings.Clone(stringAt(p[2], p[3])),
		})
	}
	beginBatch(query)

	registered := contract.Registered()
	if len(registered) != 1 {
		return failed(&contract.Failure{Code: contract.HandleNotInitialized, Message: "the program registers " +
			strconv.Itoa(len(registered)) + " processors: call tidemill.Register once, in an init function"})
	}
	program = registered[0]
	plan, failure := program.Init(host{}, query)
	if failure != nil {
		return failed(failure)
	}
	return planned(plan)
}

// beginBatch sets clock and randomness of the program to those of the batch.
func beginBatch(query contract.Query) {
	var batchTimeMs int64
	var seed uint64
	for _, p := range query.Parameters {
		switch p.Name {
		case "tidemill.batch-time-ms":
			batchTimeMs, _ = strconv.ParseInt(p.Value, 10, 64)
		case "tidemill.seed":
			seed, _ = strconv.ParseUint(p.Value, 10, 64)
		}
	}
	adapterBegin(batchTimeMs*nanosPerMilli, seed, unsafe.Pointer(&lastWords))
	seedRuntime(seed)
}

//go:wasmexport tidemill:processor/handler@0.1.0#handle-initial-state
func exportHandleInitialState(processingTimeMs, watermarkMs int64) unsafe.Pointer {
	return phase(contract.Program.HandleInitialState, processingTimeMs, watermarkMs)
}

//go:wasmexport tidemill:processor/handler@0.1.0#handle-input-rows
func exportHandleInputRows(processingTimeMs, watermarkMs int64) unsafe.Pointer {
	return phase(contract.Program.HandleInputRows, processingTimeMs, watermarkMs)
}

//go:wasmexport tidemill:processor/handler@0.1.0#handle-expired-timer
func exportHandleExpiredTimer(processingTimeMs, watermarkMs int64) unsafe.Pointer {
	return phase(contract.Program.HandleExpiredTimer, processingTimeMs, watermarkMs)
}

//go:wasmexport tidemill:processor/handler@0.1.0#close
func exportClose() unsafe.Pointer {
	if program == nil {
		return failed(notInitialised())
	}
	return ended(program.Close())
}

func phase(call func(contract.Program, contract.Time) *contract.Failure, processingTimeMs, watermarkMs int64) unsafe.Pointer {
	if program == nil {
		return failed(notInitialised())
	}
	return ended(call(program, contract.Time{ProcessingTimeMs: processingTimeMs, WatermarkMs: watermarkMs}))
}

func notInitialised() *contract.Failure {
	return &contract.Failure{Code: contract.HandleNotInitialized, Message: "`init` has not made the processor"}
}

// answer is the result that an export points the host to, and what it refers to.
var answer struct {
	words [15]uint32
	texts [4]string
	used  int
}

func ended(failure *contract.Failure) unsafe.Pointer {
	if failure != nil {
		return failed(failure)
	}
	clear(answer.words[:])
	return unsafe.Pointer(&answer.words)
}

// failed is the error of result<_, failure>.
func failed(failure *contract.Failure) unsafe.Pointer {
	clear(answer.words[:])
	answer.used = 0
	answer.words[0] = 1
	if failure.Of != nil {
		answer.words[1], answer.words[2] = 1, *failure.Of
	}
	putText(3, failure.Code)
	putText(5, failure.Message)
	putText(7, failure.Stack)
	return unsafe.Pointer(&answer.words)
}

// planned is the plan of result<plan, failure>. The host knows best which values are worth sending along, so it is asked
// for none.
func planned(plan contract.Plan) unsafe.Pointer {
	clear(answer.words[:])
	answer.used = 0
	putText(1, plan.Output)
	answer.words[3] = 1
	putText(4, plan.Columns)
	if plan.InitialState != nil {
		answer.words[6] = 1
		putText(7, *plan.InitialState)
	}
	answer.words[9] = 1
	putText(10, plan.Key)
	return unsafe.Pointer(&answer.words)
}

func putText(word int, text string) {
	text = strings.ToValidUTF8(text, "\uFFFD")
	answer.texts[answer.used] = text
	answer.used++
	at, length := textPointer(text)
	answer.words[word], answer.words[word+1] = uint32(uintptr(at)), length
}

// clone copies an argument of init: it lies in the memory for answers, and would hold the block.
func clone(at unsafe.Pointer, length uint32) string {
	return strings.Clone(unsafe.String((*byte)(at), length))
}

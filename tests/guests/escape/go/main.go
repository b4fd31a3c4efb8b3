// A processor that tries to get out of its sandbox, or to be different from run to run. ../README.md says what it emits.
package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidemill/tidemill/guest-sdk/go"
)

// Input is a row of the source. What is in it does not matter.
type Input struct {
	N int64
}

// Finding is what came of an attempt.
type Finding struct {
	Key    string
	What   string
	Result string
}

type attempt struct {
	what string
	make func() string
}

var attempts = slices.Concat(clocks, randomness, order, surroundings, files, network, processes, code)

// Escape is the processor.
type Escape struct {
	batch uint64
	seen  tidemill.List[int64]
}

// Init learns which batch this is.
func (e *Escape) Init(h *tidemill.Handle) error {
	e.batch = h.Query().BatchID
	return h.State("seen", &e.seen)
}

// HandleInputRows makes every attempt for each row.
func (e *Escape) HandleInputRows(key string, rows *tidemill.Rows[Input], timers *tidemill.Timers, out *tidemill.Out[Finding]) error {
	for range rows.All() {
		found := func(what, result string) error {
			return out.Emit(Finding{Key: key, What: what, Result: strings.ToValidUTF8(result, "?")})
		}
		for _, attempt := range attempts {
			if err := found(attempt.what, guarded(attempt.make)); err != nil {
				return err
			}
		}
		if err := found("time: of the handler", fmt.Sprint(timers.ProcessingTimeMs())); err != nil {
			return err
		}
		if err := found("order: kept from an earlier batch", e.keptFromEarlier()); err != nil {
			return err
		}
		if err := found("threads: call the host from a goroutine", e.askFromGoroutine()); err != nil {
			return err
		}
	}
	return nil
}

// batches are those that this memory has seen.
var batches = map[uint64]bool{}

func (e *Escape) keptFromEarlier() string {
	batches[e.batch] = true
	return fmt.Sprint(len(batches) - 1)
}

// askFromGoroutine calls the host from where no handler runs.
func (e *Escape) askFromGoroutine() string {
	return attemptTo(func() (exists any, err error) {
		asked := make(chan bool)
		go func() {
			exists, err = e.seen.Exists()
			close(asked)
		}()
		<-asked
		return exists, err
	})
}

// attemptTo does what must be refused.
func attemptTo(do func() (any, error)) string {
	got, err := do()
	if err != nil {
		return "refused: " + err.Error()
	}
	return fmt.Sprintf("got: %.200v", got)
}

// guarded turns a panic into a result.
func guarded(do func() string) (result string) {
	defer func() {
		if panicked := recover(); panicked != nil {
			result = fmt.Sprintf("refused: panic: %v", panicked)
		}
	}()
	return do()
}

func init() { tidemill.Register(&Escape{}) }

func main() {}

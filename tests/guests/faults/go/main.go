// A processor that fails in every way that an author can. ../README.md says which there are.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/tidemill/tidemill/guest-sdk/go"
)

// Row is what comes in and goes out.
type Row struct {
	Key string
	N   int64
}

// Text has a column that takes valid text only.
type Text struct {
	Text string
}

// Price has few digits.
type Price struct {
	Price tidemill.Decimal `tidemill:"price,decimal(4,2)"`
}

// Faults is the processor.
type Faults struct {
	fault  string
	text   tidemill.Value[Text]
	price  tidemill.Value[Price]
	byName tidemill.Map[*string, int64]
}

// Init makes the state variables.
func (f *Faults) Init(h *tidemill.Handle) error {
	f.fault, _ = h.Parameter("fault")
	err := errors.Join(h.State("text", &f.text), h.State("price", &f.price), h.State("by_name", &f.byName))
	switch f.fault {
	case "init":
		panic("a fault in init")
	case "init-access":
		_, _, err = f.text.Get()
	}
	return err
}

// HandleInputRows emits what it gets, unless it is at fault.
func (f *Faults) HandleInputRows(key string, rows *tidemill.Rows[Row], timers *tidemill.Timers, out *tidemill.Out[Row]) error {
	if key == "bad" && f.fault == "timer" {
		return timers.Register(timers.ProcessingTimeMs())
	}
	if key == "bad" {
		if err := f.fail(); err != nil {
			return err
		}
	}
	for row := range rows.All() {
		if err := out.Emit(row); err != nil {
			return err
		}
	}
	return nil
}

// HandleExpiredTimer fails as a program does.
func (f *Faults) HandleExpiredTimer(key string, _ int64, _ *tidemill.Timers, _ *tidemill.Out[Row]) error {
	var keys map[string]bool
	keys[key] = true
	return nil
}

// HandleInitialState fails for one key.
func (f *Faults) HandleInitialState(key string, row Row, _ *tidemill.Timers) error {
	if key == "bad" && f.fault == "initial-state" {
		panic(fmt.Errorf("a fault in the initial state at n = %d", row.N))
	}
	return nil
}

// Close answers an error, which has no line.
func (f *Faults) Close() error {
	if f.fault == "close" {
		return errors.New("a fault in close")
	}
	return nil
}

func (f *Faults) fail() error {
	switch f.fault {
	case "rows":
		numbers := []int64{1, 2, 3}
		return fmt.Errorf("%d is there", numbers[len(f.fault)])
	case "own-code":
		return tidemill.NewError("OVERDRAWN", "the account is %d short", 5)
	case "state-type":
		return f.text.Update(Text{"not UTF-8: \xff"})
	case "state-range":
		price, err := tidemill.ParseDecimal("123.45")
		return errors.Join(err, f.price.Update(Price{price}))
	case "state-null":
		return f.byName.Update(nil, 1)
	case "endless":
		for {
		}
	case "print":
		line := strings.Repeat("x", 999)
		for range 100_000 {
			fmt.Println(line)
		}
		return nil
	case "recursion":
		return recurse(f.fault)
	case "memory":
		var all [][]byte
		for {
			all = append(all, make([]byte, 1<<20))
			all[len(all)-1][0] = 1
		}
	case "exit":
		os.Exit(3)
	case "", "init", "initial-state", "close", "init-access":
		return nil
	}
	return tidemill.NewError("FAULT_UNKNOWN", "there is no fault %q in Go", f.fault)
}

func recurse(text string) error {
	if err := recurse(text + "."); err != nil {
		return fmt.Errorf("deeper: %w", err)
	}
	return nil
}

func init() { tidemill.RegisterWithInitialState(&Faults{}) }

func main() {}

package main

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

// atStart is the time before there was a batch.
var atStart = time.Now()

var clocks = []attempt{
	{"time: now", func() string { return time.Now().UTC().Format(time.RFC3339Nano) }},
	{"time: now, local", func() string { return time.Now().String() }},
	{"time: zone", func() string { return fmt.Sprint(time.Now().Zone()) }},
	{"time: of a busy loop", func() string { return elapsed(func() { spin(1_000_000) }) }},
	{"time: of garbage collection", func() string { return elapsed(runtime.GC) }},
	{"time: of an hour's sleep", func() string { return elapsed(func() { time.Sleep(time.Hour) }) }},
	{"time: of a timeout of a day", func() string {
		return elapsed(func() {
			within, cancel := context.WithTimeout(context.Background(), 24*time.Hour)
			defer cancel()
			<-within.Done()
		})
	}},
	{"time: of ten ticks of a minute", func() string {
		return elapsed(func() {
			ticker := time.NewTicker(time.Minute)
			defer ticker.Stop()
			for range 10 {
				<-ticker.C
			}
		})
	}},
	{"time: which of two alarms is first", func() string {
		select {
		case <-time.After(2 * time.Second):
			return "the late one"
		case <-time.After(time.Second):
			return "the early one"
		}
	}},
	{"time: pauses of the collector", func() string {
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		return fmt.Sprint(memory.PauseTotalNs)
	}},
	{"frozen: time at start", func() string { return atStart.UTC().Format(time.RFC3339Nano) }},
}

// elapsed is how long something takes by the clock of the sandbox.
func elapsed(do func()) string {
	start := time.Now()
	do()
	return time.Since(start).String()
}

var spun uint64

func spin(rounds uint64) {
	for i := range rounds {
		spun += i ^ spun<<1
	}
}

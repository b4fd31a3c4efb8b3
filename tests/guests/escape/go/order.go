package main

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"unsafe"
	"weak"
)

// order is what depends on hashing, scheduling, addresses and garbage collection.
var order = []attempt{
	{"order: of a map", func() string { return keysOf(mapOf(20)) }},
	{"order: of a map of pointers", func() string {
		pointers := map[*int]int{}
		for i := range 20 {
			pointers[new(int)] = i
		}
		var indices []string
		for _, i := range pointers {
			indices = append(indices, fmt.Sprint(i))
		}
		return strings.Join(indices, " ")
	}},
	{"order: of a sync.Map", func() string {
		var all sync.Map
		for key, value := range mapOf(20) {
			all.Store(key, value)
		}
		var keys []string
		all.Range(func(key, _ any) bool { keys = append(keys, key.(string)); return true })
		return strings.Join(keys, " ")
	}},
	{"order: of goroutines", func() string { return race(false) }},
	{"order: of goroutines that yield", func() string { return race(true) }},
	{"order: of ready channels", func() string {
		left, right := make(chan string, 20), make(chan string, 20)
		for range 20 {
			left <- "l"
			right <- "r"
		}
		var taken strings.Builder
		for range 20 {
			select {
			case side := <-left:
				taken.WriteString(side)
			case side := <-right:
				taken.WriteString(side)
			}
		}
		return taken.String()
	}},
	{"order: a counter without a lock", func() string {
		counter := 0
		var all sync.WaitGroup
		for range 8 {
			all.Add(1)
			go func() {
				defer all.Done()
				for range 1_000 {
					seen := counter
					if seen%100 == 0 {
						runtime.Gosched()
					}
					counter = seen + 1
				}
			}()
		}
		all.Wait()
		return fmt.Sprint(counter)
	}},
	{"order: address of an object", func() string { return fmt.Sprintf("%p", new([64]byte)) }},
	{"order: address of the stack", func() string { var local int; return fmt.Sprint(uintptr(unsafe.Pointer(&local))) }},
	{"order: address of a function", func() string { return fmt.Sprint(runtime.FuncForPC(pc()).Entry()) }},
	{"order: finalizers", func() string {
		finalized := make(chan int, 8)
		for i := range 8 {
			object := new([1024]byte)
			runtime.SetFinalizer(object, func(*[1024]byte) { finalized <- i })
		}
		return afterCollection(func() string { return drained(finalized) })
	}},
	{"order: cleanups", func() string {
		cleaned := make(chan int, 8)
		for i := range 8 {
			runtime.AddCleanup(new([1024]byte), func(i int) { cleaned <- i }, i)
		}
		return afterCollection(func() string { return drained(cleaned) })
	}},
	{"order: weak pointer", func() string {
		pointer := weak.Make(new([1024]byte))
		return afterCollection(func() string { return fmt.Sprint(pointer.Value() == nil) })
	}},
	{"order: what a pool kept", func() string {
		pool := sync.Pool{New: func() any { return "new" }}
		pool.Put("old")
		return afterCollection(func() string { return pool.Get().(string) })
	}},
	{"order: memory in use", func() string {
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		return fmt.Sprint(memory.HeapAlloc, memory.Mallocs, memory.Sys, memory.NumGC)
	}},
	{"order: goroutines", func() string { return fmt.Sprint(runtime.NumGoroutine()) }},
}

func mapOf(n int) map[string]int {
	all := map[string]int{}
	for i := range n {
		all[fmt.Sprint(i)] = i
	}
	return all
}

func keysOf(all map[string]int) string {
	var keys []string
	for key := range all {
		keys = append(keys, key)
	}
	return strings.Join(keys, " ")
}

// race lets goroutines note when each is done.
func race(yields bool) string {
	var lock sync.Mutex
	var all sync.WaitGroup
	var done []string
	for i := range 10 {
		all.Add(1)
		go func() {
			defer all.Done()
			for range i {
				spin(100_000)
				if yields {
					runtime.Gosched()
				}
			}
			lock.Lock()
			defer lock.Unlock()
			done = append(done, fmt.Sprint(i))
		}()
	}
	all.Wait()
	return strings.Join(done, " ")
}

func afterCollection(look func() string) string {
	runtime.GC()
	runtime.Gosched()
	return look()
}

func drained(numbers chan int) string {
	var all []string
	for {
		select {
		case i := <-numbers:
			all = append(all, fmt.Sprint(i))
		default:
			return strings.Join(all, " ")
		}
	}
}

func pc() uintptr {
	pc, _, _, _ := runtime.Caller(0)
	return pc
}

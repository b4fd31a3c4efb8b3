//go:build wasip1

package component

import (
	"math/rand/v2"
	"unsafe"
)

// The Go runtime seeds math/rand, math/rand/v2, hash/maphash and the order of maps when the program starts. A component
// starts before it belongs to a batch, so it would draw the same numbers in every batch of every query. There is no
// function that seeds the runtime's generator again; seedRuntime finds it in the runtime's memory.
//
// It is sure of what it finds: only a generator that gives a number which it was about to give is touched. With a Go that
// keeps it elsewhere the numbers are what they were at the start: no less deterministic, but equal in each batch.
// tests/guests/escape shows that they differ.

// getm is one of the few names that the runtime promises to keep for others (go.dev/issue/67401): where the state of the
// thread begins, of which WebAssembly has one.
//
//go:linkname getm runtime.getm
func getm() uintptr

// More than the state of a thread has.
const threadBytesMax = 4096

// generator is laid out as internal/chacha8rand.State.
type generator struct {
	numbers     [32]uint64
	seed        [4]uint64
	next, ready uint32
	counter     uint32
}

func seedRuntime(seed uint64) {
	thread := unsafe.Add(unsafe.Pointer(nil), getm())
	for offset := 0; offset < threadBytesMax; offset += 8 {
		g := (*generator)(unsafe.Add(thread, offset))
		if !g.isRuntimes() {
			continue
		}
		words := rand.NewPCG(seed, 0)
		for i := range g.seed {
			// The next numbers are made from the seed, or from the last of these, by turns.
			g.seed[i] = words.Uint64()
			g.numbers[len(g.numbers)-len(g.seed)+i] = g.seed[i]
		}
		g.next = g.ready
		return
	}
}

func (g *generator) isRuntimes() bool {
	if g.ready != 28 && g.ready != 32 || g.next >= g.ready || g.counter%4 != 0 || g.counter >= 16 {
		return false
	}
	at, number := g.next, g.numbers[g.next]
	return rand.Uint64() == number && g.next == at+1
}

//go:build wasip1

package component

import (
	"runtime"
	"unsafe"
)

const (
	// Memory for the host's answers is made in blocks of so many bytes.
	blockBytes = 512 << 10
	// More than most answers that are a row, a fault or an argument.
	answerBytes = 4 << 10
	// The least garbage between two collections.
	garbageMin = 2 << 20
)

// answers is the memory that the host writes into. What it wrote is never written again, so rows may point into it as
// long as they like: the collector keeps a block as long as something does.
//
// The memory is made before the call: while the host asks for it, by cabi_realloc, a component must not call imports,
// and making memory may run the collector and with it other goroutines.
var answers struct {
	block []byte
	used  uintptr
	// What does not fit is made in cabi_realloc after all, and kept here until the answer was read.
	more [][]byte
	// The largest chunk or page so far, and some.
	large uintptr
}

// prepare makes sure that an answer of so many bytes fits.
func prepare(bytes uintptr) {
	answers.more = nil
	answers.used = (answers.used + 7) &^ 7
	if answers.used+bytes <= uintptr(len(answers.block)) {
		return
	}
	size := max(blockBytes, 2*bytes)
	collect(size)
	answers.block, answers.used = make([]byte, size), 0
}

func prepareLarge() { prepare(max(answers.large, 80<<10)) }

// gotLarge learns from the size of a chunk or page.
func gotLarge(bytes []byte) []byte {
	size := uintptr(len(bytes))
	answers.large = max(answers.large, size+size/4)
	return bytes
}

// garbage counts the blocks that were made since the last collection.
var garbage = struct{ made, collectAt uintptr }{collectAt: garbageMin}

// collect runs the collector when enough garbage may be there. Here, between two chunks, it is quicker than in the midst
// of a handler: Go in WebAssembly has one thread, so a collection that began there would go on beside it for long. What
// authors allocate is seen to by the collector's own pace.
func collect(bytes uintptr) {
	garbage.made += bytes
	if garbage.made < garbage.collectAt {
		return
	}
	answers.block = nil
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	garbage.made, garbage.collectAt = 0, max(garbageMin, uintptr(stats.HeapAlloc)*3/4)
}

// paused is set while cabi_realloc makes memory. Other goroutines may run then, and what they log or print is dropped.
var paused bool

func pause(on bool) {
	paused = on
	var flag uint32
	if on {
		flag = 1
	}
	adapterSetPaused(flag)
}

//go:wasmexport cabi_realloc
func cabiRealloc(old unsafe.Pointer, oldSize, align, size uint32) unsafe.Pointer {
	at := (answers.used + uintptr(align) - 1) &^ (uintptr(align) - 1)
	var memory unsafe.Pointer
	if end := at + uintptr(size); end <= uintptr(len(answers.block)) {
		memory = unsafe.Add(unsafe.Pointer(unsafe.SliceData(answers.block)), at)
		answers.used = end
	} else {
		pause(true)
		b := make([]byte, size+align)
		answers.more = append(answers.more, b)
		memory = unsafe.Pointer(unsafe.SliceData(b))
		pause(false)
	}
	if oldSize != 0 {
		copy(unsafe.Slice((*byte)(memory), size), unsafe.Slice((*byte)(old), oldSize))
	}
	return memory
}

// result is where the host writes what a call answers.
type result [8]uint32

var ret result

func retAt() unsafe.Pointer { return unsafe.Pointer(&ret) }

// bytesAt and stringAt are what the host wrote, at an address and length in the result.
func bytesAt(at, length uint32) []byte {
	return unsafe.Slice((*byte)(address(at)), length)
}

func stringAt(at, length uint32) string {
	return unsafe.String((*byte)(address(at)), length)
}

// address is a place in memory; as an offset from its begin, which is how the host counts.
func address(at uint32) unsafe.Pointer { return unsafe.Add(unsafe.Pointer(nil), at) }

func pointer(b []byte) (unsafe.Pointer, uint32) {
	return unsafe.Pointer(unsafe.SliceData(b)), uint32(len(b))
}

func textPointer(s string) (unsafe.Pointer, uint32) {
	return unsafe.Pointer(unsafe.StringData(s)), uint32(len(s))
}

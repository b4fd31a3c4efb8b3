// Package word reads and writes the little-endian words of the contract, at any alignment.
//
// It takes a little-endian machine for granted, which WebAssembly is and those that develop for it are. Package
// encoding/binary would go byte by byte on wasm, where the compiler does not join the bytes.
package word

import (
	"slices"
	"unsafe"
)

// Load32 is the word at a place in b.
func Load32(b []byte, at int) uint32 {
	_ = b[at+3]
	return *(*uint32)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), at))
}

// Load64 is the word at a place in b.
func Load64(b []byte, at int) uint64 {
	_ = b[at+7]
	return *(*uint64)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), at))
}

// Store32 sets the word at a place in b.
func Store32(b []byte, at int, value uint32) {
	_ = b[at+3]
	*(*uint32)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), at)) = value
}

// Store64 sets the word at a place in b.
func Store64(b []byte, at int, value uint64) {
	_ = b[at+7]
	*(*uint64)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), at)) = value
}

// Append64 appends a word.
func Append64(b []byte, value uint64) []byte {
	at := len(b)
	if at+8 > cap(b) {
		b = slices.Grow(b, 8)
	}
	b = b[:at+8]
	Store64(b, at, value)
	return b
}

package session

import (
	"github.com/tidemill/tidemill/guest-sdk/go/internal/contract"
	"github.com/tidemill/tidemill/guest-sdk/go/internal/word"
)

const (
	chunkHeadBytes = 16
	groupHeadBytes = 24
	// Rows and prefetched values: `length:u32` and a second word.
	lengthBytes = 8
	// Value states that a chunk can carry.
	prefetchedMax = 8
	// Rows of the group came in the chunk before.
	continuedFlag = 1
	// More rows of the group follow in the next chunk.
	continuesFlag = 2
)

// feed walks the chunk in hand. Layout: wit/README.md, "Chunks". It takes the host's bytes as valid: on others it panics,
// which ends the call with a failure.
type feed struct {
	chunk      []byte
	at         int
	groupsLeft uint32
	prefetched [prefetchedMax]contract.Variable
	values     int // prefetched value states in this chunk

	group     contract.Group
	inGroup   bool
	continued bool
	continues bool
	rowsLeft  uint32
	key       []byte
	groupEnd  int // where the group in hand ends in this chunk
}

// load takes a chunk in hand. The group that was in hand stays so until the next is entered.
func (f *feed) load(chunk []byte) {
	f.chunk = chunk
	f.groupsLeft = word.Load32(chunk, 0)
	f.values = int(word.Load32(chunk, 4))
	for n := range f.values {
		f.prefetched[n] = word.Load32(chunk, chunkHeadBytes+4*n)
	}
	f.at = chunkHeadBytes + (f.values*4+7)&^7
	f.groupEnd = 0
}

// enter enters the next group of the chunk, leaving unread what is left of the one in hand. Its prefetched values come
// next.
func (f *feed) enter() {
	f.groupsLeft--
	at := max(f.at, f.groupEnd)
	head := f.chunk[at : at+groupHeadBytes]
	f.group = word.Load32(head, 0)
	flags := word.Load32(head, 4)
	f.continued, f.continues = flags&continuedFlag != 0, flags&continuesFlag != 0
	f.rowsLeft = word.Load32(head, 8)
	at += groupHeadBytes
	keyEnd := at + int(word.Load32(head, 12))
	f.groupEnd = at + int(word.Load32(head, 16))
	f.key = f.chunk[at:keyEnd:keyEnd]
	f.at = keyEnd
	f.inGroup = true
}

// row is the next row of the group in hand that lies in this chunk.
func (f *feed) row() ([]byte, bool) {
	if f.rowsLeft == 0 {
		return nil, false
	}
	f.rowsLeft--
	start := f.at + lengthBytes
	end := start + int(word.Load32(f.chunk, f.at))
	f.at = end
	return f.chunk[start:end:end], true
}

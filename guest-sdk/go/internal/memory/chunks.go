package memory

import (
	"encoding/binary"

	"github.com/tidemill/tidemill/guest-sdk/go/internal/contract"
)

// Value states that a chunk carries at most.
const prefetchedMax = 8

// Limits are where chunks and pages end. A host counts bytes; so few rows that a test can reach them say the same.
type Limits struct{ GroupsPerChunk, RowsPerChunk, RowsPerPage int }

// Waiting is a group that was not fed, or not to its end.
type Waiting struct {
	Key  Key
	Rows [][]byte

	group contract.Group // 0 until rows of it were sent
}

// feed is what a phase has left to feed, and the groups of the chunk in hand.
type feed struct {
	left      []Waiting
	inChunk   map[contract.Group]Key
	handedOut contract.Group
}

// next is the next chunk, with the values that value gives for each of the variables.
func (f *feed) next(limits Limits, variables []contract.Variable, value func(Key, contract.Variable) ([]byte, bool)) ([]byte, bool) {
	f.inChunk = map[contract.Group]Key{}
	if len(f.left) == 0 {
		return nil, false
	}
	variables = variables[:min(len(variables), prefetchedMax)]
	var body []byte
	for rowsLeft := limits.RowsPerChunk; len(f.left) > 0 && len(f.inChunk) < limits.GroupsPerChunk && rowsLeft > 0; {
		waiting := &f.left[0]
		var flags uint32
		continued := waiting.group != 0
		if continued {
			flags |= 1
		} else {
			f.handedOut++
			waiting.group = f.handedOut
		}
		rows := waiting.Rows[:min(len(waiting.Rows), rowsLeft)]
		waiting.Rows = waiting.Rows[len(rows):]
		rowsLeft -= len(rows)
		if len(waiting.Rows) > 0 {
			flags |= 2
		}

		content := []byte(waiting.Key)
		for _, v := range variables {
			row, present := value(waiting.Key, v)
			switch {
			case continued:
				content = appendRow(content, nil, 2)
			case present:
				content = appendRow(content, row, 1)
			default:
				content = appendRow(content, nil, 0)
			}
		}
		for _, row := range rows {
			content = appendRow(content, row, 0)
		}
		body = appendWords(body, waiting.group, flags, uint32(len(rows)), uint32(len(waiting.Key)), uint32(len(content)), 0)
		body = append(body, content...)
		f.inChunk[waiting.group] = waiting.Key
		if len(waiting.Rows) > 0 {
			break
		}
		f.left = f.left[1:]
	}
	chunk := appendWords(nil, uint32(len(f.inChunk)), uint32(len(variables)), 0, 0)
	chunk = appendWords(chunk, variables...)
	if len(variables)%2 == 1 {
		chunk = appendWords(chunk, 0)
	}
	return append(chunk, body...), true
}

// appendRow appends a row with its length and a second word before it.
func appendRow(to, row []byte, word uint32) []byte {
	return append(appendWords(to, uint32(len(row)), word), row...)
}

func appendWords(to []byte, words ...uint32) []byte {
	for _, word := range words {
		to = binary.LittleEndian.AppendUint32(to, word)
	}
	return to
}

// rows are the rows of a list of rows.
func rows(b []byte) (rows [][]byte) {
	for len(b) > 0 {
		end := 8 + binary.LittleEndian.Uint32(b)
		rows = append(rows, b[8:end])
		b = b[end:]
	}
	return rows
}

package tidemill

import (
	"iter"
	"unsafe"

	"github.com/tidemill/tidemill/guest-sdk/go/internal/contract"
	"github.com/tidemill/tidemill/guest-sdk/go/internal/row"
	"github.com/tidemill/tidemill/guest-sdk/go/internal/session"
	"github.com/tidemill/tidemill/guest-sdk/go/internal/word"
)

// Before a row in a list of rows: `length:u32, 0:u32`.
const lengthBytes = 8

// pages are the rows of a list or map, page by page.
type pages struct {
	session *session.Session
	page    contract.Page
	at      int
}

// next is the next packed row, valid until the next page; false at the end.
func (p *pages) next() ([]byte, bool, *contract.Fault) {
	for p.at >= len(p.page.Rows) {
		if !p.page.More {
			return nil, false, nil
		}
		var fault *contract.Fault
		if p.page, fault = p.session.NextPage(p.page.Rest); fault != nil {
			return nil, false, fault
		}
		p.at = 0
	}
	start := p.at + lengthBytes
	p.at = start + int(word.Load32(p.page.Rows, p.at))
	return p.page.Rows[start:p.at], true, nil
}

// walk walks rows that are one value each.
func walk[T any](p *pages, plan *row.Plan) iter.Seq[T] {
	return func(yield func(T) bool) {
		current := new(T)
		for p.read(plan, unsafe.Pointer(current)) && yield(*current) {
		}
	}
}

// read reads the next row. A fault in the middle of a walk has no other way to the author's caller than a panic.
func (p *pages) read(plan *row.Plan, to unsafe.Pointer) bool {
	packed, more, fault := p.next()
	if fault == nil && more {
		fault = plan.Decode(packed, to, false)
	}
	if fault != nil {
		panic(errorOf(fault))
	}
	return more
}

// putLength sets the length of the last row of a list of rows, which begins after its length at head.
func putLength(b []byte, head int) {
	word.Store32(b, head, uint32(len(b)-head-lengthBytes))
}

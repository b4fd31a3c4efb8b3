package row

import (
	"bytes"
	"math"
	"reflect"
	"slices"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/tidemill/tidemill/guest-sdk/go/internal/contract"
	"github.com/tidemill/tidemill/guest-sdk/go/internal/word"
)

// Zero says which zero a floating-point number is written as.
type Zero bool

const (
	// Signed: 0.0 and -0.0 are two values.
	Signed Zero = false
	// Unsigned: both are written as 0.0, in grouping keys, keys of map states and of MAP columns, so that equal keys are
	// equal bytes.
	Unsigned Zero = true
)

// The one NaN of packed rows.
const nan = 0x7ff8_0000_0000_0000

// Encode appends the value at src, whose type is the plan's, as a packed row. On a fault it answers what it was given.
func (p *Plan) Encode(to []byte, src unsafe.Pointer, zero Zero) ([]byte, *contract.Fault) {
	start := len(to)
	b := grow(to, p.fixed)
	for i := range p.columns {
		c := &p.columns[i]
		at := unsafe.Add(src, c.offset)
		// The most common columns here, without a call of many ways.
		if c.kind == int64Kind && !c.nullable {
			word.Store64(b, start+c.slot, uint64(*(*int64)(at)))
			continue
		}
		var fault *contract.Fault
		if c.kind == text && !c.nullable {
			if b, fault = encodeText(b, start, start+c.slot, *(*string)(at)); fault != nil {
				return to, within(c.name, fault)
			}
			continue
		}
		if b, fault = c.encode(b, start, i, c.slot, at, zero); fault != nil {
			return to, within(c.name, fault)
		}
	}
	return b, nil
}

// encode writes the value at `at` into column i, whose slot is at `slot`, of the row that begins at start.
func (c *cell) encode(b []byte, start, i, slot int, at unsafe.Pointer, zero Zero) ([]byte, *contract.Fault) {
	if c.nullable {
		if at = *(*unsafe.Pointer)(at); at == nil {
			b[start+i>>3] |= 1 << (i & 7)
			return b, nil
		}
	}
	var value uint64
	switch c.kind {
	case boolean:
		if *(*bool)(at) {
			value = 1
		}
	case int8Kind:
		value = uint64(*(*int8)(at))
	case int16Kind:
		value = uint64(*(*int16)(at))
	case int32Kind, date:
		value = uint64(*(*int32)(at))
	case int64Kind:
		value = uint64(*(*int64)(at))
	case float32Kind:
		value = floatBits(float64(*(*float32)(at)), zero)
	case float64Kind:
		value = floatBits(*(*float64)(at), zero)
	case timestamp:
		t := *(*time.Time)(at)
		value = uint64(t.UnixMicro())
		if !time.UnixMicro(int64(value)).Equal(t.Truncate(time.Microsecond)) {
			return b, &contract.Fault{Code: contract.OutOfRange,
				Message: "the time is more microseconds away from 1970 than 64 bits count"}
		}
	case decimal:
		unscaled, fault := c.unscaled(*(*Decimal)(at))
		if fault != nil {
			return b, fault
		}
		if c.precision > slotDecimalDigits {
			part := len(b)
			return closePart(unscaled.bytes(b), start, slot, part)
		}
		value = unscaled.Low
	case text:
		return encodeText(b, start, start+slot, *(*string)(at))
	default:
		part := len(b)
		b, fault := c.encodePart(b, at, zero)
		if fault != nil {
			return b, fault
		}
		return closePart(b, start, slot, part)
	}
	word.Store64(b, start+slot, value)
	return b, nil
}

// encodeText appends the part of a STRING, and points the slot, which is at `slot` in b, to it.
func encodeText(b []byte, start, slot int, s string) ([]byte, *contract.Fault) {
	if !isUTF8(s) {
		return b, &contract.Fault{Code: contract.InvalidRow, Message: "the text is not UTF-8: bytes are []byte, a BINARY"}
	}
	part := len(b)
	end := part + (len(s)+wordBytes-1)&^(wordBytes-1)
	if uint64(end-start) > math.MaxUint32 {
		return b, tooLong()
	}
	if end > cap(b) {
		b = slices.Grow(b, end-part)
	}
	b = b[:end]
	if end > part {
		word.Store64(b, end-wordBytes, 0) // the padding
	}
	copy(b[part:], s)
	word.Store64(b, slot, uint64(part-start)|uint64(len(s))<<32)
	return b, nil
}

func (c *cell) encodePart(b []byte, at unsafe.Pointer, zero Zero) ([]byte, *contract.Fault) {
	switch c.kind {
	case binary:
		return append(b, *(*[]byte)(at)...), nil
	case structure:
		return c.fields.Encode(b, at, zero)
	case array:
		values := reflect.NewAt(c.typ, at).Elem()
		return c.elem.encodeArray(b, values.UnsafePointer(), c.typ.Elem().Size(), values.Len(), nil, zero)
	default:
		return c.encodeMap(b, reflect.NewAt(c.typ, at).Elem(), zero)
	}
}

// encodeArray appends the part of an ARRAY, or of one half of a MAP: n values from base on, in the order given or their own.
func (c *cell) encodeArray(b []byte, base unsafe.Pointer, size uintptr, n int, order []int, zero Zero) ([]byte, *contract.Fault) {
	b = grow(b, wordBytes)
	word.Store64(b, len(b)-wordBytes, uint64(n))
	start, slots := len(b), nullBytes(n)
	b = grow(b, slots+n*wordBytes)
	for i := range n {
		from := i
		if order != nil {
			from = order[i]
		}
		var fault *contract.Fault
		b, fault = c.encode(b, start, i, slots+i*wordBytes, unsafe.Add(base, uintptr(from)*size), zero)
		if fault != nil {
			return b, fault
		}
	}
	return b, nil
}

// encodeMap appends the part of a MAP, in the order of its keys as packed rows of one column.
func (c *cell) encodeMap(b []byte, entries reflect.Value, zero Zero) ([]byte, *contract.Fault) {
	n := entries.Len()
	keys := reflect.MakeSlice(reflect.SliceOf(c.typ.Key()), n, n)
	elems := reflect.MakeSlice(reflect.SliceOf(c.typ.Elem()), n, n)
	packed, order := make([][]byte, n), make([]int, n)
	one := newPlan([]column{{cell: *c.key, name: "key"}}, false)
	for i, it := 0, entries.MapRange(); it.Next(); i++ {
		keys.Index(i).Set(it.Key())
		elems.Index(i).Set(it.Value())
		var fault *contract.Fault
		if packed[i], fault = one.Encode(nil, keys.Index(i).Addr().UnsafePointer(), Unsigned); fault != nil {
			return b, fault
		}
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return bytes.Compare(packed[i], packed[j]) })
	for i := 1; i < n; i++ {
		if bytes.Equal(packed[order[i-1]], packed[order[i]]) {
			return b, &contract.Fault{Code: contract.InvalidRow, Message: "a MAP has a key twice: two NaN, or pointers to equal values"}
		}
	}

	start := len(b)
	b = grow(b, 3*wordBytes)
	part := len(b)
	b, fault := c.key.encodeArray(b, keys.UnsafePointer(), c.typ.Key().Size(), n, order, Unsigned)
	if fault != nil {
		return b, fault
	}
	if b, fault = closePart(b, start, wordBytes, part); fault != nil {
		return b, fault
	}
	part = len(b)
	if b, fault = c.elem.encodeArray(b, elems.UnsafePointer(), c.typ.Elem().Size(), n, order, zero); fault != nil {
		return b, fault
	}
	return closePart(b, start, 2*wordBytes, part)
}

// closePart pads the part that begins at `part`, the last one, and points the slot to it.
func closePart(b []byte, start, slot, part int) ([]byte, *contract.Fault) {
	length := len(b) - part
	b = append(b, zeros[:-(len(b)-start)&(wordBytes-1)]...)
	if uint64(len(b)-start) > math.MaxUint32 {
		return b, tooLong()
	}
	word.Store64(b, start+slot, uint64(part-start)|uint64(length)<<32)
	return b, nil
}

var zeros [wordBytes]byte

func tooLong() *contract.Fault {
	return &contract.Fault{Code: contract.InvalidRow, Message: "a row is longer than 4 GiB"}
}

func floatBits(v float64, zero Zero) uint64 {
	if v != v {
		return nan
	}
	if v == 0 && zero == Unsigned {
		return 0
	}
	return math.Float64bits(v)
}

// isUTF8 looks at eight bytes at a time as long as they are ASCII.
func isUTF8(s string) bool {
	base := unsafe.Pointer(unsafe.StringData(s))
	i := 0
	for ; i+wordBytes <= len(s); i += wordBytes {
		if *(*uint64)(unsafe.Add(base, i))&0x8080_8080_8080_8080 != 0 {
			return utf8.ValidString(s[i:])
		}
	}
	for ; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return utf8.ValidString(s[i:])
		}
	}
	return true
}

// grow appends n zero bytes.
func grow(b []byte, n int) []byte {
	end := len(b) + n
	if end > cap(b) {
		b = slices.Grow(b, n)
	}
	b = b[:end]
	clear(b[end-n:])
	return b
}

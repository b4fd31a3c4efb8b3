package row

import (
	"math"
	"reflect"
	"time"
	"unsafe"

	"github.com/tidemill/tidemill/guest-sdk/go/internal/contract"
	"github.com/tidemill/tidemill/guest-sdk/go/internal/word"
)

// Decode reads a packed row into the value at dst, whose type is the plan's. With alias, text points into the row
// instead of being copied; bytes never do, since they can be written to.
//
// Rows of the host are valid, so this checks only what keeps memory safe and values whole.
func (p *Plan) Decode(row []byte, dst unsafe.Pointer, alias bool) *contract.Fault {
	if len(row) < p.fixed {
		return malformed()
	}
	base := unsafe.Pointer(unsafe.SliceData(row))
	nulls := len(p.columns) > 64 || len(p.columns) > 0 && *(*uint64)(base) != 0
	for i := range p.columns {
		c := &p.columns[i]
		at := unsafe.Add(dst, c.offset)
		slot := *(*uint64)(unsafe.Add(base, c.slot))
		// The most common columns here, without a call.
		if c.kind == int64Kind && !c.nullable && !nulls {
			*(*int64)(at) = int64(slot)
			continue
		}
		if c.kind == text && alias && !c.nullable && !nulls {
			part, ok := partOf(row, slot)
			if !ok {
				return malformed()
			}
			*(*string)(at) = unsafe.String(unsafe.SliceData(part), len(part))
			continue
		}
		isNull := nulls && row[i>>3]>>(i&7)&1 == 1
		if fault := c.decode(row, slot, isNull, at, alias); fault != nil {
			return within(c.name, fault)
		}
	}
	return nil
}

func (c *cell) decode(row []byte, slot uint64, isNull bool, at unsafe.Pointer, alias bool) *contract.Fault {
	if c.nullable {
		if isNull {
			*(*unsafe.Pointer)(at) = nil
			return nil
		}
		value := c.alloc()
		*(*unsafe.Pointer)(at) = value
		at = value
	} else if isNull {
		return &contract.Fault{Code: contract.NullValue, Message: "NULL in a field that is no pointer"}
	}
	switch c.kind {
	case boolean:
		*(*bool)(at) = slot&1 == 1
	case int8Kind:
		*(*int8)(at) = int8(slot)
	case int16Kind:
		*(*int16)(at) = int16(slot)
	case int32Kind, date:
		*(*int32)(at) = int32(slot)
	case int64Kind:
		*(*int64)(at) = int64(slot)
	case float32Kind:
		*(*float32)(at) = float32(math.Float64frombits(slot))
	case float64Kind:
		*(*float64)(at) = math.Float64frombits(slot)
	case timestamp:
		*(*time.Time)(at) = time.UnixMicro(int64(slot)).UTC()
	case decimal:
		return c.decodeDecimal(row, slot, (*Decimal)(at))
	default:
		part, ok := partOf(row, slot)
		if !ok {
			return malformed()
		}
		return c.decodePart(part, at, alias)
	}
	return nil
}

func (c *cell) decodePart(part []byte, at unsafe.Pointer, alias bool) *contract.Fault {
	switch c.kind {
	case text:
		if alias {
			*(*string)(at) = unsafe.String(unsafe.SliceData(part), len(part))
		} else {
			*(*string)(at) = string(part)
		}
		return nil
	case binary:
		*(*[]byte)(at) = append(make([]byte, 0, len(part)), part...)
		return nil
	case structure:
		return c.fields.Decode(part, at, alias)
	case array:
		values, fault := c.elem.decodeArray(part, c.typ, alias)
		if fault == nil {
			reflect.NewAt(c.typ, at).Elem().Set(values)
		}
		return fault
	default:
		return c.decodeMap(part, at, alias)
	}
}

// decodeArray reads the part of an ARRAY, or of one half of a MAP, into a slice.
func (c *cell) decodeArray(part []byte, slice reflect.Type, alias bool) (values reflect.Value, fault *contract.Fault) {
	if len(part) < wordBytes {
		return values, malformed()
	}
	count, row := word.Load64(part, 0), part[wordBytes:]
	// Every element takes at least a slot, so a count that passes here is no more than the bytes there are.
	if count > uint64(len(row)/wordBytes) || len(row) < nullBytes(int(count))+int(count)*wordBytes {
		return values, malformed()
	}
	n := int(count)
	values = reflect.MakeSlice(slice, n, n)
	base, size, slots := values.UnsafePointer(), slice.Elem().Size(), nullBytes(n)
	for i := range n {
		isNull := row[i>>3]>>(i&7)&1 == 1
		at := unsafe.Add(base, uintptr(i)*size)
		if fault := c.decode(row, word.Load64(row, slots+i*wordBytes), isNull, at, alias); fault != nil {
			return values, fault
		}
	}
	return values, nil
}

func (c *cell) decodeMap(part []byte, at unsafe.Pointer, alias bool) *contract.Fault {
	if len(part) < 3*wordBytes {
		return malformed()
	}
	keysPart, keysOk := partOf(part, word.Load64(part, wordBytes))
	elemsPart, elemsOk := partOf(part, word.Load64(part, 2*wordBytes))
	if !keysOk || !elemsOk {
		return malformed()
	}
	keys, fault := c.key.decodeArray(keysPart, reflect.SliceOf(c.typ.Key()), alias)
	if fault != nil {
		return fault
	}
	elems, fault := c.elem.decodeArray(elemsPart, reflect.SliceOf(c.typ.Elem()), alias)
	if fault != nil {
		return fault
	}
	if keys.Len() != elems.Len() {
		return malformed()
	}
	entries := reflect.MakeMapWithSize(c.typ, keys.Len())
	for i := range keys.Len() {
		entries.SetMapIndex(keys.Index(i), elems.Index(i))
	}
	reflect.NewAt(c.typ, at).Elem().Set(entries)
	return nil
}

func (c *cell) decodeDecimal(row []byte, slot uint64, to *Decimal) *contract.Fault {
	to.Scale = c.scale
	if c.precision <= slotDecimalDigits {
		to.Unscaled = Int128Of(int64(slot))
		return nil
	}
	part, ok := partOf(row, slot)
	if ok {
		to.Unscaled, ok = int128(part)
	}
	if !ok {
		return malformed()
	}
	return nil
}

// alloc makes memory for what a pointer points to.
func (c *cell) alloc() unsafe.Pointer {
	switch c.kind {
	case text:
		return unsafe.Pointer(new(string))
	case int64Kind:
		return unsafe.Pointer(new(int64))
	case float64Kind:
		return unsafe.Pointer(new(float64))
	default:
		return reflect.New(c.typ).UnsafePointer()
	}
}

// partOf is the variable part that a slot points to.
func partOf(row []byte, slot uint64) ([]byte, bool) {
	offset, length := slot&math.MaxUint32, slot>>32
	if offset+length > uint64(len(row)) {
		return nil, false
	}
	return row[offset : offset+length : offset+length], true
}

func malformed() *contract.Fault {
	return &contract.Fault{Code: contract.MalformedRow,
		Message: "a packed row does not have the columns that the type names: was it written by another type?"}
}

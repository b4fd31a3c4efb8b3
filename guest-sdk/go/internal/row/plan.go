// Package row reads and writes packed rows, the bytes of wit/README.md, from and into Go values.
//
// A [Plan] is made once per type, with package reflect; after that a row is a loop over columns with offsets into the
// value. Package reflect is then asked only for the memory of nested values. Everything written is canonical: equal
// rows are equal bytes.
package row

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/tidemill/tidemill/guest-sdk/go/internal/contract"
)

const (
	// Types nest at most this deep in a schema; the host refuses more.
	nestingMax = 16
	// A row has at most so many columns.
	columnsMax = 1024
	// Bytes of a slot, and the alignment of every part.
	wordBytes = 8
	// The column's name of a row that is a single value.
	valueColumn = "value"
)

// Plan knows how the values of a type are packed. A struct is a row of its fields; another type is a row of one column.
type Plan struct {
	columns []column
	// Bytes of null bitmap and slots.
	fixed int
	// Whether the columns have names of their own.
	named bool
}

// column is a field of a struct, and its place in the row.
type column struct {
	cell
	name   string
	offset uintptr // in the struct
	slot   int     // in the row
}

// cell is a value in a slot: a column, an element of an array, a key or value of a map.
type cell struct {
	kind     kind
	nullable bool         // the Go value is a pointer, and nil is NULL
	typ      reflect.Type // of the value, without the pointer
	ddl      string

	precision, scale uint8 // of a decimal
	fields           *Plan // of a STRUCT
	key, elem        *cell // of a MAP; of an ARRAY only elem
}

type kind uint8

const (
	boolean kind = iota
	int8Kind
	int16Kind
	int32Kind
	int64Kind
	float32Kind
	float64Kind
	text
	binary
	date
	timestamp
	decimal
	structure
	array
	mapping
)

var (
	timeType    = reflect.TypeFor[time.Time]()
	daysType    = reflect.TypeFor[Days]()
	decimalType = reflect.TypeFor[Decimal]()
)

// Of makes the plan of a type.
func Of(t reflect.Type) (*Plan, *contract.Fault) {
	return planOf(t, 0)
}

func planOf(t reflect.Type, depth int) (*Plan, *contract.Fault) {
	if !isStruct(t) {
		value, fault := cellOf(t, "", depth)
		if fault != nil {
			return nil, fault
		}
		return newPlan([]column{{cell: value, name: valueColumn}}, false), nil
	}
	var columns []column
	seen := map[string]bool{}
	for i := range t.NumField() {
		field := t.Field(i)
		name, option, _ := strings.Cut(field.Tag.Get("tidemill"), ",")
		if name == "-" || field.Name == "_" || !field.IsExported() {
			continue
		}
		if field.Anonymous {
			return nil, mismatch("field %s of %v is embedded: give it a name", field.Name, t)
		}
		if name == "" {
			name = snakeCase(field.Name)
		}
		if seen[strings.ToLower(name)] {
			return nil, mismatch("%v has two columns `%s` (upper and lower case are one)", t, name)
		}
		seen[strings.ToLower(name)] = true
		value, fault := cellOf(field.Type, option, depth)
		if fault != nil {
			return nil, within(name, fault)
		}
		columns = append(columns, column{cell: value, name: name, offset: field.Offset})
	}
	if len(columns) == 0 && t.NumField() > 0 {
		return nil, mismatch("%v has no column: the names of fields that are columns begin with a capital letter", t)
	}
	if len(columns) > columnsMax {
		return nil, mismatch("%v has %d columns, more than %d", t, len(columns), columnsMax)
	}
	return newPlan(columns, true), nil
}

func newPlan(columns []column, named bool) *Plan {
	bitmap := nullBytes(len(columns))
	for i := range columns {
		columns[i].slot = bitmap + i*wordBytes
	}
	return &Plan{columns: columns, fixed: bitmap + len(columns)*wordBytes, named: named}
}

// IsNull is whether a packed row is of one column, and that is NULL.
func (p *Plan) IsNull(row []byte) bool { return len(p.columns) == 1 && row[0]&1 == 1 }

// cellOf says which column a Go type is. option is the tag's: the digits of the decimals in the type.
func cellOf(t reflect.Type, option string, depth int) (cell, *contract.Fault) {
	c := cell{typ: t}
	if t.Kind() == reflect.Pointer {
		c.nullable, c.typ, t = true, t.Elem(), t.Elem()
		if t.Kind() == reflect.Pointer {
			return c, mismatch("a pointer to a pointer is no column")
		}
	}
	if option != "" && !holdsDecimals(t) {
		return c, mismatch("`%s` in the tag, but %v holds no tidemill.Decimal", option, t)
	}
	var fault *contract.Fault
	switch t.Kind() {
	case reflect.Bool:
		c.kind, c.ddl = boolean, "BOOLEAN"
	case reflect.Int8:
		c.kind, c.ddl = int8Kind, "TINYINT"
	case reflect.Int16:
		c.kind, c.ddl = int16Kind, "SMALLINT"
	case reflect.Int32:
		c.kind, c.ddl = int32Kind, "INT"
	case reflect.Int64:
		c.kind, c.ddl = int64Kind, "BIGINT"
	case reflect.Float32:
		c.kind, c.ddl = float32Kind, "FLOAT"
	case reflect.Float64:
		c.kind, c.ddl = float64Kind, "DOUBLE"
	case reflect.String:
		c.kind, c.ddl = text, "STRING"
	case reflect.Struct:
		fault = c.ofStruct(t, option, depth)
	case reflect.Slice:
		fault = c.ofSlice(t, option, depth)
	case reflect.Map:
		fault = c.ofMap(t, option, depth)
	case reflect.Int:
		if t.Size() != 8 {
			return c, mismatch("int has %d bits here: use int64", t.Size()*8)
		}
		c.kind, c.ddl = int64Kind, "BIGINT"
	default:
		return c, mismatch("%v is no column type", t)
	}
	return c, fault
}

func (c *cell) ofStruct(t reflect.Type, option string, depth int) *contract.Fault {
	switch {
	case t == timeType:
		c.kind, c.ddl = timestamp, "TIMESTAMP"
	case isOnly(t, daysType):
		c.kind, c.ddl = date, "DATE"
	case isOnly(t, decimalType):
		c.kind = decimal
		const form = "decimal(%d,%d)"
		_, err := fmt.Sscanf(option, form, &c.precision, &c.scale)
		if err != nil || option != fmt.Sprintf(form, c.precision, c.scale) {
			return mismatch("a Decimal needs its digits in the tag, as in `tidemill:\"price,decimal(10,2)\"`")
		}
		if c.precision < 1 || c.precision > PrecisionMax || c.scale > c.precision {
			return mismatch("DECIMAL(%d,%d): up to %d digits, and no more of them after the point", c.precision, c.scale, PrecisionMax)
		}
		c.ddl = fmt.Sprintf("DECIMAL(%d,%d)", c.precision, c.scale)
	default:
		if fault := checkDepth(depth); fault != nil {
			return fault
		}
		fields, fault := planOf(t, depth+1)
		if fault != nil {
			return fault
		}
		// Nested fields carry no NOT NULL: the host checks the columns of a row, the SDK what lies in them.
		parts := make([]string, len(fields.columns))
		for i, field := range fields.columns {
			parts[i] = quoted(field.name) + ": " + field.ddl
		}
		c.kind, c.fields, c.ddl = structure, fields, "STRUCT<"+strings.Join(parts, ", ")+">"
	}
	return nil
}

func (c *cell) ofSlice(t reflect.Type, option string, depth int) *contract.Fault {
	if t.Elem().Kind() == reflect.Uint8 {
		c.kind, c.ddl = binary, "BINARY"
		return nil
	}
	if fault := checkDepth(depth); fault != nil {
		return fault
	}
	elem, fault := cellOf(t.Elem(), option, depth+1)
	if fault != nil {
		return within("element", fault)
	}
	c.kind, c.elem, c.ddl = array, &elem, "ARRAY<"+elem.ddl+">"
	return nil
}

func (c *cell) ofMap(t reflect.Type, option string, depth int) *contract.Fault {
	if fault := checkDepth(depth); fault != nil {
		return fault
	}
	keyOption, elemOption := "", ""
	if holdsDecimals(t.Key()) {
		keyOption = option
	}
	if holdsDecimals(t.Elem()) {
		elemOption = option
	}
	key, fault := cellOf(t.Key(), keyOption, depth+1)
	if fault != nil {
		return within("key", fault)
	}
	if key.nullable {
		return mismatch("the key of a MAP cannot be a pointer: it is never NULL")
	}
	elem, fault := cellOf(t.Elem(), elemOption, depth+1)
	if fault != nil {
		return within("value", fault)
	}
	c.kind, c.key, c.elem, c.ddl = mapping, &key, &elem, "MAP<"+key.ddl+", "+elem.ddl+">"
	return nil
}

// isStruct is whether a type is a row, or a STRUCT: fields, and none of the columns that are structs in Go only.
func isStruct(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t != timeType && !isOnly(t, daysType) && !isOnly(t, decimalType)
}

// isOnly is whether a struct is a wrapper of one field of a type, as Date and Decimal of the SDK are.
func isOnly(t, only reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.NumField() == 1 && t.Field(0).Type == only
}

// holdsDecimals is whether the option of a tag reaches a decimal: through pointers, slices and maps, not into structs.
func holdsDecimals(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return holdsDecimals(t.Elem())
	case reflect.Map:
		return holdsDecimals(t.Key()) || holdsDecimals(t.Elem())
	default:
		return isOnly(t, decimalType)
	}
}

func checkDepth(depth int) *contract.Fault {
	if depth >= nestingMax {
		return mismatch("types nest deeper than %d", nestingMax)
	}
	return nil
}

func nullBytes(columns int) int { return (columns + 63) / 64 * wordBytes }

func mismatch(format string, args ...any) *contract.Fault {
	return &contract.Fault{Code: contract.SchemaMismatch, Message: fmt.Sprintf(format, args...)}
}

// within adds the place in a row where a fault was found.
func within(column string, fault *contract.Fault) *contract.Fault {
	if rest, nested := strings.CutPrefix(fault.Message, "column `"); nested {
		fault.Message = "column `" + column + "." + rest
	} else {
		fault.Message = "column `" + column + "`: " + fault.Message
	}
	return fault
}

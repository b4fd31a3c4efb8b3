package row

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The packed rows of wit/vectors, in both directions. Types of Go are made from the schemas, as an author would write
// them: pointers, because the columns are nullable.
//
// `also` and `invalid` are left out: the first is about JSON, the second about what a host refuses and never sends.

type vector struct {
	Name, Schema, Hex string
	Row               map[string]any
}

func vectors(t *testing.T) (valid, keys []vector) {
	t.Helper()
	file, err := os.Open("../../../../wit/vectors/packed-rows.json")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	decoder := json.NewDecoder(file)
	decoder.UseNumber()
	var all struct{ Valid, Keys []vector }
	if err := decoder.Decode(&all); err != nil {
		t.Fatal(err)
	}
	return all.Valid, all.Keys
}

func TestVectorsInBothDirections(t *testing.T) {
	valid, _ := vectors(t)
	for _, v := range valid {
		t.Run(v.Name, func(t *testing.T) {
			if v.Name == "map, keys are arrays" {
				t.Skip("a slice is no key of a map in Go")
			}
			plan, value := planFor(t, v)
			packed, fault := plan.Encode(nil, value.UnsafePointer(), Signed)
			if fault != nil {
				t.Fatal(*fault)
			}
			if got := hex.EncodeToString(packed); got != v.Hex {
				t.Errorf("packed as %s, want %s", got, v.Hex)
			}
			for _, alias := range []bool{false, true} {
				read := reflect.New(value.Elem().Type())
				if fault := plan.Decode(packed, read.UnsafePointer(), alias); fault != nil {
					t.Fatal(*fault)
				}
				again, _ := plan.Encode(nil, read.UnsafePointer(), Signed)
				if hex.EncodeToString(again) != v.Hex {
					t.Errorf("what was read is packed as %x, want %s", again, v.Hex)
				}
				if !hasPointerKeysOrNaN(v.Name) && !reflect.DeepEqual(read.Interface(), value.Interface()) {
					t.Errorf("read %v, want %v", read.Elem(), value.Elem())
				}
			}
		})
	}
}

func TestVectorsOfKeysAreWrittenWithOneZero(t *testing.T) {
	_, keys := vectors(t)
	for _, v := range keys {
		t.Run(v.Name, func(t *testing.T) {
			plan, value := planFor(t, v)
			packed, fault := plan.Encode(nil, value.UnsafePointer(), Unsigned)
			if fault != nil {
				t.Fatal(*fault)
			}
			if got := hex.EncodeToString(packed); got != v.Hex {
				t.Errorf("packed as %s, want %s", got, v.Hex)
			}
		})
	}
}

// hasPointerKeysOrNaN names the vectors whose values are not comparable in Go; their bytes are.
func hasPointerKeysOrNaN(name string) bool {
	return strings.Contains(name, "not finite") || name == "map, -0.0 as a key" || name == "map, keys are structs"
}

func planFor(t *testing.T, v vector) (*Plan, reflect.Value) {
	t.Helper()
	schema := &ddl{rest: v.Schema}
	fields := schema.fields("")
	goType := structOf(fields)
	value := reflect.New(goType)
	fill(value.Elem(), fields, v.Row)
	plan, fault := Of(goType)
	if fault != nil {
		t.Fatal(*fault)
	}
	return plan, value
}

// --- schemas as types

type field struct {
	name string
	typ  *ddlType
	null bool
}

type ddlType struct {
	name             string
	precision, scale int
	args             []*ddlType
	fields           []field
}

func structOf(fields []field) reflect.Type {
	columns := make([]reflect.StructField, len(fields))
	for i, f := range fields {
		tag := f.name
		if tag == "" {
			tag = "no tag can say it"
		}
		if option := f.typ.option(); option != "" {
			tag += "," + option
		}
		columns[i] = reflect.StructField{
			Name: fmt.Sprintf("F%d", i),
			Type: f.typ.goType(f.null),
			Tag:  reflect.StructTag(`tidemill:` + strconv.Quote(tag)),
		}
	}
	return reflect.StructOf(columns)
}

func (d *ddlType) option() string {
	if d.name == "DECIMAL" {
		return fmt.Sprintf("decimal(%d,%d)", d.precision, d.scale)
	}
	for _, arg := range d.args {
		if option := arg.option(); option != "" {
			return option
		}
	}
	return ""
}

type wrappedDays struct{ Days Days }
type wrappedDecimal struct{ Decimal Decimal }

func (d *ddlType) goType(null bool) reflect.Type {
	var t reflect.Type
	switch d.name {
	case "ARRAY":
		t = reflect.SliceOf(d.args[0].goType(true))
	case "MAP":
		t = reflect.MapOf(d.args[0].goType(false), d.args[1].goType(true))
	case "STRUCT":
		t = structOf(d.fields)
	default:
		t = map[string]reflect.Type{
			"BOOLEAN": reflect.TypeFor[bool](), "TINYINT": reflect.TypeFor[int8](), "SMALLINT": reflect.TypeFor[int16](),
			"INT": reflect.TypeFor[int32](), "BIGINT": reflect.TypeFor[int64](), "FLOAT": reflect.TypeFor[float32](),
			"DOUBLE": reflect.TypeFor[float64](), "STRING": reflect.TypeFor[string](), "BINARY": reflect.TypeFor[[]byte](),
			"DATE": reflect.TypeFor[wrappedDays](), "TIMESTAMP": timeType, "DECIMAL": reflect.TypeFor[wrappedDecimal](),
		}[d.name]
	}
	if null {
		return reflect.PointerTo(t)
	}
	return t
}

// --- JSON as values

func fill(to reflect.Value, fields []field, row map[string]any) {
	for i, f := range fields {
		set(to.Field(i), f.typ, row[f.name])
	}
}

func set(to reflect.Value, d *ddlType, from any) {
	if to.Kind() == reflect.Pointer {
		if from == nil {
			return
		}
		to.Set(reflect.New(to.Type().Elem()))
		to = to.Elem()
	}
	switch d.name {
	case "BOOLEAN":
		to.SetBool(from.(bool))
	case "FLOAT", "DOUBLE":
		text := fmt.Sprint(from)
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			panic(err)
		}
		to.SetFloat(v)
	case "STRING":
		to.SetString(from.(string))
	case "BINARY":
		b, err := base64.StdEncoding.DecodeString(from.(string))
		if err != nil {
			panic(err)
		}
		to.SetBytes(b)
	case "DATE":
		day, err := time.Parse(time.DateOnly, from.(string))
		if err != nil {
			panic(err)
		}
		to.Set(reflect.ValueOf(wrappedDays{Days(math.Floor(float64(day.Unix()) / 86400))}))
	case "TIMESTAMP":
		at, err := time.Parse(time.RFC3339, from.(string))
		if err != nil {
			panic(err)
		}
		to.Set(reflect.ValueOf(at.UTC()))
	case "DECIMAL":
		to.Set(reflect.ValueOf(wrappedDecimal{parse(from.(string))}))
	case "ARRAY":
		values := from.([]any)
		to.Set(reflect.MakeSlice(to.Type(), len(values), len(values)))
		for i, v := range values {
			set(to.Index(i), d.args[0], v)
		}
	case "MAP":
		to.Set(reflect.MakeMap(to.Type()))
		put := func(key, value any) {
			k, v := reflect.New(to.Type().Key()).Elem(), reflect.New(to.Type().Elem()).Elem()
			set(k, d.args[0], key)
			set(v, d.args[1], value)
			to.SetMapIndex(k, v)
		}
		if object, isObject := from.(map[string]any); isObject {
			for key, value := range object {
				put(key, value)
			}
		} else {
			for _, entry := range from.([]any) {
				put(entry.([]any)[0], entry.([]any)[1])
			}
		}
	case "STRUCT":
		fill(to, d.fields, from.(map[string]any))
	default:
		n, err := from.(json.Number).Int64()
		if err != nil {
			panic(err)
		}
		to.SetInt(n)
	}
}

func parse(text string) (d Decimal) {
	digits, negative := strings.CutPrefix(text, "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	var high, low uint64
	for _, c := range whole + fraction {
		high, low, _ = MulAdd(high, low, 10, uint64(c-'0'))
	}
	return Decimal{Unscaled: WithSign(high, low, negative), Scale: uint8(len(fraction))}
}

// --- a parser of DDL, for this test only

type ddl struct{ rest string }

// skip passes blanks, then the token if it is there.
func (d *ddl) skip(token string) bool {
	d.rest = strings.TrimLeft(d.rest, " ")
	after, found := strings.CutPrefix(d.rest, token)
	d.rest = after
	return found
}

func (d *ddl) fields(end string) (fields []field) {
	for d.skip(""); d.rest != "" && (end == "" || !d.skip(end)); d.skip(",") {
		d.skip("")
		name, rest := leadingName(d.rest)
		d.rest = rest
		d.skip(":")
		f := field{name: name, typ: d.typ(), null: true}
		if d.skip("NOT NULL") {
			f.null = false
		}
		fields = append(fields, f)
	}
	return fields
}

func (d *ddl) typ() *ddlType {
	d.skip("")
	end := strings.IndexFunc(d.rest, func(c rune) bool { return c < 'A' || c > 'Z' })
	if end < 0 {
		end = len(d.rest)
	}
	t := &ddlType{name: d.rest[:end]}
	d.rest = d.rest[end:]
	switch t.name {
	case "DECIMAL":
		inner, rest, _ := strings.Cut(d.rest[1:], ")")
		d.rest = rest
		precision, scale, _ := strings.Cut(inner, ",")
		t.precision, _ = strconv.Atoi(strings.TrimSpace(precision))
		t.scale, _ = strconv.Atoi(strings.TrimSpace(scale))
	case "ARRAY", "MAP":
		for d.skip("<"); !d.skip(">"); d.skip(",") {
			t.args = append(t.args, d.typ())
		}
	case "STRUCT":
		d.skip("<")
		t.fields = d.fields(">")
	}
	return t
}

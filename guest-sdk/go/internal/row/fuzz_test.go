package row

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"testing"
	"time"
	"unsafe"
)

// everything has a column of each type.
type everything struct {
	Bool    bool
	Tiny    int8
	Small   int16
	Int     *int32
	Big     int64
	Float   float32
	Double  *float64
	Text    string
	Binary  []byte
	Day     wrappedDays
	At      time.Time
	Price   wrappedDecimal `tidemill:"price,decimal(12,2)"`
	Huge    wrappedDecimal `tidemill:"huge,decimal(38,0)"`
	Texts   []*string
	Numbers [][]int64
	Counts  map[string]*int64
	Place   *struct {
		Name  string
		Inner []struct{ Tags map[int32]string }
	}
}

// FuzzDecode: bytes that are no row are told and touch no memory but their own; what is read from a row is packed again
// as a row that reads the same.
func FuzzDecode(f *testing.F) {
	plan, fault := Of(reflect.TypeFor[everything]())
	if fault != nil {
		f.Fatal(*fault)
	}
	text, number := "text", int64(-1)
	full := everything{
		Text: "a", Binary: []byte{1}, At: time.UnixMicro(1).UTC(), Texts: []*string{nil, &text}, Numbers: [][]int64{{1, 2}, {}},
		Counts: map[string]*int64{"x": &number, "y": nil}, Huge: wrappedDecimal{Decimal{Unscaled: Int128Of(-200)}},
	}
	for _, seed := range []everything{{}, full} {
		packed, fault := plan.Encode(nil, unsafe.Pointer(&seed), Signed)
		if fault != nil {
			f.Fatal(*fault)
		}
		f.Add(packed)
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, packed []byte) {
		for _, alias := range []bool{false, true} {
			var first, second everything
			if plan.Decode(bytes.Clone(packed), unsafe.Pointer(&first), alias) != nil {
				continue
			}
			again, fault := plan.Encode(nil, unsafe.Pointer(&first), Signed)
			if fault != nil {
				continue // text that is not UTF-8, a decimal of too many digits: a host does not send them
			}
			if fault := plan.Decode(again, unsafe.Pointer(&second), alias); fault != nil {
				t.Fatalf("%s of what was packed as %s", fault.Message, hex.EncodeToString(again))
			}
			third, _ := plan.Encode(nil, unsafe.Pointer(&second), Signed)
			if !bytes.Equal(third, again) {
				t.Errorf("packed as %x, then as %x", again, third)
			}
		}
	})
}

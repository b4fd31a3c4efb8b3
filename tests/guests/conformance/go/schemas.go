package main

import (
	"strconv"

	"github.com/tidemill/tidemill/guest-sdk/go"
)

// told is what a program of schema evolution is told to write.
type told struct {
	val  int64
	text string
}

func (t told) int() *int32     { return ptr(int32(t.val)) }
func (t told) string() *string { return ptr(t.text) }

// stored is a row type that a state variable is declared with.
type stored[T any] interface {
	// of is the row that is written.
	of(told told) T
}

func of[T stored[T]](told told) T {
	var none T
	return none.of(told)
}

// schemas are the row types, by the parameter `schema`.
var schemas = map[string]func(h *tidemill.Handle, name, kind string) (variable, error){
	"xy":        declare[xy],
	"xyz":       declare[xyz],
	"zxy":       declare[zxy],
	"x":         declare[x],
	"y":         declare[y],
	"xyy":       declare[xyy],
	"yx":        declare[yx],
	"long xy":   declare[longXy],
	"double xy": declare[doubleXy],
	"string xy": declare[stringXy],
	"nested a":  declare[nestedA],
	"nested ab": declare[nestedAb],
	"ints":      declare[ints],
	"longs":     declare[longs],
}

type (
	xy struct {
		X *int32
		Y *string
	}
	xyz struct {
		X *int32
		Y *string
		Z *int64
	}
	zxy struct {
		Z *int64
		X *int32
		Y *string
	}
	x   struct{ X *int32 }
	y   struct{ Y *string }
	xyy struct {
		X  *int32
		Yy *string
	}
	yx struct {
		Y *string
		X *int32
	}
	longXy struct {
		X *int64
		Y *string
	}
	doubleXy struct {
		X *float64
		Y *string
	}
	stringXy struct{ X, Y *string }
	nestedA  struct {
		X *int32
		N *a
	}
	nestedAb struct {
		X *int32
		N *ab
	}
	a  struct{ A *int32 }
	ab struct {
		A *int32
		B *string
	}
	ints  struct{ X []int32 }
	longs struct{ X []int64 }

	// Keys of maps.
	k    struct{ K *string }
	kl   struct{ K, K2 *string }
	intK struct{ K *int32 }
)

func (xy) of(t told) xy             { return xy{t.int(), t.string()} }
func (xyz) of(t told) xyz           { return xyz{t.int(), t.string(), ptr(t.val + 1)} }
func (zxy) of(t told) zxy           { return zxy{ptr(t.val + 1), t.int(), t.string()} }
func (x) of(t told) x               { return x{t.int()} }
func (y) of(t told) y               { return y{t.string()} }
func (xyy) of(t told) xyy           { return xyy{t.int(), t.string()} }
func (yx) of(t told) yx             { return yx{t.string(), t.int()} }
func (longXy) of(t told) longXy     { return longXy{ptr(t.val), t.string()} }
func (doubleXy) of(t told) doubleXy { return doubleXy{ptr(float64(t.val) + 0.5), t.string()} }
func (stringXy) of(t told) stringXy { return stringXy{ptr(strconv.FormatInt(t.val, 10)), t.string()} }
func (nestedA) of(t told) nestedA   { return nestedA{t.int(), &a{t.int()}} }
func (nestedAb) of(t told) nestedAb { return nestedAb{t.int(), &ab{t.int(), ptr("q")}} }
func (ints) of(t told) ints         { return ints{[]int32{*t.int()}} }
func (longs) of(t told) longs       { return longs{[]int64{t.val}} }
func (k) of(told) k                 { return k{ptr("k")} }
func (kl) of(told) kl               { return kl{ptr("k"), ptr("l")} }
func (intK) of(told) intK           { return intK{ptr[int32](5)} }

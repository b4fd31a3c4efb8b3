package row

import (
	"math/bits"

	"github.com/tidemill/tidemill/guest-sdk/go/internal/contract"
)

const (
	// PrecisionMax is the most digits of a decimal.
	PrecisionMax = 38
	// Digits of the largest decimals whose unscaled value fits a slot.
	slotDecimalDigits = 18
)

// Days since 1970-01-01. A struct that wraps it is a DATE.
type Days int32

// Decimal is the number Unscaled / 10^Scale. A struct that wraps it is a DECIMAL.
type Decimal struct {
	Unscaled Int128
	Scale    uint8
}

// Int128 is a signed integer of 128 bits, in two's complement.
type Int128 struct {
	High int64
	Low  uint64
}

// Int128Of widens an integer.
func Int128Of(n int64) Int128 { return Int128{High: n >> 63, Low: uint64(n)} }

// Negative is whether the number is smaller than zero.
func (n Int128) Negative() bool { return n.High < 0 }

// Magnitude is the absolute value, as two halves.
func (n Int128) Magnitude() (high, low uint64) {
	if !n.Negative() {
		return uint64(n.High), n.Low
	}
	low, carry := bits.Add64(^n.Low, 1, 0)
	return ^uint64(n.High) + carry, low
}

// WithSign is the number with this magnitude, which must be smaller than 2^127, and sign.
func WithSign(high, low uint64, negative bool) Int128 {
	if !negative {
		return Int128{High: int64(high), Low: low}
	}
	low, carry := bits.Add64(^low, 1, 0)
	return Int128{High: int64(^high + carry), Low: low}
}

// Int64 is the number, if it fits.
func (n Int128) Int64() (int64, bool) { return int64(n.Low), n.High == int64(n.Low)>>63 }

// MulAdd is n*factor + term for a magnitude n; false if that has more than 38 digits.
func MulAdd(high, low, factor, term uint64) (uint64, uint64, bool) {
	carry, low := bits.Mul64(low, factor)
	over, high := bits.Mul64(high, factor)
	low, c := bits.Add64(low, term, 0)
	high, c = bits.Add64(high, carry, c)
	if over != 0 || c != 0 || !fits(high, low, PrecisionMax) {
		return 0, 0, false
	}
	return high, low, true
}

// DivMod10 divides a magnitude by ten.
func DivMod10(high, low uint64) (quotientHigh, quotientLow, digit uint64) {
	quotientHigh, digit = high/10, high%10
	quotientLow, digit = bits.Div64(digit, low, 10)
	return quotientHigh, quotientLow, digit
}

// powers are 10^0 to 10^38, high and low half.
var powers = func() (table [PrecisionMax + 1][2]uint64) {
	table[0][1] = 1
	for i := 1; i < len(table); i++ {
		carry, low := bits.Mul64(table[i-1][1], 10)
		table[i] = [2]uint64{table[i-1][0]*10 + carry, low}
	}
	return table
}()

// fits is whether a magnitude has at most so many digits.
func fits(high, low uint64, digits uint8) bool {
	power := powers[digits]
	return high < power[0] || high == power[0] && low < power[1]
}

// unscaled is the number that a column of this scale and precision holds for a decimal.
func (c *cell) unscaled(d Decimal) (Int128, *contract.Fault) {
	high, low := d.Unscaled.Magnitude()
	ok := true
	for scale := d.Scale; scale < c.scale && ok; scale++ {
		high, low, ok = MulAdd(high, low, 10, 0)
	}
	for scale := d.Scale; scale > c.scale && ok; scale-- {
		var digit uint64
		high, low, digit = DivMod10(high, low)
		ok = digit == 0
	}
	if !ok || !fits(high, low, c.precision) {
		return Int128{}, &contract.Fault{Code: contract.OutOfRange,
			Message: "the number does not fit " + c.ddl + ": it has too many digits before or after the point"}
	}
	return WithSign(high, low, d.Unscaled.Negative()), nil
}

// bytes are big-endian two's complement in the least number of bytes that holds the sign.
func (n Int128) bytes(to []byte) []byte {
	var all [16]byte
	for i := range 8 {
		all[i], all[8+i] = byte(uint64(n.High)>>(56-8*i)), byte(n.Low>>(56-8*i))
	}
	start := 0
	for start < 15 && int8(all[start]) == int8(all[start+1])>>7 {
		start++
	}
	return append(to, all[start:]...)
}

// int128 is the number in bytes; false if they are none, or too many.
func int128(b []byte) (n Int128, ok bool) {
	if len(b) == 0 || len(b) > 16 {
		return n, false
	}
	n = Int128Of(int64(int8(b[0])))
	for _, x := range b[1:] {
		n = Int128{High: n.High<<8 | int64(n.Low>>56), Low: n.Low<<8 | uint64(x)}
	}
	return n, true
}

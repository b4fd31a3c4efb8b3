package tidemill

import (
	"math/big"
	"strings"

	"github.com/tidemill/tidemill/guest-sdk/go/internal/contract"
	"github.com/tidemill/tidemill/guest-sdk/go/internal/row"
)

// Decimal is a decimal number of up to 38 digits: a DECIMAL column, whose digits the field's tag gives, as in
// `tidemill:"price,decimal(10,2)"`. The tag holds for all decimals of the field's type, in slices and maps too.
//
// A number that is written with fewer digits after the point than its column has is the same number; one with more is
// an error, unless they are zeros.
type Decimal struct{ decimal row.Decimal }

// NewDecimal is the number unscaled / 10^scale. Scale is 0 to 38.
func NewDecimal(unscaled int64, scale uint8) Decimal {
	return Decimal{row.Decimal{Unscaled: row.Int128Of(unscaled), Scale: scale}}
}

// DecimalFromBig is the number unscaled / 10^scale; an error if it has more than 38 digits.
func DecimalFromBig(unscaled *big.Int, scale uint8) (Decimal, error) {
	return ParseDecimal(shift(unscaled.String(), scale))
}

// ParseDecimal reads a number as in -12.50: up to 38 digits, and a point.
func ParseDecimal(text string) (Decimal, error) {
	digits, negative := strings.CutPrefix(text, "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	if whole+fraction == "" || len(fraction) > row.PrecisionMax {
		return Decimal{}, noDecimal(text)
	}
	var high, low uint64
	for _, digit := range whole + fraction {
		ok := digit >= '0' && digit <= '9'
		if ok {
			high, low, ok = row.MulAdd(high, low, 10, uint64(digit-'0'))
		}
		if !ok {
			return Decimal{}, noDecimal(text)
		}
	}
	return Decimal{row.Decimal{Unscaled: row.WithSign(high, low, negative), Scale: uint8(len(fraction))}}, nil
}

// Unscaled is the number times 10^Scale; false if it does not fit 64 bits, where Big has it.
func (d Decimal) Unscaled() (int64, bool) { return d.decimal.Unscaled.Int64() }

// Big is the number times 10^Scale.
func (d Decimal) Big() *big.Int {
	high, low := d.decimal.Unscaled.Magnitude()
	unscaled := new(big.Int).SetUint64(high)
	unscaled.Lsh(unscaled, 64).Or(unscaled, new(big.Int).SetUint64(low))
	if d.decimal.Unscaled.Negative() {
		unscaled.Neg(unscaled)
	}
	return unscaled
}

// Scale is the number of digits after the point.
func (d Decimal) Scale() uint8 { return d.decimal.Scale }

// String is the number as in -12.50, with Scale digits after the point.
func (d Decimal) String() string {
	high, low := d.decimal.Unscaled.Magnitude()
	var digits []byte
	for high|low != 0 || len(digits) == 0 {
		var digit uint64
		high, low, digit = row.DivMod10(high, low)
		digits = append([]byte{byte('0' + digit)}, digits...)
	}
	if d.decimal.Unscaled.Negative() {
		digits = append([]byte{'-'}, digits...)
	}
	return shift(string(digits), d.decimal.Scale)
}

// shift puts the point so many digits from the right.
func shift(digits string, scale uint8) string {
	if scale == 0 {
		return digits
	}
	digits, negative := strings.CutPrefix(digits, "-")
	if missing := int(scale) + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	point := len(digits) - int(scale)
	digits = digits[:point] + "." + digits[point:]
	if negative {
		digits = "-" + digits
	}
	return digits
}

func noDecimal(text string) error {
	return NewError(contract.OutOfRange, "%.60q is no decimal number of up to %d digits", text, row.PrecisionMax)
}

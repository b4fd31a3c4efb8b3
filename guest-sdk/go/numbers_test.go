package tidemill_test

import (
	"math/big"
	"testing"
	"time"

	"github.com/tidemill/tidemill/guest-sdk/go"
)

func TestADecimalPrintsWhatItParses(t *testing.T) {
	for _, text := range []string{
		"0", "0.00", "-12.50", "99999999.99", "-0.01", "7", "1234567890123456789012345678.0123456789",
		"99999999999999999999999999999999999999", "-0.99999999999999999999999999999999999999",
	} {
		d, err := tidemill.ParseDecimal(text)
		must(t, err)
		if d.String() != text {
			t.Errorf("%s prints as %s", text, d)
		}
		again, err := tidemill.DecimalFromBig(d.Big(), d.Scale())
		must(t, err)
		if again != d {
			t.Errorf("%s is %s by way of big.Int", text, again)
		}
	}
}

func TestTextThatIsNoDecimalIsTold(t *testing.T) {
	for _, text := range []string{"", "-", ".", "1e5", "1,5", "1.2.3", "١", "999999999999999999999999999999999999999"} {
		_, err := tidemill.ParseDecimal(text)
		if err == nil {
			t.Errorf("%q is a decimal", text)
		}
		wantCode(t, err, "NUMERIC_VALUE_OUT_OF_RANGE")
	}
	_, err := tidemill.DecimalFromBig(new(big.Int).Exp(big.NewInt(10), big.NewInt(38), nil), 0)
	wantCode(t, err, "NUMERIC_VALUE_OUT_OF_RANGE")
}

func TestADecimalOf64BitsIsANumber(t *testing.T) {
	d := tidemill.NewDecimal(-1250, 2)
	n, ok := d.Unscaled()
	if d.String() != "-12.50" || n != -1250 || !ok || d.Scale() != 2 {
		t.Errorf("%s is %d, %v", d, n, ok)
	}
	large, err := tidemill.ParseDecimal("9223372036854775808")
	must(t, err)
	if _, ok := large.Unscaled(); ok {
		t.Error("2^63 fits 64 bits")
	}
}

func TestADateIsADayBeforeAndAfter1970(t *testing.T) {
	for text, days := range map[string]int32{"1970-01-01": 0, "1969-12-31": -1, "2000-02-29": 11_016, "0001-01-01": -719_162} {
		d := tidemill.DateFromDays(days)
		if d.String() != text || d.Days() != days || tidemill.DateOf(d.Time()) != d {
			t.Errorf("day %d is %s, want %s", days, d, text)
		}
	}
	east := time.FixedZone("east", 9*60*60)
	if got := tidemill.DateOf(time.Date(2024, 3, 1, 1, 0, 0, 0, east)); got != tidemill.NewDate(2024, time.February, 30) {
		t.Errorf("the day there is %s", got)
	}
}

package tidemill

import (
	"time"

	"github.com/tidemill/tidemill/guest-sdk/go/internal/row"
)

// Date is a calendar day: a DATE column. The zero Date is 1970-01-01.
type Date struct{ days row.Days }

const daySeconds = 24 * 60 * 60

// DateFromDays is the day so many days after 1970-01-01, or before.
func DateFromDays(days int32) Date { return Date{row.Days(days)} }

// DateOf is the day of a time, in the time's location.
func DateOf(t time.Time) Date {
	year, month, day := t.Date()
	return NewDate(year, month, day)
}

// NewDate is a day of the Gregorian calendar. Days and months out of range are carried over, as by time.Date.
func NewDate(year int, month time.Month, day int) Date {
	return Date{row.Days(time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix() / daySeconds)}
}

// Days are the days since 1970-01-01, negative before.
func (d Date) Days() int32 { return int32(d.days) }

// Time is the day's begin, in UTC.
func (d Date) Time() time.Time { return time.Unix(int64(d.days)*daySeconds, 0).UTC() }

// String is the day as in 2013-01-31.
func (d Date) String() string { return d.Time().Format(time.DateOnly) }

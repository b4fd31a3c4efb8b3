package main

import (
	"slices"
	"testing"
	"time"

	"github.com/tidemill/tidemill/guest-sdk/go"
	"github.com/tidemill/tidemill/guest-sdk/go/tidemilltest"
)

const minuteMs = int64(time.Minute / time.Millisecond)

func minute(n int64) time.Time { return time.UnixMilli(n * minuteMs).UTC() }

func events(minutes ...int64) (rows []Event) {
	for _, n := range minutes {
		rows = append(rows, Event{At: minute(n)})
	}
	return rows
}

func session(first, last, events int64) Session {
	return Session{User: "ann", First: minute(first), Last: minute(last), Ended: minute(last + 30), Events: events}
}

func query(t *testing.T) *tidemilltest.Query[string, Event, Session] {
	return tidemilltest.New(t, &Sessions{}).TimeMode(tidemill.TimeModeEventTime)
}

func wantSessions(t *testing.T, got []Session, want ...Session) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("emitted %+v, want %+v", got, want)
	}
}

func TestASessionEndsWhenTheWatermarkIsHalfAnHourPastItsLastEvent(t *testing.T) {
	q := query(t)
	wantSessions(t, q.Input("ann", events(0, 10)...).RunBatch())
	wantSessions(t, q.SetWatermarkMs(40*minuteMs-1).RunBatch())
	wantSessions(t, q.SetWatermarkMs(40*minuteMs).RunBatch(), session(0, 10, 2))
	if timers := q.Timers("ann"); len(timers) != 0 {
		t.Errorf("the timers are %v", timers)
	}
}

func TestAnEventBetweenTwoSessionsJoinsThem(t *testing.T) {
	q := query(t)
	q.Input("ann", events(50, 0)...).RunBatch()
	if timers := q.Timers("ann"); !slices.Equal(timers, []int64{30 * minuteMs, 80 * minuteMs}) {
		t.Errorf("the timers are %v", timers)
	}
	q.Input("ann", events(25)...).RunBatch()
	wantSessions(t, q.SetWatermarkMs(200*minuteMs).RunBatch(), session(0, 50, 3))
}

func TestSessionsEndOneByOne(t *testing.T) {
	q := query(t)
	q.Input("ann", events(0, 30, 100)...).RunBatch()
	wantSessions(t, q.SetWatermarkMs(100*minuteMs).RunBatch(), session(0, 0, 1), session(30, 30, 1))
	if timers := q.Timers("ann"); !slices.Equal(timers, []int64{130 * minuteMs}) {
		t.Errorf("the timers are %v", timers)
	}
}

package tidemillslog_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"github.com/tidemill/tidemill/guest-sdk/go"
	"github.com/tidemill/tidemill/guest-sdk/go/tidemillslog"
	"github.com/tidemill/tidemill/guest-sdk/go/tidemilltest"
)

type logging struct{ log func() }

func (logging) Init(*tidemill.Handle) error { return nil }

func (l logging) HandleInputRows(string, *tidemill.Rows[int64], *tidemill.Timers, *tidemill.Out[int64]) error {
	l.log()
	return nil
}

func TestRecordsReachTheHostWithTheirLevelAndAttributes(t *testing.T) {
	logger := slog.New(tidemillslog.New())
	q := tidemilltest.New(t, logging{func() {
		logger.Info("started", "rows", 3)
		logger.With("key", "a b").WithGroup("http").Warn("slow", "ms", 1.5)
		logger.Log(context.Background(), slog.LevelDebug-4, "fine")
	}})
	q.Input("a", 1).RunBatch()
	want := []tidemilltest.Message{
		{Level: tidemill.LevelInfo, Text: "started rows=3"},
		{Level: tidemill.LevelWarn, Text: `slow key="a b" http.ms=1.5`},
		{Level: tidemill.LevelTrace, Text: "fine"},
	}
	if got := q.TakeLog(); !slices.Equal(got, want) {
		t.Errorf("logged %v, want %v", got, want)
	}
}

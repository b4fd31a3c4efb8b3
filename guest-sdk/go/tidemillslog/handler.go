// Package tidemillslog hands log/slog records to the log of the host:
//
//	slog.SetDefault(slog.New(tidemillslog.New()))
//
// It is apart because log/slog makes a component larger.
package tidemillslog

import (
	"context"
	"log/slog"
	"strings"

	"github.com/tidemill/tidemill/guest-sdk/go"
)

// New makes a handler. The host says which levels are kept, so it takes them all. A record is its message and its
// attributes as key=value, without a time: that is the batch's.
func New() slog.Handler {
	h := &handler{line: &strings.Builder{}}
	h.text = slog.NewTextHandler(h.line, &slog.HandlerOptions{
		Level: slog.Level(-100),
		ReplaceAttr: func(groups []string, attr slog.Attr) slog.Attr {
			if len(groups) == 0 && (attr.Key == slog.TimeKey || attr.Key == slog.LevelKey || attr.Key == slog.MessageKey) {
				return slog.Attr{}
			}
			return attr
		},
	})
	return h
}

// handler writes a record by slog's own text handler, and takes the line from it.
type handler struct {
	text slog.Handler
	line *strings.Builder
}

func (h *handler) Enabled(context.Context, slog.Level) bool { return true }

func (h *handler) Handle(ctx context.Context, record slog.Record) error {
	h.line.Reset()
	if err := h.text.Handle(ctx, record); err != nil {
		return err
	}
	attributes := strings.TrimSuffix(h.line.String(), "\n")
	tidemill.Log(level(record.Level), strings.TrimSpace(record.Message+" "+attributes))
	return nil
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{text: h.text.WithAttrs(attrs), line: h.line}
}

func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{text: h.text.WithGroup(name), line: h.line}
}

// level is the host's level for one of slog, whose levels lie between the named ones too.
func level(l slog.Level) tidemill.Level {
	switch {
	case l >= slog.LevelError:
		return tidemill.LevelError
	case l >= slog.LevelWarn:
		return tidemill.LevelWarn
	case l >= slog.LevelInfo:
		return tidemill.LevelInfo
	case l >= slog.LevelDebug:
		return tidemill.LevelDebug
	default:
		return tidemill.LevelTrace
	}
}

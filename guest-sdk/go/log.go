package tidemill

import (
	"fmt"

	"github.com/tidemill/tidemill/guest-sdk/go/internal/contract"
)

// Level says how much a log message matters.
type Level uint8

// The levels of log messages.
const (
	LevelTrace Level = contract.Trace
	LevelDebug Level = contract.Debug
	LevelInfo  Level = contract.Info
	LevelWarn  Level = contract.Warn
	LevelError Level = contract.Error
)

func (l Level) String() string { return [...]string{"trace", "debug", "info", "warn", "error"}[l] }

// Log hands a message to the log of the host. It shows with the batch's log lines, and is bounded per batch. What a
// program prints is there too.
func Log(level Level, message string) { contract.Log(uint8(level), message) }

// Tracef logs what is finer than debugging.
func Tracef(format string, args ...any) { Log(LevelTrace, fmt.Sprintf(format, args...)) }

// Debugf logs for debugging.
func Debugf(format string, args ...any) { Log(LevelDebug, fmt.Sprintf(format, args...)) }

// Infof logs what is worth knowing.
func Infof(format string, args ...any) { Log(LevelInfo, fmt.Sprintf(format, args...)) }

// Warnf logs what is odd.
func Warnf(format string, args ...any) { Log(LevelWarn, fmt.Sprintf(format, args...)) }

// Errorf logs what went wrong. It fails nothing: that is a returned error's.
func Errorf(format string, args ...any) { Log(LevelError, fmt.Sprintf(format, args...)) }

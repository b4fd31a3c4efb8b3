package tidemill

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/tidemill/tidemill/guest-sdk/go/internal/contract"
)

// Error is an error with a stable code: a misuse that the SDK or the host found, or one of the author's own. Find it
// with errors.As; an error without one fails the batch with the code USER_CODE.
type Error struct {
	// Code in SCREAMING_SNAKE_CASE, e.g. ILLEGAL_STATE_STORE_VALUE.EMPTY_LIST_VALUE.
	Code string
	// Message says what happened, for people.
	Message string

	// The group whose op failed, where that need not be the group in hand.
	of *contract.Group
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// NewError makes an error with a code of the author's own, which users of the processor can match on.
func NewError(code, format string, args ...any) error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// errorOf is the error of a fault. A nil fault is no error.
func errorOf(fault *contract.Fault) error {
	if fault == nil {
		return nil
	}
	return &Error{Code: fault.Code, Message: fault.Message, of: fault.Of}
}

// failureOf is what the host is told of an error; inHand is the group whose handler ran.
func failureOf(err error, inHand *contract.Group) *contract.Failure {
	failure := &contract.Failure{Of: inHand, Code: contract.UserCode, Message: err.Error()}
	var coded *Error
	if errors.As(err, &coded) {
		if coded.Code != "" {
			failure.Code = coded.Code
		}
		// The host shows the code before the message.
		failure.Message = strings.TrimPrefix(failure.Message, coded.Code+": ")
		if coded.of != nil {
			failure.Of = coded.of
		}
	}
	return failure
}

// caught is the failure of a panic that was recovered, with the stack from the author's line on.
func caught(panicked any, inHand *contract.Group) *contract.Failure {
	err, isError := panicked.(error)
	if !isError {
		err = fmt.Errorf("panic: %v", panicked)
	}
	failure := failureOf(err, inHand)
	failure.Stack = stack()
	return failure
}

// stack is the stack of the goroutine that panics: what lies between the panic and the SDK's call of the author's code.
func stack() string {
	text := string(debug.Stack())
	if at := strings.LastIndex(text, "\npanic("); at >= 0 {
		// Two lines: the call of panic, and where it is.
		lines := strings.SplitN(text[at+1:], "\n", 3)
		text = lines[len(lines)-1]
	}
	if at := strings.Index(text, "\ngithub.com/tidemill/tidemill/guest-sdk/go.(*program["); at >= 0 {
		text = text[:at+1]
	}
	return text
}

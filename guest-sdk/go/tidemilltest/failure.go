package tidemilltest

import "github.com/tidemill/tidemill/guest-sdk/go/internal/contract"

// Failure is why a batch failed, as the host is told.
type Failure struct {
	// Code is the error's own, or USER_CODE.
	Code, Message string
	// Stack of a panic; empty for an error that was returned.
	Stack string
	// Group is the number of the group whose handler failed, counted from 1 in the order of the chunks; 0 for none.
	Group uint32
}

func (f *Failure) Error() string { return f.Code + ": " + f.Message }

func failureOf(failure *contract.Failure) *Failure {
	f := &Failure{Code: failure.Code, Message: failure.Message, Stack: failure.Stack}
	if failure.Of != nil {
		f.Group = *failure.Of
	}
	return f
}

package leat

// #include "shim.h"
import "C"

import (
	"context"
	"errors"
	"io/fs"
)

// Code is the number of an error, the same in all languages.
type Code int32

// Name is the code's name, for example "timeout"; "unknown" if there is no such code.
func (c Code) Name() string {
	if c < 0 || int(c) >= len(codeNames) {
		return "unknown"
	}
	return codeNames[c]
}

// Error is what the library reports. Compare with errors.Is and the variables of this package:
//
//	if errors.Is(err, leat.ErrNotFound) ...
type Error struct {
	Code   Code   // which error it is
	Detail int32  // errno of the system call that failed, or 0; with CodeTooLarge the most bytes allowed
	text   string // what failed and why, where more is known than the code
}

// Name is the name of the code, for example "timeout".
func (e *Error) Name() string { return e.Code.Name() }

// Error is a sentence for users. It names the topic or group and the option, where one was to be opened or made.
func (e *Error) Error() string {
	if e.text != "" {
		return "leat: " + e.text
	}
	return "leat: " + e.sentence()
}

// The sentence of the code.
func (e *Error) sentence() string {
	var buffer [C.LEAT_DESCRIPTION_SIZE]C.char
	C.leat_describe(C.int32_t(e.Code), C.int32_t(e.Detail), &buffer[0], C.LEAT_DESCRIPTION_SIZE)
	return C.GoString(&buffer[0])
}

// Is compares codes, not details.
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Code == e.Code
}

func errorOf(code, detail C.int32_t) error {
	if code == C.LEAT_OK {
		return nil
	}
	return &Error{Code: Code(code), Detail: int32(detail)}
}

// ErrHandleClosed is returned by all calls of what was closed, and by those that closing interrupted. It is
// also an ErrInvalidArgument and a fs.ErrClosed.
var ErrHandleClosed error = handleClosed{}

type handleClosed struct{}

func (handleClosed) Error() string { return "leat: this handle was closed" }
func (handleClosed) Is(target error) bool {
	return target == fs.ErrClosed || target == ErrInvalidArgument
}

// A context ended a wait: this is its error, and that of the library.
type contextError struct {
	context error
	library error
}

func (e *contextError) Error() string        { return "leat: " + e.context.Error() }
func (e *contextError) Unwrap() error        { return e.context }
func (e *contextError) Is(target error) bool { return errors.Is(e.library, target) }
func (e *contextError) As(target any) bool   { return errors.As(e.library, target) }

// The error for a context that has ended; or that is about to, because the library's clock was first.
func endOf(ctx context.Context, library error) error {
	reason := ctx.Err()
	if reason == nil {
		reason = context.DeadlineExceeded
	}
	if library == nil {
		library = ErrStopped
		if reason == context.DeadlineExceeded {
			library = ErrTimeout
		}
	}
	return &contextError{context: reason, library: library}
}

// NameOf is the name of an error's code: "ok" for nil, "unknown" for errors of others.
func NameOf(err error) string {
	var e *Error
	switch {
	case err == nil:
		return codeNames[0]
	case errors.Is(err, ErrHandleClosed):
		return CodeInvalidArgument.Name()
	case errors.As(err, &e):
		return e.Name()
	}
	return "unknown"
}

package fault

import (
	"errors"
	"fmt"
	"maps"
)

// Code names a kind of failure. It is itself an error, so that callers compare
// with errors.Is(err, code) and never with strings.
type Code string

// Internal is the code of an error that nobody gave a code: a bug or a surprise.
const Internal Code = "internal"

// Error returns the code's name.
func (c Code) Error() string { return string(c) }

// Error is a failure with a code.
type Error struct {
	Code Code   // what kind of failure, from the product's closed list
	Msg  string // one plain sentence without a full stop, safe to show
	Hint string // what the reader can do next; may be empty
	Err  error  // the cause, for the log only; may be nil

	Retryable bool           // the same call may work later
	Detail    map[string]any // facts for programs, safe to show; may be nil
}

// Error returns the sentence for people. The cause is not part of it.
func (e *Error) Error() string {
	if e.Msg == "" {
		return string(e.Code)
	}
	return e.Msg
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is the error's code.
func (e *Error) Is(target error) bool {
	c, ok := target.(Code)
	return ok && c == e.Code
}

// New returns a fault with a code and a sentence.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Msg: fmt.Sprintf(format, args...)}
}

// Wrap returns a fault with a code and a sentence around a cause.
func Wrap(code Code, cause error, format string, args ...any) *Error {
	return &Error{Code: code, Msg: fmt.Sprintf(format, args...), Err: cause}
}

// WithHint returns a copy of e with a hint.
func (e *Error) WithHint(format string, args ...any) *Error {
	c := *e
	c.Hint = fmt.Sprintf(format, args...)
	return &c
}

// Retry returns a copy of e that says the same call may work later.
func (e *Error) Retry() *Error {
	c := *e
	c.Retryable = true
	return &c
}

// With returns a copy of e with one more fact for programs.
func (e *Error) With(key string, value any) *Error {
	c := *e
	c.Detail = maps.Clone(e.Detail)
	if c.Detail == nil {
		c.Detail = map[string]any{}
	}
	c.Detail[key] = value
	return &c
}

// From returns the fault inside err. A bare [Code] becomes a fault of that code;
// an error without a code becomes [Internal], its text kept as the cause only.
// From(nil) is nil.
func From(err error) *Error {
	if err == nil {
		return nil
	}
	var f *Error
	if errors.As(err, &f) {
		return f
	}
	var c Code
	if errors.As(err, &c) {
		return &Error{Code: c, Err: err}
	}
	return &Error{Code: Internal, Msg: "something went wrong inside the program", Err: err}
}

package site

import (
	"context"
	"errors"
	"fmt"

	"github.com/berth-hpc/berth"
)

// Kind tells the failures of sites apart.
type Kind string

// The kinds.
const (
	Unreachable Kind = "unreachable" // it did not answer in time, or not at all
	Denied      Kind = "denied"      // it answered that Berth may not
	Conflict    Kind = "conflict"    // its state does not allow it at the moment
	NotFound    Kind = "not_found"   // it does not know the name
	Invalid     Kind = "invalid"     // it was asked for nonsense, or answered with it
)

// Error is a failure of a site.
type Error struct {
	Kind Kind
	Op   string // what was tried, such as "reserve"
	Msg  string // what happened, in the site's words where it gave any
	Hint string // what the operator can do; may be empty
	Err  error  // the cause; may be nil
	// Final says that the site will not do it for these users, accounts or in this
	// partition, wherever and whenever it is asked to.
	Final bool
}

// Error returns the operation, what happened and the hint.
func (e *Error) Error() string {
	text := e.Op + ": " + e.Msg
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	if e.Hint != "" {
		text += " (" + e.Hint + ")"
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Retry reports whether the same call can succeed later with nothing changed
// by the operator.
func (e *Error) Retry() bool { return e.Kind == Unreachable || e.Kind == Conflict }

// Code returns the error's code among those of the whole module.
func (e *Error) Code() berth.Code {
	switch e.Kind {
	case Denied:
		return berth.Denied
	case Conflict:
		return berth.Conflict
	case NotFound:
		return berth.NotFound
	case Invalid:
		return berth.Invalid
	}
	return berth.Unavailable
}

// Errorf returns an Error without hint or cause.
func Errorf(kind Kind, op, format string, args ...any) *Error {
	return &Error{Kind: kind, Op: op, Msg: fmt.Sprintf(format, args...)}
}

// IsFinal reports whether an error of a site is final, also behind other errors.
func IsFinal(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Final
}

// KindOf returns the kind of an error of a site, also behind other errors, and
// that of a context that ended, Unreachable. It is empty for other errors.
func KindOf(err error) Kind {
	var e *Error
	var wrong *berth.Error
	switch {
	case errors.As(err, &e):
		return e.Kind
	case errors.As(err, &wrong) && wrong.Code == berth.Invalid:
		return Invalid
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return Unreachable
	}
	return ""
}

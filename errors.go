package berth

import "fmt"

// Code classifies a mistake of the caller or of the world. Every front end
// maps codes to its own statuses in one table.
type Code string

// The codes.
const (
	Invalid     Code = "invalid"     // the input is malformed or contradicts itself
	Conflict    Code = "conflict"    // the state does not allow it, for example PEs already taken
	NotFound    Code = "not_found"   // nothing has that name
	Denied      Code = "denied"      // the caller has no right to it
	Exhausted   Code = "exhausted"   // a limit on use was reached
	Unavailable Code = "unavailable" // a needed component does not answer
	Internal    Code = "internal"    // the fault is ours
)

// Error is a mistake of the caller or user: what kind, in which field, and
// what would have been right. An ordinary "no" to a valid request is a
// Refusal, never an Error.
type Error struct {
	Code  Code
	Field string // empty if no single field is at fault
	Msg   string // for people; nothing parses it
}

// Error returns "field: message", or the message alone.
func (e *Error) Error() string {
	if e.Field == "" {
		return e.Msg
	}
	return e.Field + ": " + e.Msg
}

// Errorf returns an *Error of the given code and field.
func Errorf(code Code, field, format string, args ...any) *Error {
	return &Error{Code: code, Field: field, Msg: fmt.Sprintf(format, args...)}
}

package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"syscall"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
)

// statuses maps the code of an error to a status. Three conflicts have statuses of
// their own by their field.
var statuses = []struct {
	code   berth.Code
	field  string // of that field alone, if not empty
	status int
}{
	{berth.Invalid, "", http.StatusUnprocessableEntity},
	{berth.Conflict, "version", http.StatusPreconditionFailed},          // If-Match is stale
	{berth.Conflict, "idempotency_key", http.StatusUnprocessableEntity}, // used for something else before
	{berth.Conflict, "key", http.StatusUnprocessableEntity},             // of a task; used for another task before
	{berth.Conflict, "", http.StatusConflict},
	{berth.NotFound, "", http.StatusNotFound},
	{berth.Denied, "", http.StatusForbidden},
	{berth.Exhausted, "journal", http.StatusServiceUnavailable}, // its disk is full
	{berth.Exhausted, "", http.StatusTooManyRequests},
	{berth.Unavailable, "", http.StatusServiceUnavailable},
	{berth.Internal, "", http.StatusInternalServerError},
}

// statusOf returns the status of an error.
func statusOf(e *berth.Error) int {
	for _, s := range statuses {
		if s.code == e.Code && (s.field == "" || s.field == e.Field) {
			return s.status
		}
	}
	return http.StatusInternalServerError
}

// problemOf turns an error into a problem. An internal fault is told
// without its text, which may name what the asker must not see; known is false
// then.
func problemOf(err error) (p *form.Problem, known bool) {
	coded := codedErrors(err)
	switch {
	case len(coded) > 0:
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		coded = []*berth.Error{{Code: berth.Unavailable, Msg: "no answer in time; whether it was done can be seen later"}}
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		coded = []*berth.Error{{Code: berth.Unavailable, Msg: "no room left on the disk of the service; nothing was changed, so ask again when there is"}}
	default:
		return problem(http.StatusInternalServerError, berth.Internal, "an internal error; the log of the service says more"), false
	}
	p = problem(statusOf(coded[0]), coded[0].Code, "")
	if len(coded) == 1 && coded[0].Field == "" {
		p.Detail = coded[0].Msg
		return p, coded[0].Code != berth.Internal
	}
	details := make([]string, len(coded))
	for i, e := range coded {
		details[i] = e.Error()
		p.Errors = append(p.Errors, form.Fault{Field: e.Field, Detail: e.Msg})
	}
	p.Detail = strings.Join(details, "; ")
	return p, coded[0].Code != berth.Internal
}

// codedErrors returns the mistakes in an error, and nothing if there is
// something else in it.
func codedErrors(err error) []*berth.Error {
	if several, is := err.(interface{ Unwrap() []error }); is {
		var all []*berth.Error
		for _, one := range several.Unwrap() {
			coded := codedErrors(one)
			if coded == nil {
				return nil
			}
			all = append(all, coded...)
		}
		return all
	}
	if coder, is := errors.AsType[interface {
		error
		Code() berth.Code
	}](err); is {
		return []*berth.Error{{Code: coder.Code(), Msg: coder.Error()}} // of a site
	}
	if coded, is := errors.AsType[*berth.Error](err); is {
		return []*berth.Error{coded}
	}
	return nil
}

func problem(status int, code berth.Code, detail string) *form.Problem {
	return &form.Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Code: code, Detail: detail}
}

// writeProblem answers with a problem.
func writeProblem(w http.ResponseWriter, p *form.Problem) {
	data, err := json.Marshal(p)
	if err != nil {
		panic("api: a problem cannot be written: " + err.Error())
	}
	h := w.Header()
	h.Del("ETag")
	h.Set("Content-Type", form.ProblemType)
	switch p.Status {
	case http.StatusUnauthorized:
		h.Add("WWW-Authenticate", "Bearer")
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		h.Set("Retry-After", "1")
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(data, '\n')) // who has gone need not be told
}

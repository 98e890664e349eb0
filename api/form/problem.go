package form

import (
	"errors"

	"github.com/berth-hpc/berth"
)

// ProblemType is the media type of a problem.
const ProblemType = "application/problem+json"

// Problem is an error as RFC 9457 has it.
type Problem struct {
	Type   string     `json:"type"`
	Title  string     `json:"title"`
	Status int        `json:"status"`
	Detail string     `json:"detail,omitempty"`
	Code   berth.Code `json:"code"`
	Errors []Fault    `json:"errors,omitempty"` // every field that is at fault
	// Leader is the address of the service that leads, where the one that was asked stands by.
	Leader string `json:"leader,omitempty"`
}

// Fault is what is wrong with one field.
type Fault struct {
	Field  string `json:"field"`
	Detail string `json:"detail"`
}

// Err returns the problem as a *berth.Error, or as several that are joined.
func (p *Problem) Err() error {
	if len(p.Errors) == 0 {
		return &berth.Error{Code: p.Code, Msg: p.Detail}
	}
	errs := make([]error, len(p.Errors))
	for i, f := range p.Errors {
		errs[i] = &berth.Error{Code: p.Code, Field: f.Field, Msg: f.Detail}
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
)

// The exit codes. Scripts rely on them; they never change their meaning.
const (
	exitOK          = 0
	exitFailed      = 1 // the fault is ours or the world's, or check found violations
	exitUsage       = 2 // usage or bad input
	exitRefused     = 3
	exitNotFound    = 4
	exitDenied      = 5
	exitConflict    = 6
	exitTimeout     = 7
	exitUnreachable = 8
	exitFault       = 9   // a fault of the program stopped the service; starting again goes on
	exitFaultAgain  = 10  // and starting again meets it again
	exitInterrupted = 130 // 128 + SIGINT, as shells have it
)

// exitCodes maps the code of a berth.Error to an exit code.
var exitCodes = map[berth.Code]int{
	berth.Invalid:     exitUsage,
	berth.NotFound:    exitNotFound,
	berth.Denied:      exitDenied,
	berth.Conflict:    exitConflict,
	berth.Exhausted:   exitRefused,
	berth.Unavailable: exitUnreachable,
	berth.Internal:    exitFailed,
}

// errViolations ends check when it has told what is wrong with a schedule.
var errViolations = errors.New("the schedule is not valid")

// interrupted ends a command that Ctrl-C stopped; it says what was kept.
type interrupted struct{ kept string }

func (e *interrupted) Error() string { return "interrupted; " + e.kept }

// usageError is a mistake on the command line. It points to a command's help.
type usageError struct {
	command string // for example "berth sim"
	msg     string
}

func (e *usageError) Error() string { return e.msg }

// exitCode returns the exit code of what a command returned.
func exitCode(err error) int {
	var (
		usage   *usageError
		stopped *interrupted
		coded   *berth.Error
		there   *site.Error
		plain   *exitError
		fault   *service.Fault
	)
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &plain):
		return plain.code
	case errors.As(err, &fault) && fault.Again():
		return exitFaultAgain
	case errors.As(err, &fault):
		return exitFault
	case errors.As(err, &stopped):
		return exitInterrupted
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &coded):
		if code, known := exitCodes[coded.Code]; known {
			return code
		}
	case errors.As(err, &there):
		return exitCodes[there.Code()]
	case errors.Is(err, context.DeadlineExceeded):
		return exitTimeout
	}
	return exitFailed
}

// report tells people what a command returned and gives the exit code.
func (a *app) report(err error) int {
	var usage *usageError
	switch {
	case err == nil, errors.Is(err, errViolations), errors.As(err, new(*exitError)):
	case errors.As(err, &usage):
		a.say("berth: %s", usage.msg)
		a.say("Run \"%s --help\" for usage.", usage.command)
	default:
		a.say("berth: %s", err)
	}
	return exitCode(err)
}

// meanwhile says something on stderr if what is done takes longer than two seconds; done
// ends that.
func (a *app) meanwhile(format string, args ...any) (done func()) {
	said := make(chan struct{})
	timer := time.AfterFunc(2*time.Second, func() {
		defer close(said)
		a.say(format, args...)
	})
	return func() {
		if !timer.Stop() {
			<-said
		}
	}
}

// say writes a message on a line of its own to stderr. A reader that is gone
// cannot be told.
func (a *app) say(format string, args ...any) {
	_, _ = fmt.Fprintf(a.stderr, format+"\n", args...)
}

package fake

import (
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
)

// What goes wrong with a call.
const (
	Down   = "down"   // not done, and the caller learns that the site is unreachable
	Unsent = "unsent" // not done, and the caller cannot know
	Lost   = "lost"   // done, but the answer is lost
	Slow   = "slow"   // done, and the answer takes some seconds; beyond the time limit it is lost
	Late   = "late"   // the answer is lost, and it is done some seconds later
	Twice  = "twice"  // done, and done once more some seconds later
	Wrong  = "wrong"  // done otherwise than asked; an observation leaves out our reservations
	Stale  = "stale"  // an observation is the one before
	Lie    = "lie"    // done, but said to be refused
	Refuse = "refuse" // not done, and refused for lack of room
	Deny   = "deny"   // not done, and said to be forbidden
)

var whats = []string{Down, Unsent, Lost, Slow, Late, Twice, Wrong, Stale, Lie, Refuse, Deny}

// timed are those that take a number of seconds.
var timed = []string{Slow, Late, Twice}

// Operations that faults can befall; All is each of them.
const (
	All      = "*"
	Describe = "describe"
	Observe  = "observe"
	Reserve  = "reserve"
	Change   = "change"
	Release  = "release"
	Submit   = "submit"
	Cancel   = "cancel"
	Launch   = "launch"
	Drain    = "drain"
	Resume   = "resume"
)

var operations = []string{All, Describe, Observe, Reserve, Change, Release, Submit, Cancel, Launch, Drain, Resume}

// Fault says what goes wrong with which call. It prints and reads as
// "reserve 2 late 30": the second Reserve after the fault was injected, and
// "observe * down": every Observe.
type Fault struct {
	Op    string
	Nth   int // which call of those to come, from 1; 0 is every one
	What  string
	After berth.Duration // with Slow, Late and Twice
}

// String returns the fault in the form that ParseFaults reads.
func (f Fault) String() string {
	text := f.Op + " * " + f.What
	if f.Nth > 0 {
		text = f.Op + " " + strconv.Itoa(f.Nth) + " " + f.What
	}
	if slices.Contains(timed, f.What) {
		text += " " + strconv.FormatInt(int64(f.After), 10)
	}
	return text
}

// ParseFaults reads faults parted by semicolons. Errors are of code Invalid.
func ParseFaults(text string) ([]Fault, error) {
	var faults []Fault
	for item := range strings.SplitSeq(text, ";") {
		f, why := parseFault(strings.Fields(item))
		if why != "" {
			return nil, berth.Errorf(berth.Invalid, "faults", "%q: %s; want such as \"reserve 2 late 30\" or \"observe * down\"", strings.TrimSpace(item), why)
		}
		faults = append(faults, f)
	}
	return faults, nil
}

// parseFault reads one fault, and says why it is none.
func parseFault(words []string) (Fault, string) {
	if len(words) < 3 {
		return Fault{}, "too few words"
	}
	f := Fault{Op: words[0], What: words[2]}
	switch {
	case !slices.Contains(operations, f.Op):
		return f, "no such operation"
	case !slices.Contains(whats, f.What):
		return f, "no such fault"
	case slices.Contains(timed, f.What) != (len(words) == 4) || len(words) > 4:
		return f, "a number of seconds belongs to " + strings.Join(timed, ", ") + " alone"
	}
	if words[1] != All {
		n, ok := number(words[1])
		if !ok || n < 1 {
			return f, "which call is not a number from 1"
		}
		f.Nth = int(n)
	}
	if len(words) == 4 {
		n, ok := number(words[3])
		if !ok {
			return f, "no number of seconds"
		}
		f.After = berth.Duration(n)
	}
	return f, ""
}

func number(text string) (int64, bool) {
	n, err := strconv.ParseUint(text, 10, 31)
	return int64(n), err == nil
}

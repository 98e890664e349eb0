// Package notice says what users are told about their reservations: the kinds of
// notices, when one that failed is tried again, the signature of Standard Webhooks,
// and texts for chats and e-mail. It sends nothing and knows no clock (package service keeps
// what is owed to receivers, package api/courier sends it).
package notice

import (
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
)

// Kind is what a notice is about.
type Kind string

// The kinds.
const (
	Granted   Kind = "granted"
	Refused   Kind = "refused"
	Moved     Kind = "moved"
	Degraded  Kind = "degraded"
	Whole     Kind = "whole"
	Lost      Kind = "lost"
	Starting  Kind = "starting"
	Unused    Kind = "unused"
	Ending    Kind = "ending"
	Deadline  Kind = "deadline"
	Cancelled Kind = "cancelled"
	Ended     Kind = "ended"
	// Test and Gap are told to every receiver, whatever kinds it wants.
	Test Kind = "test"
	Gap  Kind = "gap"
)

// About is a kind that receivers can choose, with what it is about.
type About struct {
	Kind  Kind
	About string
}

var table = []About{
	{Granted, "a reservation or a workflow is promised"},
	{Refused, "a request is refused"},
	{Moved, "a promise has another place, other PEs, another time or length"},
	{Degraded, "PEs of a promise are out of use, and none are free instead"},
	{Whole, "a promise has all of its PEs again"},
	{Lost, "a promise is over without having been kept or used: lost, failed, not confirmed in time, not used"},
	{Starting, "a promise starts soon"},
	{Unused, "a promise has started and nothing runs in it so far"},
	{Ending, "a promise ends soon"},
	{Deadline, "a workflow can no longer meet its deadline"},
	{Cancelled, "a promise or a request was cancelled"},
	{Ended, "a promise has come to its end, or was given back after its start"},
}

// Kinds lists the kinds that receivers can choose.
func Kinds() []About { return slices.Clone(table) }

// Known reports whether receivers can choose a kind.
func Known(k Kind) bool {
	return slices.ContainsFunc(table, func(a About) bool { return a.Kind == k })
}

// OfChange returns the kind of notice that a change of a reservation is told by; false if it is
// told by none. A reservation that is resized lacked some PEs before the change, and lacks some after it, or none.
func OfChange(kind change.Kind, lacked, missing berth.Count) (Kind, bool) {
	switch kind {
	case change.Accepted:
		return Granted, true
	case change.Refused:
		return Refused, true
	case change.Moved, change.Modified, change.Extended:
		return Moved, true
	case change.Resized:
		switch {
		case missing > 0:
			return Degraded, true
		case lacked > 0:
			return Whole, true
		}
		return Moved, true // to other PEs
	case change.Lost, change.Failed, change.Rejected, change.NoShow, change.Expired:
		return Lost, true
	case change.Withdrawn, change.Cancelled:
		return Cancelled, true
	case change.Ended:
		return Ended, true
	}
	return "", false
}

// ages are how long after the first try a notice is tried again: close at first, for receivers
// that restart, and up to a day, for those that are repaired by people.
var ages = []berth.Duration{5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400}

// Next returns when a notice is tried again that was tried some times, first at a time; ok is false
// if it is not: then it is a dead letter. Up to a tenth is added, by its number, so that what
// failed together is not tried together.
func Next(first berth.Time, tries int, number uint64) (at berth.Time, ok bool) {
	if tries < 1 {
		return first, true
	}
	if tries > len(ages) {
		return 0, false
	}
	age := ages[tries-1]
	spread := number * 0x9e3779b97f4a7c15 >> 32 // Fibonacci hashing
	return first.Add(age + berth.Duration(spread%uint64(age/10+1))), true
}

// Patience is for how long a receiver may fail without a success between before it is disabled.
const Patience berth.Duration = 4 * 86_400

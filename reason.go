package berth

import "slices"

// Reason says why a valid request was not served. The list is closed.
type Reason string

// The reasons, in the order in which the engine tests for them at arrival;
// Expired, RefusedConflict and SiteRefused arise later.
const (
	TooLarge        Reason = "too_large"        // more PEs than any pool has
	NoSuitableSite  Reason = "no_suitable_site" // no site has the hardware
	NoSoftware      Reason = "no_software"      // no site has the program and version
	NoLicence       Reason = "no_licence"       // the program is there, a licence never is
	DeadlineMissed  Reason = "deadline_missed"  // impossible even on an empty site
	PolicyRefused   Reason = "policy_refused"   // an admission policy said no
	Quota           Reason = "quota"            // the user's own limit is reached
	NoCapacity      Reason = "no_capacity"      // others hold the PEs throughout the window
	Expired         Reason = "expired"          // a hold or an offer ran out
	RefusedConflict Reason = "conflict"         // another request was faster
	SiteRefused     Reason = "site_refused"     // its site will not have it, however often it is asked
)

// Reasons lists every reason in the order of the engine's tests.
func Reasons() []Reason {
	return []Reason{
		TooLarge, NoSuitableSite, NoSoftware, NoLicence, DeadlineMissed,
		PolicyRefused, Quota, NoCapacity, Expired, RefusedConflict, SiteRefused,
	}
}

// Rank returns the position of r in Reasons, or -1 for an unknown one. Among
// the refusals of several sites the one of highest rank got furthest and is
// the one to report.
func (r Reason) Rank() int { return slices.Index(Reasons(), r) }

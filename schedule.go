package berth

// Kind says what a line of a schedule file is about.
type Kind string

// The kinds of line.
const (
	KindRequest Kind = "request"
	KindBooking Kind = "booking"
	KindOutage  Kind = "outage"
	KindStaging Kind = "staging" // data on their way to the site of the request of that id
	KindJob     Kind = "job"
)

// Line is one line of a schedule file (JSON Lines): a request with its
// decision, or a booking. Times are whole seconds of the workload's own clock.
// A refused request carries a reason and no start, end or pes. The same form
// without the decision is a workload.
type Line struct {
	ID            string    `json:"id"`
	Kind          Kind      `json:"kind"`
	Site          string    `json:"site,omitempty"`
	Pool          string    `json:"pool,omitempty"`
	User          string    `json:"user,omitempty"`
	Workflow      string    `json:"workflow,omitempty"`
	Task          string    `json:"task,omitempty"`
	After         []string  `json:"after,omitempty"` // ids that must end first
	Part          int       `json:"part,omitempty"`  // 1.. among parts that share an id
	Arrival       Time      `json:"arrival"`
	Ready         Time      `json:"ready"`
	Deadline      Time      `json:"deadline"`
	Duration      Duration  `json:"duration"` // as reserved
	NPE           Count     `json:"npe"`
	Variants      []Variant `json:"variants,omitempty"`
	Accepted      bool      `json:"accepted"`
	Reason        Reason    `json:"reason,omitempty"`
	Start         *Time     `json:"start,omitempty"`
	End           *Time     `json:"end,omitempty"`
	PEs           PESet     `json:"pes,omitzero"`
	PromisedStart *Time     `json:"promised_start,omitempty"`
	ActualEnd     *Time     `json:"actual_end,omitempty"`
	// Kilobytes, of 1000 bytes, is how much a staging moves, where transfers share
	// an uplink. The data of one request may have several stagings, one after the
	// other.
	Kilobytes    int64 `json:"kilobytes,omitempty"`
	Requirements       // of the request
}

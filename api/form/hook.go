package form

import "github.com/berth-hpc/berth"

// Hook is a receiver of notices. Secret is there only in the answers to making it and to rotating
// its secret; its address is in none.
type Hook struct {
	ID       string         `json:"id"`
	User     string         `json:"user"`
	Form     string         `json:"form"`
	Host     string         `json:"host"` // of its address
	Note     string         `json:"note,omitempty"`
	Kinds    []string       `json:"kinds"`
	Site     string         `json:"site,omitempty"`
	Text     string         `json:"text,omitempty"`
	Starts   berth.Duration `json:"starts"` // seconds, as Ends and Unused
	Ends     berth.Duration `json:"ends"`
	Unused   berth.Duration `json:"unused"`
	Created  Time           `json:"created"`
	Rotated  Time           `json:"rotated,omitzero"`
	Disabled string         `json:"disabled,omitempty"` // why nothing is sent
	Failing  Time           `json:"failing,omitzero"`   // since when each try has failed
	Missed   int            `json:"missed,omitempty"`   // notices that it will not be sent
	Waiting  int            `json:"waiting"`
	Dead     int            `json:"dead"`
	Last     *Try           `json:"last,omitempty"`
	Secret   string         `json:"secret,omitempty"`
}

// Hooks is a list of receivers.
type Hooks struct {
	Hooks []Hook `json:"hooks"`
}

// Try is an attempt to send a notice. Without trouble the receiver has taken it.
type Try struct {
	At      Time   `json:"at"`
	Status  int    `json:"status,omitempty"` // of the answer; missing if there was none
	Trouble string `json:"trouble,omitempty"`
}

// Delivery is a notice for a receiver, and how far it is: waiting, dead or delivered.
type Delivery struct {
	ID          string `json:"id"` // that the receiver gets
	Kind        string `json:"kind"`
	At          Time   `json:"at"`
	State       string `json:"state"`
	Reservation string `json:"reservation,omitempty"` // its id
	Workflow    string `json:"workflow,omitempty"`    // its id
	Next        Time   `json:"next,omitzero"`         // when it is tried, of one that waits
	Tries       []Try  `json:"tries"`
}

// Deliveries is the notices of a receiver, by when they came about.
type Deliveries struct {
	Deliveries []Delivery `json:"deliveries"`
}

// Notice is what a receiver is sent. Type is what Data is about and its kind, such as
// reservation.granted, workflow.moved, hook.test or hook.gap.
type Notice struct {
	Type      string     `json:"type"`
	Timestamp Time       `json:"timestamp"`
	Data      NoticeData `json:"data"`
}

// NoticeData has the reservation, or the workflow, as it was then. Brief says that of the reservation
// only what names it is there, because the rest is long. Missed is how many notices a gap stands for.
type NoticeData struct {
	Hook        string         `json:"hook"`
	Reservation *Reservation   `json:"reservation,omitempty"`
	Workflow    *WorkflowEvent `json:"workflow,omitempty"`
	Brief       bool           `json:"brief,omitempty"`
	Missed      int            `json:"missed,omitempty"`
}

package form

import "github.com/berth-hpc/berth"

// SeriesRequest asks for a request that repeats. What each occurrence asks for is that of a request by itself, whose
// Deadline, DeadlineIn, ReadyIn, Kind and Array are not taken; Ready is the earliest occurrence.
type SeriesRequest struct {
	Request
	Repeat   string         `json:"repeat,omitempty"`    // every weekday 09:00, or RRULE:FREQ=WEEKLY;BYDAY=MO
	TimeZone string         `json:"time_zone,omitempty"` // such as Europe/Berlin; UTC by default
	Until    Time           `json:"until,omitzero"`      // the latest start
	Times    int            `json:"times,omitempty"`     // how often
	Except   []string       `json:"except,omitempty"`    // days or times by the clock of the zone
	Add      []string       `json:"add,omitempty"`       // further times by that clock
	Ahead    berth.Duration `json:"ahead,omitempty"`     // makes an open series: how far ahead its occurrences are promised
	Window   berth.Duration `json:"window,omitempty"`    // from when an occurrence may start to when it must have ended; its duration by default
	AtLeast  int            `json:"at_least,omitempty"`  // how many must be possible; all by default
}

// SeriesAnswer is the answer about a series.
type SeriesAnswer struct {
	Decision string `json:"decision"` // accepted, partly or refused
	Series   Series `json:"series"`
	// Refusals say which occurrences cannot change as was asked: then none has, and the decision is refused.
	Refusals []OccurrenceRefusal `json:"refusals,omitempty"`
}

// OccurrenceRefusal says why an occurrence cannot change.
type OccurrenceRefusal struct {
	Number  int          `json:"number"` // from 1
	Reason  berth.Reason `json:"reason"`
	Refusal *Refusal     `json:"refusal"`
}

// SeriesModify says what occurrences of a series become. What is 0 stays.
type SeriesModify struct {
	From     int            `json:"from,omitempty"` // the first that changes, from 1; 0 is the first of all
	To       int            `json:"to,omitempty"`   // the last; 0 is the last of all
	By       berth.Duration `json:"by,omitempty"`   // so much later, or earlier
	NPE      berth.Count    `json:"npe,omitempty"`
	Duration berth.Duration `json:"duration,omitempty"`
}

// Series is what became of a request that repeats.
type Series struct {
	ID          string       `json:"id"`
	Name        string       `json:"name,omitempty"`
	User        string       `json:"user,omitempty"`
	Repeat      string       `json:"repeat,omitempty"`
	TimeZone    string       `json:"time_zone"`
	AtLeast     int          `json:"at_least"`
	Decision    string       `json:"decision"` // when it was asked for: accepted, partly or refused
	Created     Time         `json:"created"`
	Count       int          `json:"count"`                 // of the occurrences; of an open series, of those that have had their turn
	Live        int          `json:"live"`                  // of those with a reservation that is not over
	Occurrences []Occurrence `json:"occurrences,omitempty"` // not in lists

	// Of a series with Ahead: whether something is still to be asked for, the latest occurrence that has had its turn, when
	// the next has, when those that could not be promised are asked for again, the latest occurrence that there will be,
	// after ten years if the rule has no end, and the numbers of those that were given back before they had their turn.
	Ahead         berth.Duration `json:"ahead,omitempty"`
	Open          bool           `json:"open,omitempty"`
	PromisedUntil Time           `json:"promised_until,omitzero"`
	Prolonged     Time           `json:"prolonged,omitzero"`
	Again         Time           `json:"again,omitzero"`
	Ends          Time           `json:"ends,omitzero"`
	Skipped       []int          `json:"skipped,omitempty"`

	// Moved is which occurrences come at another time than the rule says, since they were changed.
	Moved []MovedOccurrences `json:"moved,omitempty"`

	// Charge is what budgets are charged for those of its reservations that are not over; missing where there are no prices.
	Charge *int64 `json:"charged_pe_seconds,omitempty"`
}

// MovedOccurrences are occurrences that come later than their rule says by equally much, or earlier if By is negative.
type MovedOccurrences struct {
	From int            `json:"from"`
	To   int            `json:"to"` // of an open series the last may have had no turn yet
	By   berth.Duration `json:"by"`
}

// Occurrence is one of a series. The fields of Place are those of its reservation, if it has one.
type Occurrence struct {
	Number   int    `json:"number"`           // from 1
	ID       string `json:"id,omitempty"`     // of its reservation
	State    string `json:"state,omitempty"`  // of that
	Expires  Time   `json:"expires,omitzero"` // of a held one
	Ready    Time   `json:"ready"`
	Deadline Time   `json:"deadline"`
	Place
	Parts []Place `json:"parts,omitempty"`
	// Charge is what budgets are charged for its reservation as promised; missing where there are no prices and for what is over.
	Charge *int64 `json:"charged_pe_seconds,omitempty"`
	// Shift is later or first where a change of the clock has made another time of that of the rule, and Note the same
	// for people.
	Shift   berth.Shift  `json:"shift,omitempty"`
	Note    string       `json:"note,omitempty"`
	Reason  berth.Reason `json:"reason,omitempty"` // of one that could not be promised
	Refusal *Refusal     `json:"refusal,omitempty"`
	Offers  []Offer      `json:"offers,omitempty"` // what could be held instead
}

// Skipped is the state of an occurrence that was given back before it had its turn.
const Skipped = "skipped"

// SeriesList is a page of series, without their occurrences.
type SeriesList struct {
	Series []Series `json:"series"`
	Next   string   `json:"next,omitempty"`
}

// SeriesCancel says which occurrences are given back; all of them if both are 0.
type SeriesCancel struct {
	From int `json:"from,omitempty"` // the first, from 1
	To   int `json:"to,omitempty"`   // the last
}

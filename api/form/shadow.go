package form

import "github.com/berth-hpc/berth"

// Shadow is how the promises that Berth would have given at a site that is only
// watched compare with what happened there. Waits are seconds from when a job
// could have started.
type Shadow struct {
	Site      string         `json:"site"`
	Since     Time           `json:"since,omitzero"` // when the watch began
	Reachable bool           `json:"reachable"`
	Trouble   string         `json:"trouble,omitempty"`
	Seen      Time           `json:"seen,omitzero"` // when the site was last looked at
	Tolerance berth.Duration `json:"tolerance"`     // up to which difference two starts are the same
	Jobs      ShadowCounts   `json:"jobs"`
	// Waits of the jobs compared, by the first promise and for real.
	PromisedWait Spread `json:"promised_wait"`
	ActualWait   Spread `json:"actual_wait"`
	// Latest are the jobs asked for last, the last first.
	Latest []ShadowJob `json:"latest,omitempty"`
}

// ShadowCounts counts jobs since the watch began.
type ShadowCounts struct {
	Seen        int            `json:"seen"`
	LeftOut     map[string]int `json:"left_out,omitempty"` // not asked for, by why
	Asked       int            `json:"asked"`              // the others
	Partial     int            `json:"partial"`            // asked, of fewer cores than the PEs have
	Promised    int            `json:"promised"`
	Refused     map[string]int `json:"refused,omitempty"` // by reason
	Moved       int            `json:"moved"`             // promised, and moved since
	Broken      int            `json:"broken"`            // promised, and no place was left
	Open        int            `json:"open"`              // promised, and waiting at the site still
	Overdue     int            `json:"overdue"`           // of those, past the promised start
	Cancelled   int            `json:"cancelled"`         // before they started
	Vanished    int            `json:"vanished"`          // out of sight before they started
	Ended       int            `json:"ended"`
	BeforeLimit int            `json:"before_limit"` // of those ended
	Compared    int            `json:"compared"`     // promised and started
	Earlier     int            `json:"earlier"`      // promised earlier than they started
	Same        int            `json:"same"`
	Later       int            `json:"later"`
}

// Spread is how values lie: their mean, and what half of them and 95 of 100 do
// not exceed.
type Spread struct {
	Mean berth.Duration `json:"mean"`
	P50  berth.Duration `json:"p50"`
	P95  berth.Duration `json:"p95"`
}

// ShadowJob is a job of a site that is only watched.
type ShadowJob struct {
	Job       string         `json:"job"`
	User      string         `json:"user"`
	Partition string         `json:"partition,omitempty"`
	NPE       berth.Count    `json:"npe"`
	Limit     berth.Duration `json:"limit"`
	Phase     string         `json:"phase"`
	LeftOut   string         `json:"left_out,omitempty"`
	Asked     Time           `json:"asked,omitzero"`
	Ready     Time           `json:"ready,omitzero"`    // it could start from then on
	Promised  Time           `json:"promised,omitzero"` // the first promise
	Refusal   string         `json:"refusal,omitempty"` // the reason
	Start     Time           `json:"start,omitzero"`    // for real
	End       Time           `json:"end,omitzero"`
	Ending    string         `json:"ending,omitempty"`
	Moved     bool           `json:"moved,omitempty"`
	Broken    bool           `json:"broken,omitempty"`
}

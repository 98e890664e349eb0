package site

import (
	"cmp"
	"strings"
	"time"

	"github.com/berth-hpc/berth"
)

// State is what happens at a site at one moment.
type State struct {
	At berth.Time `json:"at"`
	// Boot is when the manager was started. A Boot other than before means that
	// it may have forgotten what it had acknowledged.
	Boot    berth.Time  `json:"boot,omitempty"`
	Nodes   []NodeState `json:"nodes"`   // in the order of Describe
	Running []Job       `json:"running"` // hard facts: they hold their nodes until End
	Pending []Job       `json:"pending"` // soft: the site may start them or not
	Ended   []Job       `json:"ended"`   // those that the site still remembers
	Ours    []Booking   `json:"ours"`    // reservations under names of ours, by name
	Foreign []Booking   `json:"foreign"` // all others, never touched, by name
	// Skew is by how much the manager's clock is ahead of this one, if that is more
	// than the answer took; 0 if it does not tell.
	Skew berth.Duration `json:"skew,omitempty"`
	// Silent are the controllers of the manager that do not answer, while another one does.
	Silent []string `json:"silent,omitempty"`
	// Licences are those that the site counts itself, with how many there are.
	Licences []Licence `json:"licences,omitempty"`
	// Cost is the CPU time that it took to ask, on this machine; 0 where that is not known. The
	// manager has used about as much.
	Cost time.Duration `json:"cost_ns,omitempty"`
	// Partitions are as they are now; nil if the site has none or does not tell.
	Partitions []Partition `json:"partitions,omitempty"`
	// Look is the number of the look that showed it, from 1 on, and Took is how long that look took. An Agent notes them.
	Look uint64        `json:"-"`
	Took time.Duration `json:"-"`
}

// Condition is what a node is good for.
type Condition string

// The conditions. Only what is Up takes new work.
const (
	Up      Condition = "up"
	Drained Condition = "drained" // on purpose; what runs there may end
	Down    Condition = "down"
	Unknown Condition = "unknown" // the manager does not know yet
)

// NodeState is the state of one node.
type NodeState struct {
	Name      string      `json:"name"`
	Condition Condition   `json:"condition"`
	Reason    string      `json:"reason,omitempty"` // why it is not up, in the words of who said so
	Since     berth.Time  `json:"since,omitempty"`  // of the reason
	Busy      berth.Count `json:"busy"`             // cores in use
}

// JobID is the site's name for a job.
type JobID string

// Job is one piece of work at a site.
type Job struct {
	ID          JobID  `json:"id"`
	Array       JobID  `json:"array,omitempty"` // the array it is part of
	Key         string `json:"key,omitempty"`   // of the task it came from, where the site knows
	Name        string `json:"name,omitempty"`
	User        string `json:"user"`
	Account     string `json:"account,omitempty"`
	Partition   string `json:"partition,omitempty"`
	Reservation string `json:"reservation,omitempty"`
	// Start and End: of a running job its start and the end of its limit,
	// Forever if it has none; of an ended one when it ran; of a pending one the
	// earliest start and the end that follows from it, 0 if unknown.
	Start  berth.Time  `json:"start"`
	End    berth.Time  `json:"end"`
	Shares []Share     `json:"shares,omitempty"` // what it holds or held
	Cores  berth.Count `json:"cores"`
	Reason string      `json:"reason,omitempty"` // why it is pending, or how it ended, in the site's words
	Output string      `json:"output,omitempty"` // path of its standard output, where the site says
	Result Result      `json:"result,omitzero"`  // of an ended job
	// What it asks for; 0 where the site does not say. Of an array whose elements
	// wait together these are those of each element.
	Submitted berth.Time     `json:"submitted,omitempty"`
	Begin     berth.Time     `json:"begin,omitempty"` // it may start from then on
	Limit     berth.Duration `json:"limit,omitempty"`
	Nodes     berth.Count    `json:"nodes,omitempty"`
	Exclusive bool           `json:"exclusive,omitempty"` // no other job may be on them
	// Rank is the place of a pending job in the order in which its site looks at those of its
	// partition, from 1; 0 where the site does not tell: then that of submission is the best guess.
	Rank int `json:"rank,omitempty"`
	// Held says that a pending job is kept from starting by its user, an operator
	// or another job, not by want of nodes.
	Held bool `json:"held,omitempty"`
	// Left is the reservation that a pending job waited in, if it is not there any more: the site took it down by itself when
	// it was over, or has lost it, and since then keeps the job from starting.
	Left string `json:"left,omitempty"`
	// Elements are the indices of an array that waits as one, if the site
	// names them, and no more of them than may run at once.
	Elements berth.PESet `json:"elements,omitzero"`
}

// Stage is how far a job is.
type Stage string

// The stages.
const (
	Waiting Stage = "waiting"
	Running Stage = "running"
	Ended   Stage = "ended"
)

// Report is a job and how far it is.
type Report struct {
	Job
	Stage Stage `json:"stage"`
}

// Reports returns the jobs of a reservation of ours, in all of its generations.
// Cost: O(jobs).
func (s *State) Reports(siteName string, name Name) []Report {
	promise, _, _ := name.Promise(siteName)
	var reports []Report
	for _, list := range []struct {
		jobs  []Job
		stage Stage
	}{{s.Pending, Waiting}, {s.Running, Running}, {s.Ended, Ended}} {
		for i := range list.jobs {
			if of, _, ours := Name(list.jobs[i].Reservation).Promise(siteName); ours && of == promise {
				reports = append(reports, Report{Job: list.jobs[i], Stage: list.stage})
			}
		}
	}
	return reports
}

// CompareJobs orders job ids by their numbers, so that 9 comes before 10 and 10_2
// before 10_11, and ids that are equal by that as texts.
func CompareJobs(a, b JobID) int {
	restA, restB := string(a), string(b)
	for restA != "" && restB != "" {
		var partA, partB string
		partA, restA, _ = strings.Cut(restA, "_")
		partB, restB, _ = strings.Cut(restB, "_")
		if len(partA) != len(partB) {
			return len(partA) - len(partB)
		}
		if c := strings.Compare(partA, partB); c != 0 {
			return c
		}
	}
	return cmp.Or(len(restA)-len(restB), strings.Compare(string(a), string(b)))
}

// Ending is how a job ended.
type Ending string

// The endings.
const (
	Completed Ending = "completed"
	Failed    Ending = "failed" // by its own exit code or signal, or it could not be started
	Cancelled Ending = "cancelled"
	TimedOut  Ending = "timeout"   // its limit ended it
	NodeLost  Ending = "node_fail" // its node or its keeper went away
)

// Result is how a job ended: with which exit code, or by which signal.
type Result struct {
	Ending Ending `json:"ending,omitempty"`
	Code   int    `json:"code,omitempty"`
	Signal int    `json:"signal,omitempty"`
}

// Booking is a reservation as the site has it.
type Booking struct {
	Name      string      `json:"name"`
	Start     berth.Time  `json:"start"`
	End       berth.Time  `json:"end"`
	Shares    []Share     `json:"shares"` // the nodes it holds at the moment
	Cores     berth.Count `json:"cores"`
	Partition string      `json:"partition,omitempty"`
	Users     []string    `json:"users,omitempty"`
	Accounts  []string    `json:"accounts,omitempty"`
	Groups    []string    `json:"groups,omitempty"`
	Licences  []Licence   `json:"licences,omitempty"`
	Flags     []string    `json:"flags,omitempty"` // in the site's words
	Active    bool        `json:"active"`          // its time has come
	Repeat    Repeat      `json:"repeat,omitzero"` // when it comes again
	// Floats says that its start is always so long after now: it never begins, and
	// keeps its nodes for what ends before that.
	Floats bool `json:"floats,omitempty"`
}

// Share is a node, or some cores of it.
type Share struct {
	Node  string      `json:"node"`
	Cores berth.PESet `json:"cores,omitzero"` // numbers on the node, from 0; empty is the whole node
	// Partial says that it is only some cores, and the site does not say which.
	// Such a share is never asked for.
	Partial bool `json:"partial,omitempty"`
}

// NodesOf returns the names of the nodes of the shares, in their order.
func NodesOf(shares []Share) []string {
	names := make([]string, len(shares))
	for i := range shares {
		names[i] = shares[i].Node
	}
	return names
}

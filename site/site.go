package site

import (
	"context"

	"github.com/berth-hpc/berth"
)

// Observer tells what a site is and what happens there. It changes nothing, so
// it is all that a site under observation alone needs.
type Observer interface {
	// Describe returns what changes seldom: nodes, partitions, rights.
	Describe(ctx context.Context) (*Description, error)
	// Observe returns the state of the site as it is now, never from memory.
	// What it returns is the caller's.
	Observe(ctx context.Context) (*State, error)
}

// Watch returns a site that can be looked at and no more: what else the observer
// can do cannot be reached through it.
func Watch(o Observer) Observer { return watched{o} }

type watched struct{ observer Observer }

func (w watched) Describe(ctx context.Context) (*Description, error) { return w.observer.Describe(ctx) }

func (w watched) Observe(ctx context.Context) (*State, error) { return w.observer.Observe(ctx) }

// Booker makes promises real at a site. Every method may be called again after
// a failure, and twice has the effect of once.
type Booker interface {
	// Reserve makes the reservation. If it is there already, the same, it says
	// so; if the name is taken by another, or the site no longer has room, it
	// is refused. With an error, Outcome.Verdict is Doubt if it may have been
	// made all the same, and empty if it certainly was not.
	Reserve(ctx context.Context, want Reservation) (Outcome, error)
	// Change makes the reservation of that name as wanted, or leaves it exactly
	// as it was. Adapters refuse what they can only do by making it anew. A name
	// that is not there is an error of kind NotFound.
	Change(ctx context.Context, want Reservation) (Outcome, error)
	// Release ends what runs in the reservation and takes it down, with what waits in it
	// and what it has left waiting (Job.Left). A name that is not there is released. A reservation that cannot be taken down yet is
	// an error of kind Conflict, and trying again helps.
	Release(ctx context.Context, name Name) error
}

// Carrier is a Booker at whose site users hand in jobs themselves: at any moment one
// may wait in a reservation that was not there at the last look.
type Carrier interface {
	// Retire takes down a reservation without jobs, and leaves one with jobs as it
	// is: an error of kind Conflict. A name that is not there is retired.
	Retire(ctx context.Context, name Name) error
	// Carry moves the jobs that wait in one reservation, or that it has left waiting, to another,
	// which its users may use as well. The error names the first job that cannot be moved; all others
	// are.
	Carry(ctx context.Context, from, to Name) error
}

// ManyBooker is a Booker that makes many promises real in less time than one
// after the other takes.
type ManyBooker interface {
	// ReserveMany does what Reserve does for one reservation after the other, and
	// returns as many answers in that order: of two for which there is room once,
	// the first has it. Once the site has left Patience of them without an answer
	// what was not begun yet is left, with ErrNotTried.
	ReserveMany(ctx context.Context, want []Reservation) []Answer
}

// Answer is what Reserve returns.
type Answer struct {
	Outcome Outcome
	Err     error
}

// Patience is how often in a row of questions a site may not answer before the
// rest is left for later. Each time takes as long as the adapter waits, and
// a caller that asks again begins with the same questions.
const Patience = 3

// ErrNotTried is of kind Unreachable. Nothing was done.
var ErrNotTried error = &Error{Kind: Unreachable, Op: "book", Msg: "not tried, because the site does not answer"}

// Runner runs commands in reservations.
type Runner interface {
	// Submit hands in a task, which runs once its reservation is active. A task that
	// its user submitted into the reservation before under the same key is not run
	// again; its job is returned. Another task under that key is ErrKeyTaken. All
	// generations of a promise are one reservation.
	Submit(ctx context.Context, task Task) (JobID, error)
	// Cancel ends a job, all of an array if it is one; with a grace signal
	// first where it runs. A job that is over is cancelled.
	Cancel(ctx context.Context, job JobID) error
}

// Recaller is a Runner that knows what was handed in under a key also when the reservation is over.
type Recaller interface {
	// Recall returns the job that Submit would return for the key of the task; empty if it would run it.
	Recall(ctx context.Context, task Task) (JobID, error)
}

// Representative is a site that runs tasks as users who are not there.
type Representative interface {
	// Represents says why tasks cannot be handed in as a user; nil if they can.
	Represents(ctx context.Context, user string) error
}

// Deputy is a site at which users hand in tasks themselves, and which can do so for users
// who are not there, as them.
type Deputy interface {
	Representative
	// Hand hands in a task as its user, as Runner.Submit does, but for that it waits until it
	// is told to start, so that a service that was stopped in between has not started it twice.
	Hand(ctx context.Context, task Task) (JobID, error)
	// Start lets a task of a user run that was handed in. One that runs or is over is started.
	Start(ctx context.Context, user string, job JobID) error
}

// Reporter is a site that tells at once how tasks end. Of other sites that is known
// from the last State.
type Reporter interface {
	// Report returns the jobs of a reservation of ours, in all of its generations,
	// as they are now; ended ones for as long as the site remembers them. It also
	// answers for a reservation that is over.
	Report(ctx context.Context, name Name) ([]Report, error)
}

// Announcer is a site that says when a task has started or ended, so that no one waits
// for the next look to learn of it.
type Announcer interface {
	// Changed returns a channel of one place, which has something in it if a task has
	// started or ended since it was last received from. It has one reader.
	Changed() <-chan struct{}
}

// Launcher is a site that must be told when a reservation begins, because it
// starts nothing by itself.
type Launcher interface {
	// Launch opens a reservation: what was submitted into it runs, on the
	// shares given, which a late promise gets only now. Launching again with
	// the same shares does nothing.
	Launch(ctx context.Context, name Name, shares []Share) error
}

// Gate is a site that lets only some users into some partitions and accounts, with limits.
type Gate interface {
	// Admits tells whether a user may do what they ask for in a partition, whose zero value
	// stands for none in particular. It looks at what always holds, not at what runs now.
	Admits(ctx context.Context, partition *Partition, entry *Entry) (Admission, error)
}

// Accountant is a site whose accounting knows who may use which account.
type Accountant interface {
	// Accounts returns the accounts of a user, the default one first; none if the site has no accounting or does not know the user.
	// A failure is one to try again after, whatever its kind.
	Accounts(ctx context.Context, user string) ([]string, error)
}

// Entry is what a user wants to do in a partition: to run one job, of one of the shapes.
type Entry struct {
	User string
	berth.Sharing
	Shapes []Shape
}

// Shape is the size of a job: whole nodes, or cores.
type Shape struct {
	Nodes        berth.Count
	Cores        berth.Count // where Nodes is 0
	Accelerators int         // of all together
	Duration     berth.Duration
}

// Admission is the answer of a Gate, in words that stand for themselves. The zero value lets everything in.
type Admission struct {
	No      string   // why nothing may
	TooMuch []string // of each shape, which limit it exceeds; empty if none, and nil if no shape does
}

// Drainer takes nodes out of use and puts them back.
type Drainer interface {
	// Drain lets what runs on the node end and starts nothing more there.
	Drain(ctx context.Context, node, reason string) error
	Resume(ctx context.Context, node string) error
}

// Clock tells the time, and whether it is believed: while it is not, the time is what it
// would be if the clock had gone on, and nothing is to begin, end or be forgotten by it.
type Clock func() (now berth.Time, believed bool)

// Clocked is a site that begins, ends and forgets things by itself, and so needs to be told
// the time.
type Clocked interface {
	// SetClock gives it a clock. It is called before anything else is asked.
	SetClock(clock Clock)
}

// Doctor examines how well Berth can work with a site.
type Doctor interface {
	// Doctor never fails: that a site cannot be reached is a finding.
	Doctor(ctx context.Context) []Finding
}

// Level says how bad a finding is.
type Level string

// The levels.
const (
	Good    Level = "ok"
	Warning Level = "warning" // works, but not as well as it could
	Bad     Level = "error"   // something Berth needs does not work
)

// Finding is one thing found by a Doctor.
type Finding struct {
	Check string `json:"check"` // what was looked at, a short name such as "clock"
	Level Level  `json:"level"`
	Text  string `json:"text"`           // what is so
	Hint  string `json:"hint,omitempty"` // what the operator can do about it
}

// Verdict is how an attempt to book ended.
type Verdict string

// The verdicts. The zero Verdict means that nothing was done.
const (
	Made    Verdict = "made"    // done by this call
	Already Verdict = "already" // it was so before
	Refused Verdict = "refused" // the site has no room or will not: an ordinary no
	Doubt   Verdict = "doubt"   // it may or may not be; call again before deciding anything else
)

// Outcome is the answer to an attempt to book.
type Outcome struct {
	Verdict Verdict      `json:"verdict"`
	Reason  berth.Reason `json:"reason,omitempty"`  // if Refused
	Words   string       `json:"words,omitempty"`   // the site's own, if Refused
	Booking *Booking     `json:"booking,omitempty"` // as the site has it, if Made or Already
}

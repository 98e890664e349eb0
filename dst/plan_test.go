package dst

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"text/tabwriter"

	"github.com/berth-hpc/berth"
)

// What clients ask for. A seed has some of these.
const (
	featureRequest  = "request"
	featureHold     = "hold"
	featureConfirm  = "confirm"
	featureModify   = "modify"
	featureExtend   = "extend"
	featureCancel   = "cancel"
	featureCheckIn  = "check in"
	featureArray    = "array"
	featureParts    = "parts"
	featureLicence  = "licence"
	featureJob      = "job"
	featureOffer    = "offer"
	featureWorkflow = "workflow"
	featureTask     = "task"
	featureDrain    = "drain"
	featureCompact  = "compact"
	featureSeries   = "series"
	featureNotice   = "notice"
	featureLimit    = "limit"
	featureAhead    = "ahead"
	featureCost     = "cost limit"
)

var features = []string{
	featureRequest, featureHold, featureConfirm, featureModify, featureExtend, featureCancel, featureCheckIn, featureArray, featureParts,
	featureLicence, featureJob, featureOffer, featureWorkflow, featureTask, featureDrain, featureCompact, featureSeries, featureNotice, featureLimit,
	featureAhead, featureCost,
}

// Some features are not drawn like the others: some series are open, some workflows with budgets name the account, and operators, budgets and
// projects have chances of their own.
const (
	featureOpen        = "open series"
	featureMaintenance = "maintenance"
	featureBudget      = "budget"
	featureSlurm       = "slurm"
	featureFlowBudget  = "workflow with account"
	featureProject     = "projects"
)

// counted are the features of the table.
var counted = append(slices.Clone(features), featureOpen, featureMaintenance, featureBudget, featureSlurm, featureFlowBudget, featureProject)

// What goes wrong. A seed has some of these.
const (
	faultCrash     = "crash"
	faultSlowDisk  = "slow disk"
	faultFullDisk  = "full disk"
	faultBadWrite  = "bad write"
	faultLostReply = "lost reply of the disk"
	faultRot       = "rotten snapshot"
	faultRefuses   = "site refuses"
	faultLies      = "site lies"
	faultSilent    = "site is silent"
	faultLate      = "site is late"
	faultTwice     = "site does it twice"
	faultStale     = "site is stale"
	faultForgets   = "site forgets"
	faultNodes     = "nodes fail"
	faultStranger  = "others book"
	faultRepeat    = "client repeats"
	faultGone      = "client goes away"
	faultStream    = "stream breaks"
	faultClock     = "clock is off"
	faultReceiver  = "receiver fails"
	faultHangs     = "receiver hangs"
	faultPending   = "late commit"
	faultLead      = "another leads"
)

var faults = []string{
	faultCrash, faultSlowDisk, faultFullDisk, faultBadWrite, faultLostReply, faultRot, faultRefuses, faultLies, faultSilent, faultLate, faultTwice,
	faultStale, faultForgets, faultNodes, faultStranger, faultRepeat, faultGone, faultStream, faultClock, faultReceiver, faultHangs,
	faultPending, faultLead,
}

// What may befall between lives, drawn by itself: another configuration, and a journal of an earlier version to begin with.
const (
	faultConfig  = "other configuration"
	faultUpgrade = "earlier version"
)

// befalling are the faults of the table.
var befalling = append(slices.Clone(faults), faultConfig, faultUpgrade)

// plan is what a seed switches on.
type plan struct {
	disk          bool // SQLite on a disk that forgets
	shared        bool // a database that servers share; else memory
	lives         int
	eventsPerLife int
	stepsPerLife  int
	snapshotEvery uint64
	keep          int
	giveUp        berth.Duration
	before        string // the journal of an earlier version that it begins with; empty if there is none
	on            map[string]bool
	features      []string
	faults        []string
}

// newPlan draws a plan. Half of all features and a third of all faults are on in each seed, and which
// ones are drawn: some faults show only where others do not get in the way.
func newPlan(rng *rand.Rand) *plan {
	p := &plan{
		disk: rng.IntN(8) == 0, lives: 2 + rng.IntN(3), eventsPerLife: 30 + rng.IntN(60), stepsPerLife: 20 + rng.IntN(400),
		snapshotEvery: uint64(5 + rng.IntN(100)), keep: 20 + rng.IntN(2000), giveUp: berth.Duration(rng.IntN(2) * 900), on: map[string]bool{},
	}
	for _, f := range features {
		if f == featureRequest || rng.IntN(2) == 0 {
			p.features, p.on[f] = append(p.features, f), true
		}
	}
	calm := rng.IntN(10) == 0 // nothing goes wrong at all
	for _, f := range faults {
		if often := f == faultCrash && rng.IntN(2) == 0; (rng.IntN(3) == 0 || often) && !calm {
			p.faults, p.on[f] = append(p.faults, f), true
		}
	}
	p.shared = !p.disk && rng.IntN(4) == 0 || p.on[faultLead]
	p.disk = p.disk && !p.shared
	p.on[featureMaintenance] = rng.IntN(4) == 0
	p.on[featureBudget] = rng.IntN(4) == 0
	p.on[featureSlurm] = rng.IntN(4) == 0
	p.on[faultConfig] = rng.IntN(5) == 0
	if rng.IntN(16) == 0 && !p.shared && !p.disk {
		p.before, p.on[faultUpgrade] = pick(rng, writtenBefore), true
	}
	p.on[featureProject] = rng.IntN(4) == 0
	return p
}

func (p *plan) has(what string) bool { return p.on[what] }

// ledger counts in how many lives a feature was used and a fault happened.
type ledger struct {
	cells map[[2]string]int
	lives int
}

func newLedger() *ledger { return &ledger{cells: map[[2]string]int{}} }

func (g *ledger) add(l *life) {
	g.lives++
	for feature := range l.did {
		g.cells[[2]string{feature, ""}]++
		for fault := range l.met {
			g.cells[[2]string{feature, fault}]++
		}
	}
}

// empty returns the cells that nothing has filled.
func (g *ledger) empty() (cells [][2]string) {
	for _, fault := range befalling {
		for _, feature := range counted {
			if at := [2]string{feature, fault}; g.cells[at] == 0 {
				cells = append(cells, at)
			}
		}
	}
	return cells
}

// write writes the table, a line for each fault.
func (g *ledger) write(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 1, ' ', tabwriter.AlignRight)
	line := func(name, fault string) {
		fmt.Fprint(table, name)
		for _, feature := range counted {
			if fault == "?" {
				fmt.Fprint(table, "\t", feature)
			} else {
				fmt.Fprint(table, "\t", g.cells[[2]string{feature, fault}])
			}
		}
		fmt.Fprintln(table, "\t")
	}
	line("lives", "?")
	line("any", "")
	for _, fault := range befalling {
		line(fault, fault)
	}
	return table.Flush()
}

// pick draws one of a list.
func pick[T any](rng *rand.Rand, list []T) T { return list[rng.IntN(len(list))] }

// recent draws one of the last few of a list, and what stands for none if there is none.
func recent(rng *rand.Rand, list []string, few int) string {
	if len(list) == 0 {
		return "none"
	}
	return list[max(0, len(list)-1-rng.IntN(few))]
}

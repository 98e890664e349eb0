package state

import (
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/policy"
)

// small is a state of 4 PEs under each binding, with 100 MB of storage.
func small() *State { return New(smallConfig()) }

func smallConfig() Config {
	return Config{
		Sites: []berth.Site{{
			Name: "s", StorageMB: 100,
			Pools: []berth.Pool{{Name: "early", PEs: 4, Binding: berth.Early}, {Name: "late", PEs: 4, Binding: berth.Late}},
		}},
		Form: calendar.Forms[0], Order: policy.Queues[0],
	}
}

// wellFormed is a reservation with everything at a limit of what it may be.
func wellFormed() *berth.Reservation {
	r := berth.Rigid("a", 0, 0, 100, 4, 10)
	return &berth.Reservation{
		Request: &r, State: berth.Confirmed, Sequence: 1, Missing: berth.MaxPEs,
		Allotments: []berth.Allotment{{Resource: berth.PoolID("s", "late"), Start: 5, End: 6, NPE: 4}},
		Terms:      berth.Terms{Variants: r.Parts[0].Variants, Extended: 2*berth.TimeLimit - 1, Deadline: 100},
		Stocks:     []berth.Allotment{{Resource: berth.StorageID("s"), Start: 5, End: 6, NPE: 100}},
		Transfers:  []berth.Transfer{{Site: "s", Start: 5, End: 5, Kilobytes: 1000 * berth.MaxMegabytes}},
	}
}

// A reservation that is read is well-formed up to the limits and not beyond them.
func TestReservationsThatAreReadAreWellFormed(t *testing.T) {
	one, four := berth.PEsOf(0), berth.PEsOf(0, 1, 2, 3)
	for name, c := range map[string]struct {
		change func(r *berth.Reservation)
		sound  bool
	}{
		"everything at its limit":    {func(*berth.Reservation) {}, true},
		"held":                       {func(r *berth.Reservation) { r.State = berth.Held }, true},
		"degraded":                   {func(r *berth.Reservation) { r.State, r.Allotments[0].NPE = berth.Degraded, 0 }, true},
		"active with numbers of PEs": {func(r *berth.Reservation) { r.State, r.Allotments[0].PEs = berth.Active, four }, true},
		"early with numbers of PEs": {func(r *berth.Reservation) {
			r.Allotments[0].Resource, r.Allotments[0].PEs = berth.PoolID("s", "early"), four
		}, true},
		"data that never come":   {func(r *berth.Reservation) { r.Transfers[0].End = berth.Forever }, true},
		"no terms":               {func(r *berth.Reservation) { r.Terms = berth.Terms{} }, true},
		"one PE and one MB":      {func(r *berth.Reservation) { r.Allotments[0].NPE, r.Stocks[0].NPE = 1, 1 }, true},
		"from 0, not missing":    {func(r *berth.Reservation) { r.Missing, r.Transfers[0].Kilobytes = 0, 0 }, true},
		"no request":             {func(r *berth.Reservation) { r.Request = nil }, false},
		"an invalid request":     {func(r *berth.Reservation) { r.Request.ID = "" }, false},
		"no allotment":           {func(r *berth.Reservation) { r.Allotments = nil }, false},
		"finished":               {func(r *berth.Reservation) { r.State = berth.Finished }, false},
		"an expiry out of range": {func(r *berth.Reservation) { r.Expires = berth.Forever }, false},
		"fewer than none lack":   {func(r *berth.Reservation) { r.Missing = -1 }, false},
		"too many lack":          {func(r *berth.Reservation) { r.Missing = berth.MaxPEs + 1 }, false},
		"a variant too many":     {func(r *berth.Reservation) { r.Terms.Variants = append(r.Terms.Variants, r.Terms.Variants[0]) }, false},
		"extended by less than 0": {func(r *berth.Reservation) {
			r.Terms.Extended = -1
		}, false},
		"extended too long":             {func(r *berth.Reservation) { r.Terms.Extended = 2 * berth.TimeLimit }, false},
		"a variant of no PEs":           {func(r *berth.Reservation) { r.Terms.Variants = []berth.Variant{{Duration: 10}} }, false},
		"a variant of too many PEs":     {func(r *berth.Reservation) { r.Terms.Variants = []berth.Variant{{NPE: berth.MaxPEs + 1, Duration: 10}} }, false},
		"a variant of no time":          {func(r *berth.Reservation) { r.Terms.Variants = []berth.Variant{{NPE: 4}} }, false},
		"a variant beyond time":         {func(r *berth.Reservation) { r.Terms.Variants = []berth.Variant{{NPE: 4, Duration: berth.TimeLimit}} }, false},
		"a deadline out of range":       {func(r *berth.Reservation) { r.Terms.Deadline = berth.Forever }, false},
		"terms that expire never":       {func(r *berth.Reservation) { r.Terms.Expires = berth.Forever }, false},
		"a transfer from never":         {func(r *berth.Reservation) { r.Transfers[0].Start, r.Transfers[0].End = berth.Forever, berth.Forever }, false},
		"a transfer beyond time":        {func(r *berth.Reservation) { r.Transfers[0].End = berth.TimeLimit }, false},
		"a transfer since never":        {func(r *berth.Reservation) { r.Transfers[0].Since = berth.Forever }, false},
		"a transfer back in time":       {func(r *berth.Reservation) { r.Transfers[0].End = 4 }, false},
		"less than no data":             {func(r *berth.Reservation) { r.Transfers[0].Kilobytes = -1 }, false},
		"too many data":                 {func(r *berth.Reservation) { r.Transfers[0].Kilobytes = 1000*berth.MaxMegabytes + 1 }, false},
		"a negative rate":               {func(r *berth.Reservation) { r.Transfers[0].Rate = -1 }, false},
		"an unknown stock":              {func(r *berth.Reservation) { r.Stocks[0].Resource = berth.StorageID("other") }, false},
		"nothing of a stock":            {func(r *berth.Reservation) { r.Stocks[0].NPE = 0 }, false},
		"more of a stock than there is": {func(r *berth.Reservation) { r.Stocks[0].NPE = 101 }, false},
		"a stock from never":            {func(r *berth.Reservation) { r.Stocks[0].Start = -berth.Forever }, false},
		"a stock for ever":              {func(r *berth.Reservation) { r.Stocks[0].End = berth.Forever }, false},
		"a stock for no time":           {func(r *berth.Reservation) { r.Stocks[0].End = 5 }, false},
		"a stock with PEs":              {func(r *berth.Reservation) { r.Stocks[0].PEs = one }, false},
		"an unknown pool":               {func(r *berth.Reservation) { r.Allotments[0].Resource = berth.PoolID("s", "other") }, false},
		"PEs from never":                {func(r *berth.Reservation) { r.Allotments[0].Start = -berth.Forever }, false},
		"PEs for ever":                  {func(r *berth.Reservation) { r.Allotments[0].End = berth.Forever }, false},
		"PEs for no time":               {func(r *berth.Reservation) { r.Allotments[0].End = 5 }, false},
		"less than no PEs":              {func(r *berth.Reservation) { r.Allotments[0].NPE = -1 }, false},
		"more PEs than there are":       {func(r *berth.Reservation) { r.Allotments[0].NPE = 5 }, false},
		"late with numbers of PEs":      {func(r *berth.Reservation) { r.Allotments[0].NPE, r.Allotments[0].PEs = 1, one }, false},
		"active without numbers":        {func(r *berth.Reservation) { r.State = berth.Active }, false},
		"early without numbers":         {func(r *berth.Reservation) { r.Allotments[0].Resource = berth.PoolID("s", "early") }, false},
		"PEs that the pool has not": {func(r *berth.Reservation) {
			r.State, r.Allotments[0].NPE, r.Allotments[0].PEs = berth.Active, 1, berth.PEsOf(4)
		}, false},
	} {
		r := wellFormed()
		c.change(r)
		if err := small().sound(r); (err == nil) != c.sound {
			t.Errorf("%s: error %v; want none: %t", name, err, c.sound)
		}
	}
}

// A snapshot of format 1 has no terms. How much longer than its variant a reservation
// lasts follows from its length, its run at the speed of its pool, and how long it
// holds its PEs while its data are moved.
func TestFormat1KeepsExtensions(t *testing.T) {
	for name, c := range map[string]struct {
		speed    berth.Speed
		transfer *berth.Transfer
		end      berth.Time
		want     berth.Duration
	}{
		"as long as its variant":      {end: 15},
		"longer":                      {end: 22, want: 7},
		"longer on a slow pool":       {speed: berth.StandardSpeed / 2, end: 32, want: 7},
		"its data come before":        {transfer: &berth.Transfer{Site: "s", Start: 2, End: 5}, end: 22, want: 7},
		"PEs are held for its data":   {transfer: &berth.Transfer{Site: "s", Start: 5, End: 9}, end: 19},
		"that and longer":             {transfer: &berth.Transfer{Site: "s", Start: 5, End: 9}, end: 26, want: 7},
		"its data never come":         {transfer: &berth.Transfer{Site: "s", Start: 5, End: berth.Forever}, end: 22},
		"shorter than its variant is": {end: 11},
	} {
		config := smallConfig()
		config.Sites[0].Pools[1].Speed = c.speed
		r := berth.Rigid("a", 0, 0, 100, 4, 10)
		reservation := berth.Reservation{Request: &r, State: berth.Confirmed, Sequence: 1, Allotments: []berth.Allotment{place("late", 5, c.end)}}
		if c.transfer != nil {
			reservation.Transfers = []berth.Transfer{*c.transfer}
		}
		in := saved{Sequence: 1, Decided: 1, Submitted: 1, Reservations: []savedReservation{{Reservation: &reservation}}}
		snapshot := encodeSaved(&in)
		snapshot[0] = 1
		s, err := Restore(config, snapshot)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := s.Entry("a").Extended(); got != c.want {
			t.Errorf("%s: extended by %d s, want %d", name, got, c.want)
		}
	}
}

// What is live has an id of its own, and the time is one that the engine can have.
func TestSnapshotThatContradictsItselfIsRefused(t *testing.T) {
	request, job := berth.Rigid("a", 0, 0, 100, 1, 10), berth.Job("a", 0, 1, 10)
	pending := savedPending{Request: &request, Number: 2}
	reservation := savedReservation{Reservation: wellFormed()}
	other := berth.Rigid("b", 0, 0, 100, 4, 10)
	next, twin := savedReservation{Reservation: wellFormed()}, savedReservation{Reservation: wellFormed()}
	next.Request, next.Sequence, next.Stocks, next.Allotments = &other, 2, nil, []berth.Allotment{{Resource: berth.PoolID("s", "late"), Start: 6, End: 7, NPE: 4}}
	twin.Request, twin.Stocks, twin.Allotments = next.Request, next.Stocks, next.Allotments
	flow := berth.Workflow{ID: "w", Deadline: berth.Forever, Repair: berth.RepairBoth, Tasks: []berth.WorkflowTask{{ID: "a", Seconds: 1}}}
	over, mistaken := []savedTask{{Outcome: berth.Skipped}}, flow
	mistaken.Repair = "some"
	for name, c := range map[string]struct {
		in    saved
		sound bool
	}{
		"a workflow":                   {saved{Workflows: []savedWorkflow{{Workflow: &flow, Tasks: over}}}, true},
		"two workflows of one id":      {saved{Workflows: []savedWorkflow{{Workflow: &flow, Tasks: over}, {Workflow: &flow, Tasks: over}}}, false},
		"a workflow without its own":   {saved{Workflows: []savedWorkflow{{Tasks: over}}}, false},
		"a mistaken workflow":          {saved{Workflows: []savedWorkflow{{Workflow: &mistaken, Tasks: over}}}, false},
		"a workflow without tasks":     {saved{Workflows: []savedWorkflow{{Workflow: &flow}}}, false},
		"a request":                    {saved{Pending: []savedPending{pending}}, true},
		"a job":                        {saved{Jobs: []savedJob{{Request: &job, Number: 3}}}, true},
		"a reservation":                {saved{Reservations: []savedReservation{reservation}}, true},
		"two reservations":             {saved{Reservations: []savedReservation{reservation, next}}, true},
		"two reservations in disorder": {saved{Reservations: []savedReservation{next, reservation}}, false},
		"two reservations of a number": {saved{Reservations: []savedReservation{reservation, twin}}, false},
		"two requests of one id":       {saved{Pending: []savedPending{pending, {Request: &request, Number: 3}}}, false},
		"a request and a job":          {saved{Pending: []savedPending{pending}, Jobs: []savedJob{{Request: &job, Number: 3}}}, false},
		"a request and a reservation":  {saved{Pending: []savedPending{pending}, Reservations: []savedReservation{reservation}}, false},
		"a time beyond the limit":      {saved{Now: berth.TimeLimit}, false},
	} {
		_, err := Restore(smallConfig(), encodeSaved(&c.in))
		if (err == nil) != c.sound {
			t.Errorf("%s: error %v; want none: %t", name, err, c.sound)
		}
	}
}

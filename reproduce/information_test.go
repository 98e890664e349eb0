package reproduce

import (
	"flag"
	"fmt"
	"math"
	"math/bits"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/realdata"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/sim"
)

var informationSeeds = flag.Int("information.seeds", 10, "seeds that -update measures for docs/results/information.md; 0 writes the page from those on record")

// What AJSM has and min-min in turn has not: the players of the game whose Shapley values are told.
const (
	knowsRequirements = 1 << iota
	knowsTransfers
	ordersJobs
	testsDeadlines
	informationAll = 1<<iota - 1
)

var informationPlayers = []string{"requirements", "transfers", "order", "deadline test"}

// informed is ajsm with a part of what it knows and does. Without requirements every pool serves and no stock is counted; without
// transfers data are there at once; without order the first to come is served first; without the deadline test a job goes where it
// would end too late, and is refused there.
type informed int

func (m informed) Assign(r *policy.Round, dst []policy.Assignment) []policy.Assignment {
	round := *r
	if m&knowsRequirements == 0 {
		round.Serves, round.Stocks = func(int, int) bool { return true }, nil
		if tiers := r.Tiers; tiers != nil {
			round.Tiers = func(job int, _ bool) []policy.Tier { return tiers(job, false) }
		}
	}
	if m&knowsTransfers == 0 {
		round.Stage = func(int, int) berth.Duration { return 0 }
	}
	if m&testsDeadlines == 0 {
		round.Jobs = slices.Clone(r.Jobs)
		for i := range round.Jobs {
			round.Jobs[i].Deadline = berth.Forever
		}
	}
	row, _ := policy.BatchNamed("ajsm")
	ajsm := row.New(policy.BatchOptions{Aware: true})
	if m&ordersJobs != 0 {
		return ajsm.Assign(&round, dst)
	}
	one := round
	one.Pools, one.Stocks = slices.Clone(round.Pools), nil
	for _, stocks := range round.Stocks {
		one.Stocks = append(one.Stocks, slices.Clone(stocks))
	}
	for i := range round.Jobs {
		one.Jobs = round.Jobs[i : i+1]
		one.Run = func(_, pool int) berth.Duration { return round.Run(i, pool) }
		one.Stage = func(_, pool int) berth.Duration { return round.Stage(i, pool) }
		one.Serves = func(_, pool int) bool { return round.Serves(i, pool) }
		if round.Tiers != nil {
			one.Tiers = func(_ int, serving bool) []policy.Tier { return round.Tiers(i, serving) }
		}
		for _, a := range ajsm.Assign(&one, nil) {
			dst = append(dst, policy.Assignment{Job: i, Pool: a.Pool})
			pool := &one.Pools[a.Pool]
			pool.Free -= one.Jobs[0].NPE
			if pool.Site >= len(one.Stocks) {
				continue
			}
			for _, need := range one.Jobs[0].Needs {
				if left := one.Stocks[pool.Site]; need.Kind < len(left) && left[need.Kind] < int64(berth.Endless) {
					left[need.Kind] -= need.Amount
				}
			}
		}
	}
	return dst
}

// checked has what a matcher assigns be checked, since it may know less.
var checked = awareMatcher{name: "informed", unaware: true}

// informationSetting is a row of the tables: the base but for one thing.
type informationSetting struct {
	name    string
	jobs    int
	net     string
	demands awareDemands
	data    float64 // times the data of the base
	rare    bool    // half of the programs of each site are not there
	uplink  int64   // kB/s, 0 without a bound
	models  bool    // the forecasts are compared there too
}

var informationSettings = []informationSetting{
	{"base", 1920, netSynthetic, printedDemands, 1, false, 0, true},
	{"960 jobs", 960, netSynthetic, printedDemands, 1, false, 0, false},
	{"2,880 jobs", 2880, netSynthetic, printedDemands, 1, false, 0, false},
	{"a quarter of the data", 1920, netSynthetic, printedDemands, 0.25, false, 0, false},
	{"four times the data", 1920, netSynthetic, printedDemands, 4, false, 0, true},
	{"an uplink of 1 GB/s", 1920, netSynthetic, printedDemands, 1, false, 1_000_000, false},
	{"half of the programs", 1920, netSynthetic, printedDemands, 1, true, 0, false},
	{"deadlines up to 5 run times", 1920, netSynthetic, otherDemands[0], 1, false, 0, false},
	{"measured links", 1920, netMeasured, printedDemands, 1, false, 0, true},
	{"measured links, four times the data", 1920, netMeasured, printedDemands, 4, false, 0, true},
}

// informationTruth is no model: what will be.
const informationTruth = "truth"

var informationModels = []string{"last", "mean", "arima", "blend", informationTruth}

// world draws the world of a setting. Its forecasts are those of a model.
func (s *informationSetting) world(a *awareSource, seed uint64, model string) *awareWorld {
	net := syntheticNet
	if s.net == netMeasured {
		net = *a.measured
	}
	w := newAwareWorld(seed, net, fairPeriods)
	w.model = model
	if model == informationTruth {
		for point := range w.foreseen {
			w.foreseen[point] = func() []*berth.Forecast { return w.truth(point) }
		}
	}
	if s.rare {
		for k := range w.sites {
			kept := w.sites[k].Software[:0]
			for i, software := range w.sites[k].Software {
				if i%2 == k%2 {
					kept = append(kept, software)
				}
			}
			w.sites[k].Software = kept
		}
	}
	return w
}

// truth foretells four hours of every link as they will be.
func (w *awareWorld) truth(point int) []*berth.Forecast {
	all := make([]*berth.Forecast, len(w.links))
	for k := range w.links {
		l := &w.links[k]
		if l.rates == nil {
			continue
		}
		now := berth.Time(point * awarePeriod)
		known := history + int(int64(now)/int64(l.period))
		f := &berth.Forecast{Site: w.sites[k].Name, From: now, Period: l.period}
		moved := 0.0
		for i := range 4 * hour / int(l.period) {
			moved += float64(max(0.1, l.rates[(known+i)%len(l.rates)]) * 1000 * float64(l.period))
			f.Kilobytes = append(f.Kilobytes, int64(moved))
		}
		all[k] = f
	}
	return all
}

// run returns what is accepted, and what of it comes too late in truth, in percent of the jobs.
func (s *informationSetting) run(t *testing.T, a *awareSource, w *awareWorld, m *awareMatcher, batch policy.Batch) (accepted, late float64) {
	t.Helper()
	jobs := w.jobs(a.records, s.jobs, fairPeriods, s.demands)
	for i := range jobs {
		jobs[i].StorageMB = int64(math.Round(float64(jobs[i].StorageMB) * s.data))
	}
	config := w.config(m)
	config.Batch, config.Uplink = batch, s.uplink
	lines, err := sim.Replay(t.Context(), config, sim.Workload{Requests: jobs, Monitor: &awareMonitor{world: w, last: fairPeriods}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	n, tardy := 0, 0
	for i := range jobs {
		l := &lines[i]
		if !l.Accepted {
			continue
		}
		n++
		foreseen, actual := w.transfer(&jobs[i], l)
		if s.uplink == 0 && l.End.Add(-foreseen).Add(berth.Duration(math.Ceil(actual))) > l.Deadline {
			tardy++
		}
	}
	return 100 * float64(n) / float64(len(jobs)), 100 * float64(tardy) / float64(len(jobs))
}

var informationHeader = []string{"setting", "seed", "model", "knows", "accepted", "late"}

func informationRow(s *informationSetting, seed uint64, model string, knows informed, accepted, late float64) []string {
	return []string{s.name, strconv.FormatUint(seed, 10), model, fmt.Sprintf("%04b", int(knows)), strconv.FormatFloat(accepted, 'f', 4, 64), strconv.FormatFloat(late, 'f', 4, 64)}
}

// informationRows measures a setting under a seed: every part of what AJSM knows, and all of it with each model of forecasts.
func informationRows(t *testing.T, a *awareSource, s *informationSetting, seed uint64, wanted func(model string, knows informed) bool) (rows [][]string) {
	t.Helper()
	w := s.world(a, seed, awareModel)
	for knows := range informed(informationAll + 1) {
		if wanted(awareModel, knows) {
			accepted, late := s.run(t, a, w, &checked, knows)
			rows = append(rows, informationRow(s, seed, awareModel, knows, accepted, late))
		}
	}
	for _, model := range informationModels {
		if s.models && model != awareModel && wanted(model, informationAll) {
			accepted, late := s.run(t, a, s.world(a, seed, model), &checked, informed(informationAll))
			rows = append(rows, informationRow(s, seed, model, informationAll, accepted, late))
		}
	}
	return rows
}

func informationSource(t *testing.T) *awareSource {
	t.Helper()
	if testing.Short() {
		t.Skip("short: whole simulations, one after the other")
	}
	folder := filepath.Dir(filepath.Dir(realdata.File(t, "swf", hpc2n.file+".swf.gz")))
	realdata.File(t, "bandwidth", measuredFile)
	a, err := awareSources(&session{Options: Options{Data: folder, Seed: 1, Scale: Full}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// With all of it a matcher decides as ajsm does, and with order alone, or with nothing, as matchers do that know nothing.
func TestInformedMatchersAreThoseThatAreKnown(t *testing.T) {
	a := informationSource(t)
	s := &informationSettings[0]
	w := s.world(a, 1, awareModel)
	for _, c := range []struct {
		knows informed
		known awareMatcher
	}{
		{informationAll, awareMatchers[awareAJSM]},
		{ordersJobs, awareMatchers[plainMinMin]},
		{0, awareMatcher{"mct", "mct", true}},
	} {
		got, _ := s.run(t, a, w, &checked, c.knows)
		want, _ := s.run(t, a, w, &c.known, nil)
		if got != want {
			t.Errorf("knowing %04b: %.4f %% are accepted, by %s %.4f %%", int(c.knows), got, c.known.name, want)
		}
	}
}

// The numbers of the page are those on record, and those are what is measured: some are measured again, all with -update.
func TestWhatInformationIsWorth(t *testing.T) {
	a := informationSource(t)
	file := filepath.Join("..", "docs", "results", "information", "runs.csv")
	if *update && *informationSeeds > 0 {
		rows := [][]string{informationHeader}
		for i := range informationSettings {
			s := &informationSettings[i]
			for seed := range *informationSeeds {
				rows = append(rows, informationRows(t, a, s, uint64(seed+1), func(string, informed) bool { return true })...)
			}
			t.Logf("%s is measured", s.name)
		}
		writeRows(t, file, rows)
	}
	rows := readRows(t, file)
	again := func(model string, knows informed) bool {
		return model == awareModel && (knows == 0 || knows == informationAll)
	}
	if !*update {
		var want [][]string
		for _, row := range rows {
			knows, err := strconv.ParseUint(row[3], 2, 8)
			if err != nil {
				t.Fatal(err)
			}
			if row[0] == informationSettings[0].name && row[1] == "1" && again(row[2], informed(knows)) {
				want = append(want, row)
			}
		}
		if diff := gocmp.Diff(want, informationRows(t, a, &informationSettings[0], 1, again)); diff != "" {
			t.Errorf("%s (-) is not what is measured (+):\n%s", file, diff)
		}
	}
	pageHolds(t, filepath.Join("..", "docs", "results", "information.md"), "<!-- from runs.csv; go test ./reproduce -run WhatInformationIsWorth -update writes it -->\n", "<!-- end of runs.csv -->\n", informationTables(t, rows))
}

// shapley returns what each of n players adds on average over all orders in which they could come, given what each coalition is worth.
func shapley(n int, worth func(coalition int) float64) []float64 {
	values := make([]float64, n)
	orders := 1.0
	for i := range n {
		orders *= float64(i + 1)
	}
	factorial := func(k int) float64 {
		f := 1.0
		for i := range k {
			f *= float64(i + 1)
		}
		return f
	}
	for coalition := range 1 << n {
		size := bits.OnesCount(uint(coalition))
		for player := range n {
			if bit := 1 << player; coalition&bit == 0 {
				values[player] += float64(factorial(size) * factorial(n-size-1) / orders * (worth(coalition|bit) - worth(coalition)))
			}
		}
	}
	return values
}

// Shapley values add up to what all are worth, are nothing for who adds nothing, and of the glove game those that are known: of a
// left glove and two right ones the left has two thirds.
func TestShapley(t *testing.T) {
	glove := func(c int) float64 {
		if c&1 != 0 && c&0b110 != 0 {
			return 1
		}
		return 0
	}
	want := []float64{2.0 / 3, 1.0 / 6, 1.0 / 6, 0}
	for i, x := range shapley(4, glove) {
		if math.Abs(x-want[i]) > 1e-12 {
			t.Errorf("player %d has %v, want %v", i, x, want[i])
		}
	}
}

// informationTables writes the split of each setting, and what the models of forecasts are worth.
func informationTables(t *testing.T, rows [][]string) string {
	t.Helper()
	type key struct {
		setting, model, knows string
		seed                  int
	}
	met, late := map[key]float64{}, map[key]float64{}
	seeds := 0
	for _, row := range rows {
		k := key{row[0], row[2], row[3], int(bestFigure(t, row[1]))}
		late[k] = bestFigure(t, row[5])
		met[k] = bestFigure(t, row[4]) - late[k]
		seeds = max(seeds, k.seed)
	}
	of := func(setting, model string, knows informed, values map[key]float64) (s sample) {
		for seed := range seeds {
			x, there := values[key{setting, model, fmt.Sprintf("%04b", int(knows)), seed + 1}]
			if !there {
				t.Fatalf("%s has no row of %s, %04b, seed %d", setting, model, int(knows), seed+1)
			}
			s = append(s, x)
		}
		return s
	}
	var text strings.Builder
	fmt.Fprintf(&text, "\n**Jobs that end by their deadline, in percent, and what each part adds (Shapley values, points), %d seeds**\n\n| setting | with nothing | with all | %s |\n|---|---|---|%s\n",
		seeds, strings.Join(informationPlayers, " | "), strings.Repeat("---|", len(informationPlayers)))
	for i := range informationSettings {
		name := informationSettings[i].name
		fmt.Fprintf(&text, "| %s | %.1f | %.1f |", name, pricedMean(of(name, awareModel, 0, met)), pricedMean(of(name, awareModel, informationAll, met)))
		split := make([]sample, len(informationPlayers))
		for seed := range seeds {
			for player, x := range shapley(len(informationPlayers), func(coalition int) float64 { return of(name, awareModel, informed(coalition), met)[seed] }) {
				split[player] = append(split[player], x)
			}
		}
		for _, s := range split {
			fmt.Fprintf(&text, " %s |", intervalOf(s))
		}
		text.WriteString("\n")
	}
	fmt.Fprintf(&text, "\n**What is lost without one part, all else known, in points**\n\n| setting | %s |\n|---|%s\n", strings.Join(informationPlayers, " | "), strings.Repeat("---|", len(informationPlayers)))
	for i := range informationSettings {
		name := informationSettings[i].name
		fmt.Fprintf(&text, "| %s |", name)
		for player := range informationPlayers {
			fmt.Fprintf(&text, " %s |", intervalOf(of(name, awareModel, informationAll, met).minus(of(name, awareModel, informationAll&^(1<<player), met))))
		}
		text.WriteString("\n")
	}
	fmt.Fprintf(&text, "\n**Forecasts: jobs that end by their deadline beside those of the last value, in points; promised and late in truth, in percent of all jobs**\n\n| setting | last | %s |\n|---|---|%s\n",
		strings.Join(informationModels[1:], " | "), strings.Repeat("---|", len(informationModels)-1))
	for i := range informationSettings {
		s := &informationSettings[i]
		if !s.models {
			continue
		}
		last := of(s.name, "last", informationAll, met)
		fmt.Fprintf(&text, "| %s | %.2f, late %.2f |", s.name, pricedMean(last), pricedMean(of(s.name, "last", informationAll, late)))
		for _, model := range informationModels[1:] {
			fmt.Fprintf(&text, " %s, late %.2f |", intervalOf(of(s.name, model, informationAll, met).minus(last)), pricedMean(of(s.name, model, informationAll, late)))
		}
		text.WriteString("\n")
	}
	return text.String() + "\n"
}

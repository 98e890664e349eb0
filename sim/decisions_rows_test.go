package sim_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/stream"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/sim"
)

// decisionRows collects the rows of a log.
type decisionRows struct {
	*material
	t    testing.TB
	rows []decisionRow
}

// add appends a row. Its name says what it is about, in the form of a path whose
// first element is the family.
func (d *decisionRows) add(work func() sim.Workload, config engine.Config, format string, args ...any) {
	config.Seed = 1
	d.rows = append(d.rows, decisionRow{fmt.Sprintf(format, args...), config, work})
}

// of returns a workload of one pool.
func (d *decisionRows) of(s setting) func() sim.Workload {
	s.records, s.crowd = cmp.Or(s.records, poolRecords), cmp.Or(s.crowd, d.crowd)
	return d.work(d.t, s)
}

// onGrid returns a workload of the grid. The arrival factor of the setting
// multiplies that of the log.
func (d *decisionRows) onGrid(s setting) func() sim.Workload {
	s.records, s.crowd, s.grid = cmp.Or(s.records, gridRecords), d.crowd*cmp.Or(s.crowd, gridCrowd), true
	return d.work(d.t, s)
}

// pool is the machine of the log.
func (d *decisionRows) pool(binding berth.Binding) engine.Config {
	return engine.Config{Sites: sim.OnePool(d.pes, binding)}
}

// sites is the grid with one binding for all pools, or with its own if the binding
// is empty.
func (d *decisionRows) sites(binding berth.Binding) engine.Config {
	sites := slices.Clone(d.grid.Sites)
	for i := range sites {
		sites[i].Pools = slices.Clone(sites[i].Pools)
		for k := range sites[i].Pools {
			pool := &sites[i].Pools[k]
			pool.Binding = cmp.Or(binding, pool.Binding)
		}
	}
	return engine.Config{Sites: sites}
}

var bothBindings = []berth.Binding{berth.Early, berth.Late}

// passOption is a pass for ordinary jobs.
type passOption struct {
	name     string
	jobs     string
	compress bool
}

func (p *passOption) choose(c *engine.Config) { c.Jobs, c.Compress = p.jobs, p.compress }

func passOptions() []passOption {
	var all []passOption
	for _, pass := range engine.JobPasses() {
		all = append(all, passOption{pass.Name, pass.Name, false})
		if pass.Name == "conservative" {
			all = append(all, passOption{"conservative+compress", pass.Name, true})
		}
	}
	return all
}

// levels gives the users 1 to 40 of a log priorities from 0 to 9.
func levels() []berth.User {
	var users []berth.User
	for i := range 40 {
		users = append(users, berth.User{ID: fmt.Sprint(i + 1), Priority: i * 7 % 10})
	}
	return users
}

// everyRow returns the rows of testdata/decisions.csv for a log.
func everyRow(t testing.TB, log *decisionLog) []decisionRow {
	d := &decisionRows{t: t, material: openMaterial(t, log, poolRecords)}
	d.placements()
	d.passes()
	d.orders()
	d.matches()
	d.batches()
	d.admission()
	d.data()
	d.shapes()
	d.outages()
	d.presets()
	d.drawn()
	return d.rows
}

// principalRows returns the rows of testdata/decisions-full.csv for a log: every
// placement under both bindings with the factors {3,3}, and every pass for jobs.
func principalRows(t testing.TB, log *decisionLog) []decisionRow {
	d := &decisionRows{t: t, material: openMaterial(t, log, 0)}
	whole := len(d.records)
	requests := d.of(setting{records: whole, crowd: 1, reserve: 1})
	jobs := d.of(setting{records: whole, crowd: 1, runs: true})
	mixed := d.of(setting{records: whole, crowd: 1, runs: true, reserve: 0.2})
	for _, place := range policy.Placements {
		for _, binding := range bothBindings {
			config := d.pool(binding)
			config.Place = place.Name
			d.add(requests, config, "requests/place=%s/bind=%s", place.Name, binding)
		}
	}
	for _, pass := range passOptions() {
		config := d.pool(berth.Late)
		pass.choose(&config)
		d.add(jobs, config, "jobs/pass=%s/bind=late", pass.name)
		d.add(mixed, config, "mixed/pass=%s/bind=late", pass.name)
		config.Sites = sim.OnePool(d.pes, berth.Early)
		d.add(jobs, config, "jobs/pass=%s/bind=early", pass.name)
	}
	return d.rows
}

func (d *decisionRows) placements() {
	requests := d.of(setting{reserve: 1})
	for _, place := range policy.Placements {
		for _, binding := range bothBindings {
			for _, horizon := range []string{engine.HorizonCapped, engine.HorizonUnbounded} {
				config := d.pool(binding)
				config.Place, config.Horizon = place.Name, horizon
				d.add(requests, config, "requests/place=%s/bind=%s/horizon=%s", place.Name, binding, horizon)
			}
		}
	}
}

// passes runs every pass on jobs alone and on jobs beside requests, with waiting
// limits, preemption, overruns and either order of an instant.
func (d *decisionRows) passes() {
	const records = 200
	crowd := 2 * d.crowd
	jobs := d.of(setting{records: records, crowd: crowd, runs: true})
	patient := d.of(setting{records: records, crowd: crowd, runs: true, patience: 3600})
	mixed := d.of(setting{records: records, crowd: crowd, runs: true, reserve: 0.4})
	patientMixed := d.of(setting{records: records, crowd: crowd, runs: true, reserve: 0.4, patience: 3600})
	noisy := d.of(setting{records: records, crowd: crowd, runs: true, reserve: 0.4, noise: 0.3})
	urgent := d.of(setting{records: records, crowd: crowd, runs: true, reserve: 0.4, urgent: true})
	coarse := d.of(setting{records: records, crowd: crowd, runs: true, reserve: 0.4, grain: 600})
	for _, pass := range passOptions() {
		for _, binding := range bothBindings {
			row := func(work func() sim.Workload, name string, change func(*engine.Config)) {
				config := d.pool(binding)
				pass.choose(&config)
				if change != nil {
					change(&config)
				}
				d.add(work, config, "%s/pass=%s/bind=%s", name, pass.name, binding)
			}
			row(jobs, "jobs", nil)
			row(patient, "jobs/waiting-limit", nil)
			row(mixed, "mixed", nil)
			row(mixed, "mixed/preempt", func(c *engine.Config) { c.Preempt = true })
			row(patientMixed, "mixed/preempt/waiting-limit", func(c *engine.Config) { c.Preempt = true })
			row(urgent, "mixed/immediate=queue", func(c *engine.Config) { c.Immediate = engine.ImmediateQueue })
			for _, overrun := range []engine.Overrun{engine.OverrunKill, engine.OverrunRunOn, engine.OverrunDelay} {
				row(noisy, "mixed/overrun="+string(overrun), func(c *engine.Config) { c.Overrun, c.Extension = overrun, 300 })
			}
			row(noisy, "mixed/preempt/overrun=extend", func(c *engine.Config) { c.Preempt, c.Overrun = true, engine.OverrunRunOn })
			row(coarse, "mixed/ends-first", func(c *engine.Config) { c.Instant = engine.EndsFirst() })
			row(coarse, "mixed/arrivals-first", func(c *engine.Config) { c.Instant = engine.ArrivalsFirst() })
		}
	}
}

// orders runs every order with every trigger, every option of those that have
// some, and every order of the queue of jobs.
func (d *decisionRows) orders() {
	const records = 300
	requests := d.of(setting{records: records, reserve: 1, grain: 600})
	jobs := d.of(setting{records: records, runs: true, patience: 20_000})
	periods := map[engine.Trigger]berth.Duration{engine.TriggerOnPeriod: 1800}
	base := func(order string, trigger engine.Trigger) engine.Config {
		config := d.pool(berth.Early)
		config.Users, config.Order, config.Trigger, config.Period = levels(), order, trigger, periods[trigger]
		return config
	}
	for _, order := range policy.Queues {
		for _, trigger := range engine.Triggers() {
			d.add(requests, base(order.Name, trigger), "order=%s/trigger=%s", order.Name, trigger)
		}
		for _, pass := range passOptions() {
			config := base(order.Name, engine.TriggerOnPeriod)
			config.Sites = sim.OnePool(d.pes, berth.Late)
			pass.choose(&config)
			d.add(jobs, config, "order=%s/jobs/pass=%s", order.Name, pass.name)
		}
	}
	apart, together := policy.Levels(-1), policy.AnyGap
	for _, c := range []struct {
		order, name string
		options     policy.OrderOptions
	}{
		{"dpsar", "sd=none", policy.OrderOptions{SD: &apart}},
		{"dpsar", "sd=any", policy.OrderOptions{SD: &together}},
		{"dpsar", "n=2", policy.OrderOptions{N: 2, NUJP: 1}},
		{"dpsar", "n=2+discard", policy.OrderOptions{N: 2, NUJP: 1, Overflow: policy.Discard}},
		{"dpsar", "chain", policy.OrderOptions{Chain: true}},
		{"dpsar", "length-classes=4", policy.OrderOptions{LengthClasses: 4, SD: &together}},
		{"dpsar", "in-user=fcfs", policy.OrderOptions{InUser: policy.FirstInUser}},
		{"dpsar", "in-user=ljf", policy.OrderOptions{InUser: policy.LongestInUser}},
		{"dpsar", "aging=600", policy.OrderOptions{Aging: 600, N: 2}},
		{"priority", "in-user=sjf", policy.OrderOptions{InUser: policy.ShortestInUser}},
		{"priority", "in-user=ljf", policy.OrderOptions{InUser: policy.LongestInUser}},
		{"priority", "aging=600", policy.OrderOptions{Aging: 600}},
	} {
		config := base(c.order, engine.TriggerOnPeriod)
		config.Options = c.options
		d.add(requests, config, "order=%s/%s", c.order, c.name)
		config.Sites, config.Jobs = sim.OnePool(d.pes, berth.Late), "easy"
		d.add(jobs, config, "order=%s/%s/jobs", c.order, c.name)
	}
}

// matches runs every match on the grid.
func (d *decisionRows) matches() {
	requests := d.onGrid(setting{reserve: 1})
	needs := d.onGrid(setting{reserve: 1, needs: true})
	mixed := d.onGrid(setting{runs: true, reserve: 0.3, needs: true})
	for _, match := range policy.Matches {
		for _, binding := range append(bothBindings, "") {
			config := d.sites(binding)
			config.Match = match.Name
			name := cmp.Or(binding, "mixed")
			d.add(requests, config, "match=%s/bind=%s", match.Name, name)
			d.add(needs, config, "match=%s/bind=%s/needs", match.Name, name)
		}
		for _, pass := range passOptions() {
			config := d.sites("")
			config.Match = match.Name
			pass.choose(&config)
			d.add(mixed, config, "match=%s/mixed/pass=%s", match.Name, pass.name)
		}
	}
}

// batches runs every batch matcher on the grid.
func (d *decisionRows) batches() {
	needs := d.onGrid(setting{records: 150, crowd: 2, reserve: 1, needs: true})
	mixed := d.onGrid(setting{records: 150, runs: true, reserve: 0.5, needs: true})
	// Few, since an unaware matcher that holds PEs is asked every second.
	few := d.onGrid(setting{records: 80, reserve: 1, needs: true, grain: 300})
	for _, batch := range policy.Batches {
		for _, unaware := range []bool{false, true} {
			name := map[bool]string{false: "aware", true: "unaware"}[unaware]
			base := d.sites("")
			base.Match, base.Unaware = batch.Name, unaware
			for _, staging := range engine.Stagings() {
				config := base
				config.Staging, config.Trigger, config.Period = staging, engine.TriggerOnPeriod, 240
				d.add(needs, config, "batch=%s/%s/staging=%s/every=240", batch.Name, name, cmp.Or(staging, "none"))
			}
			base.Staging = engine.StagingHold
			d.add(few, base, "batch=%s/%s/staging=hold/instant", batch.Name, name)
		}
		config := d.sites("")
		config.Match, config.Jobs, config.Staging = batch.Name, "easy", engine.StagingBefore
		config.Trigger, config.Period = engine.TriggerOnPeriod, 240
		d.add(mixed, config, "batch=%s/mixed", batch.Name)
	}
}

// admission runs the eager filter and quotas.
func (d *decisionRows) admission() {
	requests := d.onGrid(setting{reserve: 1})
	for _, k := range [][2]policy.Permille{{500, 500}, {1000, 200}, {200, 0}} {
		for _, eager := range []policy.Eager{{}, {Grid: true}, {RefuseAll: true}} {
			eager.K1, eager.K2 = k[0], k[1]
			config := d.sites("")
			config.Match, config.Eager = "smallest-fit", &eager
			d.add(requests, config, "eager/k1=%d/k2=%d/grid=%t/refuse-all=%t", eager.K1, eager.K2, eager.Grid, eager.RefuseAll)
		}
	}
	coarse := d.of(setting{records: 400, reserve: 1, grain: 3600}) // so that PE-seconds can meet a limit exactly
	hours := int64(d.pes/2) * 3600
	for _, c := range []struct {
		name  string
		quota policy.Limits
	}{
		{"reservations=1", quotas(1, 0)},
		{"reservations=4", quotas(4, 0)},
		{"pe-seconds", quotas(0, hours)},
		{"both", quotas(3, 4*hours)},
	} {
		config := d.sites("")
		config.Match, config.Limits = "earliest-finish", c.quota
		d.add(requests, config, "quota/grid/%s", c.name)
		for _, binding := range bothBindings {
			config := d.pool(binding)
			config.Limits = c.quota
			d.add(coarse, config, "quota/%s/bind=%s", c.name, binding)
		}
	}
}

// data runs what has licences, storage and transfers, with the uplink and with
// forecasts.
func (d *decisionRows) data() {
	for _, foreseen := range []bool{false, true} {
		s := setting{reserve: 1, needs: true}
		if foreseen {
			s.forecasts = d.grid.Sites
		}
		work := d.onGrid(s)
		for _, staging := range engine.Stagings()[1:] {
			for _, uplink := range []int64{0, d.grid.Uplink} {
				for _, match := range []string{"best-key", "earliest-finish", "smallest-fit", "ajsm"} {
					config := d.sites("")
					config.Match, config.Staging, config.Uplink = match, staging, uplink
					d.add(work, config, "data/staging=%s/uplink=%d/forecasts=%t/match=%s", staging, uplink, foreseen, match)
				}
			}
		}
	}
}

// shapes runs moldable and co-allocated requests, holds, and requests for PEs of
// their choice.
func (d *decisionRows) shapes() {
	moldable, poolMoldable := d.onGrid(setting{reserve: 1, moldable: true}), d.of(setting{records: 400, reserve: 1, moldable: true})
	for _, choice := range policy.Choices() {
		for _, place := range policy.Placements {
			for _, binding := range bothBindings {
				config := d.pool(binding)
				config.Choice, config.Place = choice, place.Name
				d.add(poolMoldable, config, "moldable/choice=%s/place=%s/bind=%s", choice, place.Name, binding)
			}
		}
		for _, match := range policy.Matches {
			config := d.sites("")
			config.Choice, config.Match = choice, match.Name
			d.add(moldable, config, "moldable/choice=%s/match=%s", choice, match.Name)
		}
	}
	for _, s := range []struct {
		name string
		setting
	}{
		{"coallocated", setting{parts: true}},
		{"coallocated+needs", setting{parts: true, needs: true}},
		{"coallocated+moldable", setting{parts: true, moldable: true}},
		{"coallocated+filling", setting{parts: true, filling: true}},
		{"holds", setting{holds: true}},
		{"holds+coallocated", setting{holds: true, parts: true}},
	} {
		s.reserve = 1
		work := d.onGrid(s.setting)
		for _, match := range append(namesOfMatches(), "ajsm") {
			config := d.sites("")
			config.Match = match
			d.add(work, config, "%s/match=%s", s.name, match)
		}
		s.records = 400
		onPool := d.of(s.setting)
		for _, binding := range bothBindings {
			d.add(onPool, d.pool(binding), "%s/bind=%s", s.name, binding)
		}
	}
	fixed := d.of(setting{records: 400, reserve: 1, fixed: true})
	for _, place := range policy.Placements {
		config := d.pool(berth.Early)
		config.Place = place.Name
		d.add(fixed, config, "chosen-pes/place=%s", place.Name)
	}
}

func namesOfMatches() []string {
	var names []string
	for _, row := range policy.Matches {
		names = append(names, row.Name)
	}
	return names
}

// outages runs requests, jobs and every shape while nodes fail.
func (d *decisionRows) outages() {
	const records = 200
	crowd := 2 * d.crowd
	onPool := sim.OnePool(d.pes, berth.Early)
	requests := d.of(setting{records: records, crowd: crowd, reserve: 1, outages: onPool})
	mixed := d.of(setting{records: records, crowd: crowd, runs: true, reserve: 0.4, noise: 0.3, outages: onPool})
	for _, binding := range bothBindings {
		for _, place := range []string{"first-fit", "pe-worst", "area-best"} {
			config := d.pool(binding)
			config.Place = place
			d.add(requests, config, "outages/place=%s/bind=%s", place, binding)
		}
		for _, pass := range passOptions() {
			for _, overrun := range []engine.Overrun{engine.OverrunKill, engine.OverrunRunOn, engine.OverrunDelay} {
				config := d.pool(binding)
				pass.choose(&config)
				config.Overrun, config.Preempt = overrun, overrun == engine.OverrunRunOn
				d.add(mixed, config, "outages/overrun=%s/preempt=%t/pass=%s/bind=%s", overrun, config.Preempt, pass.name, binding)
			}
		}
	}
	for _, s := range []struct {
		name string
		setting
	}{
		{"requests", setting{reserve: 1}},
		{"needs", setting{reserve: 1, needs: true}},
		{"moldable", setting{reserve: 1, moldable: true}},
		{"coallocated", setting{reserve: 1, parts: true}},
		{"holds", setting{reserve: 1, holds: true}},
		{"mixed", setting{reserve: 0.5, runs: true, needs: true}},
	} {
		s.outages = d.grid.Sites
		work := d.onGrid(s.setting)
		for _, match := range []string{"best-key", "earliest-finish", "ajsm"} {
			config := d.sites("")
			config.Match, config.Staging = match, engine.StagingBefore
			d.add(work, config, "outages/grid/%s/match=%s", s.name, match)
		}
	}
	config := d.sites("")
	config.Match, config.Eager = "smallest-fit", &policy.Eager{K1: 500, K2: 500}
	d.add(d.onGrid(setting{reserve: 1, outages: d.grid.Sites}), config, "outages/grid/eager")
}

// presets runs every preset on the grid, with what a command line gives it.
func (d *decisionRows) presets() {
	mixed := d.onGrid(setting{runs: true, reserve: 0.5, needs: true})
	jobs := d.onGrid(setting{runs: true})
	for _, preset := range engine.Presets() {
		config := d.sites("")
		config.Users = levels()
		preset.Apply(&config)
		work := mixed
		if preset.Jobs {
			work = jobs
		}
		d.add(work, config, "preset=%s", preset.Name)
	}
}

// The names that may be drawn. They are literals because a name appended to the
// table of a policy would change every draw.
const (
	drawnPlaces  = "first-fit pe-best pe-worst duration-best duration-worst area-best area-worst"
	drawnOrders  = "fcfs sjf ljf edf priority dpsar arwp"
	drawnMatches = "best-key smallest-fit random fastest-first earliest-finish ajsm min-min max-min sufferage mct met"
	drawnPasses  = "easy conservative fcfs lazy"
	drawnRows    = 24
)

// drawn runs drawn configurations on drawn workloads. The rows drawn-all may have
// what limits promises, moves them or takes them back too: admission, quotas,
// outages, delays.
func (d *decisionRows) drawn() {
	draws := stream.New(1, "drawn rows").Source()
	below := func(n int) int { return below(draws, n) }
	pick := func(words string) string { return strings.Fields(words)[below(len(strings.Fields(words)))] }
	maybe := func() bool { return below(2) == 0 }
	for row := range 2 * drawnRows {
		draws.SeekBlock(uint32(row))
		all := row >= drawnRows
		config := d.sites([]berth.Binding{"", berth.Early, berth.Late}[below(3)])
		config.Users = levels()
		config.Place, config.Order, config.Match, config.Jobs = pick(drawnPlaces), pick(drawnOrders), pick(drawnMatches), pick(drawnPasses)
		config.Choice, config.Horizon = policy.Choices()[below(3)], pick("capped unbounded")
		config.Compress, config.Preempt, config.Unaware = maybe(), maybe(), maybe()
		config.Staging = engine.Stagings()[below(3)]
		if maybe() {
			config.Uplink = d.grid.Uplink
		}
		config.Trigger = engine.Trigger(pick("arrival instant every"))
		if _, batch := policy.BatchNamed(config.Match); batch {
			config.Trigger = engine.TriggerOnPeriod
		}
		if config.Trigger == engine.TriggerOnPeriod {
			config.Period = berth.Duration(60 * (1 + below(20)))
		}
		s := setting{reserve: []float64{0.3, 0.7, 1}[below(3)], runs: maybe(), needs: maybe(), moldable: maybe(), holds: maybe()}
		config.Overrun = engine.Overrun(pick("kill extend"))
		if s.runs {
			s.noise = float64(below(5)) / 10
		}
		if maybe() {
			s.forecasts = d.grid.Sites
		}
		s.parts = !s.needs && maybe()
		name := "drawn"
		if all {
			name = "drawn-all"
			s.parts = maybe()
			config.Overrun, config.Immediate = engine.Overrun(pick("kill extend delay")), engine.Immediate(pick("refuse queue"))
			if maybe() {
				s.outages = d.grid.Sites
			}
			if below(3) == 0 {
				config.Eager = &policy.Eager{K1: policy.Permille(below(1001)), K2: policy.Permille(below(1001)), Grid: maybe(), RefuseAll: maybe()}
			}
			if below(3) == 0 {
				config.Limits = quotas(int64(1+below(4)), 0)
			}
			if maybe() {
				config.Instant = engine.ArrivalsFirst()
			}
		}
		d.add(d.onGrid(s), config, "%s/%02d", name, row%drawnRows)
	}
}

// quotas limits the live reservations and PE-seconds of each user; 0 is no limit.
func quotas(active, peSeconds int64) policy.Limits {
	values := map[policy.LimitName]int64{}
	if active > 0 {
		values[policy.LimitActive] = active
	}
	if peSeconds > 0 {
		values[policy.LimitPESeconds] = peSeconds
	}
	return policy.EachUser(values)
}

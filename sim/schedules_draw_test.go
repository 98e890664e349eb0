package sim_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/sim"
	"github.com/berth-hpc/berth/sites"
	"github.com/berth-hpc/berth/workload"
)

// scene is something to simulate, drawn at random.
type scene struct {
	*rapid.T
	text   string // the sites file
	file   *sites.File
	config engine.Config
	work   sim.Workload
}

func (s *scene) int(label string, from, to int) int { return rapid.IntRange(from, to).Draw(s.T, label) }

// once reports true one time in n.
func (s *scene) once(label string, n int) bool {
	return rapid.IntRange(1, n).Draw(s.T, label) == n // shrinks to false
}

func pick[T any](s *scene, label string, from []T) T { return rapid.SampledFrom(from).Draw(s.T, label) }

// the names and versions of programs at sites.
var (
	programs = []string{"X", "Y"}
	versions = []string{"1", "1.10", "2~rc1", "2"}
)

// drawSites writes a sites file and reads it.
func (s *scene) drawSites(t *testing.T) {
	var b strings.Builder
	if s.once("uplink", 4) {
		fmt.Fprintf(&b, "uplink: %dMB/s\n", s.int("uplink MB/s", 20, 200))
	}
	b.WriteString("sites:\n")
	for i := range s.int("sites", 1, 3) {
		fmt.Fprintf(&b, "  - name: s%d\n", i)
		if s.once("managed", 3) {
			b.WriteString("    managed: true\n")
		}
		if s.once("storage", 2) {
			fmt.Fprintf(&b, "    storage: %dMB\n", s.int("storage MB", 1000, 8000))
		}
		if s.once("link", 2) {
			fmt.Fprintf(&b, "    link: {bandwidth: %dMB/s, delay: %dms}\n", s.int("link MB/s", 20, 400), s.int("delay ms", 0, 2000))
		}
		if s.once("software", 2) {
			b.WriteString("    software:\n")
			seen := map[string]bool{}
			for range s.int("programs", 1, 3) {
				name, version := pick(s, "program", programs), pick(s, "version", versions)
				if seen[name+version] {
					continue
				}
				seen[name+version] = true
				fmt.Fprintf(&b, "      - {name: %s, version: %q", name, version)
				if s.once("licences", 2) {
					fmt.Fprintf(&b, ", licences: %d", s.int("licences there", 1, 4))
				}
				b.WriteString("}\n")
			}
		}
		s.writePools(&b)
	}
	s.text = b.String()
	file, err := sites.Read(strings.NewReader(s.text), "sites.yaml")
	if err != nil {
		t.Fatalf("%v\nin %s", err, s.text)
	}
	s.file = file
}

func (s *scene) writePools(b *strings.Builder) {
	var partitions strings.Builder
	b.WriteString("    pools:\n")
	for k := range s.int("pools", 1, 2) {
		pes, binding := s.int("PEs", 1, 10), pick(s, "binding", []string{"early", "late"})
		fmt.Fprintf(b, "      - {name: p%d, pes: %d, binding: %s", k, pes, binding)
		if s.once("speed", 2) {
			fmt.Fprintf(b, ", speed: %s", pick(s, "speed of PEs", []string{"0.7", "1.3", "2"}))
		}
		if s.once("node", 2) {
			fmt.Fprintf(b, ", node: {memory: %dMB, accelerators: %d, accelerator_speed: %s}",
				s.int("memory MB", 1, 4)*1000, s.int("accelerators there", 0, 2), pick(s, "speed of accelerators", []string{"0.5", "3"}))
		}
		b.WriteString("}\n")
		if s.once("partition", 2) {
			fmt.Fprintf(&partitions, "      - {name: q%d, pool: p%d", k, k)
			if binding == "early" && s.once("partition of PEs", 2) {
				lo := s.int("first PE", 0, pes-1)
				fmt.Fprintf(&partitions, ", pes: %d-%d", lo, s.int("last PE", lo, pes-1))
			}
			if s.once("partition of few", 2) {
				fmt.Fprintf(&partitions, ", max_npe: %d", s.int("most PEs", 1, pes))
			}
			if s.once("partition for short", 2) {
				fmt.Fprintf(&partitions, ", max_duration: %ds", s.int("longest", 10, 80))
			}
			partitions.WriteString("}\n")
		}
	}
	if partitions.Len() > 0 {
		b.WriteString("    partitions:\n" + partitions.String())
	}
}

// drawConfig draws a preset, and other choices for some of its own.
func (s *scene) drawConfig() {
	c := &s.config
	c.Sites, c.Uplink = s.file.Sites, s.file.Uplink
	c.Users = []berth.User{{ID: "ann", Priority: 3}, {ID: "bob", Priority: 1}}
	c.Seed = rapid.Uint64().Draw(s.T, "seed")
	if s.once("order", 4) {
		c.Order = pick(s, "which order", policy.Queues).Name
	}
	if s.once("match", 2) {
		c.Match = pick(s, "which match", policy.Matches).Name
	} else if s.once("batch", 4) {
		c.Match, c.Unaware = pick(s, "which batch", policy.Batches).Name, s.once("unaware", 3)
	}
	c.Place = pick(s, "place", policy.Placements).Name
	c.Choice = pick(s, "choice", policy.Choices())
	c.Horizon = pick(s, "horizon", []string{engine.HorizonCapped, engine.HorizonUnbounded})
	if s.once("staging", 2) {
		c.Staging = pick(s, "which staging", engine.Stagings())
	}
	if s.once("pass", 3) {
		c.Jobs = pick(s, "which pass", engine.JobPasses()).Name
	}
	c.Compress, c.Preempt = s.once("compress", 4), s.once("preempt", 6)
	if s.once("immediate", 4) {
		c.Immediate = engine.ImmediateQueue
	}
	if s.once("overruns", 2) {
		c.Overrun = pick(s, "overrun", []engine.Overrun{engine.OverrunKill, engine.OverrunRunOn, engine.OverrunDelay})
		c.Extension = berth.Duration(s.int("extension", 1, 30))
	}
	if s.once("trigger", 4) {
		if c.Trigger = pick(s, "which trigger", engine.Triggers()); c.Trigger == engine.TriggerOnPeriod {
			c.Period = berth.Duration(s.int("period", 1, 40))
		}
	}
	if s.once("eager", 6) {
		c.Eager = &policy.Eager{K1: policy.Permille(s.int("K1", 0, 1000)), K2: policy.Permille(s.int("K2", 0, 1000)), Grid: s.once("grid", 2)}
	}
	if s.once("quota", 6) {
		c.Limits = quotas(int64(s.int("reservations", 1, 4)), 0)
	}
	if s.once("arrivals first", 4) {
		c.Instant = engine.ArrivalsFirst()
	}
	preset := pick(s, "preset", engine.Presets())
	preset.Apply(c)
}

// drawRequest draws a request for something that mostly some pool has.
func (s *scene) drawRequest(id string, now berth.Time) berth.Request {
	site := pick(s, "for a site", s.config.Sites)
	pool := pick(s, "for a pool", site.Pools)
	r := berth.Request{ID: id, User: pick(s, "user", []string{"", "ann", "bob"}), Arrival: now, Ready: now}
	var longest berth.Duration
	part := func() {
		var p berth.Part
		for range s.int("variants", 1, 3) {
			v := berth.Variant{NPE: berth.Count(s.int("npe", 1, int(pool.PEs)+1)), Duration: berth.Duration(s.int("duration", 1, 90))}
			p.Variants = append(p.Variants, v)
			longest = max(longest, v.Duration)
		}
		if s.once("rigid", 2) {
			p.Variants = p.Variants[:1]
		}
		some := func(label string) (set berth.PESet) {
			for pe := range berth.PE(pool.PEs) {
				if !s.once("not "+label, 3) {
					set = berth.NewPESet(append(slices.Clone(set.Runs()), berth.Run{Lo: pe, Hi: pe + 1})...)
				}
			}
			return set
		}
		if pool.Binding == berth.Early && s.once("eligible", 6) {
			p.Eligible = some("eligible")
		}
		of := berth.PoolID(site.Name, pool.Name)
		if pool.Binding == berth.Early && s.once("only", 8) {
			if pes := some("only"); !pes.Empty() {
				p.Only = []berth.PoolPEs{{Resource: of, PEs: pes}}
			}
		}
		if pool.Binding == berth.Early && s.once("never", 8) {
			p.Never = []berth.PoolPEs{{Resource: of, PEs: berth.PEsOf(berth.PE(s.int("never PE", 0, int(pool.PEs)-1)))}}
		}
		r.Parts = append(r.Parts, p)
	}
	part()
	s.drawNeeds(&r.Requirements, &site, &pool)
	if s.once("wish for a site", 5) {
		r.Site = site.Name
		if s.once("and a pool", 2) {
			r.Pool = pool.Name
		}
	}
	if s.once("sites", 8) {
		r.Sites = []string{site.Name, pick(s, "or a site", s.config.Sites).Name}
	}
	if s.once("job", 3) {
		r.Kind, r.Deadline = berth.KindJob, berth.Forever
		r.Parts[0].Variants = r.Parts[0].Variants[:1]
		if s.once("waiting limit", 3) {
			r.Deadline = now.Add(longest) + berth.Time(s.int("limit", 0, 100))
		}
		for i := range s.config.Sites { // a job takes nothing that is counted
			at := &s.config.Sites[i]
			if at.StorageMB > 0 {
				r.StorageMB = 0
			}
			if slices.ContainsFunc(at.Software, func(p berth.Software) bool { return p.Licences > 0 }) {
				r.Licences = 0
			}
		}
		return r
	}
	for len(r.Parts) < 3 && s.once("another part", 3) {
		part()
	}
	r.Ready += berth.Time(s.int("lead", 0, 150))
	r.Deadline = r.Ready.Add(longest*2) + berth.Time(s.int("slack", 0, 150))
	if s.once("held", 8) {
		r.Hold = berth.Duration(s.int("hold", 1, 50))
	}
	return r
}

func (s *scene) drawNeeds(n *berth.Requirements, site *berth.Site, pool *berth.Pool) {
	if len(site.Software) > 0 && s.once("needs software", 3) {
		program := pick(s, "which program", site.Software)
		if n.Software = program.Name; s.once("needs a version", 2) {
			n.Version = pick(s, "which version", versions)
		}
		if s.once("needs licences", 2) {
			n.Licences = berth.Count(s.int("licences", 1, 3))
		}
	}
	if s.once("needs storage", 2) {
		n.StorageMB = int64(s.int("data MB", 1, 4000))
	}
	if s.once("needs memory", 4) {
		n.MemoryMB = int64(s.int("memory", 500, 4000))
	}
	if pool.Node.Accelerators > 0 && s.once("needs accelerators", 3) {
		n.Accelerators = s.int("accelerators", 1, 2)
	}
	if len(site.Partitions) > 0 && s.once("needs a partition", 3) {
		n.Partition = pick(s, "which partition", site.Partitions).Name
	}
}

// drawWork draws what is asked for, how long it really runs, and what fails.
func (s *scene) drawWork() {
	now := berth.Time(0)
	for i := range s.int("requests", 1, 30) {
		now += berth.Time(s.int("pause", 0, 12))
		s.work.Requests = append(s.work.Requests, s.drawRequest(fmt.Sprintf("r%d", i), now))
	}
	if s.once("runs", 2) {
		s.work.Runs = make([]berth.Duration, len(s.work.Requests))
		for i := range s.work.Requests {
			if r := &s.work.Requests[i]; len(r.Parts[0].Variants) == 1 && s.once("run", 2) {
				s.work.Runs[i] = berth.Duration(s.int("run for", 1, 2*int(r.Parts[0].Variants[0].Duration)))
			}
		}
	}
	var outages []workload.Outage
	if s.once("outages", 2) {
		for range s.int("how many", 1, 8) {
			id, pes := s.drawPEs()
			from := berth.Time(s.int("falls at", 0, int(now)+100))
			until := from + berth.Time(s.int("for", 1, 120))
			if s.once("for good", 6) {
				until = berth.Forever
			}
			outages = append(outages, workload.Outage{Resource: id, PEs: pes, From: from, Until: until})
		}
	}
	s.work.Outages = func(yield func(sim.Outage) bool) {
		for _, o := range workload.MergeOutages(slices.Clone(outages)) {
			if !yield(sim.Outage(o)) {
				return
			}
		}
	}
	if s.once("monitor", 2) {
		s.drawMonitor(now)
	}
}

// drawPEs draws some PEs of a pool.
func (s *scene) drawPEs() (berth.ResourceID, berth.PESet) {
	site := pick(s, "site of PEs", s.config.Sites)
	pool := pick(s, "pool of PEs", site.Pools)
	lo := s.int("lowest PE", 0, int(pool.PEs)-1)
	return berth.PoolID(site.Name, pool.Name), berth.NewPESet(berth.Run{Lo: berth.PE(lo), Hi: berth.PE(s.int("highest PE", lo, int(pool.PEs)-1) + 1)})
}

// drawMonitor draws forecasts of links, and PEs that are back early.
func (s *scene) drawMonitor(last berth.Time) {
	m := &watch{}
	type news struct {
		at    berth.Time
		event engine.Event
	}
	var all []news
	for range s.int("news", 1, 6) {
		n := news{at: berth.Time(s.int("news at", 0, int(last)+60))}
		if s.once("up", 2) {
			id, pes := s.drawPEs()
			n.event = engine.Event{Kind: engine.EventUp, Resource: id, PEs: pes}
		} else {
			f := &berth.Forecast{Site: pick(s, "link of", s.config.Sites).Name, From: n.at, Period: 10}
			for sum := int64(0); len(f.Kilobytes) < 3; f.Kilobytes = append(f.Kilobytes, sum) {
				sum += int64(pick(s, "MB moved", []int{0, 10, 100, 500, 4000})) * 1000
			}
			n.event = engine.UpdateForecast(f)
		}
		all = append(all, n)
	}
	slices.SortStableFunc(all, func(a, b news) int { return cmp.Compare(a.at, b.at) })
	for _, n := range all {
		m.at, m.events = append(m.at, n.at), append(m.events, n.event)
	}
	s.work.Monitor = m
}

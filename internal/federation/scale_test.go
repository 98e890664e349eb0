package federation

import (
	"flag"
	"fmt"
	"iter"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/realdata"
	"github.com/berth-hpc/berth/internal/stream"
	"github.com/berth-hpc/berth/workload"
)

var (
	engines = flag.Int("federation.engines", 6, "engines of the table of docs/scale.md")
	nodes   = flag.Int("federation.nodes", 500, "nodes of each")
	live    = flag.Int("federation.live", 300, "promises asked for of each before anything is measured")
	asked   = flag.Int("federation.asked", 600, "requests that are measured")
	only    = flag.String("federation.only", "", "only rows whose name contains this")
)

// shape is sizes and lengths of a real log, or of a model where there is none.
type shape []berth.Variant

// logs names the logs whose shapes engines take in turn.
var logs = []string{
	"HPC2N-2002-2.2-cln", "SDSC-BLUE-2000-4.2-cln", "CTC-SP2-1996-3.1-cln", "LANL-CM5-1994-4.1-cln", "SDSC-DS-2004-2.1-cln", "OSC-Clust-2000-3.1-cln",
}

func shapes(t *testing.T) []shape {
	t.Helper()
	list := make([]shape, len(logs))
	for i, log := range logs {
		w, err := workload.Open(realdata.File(t, "swf", log+".swf.gz"), workload.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for j := range w.Records {
			r := &w.Records[j]
			if r.Run > 0 && r.Size() > 0 {
				list[i] = append(list[i], berth.Variant{NPE: r.Size(), Duration: min(r.Run, 2*86400)})
			}
		}
	}
	return list
}

// scene is the load of a run: first promises of each home, then what is measured.
type scene struct {
	engines, live, asked int
	nodes                berth.Count
	shapes               []shape
	together             bool // one engine has all
}

// day is when the measured requests arrive, in seconds from the start.
const day = 86400

// draw returns the i-th variant of an engine's log. The n requests of an engine go through its log from a place of their own.
func (s *scene) draw(home, i int) berth.Variant {
	of := s.shapes[home%len(s.shapes)]
	v := of[(home/len(s.shapes)*7919+i)%len(of)]
	v.NPE = min(v.NPE, s.nodes)
	return v
}

// span returns for how long promises are spread at an engine: such that they ask for nine to fifteen tenths of it.
func (s *scene) span(home int) berth.Time {
	area := int64(0)
	for i := range min(s.live, 20_000) {
		v := s.draw(home, i)
		area += v.Area()
	}
	area = area / int64(min(s.live, 20_000)) * int64(s.live)
	load := int64(9 + home%7)
	return berth.Time(max(day, area*10/load/int64(s.nodes)))
}

// all returns the requests: s.live for each engine, which arrive before anything else, and then s.asked in
// a day, one in ten of two to eight parts that must be apart.
func (s *scene) all() iter.Seq[Request] {
	spans := make([]berth.Time, s.engines)
	for home := range spans {
		spans[home] = s.span(home)
	}
	return func(yield func(Request) bool) {
		ready, slack := stream.New(1, "ready"), stream.New(1, "slack")
		request := func(id string, n uint64, home int, arrival berth.Time, v berth.Variant) Request {
			begin := arrival + 600 + berth.Time(ready.Float64(n)*float64(spans[home]))
			r := berth.Rigid(id, arrival, begin, begin.Add(v.Duration)+berth.Time(slack.Float64(n)*3*float64(v.Duration)), v.NPE, v.Duration)
			return Request{Request: &r, Home: home}
		}
		n := uint64(0)
		for i := range s.live {
			for home := range s.engines {
				r := request(fmt.Sprintf("p%d", n), n, home, 0, s.draw(home, i))
				if r.Local = true; s.together {
					r.Site, r.Home = fmt.Sprintf("e%03d", home), 0
				}
				n++
				if !yield(r) {
					return
				}
			}
		}
		homes, parts := stream.New(1, "homes"), stream.New(1, "parts")
		for i := range s.asked {
			k := uint64(i)
			home := int(homes.Float64(k) * float64(s.engines))
			r := request(fmt.Sprintf("q%d", i), n+k, home, 1+berth.Time(i)*day/berth.Time(s.asked), s.draw(home, s.live+i))
			if x := parts.Float64(k); x < .1 {
				for range 1 + min(int(x*70), s.engines-2) {
					r.Parts = append(r.Parts, berth.Part{Variants: r.Parts[0].Variants})
				}
				r.Apart = true
			}
			if s.together {
				r.Home = 0
			}
			if !yield(r) {
				return
			}
		}
	}
}

// result is a row of the table.
type result struct {
	name               string
	asked, accepted    int
	area, acceptedArea int64
	apart, apartYes    int
	elsewhere          int
	waits              []berth.Duration // of accepted requests that were measured
	trips              []int
	promised           int // of those before
	totals             *Totals
	took               time.Duration
	heap               uint64
}

// play plays the scene.
func (s *scene) play(t *testing.T, name string, config Config) *result {
	t.Helper()
	if s.together {
		all := engine.Config{Match: "earliest-finish"}
		for i := range s.engines {
			all.Sites = append(all.Sites, siteOf(i, s.nodes, berth.Late))
		}
		config.Engines = []engine.Config{all}
	} else {
		for i := range s.engines {
			config.Engines = append(config.Engines, engineOf(i, s.nodes, berth.Late))
		}
	}
	r := &result{name: name}
	began := time.Now()
	totals, err := Play(&config, s.all(), func(o *Outcome) {
		if strings.HasPrefix(o.Request.ID, "p") {
			if o.Accepted {
				r.promised++
			}
			if o.Number == s.engines*s.live-1 {
				var m runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&m)
				r.heap = m.HeapAlloc
			}
			return
		}
		area := int64(0)
		for i := range o.Request.Parts {
			area += o.Request.Parts[i].Variants[0].Area()
		}
		r.asked++
		r.area += area
		if o.Request.Apart {
			r.apart++
		}
		if !o.Accepted {
			return
		}
		r.accepted++
		r.acceptedArea += area
		r.waits = append(r.waits, o.Decided.Sub(o.Request.Arrival))
		r.trips = append(r.trips, o.Trips)
		if o.Request.Apart {
			r.apartYes++
		} else if o.Places[0].Engine != o.Request.Home {
			r.elsewhere++
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	r.totals, r.took = totals, time.Since(began)
	slices.Sort(r.waits)
	slices.Sort(r.trips)
	return r
}

func (r *result) String() string {
	share := func(a, b int64) float64 { return 100 * float64(a) / float64(max(1, b)) }
	at := len(r.waits) * 99 / 100
	mean := 0.
	for _, n := range r.trips {
		mean += float64(n) / float64(len(r.trips))
	}
	return fmt.Sprintf("| %s | %.1f | %.1f | %.1f | %.1f | %.2f, %d | %d s | %d, %d, %d | %.1f | %d | %.1f |", r.name,
		share(int64(r.accepted), int64(r.asked)), share(r.acceptedArea, r.area), share(int64(r.apartYes), int64(r.apart)), share(int64(r.elsewhere), int64(r.accepted)),
		mean, r.trips[at], r.waits[at], r.totals.Holds, r.totals.Released, r.totals.Expired, float64(r.totals.Blocked)/3600, r.totals.Broken, float64(r.totals.MostHeld)/10)
}

// failing has one engine of twenty down at any time, for half an hour each.
func failing(engines int) (list []Failure) {
	const lasts = 1800
	down := max(1, engines/20)
	for slot := range day / lasts {
		for k := range down {
			list = append(list, Failure{(slot*down + k*7) % engines, berth.Time(slot)*lasts + 1, berth.Time(slot+1)*lasts + 1})
		}
	}
	slices.SortStableFunc(list, func(a, b Failure) int { return a.Engine - b.Engine })
	return list
}

// TestScale prints the table of docs/scale.md; by default it is small.
func TestScale(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(50))
	s := &scene{engines: *engines, live: *live, asked: *asked, nodes: berth.Count(*nodes), shapes: shapes(t)}
	usual := Config{Refresh: 60, Tries: 4, Trip: 1, Hold: 30, Held: 100, Rounds: 8}
	with := func(change func(*Config)) Config {
		c := usual
		change(&c)
		return c
	}
	rows := map[string]*result{}
	for _, row := range []struct {
		name     string
		together bool
		config   Config
	}{
		{"one engine has all", true, usual},
		{"each home alone", false, with(func(c *Config) { c.Tries = 1 })},
		{"4 tries, index of now", false, with(func(c *Config) { c.Refresh = 0 })},
		{"4 tries, index of at most 1 min", false, usual},
		{"4 tries, index of at most 1 h", false, with(func(c *Config) { c.Refresh = 3600 })},
		{"4 tries, index of at most a day", false, with(func(c *Config) { c.Refresh = day })},
		{"2 tries, index of at most 1 min", false, with(func(c *Config) { c.Tries = 2 })},
		{"the first hold may be wider", false, with(func(c *Config) { c.Wide = true })},
		{"holds unbounded", false, with(func(c *Config) { c.Held = 0 })},
		{"a trip of 10 s, holds of 300 s", false, with(func(c *Config) { c.Trip, c.Hold = 10, 300 })},
		{"one engine of twenty down", false, with(func(c *Config) { c.Failures = failing(s.engines) })},
	} {
		if !strings.Contains(row.name, *only) {
			continue
		}
		s.together = row.together
		r := s.play(t, row.name, row.config)
		rows[row.name] = r
		t.Log(r)
		t.Logf("  %d of %d promised before, %.0f s, heap then %.0f MB, %d bounded, %d asked in vain", r.promised, s.engines*s.live, r.took.Seconds(), float64(r.heap)/1e6, r.totals.Bounded, r.totals.Silent)
		if r.totals.Unreleased != 0 || r.asked != s.asked {
			t.Errorf("%s: %d holds are left, %d of %d told", row.name, r.totals.Unreleased, r.asked, s.asked)
		}
	}
	if *only != "" {
		return
	}
	all, home, usually := rows["one engine has all"], rows["each home alone"], rows["4 tries, index of at most 1 min"]
	if all.promised != home.promised {
		t.Errorf("%d and %d promised before, of the same requests at the same sites", all.promised, home.promised)
	}
	if usually.accepted <= home.accepted || usually.elsewhere == 0 || usually.apartYes == 0 || rows["one engine of twenty down"].totals.Silent == 0 {
		t.Errorf("a federation is no better than each home alone: %+v and %+v", usually, home)
	}
}

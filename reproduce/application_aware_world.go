package reproduce

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/forecast"
	"github.com/berth-hpc/berth/internal/stream"
	"github.com/berth-hpc/berth/workload"
)

// awareSite is a row of the application-aware paper's Table 2.
type awareSite struct {
	nodes               berth.Count
	storageTB           float64
	software            int // programs
	sockets, cores, mhz int
	coreGHz, phi        float64 // of the manycore processor of a node; 0 for none
	memoryGB            int64
	free                int // of awareShares
}

// How many of a site's nodes others leave free, in thousandths of all.
const (
	busy = iota
	medium
	quiet
)

var awareShares = [...][2]float64{busy: {5, 30}, medium: {30, 100}, quiet: {100, 500}}

// awareGrid is Table 2, whose columns are run together in print; the split has
// the paper's sum of 74,626 nodes at GC1 to GC10 (spec 5, c). The processor of
// GC5 cannot be read; it is that of the machine it stands for. GC11 to GC20 are
// alike but for their busyness.
var awareGrid = func() []awareSite {
	grid := []awareSite{
		{2048, 1.47, 78, 2, 6, 2930, 140.64, 1, 48, medium},
		{17920, 12.4, 112, 2, 12, 2200, 188.1, 2.3, 64, medium},
		{2560, 0.408, 48, 2, 6, 2660, 515, 1, 24, quiet},
		{128, 1.5, 20, 4, 8, 2400, 0, 0, 128, busy},
		{40960, 230, 75, 1, 4, 1450, 381.1, 1.9, 32, busy},
		{912, 600, 132, 2, 6, 2500, 0, 0, 64, quiet},
		{980, 160, 44, 2, 12, 2500, 0, 0, 128, quiet},
		{7168, 262, 88, 2, 6, 2930, 515, 1, 32, busy},
		{1650, 45, 26, 4, 4, 2000, 0, 0, 48, medium},
		{300, 23, 46, 2, 12, 2500, 0, 0, 32, quiet},
	}
	for k := 11; k <= 20; k++ {
		site := awareSite{1, 0.8, 10, 1, 12, 3000, 0, 0, 16, quiet}
		switch k {
		case 12:
			site.free = medium
		case 16:
			site.free = busy
		}
		grid = append(grid, site)
	}
	return grid
}()

// speed is the paper's equation 3, against a node of 2 × 6 cores of 2 GHz.
func (s *awareSite) speed() berth.Speed {
	return berth.Speed((s.sockets*s.cores*s.mhz + 12) / 24)
}

// manycore is equation 4, against 515 core-GHz; 0 without such a processor.
func (s *awareSite) manycore() berth.Speed {
	return berth.Speed(math.Round(float64(s.phi*s.coreGHz) / 515 * 1000))
}

// The random parts of the grid and of the jobs (spec 5, c).
const (
	awarePeriod = 240 // seconds between two scheduling points

	programs     = 200
	versions     = 16  // of each, 1.0 to 1.15
	mostLicences = 10  // log2; the least is 2^3
	leastFactor  = 1.1 // of the deadline
	leastMB      = 100 // of data
	mostMB       = 20_000
	// leastRun leaves out jobs that no site could serve: they wait up to one
	// period, and half their run time is the most that they may.
	leastRun = 600
)

// popularity is the sum of the programs' weights, by program: the i-th has 1/i.
var popularity = func() []float64 {
	sums, sum := make([]float64, programs), 0.0
	for i := range sums {
		sum += 1 / float64(i+1)
		sums[i] = sum
	}
	return sums
}()

// awareWorld is what one seed draws: the sites and how fast data get there. It
// may be used by several goroutines.
type awareWorld struct {
	seed  uint64
	model string // of forecasts
	sites []berth.Site
	links []awareLink // by site; the main centre has none
	// foreseen are the forecasts of each scheduling point, by site, made when
	// they are first asked for.
	foreseen []func() []*berth.Forecast
}

// newAwareWorld draws a world for n periods.
func newAwareWorld(seed uint64, net awareNet, periods int) *awareWorld {
	w := &awareWorld{seed: seed, model: awareModel, links: make([]awareLink, len(awareGrid))}
	for k := range awareGrid {
		w.sites = append(w.sites, awareGrid[k].site(k, seed))
		if k > 0 {
			w.links[k] = net.link(seed, k, awarePeriod*(periods+1))
		}
	}
	for point := range periods + 1 {
		w.foreseen = append(w.foreseen, sync.OnceValue(func() []*berth.Forecast { return w.foresee(point) }))
	}
	return w
}

// site returns the k-th site with programs of its own.
func (s *awareSite) site(k int, seed uint64) berth.Site {
	pool := berth.Pool{
		Name: "nodes", PEs: s.nodes, Binding: berth.Late, Speed: s.speed(),
		Node: berth.Node{Sockets: s.sockets, Cores: s.cores, MHz: s.mhz, MemoryMB: 1000 * s.memoryGB, AcceleratorSpeed: s.manycore()},
	}
	if pool.Node.AcceleratorSpeed > 0 {
		pool.Node.Accelerators = 1
	}
	site := berth.Site{Name: fmt.Sprintf("GC%d", k+1), Pools: []berth.Pool{pool}, StorageMB: int64(math.Round(s.storageTB * 1e6))}
	source := stream.New(seed, "software").Source()
	source.SeekBlock(uint32(k))
	rng := newRand(source)
	// The smallest of exponential times with the weights as rates are a draw
	// without replacement.
	order, times := make([]int, programs), make([]float64, programs)
	for i := range order {
		order[i], times[i] = i, rng.ExpFloat64()*float64(i+1)
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(times[a], times[b]), a-b) })
	order = order[:s.software]
	slices.Sort(order)
	for _, program := range order {
		site.Software = append(site.Software, berth.Software{
			Name: programName(program), Version: fmt.Sprintf("1.%d", rng.IntN(versions)), Licences: 1 << (3 + rng.IntN(mostLicences-2)),
		})
	}
	return site
}

func programName(i int) string { return fmt.Sprintf("program-%03d", i+1) }

// free returns how many nodes of a site others leave free at a scheduling point.
func (w *awareWorld) free(site, point int) berth.Count {
	s := &awareGrid[site]
	share := awareShares[s.free]
	u := stream.New(w.seed, "others").Float64(uint64(point*len(awareGrid) + site))
	permille := share[0] + float64(u*(share[1]-share[0]))
	return max(1, berth.Count(float64(s.nodes)*permille/1000))
}

// jobs returns the first n jobs of the seed, in the order of arrival over n
// periods: run times and nodes are those of records drawn at random. The version that one
// demands is the oldest of three draws: then about 3 % of the jobs demand what no site has, as
// the specification wants it (spec 5, c).
func (w *awareWorld) jobs(records []workload.Record, n, periods int, demands awareDemands) []berth.Request {
	type job struct {
		at   float64
		draw int
	}
	order := make([]job, n)
	arrivals := stream.New(w.seed, "arrivals")
	for i := range order {
		order[i] = job{arrivals.Float64(uint64(i)), i}
	}
	slices.SortFunc(order, func(a, b job) int { return cmp.Or(cmp.Compare(a.at, b.at), a.draw-b.draw) })
	source := stream.New(w.seed, "jobs").Source()
	rng := newRand(source)
	requests := make([]berth.Request, n)
	for i, j := range order {
		source.SeekBlock(uint32(j.draw))
		record := &records[rng.IntN(len(records))]
		arrival := berth.Time(float64(periods*awarePeriod) * j.at)
		factor := leastFactor + float64((demands.mostFactor-leastFactor)*rng.Float64())
		deadline := arrival.Add(berth.Duration(float64(record.Run) * factor))
		r := berth.Rigid(fmt.Sprintf("job-%04d", i+1), arrival, arrival, deadline, record.Size(), record.Run)
		r.StorageMB = int64(leastMB * math.Exp(rng.Float64()*math.Log(float64(mostMB)/leastMB)))
		if rng.Float64() < demands.accelerated {
			r.Accelerators = 1
		}
		u := rng.Float64() * popularity[programs-1]
		program, _ := slices.BinarySearch(popularity, u)
		r.Software = programName(program)
		r.Version = fmt.Sprintf("1.%d", min(rng.IntN(versions), rng.IntN(versions), rng.IntN(versions)))
		r.Licences = 1 << rng.IntN(4)
		requests[i] = r
	}
	return requests
}

// awareModel foresees bandwidths, as in the paper.
const awareModel = "arima"

// foresee fits the model to the last 24 minutes of every link and forecasts it.
func (w *awareWorld) foresee(point int) []*berth.Forecast {
	entry, ok := forecast.ModelNamed(w.model)
	if !ok {
		panic("reproduce: no model " + w.model)
	}
	now := berth.Time(point * awarePeriod)
	all := make([]*berth.Forecast, len(w.links))
	for k := range w.links {
		if l := &w.links[k]; l.rates != nil {
			all[k] = l.foresee(entry, now, w.sites[k].Name)
		}
	}
	return all
}

// events returns the forecasts of a scheduling point, those of the last one ever
// after, as the engine takes them.
func (w *awareWorld) events(point, last int) []engine.Event {
	var events []engine.Event
	for _, f := range w.foreseen[min(point, last)]() {
		if f != nil {
			events = append(events, engine.UpdateForecast(f))
		}
	}
	return events
}

// awareMonitor tells the engine of one run what the sites are like: at every
// scheduling point the forecasts, and which nodes others use until the next.
type awareMonitor struct {
	world  *awareWorld
	last   int // point of arrivals
	point  int // the next
	at     berth.Time
	events []engine.Event // still to be told, at that time
	told   bool           // the forecasts are, and not what others use
}

// Next implements sim.Monitor: points come while jobs arrive or wait.
func (m *awareMonitor) Next(e *engine.Engine) (berth.Time, bool) {
	if len(m.events) == 0 && m.told {
		m.told, m.events = false, m.others(e)
	}
	if len(m.events) > 0 {
		return m.at, true
	}
	waits := m.point <= m.last
	for range e.Pending() {
		waits = true
		break
	}
	return berth.Time(m.point * awarePeriod), waits
}

// Report implements sim.Monitor. What has ended by now has given its nodes back
// with the first event, so the others' are chosen after the forecasts.
func (m *awareMonitor) Report(*engine.Engine) engine.Event {
	if len(m.events) == 0 {
		m.at, m.events, m.told = berth.Time(m.point*awarePeriod), m.world.events(m.point, m.last), true
		m.point++
	}
	event := m.events[0]
	m.events = m.events[1:]
	return event
}

// others lets others use what they use of every site, but not what runs there:
// then they have less.
func (m *awareMonitor) others(e *engine.Engine) []engine.Event {
	var events []engine.Event
	for k := range m.world.sites {
		site := &m.world.sites[k]
		var used []berth.Run
		for r := range e.Due(site.Name, m.at) {
			if r.State == berth.Active {
				used = append(used, r.Allotments[0].PEs.Runs()...)
			}
		}
		pool := &site.Pools[0]
		theirs := highest(pool.PEs, berth.NewPESet(used...), pool.PEs-m.world.free(k, m.point-1))
		if !theirs.Empty() {
			events = append(events, engine.Event{
				Kind: engine.EventDown, Resource: berth.PoolID(site.Name, pool.Name), PEs: theirs, Until: m.at + awarePeriod,
			})
		}
	}
	return events
}

// highest returns the n PEs with the highest numbers of a pool that are not
// used, or all that are not.
func highest(pes berth.Count, used berth.PESet, n berth.Count) berth.PESet {
	var runs []berth.Run
	end := berth.PE(pes)
	take := func(from berth.PE) {
		if lo := max(from, end-berth.PE(n)); lo < end && n > 0 {
			runs = append(runs, berth.Run{Lo: lo, Hi: end})
			n -= berth.Count(end - lo)
		}
	}
	for _, run := range slices.Backward(used.Runs()) {
		take(run.Hi)
		end = run.Lo
	}
	take(0)
	return berth.NewPESet(runs...)
}

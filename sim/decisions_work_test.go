package sim_test

import (
	"cmp"
	"iter"
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/realdata"
	"github.com/berth-hpc/berth/internal/stream"
	"github.com/berth-hpc/berth/sim"
	"github.com/berth-hpc/berth/sites"
	"github.com/berth-hpc/berth/workload"
)

// decisionLog is a log of the archive.
type decisionLog struct {
	name, file string
	// crowd is the arrival factor that makes its first records, as reservations,
	// compete for room.
	crowd float64
}

var decisionLogs = []decisionLog{
	{"LANL", "LANL-CM5-1994-4.1-cln", 1},
	{"CTC", "CTC-SP2-1996-3.1-cln", 3},
	{"OSC", "OSC-Clust-2000-3.1-cln", 30},
	{"SDSC-BLUE", "SDSC-BLUE-2000-4.2-cln", 2},
	{"SDSC-DS", "SDSC-DS-2004-2.1-cln", 3},
	{"HPC2N", "HPC2N-2002-2.2-cln", 1},
}

// The usual numbers of records of a workload, of one pool and of the grid.
const (
	poolRecords = 1500
	gridRecords = 200
)

const (
	gridLargest = 128 // PEs of the grid's largest pool: a size of half a log's machine or more becomes it
	gridCrowd   = 10  // times the arrival factor of the log, since there are more PEs
)

// material is what the rows of a log are made of.
type material struct {
	pes     berth.Count
	records []workload.Record
	crowd   float64
	grid    *sites.File
}

func openMaterial(t testing.TB, log *decisionLog, records int) *material {
	t.Helper()
	w, err := workload.Open(realdata.File(t, "swf", log.file+".swf.gz"), workload.Options{Jobs: records})
	if err != nil {
		t.Fatal(err)
	}
	grid, err := sites.Open("testdata/grid.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return &material{pes: w.Header.PEs(), records: w.Records, crowd: log.crowd, grid: grid}
}

// setting says what becomes of records.
type setting struct {
	records int        // how many, from the first; 0 is all
	reserve float64    // the share that asks for promises; the others are ordinary jobs
	crowd   float64    // arrival factor
	grain   berth.Time // times and lengths are multiples of it, so that events coincide; 0 leaves them

	runs  bool    // lengths are estimates, and run times those of the log
	noise float64 // run times are up to this part shorter or longer

	grid     bool           // sizes are those of the grid, not of the log's machine
	needs    bool           // software, licences, memory, data, accelerators, partitions, a site or a pool
	moldable bool           // every third request has three variants
	parts    bool           // every fourth request has two or three parts
	filling  bool           // those parts are two, fill the pool for minutes, and may wait for days
	holds    bool           // every third request is held, and nothing confirms it
	fixed    bool           // every fourth request wants PEs of one half of the machine
	urgent   bool           // every second request wants to start when it arrives
	patience berth.Duration // waiting limit of jobs; 0 is none

	outages   []berth.Site // the sites whose nodes fail
	forecasts []berth.Site // the sites whose links are forecast
}

// work makes a workload of the first records of a log.
func (m *material) work(t testing.TB, s setting) func() sim.Workload {
	t.Helper()
	records := m.records
	if s.records > 0 {
		records = records[:min(s.records, len(records))]
	}
	mix := workload.NewMix(1)
	mix.Reserve, mix.ArrivalFactor, mix.Estimates = s.reserve, s.crowd, s.runs
	if s.patience > 0 {
		mix.Waiting = &s.patience
	}
	requests, runs, err := mix.Requests(records, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := sim.Workload{Requests: requests}
	if s.runs {
		w.Runs = runs
		noise := workload.Noise{Amount: s.noise, Seed: 1}
		noise.Apply(w.Runs)
	}
	pes := m.pes // of the largest pool
	if s.grid {
		pes = gridLargest
		scale(w.Requests, m.pes)
	}
	if s.needs {
		require(w.Requests, m.grid.Sites)
	}
	if s.grain > 0 {
		coarsen(&w, s.grain)
	}
	shape(&w, &s, pes)
	if s.outages != nil {
		w.Outages = failing(t, s.outages, w.Requests)
	}
	if s.forecasts == nil {
		return func() sim.Workload { return w }
	}
	at, events := forecasts(s.forecasts, w.Requests)
	return func() sim.Workload {
		again := w
		again.Monitor = &watch{at: at, events: events}
		return again
	}
}

// scale makes the sizes of a machine's jobs those of the grid. A few are larger
// than every pool.
func scale(requests []berth.Request, pes berth.Count) {
	for i := range requests {
		v := &requests[i].Parts[0].Variants[0]
		v.NPE = min((v.NPE*2*gridLargest+pes-1)/pes, gridLargest)
		if i%97 == 96 {
			v.NPE = gridLargest + 1
		}
	}
}

// coarsen rounds times and lengths up to multiples of a grain.
func coarsen(w *sim.Workload, grain berth.Time) {
	up := func(t berth.Time) berth.Time { return (t + grain - 1) / grain * grain }
	for i := range w.Runs {
		w.Runs[i] = berth.Duration(up(berth.Time(w.Runs[i])))
	}
	for i := range w.Requests {
		r := &w.Requests[i]
		v := &r.Parts[0].Variants[0]
		v.Duration = berth.Duration(up(berth.Time(v.Duration)))
		r.Arrival, r.Ready = up(r.Arrival), up(r.Ready)
		if r.Deadline < berth.Forever {
			r.Deadline = max(up(r.Deadline), r.Ready.Add(v.Duration))
		}
	}
}

// below draws a number from 0 to n−1.
func below(draws *stream.Source, n int) int { return int(draws.Uint64() >> 32 * uint64(n) >> 32) }

// require draws what requests require. The grid has most of it somewhere.
func require(requests []berth.Request, grid []berth.Site) {
	draws := stream.New(1, "requirements").Source()
	for i := range requests {
		draws.SeekBlock(uint32(i))
		r := &requests[i]
		below := func(n int) int { return below(draws, n) }
		switch below(10) {
		case 0, 1:
			r.Software = "NAMD"
			r.Version = []string{"", "2.9", "2.12", "2.14"}[below(4)]
			r.Licences = berth.Count(below(2)) // which no site limits
		case 2, 3:
			if r.IsJob() {
				break // jobs take nothing that a site counts
			}
			r.Software, r.Licences = "CP2K", berth.Count(1+below(12))
			r.Version = []string{"", "6.1", "7.0"}[below(3)]
		case 4:
			if below(8) == 0 {
				r.Software = "absent"
			}
		}
		if below(3) == 0 && !r.IsJob() {
			r.StorageMB = int64(10_000 * (1 + below(15))) // in steps that fill a site's storage exactly
			if below(6) == 0 {
				r.StorageMB = 600_001
			}
		}
		if below(6) == 0 {
			r.MemoryMB = int64(1 + below(100_000))
		}
		switch below(20) {
		case 0:
			r.Accelerators = 1 + below(4)
		case 1:
			r.Partition = []string{"batch", "debug"}[below(2)]
		case 2:
			r.Site = grid[below(len(grid))].Name
		case 3:
			r.Site, r.Pool = "north", []string{"cpu", "gpu"}[below(2)]
		}
	}
}

// shape gives requests ready times, variants, parts, holds and PEs as the setting
// says.
func shape(w *sim.Workload, s *setting, pes berth.Count) {
	for i := range w.Requests {
		r := &w.Requests[i]
		if r.IsJob() {
			continue
		}
		v := r.Parts[0].Variants[0]
		if s.urgent && i%2 == 0 {
			r.Ready = r.Arrival
		}
		if s.moldable && i%3 == 0 {
			r.Parts[0].Variants = []berth.Variant{
				v, {NPE: min(2*v.NPE, pes), Duration: (v.Duration*3 + 4) / 5}, {NPE: (v.NPE + 1) / 2, Duration: v.Duration * 9 / 5},
			}
			r.Deadline = max(r.Deadline, r.Ready.Add(v.Duration*9/5))
			if w.Runs != nil {
				w.Runs[i] = 0 // each variant runs as long as it was given
			}
		}
		if s.parts && i%4 == 1 {
			r.Parts = append(r.Parts[:1:1], berth.Part{Variants: []berth.Variant{{NPE: (v.NPE + 1) / 2, Duration: v.Duration}}})
			if i%8 == 1 && !s.filling {
				r.Parts = append(r.Parts, berth.Part{Variants: []berth.Variant{{NPE: (v.NPE + 2) / 3, Duration: (v.Duration + 1) / 2}}})
			}
		}
		if s.filling && i%4 == 1 {
			short := min(v.Duration, 300)
			r.Parts[0].Variants = []berth.Variant{{NPE: pes - pes/2, Duration: short}}
			r.Parts[1].Variants = []berth.Variant{{NPE: max(1, pes/2), Duration: short}}
			r.Deadline += 7 * 86_400
		}
		if s.holds && i%3 == 2 {
			r.Hold = berth.Duration(60 * (1 + i%50))
		}
		if s.fixed && i%4 == 3 {
			half := berth.Run{Lo: 0, Hi: berth.PE(pes+1) / 2}
			if i%8 == 3 {
				half = berth.Run{Lo: berth.PE(pes) / 2, Hi: berth.PE(pes)}
			}
			r.Parts[0].Eligible = berth.NewPESet(half)
		}
	}
}

// span is the time in which requests arrive.
func span(requests []berth.Request) berth.Interval {
	return berth.Interval{Start: requests[0].Arrival, End: requests[len(requests)-1].Arrival}
}

// failing draws the outages of nodes, each an eighth of the largest pool. In the
// mean a node fails after a quarter of the time in which requests arrive, and is
// repaired after a fortieth of it.
func failing(t testing.TB, of []berth.Site, requests []berth.Request) iter.Seq[sim.Outage] {
	t.Helper()
	during := span(requests)
	largest := of[0].Pools[0].PEs
	for i := range of {
		for _, pool := range of[i].Pools {
			largest = max(largest, pool.PEs)
		}
	}
	drawn, err := (&workload.Failures{
		MTBF: max(1, during.Length()/4), MTTR: max(1, during.Length()/40), PEs: (largest + 7) / 8, Seed: 1,
	}).Outages(of, during)
	if err != nil {
		t.Fatal(err)
	}
	return func(yield func(sim.Outage) bool) {
		for o := range drawn {
			if !yield(sim.Outage(o)) {
				return
			}
		}
	}
}

// forecasts draws forecasts of the links of sites, a dozen for each.
func forecasts(of []berth.Site, requests []berth.Request) ([]berth.Time, []engine.Event) {
	during := span(requests)
	draws := stream.New(1, "forecasts").Rand()
	var events []engine.Event
	for i := range of {
		link := max(of[i].Link.KilobytesPerSecond, 5_000)
		for k := range 12 {
			f := &berth.Forecast{Site: of[i].Name, Period: 300, From: during.Start.Add(during.Length() * berth.Duration(k) / 12)}
			sum := int64(0)
			for range 24 {
				sum += 300 * link / 4 * (1 + draws.Int64N(5)) / 3
				f.Kilobytes = append(f.Kilobytes, sum)
			}
			events = append(events, engine.UpdateForecast(f))
		}
	}
	slices.SortStableFunc(events, func(a, b engine.Event) int { return cmp.Compare(a.Forecast.From, b.Forecast.From) })
	at := make([]berth.Time, len(events))
	for i := range events {
		at[i] = events[i].Forecast.From
	}
	return at, events
}

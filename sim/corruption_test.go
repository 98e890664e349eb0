package sim_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/check"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/sim"
)

// world is a simulation: sites, what happens there, and how it is decided.
type world struct {
	config engine.Config
	work   sim.Workload
}

// grid are a site with all that a site can have, and a managed one.
func grid() []berth.Site {
	return []berth.Site{
		{
			Name: "a",
			Pools: []berth.Pool{
				{Name: "cpu", PEs: 8, Binding: berth.Early, Node: berth.Node{MemoryMB: 4000}},
				{Name: "gpu", PEs: 4, Binding: berth.Early, Speed: 2000, Node: berth.Node{MemoryMB: 8000, Accelerators: 2, AcceleratorSpeed: 500}},
			},
			Partitions: []berth.Partition{{Name: "debug", Pool: "cpu", PEs: berth.NewPESet(berth.Run{Lo: 0, Hi: 4}), MaxNPE: 2, MaxDuration: 100}},
			Software:   []berth.Software{{Name: "X", Version: "2.1", Licences: 2}},
			StorageMB:  10_000, Link: berth.Link{KilobytesPerSecond: 100_000},
		},
		{Name: "m", Managed: true, Pools: []berth.Pool{{Name: "p", PEs: 4, Binding: berth.Early}}, Link: berth.Link{KilobytesPerSecond: 100_000}},
	}
}

// ask returns a request of 2 PEs for 100 s at a site, with 300 s to spare.
func ask(id string, at berth.Time, site string, change func(r *berth.Request)) berth.Request {
	r := berth.Rigid(id, at-10, at, at+400, 2, 100)
	r.Site = site
	if change != nil {
		change(&r)
	}
	return r
}

// holding is a world in which PEs are held while data are moved, things go on for
// too long, and PEs fall. Each request has a time of its own.
func holding() world {
	w := world{config: engine.Config{Sites: grid(), Staging: engine.StagingHold, Overrun: engine.OverrunDelay, Extension: 100}}
	var down []sim.Outage
	on := func(site, pool string, from, until berth.Time, pes ...berth.PE) {
		down = append(down, sim.Outage{Resource: berth.PoolID(site, pool), PEs: berth.PEsOf(pes...), From: from, Until: until})
	}
	long := berth.Job("long", 9990, 4, 100)
	long.Site, long.Pool = "m", "p"
	w.work.Requests = []berth.Request{
		ask("plain", 1000, "a", func(r *berth.Request) { r.Pool, r.Parts[0].Eligible = "cpu", berth.PEsOf(1, 2) }),
		ask("data", 2000, "a", func(r *berth.Request) { r.StorageMB = 2000 }),
		ask("mold", 3000, "a", func(r *berth.Request) {
			r.StorageMB = 2000
			r.Parts[0].Variants = append(r.Parts[0].Variants, berth.Variant{NPE: 4, Duration: 60})
		}),
		ask("soft", 4000, "", func(r *berth.Request) { r.Software, r.Version, r.Licences = "X", "2", 1 }),
		ask("gpu", 5000, "", func(r *berth.Request) { r.Accelerators, r.MemoryMB = 2, 8000 }),
		ask("debug", 6000, "", func(r *berth.Request) { r.Partition = "debug" }),
		ask("pair", 7000, "a", func(r *berth.Request) { r.Parts = append(r.Parts, r.Parts[0]) }),
		ask("refused", 8000, "", func(r *berth.Request) { r.Parts[0].Variants[0].NPE = 99 }),
		ask("moved", 9000, "a", func(r *berth.Request) { r.Pool = "cpu" }),
		ask("broken", 9500, "a", func(r *berth.Request) {
			r.Pool, r.Deadline, r.Parts[0].Variants[0].NPE = "cpu", 9600, 8
		}),
		long,
		ask("delayed", 10_100, "m", func(r *berth.Request) { r.Arrival, r.Deadline = 10_050, 10_200 }),
		ask("shrunk", 11_000, "m", nil),
		berth.Job("job", 12_000, 2, 100),
	}
	w.work.Runs = make([]berth.Duration, len(w.work.Requests))
	w.work.Runs[10] = 180
	on("a", "cpu", 8995, 9300, 0, 1, 2, 3, 4, 5, 6)
	on("a", "cpu", 9495, 9800, 3)
	on("m", "p", 11_050, 11_080, 0, 1, 2)
	w.work.Outages = slices.Values(down)
	return w
}

// earlier is a world in which data are moved before PEs are promised, and share an
// uplink; once it is known that they come late.
func earlier() world {
	w := world{config: engine.Config{Sites: grid(), Staging: engine.StagingBefore, Uplink: 150_000}}
	w.work.Requests = []berth.Request{
		ask("first", 1000, "a", func(r *berth.Request) { r.StorageMB = 2000 }),
		ask("second", 1000, "m", func(r *berth.Request) { r.StorageMB = 2000 }),
		ask("late", 3000, "a", func(r *berth.Request) { r.StorageMB, r.Arrival = 2000, 2995 }),
	}
	w.work.Monitor = &watch{at: []berth.Time{2996}, events: []engine.Event{{Kind: engine.EventUpdateForecast, Forecast: &berth.Forecast{
		Site: "a", From: 2996, Period: 10, Kilobytes: []int64{200_000},
	}}}}
	return w
}

func (w *world) run(t *testing.T) []berth.Line {
	t.Helper()
	work := w.work
	if m, is := work.Monitor.(*watch); is {
		again := *m // a run takes its events
		work.Monitor = &again
	}
	return replay(t, w.config, work)
}

// violations returns each violation of a schedule as its class and ids.
func (w *world) violations(t *testing.T, lines []berth.Line) (short []string, report *check.Report) {
	t.Helper()
	report = checked(t, lines, check.Against(w.config.Sites, w.config.Uplink))
	for _, v := range report.Violations {
		short = append(short, fmt.Sprint(v.Class, " ", v.IDs))
	}
	return short, report
}

// lineOf returns the line of an id and part: a staging if that is the kind, else
// another one.
func lineOf(lines []berth.Line, id string, part int, kind berth.Kind) *berth.Line {
	for i := range lines {
		l := &lines[i]
		if l.ID == id && (kind == "" && l.Kind != berth.KindStaging || l.Kind == kind) && l.Part == part {
			return l
		}
	}
	panic("no line of " + id)
}

// shifted returns a time that is later by some seconds.
func shifted(t *berth.Time, by berth.Duration) *berth.Time {
	later := t.Add(by)
	return &later
}

// wanting returns what the request of a line asked for, to be changed.
func wanting(l *berth.Line) *berth.Wanted {
	w := *l.Wants()
	l.Wanted = &w
	return l.Wanted
}

// during returns a booking of PEs throughout the time of a line.
func during(l *berth.Line, npe berth.Count) berth.Line {
	return berth.Line{ID: "x", Kind: berth.KindBooking, Site: l.Site, Pool: l.Pool, NPE: npe, Start: l.Start, End: l.End}
}

// A schedule of the simulator is valid, and if one thing is changed that a rule
// forbids, exactly that is named.
func TestCorruptedSchedules(t *testing.T) {
	type lines = []berth.Line
	held, early := holding(), earlier()
	of := func(id string, change func(l *berth.Line)) func(lines) lines {
		return func(all lines) lines {
			change(lineOf(all, id, 0, ""))
			return all
		}
	}
	part := func(n int, change func(l *berth.Line)) func(lines) lines {
		return func(all lines) lines {
			change(lineOf(all, "pair", n, ""))
			return all
		}
	}
	staging := func(id string, change func(l *berth.Line)) func(lines) lines {
		return func(all lines) lines {
			change(lineOf(all, id, 0, berth.KindStaging))
			return all
		}
	}
	beside := func(id string, npe berth.Count, change func(l *berth.Line)) func(lines) lines {
		return func(all lines) lines {
			more := during(lineOf(all, id, 0, ""), npe)
			if change != nil {
				change(&more)
			}
			return append(all, more)
		}
	}
	tried := map[string]bool{}
	for _, c := range []struct {
		name    string
		world   *world
		corrupt func(lines) lines
		want    string // the class and the ids
	}{
		{"more PEs than any machine", &held, of("refused", func(l *berth.Line) { l.NPE = berth.MaxPEs + 1 }), "unreadable [refused]"},
		{"a refusal twice", &held, func(all lines) lines { return append(all, *lineOf(all, "refused", 0, "")) }, "duplicate [refused]"},
		{"ready before arrival", &held, of("refused", func(l *berth.Line) { l.Arrival = l.Ready + 1 }), "request [refused]"},
		{"no PEs", &held, of("refused", func(l *berth.Line) { l.NPE = 0 }), "request [refused]"},
		{"no time", &held, of("refused", func(l *berth.Line) { l.Duration = 0 }), "request [refused]"},
		{"less than no licence", &held, of("refused", func(l *berth.Line) { wanting(l).Licences = -1 }), "request [refused]"},
		{"licences of nothing", &held, of("refused", func(l *berth.Line) { wanting(l).Licences = 1 }), "request [refused]"},
		{"version of nothing", &held, of("refused", func(l *berth.Line) { wanting(l).Version = "1" }), "request [refused]"},
		{"a deadline too early", &held, of("refused", func(l *berth.Line) { l.Deadline = l.Ready }), "deadline [refused]"},
		{"an unknown reason", &held, of("refused", func(l *berth.Line) { l.Reason = "tired" }), "reason [refused]"},
		{"no reason", &held, of("refused", func(l *berth.Line) { l.Reason = "" }), "reason [refused]"},
		{"a reason for an acceptance", &held, of("plain", func(l *berth.Line) { l.Reason = berth.Quota }), "reason [plain]"},
		{"a promise broken by a policy", &held, of("broken", func(l *berth.Line) { l.Reason = berth.PolicyRefused }), "reason [broken]"},
		{"a refusal that starts", &held, of("refused", func(l *berth.Line) { l.Start = shifted(&l.Ready, 0) }), "refusal_with_start [refused]"},
		{"an acceptance that never starts", &held, of("plain", func(l *berth.Line) { l.Start = nil }), "missing_start [plain]"},
		{"an acceptance that never ends", &held, of("plain", func(l *berth.Line) { l.End = nil }), "missing_start [plain]"},
		{"a start before it is ready", &held, of("plain", func(l *berth.Line) { l.Start, l.End = shifted(l.Start, -1), shifted(l.End, -1) }), "window [plain]"},
		{"an end after the deadline", &held, of("plain", func(l *berth.Line) { l.Start, l.End = shifted(l.Start, 301), shifted(l.End, 301) }), "window [plain]"},
		{"a promise outside the window", &held, of("moved", func(l *berth.Line) { l.MovedFrom[0].End = l.Deadline + 1 }), "window [moved]"},
		{"late for an outage", &held, of("moved", func(l *berth.Line) { l.Start, l.End = shifted(l.Start, 1), shifted(l.End, 1) }), "window [moved]"},
		{"longer than its duration", &held, of("plain", func(l *berth.Line) { l.End = shifted(l.End, 1) }), "length [plain]"},
		{"over before it starts", &held, of("plain", func(l *berth.Line) { l.ActualEnd = shifted(l.Start, -1) }), "length [plain]"},
		{"a limit before the end", &held, of("plain", func(l *berth.Line) { l.Limit = shifted(l.End, -1) }), "length [plain]"},
		{"all of it added", &held, of("plain", func(l *berth.Line) { l.Extended = l.Duration }), "length [plain]"},
		{"no such variant", &held, of("mold", func(l *berth.Line) {
			l.Variants = []berth.Variant{l.Variants[0], {NPE: l.Variants[1].NPE, Duration: l.Variants[1].Duration + 2}}
		}), "variant [mold]"},
		{"some of it added", &held, of("mold", func(l *berth.Line) { l.Extended = 1 }), "variant [mold]"},
		{"an unknown pool", &held, of("job", func(l *berth.Line) { l.Pool = "none" }), "unknown_pool [job]"},
		{"larger than its pool", &held, of("job", func(l *berth.Line) { l.NPE, l.PEs, l.End, l.ActualEnd = 5, berth.PESet{}, nil, l.Start }), "too_large [job]"},
		{"more PEs than are named", &held, of("job", func(l *berth.Line) { l.NPE++ }), "count [job]"},
		{"PEs that are not there", &held, of("job", func(l *berth.Line) { l.PEs = berth.PEsOf(3, 4) }), "range [job]"},
		{"another site", &held, of("plain", func(l *berth.Line) { wanting(l).WantSite = "m" }), "place [plain]"},
		{"another pool", &held, of("plain", func(l *berth.Line) { wanting(l).WantPool = "gpu" }), "place [plain]"},
		{"other PEs", &held, of("plain", func(l *berth.Line) { l.PEs = berth.PEsOf(2, 3) }), "eligible [plain]"},
		{"none of the sites", &held, of("plain", func(l *berth.Line) { wanting(l).WantSites = []string{"b", "m"} }), "place [plain]"},
		{"PEs of another pool", &held, of("plain", func(l *berth.Line) {
			wanting(l).OnlyPEs = []berth.PlacePEs{{Site: "a", Pool: "gpu", PEs: l.PEs}}
		}), "place [plain]"},
		{"none of these PEs", &held, of("plain", func(l *berth.Line) {
			wanting(l).OnlyPEs = []berth.PlacePEs{{Site: "a", Pool: "cpu", PEs: berth.PEsOf(1, 3)}}
		}), "eligible [plain]"},
		{"one of the PEs that will not do", &held, of("plain", func(l *berth.Line) {
			wanting(l).NotPEs = []berth.PlacePEs{{Site: "a", Pool: "cpu", PEs: berth.PEsOf(2)}}
		}), "eligible [plain]"},
		{"no such partition", &held, of("plain", func(l *berth.Line) { wanting(l).Partition = "none" }), "partition [plain]"},
		{"outside the partition", &held, of("debug", func(l *berth.Line) { l.PEs = berth.PEsOf(3, 4) }), "partition [debug]"},
		{"too many for the partition", &held, of("debug", func(l *berth.Line) { l.NPE, l.PEs = 3, berth.PEsOf(0, 1, 2) }), "partition [debug]"},
		{"too long for the partition", &held, of("debug", func(l *berth.Line) { l.Duration, l.End = l.Duration+1, shifted(l.End, 1) }), "partition [debug]"},
		{"too little memory", &held, of("plain", func(l *berth.Line) { wanting(l).MemoryMB = 4001 }), "hardware [plain]"},
		{"no accelerators", &held, of("plain", func(l *berth.Line) { wanting(l).Accelerators = 1 }), "hardware [plain]"},
		{"no such program", &held, of("plain", func(l *berth.Line) { wanting(l).Software = "Y" }), "software [plain]"},
		{"too old a version", &held, of("soft", func(l *berth.Line) { wanting(l).Version = "2.2" }), "software [soft]"},
		{"a move that nothing tells of", &held, of("moved", func(l *berth.Line) { l.MovedFrom = nil }), "moved [moved]"},
		{"a move for nothing", &held, of("moved", func(l *berth.Line) { l.MovedFrom[0].Cause = "" }), "moved [moved]"},
		{"a move for PEs that did not fall", &held, func(all lines) lines {
			l := lineOf(all, "outage-1", 0, "")
			l.PEs, l.NPE = berth.PEsOf(2, 3, 4, 5, 6), 5
			return all
		}, "moved [moved outage-1]"},
		{"a broken promise for nothing", &held, of("broken", func(l *berth.Line) { l.MovedFrom[0].Cause = "" }), "moved [broken]"},
		{"a delay by what ended in time", &held, of("long", func(l *berth.Line) { l.ActualEnd, l.Limit = nil, nil }), "moved [long delayed] window [delayed]"},
		{"a move to another size", &held, of("moved", func(l *berth.Line) { l.MovedFrom[0].NPE, l.MovedFrom[0].PEs = 1, berth.PEsOf(0) }), "moved [moved]"},
		{"data that were not late", &early, of("late", func(l *berth.Line) { l.MovedFrom[0].Staged = &l.MovedFrom[0].Start }), "moved [late]"},
		{"PEs lost for nothing", &held, of("shrunk", func(l *berth.Line) { l.Stretches[0].Cause = "" }), "resized [shrunk]"},
		{"more PEs than promised", &held, of("shrunk", func(l *berth.Line) {
			last := &l.Stretches[len(l.Stretches)-1]
			last.NPE, last.PEs = 3, berth.PEsOf(0, 2, 3)
		}), "resized [shrunk]"},
		{"a later part", &held, part(2, func(l *berth.Line) { l.Start, l.End = shifted(l.Start, 1), shifted(l.End, 1) }), "parts [pair]"},
		{"an earlier part", &held, func(all lines) lines {
			for n := range 2 {
				l := lineOf(all, "pair", n+1, "")
				l.Start, l.End = shifted(l.Start, berth.Duration(9-n)), shifted(l.End, berth.Duration(9-n))
			}
			return all
		}, "parts [pair]"},
		{"one part refused", &held, part(2, func(l *berth.Line) {
			l.Accepted, l.Reason, l.Start, l.End, l.PEs, l.Site, l.Pool = false, berth.NoCapacity, nil, nil, berth.PESet{}, "", ""
		}), "parts [pair]"},
		{"before what comes first", &held, of("plain", func(l *berth.Line) { l.After = []string{"soft"} }), "precedence [plain soft]"},
		{"after what was refused", &held, of("plain", func(l *berth.Line) { l.After = []string{"refused"} }), "precedence [plain refused]"},
		{"after what is not there", &held, of("plain", func(l *berth.Line) { l.After = []string{"none"} }), "precedence [plain none]"},
		{"data that come after the start", &early, staging("first", func(l *berth.Line) { l.Start, l.End = shifted(l.Start, 1), shifted(l.End, 1) }), "staging [first] uplink [first second]"},
		{"data that come before the request", &held, staging("data", func(l *berth.Line) { l.Start, l.End = shifted(l.Start, -11), shifted(l.Start, -1) }), "staging [data] staging [data]"},
		{"data of nothing", &early, staging("late", func(l *berth.Line) { l.ID = "none" }), "staging [none] uplink [late]"},
		{"data to another site", &held, staging("mold", func(l *berth.Line) { l.Site = "m" }), "staging [mold] staging [mold]"},
		{"PEs held for longer than data take", &held, of("data", func(l *berth.Line) { l.Transfer++ }), "staging [data]"},
		{"too many PEs", &held, beside("plain", 7, nil), "capacity [plain x]"},
		{"a PE twice", &held, beside("plain", 1, func(l *berth.Line) { l.PEs = berth.PEsOf(2) }), "identity [plain x]"},
		{"a lost PE twice", &held, beside("shrunk", 1, func(l *berth.Line) { l.PEs, l.End = berth.PEsOf(1), shifted(l.Start, 50) }), "identity [shrunk x]"},
		{"a lost PE", &held, beside("shrunk", 1, func(l *berth.Line) { l.PEs, l.Start = berth.PEsOf(1), shifted(l.Start, 80) }), ""},
		{"too many licences", &held, beside("soft", 1, func(l *berth.Line) { w := wanting(l); w.Software, w.Licences = "X", 2 }), "licences [soft x]"},
		{"too much storage", &held, beside("data", 1, func(l *berth.Line) { wanting(l).StorageMB = 8001 }), "storage [data x]"},
		{"too much at once", &early, staging("first", func(l *berth.Line) { l.End = shifted(l.Start, 13) }), "uplink [first]"},
		{"less than was asked for", &early, staging("second", func(l *berth.Line) { l.Kilobytes-- }), "uplink [second]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			lines := c.world.run(t)
			if before, report := c.world.violations(t, lines); before != nil {
				t.Fatal(report.Violations)
			}
			got, report := c.world.violations(t, c.corrupt(lines))
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %q, want %q\n%v", got, c.want, report.Violations)
			}
			if class, _, named := strings.Cut(c.want, " "); named {
				tried[class] = true
			}
		})
	}
	for _, class := range check.Classes() {
		if !tried[string(class)] {
			t.Errorf("no schedule is corrupted so that it has a violation of class %s", class)
		}
	}
}

package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
)

// Each requirement is met or refused by its own reason, and of several sites
// the one that got furthest is told.
func TestRequirements(t *testing.T) {
	config := engine.Config{Sites: []berth.Site{
		{
			Name: "plain", StorageMB: 1000,
			Pools:      []berth.Pool{{Name: "p", PEs: 8, Binding: berth.Early, Node: berth.Node{MemoryMB: 4000}}},
			Partitions: []berth.Partition{{Name: "short", Pool: "p", PEs: berth.PEsOf(2, 3, 4, 5), MaxNPE: 3, MaxDuration: 20}},
			Software:   []berth.Software{{Name: "NAMD", Version: "2.9"}, {Name: "CP2K", Version: "2.6.1", Licences: 2}},
		},
		{
			Name:  "gpu",
			Pools: []berth.Pool{{Name: "p", PEs: 2, Binding: berth.Late, Node: berth.Node{Accelerators: 4, MemoryMB: 64000}}},
		},
	}}
	for _, c := range []struct {
		name string
		need berth.Requirements
		npe  berth.Count
		d    berth.Duration
		want string // the site, with PEs under early binding, or the reason
	}{
		{"nothing", berth.Requirements{}, 1, 10, "plain 0"},
		{"memory", berth.Requirements{MemoryMB: 4001}, 1, 10, "gpu "},
		{"too much memory", berth.Requirements{MemoryMB: 64001}, 1, 10, "no_suitable_site"},
		{"accelerators", berth.Requirements{Accelerators: 4}, 1, 10, "gpu "},
		{"too many accelerators", berth.Requirements{Accelerators: 5}, 1, 10, "no_suitable_site"},
		{"storage", berth.Requirements{StorageMB: 1001}, 1, 10, "gpu "},
		{"software", berth.Requirements{Software: "NAMD", Version: "2.9"}, 1, 10, "plain 0"},
		{"version by number", berth.Requirements{Software: "NAMD", Version: "2.12"}, 1, 10, "no_software"},
		{"missing component", berth.Requirements{Software: "NAMD", Version: "2.9.0"}, 1, 10, "plain 0"},
		{"other software", berth.Requirements{Software: "LAMMPS"}, 1, 10, "no_software"},
		{"licences", berth.Requirements{Software: "CP2K", Licences: 2}, 1, 10, "plain 0"},
		{"too many licences", berth.Requirements{Software: "CP2K", Licences: 3}, 1, 10, "no_licence"},
		{"partition", berth.Requirements{Partition: "short"}, 3, 20, "plain 2-4"},
		{"too wide for it", berth.Requirements{Partition: "short"}, 4, 20, "no_suitable_site"},
		{"too long for it", berth.Requirements{Partition: "short"}, 3, 21, "no_suitable_site"},
		{"no such partition", berth.Requirements{Partition: "long"}, 1, 10, "no_suitable_site"},
		{"too large before all", berth.Requirements{Partition: "long", Software: "LAMMPS"}, 9, 10, "too_large"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newEngine(t, config)
			r := berth.Rigid("r", 0, 0, 100, c.npe, c.d)
			r.Requirements = c.need
			got := ""
			for _, ch := range submit(t, e, 0, r) {
				switch ch.Kind {
				case change.Accepted:
					a := ch.Reservation.Allotments[0]
					got = a.Resource.Site + " " + a.PEs.String()
				case change.Refused:
					got = string(ch.Refusal.Reason)
				}
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// A refusal is about the place that was asked for, or about that where the request
// got furthest.
func TestRefusalsAreAboutThePlaceAskedFor(t *testing.T) {
	site := func(name string, pes berth.Count, speed berth.Speed, memory int64) berth.Site {
		return berth.Site{Name: name, Pools: []berth.Pool{{Name: "p", PEs: pes, Speed: speed, Binding: berth.Late, Node: berth.Node{MemoryMB: memory}}}}
	}
	e := newEngine(t, engine.Config{Sites: []berth.Site{site("a", 8, 1000, 4000), site("b", 4, 2000, 1000), site("c", 4, 500, 1000)}})
	for i, c := range []struct {
		site, pool string
		memory     int64
		d          berth.Duration
		want       berth.Refusal
	}{
		{"b", "", 2000, 10, berth.Refusal{Reason: berth.NoSuitableSite, Resource: berth.PoolID("b", "p"), Wanted: 2, Limit: 4}},
		{"d", "", 0, 10, berth.Refusal{Reason: berth.NoSuitableSite, Wanted: 2}},
		{"a", "q", 0, 10, berth.Refusal{Reason: berth.NoSuitableSite, Wanted: 2}},
		{"", "", 0, 90, berth.Refusal{Reason: berth.DeadlineMissed, Resource: berth.PoolID("b", "p"), Wanted: 2, Possible: 45 + 70}},
		{"c", "", 0, 90, berth.Refusal{Reason: berth.DeadlineMissed, Resource: berth.PoolID("c", "p"), Wanted: 2, Possible: 180 + 70}},
	} {
		r := berth.Rigid(fmt.Sprint(i), 0, 0, 90, 2, c.d)
		r.Site, r.Pool, r.MemoryMB = c.site, c.pool, c.memory
		var got berth.Refusal
		for _, ch := range submit(t, e, 70, r) {
			if ch.Kind == change.Refused {
				got = *ch.Refusal
			}
		}
		if got != c.want {
			t.Errorf("%d: %+v, want %+v", i, got, c.want)
		}
	}
}

// A moldable request takes only the variants that its partition permits, and
// the PEs that it names within those of the partition.
func TestPartitionConfinesVariantsAndPEs(t *testing.T) {
	config := onePool(8, berth.Early)
	config.Sites[0].Partitions = []berth.Partition{{Name: "short", Pool: "pool", PEs: berth.PEsOf(2, 3, 4, 5), MaxNPE: 3}}
	r := berth.Rigid("r", 0, 0, 100, 4, 10)
	r.Parts[0].Variants = append(r.Parts[0].Variants, berth.Variant{NPE: 2, Duration: 30})
	r.Parts[0].Eligible = berth.PEsOf(0, 3, 5, 7)
	r.Partition = "short"
	e := newEngine(t, config)
	if a := accepted(t, submit(t, e, 0, r)).Allotments[0]; a.PEs.String() != "3,5" || a.End != 30 {
		t.Errorf("%s until %d, want 3,5 until 30", a.PEs, a.End)
	}
	r.ID, r.Parts[0].Eligible = "s", berth.PEsOf(0, 7)
	if got := refused(t, submit(t, e, 0, r)); got.Reason != berth.NoSuitableSite || got.Limit != 0 {
		t.Errorf("none of the PEs named is in the partition: %+v", got)
	}
}

// A request that names no partition is served by its site's default one: within its
// pools, PEs and limits. One that names a pool outside of it has that pool.
func TestDefaultPartitionServesWhatNamesNone(t *testing.T) {
	pool := func(name string, accelerators int) berth.Pool {
		return berth.Pool{Name: name, PEs: 4, Binding: berth.Early, Node: berth.Node{Accelerators: accelerators}}
	}
	config := engine.Config{Sites: []berth.Site{{
		Name: "site", Pools: []berth.Pool{pool("gpus", 2), pool("plain", 0)},
		Partitions: []berth.Partition{
			{Name: "gpu", Pool: "gpus"},
			{Name: "main", Pool: "plain", PEs: berth.PEsOf(1, 2, 3), MaxNPE: 2, MaxDuration: 50, Default: true},
		},
	}}}
	for _, c := range []struct {
		about   string
		npe     berth.Count
		long    berth.Duration
		change  func(*berth.Request)
		want    string
		refused berth.Reason
	}{
		{about: "no partition", npe: 2, long: 50, want: "plain 1-2"},
		{about: "the other partition", npe: 4, long: 500, change: func(r *berth.Request) { r.Partition = "gpu" }, want: "gpus 0-3"},
		{about: "the other pool", npe: 4, long: 500, change: func(r *berth.Request) { r.Pool = "gpus" }, want: "gpus 0-3"},
		{about: "too many PEs", npe: 3, long: 50, refused: berth.NoSuitableSite},
		{about: "too long", npe: 2, long: 51, refused: berth.NoSuitableSite},
		{about: "what it does not have", npe: 1, long: 5, change: func(r *berth.Request) { r.Accelerators = 1 }, refused: berth.NoSuitableSite},
	} {
		r := berth.Rigid("r", 0, 0, 1000, c.npe, c.long)
		if c.change != nil {
			c.change(&r)
		}
		e := newEngine(t, config)
		changes := submit(t, e, 0, r)
		if c.refused != "" {
			if got := refused(t, changes); got.Reason != c.refused {
				t.Errorf("%s: %+v, want %s", c.about, got, c.refused)
			}
			continue
		}
		if a := accepted(t, changes).Allotments[0]; a.Resource.Name+" "+a.PEs.String() != c.want {
			t.Errorf("%s: %s %s, want %s", c.about, a.Resource.Name, a.PEs, c.want)
		}
	}
	config.Sites[0].Partitions[0].Default = true
	_, err := engine.New(config)
	if wrong, is := errors.AsType[*berth.Error](err); !is || wrong.Field != "partitions" {
		t.Errorf("%v, want an error about two defaults", err)
	}
}

// What wants accelerators takes as long as the slower of PEs and accelerators
// (spec 5, equation 5): here the accelerators of a, which is faster otherwise.
func TestAcceleratorsSlowDown(t *testing.T) {
	site := func(name string, pes, accelerators berth.Speed) berth.Site {
		return berth.Site{Name: name, Pools: []berth.Pool{{
			Name: "pool", PEs: 4, Binding: berth.Late, Speed: pes, Node: berth.Node{Accelerators: 1, AcceleratorSpeed: accelerators},
		}}}
	}
	for _, c := range []struct {
		accelerators int
		site         string
		end          berth.Time
	}{{0, "a", 455}, {1, "b", 752}} {
		e := newEngine(t, engine.Config{Sites: []berth.Site{site("a", 2200, 840), site("b", 1330, 1500)}, Match: "earliest-finish"})
		r := berth.Rigid("r", 0, 0, 10_000, 2, 1000)
		r.Accelerators = c.accelerators
		submit(t, e, 0, r)
		got, live := e.Reservation("r")
		if !live || got.Allotments[0].Resource.Site != c.site || got.End() != c.end {
			t.Errorf("with %d accelerators it is %+v, want %s until %d", c.accelerators, got.Allotments, c.site, c.end)
		}
	}
}

// Of several sites that have no room, the refusal is about the one where the most
// PEs are free for long enough, wherever it stands in the list.
func TestRefusalIsAboutTheSiteThatCameClosest(t *testing.T) {
	for _, names := range [][]string{{"near", "far"}, {"far", "near"}} {
		config := engine.Config{Explain: true}
		for _, name := range names {
			config.Sites = append(config.Sites, berth.Site{Name: name, Pools: []berth.Pool{{Name: "p", PEs: 4, Binding: berth.Late}}})
		}
		e := newEngine(t, config)
		for site, npe := range map[string]berth.Count{"near": 1, "far": 3} {
			r := berth.Rigid("in the way at "+site, 0, 0, 50, npe, 50)
			r.Site = site
			submit(t, e, 0, r)
		}
		got := refused(t, submit(t, e, 0, berth.Rigid("r", 0, 0, 50, 4, 50)))
		if got.Resource.Site != "near" || got.Nearest == nil || got.Nearest.NPE != 3 {
			t.Errorf("sites %v: the refusal is %+v, nearest %+v; want 3 PEs at near", names, got, got.Nearest)
		}
	}
}

// Where no PE is free for long enough, the refusal says that none is.
func TestRefusalSaysThatNoPEIsFree(t *testing.T) {
	config := onePool(4, berth.Late)
	config.Explain = true
	e := newEngine(t, config)
	submit(t, e, 0, berth.Rigid("in the way", 0, 0, 50, 4, 50))
	got := refused(t, submit(t, e, 0, berth.Rigid("r", 0, 0, 50, 1, 10)))
	if got.Reason != berth.NoCapacity || got.Nearest == nil || got.Nearest.NPE != 0 {
		t.Errorf("the refusal is %+v, nearest %+v; want that of 0 PEs", got, got.Nearest)
	}
}

// PEs that a part names and PEs of its partition that have none in common are none,
// also where the site refuses some of them.
func TestNoCommonPEsAreNone(t *testing.T) {
	q := berth.Pool{Name: "q", PEs: 4, Binding: berth.Early}
	config := engine.Config{Sites: []berth.Site{
		{Name: "a", Pools: []berth.Pool{q}, Partitions: []berth.Partition{{Name: "y", Pool: "q", PEs: berth.PEsOf(3)}}},
		{Name: "b", Pools: []berth.Pool{{Name: "p", PEs: 1, Binding: berth.Early}}, Partitions: []berth.Partition{{Name: "y", Pool: "p"}}},
	}}
	e := newEngine(t, config)
	r := berth.Rigid("r", 0, 7, 13, 1, 4)
	r.Partition = "y"
	r.Parts[0].Eligible = berth.PEsOf(0)
	r.Parts = append(r.Parts, berth.Part{Variants: []berth.Variant{{NPE: 1, Duration: 3}}})
	submit(t, e, 0, r)
	before, _ := e.Reservation("r")
	changes := apply(t, e, 1, engine.Relocate("r", berth.PoolID("a", "q"), berth.PEsOf(3)))
	if got := kinds(changes); got != "advanced change_refused:r" || changes[1].Refusal.Resource != berth.PoolID("a", "q") {
		t.Errorf("%s, refused %+v; want a refusal about the pool that is named", got, changes[1].Refusal)
	}
	if after, _ := e.Reservation("r"); !after.Allotments[0].PEs.Equal(before.Allotments[0].PEs) || after.Allotments[0].Resource != berth.PoolID("b", "p") {
		t.Errorf("it has %+v", after.Allotments)
	}
}

// A stock larger than its calendar is counted in larger units. A request can take the
// whole of it though the last unit is not full, alone and whatever the matcher, and no
// more than that.
func TestWholeOfALargeStockCanBeTaken(t *testing.T) {
	const storage, licences = 10_000_007, 3_000_001
	for _, match := range []string{"best-key", "ajsm"} {
		t.Run(match, func(t *testing.T) {
			config := onePool(4, berth.Early)
			config.Match = match
			config.Sites[0].StorageMB = storage
			config.Sites[0].Software = []berth.Software{{Name: "solver", Licences: licences}}
			e := newEngine(t, config)
			var got []string
			ask := func(id string, now berth.Time, storage int64, licences berth.Count) {
				r := berth.Rigid(id, now, now, 15, 1, 10)
				r.Software, r.Licences, r.StorageMB = "solver", licences, storage
				got = append(got, kinds(submit(t, e, now, r)), kinds(apply(t, e, now, engine.Wake())))
			}
			ask("more", 0, storage+1, licences)
			ask("whole", 0, storage, licences)
			ask("rest", 1, 1, 0)
			got = append(got, kinds(apply(t, e, 9, engine.Wake())))
			all := strings.Join(got, " ")
			if !strings.Contains(all, "refused:more") || !strings.Contains(all, "accepted:whole") || !strings.Contains(all, "started:whole") {
				t.Errorf("%s", all)
			}
			if strings.Contains(all, "accepted:rest") {
				t.Errorf("beside the whole there is a rest: %s", all)
			}
		})
	}
}

// A job that needs a stock which every pool counts is refused, and the error is about the
// stock that it needs: its storage where that is counted, else its licences.
func TestJobsTakeNoStocksThatAreCounted(t *testing.T) {
	for name, c := range map[string]struct {
		storage  int64       // of the site, 0 is not counted
		licences berth.Count // of the site
		job      berth.Requirements
		field    string
	}{
		"storage":                      {storage: 9, job: berth.Requirements{StorageMB: 1}, field: "storage_mb"},
		"licences":                     {licences: 9, job: berth.Requirements{Software: "solver", Licences: 1}, field: "licences"},
		"licences where both count":    {9, 9, berth.Requirements{Software: "solver", Licences: 1}, "licences"},
		"storage where both count":     {9, 9, berth.Requirements{Software: "solver", StorageMB: 1}, "storage_mb"},
		"both where licences count":    {0, 9, berth.Requirements{Software: "solver", Licences: 1, StorageMB: 1}, "licences"},
		"both where storage counts":    {9, 0, berth.Requirements{Software: "solver", Licences: 1, StorageMB: 1}, "storage_mb"},
		"none of them":                 {9, 9, berth.Requirements{Software: "solver"}, ""},
		"what the site does not count": {0, 0, berth.Requirements{Software: "solver", Licences: 1, StorageMB: 1}, ""},
	} {
		config := onePool(4, berth.Late)
		config.Sites[0].StorageMB = c.storage
		config.Sites[0].Software = []berth.Software{{Name: "solver", Licences: c.licences}}
		j := job("j", 0, 1, 10)
		j.Requirements = c.job
		_, _, err := newEngine(t, config).Apply(0, engine.Submit(&j))
		field := ""
		if wrong, is := errors.AsType[*berth.Error](err); is {
			field = wrong.Field
		}
		if field != c.field {
			t.Errorf("%s: %v; want an error of field %q", name, err, c.field)
		}
	}
}

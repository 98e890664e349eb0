package engine_test

import (
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/policy"
)

// bareAndEquipped returns two sites of one pool each. The first lacks what the
// second has of every requirement that a request can state.
func bareAndEquipped(binding berth.Binding) engine.Config {
	return engine.Config{Sites: []berth.Site{
		{
			Name: "bare", Pools: []berth.Pool{{Name: "plain", PEs: 8, Binding: binding, Node: berth.Node{MemoryMB: 100}}},
			Software: []berth.Software{{Name: "solver", Version: "1.0", Licences: 1}}, StorageMB: 10,
		},
		{
			Name: "equipped", Pools: []berth.Pool{{Name: "rich", PEs: 8, Binding: binding, Node: berth.Node{MemoryMB: 1000, Accelerators: 2}}},
			Software:  []berth.Software{{Name: "solver", Version: "2.0", Licences: 5}, {Name: "viewer"}},
			StorageMB: 1000, Partitions: []berth.Partition{{Name: "long", Pool: "rich"}},
		},
	}}
}

// demands are requirements that only the site "equipped" meets.
func demands() map[string]func(*berth.Request) {
	return map[string]func(*berth.Request){
		"software":     func(r *berth.Request) { r.Software = "viewer" },
		"version":      func(r *berth.Request) { r.Software, r.Version = "solver", "2.0" },
		"licences":     func(r *berth.Request) { r.Software, r.Licences = "solver", 2 },
		"memory":       func(r *berth.Request) { r.MemoryMB = 500 },
		"storage":      func(r *berth.Request) { r.StorageMB = 20 },
		"accelerators": func(r *berth.Request) { r.Accelerators = 2 },
		"partition":    func(r *berth.Request) { r.Partition = "long" },
		"site":         func(r *berth.Request) { r.Site = "equipped" },
		"pool":         func(r *berth.Request) { r.Pool = "rich" },
	}
}

// Each part of a request gets a resource that meets every requirement of the
// request, as a request of one part does.
func TestPartsMeetTheRequirements(t *testing.T) {
	for _, binding := range bindings() {
		for name, demand := range demands() {
			config := bareAndEquipped(binding)
			e := newEngine(t, config)
			r := parts("co", 100, berth.Variant{NPE: 2, Duration: 10}, berth.Variant{NPE: 1, Duration: 5})
			demand(&r)
			submit(t, e, 0, r)
			if got, want := shape(e, "co"), "confirmed equipped:2x[0,10) equipped:1x[0,5)"; got != want {
				t.Errorf("%s, %s: co is %q, want %q", binding, name, got, want)
			}
			settled(t, config, e)
		}
	}
}

// Parts that the only suitable site cannot take together are refused, or wait for
// their turn there.
func TestPartsWaitForASuitableSite(t *testing.T) {
	for _, binding := range bindings() {
		for name, demand := range demands() {
			config := bareAndEquipped(binding)
			e := newEngine(t, config)
			busy := berth.Rigid("busy", 0, 0, 30, 6, 30)
			busy.Site = "equipped"
			submit(t, e, 0, busy)
			for id, deadline := range map[string]berth.Time{"early": 39, "late": 40} {
				r := parts(id, deadline, berth.Variant{NPE: 2, Duration: 10}, berth.Variant{NPE: 2, Duration: 10})
				demand(&r)
				submit(t, e, 0, r)
			}
			if got, want := shape(e, "early")+", "+shape(e, "late"), "gone, confirmed equipped:2x[30,40) equipped:2x[30,40)"; got != want {
				t.Errorf("%s, %s: %q, want %q", binding, name, got, want)
			}
			settled(t, config, e)
		}
	}
}

// The limits of a partition hold for each part of a request.
func TestPartsKeepThePartitionLimits(t *testing.T) {
	for _, binding := range bindings() {
		config := bareAndEquipped(binding)
		config.Sites[1].Partitions[0].MaxNPE, config.Sites[1].Partitions[0].MaxDuration = 3, 20
		e := newEngine(t, config)
		for id, v := range map[string]berth.Variant{"wide": {NPE: 4, Duration: 10}, "long": {NPE: 1, Duration: 21}, "within": {NPE: 3, Duration: 20}} {
			r := parts(id, 100, berth.Variant{NPE: 1, Duration: 10}, v)
			r.Partition = "long"
			submit(t, e, 0, r)
		}
		wantShape(t, e, "wide", "gone")
		wantShape(t, e, "long", "gone")
		wantShape(t, e, "within", "confirmed equipped:1x[0,10) equipped:3x[0,20)")
		settled(t, config, e)
	}
}

// At a managed site a promise is one reservation: its parts there end together, which a deadline, the room beside them,
// partitions and limits all have to allow. At different sites each ends by itself, and what is owed is what was asked for.
func TestPartsAtOneManagedSiteEndTogether(t *testing.T) {
	pes := func(n int64) policy.Limits {
		return policy.EachUser(map[policy.LimitName]int64{policy.LimitPESeconds: n})
	}
	long, short := berth.Variant{NPE: 2, Duration: 10}, berth.Variant{NPE: 1, Duration: 5}
	for _, binding := range bindings() {
		for name, c := range map[string]struct {
			change func(*engine.Config)
			parts  []berth.Variant
			want   string
		}{
			"the longest first": {parts: []berth.Variant{long, short}, want: "confirmed a:2x[0,10) a:1x[0,10)"},
			"the longest last":  {parts: []berth.Variant{short, long, short}, want: "confirmed a:1x[0,10) a:2x[0,10) a:1x[0,10)"},
			"no room beside it": {parts: []berth.Variant{{NPE: 4, Duration: 5}, {NPE: 1, Duration: 10}}, want: "confirmed a:4x[30,40) a:1x[30,40)"},
			"not managed": {
				change: func(c *engine.Config) { c.Sites[0].Managed = false },
				parts:  []berth.Variant{long, short}, want: "confirmed a:2x[0,10) a:1x[0,5)",
			},
			"two sites": {parts: []berth.Variant{{NPE: 4, Duration: 10}, {NPE: 5, Duration: 5}}, want: "confirmed a:4x[0,10) b:5x[0,5)"},
			"PE-seconds": {
				change: func(c *engine.Config) { c.Limits = pes(29) },
				parts:  []berth.Variant{long, short}, want: "confirmed a:2x[0,10) b:1x[0,5)",
			},
			"enough PE-seconds": {
				change: func(c *engine.Config) { c.Limits = pes(30) },
				parts:  []berth.Variant{long, short}, want: "confirmed a:2x[0,10) a:1x[0,10)",
			},
		} {
			config := managed(poolsOf(5, binding, "a", "b"))
			if c.change != nil {
				c.change(&config)
			}
			e := newEngine(t, config)
			later := berth.Rigid("later", 0, 7, 30, 3, 23)
			later.Site, later.User = "a", "other"
			if name == "no room beside it" {
				submit(t, e, 0, later)
				whole := berth.Rigid("whole", 0, 0, 1000, 5, 1000)
				whole.Site = "b"
				submit(t, e, 0, whole)
			}
			r := parts("co", 100, c.parts...)
			r.User = "alice"
			submit(t, e, 0, r)
			if got := shape(e, "co"); got != c.want {
				t.Errorf("%s, %s: %q, want %q", binding, name, got, c.want)
			}
			of, _ := e.Reservation("co")
			for i, v := range of.Terms.Variants {
				if v != c.parts[i] {
					t.Errorf("%s, %s: part %d is owed %v, want %v", binding, name, i, v, c.parts[i])
				}
			}
			settled(t, config, e)
		}
	}
}

// Displaced parts meet the requirements at their new place too.
func TestDisplacedPartsMeetTheRequirements(t *testing.T) {
	byBindingAndManagement(t, func(t *testing.T, binding berth.Binding, manage func(engine.Config) engine.Config) {
		for name, demand := range demands() {
			config := manage(bareAndEquipped(binding))
			e := newEngine(t, config)
			r := parts("co", 100, berth.Variant{NPE: 2, Duration: 10}, berth.Variant{NPE: 1, Duration: 5})
			r.Ready = 10
			demand(&r)
			submit(t, e, 0, r)
			apply(t, e, 1, takenDown(berth.PoolID("equipped", "rich"), 0, 8, 0, 20))
			want := "confirmed equipped:2x[20,30) equipped:1x[20,25)"
			if config.Sites[1].Managed {
				want = "confirmed equipped:2x[20,30) equipped:1x[20,30)"
			}
			if got := shape(e, "co"); got != want {
				t.Errorf("%s: co is %q, want %q", name, got, want)
			}
			settled(t, config, e)
		}
	})
}

// twoSites returns two sites of four PEs that count their licences and their
// storage: the second has less of both.
func twoSites(binding berth.Binding) engine.Config {
	config := poolsOf(4, binding, "a", "b")
	config.Sites[0].Software, config.Sites[0].StorageMB = []berth.Software{{Name: "solver", Licences: 5}}, 50
	config.Sites[1].Software, config.Sites[1].StorageMB = []berth.Software{{Name: "solver", Licences: 3}}, 30
	return config
}

// A request whose parts lie at two sites takes its licences and its storage at
// both, once each.
func TestPartsTakeStocksAtEverySite(t *testing.T) {
	for _, binding := range bindings() {
		config := twoSites(binding)
		e := newEngine(t, config)
		co := needy("co", 0, 0, 100, 4, 10, 2, 20)
		co.Parts = append(co.Parts, co.Parts[0])
		r := accepted(t, submit(t, e, 0, co))
		held := map[berth.ResourceID]berth.Count{}
		for _, h := range r.Stocks {
			held[h.Resource] += h.NPE
		}
		for i, site := range []string{"a", "b"} {
			if n := held[berth.LicenceID(site, &config.Sites[i].Software[0])]; n != 2 {
				t.Errorf("%s: it holds %d licences at %s, want 2", binding, n, site)
			}
			if n := held[berth.StorageID(site)]; n != 20 {
				t.Errorf("%s: it holds %d MB at %s, want 20", binding, n, site)
			}
		}
		settled(t, config, e)
		apply(t, e, 10, wake())
		if e.Live() != 0 {
			t.Errorf("%s: %d are live after the end", binding, e.Live())
		}
		full := needy("full", 10, 10, 20, 1, 10, 3, 30)
		full.Site = "b"
		accepted(t, submit(t, e, 10, full))
		settled(t, config, e)
	}
}

// What one part leaves of the stocks of a site limits others there: the second
// request waits for licences, the third for storage.
func TestStocksOfPartsAreTakenFromOthers(t *testing.T) {
	for _, binding := range bindings() {
		config := twoSites(binding)
		config.Sites[1].Pools[0].PEs = 8
		e := newEngine(t, config)
		co := needy("co", 0, 0, 10, 4, 10, 2, 20)
		co.Parts = append(co.Parts, co.Parts[0])
		submit(t, e, 0, co) // at a and b, leaves 1 licence and 10 MB at b
		for _, c := range []struct {
			id       string
			licences berth.Count
			storage  int64
			want     string
		}{{"small", 1, 5, "confirmed b:1x[0,10)"}, {"licences", 2, 0, "confirmed b:1x[10,20)"}, {"storage", 0, 11, "confirmed b:1x[10,20)"}} {
			r := needy(c.id, 0, 0, 100, 1, 10, c.licences, c.storage)
			r.Site = "b"
			submit(t, e, 0, r)
			if got := shape(e, c.id); got != c.want {
				t.Errorf("%s: %s is %q, want %q", binding, c.id, got, c.want)
			}
		}
		settled(t, config, e)
	}
}

// Two parts at one site take the licences and the storage of the request there
// once.
func TestPartsAtOneSiteShareTheirStocks(t *testing.T) {
	for _, binding := range bindings() {
		config := poolsOf(8, binding, "a")
		config.Sites[0].Software, config.Sites[0].StorageMB = []berth.Software{{Name: "solver", Licences: 2}}, 20
		e := newEngine(t, config)
		co := needy("co", 0, 0, 10, 4, 10, 2, 20)
		co.Parts = append(co.Parts, co.Parts[0])
		r := accepted(t, submit(t, e, 0, co))
		if len(r.Stocks) != 2 || r.Stocks[0].NPE+r.Stocks[1].NPE != 22 {
			t.Errorf("%s: it holds %+v, want 2 licences and 20 MB", binding, r.Stocks)
		}
		settled(t, config, e)
	}
}

// Data are moved to every site where a part lies: the parts start together when
// they are at the slower one.
func TestPartsWaitForTheirDataAtEverySite(t *testing.T) {
	for _, binding := range bindings() {
		config := poolsOf(4, binding, "near", "far")
		config.Staging = engine.StagingBefore
		config.Sites[0].Link.KilobytesPerSecond, config.Sites[1].Link.KilobytesPerSecond = 1000, 10
		for deadline, want := range map[berth.Time]string{109: "gone", 110: "confirmed near:4x[100,110) far:4x[100,110)"} {
			e := newEngine(t, config)
			co := parts("co", deadline, berth.Variant{NPE: 4, Duration: 10}, berth.Variant{NPE: 4, Duration: 10})
			co.StorageMB = 1
			submit(t, e, 0, co)
			if got := shape(e, "co"); got != want {
				t.Errorf("%s, deadline %d: co is %q, want %q", binding, deadline, got, want)
			}
			settled(t, config, e)
		}
	}
}

// A hundred parts that begin together in a pool of late binding get PEs of their own.
func TestManyPartsGetPEs(t *testing.T) {
	e := newEngine(t, onePool(128, berth.Late))
	r := berth.Request{ID: "co", User: "ada", Deadline: 100}
	for range 100 {
		r.Parts = append(r.Parts, berth.Part{Variants: []berth.Variant{{NPE: 1, Duration: 10}}})
	}
	submit(t, e, 0, r)
	apply(t, e, 1, engine.Wake())
	co, _ := e.Reservation("co")
	if len(co.Allotments) != 100 {
		t.Fatalf("%d parts, want 100", len(co.Allotments))
	}
	var taken berth.PESet
	for i := range co.Allotments {
		pes := co.Allotments[i].PEs
		if pes.Count() != 1 || !taken.And(pes).Empty() {
			t.Fatalf("part %d got %v, and others %v", i, pes, taken)
		}
		taken = taken.Or(pes)
	}
}

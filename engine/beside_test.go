package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/policy"
)

// needy is a request for licences and storage beside PEs.
func needy(id string, now, ready, deadline berth.Time, npe berth.Count, d berth.Duration, licences berth.Count, storage int64) berth.Request {
	r := berth.Request{ID: id, Arrival: now, Ready: ready, Deadline: deadline, Parts: []berth.Part{{Variants: []berth.Variant{{NPE: npe, Duration: d}}}}}
	r.StorageMB = storage
	if r.Licences = licences; licences > 0 {
		r.Software = "solver"
	}
	return r
}

// Licences are taken while something runs and given back when it ends, early
// too; storage likewise. What is missing is named.
func TestLicencesAndStorageAreTaken(t *testing.T) {
	config := onePool(10, berth.Early)
	config.Sites[0].Software = []berth.Software{{Name: "solver", Version: "2", Licences: 3}}
	config.Sites[0].StorageMB = 100
	config.Explain = true
	e := newEngine(t, config)
	at := func(now berth.Time, r berth.Request) string {
		changes := submit(t, e, now, r)
		last := changes[len(changes)-1]
		if last.Refusal != nil {
			return fmt.Sprintf("%s %d of %s %s, %d", last.Refusal.Reason, last.Refusal.Wanted, last.Refusal.Resource.Kind, last.Refusal.Resource.Name, last.Refusal.Limit)
		}
		return fmt.Sprint(last.Reservation.Start())
	}
	for _, c := range []struct {
		now  berth.Time
		r    berth.Request
		want string
	}{
		{0, needy("a", 0, 0, 100, 1, 50, 2, 0), "0"},
		{0, needy("b", 0, 0, 100, 1, 50, 1, 60), "0"},
		{0, needy("c", 0, 0, 100, 1, 50, 1, 0), "50"},
		{0, needy("d", 0, 0, 90, 1, 50, 1, 0), "no_capacity 1 of licence solver 2, 3"},
		{0, needy("e", 0, 0, 90, 1, 50, 0, 50), "no_capacity 50 of storage storage, 100"},
		{0, needy("f", 0, 0, 90, 7, 50, 0, 40), "0"},
		{0, needy("g", 0, 0, 90, 2, 50, 0, 0), "no_capacity 2 of pool pool, 0"},
		{0, needy("h", 0, 0, 900, 1, 50, 4, 0), "no_licence 1 of pool pool, 0"},
	} {
		if got := at(c.now, c.r); got != c.want {
			t.Errorf("%s: %s, want %s", c.r.ID, got, c.want)
		}
	}
	apply(t, e, 20, engine.Finish("a"))
	if got := at(20, needy("d", 20, 20, 90, 1, 50, 1, 0)); got != "20" {
		t.Errorf("after an early end: %s, want 20", got)
	}
	// The end of c was promised with its licence: b may not go on into it.
	apply(t, e, 21, engine.Cancel("d"))
	submit(t, e, 21, needy("i", 21, 50, 100, 1, 50, 2, 0))
	if got := kinds(apply(t, e, 22, engine.Extend("b", 60))); got != "advanced change_refused:b" {
		t.Errorf("longer into others' licences: %s", got)
	}
	apply(t, e, 23, engine.Cancel("i"))
	if got := kinds(apply(t, e, 24, engine.Extend("b", 60))); got != "advanced extended:b" {
		t.Errorf("longer beside one: %s", got)
	}
	if got := at(25, needy("j", 25, 50, 62, 1, 10, 2, 0)); got != "no_capacity 2 of licence solver 2, 3" {
		t.Errorf("beside what was made longer: %s", got)
	}
	if err := e.Check(); err != nil {
		t.Fatal(err)
	}
}

// A refusal is right, and a promise never takes more than there is: against a
// table of seconds, for every placement and binding.
func TestStocksAgreeWithTableOfSeconds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const horizon = 60
		pes, licences, storage := berth.Count(rapid.IntRange(1, 5).Draw(t, "pes")), berth.Count(rapid.IntRange(1, 4).Draw(t, "licences")), rapid.Int64Range(1, 6).Draw(t, "storage")
		config := onePool(pes, rapid.SampledFrom([]berth.Binding{berth.Early, berth.Late}).Draw(t, "binding"))
		config.Place = rapid.SampledFrom(policy.Placements).Draw(t, "place").Name
		config.Sites[0].Software = []berth.Software{{Name: "solver", Licences: licences}}
		config.Sites[0].StorageMB = storage
		e, err := engine.New(config)
		if err != nil {
			t.Fatal(err)
		}
		var used [horizon]struct {
			pes, licences berth.Count
			storage       int64
		}
		for i := range rapid.IntRange(1, 12).Draw(t, "requests") {
			ready := berth.Time(rapid.IntRange(0, 20).Draw(t, "ready"))
			d := berth.Duration(rapid.IntRange(1, 8).Draw(t, "duration"))
			r := needy(fmt.Sprint(i), 0, ready, ready.Add(d)+berth.Time(rapid.IntRange(0, 20).Draw(t, "slack")),
				berth.Count(rapid.IntRange(1, 5).Draw(t, "npe")), d, berth.Count(rapid.IntRange(0, 4).Draw(t, "take")), rapid.Int64Range(0, 6).Draw(t, "data"))
			npe := r.Parts[0].Variants[0].NPE
			room := func(start berth.Time) bool {
				return !slices.ContainsFunc(used[start:start.Add(d)], func(u struct {
					pes, licences berth.Count
					storage       int64
				},
				) bool {
					return u.pes+npe > pes || u.licences+r.Licences > licences || u.storage+r.StorageMB > storage
				})
			}
			changes, _, err := e.Apply(0, engine.Submit(&r))
			if err != nil {
				t.Fatal(err)
			}
			last := changes[len(changes)-1]
			if last.Kind == change.Refused {
				for start := ready; start.Add(d) <= r.Deadline && config.Sites[0].Pools[0].Binding == berth.Late; start++ {
					if room(start) {
						t.Fatalf("%+v is refused, %+v, and could start at %d", r, last.Refusal, start)
					}
				}
				continue
			}
			start := last.Reservation.Start()
			if !room(start) {
				t.Fatalf("%+v starts at %d where there is no room", r, start)
			}
			for at := start; at < start.Add(d); at++ {
				used[at].pes += npe
				used[at].licences += r.Licences
				used[at].storage += r.StorageMB
			}
		}
		if err := e.Check(); err != nil {
			t.Fatal(err)
		}
	})
}

// Ordinary jobs take no licences and no storage, so they may not use what is
// counted: they are told so, or run where they are not counted.
func TestJobsKeepAwayFromWhatIsCounted(t *testing.T) {
	config := onePool(4, berth.Late)
	config.Sites[0].Software = []berth.Software{{Name: "solver", Licences: 2}, {Name: "free"}}
	config.Immediate = engine.ImmediateQueue
	job := func(id, software string, licences berth.Count, storage int64) berth.Request {
		j := berth.Job(id, 0, 1, 10)
		j.Software, j.Licences, j.StorageMB = software, licences, storage
		return j
	}
	for _, pass := range engine.JobPasses() {
		config.Jobs = pass.Name
		config.Sites[0].StorageMB = 0
		e := newEngine(t, config)
		counted := job("counted", "solver", 1, 0)
		_, _, err := e.Apply(0, engine.Submit(&counted))
		wantCode(t, err, berth.Invalid, "licences")
		submit(t, e, 0, job("free", "free", 9, 5))
		submit(t, e, 0, job("none", "solver", 0, 5))
		if got := refused(t, submit(t, e, 0, job("unknown", "other", 1, 0))); got.Reason != berth.NoSoftware {
			t.Errorf("%s, a program that no site has: %+v", pass.Name, got)
		}
		if e.Live() != 2 {
			t.Errorf("%s: %d jobs run, want 2", pass.Name, e.Live())
		}
		// What finds no room at once waits as a job only if it could be one.
		submit(t, e, 0, needy("all", 0, 0, 90, 2, 50, 2, 0))
		if got := refused(t, submit(t, e, 0, needy("more", 0, 0, 40, 1, 40, 1, 0))); got.Reason != berth.NoCapacity {
			t.Errorf("%s: %+v", pass.Name, got)
		}
		config.Sites[0].StorageMB = 10
		e = newEngine(t, config)
		stores := job("stores", "", 0, 5)
		_, _, err = e.Apply(0, engine.Submit(&stores))
		wantCode(t, err, berth.Invalid, "storage_mb")
	}
	// Beside a site that does not count, that is where it runs.
	config.Sites = append(config.Sites, berth.Site{Name: "other", Pools: config.Sites[0].Pools, Software: []berth.Software{{Name: "solver"}}})
	e := newEngine(t, config)
	submit(t, e, 0, job("a", "solver", 3, 5))
	if a, _ := e.Reservation("a"); a.Allotments == nil || a.Allotments[0].Resource.Site != "other" {
		t.Errorf("a runs on %+v", a.Allotments)
	}
}

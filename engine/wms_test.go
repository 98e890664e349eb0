package engine_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/policy"
)

// plainWMS is the controller of Sahakyan and Petrosyan as their sections 5 and
// 6 have it (spec 4, b), on the load of each site second by second. It knows of
// no request, window or calendar.
type plainWMS struct {
	sizes  []berth.Count // in the order of the sites file
	load   [][]berth.Count
	filter *policy.Eager // nil is the sequential algorithm
}

const wmsSpan = 600 // seconds that the model knows; nothing in the test goes beyond

func newPlainWMS(filter *policy.Eager, sizes ...berth.Count) *plainWMS {
	w := &plainWMS{sizes: sizes, filter: filter}
	for range sizes {
		w.load = append(w.load, make([]berth.Count, wmsSpan))
	}
	return w
}

// wmsJob is a job (β, θ, ω).
type wmsJob struct {
	beta, omega berth.Time
	theta       berth.Count
}

// submit decides about a job at t: the site's index and the delay τ, or why not.
func (w *plainWMS) submit(t berth.Time, j wmsJob) (site int, tau berth.Time, reason berth.Reason) {
	var fit []int
	for site, size := range w.sizes {
		if size >= j.theta {
			fit = append(fit, site)
		}
	}
	slices.SortStableFunc(fit, func(a, b int) int { return cmp.Compare(w.sizes[a], w.sizes[b]) })
	reason = berth.TooLarge
	for _, site := range fit {
		if !w.admits(site, t, j) {
			if reason != berth.NoCapacity {
				reason = berth.PolicyRefused
			}
			continue
		}
		for tau := berth.Time(0); tau <= j.omega; tau++ {
			if slices.Max(w.load[site][t+tau:t+tau+j.beta])+j.theta <= w.sizes[site] {
				w.book(site, t+tau, t+tau+j.beta, j.theta)
				return site, tau, ""
			}
		}
		reason = berth.NoCapacity
	}
	return 0, 0, reason
}

func (w *plainWMS) book(site int, from, to berth.Time, theta berth.Count) {
	for s := from; s < to; s++ {
		w.load[site][s] += theta
	}
}

// admits is C: θ/R ≥ K1, or the mean load of [t, t+ω+β) is at most K2.
func (w *plainWMS) admits(site int, t berth.Time, j wmsJob) bool {
	if w.filter == nil || int64(j.theta)*1000 >= int64(w.filter.K1)*int64(w.sizes[site]) {
		return true
	}
	var busy int64
	for _, load := range w.load[site][t : t+j.omega+j.beta] {
		busy += int64(load)
	}
	return busy*1000 <= int64(w.filter.K2)*int64(w.sizes[site])*int64(j.omega+j.beta)
}

// Q1 to Q4, Q6 to Q8, X1 and X2: the engine decides every job (β, θ, ω) as the
// plain controller does, which takes the first suitable site by size and the
// smallest τ ≤ ω by trying each second; loads never exceed a site; what comes
// later changes nothing that was booked; and a cancelled job gives back exactly
// what was left of it.
func TestWMSEqualsThePlainController(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		config := engine.Config{Sites: sites(berth.Late, 8, 3, 5), Match: "smallest-fit"}
		if rapid.Bool().Draw(t, "eager") {
			config.Eager = &policy.Eager{
				K1: policy.Permille(rapid.SampledFrom([]int{0, 200, 400, 500, 1000}).Draw(t, "k1")),
				K2: policy.Permille(rapid.SampledFrom([]int{0, 100, 300, 600, 1000}).Draw(t, "k2")),
			}
		}
		plain := newPlainWMS(config.Eager, 8, 3, 5)
		e, err := engine.New(config)
		if err != nil {
			t.Fatal(err)
		}
		booked := map[string]berth.Allotment{}
		var names []string
		var now berth.Time
		for i := range rapid.IntRange(1, 40).Draw(t, "jobs") {
			now += berth.Time(rapid.IntRange(0, 4).Draw(t, "pause"))
			if len(names) > 0 && rapid.IntRange(0, 5).Draw(t, "cancel") == 0 {
				id := rapid.SampledFrom(names).Draw(t, "cancelled")
				a := booked[id]
				if _, _, err := e.Apply(now, engine.Cancel(id)); err == nil {
					at := slices.IndexFunc(config.Sites, func(s berth.Site) bool { return s.Name == a.Resource.Site })
					plain.book(at, max(a.Start, now), a.End, -a.NPE)
				} else if a.End > now {
					t.Fatalf("%s runs until %d and cannot be cancelled at %d: %v", id, a.End, now, err)
				}
				names = slices.DeleteFunc(names, func(name string) bool { return name == id })
			}
			j := wmsJob{
				beta: berth.Time(rapid.IntRange(1, 12).Draw(t, "beta")), theta: berth.Count(rapid.IntRange(1, 9).Draw(t, "theta")),
				omega: berth.Time(rapid.SampledFrom([]int{0, 0, 1, 4, 15, 40}).Draw(t, "omega")),
			}
			id := fmt.Sprint(i)
			r := waiting(id, now, berth.Duration(j.beta), j.theta, berth.Duration(j.omega))
			changes, _, err := e.Apply(now, engine.Submit(&r))
			if err != nil {
				t.Fatal(err)
			}
			last := changes[slices.IndexFunc(changes, func(c change.Change) bool { return c.Kind == change.Accepted || c.Kind == change.Refused })]
			site, tau, reason := plain.submit(now, j)
			got, want := "", fmt.Sprintf("%s at %d", config.Sites[site].Name, now+tau)
			if reason != "" {
				want = string(reason)
			}
			if last.Kind == change.Refused {
				got = string(last.Refusal.Reason)
			} else {
				a := last.Reservation.Allotments[0]
				got = fmt.Sprintf("%s at %d", a.Resource.Site, a.Start)
				names, booked[id] = append(names, id), a
			}
			if got != want {
				t.Fatalf("at %d %+v: %s, want %s", now, j, got, want)
			}
			if j.omega == 0 && last.Kind == change.Accepted && last.Reservation.Start() != now {
				t.Fatalf("ω = 0 starts at %d", last.Reservation.Start())
			}
			for r := range e.Reservations() {
				if a := r.Allotments[0]; a.Start != booked[r.Request.ID].Start || a.Resource != booked[r.Request.ID].Resource {
					t.Fatalf("%s moves", r.Request.ID)
				}
			}
		}
		for site, size := range plain.sizes {
			if slices.Max(plain.load[site]) > size || slices.Min(plain.load[site]) < 0 {
				t.Fatalf("site %d is loaded beyond its size", site)
			}
		}
	})
}

// P8: whatever the order, the reservation manager keeps the wanted start of a
// request without slack to the second, or refuses it, and never promises a PE
// twice (Check).
func TestWantedStartsAreKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		config := engine.Config{Sites: sites(berth.Late, 5, 8, 3), Users: []berth.User{{ID: "u0", Priority: 9}, {ID: "u1", Priority: 3}, {ID: "u2", Priority: 2}}}
		preset, _ := engine.PresetNamed(rapid.SampledFrom([]string{"dpsar", "arwp", "default"}).Draw(t, "preset"))
		preset.Apply(&config)
		config.Seed = rapid.Uint64().Draw(t, "seed")
		e, err := engine.New(config)
		if err != nil {
			t.Fatal(err)
		}
		var now berth.Time
		used := map[string]*[wmsSpan]berth.Count{}
		for _, s := range config.Sites {
			used[s.Name] = new([wmsSpan]berth.Count)
		}
		check := func(changes []change.Change) {
			for _, c := range changes {
				if c.Kind != change.Accepted {
					continue
				}
				r, a := c.Reservation.Request, &c.Reservation.Allotments[0]
				if a.Start != r.Ready || a.End != r.Deadline {
					t.Fatalf("%s wants [%d, %d) and gets [%d, %d)", r.ID, r.Ready, r.Deadline, a.Start, a.End)
				}
				for s := a.Start; s < a.End; s++ {
					used[a.Resource.Site][s] += a.NPE
				}
			}
		}
		for step := range 15 {
			now += berth.Time(rapid.IntRange(0, 2).Draw(t, "pause"))
			for i := range rapid.IntRange(0, 4).Draw(t, "together") {
				wanted, d := now+berth.Time(rapid.IntRange(0, 20).Draw(t, "lead")), berth.Duration(rapid.IntRange(1, 15).Draw(t, "duration"))
				r := berth.Rigid(fmt.Sprintf("%d.%d", step, i), now, wanted, wanted.Add(d), berth.Count(rapid.IntRange(1, 4).Draw(t, "npe")), d)
				r.User = drawUser(t)
				changes, _, err := e.Apply(now, engine.Submit(&r))
				if err != nil {
					t.Fatal(err)
				}
				check(changes)
			}
			changes, _, err := e.Apply(now, engine.Wake())
			if err != nil {
				t.Fatal(err)
			}
			check(changes)
			if err := e.Check(); err != nil {
				t.Fatal(err)
			}
		}
		for _, s := range config.Sites {
			if most := slices.Max(used[s.Name][:]); most > s.Pools[0].PEs {
				t.Fatalf("%d of %d PEs of %s are promised at once", most, s.Pools[0].PEs, s.Name)
			}
		}
	})
}

// Q5: under early binding a single request is accepted only if it would be under
// late binding on the same bookings, and late binding may accept more: of two
// PEs one is busy in the first second, the other in the second.
func TestLateBindingAcceptsMore(t *testing.T) {
	for _, c := range []struct {
		binding berth.Binding
		want    change.Kind
	}{{berth.Early, change.Refused}, {berth.Late, change.Accepted}} {
		e := newEngine(t, onePool(2, c.binding))
		submit(t, e, 0, berth.Rigid("a", 0, 0, 1, 1, 1)) // PE 0 in [0, 1)
		second := berth.Rigid("b", 0, 1, 2, 1, 1)        // PE 1 in [1, 2)
		if c.binding == berth.Early {
			second.Parts[0].Eligible = berth.NewPESet(berth.Run{Lo: 1, Hi: 2})
		}
		submit(t, e, 0, second)
		changes := submit(t, e, 0, berth.Rigid("c", 0, 0, 2, 1, 2))
		if got := changes[len(changes)-1].Kind; got != c.want {
			t.Errorf("%s binding: %s, want %s", c.binding, got, c.want)
		}
	}
}

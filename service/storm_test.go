package service_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/effort"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/fake"
)

var storms = effort.Flag("service.storms", 20, "how many random histories in front of a site")

// In random histories of requests, failing nodes, jobs and reservations of
// others, restarts and faults of every kind, no PE is promised twice at any time;
// once the faults are over, site and service are in line. A failure names the
// seed.
func TestStorm(t *testing.T) {
	for seed := range storms() {
		unit := []site.Unit{site.UnitNode, site.UnitCore}[seed%2]
		many := seed/2%2 == 0
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			harbourOf(t, unit, many, func(t *testing.T, w *harbour) {
				s := storm{w, rand.New(rand.NewPCG(uint64(seed), 0)), t, nil}
				for range 40 {
					s.happen()
					w.pass(s.IntN(40))
					if err := w.host.Check(t.Context()); err != nil {
						t.Fatal(err)
					}
					if _, err := w.host.CheckPicture(w.pool()); err != nil {
						t.Fatal(err)
					}
					w.schedule("in a storm")
				}
				if err := w.untouched(w.state()); err != nil {
					t.Fatal(err)
				}
				for _, b := range w.foreign { // where promises have no numbers they may be in the way until they end
					w.site.Unbook(b.Name)
				}
				w.foreign = nil
				for n := range 4 {
					w.site.Repair(fmt.Sprint("n", n+1))
				}
				w.pass(300) // the longest a site is left in peace, and what was late
				if err := w.inLine(); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

type storm struct {
	*harbour
	*rand.Rand
	t   *testing.T
	ids []string
}

// happen lets one thing happen.
func (s *storm) happen() {
	node := fmt.Sprint("n", 1+s.IntN(4))
	switch s.IntN(12) {
	case 0, 1, 2:
		ready := s.now() + berth.Time(s.IntN(1500))
		length := berth.Duration(50 + s.IntN(900))
		r := berth.Rigid(fmt.Sprint("r", len(s.ids)), 0, ready, ready.Add(length)+berth.Time(s.IntN(600)), berth.Count(1+s.IntN(4)), length)
		if s.IntN(4) == 0 {
			r.NoShow = 100
		}
		submit(s.t, s.host, ann, r)
		s.ids = append(s.ids, r.ID)
	case 3:
		s.change()
	case 4:
		s.site.Fail(node, "storm")
	case 5:
		s.site.Repair(node)
	case 6:
		length := berth.Duration(10 + s.IntN(300))
		s.site.Occupy("eve", []site.Share{{Node: node}}, length, length+berth.Duration(s.IntN(300)))
	case 7:
		from := s.now() + berth.Time(s.IntN(900))
		s.book(fmt.Sprint("eve", len(s.foreign)), from, from+berth.Time(100+s.IntN(500)), node)
	case 8:
		s.site.Restart(s.IntN(4))
	case 9:
		ops := []string{fake.All, fake.Observe, fake.Reserve, fake.Change, fake.Release, fake.Launch}
		whats := []string{fake.Down, fake.Unsent, fake.Lost, fake.Slow, fake.Late, fake.Twice, fake.Wrong, fake.Stale, fake.Lie, fake.Refuse, fake.Deny}
		s.site.Inject(fake.Fault{Op: ops[s.IntN(len(ops))], Nth: s.IntN(4), What: whats[s.IntN(len(whats))], After: berth.Duration(s.IntN(60))})
	case 10:
		s.site.Heal()
	case 11:
		if err := s.host.Close(); err != nil {
			s.t.Fatal(err)
		}
		s.open()
	}
}

// change changes what was asked before; that it is too late for that is fine.
func (s *storm) change() {
	if len(s.ids) == 0 {
		return
	}
	id := s.ids[s.IntN(len(s.ids))]
	r := s.get(id)
	var err error
	switch s.IntN(3) {
	case 0:
		_, err = s.host.Release(s.t.Context(), ann, id)
	case 1:
		_, err = s.host.Extend(s.t.Context(), ann, id, s.now()+berth.Time(s.IntN(2000)))
	case 2:
		if r.State == service.Active && len(r.Sites) > 0 && r.Sites[0].Made {
			_, err = s.host.Run(s.t.Context(), ann, id, site.Task{Command: []string{"x"}, Dir: "/"})
		}
	}
	if e, is := errors.AsType[*berth.Error](err); err != nil && (!is || e.Code != berth.Conflict && e.Code != berth.NotFound && e.Code != berth.Invalid) {
		s.t.Fatal(err)
	}
}

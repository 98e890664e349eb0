package api

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
)

// barState is what bars are told apart by. A bar can be in several.
type barState struct {
	name string
	has  func(service.Class, service.Flags) bool
}

// barStates are in the order of the page's menu, which filters single bars by the same rules.
var barStates = []barState{
	{"promise", func(c service.Class, f service.Flags) bool {
		return c == service.ClassPromise && f&(service.IsHeld|service.IsOver) == 0
	}},
	{"held", func(_ service.Class, f service.Flags) bool { return f&service.IsHeld != 0 }},
	{"running", func(_ service.Class, f service.Flags) bool { return f&service.IsActive != 0 }},
	{"job", func(c service.Class, _ service.Flags) bool { return c == service.ClassJob }},
	{"degraded", func(c service.Class, _ service.Flags) bool { return c == service.ClassDegraded }},
	{"outage", func(c service.Class, _ service.Flags) bool { return c == service.ClassOutage }},
	{"over", func(_ service.Class, f service.Flags) bool { return f&service.IsOver != 0 }},
	{"provisional", func(_ service.Class, f service.Flags) bool { return f&service.Provisional != 0 }},
}

func barStateNames() string {
	names := make([]string, len(barStates))
	for i := range names {
		names[i] = barStates[i].name
	}
	return strings.Join(names, ", ")
}

// Whose bars a picture shows.
const (
	ownerMine   = "mine"
	ownerOthers = "others"
)

// maxFilterName is longer than any name of a node.
const maxFilterName = 200

var filterParams = []param{
	{"owner", "Whose bars only: mine or others. What is out of use stays.", oneOf(ownerMine, ownerOthers)},
	{"state", "Bars in these states only, with commas between them: " + barStateNames() + ".", text("held,running")},
	{"name", "Only bars on nodes whose name contains this, with this number, or, of those whose owner you see, whose user, name or id contains it; all if the pool's name contains it.", text("n17")},
}

// barFilter is which bars of a picture are shown. The zero value shows all.
type barFilter struct {
	owner  string // "", ownerMine or ownerOthers
	states uint16 // a bit for each of barStates; 0 for all
	name   string // in lower case
}

func readBarFilter(query map[string]string, wrong *faults) (f barFilter) {
	if owner, given := query["owner"]; given {
		if f.owner = owner; owner != ownerMine && owner != ownerOthers {
			wrong.add("owner", fmt.Errorf("%.40q; want mine or others", owner))
		}
	}
	if list, given := query["state"]; given {
		for name := range strings.SplitSeq(list, ",") {
			i := slices.IndexFunc(barStates, func(s barState) bool { return s.name == name })
			if i < 0 {
				wrong.add("state", fmt.Errorf("%.40q; want some of %s, with commas between them", name, barStateNames()))
				continue
			}
			f.states |= 1 << i
		}
	}
	f.name = strings.ToLower(strings.TrimSpace(query["name"]))
	if len(f.name) > maxFilterName {
		wrong.add("name", fmt.Errorf("%d bytes; want at most %d", len(f.name), maxFilterName))
	}
	return f
}

// sieve is a filter for one pool: its name is looked up.
type sieve struct {
	barFilter
	named   bool        // the name is one of nodes or a number
	number  uint32      // that bars have which are meant by their number
	stripes berth.PESet // the PEs of the nodes that are meant
	numbers []uint32    // of bars that are meant by their user, name or id, in order
}

// newSieve returns the sieve of a filter for a pool. Cost: O(n) for n nodes if there is a name.
func newSieve(f barFilter, id berth.ResourceID, rows []service.Row) sieve {
	s := sieve{barFilter: f}
	if f.name == "" || strings.Contains(strings.ToLower(id.Site+"/"+id.Name), f.name) {
		return s
	}
	s.named = true
	if n, err := strconv.ParseUint(f.name, 10, 32); err == nil && strconv.FormatUint(n, 10) == f.name {
		s.number = uint32(n)
	}
	var runs []berth.Run
	for i := range rows {
		if strings.Contains(strings.ToLower(rows[i].Name), f.name) {
			runs = append(runs, berth.Run{Lo: rows[i].First, Hi: rows[i].First + berth.PE(rows[i].PEs)})
		}
	}
	s.stripes = berth.NewPESet(runs...)
	return s
}

// all reports whether nothing is left out.
func (s *sieve) all() bool { return s.owner == "" && s.states == 0 && !s.named }

// shows reports whether a bar is shown. What is out of use stays beside one's own or others'
// bars, since it says why nothing else is there.
func (s *sieve) shows(b *service.Bar, flags service.Flags) bool {
	if s.owner != "" && b.Class != service.ClassOutage && (flags&service.IsMine != 0) != (s.owner == ownerMine) {
		return false
	}
	if s.states != 0 && !s.inState(b.Class, flags) {
		return false
	}
	if !s.named || s.number != 0 && b.Number == s.number {
		return true
	}
	_, is := slices.BinarySearch(s.numbers, b.Number)
	return is || s.on(b)
}

func (s *sieve) inState(class service.Class, flags service.Flags) bool {
	for i := range barStates {
		if s.states&(1<<i) != 0 && barStates[i].has(class, flags) {
			return true
		}
	}
	return false
}

// on reports whether a bar has a PE of a node that is meant. Cost: O(log n).
func (s *sieve) on(b *service.Bar) bool {
	runs := s.stripes.Runs()
	i, _ := slices.BinarySearchFunc(runs, b.First, func(r berth.Run, first berth.PE) int {
		if r.Hi <= first {
			return -1
		}
		return 1
	})
	return i < len(runs) && runs[i].Lo < b.First+berth.PE(b.PEs)
}

// sieved is the bars of a picture that a sieve shows, and the pages that they are of.
type sieved struct {
	sieve     sieve
	from, are [][]service.Bar
}

// picture returns a picture with the bars that a sieve shows. Pages that have not changed
// since the last one are taken from there, so that they are seen to be the same. Cost: O(n)
// for the n bars of pages that have changed.
func (k *sieved) picture(p *service.Picture, s *sieve) *service.Picture {
	show := func(page []service.Bar) []service.Bar {
		var out []service.Bar
		for i := range page {
			if b := &page[i]; s.shows(b, p.Shown(b)) {
				out = append(out, *b)
			}
		}
		return out
	}
	usable := k.sieve.alike(s)
	are := make([][]service.Bar, len(p.Pages))
	for i, page := range p.Pages {
		if usable && i < len(k.from) && samePage(page, k.from[i]) {
			are[i] = k.are[i]
		} else {
			are[i] = show(page)
		}
	}
	k.sieve, k.from, k.are = *s, p.Pages, are
	shown := *p
	shown.Pages, shown.Unplaced = are, show(p.Unplaced)
	return &shown
}

// alike reports whether two sieves show the same bars.
func (s *sieve) alike(o *sieve) bool {
	return s.barFilter == o.barFilter && s.stripes.Equal(o.stripes) && slices.Equal(s.numbers, o.numbers)
}

// samePage reports whether two pages are one slice.
func samePage(x, y []service.Bar) bool { return len(x) == len(y) && (len(x) == 0 || &x[0] == &y[0]) }

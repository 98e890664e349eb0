package slurm_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/hostlist"
	"github.com/berth-hpc/berth/site/slurm"
)

// memory answers like Slurm 22.05, bugs included: it gives whole nodes whose cores
// others hold, and fewer nodes than were asked for.
type memory struct {
	mu     sync.Mutex
	held   []held
	faults map[string]string // by the name of a reservation
	takes  time.Duration     // by each command
}

// held is a reservation of memory; the number of cores of each node.
type held struct {
	name, users string
	start, end  berth.Time
	nodes       []string
	cores       berth.Count // 0 is whole nodes
}

// What befalls a create in memory.
const (
	lost    = "lost"    // done, and the answer is lost
	unsent  = "unsent"  // not done, and the answer is lost
	shorter = "shorter" // done otherwise
	strange = "strange" // not done, with unknown words
)

const nodeCores = 4

func (m *memory) Run(_ context.Context, c slurm.Command) (slurm.Result, error) {
	time.Sleep(m.takes)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch line := strings.Join(c.Argv, " "); {
	case strings.HasPrefix(line, "scontrol create reservation "):
		return m.create(c.Argv[3:])
	case line == list:
		return says(0, m.show(), ""), nil
	case strings.HasPrefix(line, "scontrol delete "):
		_, name, _ := strings.Cut(c.Argv[2], "=")
		m.held = slices.DeleteFunc(m.held, func(h held) bool { return h.name == name })
		return says(0, "", ""), nil
	case line == ping:
		return says(0, "Slurmctld(primary) at x is UP\n", ""), nil
	case line == sinfo:
		var all []string
		for i := range 4 {
			all = append(all, fmt.Sprintf("NodeName=n%d CoresPerSocket=%d CPUAlloc=0 CPUTot=%[2]d Sockets=1 State=IDLE ThreadsPerCore=1\n", i+1, nodeCores))
		}
		return says(0, strings.Join(all, ""), ""), nil
	}
	return slurm.Result{}, errors.New("unexpected: " + strings.Join(c.Argv, " "))
}

func (m *memory) create(args []string) (slurm.Result, error) {
	of := map[string]string{}
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		of[key] = value
	}
	fault := m.faults[of["ReservationName"]]
	switch fault {
	case unsent:
		return slurm.Result{}, context.DeadlineExceeded
	case strange:
		return says(1, "", "Error creating the reservation: The moon is full\n"), nil
	}
	h := held{name: of["ReservationName"], users: of["Users"], start: instant(of["StartTime"]), end: instant(of["EndTime"])}
	if fault == shorter {
		h.end--
	}
	refused := m.place(&h, of)
	if refused == "" && slices.ContainsFunc(m.held, func(o held) bool { return o.name == h.name }) {
		refused = "Duplicate reservation name"
	}
	if refused == "" {
		m.held = append(m.held, h)
	}
	switch {
	case fault == lost:
		return slurm.Result{}, context.DeadlineExceeded
	case refused != "":
		return says(1, "", "Error creating the reservation: "+refused+"\n"), nil
	}
	return says(0, "Reservation created: "+h.name+"\n", ""), nil
}

// place gives a reservation its nodes, and says why not otherwise.
func (m *memory) place(h *held, of map[string]string) string {
	meets := func(o *held, node string) bool {
		return h.start < o.end && o.start < h.end && slices.Contains(o.nodes, node)
	}
	taken := func(node string, wants berth.Count) bool {
		free := berth.Count(nodeCores)
		for i := range m.held {
			switch o := &m.held[i]; {
			case !meets(o, node) || wants == 0 && o.cores > 0:
			case o.cores == 0:
				return true
			default:
				free -= o.cores
			}
		}
		return wants > free
	}
	if n, _ := strconv.Atoi(of["NodeCnt"]); n > 0 {
		for i := range 4 {
			if node := fmt.Sprint("n", i+1); len(h.nodes) < n && !taken(node, 0) {
				h.nodes = append(h.nodes, node)
			}
		}
		if len(h.nodes) == 0 {
			return "Requested nodes are busy"
		}
		return ""
	}
	var err error
	if h.nodes, err = hostlist.Expand(of["Nodes"]); err != nil {
		return "Invalid node name specified"
	}
	if first, _, some := strings.Cut(of["CoreCnt"], ","); some || first != "" {
		n, _ := strconv.Atoi(first)
		h.cores = berth.Count(n)
	}
	for _, node := range h.nodes {
		if taken(node, h.cores) {
			return "Requested reservation overlaps with another reservation"
		}
	}
	return ""
}

func (m *memory) show() string {
	if len(m.held) == 0 {
		return "No reservations in the system\n"
	}
	var text strings.Builder
	at := func(t berth.Time) string { return time.Unix(int64(t), 0).UTC().Format("2006-01-02T15:04:05") }
	for _, h := range m.held {
		each := h.cores
		if each == 0 {
			each = nodeCores
		}
		fmt.Fprintf(&text, "ReservationName=%s StartTime=%s EndTime=%s Nodes=%s NodeCnt=%d CoreCnt=%d PartitionName=(null) Flags=SPEC_NODES Users=%s Accounts=(null) State=INACTIVE\n",
			h.name, at(h.start), at(h.end), strings.Join(h.nodes, ","), len(h.nodes), int(each)*len(h.nodes), h.users)
	}
	return text.String()
}

func instant(text string) berth.Time {
	at, err := time.Parse("2006-01-02T15:04:05", text)
	if err != nil {
		return 0
	}
	return berth.Time(at.Unix())
}

// drawWant draws a reservation in a world so small that they meet.
func drawWant(t *rapid.T, from berth.Time) site.Reservation {
	id := rapid.IntRange(0, 11).Draw(t, "promise")
	generation := rapid.SampledFrom([]uint64{1, 1, 1, 2}).Draw(t, "generation")
	start := from + 60*berth.Time(rapid.IntRange(0, 8).Draw(t, "start"))
	r := site.Reservation{
		Name: site.NameOf(siteName, fmt.Sprint(id), generation), Start: start,
		End: start + 60*berth.Time(rapid.IntRange(1, 3).Draw(t, "length")), Users: []string{"ada"},
	}
	nodes := rapid.SliceOfNDistinct(rapid.IntRange(1, 4), 1, 3, rapid.ID).Draw(t, "nodes")
	slices.Sort(nodes)
	for _, n := range nodes {
		r.Shares = append(r.Shares, site.Share{Node: fmt.Sprint("n", n)})
	}
	switch rapid.IntRange(0, 11).Draw(t, "kind") {
	case 0:
		for i := range r.Shares {
			r.Shares[i].Cores = berth.PEsOf(0, 1)
		}
	case 1:
		r.Shares, r.Nodes = nil, berth.Count(len(nodes))
	case 2:
		r.Users = nil
	case 3:
		r.Start, r.End = from-9000, from-8000
	}
	return r
}

// Many reserved at once have the answers that they have one by one, and leave
// behind the same, whatever is there before, whatever is lost, and whatever Slurm
// does otherwise.
func TestManyAreAsOneByOne(t *testing.T) {
	from := now() + 3600
	rapid.Check(t, func(t *rapid.T) {
		wants := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) site.Reservation { return drawWant(t, from) }), 1, 14).Draw(t, "wants")
		var before []held
		for i := range rapid.IntRange(0, 3).Draw(t, "others") {
			start := from + 60*berth.Time(rapid.IntRange(0, 8).Draw(t, "start"))
			before = append(before, held{
				name: fmt.Sprint("other", i), users: "eve", start: start, end: start + 90, nodes: []string{fmt.Sprint("n", 1+i)},
				cores: rapid.SampledFrom([]berth.Count{0, 2}).Draw(t, "cores"),
			})
		}
		faults := map[string]string{}
		silent := 0
		for i := range wants {
			name := string(wants[i].Name)
			if _, drawn := faults[name]; !drawn {
				faults[name] = rapid.SampledFrom([]string{"", "", "", "", lost, unsent, shorter, strange}).Draw(t, "fault")
			}
			if f := faults[name]; f == lost || f == unsent {
				silent++
			}
		}
		if silent >= site.Patience { // what is left then is no matter of this test
			for name, f := range faults {
				if f == lost || f == unsent {
					delete(faults, name)
				}
			}
		}
		plain, many := &memory{held: slices.Clone(before), faults: faults}, &memory{held: slices.Clone(before), faults: faults}
		one := slurm.New(slurm.Options{Site: siteName, Exec: plain})
		answers := slurm.New(slurm.Options{Site: siteName, Exec: many}).ReserveMany(context.Background(), wants)
		for i := range wants {
			want, err := one.Reserve(context.Background(), wants[i])
			got := answers[i]
			if got.Outcome.Verdict != want.Verdict || got.Outcome.Reason != want.Reason || site.KindOf(got.Err) != site.KindOf(err) || fmt.Sprint(got.Outcome.Booking) != fmt.Sprint(want.Booking) {
				t.Fatalf("number %d, %+v: %+v %v, and by itself %+v %v", i, wants[i], got.Outcome, got.Err, want, err)
			}
		}
		sorted := func(m *memory) string {
			return fmt.Sprintf("%+v", slices.SortedFunc(slices.Values(m.held), func(a, b held) int { return strings.Compare(a.name, b.name) }))
		}
		if a, b := sorted(many), sorted(plain); a != b {
			t.Fatalf("there is\n%s, and one by one\n%s", a, b)
		}
	})
}

// Of whole nodes four are made at a time and all are looked at once; what Slurm
// may give twice is looked at before the next is made.
func TestManyTakeLittleTime(t *testing.T) {
	for what, c := range map[string]struct {
		spoil func(i int, r *site.Reservation)
		takes time.Duration
	}{
		"whole nodes":      {func(int, *site.Reservation) {}, 2 + 2}, // lists, of reservations and of nodes, for the first time
		"each in the way":  {func(_ int, r *site.Reservation) { r.Start, r.End = now()+3600, now()+3660 }, 8 + 8 + 1},
		"cores":            {func(_ int, r *site.Reservation) { r.Shares[0].Cores = berth.PEsOf(1) }, 8 + 8 + 1},
		"a number of them": {func(_ int, r *site.Reservation) { r.Shares, r.Nodes = nil, 2 }, 8 + 8 + 1},
		"one of cores": {func(i int, r *site.Reservation) {
			r.Shares[0].Cores = berth.NewPESet(berth.Run{Lo: 0, Hi: berth.PE(i / 7)})
		}, 2 + 1 + 1 + 2},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wants := make([]site.Reservation, 8)
				for i := range wants {
					start := now() + 3600*berth.Time(i+1)
					wants[i] = site.Reservation{Name: site.NameOf(siteName, fmt.Sprint(i), 1), Start: start, End: start + 60, Shares: []site.Share{{Node: "n1"}}, Users: []string{"ada"}}
					c.spoil(i, &wants[i])
				}
				began := time.Now()
				slurm.New(slurm.Options{Site: siteName, Exec: &memory{takes: time.Second}}).ReserveMany(t.Context(), wants)
				if took := time.Since(began); took != c.takes*time.Second {
					t.Errorf("it took %s, want %d s", took, c.takes)
				}
			})
		})
	}
}

// Slurm that does not answer is not asked for one after the other, and what was
// made before is looked at all the same.
func TestSilentSlurmIsLeftInPeace(t *testing.T) {
	m := &memory{faults: map[string]string{}}
	wants := make([]site.Reservation, 60)
	for i := range wants {
		start := now() + 3600*berth.Time(i+1)
		wants[i] = site.Reservation{Name: site.NameOf(siteName, fmt.Sprint(i), 1), Start: start, End: start + 60, Shares: []site.Share{{Node: "n1"}}, Users: []string{"ada"}}
		if i >= 10 {
			m.faults[string(wants[i].Name)] = unsent
		}
	}
	counts := map[string]int{}
	for i, got := range slurm.New(slurm.Options{Site: siteName, Exec: m}).ReserveMany(t.Context(), wants) {
		what := string(got.Outcome.Verdict)
		if errors.Is(got.Err, site.ErrNotTried) {
			what = "left"
		}
		counts[what]++
		if i < 10 && what != string(site.Made) {
			t.Errorf("number %d: %+v %v, want it made", i, got.Outcome, got.Err)
		}
	}
	if n := counts[string(site.Doubt)]; n < site.Patience || n > 10 || n+counts["left"] != 50 {
		t.Errorf("%v, want a few in doubt and the rest of 50 left", counts)
	}
}

// wrong panics where a reservation is made.
type wrong struct{ memory }

func (w *wrong) Run(ctx context.Context, c slurm.Command) (slurm.Result, error) {
	if len(c.Argv) > 1 && c.Argv[1] == "create" {
		panic("the adapter is wrong")
	}
	return w.memory.Run(ctx, c)
}

// A panic in one of the hands that make reservations is raised in the caller, which can
// recover, and no lock stays taken.
func TestAPanicInAHandIsRaisedInTheCaller(t *testing.T) {
	s := slurm.New(slurm.Options{Site: "lab", Exec: &wrong{}})
	for range 2 {
		want := make([]site.Reservation, 3)
		for i := range want {
			want[i] = site.Reservation{
				Name: site.NameOf("lab", fmt.Sprint("r", i), 1), Start: berth.Time(time.Now().Unix()) + 1000, End: berth.Time(time.Now().Unix()) + 2000,
				Users: []string{"ann"}, Shares: []site.Share{{Node: fmt.Sprint("n", i+1)}},
			}
		}
		p := site.Caught(func() { s.ReserveMany(t.Context(), want) })
		if p == nil {
			t.Fatal("no panic")
		}
		if raised, is := p.Value.(*site.Panic); !is || raised.Value != "the adapter is wrong" || !strings.Contains(string(raised.Stack), "wrong).Run") {
			t.Errorf("%v, %s", p, p.Stack)
		}
	}
}

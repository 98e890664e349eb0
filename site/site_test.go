package site_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

func TestNamesHoldOnlyWhatManagersTake(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		where, id := rapid.String().Draw(t, "site"), rapid.String().Draw(t, "id")
		generation := rapid.Uint64().Draw(t, "generation")
		name := site.NameOf(where, id, generation)
		if strings.Trim(string(name), "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" || len(name) > 80 {
			t.Fatalf("name %q", name)
		}
		promise, g, ok := name.Promise(where)
		if !ok || g != generation || !strings.HasPrefix(string(name), promise) {
			t.Fatalf("%q of site %q is %q %d %v", name, where, promise, g, ok)
		}
		if other := site.NameOf(where, id+"x", generation); other == name {
			t.Fatalf("two ids have the name %q", name)
		}
		if next := site.NameOf(where, id, generation+1); next == name {
			t.Fatalf("two generations have the name %q", name)
		}
	})
}

func TestNamesOfOthersAreNotOurs(t *testing.T) {
	ours := site.NameOf("lab", "17", 3)
	if want := site.Name("berth_lab_"); !strings.HasPrefix(string(ours), string(want)) {
		t.Errorf("%q does not begin with %q", ours, want)
	}
	for _, other := range []string{
		"", "maintenance", "berth_lab_1", "berth_lab__3", "berth_other_0123456789abcdef_3", "berth_lab_0123456789abcdeg_3", "berth_lab_0123456789abcdef_",
		"berth_lab_0123456789abcdef_03", "berth_lab_0123456789abcdef_-3", "berth_lab_0123456789abcdef_3_4", "berth_lab_0123456789ABCDEF_3",
		"berth_lab_0123456789abcdef_99999999999999999999", " berth_lab_0123456789abcdef_3",
	} {
		if _, _, ok := site.Name(other).Promise("lab"); ok {
			t.Errorf("%q is taken for ours", other)
		}
	}
	if site.NameOf("a.b", "17", 3) == site.NameOf("a-b", "17", 3) {
		t.Error("two sites have one name for their reservations")
	}
	if _, _, ok := site.NameOf("a_b", "17", 3).Promise("a"); ok {
		t.Error("a name of site a_b is taken for one of site a")
	}
}

func reservation() site.Reservation {
	return site.Reservation{
		Name: site.NameOf("lab", "17", 1), Start: 1000, End: 2000, Shares: []site.Share{{Node: "n1"}, {Node: "n2"}}, Users: []string{"ada", "bob"},
		Accounts: []string{"physics"}, Partition: "main",
	}
}

func booking() site.Booking {
	return site.Booking{
		Name: string(site.NameOf("lab", "17", 1)), Start: 1000, End: 2000, Shares: []site.Share{{Node: "n2"}, {Node: "n1"}}, Cores: 8,
		Users: []string{"bob", "ada"}, Accounts: []string{"physics"}, Partition: "main",
	}
}

func TestDifferences(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*site.Reservation, *site.Booking)
		now   berth.Time
		want  string
	}{
		"none":              {func(*site.Reservation, *site.Booking) {}, 0, ""},
		"end":               {func(_ *site.Reservation, b *site.Booking) { b.End++ }, 0, "end is"},
		"start later":       {func(_ *site.Reservation, b *site.Booking) { b.Start = 1200 }, 1100, "start is"},
		"start made late":   {func(_ *site.Reservation, b *site.Booking) { b.Start = 1200 }, 1200, ""},
		"start a tick ago":  {func(_ *site.Reservation, b *site.Booking) { b.Start = 999 }, 1000, ""},
		"start too early":   {func(_ *site.Reservation, b *site.Booking) { b.Start = 999 }, 999, "start is"},
		"start earlier":     {func(_ *site.Reservation, b *site.Booking) { b.Start = 900 }, 1500, "start is"},
		"begun earlier":     {func(_ *site.Reservation, b *site.Booking) { b.Start, b.Active = 990, true }, 1001, ""},
		"begun too early":   {func(_ *site.Reservation, b *site.Booking) { b.Start, b.Active = 990, true }, 999, "start is"},
		"node":              {func(_ *site.Reservation, b *site.Booking) { b.Shares[0].Node = "n3" }, 0, "nodes is n1,n3"},
		"fewer nodes":       {func(r *site.Reservation, _ *site.Booking) { r.Shares, r.Nodes = nil, 3 }, 0, "number of nodes is 2"},
		"chosen nodes":      {func(r *site.Reservation, _ *site.Booking) { r.Shares, r.Nodes = nil, 2 }, 0, ""},
		"cores":             {func(r *site.Reservation, _ *site.Booking) { r.Shares, r.Cores = nil, 9 }, 0, "number of cores is 8"},
		"part of a node":    {func(_ *site.Reservation, b *site.Booking) { b.Shares[0].Partial = true }, 0, "whole nodes is false"},
		"other cores":       {cores(8, site.Share{Node: "n1", Partial: true}, site.Share{Node: "n2", Cores: berth.PEsOf(1)}), 0, ""},
		"too few cores":     {cores(7, site.Share{Node: "n1", Partial: true}, site.Share{Node: "n2", Partial: true}), 0, "number of cores is 7"},
		"users":             {func(_ *site.Reservation, b *site.Booking) { b.Users = b.Users[:1] }, 0, "users is bob, promised is ada,bob"},
		"accounts":          {func(_ *site.Reservation, b *site.Booking) { b.Accounts = nil }, 0, "accounts is"},
		"partition":         {func(_ *site.Reservation, b *site.Booking) { b.Partition = "other" }, 0, "partition is other"},
		"partition by site": {func(r *site.Reservation, _ *site.Booking) { r.Partition = "" }, 0, ""},
	} {
		r, b := reservation(), booking()
		c.spoil(&r, &b)
		got := r.Differences(&b, c.now)
		if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], c.want)) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// cores wants eight cores of two nodes, and has the shares' number of them.
func cores(has berth.Count, shares ...site.Share) func(*site.Reservation, *site.Booking) {
	return func(r *site.Reservation, b *site.Booking) {
		r.Shares = []site.Share{{Node: "n1", Cores: berth.PEsOf(0, 1, 2, 3)}, {Node: "n2", Cores: berth.PEsOf(0, 1, 2, 3)}}
		b.Shares, b.Cores = shares, has
	}
}

func TestDriftLeavesOutWhatIsOver(t *testing.T) {
	want := []site.Reservation{reservation()}
	if got := site.FindDrift(want, &site.State{At: 1999}); len(got) != 1 || got[0].Kind != site.Missing {
		t.Errorf("before its end: %+v, want it missing", got)
	}
	if got := site.FindDrift(want, &site.State{At: 2000}); len(got) != 0 {
		t.Errorf("at its end: %+v, want nothing", got)
	}
	foreign := booking()
	foreign.Name = "course"
	if got := site.FindDrift(nil, &site.State{Foreign: []site.Booking{foreign}}); len(got) != 0 {
		t.Errorf("a reservation of others: %+v, want nothing", got)
	}
}

func TestOverlap(t *testing.T) {
	mine := site.Booking{Name: "a", Start: 10, End: 20, Shares: []site.Share{{Node: "n1", Cores: berth.PEsOf(0, 1)}, {Node: "n2"}, {Node: "n3", Partial: true}}}
	for name, c := range map[string]struct {
		start, end berth.Time
		share      site.Share
		flags      []string
		want       bool
	}{
		"same cores":       {10, 20, site.Share{Node: "n1", Cores: berth.PEsOf(1, 2)}, nil, true},
		"other cores":      {10, 20, site.Share{Node: "n1", Cores: berth.PEsOf(2, 3)}, nil, false},
		"whole over cores": {10, 20, site.Share{Node: "n1"}, nil, true},
		"core over whole":  {10, 20, site.Share{Node: "n2", Cores: berth.PEsOf(3)}, nil, true},
		"whole over part":  {10, 20, site.Share{Node: "n3"}, nil, true},
		"part over part":   {10, 20, site.Share{Node: "n3", Partial: true}, nil, false},
		"before":           {0, 10, site.Share{Node: "n2"}, nil, false},
		"after":            {20, 30, site.Share{Node: "n2"}, nil, false},
		"a second":         {19, 30, site.Share{Node: "n2"}, nil, true},
		"elsewhere":        {10, 20, site.Share{Node: "n4"}, nil, false},
		"maintenance":      {10, 20, site.Share{Node: "n2"}, []string{"MAINT", "SPEC_NODES"}, false},
	} {
		other := site.Booking{Name: "b", Start: c.start, End: c.end, Shares: []site.Share{c.share}, Flags: c.flags}
		if _, got := site.Overlap(&mine, []site.Booking{mine, other}); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestHorizon(t *testing.T) {
	d := site.Description{Partitions: []site.Partition{
		{Name: "short", Nodes: []string{"n1", "n2"}, MaxTime: 3600}, {Name: "long", Nodes: []string{"n2", "n3"}, MaxTime: 86400}, {Name: "endless", Nodes: []string{"n4"}},
	}}
	for nodes, want := range map[string]berth.Duration{
		"n1": 3660, "n2": 86460, "n1 n3": 86460, "n4": berth.Endless, "n1 n4": berth.Endless, "": berth.Endless, "n9": 60,
	} {
		if got := d.Horizon(strings.Fields(nodes), 60); got != want {
			t.Errorf("%q: %d, want %d", nodes, got, want)
		}
	}
}

func TestTaskCheck(t *testing.T) {
	good := site.Task{Key: "k", Reservation: "r", Command: []string{"true"}, Dir: "/"}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for field, spoil := range map[string]func(*site.Task){
		"key":         func(t *site.Task) { t.Key = "a b" },
		"reservation": func(t *site.Task) { t.Reservation = "--nice" },
		"command":     func(t *site.Task) { t.Script = "#!/bin/sh\n" },
		"script":      func(t *site.Task) { t.Command, t.Script = nil, "echo" },
		"args":        func(t *site.Task) { t.Args = []string{"x"} },
		"dir":         func(t *site.Task) { t.Dir = "here" },
		"array":       func(t *site.Task) { t.Array = berth.PEsOf(1001) },
		"limit":       func(t *site.Task) { t.Limit = -1 },
		"user":        func(t *site.Task) { t.User = "-u" },
		"account":     func(t *site.Task) { t.Account = "a,b" },
		"partition":   func(t *site.Task) { t.Partition = "p q" },
		"name":        func(t *site.Task) { t.Name = "a\nb" },
		"env":         func(t *site.Task) { t.Env = []string{"=x"} },
	} {
		task := good
		spoil(&task)
		var wrong *berth.Error
		if err := task.Check(); !errors.As(err, &wrong) || wrong.Code != berth.Invalid || wrong.Field != field {
			t.Errorf("%s: %v, want that field invalid", field, err)
		}
	}
	zero := good
	zero.Command = []string{"a\x00b"}
	if zero.Check() == nil {
		t.Error("a zero byte is taken")
	}
}

func TestVariables(t *testing.T) {
	v := site.Variables{ID: "r17", Site: "lab", Reservation: "berth_lab_x_1", Start: 10, End: 20, Nodes: "n[1-2]"}
	want := "BERTH_RESERVATION_ID=r17 BERTH_RESERVATION=berth_lab_x_1 BERTH_SITE=lab BERTH_START=10 BERTH_END=20 BERTH_NODELIST=n[1-2]"
	if got := strings.Join(v.Env(), " "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestErrors(t *testing.T) {
	cause := errors.New("broken pipe")
	err := fmt.Errorf("outbox: %w", &site.Error{Kind: site.Unreachable, Op: "reserve", Msg: "no answer", Hint: "look at slurmctld", Err: cause})
	var e *site.Error
	if !errors.As(err, &e) || !e.Retry() || e.Code() != berth.Unavailable || !errors.Is(err, cause) || site.KindOf(err) != site.Unreachable {
		t.Errorf("%+v", e)
	}
	if want := "outbox: reserve: no answer: broken pipe (look at slurmctld)"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
	for kind, code := range map[site.Kind]berth.Code{
		site.Denied: berth.Denied, site.Conflict: berth.Conflict, site.NotFound: berth.NotFound, site.Invalid: berth.Invalid,
	} {
		if e := site.Errorf(kind, "x", "y"); e.Code() != code || e.Retry() != (kind == site.Conflict) {
			t.Errorf("%s: code %s, retry %v", kind, e.Code(), e.Retry())
		}
	}
	if site.KindOf(context.DeadlineExceeded) != site.Unreachable || site.KindOf(berth.Errorf(berth.Invalid, "", "x")) != site.Invalid ||
		site.KindOf(cause) != "" || site.KindOf(nil) != "" {
		t.Error("kinds of other errors")
	}
}

func TestJobsAreOrderedByNumber(t *testing.T) {
	want := []site.JobID{"2", "9", "10", "10_1", "10_2", "10_11", "10_[12-20]", "11"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, site.CompareJobs)
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

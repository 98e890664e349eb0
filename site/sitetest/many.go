package sitetest

import (
	"context"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

// reserveMany asks for many at once and returns the answers, one for each.
func (f *fixture) reserveMany(ctx context.Context, t *testing.T, want ...site.Reservation) []site.Answer {
	t.Helper()
	many, can := f.Booker.(site.ManyBooker)
	if !can {
		t.Skip("this site makes one reservation after the other")
	}
	answers := many.ReserveMany(ctx, want)
	if len(answers) != len(want) {
		t.Fatalf("%d answers, want %d", len(answers), len(want))
	}
	return answers
}

// Each of many is answered as if those before it had been reserved one by one.
func testMany(t *testing.T, f *fixture) {
	const part = 2000
	at := func(slot berth.Time, place int) site.Reservation {
		r := f.want(t, place)
		r.Start, r.End = r.Start+slot*part, r.End+slot*part
		return r
	}
	there := at(0, 0)
	f.book(t, there)
	type row struct {
		what    string
		want    site.Reservation
		verdict site.Verdict
		reason  berth.Reason
		kind    site.Kind
	}
	taken, first, past, nonsense, nowhere, early := at(0, 0), at(1, 0), at(2, 0), at(2, 0), at(2, 0), at(3, 0)
	other, behind, rival, later := first, at(1, 0), at(1, 0), at(4, 1)
	past.Start, past.End = f.Now()-600, f.Now()-60
	nonsense.Users = nil
	nowhere.Shares = []site.Share{{Node: "no-such-node"}}
	other.End += 60
	behind.Start, behind.End = first.End, first.End+60
	early.Name, later.Name = site.NameOf(f.Name, t.Name(), 1), site.NameOf(f.Name, t.Name(), 2)
	f.releaseAtEnd(t, early.Name)
	f.releaseAtEnd(t, later.Name)
	rows := []row{
		{"free", first, site.Made, "", ""},
		{"there before", there, site.Already, "", ""},
		{"in the way of what was there", taken, site.Refused, "", ""},
		{"behind the first", behind, site.Made, "", ""},
		{"elsewhere at the same time", at(1, 1), site.Made, "", ""},
		{"in the way of the first", rival, site.Refused, "", ""},
		{"over", past, site.Refused, berth.Expired, ""},
		{"nonsense", nonsense, "", "", site.Invalid},
		{"nowhere", nowhere, "", "", site.NotFound},
		{"the first again", first, site.Already, "", ""},
		{"the first otherwise", other, site.Refused, berth.RefusedConflict, ""},
		{"a later generation", later, site.Made, "", ""},
		{"the earlier one", early, "", "", site.Conflict},
	}
	want := make([]site.Reservation, len(rows))
	for i := range rows {
		want[i] = rows[i].want
	}
	for i, got := range f.reserveMany(f.ctx, t, want...) {
		r := &rows[i]
		if got.Outcome.Verdict != r.verdict || site.KindOf(got.Err) != r.kind || r.reason != "" && got.Outcome.Reason != r.reason ||
			(r.verdict == site.Made || r.verdict == site.Already) != (got.Outcome.Booking != nil) {
			t.Errorf("%s: %+v %v, want %q %q %q", r.what, got.Outcome, got.Err, r.verdict, r.reason, r.kind)
		}
	}
	made := 0
	for i := range rows {
		if rows[i].verdict == site.Made {
			f.asPromised(t, rows[i].want)
			made++
		}
	}
	f.asPromised(t, there)
	if ours := f.state(t).Ours; len(ours) != made+1 {
		t.Errorf("there are %d of ours, want %d: %+v", len(ours), made+1, ours)
	}
}

func testManyCounts(t *testing.T, f *fixture) {
	count := func() site.Reservation {
		r := f.want(t, 0)
		r.Shares, r.Nodes, r.Cores = nil, f.Count.Nodes, f.Count.Cores
		return r
	}
	a, b, c := count(), count(), count()
	answers := f.reserveMany(f.ctx, t, a, b, c)
	for i, want := range []site.Verdict{site.Made, site.Made, site.Refused} {
		if got := answers[i]; got.Outcome.Verdict != want || got.Err != nil {
			t.Errorf("number %d: %+v %v, want it %s", i, got.Outcome, got.Err, want)
		}
	}
	f.asPromised(t, a)
	f.asPromised(t, b)
	if o, overlaps := site.Overlap(f.ours(t, a.Name), f.state(t).Ours); overlaps {
		t.Fatalf("the site gave the same twice: %+v and %+v", f.ours(t, a.Name), o)
	}
}

func testManyContext(t *testing.T, f *fixture) {
	want := make([]site.Reservation, site.Patience+2)
	for i := range want {
		want[i] = f.want(t, 0)
		want[i].Start, want[i].End = want[i].Start+2000*berth.Time(i), want[i].End+2000*berth.Time(i)
	}
	ended, cancel := context.WithCancel(f.ctx)
	cancel()
	for i, got := range f.reserveMany(ended, t, want...) {
		if v := got.Outcome.Verdict; site.KindOf(got.Err) != site.Unreachable || v != "" && v != site.Doubt {
			t.Errorf("number %d: %+v %v, want it unreachable", i, got.Outcome, got.Err)
		}
		if f.ours(t, want[i].Name) != nil && got.Outcome.Verdict == "" {
			t.Errorf("number %d was made, and nothing was said of doubt", i)
		}
	}
}

package policy_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/policy"
)

// fig3 is the example of Fig. 3 (spec 3, b.4) with those priorities: user 1
// has requests of the lengths L3, L1, L2, the others of L1 to L4 each.
func fig3(priorities ...int) []policy.Pending {
	lengths := [][]int{{3, 1, 2}, {1, 2, 3, 4}, {1, 2, 3, 4}}
	var pending []policy.Pending
	for u, priority := range priorities {
		for _, l := range lengths[u] {
			r := berth.Rigid(fmt.Sprintf("G%dL%d", u+1, l), 0, 0, 1000, 1, berth.Duration(10*l))
			pending = append(pending, policy.Pending{
				Request: &r, Sequence: uint64(len(pending) + 1), Length: int64(10 * l),
				Priority: priority, UserSequence: uint64(u + 1),
			})
		}
	}
	return pending
}

func TestFig3(t *testing.T) {
	const (
		first  = "G1L1 G1L2 G1L3"
		second = "G2L1 G2L2 G2L3 G2L4"
		third  = "G3L1 G3L2 G3L3 G3L4"
		lower  = "G2L1 G3L1 G2L2 G3L2 G2L3 G3L3 G2L4 G3L4" // users 2 and 3 together
		upper  = "G1L1 G2L1 G1L2 G2L2 G1L3 G2L3 G2L4"      // users 1 and 2 together
		all    = "G1L1 G2L1 G3L1 G1L2 G2L2 G3L2 G1L3 G2L3 G3L3 G2L4 G3L4"
	)
	sd := func(l policy.Levels) *policy.Levels { return &l }
	paper := policy.OrderOptions{Scale: 9, N: 3}
	rows := []struct {
		name       string
		priorities []int
		options    policy.OrderOptions
		want, rest string
	}{
		{"the paper's", []int{9, 3, 2}, paper, first + " " + lower, ""},
		{"the paper's, SD given", []int{9, 3, 2}, policy.OrderOptions{SD: sd(4500), N: 3}, first + " " + lower, ""},
		{"N=2", []int{9, 3, 2}, policy.OrderOptions{Scale: 9, N: 2}, "G1L1 G1L2 " + lower, "G1L3"},
		{"a gap of 4 joins", []int{9, 5, 2}, paper, upper + " G3L1 G3L2 G3L3", "G3L4"},
		{"a gap of SD joins", []int{9, 3, 2}, policy.OrderOptions{SD: sd(6000), N: 3}, upper + " G3L1 G3L2 G3L3", "G3L4"},
		{"a gap just above SD does not", []int{9, 3, 2}, policy.OrderOptions{SD: sd(5999), N: 3}, first + " " + lower, ""},
		{"half a level decides", []int{9, 4, 2}, paper, first + " " + lower, ""},
		{"and the other way", []int{9, 4, 2}, policy.OrderOptions{Scale: 10, N: 3}, upper + " G3L1 G3L2 G3L3", "G3L4"},
		{"equal priorities join", []int{5, 5, 5}, policy.OrderOptions{N: 3}, upper + " G3L1 G3L2 G3L3", "G3L4"},
		{"equal priorities, SD<0", []int{5, 5, 5}, policy.OrderOptions{SD: sd(-1)}, first + " " + second + " " + third, ""},
		{"SD=0 is priority", []int{9, 3, 2}, policy.OrderOptions{}, first + " " + second + " " + third, ""},
		{"SD=0 is priority, other users first", []int{1, 2, 3}, policy.OrderOptions{}, third + " " + second + " " + first, ""},
		{"one user", []int{9}, policy.OrderOptions{Scale: 9, N: 2}, "G1L1 G1L2", "G1L3"},
		{"one user, any gap", []int{9}, policy.OrderOptions{SD: sd(policy.AnyGap), Chain: true, N: 2}, "G1L1 G1L2", "G1L3"},
		{"empty", nil, paper, "", ""},
		{
			"the scan does not chain", []int{10, 9, 5}, policy.OrderOptions{SD: sd(4500)}, // spec 3, d
			upper + " " + third, "",
		},
		{"Chain does", []int{10, 9, 5}, policy.OrderOptions{SD: sd(4500), Chain: true, N: 1}, all, ""},
		{"Chain ends at a gap", []int{9, 3, 2}, policy.OrderOptions{SD: sd(4500), Chain: true, N: 3}, first + " " + lower, ""},
		{"Chain begins below one", []int{9, 5, 0}, policy.OrderOptions{SD: sd(4500), Chain: true, N: 1}, upper + " G3L1", "G3L2 G3L3 G3L4"},
		{
			"a share for users together",
			[]int{9, 3, 2},
			policy.OrderOptions{Scale: 9, N: 3, NUJP: 2},
			first + " G2L1 G3L1 G2L2 G3L2", "G2L3 G3L3 G2L4 G3L4",
		},
		{"first come in each user", []int{9, 3, 2}, policy.OrderOptions{Scale: 9, N: 2, InUser: policy.FirstInUser}, "G1L3 G1L1 " + second + " " + third, "G1L2"},
		{
			"longest first in each user",
			[]int{9, 3, 2},
			policy.OrderOptions{Scale: 9, N: 2, InUser: policy.LongestInUser},
			"G1L3 G1L2 G2L4 G3L4 G2L3 G3L3 G2L2 G3L2 G2L1 G3L1", "G1L1",
		},
		// Lengths from 10 to 40 in two classes: {10, 20} and {30, 40}.
		{
			"two length classes",
			[]int{9, 3, 2},
			policy.OrderOptions{Scale: 9, LengthClasses: 2},
			first + " G2L1 G2L2 G3L1 G3L2 G2L3 G2L4 G3L3 G3L4", "",
		},
		{
			"one length class is priority among near users",
			[]int{9, 3, 2},
			policy.OrderOptions{Scale: 9, LengthClasses: 1},
			first + " " + second + " " + third, "",
		},
		// Three classes: {10}, {20}, {30, 40}; the upper end belongs to the last.
		{
			"three length classes, longest first",
			[]int{9, 3, 2},
			policy.OrderOptions{Scale: 9, LengthClasses: 3, InUser: policy.LongestInUser},
			"G1L3 G1L2 G1L1 G2L4 G2L3 G3L4 G3L3 G2L2 G3L2 G2L1 G3L1", "",
		},
	}
	for _, row := range rows {
		for _, overflow := range []policy.Overflow{policy.Defer, policy.Discard} {
			t.Run(row.name+"/"+string(overflow), func(t *testing.T) {
				row.options.Overflow = overflow
				pending := fig3(row.priorities...)
				q := newQueue("dpsar", row.options, pending)
				discards := "[]"
				if overflow == policy.Discard {
					discards = "[" + row.rest + "]"
				}
				if got := names(collect(q.Discards(0))); got != discards {
					t.Errorf("discards %s, want %s", got, discards)
				}
				if got := names(collect(q.Round(0))); got != "["+row.want+"]" {
					t.Errorf("yields %s,\nwant   [%s]", got, row.want)
				}
				if q.Len() != len(pending) {
					t.Errorf("%d are pending, want %d: asking changes nothing", q.Len(), len(pending))
				}
				out, rest := plainRound("dpsar", pending, row.options, 0)
				if names(out) != "["+row.want+"]" || names(rest) != "["+row.rest+"]" {
					t.Errorf("the plain form yields %s and leaves %s", names(out), names(rest))
				}
			})
		}
	}
}

// What a round defers comes in the next (spec 3, b.4: N=2, then user 1 alone).
func TestDeferredComesNextRound(t *testing.T) {
	q := newQueue("dpsar", policy.OrderOptions{Scale: 9, N: 2}, fig3(9, 3, 2))
	var rounds []string
	for q.Len() > 0 {
		var round []policy.Pending
		for p := range q.Round(0) {
			round = append(round, p)
			q.Remove(p.Sequence)
		}
		rounds = append(rounds, names(round))
	}
	want := []string{"[G1L1 G1L2 G2L1 G3L1 G2L2 G3L2 G2L3 G3L3 G2L4 G3L4]", "[G1L3]"}
	if !slices.Equal(rounds, want) {
		t.Errorf("rounds %v, want %v", rounds, want)
	}
}

// Discards are refused first, then the round is what is left of it.
func TestDiscardedIsGone(t *testing.T) {
	q := newQueue("dpsar", policy.OrderOptions{Scale: 9, N: 1, NUJP: 3, Overflow: policy.Discard}, fig3(9, 3, 2))
	var discarded []policy.Pending
	for p := range q.Discards(0) {
		discarded = append(discarded, p)
		q.Remove(p.Sequence)
	}
	if got, want := names(discarded), "[G1L2 G1L3 G2L4 G3L4]"; got != want {
		t.Errorf("discarded %s, want %s", got, want)
	}
	if got, want := names(collect(q.Round(0))), "[G1L1 G2L1 G3L1 G2L2 G3L2 G2L3 G3L3]"; got != want || q.Len() != 7 {
		t.Errorf("then yields %s, want %s", got, want)
	}
	if again := collect(q.Discards(0)); len(again) != 0 {
		t.Errorf("discards %s once more", names(again))
	}
}

// A round is begun again when a request or a user arrives ("the sorting
// process is repeated"): who is more important now comes next.
func TestArrivalBeginsAnotherRound(t *testing.T) {
	pending := fig3(9, 3, 2)
	q := newQueue("dpsar", policy.OrderOptions{Scale: 9}, pending[3:]) // users 2 and 3
	for p := range q.Round(0) {
		q.Remove(p.Sequence)
		if p.Request.ID == "G2L2" {
			break
		}
	}
	q.Add(pending[1])
	if got, want := names(collect(q.Round(0))), "[G1L1 G3L2 G2L3 G3L3 G2L4 G3L4]"; got != want {
		t.Errorf("yields %s, want %s", got, want)
	}
}

// Adding a user flips all pairs below (spec 3, d).
func TestAUserFlipsThePairs(t *testing.T) {
	options := policy.OrderOptions{SD: new(policy.Levels(1000)), N: 1}
	var pending []policy.Pending
	for i, priority := range []int{4, 3, 2, 1} {
		for j, length := range []int64{2, 1} {
			r := berth.Rigid(fmt.Sprintf("P%d/%d", priority, length), 0, 0, 99, 1, berth.Duration(length))
			pending = append(pending, policy.Pending{
				Request: &r, Sequence: uint64(2*i + j), Length: length, Priority: priority, UserSequence: uint64(i),
			})
		}
	}
	q := newQueue("dpsar", options, pending)
	if got, want := names(collect(q.Round(0))), "[P4/1 P3/1 P4/2 P3/2 P2/1 P1/1 P2/2 P1/2]"; got != want {
		t.Errorf("yields %s, want %s", got, want)
	}
	for _, p := range pending[:2] {
		q.Remove(p.Sequence)
	}
	if got, want := names(collect(q.Round(0))), "[P3/1 P2/1 P3/2 P2/2 P1/1]"; got != want {
		t.Errorf("without the first user yields %s, want %s", got, want)
	}
}

// With aging a user gains a level for each period that their oldest request has
// waited, and loses it when that request goes.
func TestAging(t *testing.T) {
	request := func(id string, sequence uint64, arrival berth.Time, priority int, user uint64) policy.Pending {
		r := berth.Rigid(id, arrival, arrival, 10_000, 1, 5)
		return policy.Pending{Request: &r, Sequence: sequence, Length: 5, Priority: priority, UserSequence: user}
	}
	old, young := request("old", 1, 0, 1, 1), request("young", 3, 350, 1, 1)
	young.Length++
	for _, row := range []struct {
		arrival berth.Time // of the important request
		aging   berth.Duration
		want    string
	}{
		{300, 0, "[vip old young]"},
		{299, 100, "[vip old young]"},
		{301, 100, "[old young vip]"}, // old has caught up three levels
		{300, 100, "[old vip young]"}, // exactly: equal priorities are served together
	} {
		vip := request("vip", 2, row.arrival, 4, 2)
		q := newQueue("dpsar", policy.OrderOptions{Aging: row.aging}, []policy.Pending{old, vip, young})
		if got := names(collect(q.Round(1000))); got != row.want {
			t.Errorf("vip at %d, aging %d: %s, want %s", row.arrival, row.aging, got, row.want)
		}
		q.Remove(1)
		if got, want := names(collect(q.Round(1000))), "[vip young]"; got != want {
			t.Errorf("vip at %d, aging %d, old gone: %s, want %s", row.arrival, row.aging, got, want)
		}
	}
}

// At the bounds of all options nothing overflows.
func TestAgingAtTheBounds(t *testing.T) {
	const most = policy.MaxPriority
	request := func(sequence uint64, arrival berth.Time, priority int) policy.Pending {
		r := berth.Rigid(fmt.Sprint(sequence), arrival, arrival, berth.TimeLimit-1, 1, 1)
		return policy.Pending{Request: &r, Sequence: sequence, Length: int64(sequence), Priority: priority, UserSequence: sequence}
	}
	first, last := berth.Time(1-berth.TimeLimit), berth.Time(berth.TimeLimit-2)
	pending := []policy.Pending{request(1, last, -2*most), request(2, first, 2*most), request(3, last, -most)}
	const widest policy.Levels = 2 * most * 1000
	for _, sd := range []policy.Levels{-widest, -1, 0, widest - 1000, widest} {
		for _, aging := range []berth.Duration{0, 1, policy.MaxAging} {
			options := policy.OrderOptions{SD: &sd, Aging: aging, N: 1}
			if err := options.Validate(); err != nil {
				t.Fatal(err)
			}
			clamped := slices.Clone(pending)
			clamped[0].Priority, clamped[1].Priority = -most, most
			want, _ := plainRound("dpsar", clamped, options, last)
			got := collect(newQueue("dpsar", options, pending).Round(last))
			// The first is the shortest, and comes first only beside the second.
			if joined := sd == widest && aging == 0; names(got) != names(want) || got[0].Sequence == 1 != joined {
				t.Errorf("sd %d, aging %d: %s, want %s", sd, aging, names(got), names(want))
			}
		}
	}
}

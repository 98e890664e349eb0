package policy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/policy"
)

func TestQueuesTable(t *testing.T) {
	var got []string
	for _, row := range policy.Queues {
		if row.About == "" || row.New(policy.OrderOptions{}) == nil {
			t.Errorf("%q lacks a description or makes no queue", row.Name)
		}
		if found, ok := policy.QueueNamed(row.Name); !ok || found.About != row.About {
			t.Errorf("QueueNamed(%q) leads to %q, %t", row.Name, found.About, ok)
		}
		got = append(got, row.Name)
	}
	if want := []string{"fcfs", "sjf", "ljf", "edf", "priority", "dpsar", "arwp"}; !slices.Equal(got, want) {
		t.Errorf("queues %v, want %v", got, want)
	}
	if row, ok := policy.QueueNamed("FCFS"); ok {
		t.Errorf("found %q", row.Name)
	}
}

// One set of requests in every order. Their ids tell arrival, length,
// deadline, priority and user; they were submitted as written.
func TestOrders(t *testing.T) {
	request := func(id string, arrival, deadline berth.Time, length int64) *berth.Request {
		r := berth.Rigid(id, arrival, arrival, deadline, 1, berth.Duration(length))
		return &r
	}
	pending := []policy.Pending{
		{Request: request("late", 9, 30, 5), Length: 5, Priority: 2, UserSequence: 1},
		{Request: request("short", 3, 50, 1), Length: 1, Priority: 1, UserSequence: 2},
		{Request: request("short2", 4, 50, 1), Length: 1, Priority: 2, UserSequence: 1},
		{Request: request("long", 2, 40, 7), Length: 7, Priority: 2, UserSequence: 3},
		{Request: request("vip", 9, 99, 6), Length: 6, Priority: 3, UserSequence: 4},
	}
	for i := range pending {
		pending[i].Sequence = uint64(10 * (i + 1))
	}
	rows := []struct {
		name    string
		options policy.OrderOptions
		want    string
	}{
		{"fcfs", policy.OrderOptions{}, "[long short short2 late vip]"},
		{"sjf", policy.OrderOptions{}, "[short short2 late vip long]"},
		{"ljf", policy.OrderOptions{}, "[long vip late short short2]"},
		{"edf", policy.OrderOptions{}, "[late long short short2 vip]"},
		{"arwp", policy.OrderOptions{}, "[late short short2 long vip]"},
		{"priority", policy.OrderOptions{}, "[vip long short2 late short]"},
		{"priority", policy.OrderOptions{InUser: policy.ShortestInUser}, "[vip short2 late long short]"},
		{"priority", policy.OrderOptions{InUser: policy.LongestInUser}, "[vip long late short2 short]"},
		// Seven seconds are worth a level: long, 7 s older than vip, has caught
		// up and was first; short, 6 s older than late, has not.
		{"priority", policy.OrderOptions{Aging: 7}, "[long vip short2 late short]"},
		{"priority", policy.OrderOptions{Aging: 6}, "[long vip short2 short late]"},
		{"priority", policy.OrderOptions{Aging: 8}, "[vip long short2 late short]"},
		// vip alone; users 1 and 3 together, shortest first; user 2 alone.
		{"dpsar", policy.OrderOptions{}, "[vip short2 late long short]"},
		{"dpsar", policy.OrderOptions{SD: new(policy.Levels(1000))}, "[short2 late vip short long]"},
	}
	for _, row := range rows {
		q := newQueue(row.name, row.options, pending)
		if got := names(collect(q.Round(0))); got != row.want {
			t.Errorf("%s %+v: %s, want %s", row.name, row.options, got, row.want)
		}
		if got := collect(q.Discards(0)); len(got) != 0 || q.Len() != len(pending) {
			t.Errorf("%s %+v: discards %s, %d pending", row.name, row.options, names(got), q.Len())
		}
	}
}

func TestOrderOptions(t *testing.T) {
	sd := func(l policy.Levels) policy.OrderOptions { return policy.OrderOptions{SD: &l} }
	const widest = 2 * policy.MaxPriority * 1000
	rows := []struct {
		options policy.OrderOptions
		field   string
	}{
		{policy.OrderOptions{}, ""},
		{policy.OrderOptions{Scale: -1}, "scale"},
		{policy.OrderOptions{Scale: 2*policy.MaxPriority + 1}, ""},
		{policy.OrderOptions{Scale: 2*policy.MaxPriority + 2}, "scale"},
		{sd(-widest), ""},
		{sd(-widest - 1), "sd"},
		{sd(widest), ""},
		{sd(widest + 1), "sd"},
		{sd(policy.AnyGap), ""},
		{policy.OrderOptions{N: -1}, "n"},
		{policy.OrderOptions{NUJP: -1}, "n_ujp"},
		{policy.OrderOptions{Overflow: policy.Discard}, ""},
		{policy.OrderOptions{Overflow: "drop"}, "overflow"},
		{policy.OrderOptions{InUser: policy.LongestInUser, LengthClasses: 3}, ""},
		{policy.OrderOptions{InUser: policy.FirstInUser}, ""},
		{policy.OrderOptions{InUser: policy.FirstInUser, LengthClasses: 3}, "length_classes"},
		{policy.OrderOptions{LengthClasses: -1}, "length_classes"},
		{policy.OrderOptions{LengthClasses: 1 << 21}, "length_classes"},
		{policy.OrderOptions{InUser: "edf"}, "in_user"},
		{policy.OrderOptions{Aging: policy.MaxAging}, ""},
		{policy.OrderOptions{Aging: policy.MaxAging + 1}, "aging"},
		{policy.OrderOptions{Aging: -1}, "aging"},
	}
	for _, row := range rows {
		err := row.options.Validate()
		var e *berth.Error
		switch {
		case row.field == "" && err != nil:
			t.Errorf("%+v: %v", row.options, err)
		case row.field != "" && (!errors.As(err, &e) || e.Field != row.field || e.Code != berth.Invalid):
			t.Errorf("%+v: error %v, want one about %s", row.options, err, row.field)
		}
	}
	want := policy.OrderOptions{
		Scale: 9, SD: new(policy.Levels(0)), N: 3, NUJP: 4, Overflow: policy.Discard,
		Chain: true, LengthClasses: 5, InUser: policy.LongestInUser, Aging: 3600,
	}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	const form = `{"scale":9,"sd":0,"n":3,"n_ujp":4,"overflow":"discard","chain":true,"length_classes":5,"in_user":"ljf","aging":3600}`
	if string(text) != form {
		t.Errorf("written as %s, want %s", text, form)
	}
	if text, err := json.Marshal(policy.OrderOptions{}); err != nil || string(text) != "{}" {
		t.Errorf("the zero value is written as %s, %v", text, err)
	}
}

func TestScaleOf(t *testing.T) {
	user := func(priority int) berth.User { return berth.User{Priority: priority} }
	for _, row := range []struct {
		users []berth.User
		want  int
	}{
		{nil, 0},
		{[]berth.User{user(7)}, 1},
		{[]berth.User{user(4), user(1), user(9), user(3)}, 9},
		{[]berth.User{user(-2), user(2)}, 5},
	} {
		if got := policy.ScaleOf(row.users); got != row.want {
			t.Errorf("scale of %v is %d, want %d", row.users, got, row.want)
		}
	}
}

func TestQueueRefusesWhatCannotBe(t *testing.T) {
	r := berth.Rigid("a", 0, 0, 9, 1, 1)
	p := policy.Pending{Request: &r, Sequence: 1, Length: 1, Priority: 4, UserSequence: 1}
	panics := func(name string, p policy.Pending, first policy.Pending) (did bool) {
		q := newQueue(name, policy.OrderOptions{}, []policy.Pending{first})
		defer func() { did = recover() != nil }()
		q.Add(p)
		return false
	}
	for _, row := range policy.Queues {
		if !panics(row.Name, p, p) {
			t.Errorf("%s takes one sequence twice", row.Name)
		}
	}
	other := p
	other.Sequence, other.Priority = 2, 5
	if !panics("dpsar", other, p) {
		t.Error("one user has two priorities")
	}
}

// Every queue does what sorting everything does, whatever came and went.
func TestQueuesEqualThePlainForms(t *testing.T) {
	for _, row := range policy.Queues {
		t.Run(row.Name, rapid.MakeCheck(func(t *rapid.T) {
			options := someOptions(t)
			if err := options.Validate(); err != nil {
				t.Fatal(err)
			}
			queue := row.New(options)
			priorities := rapid.SliceOfN(rapid.IntRange(0, 9), 5, 5).Draw(t, "priorities")
			model := map[uint64]policy.Pending{}
			add := func(t *rapid.T) {
				p := someRequest(t, rapid.Uint64Range(1, 50).Draw(t, "sequence"), priorities)
				if _, there := model[p.Sequence]; !there {
					model[p.Sequence] = p
					queue.Add(p)
				}
			}
			remove := func(t *rapid.T, sequence uint64) {
				_, there := model[sequence]
				if got := queue.Remove(sequence); got != there {
					t.Fatalf("removal of %d: %t, want %t", sequence, got, there)
				}
				delete(model, sequence)
			}
			t.Repeat(map[string]func(*rapid.T){
				"add":    add,
				"more":   func(t *rapid.T) { add(t); add(t); add(t) },
				"remove": func(t *rapid.T) { remove(t, rapid.Uint64Range(1, 50).Draw(t, "gone")) },
				"decide": func(t *rapid.T) {
					for p := range queue.Round(20) {
						remove(t, p.Sequence)
						if rapid.Bool().Draw(t, "stop") {
							break
						}
					}
				},
				"": func(t *rapid.T) {
					now := berth.Time(rapid.IntRange(20, 40).Draw(t, "now"))
					out, rest := plainRound(row.Name, slices.Collect(maps.Values(model)), options, now)
					if got := collect(queue.Round(now)); !slices.Equal(got, out) {
						t.Fatalf("a round yields %s, want %s", names(got), names(out))
					}
					want := plainDiscards(rest, options)
					if got := collect(queue.Discards(now)); row.Name == "dpsar" && !slices.Equal(got, want) {
						t.Fatalf("it discards %s, want %s", names(got), names(want))
					}
					if queue.Len() != len(model) {
						t.Fatalf("%d pending, want %d", queue.Len(), len(model))
					}
				},
			})
		}))
	}
}

// A round under which the queue changes is of what was pending at its
// beginning, less what went before its turn; a share counts what was yielded.
func TestRoundUnderChanges(t *testing.T) {
	for _, row := range policy.Queues {
		t.Run(row.Name, rapid.MakeCheck(func(t *rapid.T) {
			options := someOptions(t)
			pending := somePending(t, 5, 30)
			priorities := make([]int, 5)
			for _, p := range pending {
				priorities[p.UserSequence] = p.Priority
			}
			queue := newQueue(row.Name, options, pending)
			discards := rapid.Bool().Draw(t, "discards")

			// disturb changes the queue between two requests.
			here := map[uint64]bool{} // as pending at the beginning and still
			for _, p := range pending {
				here[p.Sequence] = true
			}
			added := uint64(1000)
			disturb := func(yielded uint64) {
				if rapid.Bool().Draw(t, "decided") {
					queue.Remove(yielded)
					here[yielded] = false
				}
				for rapid.IntRange(0, 2).Draw(t, "withdraw") == 0 {
					gone := rapid.SampledFrom(pending).Draw(t, "withdrawn")
					queue.Remove(gone.Sequence)
					here[gone.Sequence] = false
				}
				for rapid.IntRange(0, 2).Draw(t, "arrive") == 0 {
					added++
					queue.Add(someRequest(t, added, priorities))
				}
			}

			next, stop := pull(queue, discards)
			defer stop()
			if discards && options.Overflow != policy.Discard || discards && row.Name != "dpsar" {
				if p, ok := next(); ok {
					t.Fatalf("%s is discarded", p.Request.ID)
				}
				return
			}
			for _, group := range plainGroups(row.Name, pending, options, 20) {
				taken := map[uint64]int{}
				for _, want := range group.merged {
					if !here[want.Sequence] || (taken[want.UserSequence] >= group.share && !discards) {
						continue
					}
					if taken[want.UserSequence]++; discards && taken[want.UserSequence] <= group.share {
						continue
					}
					got, ok := next()
					if !ok || got != want {
						t.Fatalf("yields %+v, want %s", got, want.Request.ID)
					}
					disturb(got.Sequence)
				}
			}
			if got, ok := next(); ok {
				t.Fatalf("yields %s beyond its end", got.Request.ID)
			}
		}))
	}
}

// A round in classes of length bears the arrival of something shorter than all
// that was pending when it began.
func TestRoundInClassesBearsAShorterArrival(t *testing.T) {
	request := func(sequence uint64, length berth.Duration) policy.Pending {
		r := berth.Rigid(fmt.Sprint(sequence), 0, 0, 1000, 1, length)
		return policy.Pending{Request: &r, Sequence: sequence, Length: int64(length), UserSequence: sequence % 3}
	}
	queue := newQueue("dpsar", policy.OrderOptions{LengthClasses: 4}, []policy.Pending{request(3, 3), request(1, 2), request(2, 4)})
	var got []uint64
	for p := range queue.Round(0) {
		if got = append(got, p.Sequence); len(got) == 1 {
			queue.Add(request(5, 1))
		}
	}
	if want := []uint64{1, 3, 2}; !slices.Equal(got, want) {
		t.Errorf("the round is of %v, want %v", got, want)
	}
}

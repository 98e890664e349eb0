package service

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
)

// Whatever has come in: what an agenda finds is what looking at all that is remembered finds,
// whether it has followed every record, missed some or is new.
func TestAnAgendaFindsWhatIsThere(t *testing.T) {
	followed, anew, forgot := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		config := someConfig(t)
		core, err := newCore(config, "v1", rapid.SampledFrom([]int{3, 1000}).Draw(t, "keep"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := core.Configure(0, config); err != nil {
			t.Fatal(err)
		}
		var d display
		var r readers
		var a agenda
		core.diarist.read = &r
		d.begin(core)
		var now berth.Time
		by := Principal{User: "root", Role: Operator}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += berth.Time(rapid.IntRange(0, 4).Draw(t, "pause"))
			event := someEvent(t, &config, now)
			if rapid.IntRange(0, 19).Draw(t, "long") == 0 && event.Request != nil && !event.Request.IsJob() {
				event.Request.Parts[0].Variants[0].Duration *= 1 << 20
				event.Request.Deadline = berth.Forever
			}
			if event.Kind == engine.EventDown && rapid.Bool().Draw(t, "planned") {
				from := now + berth.Time(rapid.IntRange(1, 20).Draw(t, "announced"))
				event = engine.Down(berth.Outage{Name: fmt.Sprint("outage", from), Resource: event.Resource, PEs: event.PEs, From: from, Until: from + 10})
			}
			over := len(core.over)
			if rec, _, _ := core.Step(now, &event, Key{}); rec != nil {
				s := core.takeShown()
				d.show(&s)
			}
			if len(core.over) < over && core.diarist.kept {
				forgot++
			}
			if rapid.Bool().Draw(t, "not looked") {
				continue
			}
			m := d.look()
			if _, known := m.diary.since(a.number, m.number); known && a.spots != nil {
				followed++
			} else {
				anew++
			}
			a.take(m)
			r.saw(m.number)
			from := now + berth.Time(rapid.IntRange(-40, 40).Draw(t, "from"))
			w := window{
				site: rapid.SampledFrom([]string{"s0", "s1"}).Draw(t, "site"), from: from, to: from + berth.Time(rapid.IntRange(1, 60).Draw(t, "for")),
				after: Mark{Start: -1},
			}
			want := m.occupation(by, w)
			slices.SortFunc(want, func(a, b Span) int { return a.Mark.Compare(b.Mark) })
			limit := rapid.IntRange(1, 5).Draw(t, "limit")
			for page := 0; ; page++ {
				got := m.occupied(by, w, a.spots, limit)
				if diff := cmp.Diff(fmt.Sprintf("%+v", want[:min(limit, len(want))]), fmt.Sprintf("%+v", got)); diff != "" {
					t.Fatalf("page %d of %+v (-want +got):\n%s", page, w, diff)
				}
				if len(got) == 0 {
					break
				}
				want, w.after = want[len(got):], got[len(got)-1].Mark
			}
		}
	})
	if followed == 0 || anew == 0 || forgot == 0 {
		t.Errorf("the agenda followed %d times and was made anew %d times; %d records forgot something", followed, anew, forgot)
	}
}

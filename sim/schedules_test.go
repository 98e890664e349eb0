package sim_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/check"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/sim"
)

// everything says that the tests of schedules ask for all that a schedule should
// keep. Without it they leave out where the engine does not keep it:
//
//   - requests of several parts take what they require where it is not;
//   - at pools of late binding promises yield to outages and overruns that they
//     are not in the way of;
//   - at managed sites a promise of late binding gives up all its PEs for an outage,
//     and those that move for the same may take some of them before it does again;
//   - a promise that has to move is admitted anew, and may be refused for a policy
//     or a quota;
//   - a promise that lacks PEs and is delayed by an overrun is for fewer from then
//     on;
//   - a promise that is delayed by an overrun is not placed by when its data come,
//     nor made longer where its transfer takes longer by then;
//   - a hold that moves to where it is shorter expires when it would have before,
//     which may be after its end.
const everything = false

// reached counts what the schedules of a test had in them.
type reached map[string]int

func (r reached) note(lines []berth.Line) {
	for i := range lines {
		l := &lines[i]
		for what, has := range map[string]bool{
			"accepted": l.Accepted && l.Kind == berth.KindRequest, "jobs": l.Accepted && l.Kind == berth.KindJob,
			"moved": l.Accepted && l.MovedFrom != nil, "late data": slices.ContainsFunc(l.MovedFrom, func(p berth.FormerPlace) bool { return p.Staged != nil }),
			"broken": !l.Accepted && l.PromisedStart != nil, "expired": l.Reason == berth.Expired, "resized": l.Stretches != nil,
			"variants": l.Accepted && l.Variants != nil, "transfers": l.Transfer > 0, "stagings": l.Kind == berth.KindStaging, "at another time": l.PromisedEnd != nil,
			"overruns": l.Limit != nil, "pieces": l.Kind == berth.KindBooking, "outages": l.Kind == berth.KindOutage,
			"software": l.Accepted && l.Software != "", "licences": l.Accepted && l.Licences > 0, "storage": l.Accepted && l.StorageMB > 0,
			"memory": l.Accepted && l.MemoryMB > 0, "accelerators": l.Accepted && l.Accelerators > 0, "partitions": l.Accepted && l.Partition != "",
			"wishes": l.Accepted && l.WantSite != "", "eligible": l.Accepted && !l.Eligible.Empty(), "parts": l.Accepted && l.Part > 1,
		} {
			if has {
				r[what]++
			}
		}
	}
}

func (r reached) String() string {
	var words []string
	for what, n := range r {
		words = append(words, fmt.Sprintf("%s %d", what, n))
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

// Whatever the sites are, whatever is asked for and by whatever policies it is
// decided: the independent validator accepts the schedule.
func TestEverySchedulePassesCheck(t *testing.T) {
	seen := reached{}
	rapid.Check(t, func(rt *rapid.T) {
		s := scene{T: rt}
		s.drawSites(t)
		s.drawConfig()
		s.drawWork()
		lines, err := sim.Replay(context.Background(), s.config, s.work, nil)
		if err != nil {
			rt.Fatalf("%v\nat %s", err, s.text)
		}
		for _, v := range checked(rt, lines, check.Against(s.file.Sites, s.file.Uplink)).Violations {
			if !s.excused(&v, lines) {
				rt.Fatalf("%v\nat %s%s", v, s.text, shown(lines))
			}
		}
		seen.note(lines)
	})
	t.Log(seen)
}

// excused reports whether a violation is one that is left out without everything.
func (s *scene) excused(v *check.Violation, lines []berth.Line) bool {
	switch {
	case everything:
		return false
	case v.Class == check.BadReason:
		return strings.Contains(v.Text, "taken back")
	case v.Class == check.Staging:
		return s.config.Overrun == engine.OverrunDelay
	case v.Class == check.Resized:
		return strings.HasPrefix(v.Text, "it lacks ") || strings.HasPrefix(v.Text, "it loses PE ")
	case v.Class != check.Moved:
		return false
	case strings.HasPrefix(v.Text, "a former place has "):
		return s.config.Overrun == engine.OverrunDelay
	}
	return slices.ContainsFunc(lines, func(l berth.Line) bool {
		late := slices.ContainsFunc(l.MovedFrom, func(p berth.FormerPlace) bool { return p.PEs.Empty() })
		return slices.Contains(v.IDs, l.ID) && (late || l.Reason == berth.Expired)
	})
}

// shown writes lines for a message.
func shown(lines []berth.Line) string {
	var b strings.Builder
	for i := range lines {
		text, err := json.Marshal(&lines[i])
		if err != nil {
			return err.Error()
		}
		b.Write(append(text, '\n'))
	}
	return b.String()
}

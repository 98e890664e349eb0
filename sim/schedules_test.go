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
	"github.com/berth-hpc/berth/sim"
)

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
			"software": l.Accepted && l.Wants().Software != "", "licences": l.Accepted && l.Wants().Licences > 0, "storage": l.Accepted && l.Wants().StorageMB > 0,
			"memory": l.Accepted && l.Wants().MemoryMB > 0, "accelerators": l.Accepted && l.Wants().Accelerators > 0, "partitions": l.Accepted && l.Wants().Partition != "",
			"wishes": l.Accepted && l.Wants().WantSite != "", "eligible": l.Accepted && !l.Wants().Eligible.Empty(), "parts": l.Accepted && l.Part > 1,
			"sites": l.Accepted && l.Wants().WantSites != nil, "only": l.Accepted && l.Wants().OnlyPEs != nil, "never": l.Accepted && l.Wants().NotPEs != nil,
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
			if !unseen(&v, lines) {
				rt.Fatalf("%v\nat %s%s", v, s.text, shown(lines))
			}
		}
		seen.note(lines)
	})
	t.Log(seen)
}

// unseen reports whether a schedule cannot tell what was in an outage's way: a hold
// that expired held PEs, and its line does not say so.
func unseen(v *check.Violation, lines []berth.Line) bool {
	return v.Class == check.Moved && slices.ContainsFunc(lines, func(l berth.Line) bool { return l.Reason == berth.Expired })
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

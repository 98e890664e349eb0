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
	"github.com/berth-hpc/berth/sim"
)

// reached counts what the schedules of a test had in them.
type reached map[string]int

func (r reached) note(lines []berth.Line) {
	for i := range lines {
		l := &lines[i]
		for what, has := range map[string]bool{
			"accepted": l.Accepted && l.Kind == berth.KindRequest, "jobs": l.Accepted && l.Kind == berth.KindJob,
			"moved":  l.Accepted && l.PromisedStart != nil,
			"broken": !l.Accepted && l.PromisedStart != nil, "expired": l.Reason == berth.Expired,
			"variants": l.Accepted && l.Variants != nil, "stagings": l.Kind == berth.KindStaging,
			"pieces": l.Kind == berth.KindBooking, "outages": l.Kind == berth.KindOutage,
			"software": l.Accepted && l.Software != "", "licences": l.Accepted && l.Licences > 0, "storage": l.Accepted && l.StorageMB > 0,
			"accelerators": l.Accepted && l.Accelerators > 0, "parts": l.Accepted && l.Part > 1,
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
		for _, v := range checked(rt, lines, against(s.file.Sites, s.file.Uplink)).Violations {
			rt.Fatalf("%v\nat %s%s", v, s.text, shown(lines))
		}
		seen.note(lines)
	})
	t.Log(seen)
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

package state

import (
	"reflect"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/engine/change"
)

// folded is the state small with requests a and b of user u queued, accepted on all PEs of a
// pool, a throughout [5,10) with 60 MB of storage, b throughout [20,30) with all of
// it from 25 on.
func folded(t *testing.T, pool string) *State {
	t.Helper()
	return foldedBy(t, smallConfig(), pool)
}

func foldedBy(t *testing.T, config Config, pool string) *State {
	t.Helper()
	s := New(config)
	for i, r := range []berth.Request{berth.Rigid("a", 0, 0, 100, 4, 5), berth.Rigid("b", 0, 0, 100, 4, 10)} {
		r.User = "u"
		reservation := &berth.Reservation{
			Request: &r, State: berth.Confirmed, Sequence: uint64(i + 1),
			Allotments: []berth.Allotment{place(pool, 5, 10)},
			Stocks:     []berth.Allotment{{Resource: berth.StorageID("s"), Start: 5, End: 10, NPE: 60}},
		}
		if i == 1 {
			reservation.Allotments[0] = place(pool, 20, 30)
			reservation.Stocks[0] = berth.Allotment{Resource: berth.StorageID("s"), Start: 25, End: 30, NPE: 100}
		}
		for _, c := range []change.Change{
			{Kind: change.Queued, ID: r.ID, Request: &r},
			{Kind: change.Accepted, ID: r.ID, Reservation: reservation},
		} {
			if err := s.Fold(&c, Ref{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s
}

// place is all PEs of a pool of small for a time.
func place(pool string, start, end berth.Time) berth.Allotment {
	a := berth.Allotment{Resource: berth.PoolID("s", pool), Start: start, End: end, NPE: 4}
	if pool == "early" {
		a.PEs = berth.NewPESet(berth.Run{Lo: 0, Hi: 4})
	}
	return a
}

// A change that contradicts the state is an error, so that a damaged journal is not
// replayed into a state that never was.
func TestChangesThatContradictTheState(t *testing.T) {
	for _, pool := range []string{"early", "late"} {
		storage := []berth.Allotment{{Resource: berth.StorageID("s"), Start: 25, End: 30, NPE: 100}}
		vacated := change.Change{Kind: change.Vacated, ID: "a"}
		pending := change.Change{Kind: change.Queued, ID: "c", Request: new(berth.Rigid("c", 0, 0, 100, 4, 5))}
		for name, changes := range map[string][]change.Change{
			"extended into another": {{Kind: change.Extended, ID: "a", Until: 21}},
			"extended into storage of another": {
				{Kind: change.Moved, ID: "b", Moved: []berth.Allotment{place(pool, 40, 50)}, Stocks: storage}, {Kind: change.Extended, ID: "a", Until: 26},
			},
			"extended to its end":             {{Kind: change.Extended, ID: "a", Until: 10}},
			"extended without a place":        {vacated, {Kind: change.Extended, ID: "a", Until: 15}},
			"moved into another":              {{Kind: change.Moved, ID: "a", Moved: []berth.Allotment{place(pool, 25, 35)}}},
			"moved to storage of another":     {{Kind: change.Moved, ID: "a", Moved: []berth.Allotment{place(pool, 30, 35)}, Stocks: storage}},
			"moved to nowhere":                {{Kind: change.Moved, ID: "a"}},
			"moved to an unknown pool":        {{Kind: change.Moved, ID: "a", Moved: []berth.Allotment{place("other", 30, 35)}}},
			"moved to PEs of an unknown pool": {{Kind: change.Moved, ID: "a", Moved: []berth.Allotment{{Resource: berth.PoolID("s", "other"), Start: 30, End: 35, NPE: 4, PEs: berth.PEsOf(0, 1, 2, 3)}}}},
			"modified to nothing":             {{Kind: change.Modified, ID: "a", Moved: []berth.Allotment{place(pool, 30, 35)}}},
			"resized to no part":              {{Kind: change.Resized, ID: "a"}},
			"resized to less than nothing": {
				{Kind: change.Advanced, Now: 10}, // where nothing of it is left to be booked
				{Kind: change.Resized, ID: "a", Moved: []berth.Allotment{{Resource: berth.PoolID("s", pool), Start: 5, End: 10, NPE: -1}}},
			},
			"resized to another pool":   {{Kind: change.Resized, ID: "a", Moved: []berth.Allotment{place("other", 5, 10)}}},
			"resized to the other pool": {{Kind: change.Resized, ID: "a", Moved: []berth.Allotment{place(map[string]string{"early": "late", "late": "early"}[pool], 5, 10)}}},
			"resized to one of two parts": {
				pending,
				{Kind: change.Accepted, ID: "c", Reservation: &berth.Reservation{Request: pending.Request, Allotments: []berth.Allotment{place(pool, 40, 45), place(pool, 50, 55)}}},
				{Kind: change.Resized, ID: "c", Moved: []berth.Allotment{place(pool, 40, 45)}},
			},
			"resized into another":           {{Kind: change.Resized, ID: "a", Moved: []berth.Allotment{place(pool, 5, 21)}}},
			"resized where another now is":   {vacated, {Kind: change.Moved, ID: "b", Moved: []berth.Allotment{place(pool, 5, 15)}}, {Kind: change.Resized, ID: "a", Moved: []berth.Allotment{place(pool, 5, 10)}}},
			"vacated twice":                  {vacated, vacated},
			"lost with a place":              {{Kind: change.Lost, ID: "a"}},
			"confirmed without a hold":       {{Kind: change.Confirmed, ID: "a"}},
			"shortened before its start":     {{Kind: change.Shortened, ID: "a", Until: 7}},
			"a part that it has not":         {{Kind: change.Ended, ID: "a", Part: 1}},
			"a part before the first":        {{Kind: change.Ended, ID: "a", Part: -1}},
			"ended without a place":          {vacated, {Kind: change.Ended, ID: "a"}},
			"ended twice":                    {{Kind: change.Ended, ID: "a"}, {Kind: change.Ended, ID: "a"}},
			"an unknown reservation":         {{Kind: change.CheckedIn, ID: "c"}},
			"an unknown change":              {{Kind: "pardoned", ID: "a"}},
			"planned without being pending":  {{Kind: change.Planned, ID: "a"}},
			"accepted twice":                 {{Kind: change.Accepted, ID: "a", Reservation: &berth.Reservation{Request: new(berth.Rigid("a", 0, 0, 100, 4, 5)), Allotments: []berth.Allotment{place(pool, 40, 45)}}}},
			"accepted without a reservation": {pending, {Kind: change.Accepted, ID: "c"}},
			"accepted without a request":     {pending, {Kind: change.Accepted, ID: "c", Reservation: &berth.Reservation{Allotments: []berth.Allotment{place(pool, 40, 45)}}}},
			"accepted without a place":       {pending, {Kind: change.Accepted, ID: "c", Reservation: &berth.Reservation{Request: pending.Request}}},
			"accepted on an unknown pool":    {pending, {Kind: change.Accepted, ID: "c", Reservation: &berth.Reservation{Request: pending.Request, Allotments: []berth.Allotment{place("other", 40, 45)}}}},
			"accepted where another is":      {pending, {Kind: change.Accepted, ID: "c", Reservation: &berth.Reservation{Request: pending.Request, Allotments: []berth.Allotment{place(pool, 25, 30)}}}},
			"accepted with storage of another": {pending, {Kind: change.Accepted, ID: "c", Reservation: &berth.Reservation{
				Request: pending.Request, Allotments: []berth.Allotment{place(pool, 40, 45)}, Stocks: storage,
			}}},
			"accepted without an allotment":  {{Kind: change.Accepted, ID: "a", Reservation: &berth.Reservation{Request: new(berth.Rigid("a", 0, 0, 100, 4, 5))}}},
			"settled without being emitted":  {{Kind: change.Settled, EffectID: 1}},
			"requeued with a place":          {{Kind: change.Requeued, ID: "a", Request: new(berth.Job("a", 0, 1, 1))}},
			"withdrawn without being queued": {{Kind: change.Withdrawn, ID: "a"}},
		} {
			s := folded(t, pool)
			for i := range changes {
				err := s.Fold(&changes[i], Ref{})
				if last := i == len(changes)-1; (err != nil) != last {
					t.Errorf("%s, %s: change %d gives %v", pool, name, i+1, err)
				}
			}
		}
	}
}

// A task has a reservation only while it is open, and only if its workflow has it.
func TestTasksThatTheirWorkflowDoesNotHaveOpen(t *testing.T) {
	over := change.Change{Kind: change.TaskOver, Flow: &change.Flow{Workflow: "w", Task: 0, Outcome: berth.Succeeded}}
	for name, c := range map[string]struct {
		before []change.Change
		of     berth.TaskRef
		fits   bool
	}{
		"open":                  {nil, berth.TaskRef{Workflow: "w", Task: "a", Try: 1}, true},
		"open beside one":       {[]change.Change{over}, berth.TaskRef{Workflow: "w", Task: "b", Try: 1}, true},
		"over":                  {[]change.Change{over}, berth.TaskRef{Workflow: "w", Task: "a", Try: 2}, false},
		"unknown":               {nil, berth.TaskRef{Workflow: "w", Task: "c", Try: 1}, false},
		"of another workflow":   {nil, berth.TaskRef{Workflow: "v", Task: "a", Try: 1}, false},
		"of one that was there": {[]change.Change{{Kind: change.WorkflowOver, Flow: &change.Flow{Workflow: "w"}}}, berth.TaskRef{Workflow: "w", Task: "a", Try: 1}, false},
	} {
		s := New(smallConfig())
		r := berth.Rigid("w/a", 0, 0, 100, 4, 5)
		r.Task = &c.of
		changes := append([]change.Change{{Kind: change.WorkflowPromised, Workflow: &berth.Workflow{
			ID: "w", Deadline: berth.Forever, Repair: berth.RepairBoth, Tasks: []berth.WorkflowTask{{ID: "a", Seconds: 1}, {ID: "b", Seconds: 1}},
		}}}, c.before...)
		changes = append(changes, change.Change{Kind: change.Queued, ID: r.ID, Request: &r}, change.Change{
			Kind: change.Accepted, ID: r.ID, Reservation: &berth.Reservation{Request: &r, State: berth.Confirmed, Sequence: 1, Allotments: []berth.Allotment{place("late", 5, 10)}},
		})
		for i := range changes {
			err := s.Fold(&changes[i], Ref{})
			if last := i == len(changes)-1; (err != nil) != (last && !c.fits) {
				t.Errorf("%s: change %d gives %v", name, i+1, err)
			}
		}
	}
}

// The same changes one by one are no error where there is room.
func TestChangesThatAgreeWithTheState(t *testing.T) {
	for _, pool := range []string{"early", "late"} {
		for name, c := range map[string]change.Change{
			"extended up to another":   {Kind: change.Extended, ID: "a", Until: 20},
			"moved behind another":     {Kind: change.Moved, ID: "a", Moved: []berth.Allotment{place(pool, 30, 35)}},
			"moved over its own place": {Kind: change.Moved, ID: "a", Moved: []berth.Allotment{place(pool, 7, 12)}},
			"resized to what it has":   {Kind: change.Resized, ID: "a", Moved: []berth.Allotment{place(pool, 5, 10)}},
			"vacated":                  {Kind: change.Vacated, ID: "a"},
			"ended":                    {Kind: change.Ended, ID: "a"},
			"cancelled":                {Kind: change.Cancelled, ID: "a"},
		} {
			s := folded(t, pool)
			if err := s.Fold(&c, Ref{}); err != nil {
				t.Errorf("%s, %s: %v", pool, name, err)
			}
			if err := s.Check(smallConfig()); c.Kind != change.Vacated && err != nil {
				t.Errorf("%s, %s: afterwards %v", pool, name, err)
			}
		}
	}
}

// What is resized at the moment of its end has no time left to be booked for.
func TestResizedWhenItEnds(t *testing.T) {
	for _, pool := range []string{"early", "late"} {
		s, to := folded(t, pool), place(pool, 5, 10)
		if to.NPE = 3; pool == "early" {
			to.PEs = berth.NewPESet(berth.Run{Lo: 0, Hi: 3})
		}
		for _, c := range []change.Change{{Kind: change.Advanced, Now: 10}, {Kind: change.Resized, ID: "a", Moved: []berth.Allotment{to}}} {
			if err := s.Fold(&c, Ref{}); err != nil {
				t.Fatalf("%s: %v", pool, err)
			}
		}
		if e := s.Entry("a"); e.Part(0).NPE != 3 || e.Missing() != 1 {
			t.Errorf("%s: it has %d PEs and lacks %d", pool, e.Part(0).NPE, e.Missing())
		}
		if err := s.Check(smallConfig()); err != nil {
			t.Errorf("%s: %v", pool, err)
		}
	}
}

// A change that gives up PEs or storage which the calendar does not hold is an error: the
// fault of the calendar is not passed over.
func TestChangesOfWhatTheCalendarDoesNotHold(t *testing.T) {
	for _, pool := range []string{"early", "late"} {
		var pes []berth.PESet
		if pool == "late" {
			pes = []berth.PESet{place("early", 0, 1).PEs}
		}
		started := change.Change{Kind: change.Started, ID: "a", PEs: pes}
		smaller := place(pool, 5, 10)
		smaller.NPE, smaller.PEs = 2, smaller.PEs.Lowest(2)
		for name, changes := range map[string][]change.Change{
			"extended":           {{Kind: change.Extended, ID: "a", Until: 15}},
			"vacated":            {{Kind: change.Vacated, ID: "a"}},
			"moved":              {{Kind: change.Moved, ID: "a", Moved: []berth.Allotment{place(pool, 40, 45)}}},
			"modified":           {{Kind: change.Modified, ID: "a", Request: new(berth.Rigid("a", 0, 0, 100, 4, 6)), Moved: []berth.Allotment{place(pool, 40, 46)}}},
			"resized":            {{Kind: change.Resized, ID: "a", Moved: []berth.Allotment{smaller}}},
			"staged":             {{Kind: change.Staged, ID: "a", Stocks: []berth.Allotment{{Resource: berth.StorageID("s"), Start: 7, End: 10, NPE: 60}}}},
			"ended":              {{Kind: change.Ended, ID: "a"}},
			"cancelled":          {{Kind: change.Cancelled, ID: "a"}},
			"shortened":          {{Kind: change.Advanced, Now: 5}, started, {Kind: change.Shortened, ID: "a", Until: 7}},
			"ended when it runs": {{Kind: change.Advanced, Now: 5}, started, {Kind: change.Ended, ID: "a"}},
			"preempted":          {{Kind: change.Advanced, Now: 5}, started, {Kind: change.Preempted, ID: "a", Request: new(berth.Job("a", 0, 4, 5))}},
		} {
			for _, lost := range []berth.Allotment{place(pool, 5, 10), {Resource: berth.StorageID("s"), Start: 5, End: 10, NPE: 60}} {
				ofStorage := lost.Resource.Kind == berth.StorageKind
				if ofStorage && (name == "resized" || name == "shortened") || !ofStorage && name == "staged" {
					continue // what it has of that stays
				}
				s := folded(t, pool)
				c := s.Storage(0).calendar
				if i, is := s.Index(lost.Resource); is {
					c = s.pools[i].calendar
				}
				if err := c.Remove(blockOf(&lost, 5)); err != nil {
					t.Fatal(err)
				}
				for k := range changes {
					err := s.Fold(&changes[k], Ref{})
					if last := k == len(changes)-1; (err != nil) != last {
						t.Errorf("%s without %v, %s: change %d gives %v", pool, lost.Resource, name, k+1, err)
					}
				}
			}
		}
	}
}

// A modification on record without terms has those of its new place: nothing is left of
// those that it had, but for when its hold expires.
func TestModificationWithoutTerms(t *testing.T) {
	s := folded(t, "late")
	for _, c := range []change.Change{
		{Kind: change.Extended, ID: "a", Until: 15},
		{Kind: change.Modified, ID: "a", Request: new(berth.Rigid("a", 0, 0, 90, 2, 7)), Moved: []berth.Allotment{{Resource: berth.PoolID("s", "late"), Start: 40, End: 47, NPE: 2}}},
	} {
		if err := s.Fold(&c, Ref{}); err != nil {
			t.Fatal(err)
		}
	}
	want := berth.Terms{Variants: []berth.Variant{{NPE: 2, Duration: 7}}, Deadline: 90}
	if got := s.Entry("a").r; got.State != berth.Confirmed || got.Missing != 0 || !reflect.DeepEqual(got.Terms, want) {
		t.Errorf("it is %s, lacks %d PEs and has the terms %+v; want %+v", got.State, got.Missing, got.Terms, want)
	}
	if err := s.Check(smallConfig()); err != nil {
		t.Error(err)
	}
}

// Data whose share of the uplink is not booked are an error where the share is given back,
// whether they are on their way or not.
func TestChangesOfSharesThatTheUplinkDoesNotHold(t *testing.T) {
	for name, changes := range map[string][]change.Change{
		"sent at another time":     {{Kind: change.Staged, ID: "a", Transfers: []berth.Transfer{}}},
		"vacated before":           {{Kind: change.Vacated, ID: "a"}},
		"moved on their way":       {{Kind: change.Advanced, Now: 3}, {Kind: change.Moved, ID: "a", Moved: []berth.Allotment{place("late", 40, 45)}}},
		"lost on their way":        {{Kind: change.Advanced, Now: 3}, {Kind: change.Vacated, ID: "a"}, {Kind: change.Lost, ID: "a"}},
		"ended while they are not": {{Kind: change.Ended, ID: "a"}},
	} {
		for _, booked := range []bool{true, false} {
			config := smallConfig()
			config.Uplink = 100
			s := foldedBy(t, config, "late")
			sent := change.Change{Kind: change.Staged, ID: "a", Transfers: []berth.Transfer{{Site: "s", Start: 2, Since: 2, End: 5, Kilobytes: 9, Rate: 3}}}
			if err := s.Fold(&sent, Ref{}); err != nil {
				t.Fatal(err)
			}
			if !booked {
				if err := s.uplink.calendar.Remove(calendar.Block{Start: 2, End: 5, NPE: 3}); err != nil {
					t.Fatal(err)
				}
			}
			for k := range changes {
				err := s.Fold(&changes[k], Ref{})
				if last := k == len(changes)-1; (err != nil) != (last && !booked) {
					t.Errorf("%s, booked: %t: change %d gives %v", name, booked, k+1, err)
				}
			}
		}
	}
}

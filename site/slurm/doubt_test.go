package slurm_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm"
)

// script answers commands in turn, and checks what is asked.
type script struct {
	t     *testing.T
	steps []step
}

type step struct {
	argv   string // how the command begins
	result slurm.Result
	err    error
}

func (s *script) Run(_ context.Context, c slurm.Command) (slurm.Result, error) {
	line := strings.Join(c.Argv, " ")
	if len(s.steps) == 0 || !strings.HasPrefix(line, s.steps[0].argv) {
		s.t.Errorf("unexpected command %q; left are %+v", line, s.steps)
		return slurm.Result{}, errors.New("unexpected")
	}
	if !slices.Contains(c.Env, "TZ=UTC") {
		s.t.Errorf("%q runs in environment %q, want TZ=UTC", line, c.Env)
	}
	next := s.steps[0]
	s.steps = s.steps[1:]
	return next.result, next.err
}

func says(exit int, stdout, stderr string) slurm.Result {
	return slurm.Result{Exit: exit, Stdout: stdout, Stderr: stderr}
}

const (
	create = "scontrol create reservation ReservationName=berth_lab_"
	list   = "scontrol show reservation -o"
	sinfo  = "scontrol --all --oneliner show node"
	ping   = "scontrol ping"
	nodes  = "NodeName=n1 CoresPerSocket=4 CPUAlloc=0 CPUTot=4 Sockets=1 State=IDLE ThreadsPerCore=1\n"
	down   = "Unable to contact slurm controller (connect failure)"
)

func line(r site.Reservation, shift berth.Time) string {
	at := func(t berth.Time) string { return time.Unix(int64(t), 0).UTC().Format("2006-01-02T15:04:05") }
	return "ReservationName=" + string(r.Name) + " StartTime=" + at(r.Start) + " EndTime=" + at(r.End+shift) +
		" Nodes=n1 NodeCnt=1 CoreCnt=4 PartitionName=main Flags=SPEC_NODES Users=ada Accounts=(null) State=INACTIVE\n"
}

func TestDoubt(t *testing.T) {
	start := now() + 3600
	r := site.Reservation{Name: site.NameOf("lab", "17", 1), Start: start, End: start + 60, Shares: []site.Share{{Node: "n1"}}, Users: []string{"ada"}}
	later := r
	later.Name = site.NameOf("lab", "17", 2)
	made := says(0, "Reservation created: x\n", "")
	for name, c := range map[string]struct {
		steps   []step
		verdict site.Verdict
		kind    site.Kind
		reason  berth.Reason
	}{
		"made": {[]step{{create, made, nil}, {list, says(0, line(r, 0), ""), nil}, {sinfo, says(0, nodes, ""), nil}}, site.Made, "", ""},
		"no answer, and it is there": {
			[]step{{create, slurm.Result{}, context.DeadlineExceeded}, {ping, says(0, "Slurmctld(primary) at x is UP\n", ""), nil}, {list, says(0, line(r, 0), ""), nil}, {sinfo, says(0, nodes, ""), nil}},
			site.Already, "", "",
		},
		"no answer, and it is not there": {
			[]step{{create, slurm.Result{}, context.DeadlineExceeded}, {ping, says(0, "Slurmctld(primary) at x is UP\n", ""), nil}, {list, says(0, "No reservations in the system\n", ""), nil}},
			site.Doubt, site.Unreachable, "",
		},
		"no answer, and no controller": {[]step{{create, slurm.Result{}, context.DeadlineExceeded}, {ping, says(0, "Slurmctld(primary) at x is DOWN\n", ""), nil}}, site.Doubt, site.Unreachable, ""},
		"time-out of a socket": {
			[]step{{create, says(1, "", "Error creating the reservation: Socket timed out on send/recv operation\n"), nil}, {ping, says(0, "Slurmctld(primary) at x is UP\n", ""), nil}, {list, says(0, "", ""), nil}},
			site.Doubt, site.Unreachable, "",
		},
		"down":                         {[]step{{create, says(1, "", "Error creating the reservation: "+down+"\n"), nil}}, "", site.Unreachable, ""},
		"made, and then no controller": {[]step{{create, made, nil}, {list, says(1, "", "slurm_load_reservations error: "+down+"\n"), nil}}, site.Doubt, site.Unreachable, ""},
		"said to be made, and not there": {
			[]step{{create, made, nil}, {list, says(0, "No reservations in the system\n", ""), nil}}, site.Doubt, site.Conflict, "",
		},
		"busy": {
			[]step{{create, says(1, "Note, unless nodes\n", "Error creating the reservation: Requested nodes are busy\n"), nil}, {list, says(0, "", ""), nil}},
			site.Refused, "", berth.NoCapacity,
		},
		"busy with itself": {
			[]step{{create, says(1, "", "Error creating the reservation: Requested reservation overlaps with another reservation\n"), nil}, {list, says(0, line(r, 0), ""), nil}, {sinfo, says(0, nodes, ""), nil}},
			site.Already, "", "",
		},
		"name taken": {
			[]step{{create, says(1, "", "Error creating the reservation: Duplicate reservation name\n"), nil}, {list, says(0, line(r, 60), ""), nil}, {sinfo, says(0, nodes, ""), nil}},
			site.Refused, "", berth.RefusedConflict,
		},
		"made otherwise": {
			[]step{{create, made, nil}, {list, says(0, line(r, 60), ""), nil}, {sinfo, says(0, nodes, ""), nil}, {"scontrol delete ReservationName=" + string(r.Name), says(0, "", ""), nil}},
			site.Refused, "", berth.NoCapacity,
		},
		"superseded": {
			[]step{{create, made, nil}, {list, says(0, line(r, 0)+line(later, 0), ""), nil}, {sinfo, says(0, nodes, ""), nil}, {"scontrol delete ReservationName=" + string(r.Name), says(0, "", ""), nil}},
			"", site.Conflict, "",
		},
		"something new":   {[]step{{create, says(1, "", "Error creating the reservation: The moon is full\n"), nil}}, "", site.Invalid, ""},
		"an odd list":     {[]step{{create, made, nil}, {list, says(0, "what?\n", ""), nil}}, site.Doubt, site.Invalid, ""},
		"an unknown node": {[]step{{create, says(1, "", "Error creating the reservation: Invalid node name specified\n"), nil}}, "", site.NotFound, ""},
	} {
		s := &script{t: t, steps: c.steps}
		got, err := slurm.New(slurm.Options{Site: "lab", Exec: s}).Reserve(t.Context(), r)
		if got.Verdict != c.verdict || site.KindOf(err) != c.kind || got.Reason != c.reason {
			t.Errorf("%s: %+v %v, want %q %q %q", name, got, err, c.verdict, c.kind, c.reason)
		}
		if len(s.steps) > 0 {
			t.Errorf("%s: not asked were %+v", name, s.steps)
		}
	}
}

func TestForeignNamesAreNotAskedFor(t *testing.T) {
	s := slurm.New(slurm.Options{Site: "lab", Exec: &script{t: t}})
	for _, name := range []site.Name{"course", "berth_lab_x_1", site.NameOf("other", "17", 1)} {
		r := site.Reservation{Name: name, Start: now(), End: now() + 60, Nodes: 1, Users: []string{"ada"}}
		if _, err := s.Reserve(t.Context(), r); site.KindOf(err) != site.Denied {
			t.Errorf("reserve %s: %v, want it denied", name, err)
		}
		if _, err := s.Change(t.Context(), r); site.KindOf(err) != site.Denied {
			t.Errorf("change %s: %v, want it denied", name, err)
		}
		if err := s.Release(t.Context(), name); site.KindOf(err) != site.Denied {
			t.Errorf("release %s: %v, want it denied", name, err)
		}
	}
}

func TestMissingCommands(t *testing.T) {
	s := slurm.New(slurm.Options{Site: "lab", Bin: "/no/such/folder"})
	_, err := s.Observe(t.Context())
	if site.KindOf(err) != site.Unreachable || !strings.Contains(err.Error(), "install Slurm's client commands") {
		t.Errorf("%v, want it unreachable with a hint", err)
	}
}

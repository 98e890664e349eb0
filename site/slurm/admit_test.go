package slurm

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-hpc/berth/site"
)

// database answers what Admits asks.
type database struct{ enforce, rows, groups string }

func (d database) Run(_ context.Context, c Command) (Result, error) {
	switch c.Argv[0] {
	case "scontrol":
		return Result{Stdout: "AccountingStorageEnforce = " + d.enforce + "\nClusterName = lab\nSlurmUser = slurm(64030)\n"}, nil
	case "id":
		return Result{Stdout: d.groups + "\n"}, nil
	case "sacctmgr":
		if line := strings.Join(c.Argv, " "); !strings.Contains(line, " user=ada cluster=lab ") {
			return Result{}, errors.New("unexpected: " + line)
		}
		return Result{Stdout: d.rows}, nil
	}
	return Result{}, errors.New("unexpected: " + c.Argv[0])
}

// Who may use a partition is decided by groups, and by accounts and QOS where Slurm enforces
// associations.
func TestAdmits(t *testing.T) {
	const enforced = "associations,qos"
	for name, c := range map[string]struct {
		line string // of the partition
		user string
		at   database
		want string // what is said begins with it; nothing if they may
	}{
		"open":              {"AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL", "ada", database{enforce: enforced}, ""},
		"of the group":      {"AllowGroups=phys,chem", "ada", database{groups: "users chem"}, ""},
		"of no group":       {"AllowGroups=phys", "ada", database{groups: "users chem"}, "it is for the members of phys"},
		"SlurmUser":         {"AllowGroups=phys", "slurm", database{}, ""},
		"an odd name":       {"AllowGroups=phys", "-a b", database{}, "no such user"},
		"account allowed":   {"AllowAccounts=b", "ada", database{enforce: enforced, rows: "ada|a|||normal\nada|b|||normal\n"}, ""},
		"account missing":   {"AllowAccounts=b", "ada", database{enforce: enforced, rows: "ada|a|||normal\n"}, "it does not take their account a"},
		"account denied":    {"DenyAccounts=a", "ada", database{enforce: enforced, rows: "ada|a|||normal\n"}, "it does not take their account a"},
		"no account":        {"AllowAccounts=b", "ada", database{enforce: enforced}, "they have no account there"},
		"nothing enforced":  {"AllowAccounts=b", "ada", database{enforce: "none"}, ""},
		"QOS allowed":       {"AllowAccounts=ALL AllowQos=long", "ada", database{enforce: enforced, rows: "ada|a|||normal,long\n"}, ""},
		"QOS missing":       {"AllowQos=long", "ada", database{enforce: enforced, rows: "ada|a|||normal\nada|b|||\n"}, "it does not take their QOS"},
		"every QOS denied":  {"DenyQos=normal", "ada", database{enforce: enforced, rows: "ada|a|||normal\n"}, "it does not take their QOS normal"},
		"one QOS is denied": {"DenyQos=normal", "ada", database{enforce: enforced, rows: "ada|a|||normal,long\n"}, ""},
		"their QOS":         {"QOS=long AllowAccounts=ALL", "ada", database{enforce: enforced, rows: "ada|a|||normal,long\n"}, ""},
		"not their QOS":     {"QOS=high AllowAccounts=ALL", "ada", database{enforce: enforced, rows: "ada|a|||normal,long\nada|b|||\n"}, "they may not use the QOS high in the account b"},
		"a QOS it denies":   {"QOS=long DenyQos=long", "ada", database{enforce: enforced, rows: "ada|a|||normal,long\n"}, "it does not take their QOS long"},
		"a QOS elsewhere":   {"QOS=long AllowAccounts=a", "ada", database{enforce: enforced, rows: "ada|a|||normal\nada|b|||long\n"}, "it does not take their account b"},
		"QOS not enforced":  {"QOS=high AllowAccounts=ALL", "ada", database{enforce: "associations", rows: "ada|a|||normal\n"}, ""},
		"a QOS, no account": {"QOS=high AllowAccounts=ALL", "ada", database{enforce: enforced}, "they have no account there"},
	} {
		asked := site.Entry{User: c.user}
		if qos, rest, given := strings.Cut(c.line, " "); given && strings.HasPrefix(qos, "QOS=") {
			asked.QOS, c.line = strings.TrimPrefix(qos, "QOS="), rest
		}
		partitions, err := parsePartitions("PartitionName=p " + c.line + " MaxNodes=UNLIMITED MaxTime=UNLIMITED Nodes=n1 State=UP\n")
		if err != nil {
			t.Fatal(err)
		}
		admission, err := New(Options{Site: "lab", Exec: c.at}).Admits(t.Context(), &partitions[0], &asked)
		why := admission.No
		if err != nil || !strings.HasPrefix(why, c.want) || c.want == "" && why != "" {
			t.Errorf("%s: %q, %v, want %q", name, why, err, c.want)
		}
	}
}

// mute is a site whose accounting database does not answer, which is asked a number of times.
type mute struct {
	database
	asked *int
}

func (m mute) Run(ctx context.Context, c Command) (Result, error) {
	if c.Argv[0] != "sacctmgr" {
		return m.database.Run(ctx, c)
	}
	*m.asked++
	<-ctx.Done()
	return Result{}, ctx.Err()
}

// An accounting database that does not answer holds no one up for long, and is not asked by
// every request.
func TestAdmitsWaitsForNoDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		s := New(Options{Site: "lab", Exec: mute{database{enforce: "associations,limits"}, &asked}})
		began := time.Now()
		for range 3 {
			if _, err := s.Admits(t.Context(), &site.Partition{}, &site.Entry{User: "ada"}); site.KindOf(err) != site.Unreachable {
				t.Errorf("%v, want that it does not answer", err)
			}
		}
		if took := time.Since(began); asked != 1 || took > 4*time.Second {
			t.Errorf("asked %d times within %v", asked, took)
		}
		time.Sleep(6 * time.Second) // of the bubble's clock
		_, _ = s.Admits(t.Context(), &site.Partition{}, &site.Entry{User: "ada"})
		if asked != 2 {
			t.Errorf("asked %d times, want again after some seconds", asked)
		}
	})
}

var _ site.Gate = (*Site)(nil)

// A task is handed in with the QOS and the account of its promise, and says nothing of those that it has not.
func TestTasksAreHandedInWithTheirQOS(t *testing.T) {
	c := NewClient(Options{Site: "lab"})
	task := site.Task{Key: "k", Reservation: "r", Dir: "/", Command: []string{"true"}, Account: "phys", QOS: "long"}
	booked := site.Booking{Start: 0, End: 3600}
	if args := strings.Join(c.sbatchArgs(&task, &booked, size{}), " "); !strings.Contains(args, " --account=phys --qos=long ") {
		t.Error(args)
	}
	with := task.Digest()
	if task.QOS = ""; with == task.Digest() {
		t.Error("the QOS is not part of what a task does")
	}
	if args := strings.Join(c.sbatchArgs(&task, &booked, size{}), " "); strings.Contains(args, "qos") {
		t.Error(args)
	}
	if task.QOS = "long,high"; task.Check() == nil {
		t.Error("two QOS are taken as one")
	}
}

package service_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// moody is a folder with Slurm's commands. The next command that has certain words misbehaves once.
type moody struct {
	t   *testing.T
	bin string
}

func newMoody(t *testing.T) *moody {
	t.Helper()
	m := &moody{t, t.TempDir()}
	for _, name := range []string{"scontrol", "squeue", "scancel", "sbatch", "sdiag", "sacctmgr"} {
		where, err := exec.LookPath(name)
		if err != nil {
			t.Skipf("slurm: %s is missing", name)
		}
		script := fmt.Sprintf(`#!/bin/sh
case "$*" in
*"$(cat %[1]s/words 2>/dev/null || echo none)"*)
  if mv %[1]s/mood %[1]s/shown 2>/dev/null; then
    case $(cat %[1]s/shown) in
    "hangs") exec sleep 1000 ;;
    "hangs when it is done") %[2]s "$@" >/dev/null 2>&1; exec sleep 1000 ;;
    "is killed") kill -9 $$ ;;
    "is killed when it is done") %[2]s "$@" >/dev/null 2>&1; kill -9 $$ ;;
    "writes without end") exec yes ;;
    "writes without end when it is done") %[2]s "$@" >/dev/null 2>&1; exec yes ;;
    esac
  fi ;;
esac
exec %[2]s "$@"
`, m.bin, where)
		slurmtest.Script(m.t, filepath.Join(m.bin, name), script)
	}
	return m
}

// next says how the next command with some words misbehaves.
func (m *moody) next(words, mood string) {
	m.t.Helper()
	for name, text := range map[string]string{"words": words, "mood": mood} {
		if err := os.WriteFile(filepath.Join(m.bin, name+".new"), []byte(text), 0o600); err != nil {
			m.t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(m.bin, name+".new"), filepath.Join(m.bin, name)); err != nil {
			m.t.Fatal(err)
		}
	}
}

// shown reports whether it has.
func (m *moody) shown() bool {
	_, err := os.Stat(filepath.Join(m.bin, "mood"))
	return os.IsNotExist(err)
}

// A promise with a job that waits in it is moved, and the command that does it hangs, dies of a signal or writes without
// end, before it has done it or afterwards: in the end Slurm has the promise once, where it is promised, and the job waits there.
func TestCommandsThatMisbehaveDuringAMove(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	for unit, commands := range map[site.Unit][]string{
		site.UnitNode: {"update ReservationName=", "show reservation", "--Format="},
		site.UnitCore: {"create reservation", "update JobId=", "--noheader --reservation=", "delete ReservationName="},
	} {
		t.Run(string(unit), func(t *testing.T) {
			t.Parallel()
			l := newLabOf(t, slurmtest.Start(t, slurmtest.Options{}), unit, false)
			if err := l.host.Close(); err != nil {
				t.Fatal(err)
			}
			m := newMoody(t)
			l.manager.Adapter = slurm.New(slurm.Options{Site: "lab", Conf: l.cluster.Conf, Bin: m.bin, Timeout: 2 * time.Second, Exec: slurm.Host{Most: 1 << 20}})
			l.open()
			l.looked()
			npe := berth.Count(3) // of cores, a part of a node
			l.reserve("a", npe, 400, 60)
			job := l.sbatch("a")
			l.looked()
			in := berth.Duration(400)
			for _, words := range commands {
				for _, mood := range []string{"hangs", "is killed", "writes without end", "hangs when it is done", "is killed when it is done", "writes without end when it is done"} {
					if reads := strings.HasPrefix(words, "-") || strings.HasPrefix(words, "show"); reads && strings.Contains(mood, "done") {
						continue
					}
					in, npe = in+100, 7-npe // of cores another number is another reservation
					m.next(words, mood)
					l.move("a", npe, l.host.Now(), in, 60)
					l.until(words+" "+mood, m.shown)
					l.waits("a", job)
				}
			}
			if err := l.host.Check(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// Licences that are promised under late binding are held from when nodes are named, whether the service was killed before
// or after that, and another gets none of them.
func TestLateLicencesAfterAKill(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	l := newLabOf(t, slurmtest.Start(t, slurmtest.Options{Extra: "Licenses=matlab:4"}), site.UnitNode, false, 25)
	killed := func() {
		t.Helper()
		if l.mortal != nil {
			l.mortal.dead.Store(true)
		}
		_ = l.host.Close() // it cannot say goodbye
		l.mortal = &mortal{Store: l.store}
		l.open()
		l.looked()
	}
	l.sites[0].Software = []berth.Software{{Name: "matlab", Licences: 4}}
	killed()
	start := l.host.Now() + 40
	ask := func(id string, licences berth.Count) berth.Request {
		r := berth.Rigid(id, 0, start, start+600, 1, 600)
		r.Software, r.Licences = "matlab", licences
		return r
	}
	l.by.Key = "a"
	first := submit(t, l.host, l.by, ask("a", 3)).Reservation
	l.by.Key = ""
	killed()
	if r := submit(t, l.host, l.by, ask("b", 2)).Reservation; r.State != service.Refused {
		t.Errorf("two more of four licences: %+v", r)
	}
	if r := l.get("a"); len(r.Nodes) > 0 || strings.Contains(l.shown("reservation"), "ReservationName=") {
		t.Errorf("it has nodes %v before their time", r.Nodes)
	}
	name := l.made("a")
	killed()
	holds := func() bool {
		at := l.shown("reservation")
		return strings.Contains(at, "Licenses=matlab:3 ") && strings.Contains(at, " Nodes="+l.nodes("a")+" ") && strings.Count(at, "ReservationName=") == 1
	}
	if !holds() || string(l.get("a").Sites[0].Name) != name {
		t.Errorf("it has %s and is %s", l.nodes("a"), l.shown("reservation"))
	}
	l.by.Key = "a"
	if again := submit(t, l.host, l.by, ask("a", 3)).Reservation; again.ID != first.ID || again.State != first.State {
		t.Errorf("asked for again it is %+v, at first %+v", again, first)
	}
	l.by.Key = ""
	l.administer("update", "NodeName="+l.nodes("a"), "State=DOWN", "Reason=dead")
	was := l.nodes("a")
	l.until("it has another node and its licences", func() bool { return l.nodes("a") != was && l.get("a").Sites[0].Made && holds() })
	l.until("it begins", func() bool { return strings.Contains(l.shown("reservation"), "State=ACTIVE") })
	out, err := l.cluster.Command("sbatch", "--parsable", "--licenses=matlab:2", "--time=1", "--output=/dev/null", "--wrap=sleep 1000")
	if err != nil {
		t.Fatal(err, out)
	}
	l.until("the licences are wanted by another", func() bool {
		return strings.Contains(l.shown("job", strings.TrimSpace(out)), "JobState=PENDING Reason=Licenses")
	})
	if _, err := l.host.Release(t.Context(), l.by, "a"); err != nil {
		t.Fatal(err)
	}
	l.until("the other has them", func() bool { return strings.Contains(l.shown("job", strings.TrimSpace(out)), "JobState=RUNNING") })
	if err := l.host.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

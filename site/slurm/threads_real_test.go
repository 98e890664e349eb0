package slurm_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// Of nodes with hardware threads a PE is a core, whichever of them Slurm hands out: as many cores
// are told of a node, of a job of others and of a reservation, and a task gets all of those
// that its reservation has.
func TestHardwareThreadsAreOfCores(t *testing.T) {
	t.Parallel()
	const cores = 4
	for _, c := range []struct {
		by, doctor string
		cpus       int
	}{
		{"CR_Core_Memory", "4 cores of 2 hardware threads, which are 8 CPUs to Slurm", 2 * cores},
		{"CR_CPU_Memory", "4 cores of 2 hardware threads, which are 8 CPUs to Slurm", 2 * cores},
		{"CR_Core_Memory", "4 cores of 2 hardware threads, which are 4 CPUs to Slurm", cores},
	} {
		t.Run(fmt.Sprintf("%s-%d", c.by, c.cpus), func(t *testing.T) {
			t.Parallel()
			cluster := slurmtest.Start(t, slurmtest.Options{Nodes: 3, CPUs: c.cpus, Hardware: "Sockets=1 CoresPerSocket=4 ThreadsPerCore=2", Select: c.by})
			s, client := slurm.New(options(cluster)), slurm.NewClient(options(cluster))
			d, err := s.Describe(t.Context())
			if err != nil || d.Nodes[0].Cores != cores {
				t.Fatalf("a node of %+v, %v", d.Nodes, err)
			}
			if found := s.Doctor(t.Context()); !slices.ContainsFunc(found, func(f site.Finding) bool {
				return f.Check == "threads" && f.Level == site.Good && strings.Contains(f.Text, "n[1-3]: "+c.doctor)
			}) {
				t.Errorf("the doctor finds %+v", found)
			}
			held := func(id string) (all berth.Count) {
				t.Helper()
				var job *site.Job
				if !eventually(20*time.Second, func() bool {
					running := observe(t, s).Running
					at := slices.IndexFunc(running, func(j site.Job) bool { return string(j.ID) == id })
					if at >= 0 {
						job = &running[at]
					}
					return at >= 0
				}) {
					out, _ := cluster.Command("scontrol", "show", "job", id)
					t.Fatalf("job %s does not run: %s", id, out)
				}
				for _, share := range job.Shares {
					if share.Cores.Empty() {
						all += cores
					}
					all += share.Cores.Count()
				}
				return all
			}
			others := submitted(t, cluster, "-n1", "-wn3", "--mem=10")
			if n := held(others); n != 1 {
				t.Errorf("a job of one core has %d", n)
			}
			for n, shares := range [][]site.Share{
				{{Node: "n1"}, {Node: "n2", Cores: berth.PEsOf(0, 1)}},
				{{Node: "n1", Cores: berth.PEsOf(0)}},
				{{Node: "n1", Cores: berth.PEsOf(0, 1, 2)}, {Node: "n2", Cores: berth.PEsOf(0, 1, 2)}},
				{{Node: "n1"}},
				{{Node: "n1"}, {Node: "n2"}},
			} {
				r := far(t, n)
				r.Start, r.Shares = now(), shares
				want := berth.Count(0)
				for _, share := range shares {
					want += share.Cores.Count()
					if share.Cores.Empty() {
						want += cores
					}
				}
				if made := mustReserve(t, s, r, site.Made); made.Booking.Cores != want {
					t.Errorf("%v: reserved are %d cores", shares, made.Booking.Cores)
				}
				id, err := client.Submit(t.Context(), site.Task{
					Key: fmt.Sprint("threads", n), Reservation: r.Name, User: r.Users[0], Command: []string{"sleep", "100"}, Dir: t.TempDir(), MemoryMB: 10,
				})
				if err != nil {
					t.Fatal(err)
				}
				if n := held(string(id)); n != want {
					t.Errorf("%v: the task has %d cores, want %d", shares, n, want)
				}
				if err := s.Release(t.Context(), r.Name); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// submitted hands in a job that sleeps, and returns its number.
func submitted(t *testing.T, cluster *slurmtest.Cluster, args ...string) string {
	t.Helper()
	out, err := cluster.Command("sbatch", append(args, "--parsable", "-t10", "--output=/dev/null", "--chdir=/tmp", "--wrap=sleep 600")...)
	if err != nil {
		t.Fatal(out, err)
	}
	return strings.TrimSpace(out)
}

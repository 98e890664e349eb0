package sites_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/sites"
)

// Whatever the bytes: no panic and no endless nesting; a file that holds
// together, or complaints of the right kind; and what reads, the schema accepts.
func FuzzRead(f *testing.F) {
	example, err := os.ReadFile(filepath.Join("..", "examples", "sites.yaml"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(example))
	for _, text := range good {
		f.Add(text)
	}
	for _, c := range bad {
		f.Add(c.text)
	}
	schema := compiled(f)
	f.Fuzz(func(t *testing.T, text string) {
		file, err := read(text)
		if err != nil {
			for _, m := range mistakes(t, err) {
				if !strings.HasPrefix(m.Msg, "s.yaml:") {
					t.Fatalf("complaint without place: %s", m.Msg)
				}
			}
			return
		}
		if err := schema.Validate(decoded(t, text)); err != nil {
			t.Fatalf("the reader accepts it, the schema does not: %v", err)
		}
		names := make(map[string]bool)
		for _, site := range file.Sites {
			if described := file.Adapters[site.Name].Kind != ""; site.Name == "" || names[site.Name] || (len(site.Pools) == 0) != described {
				t.Fatalf("site %+v", site)
			}
			names[site.Name] = true
			for _, pool := range site.Pools {
				size, known := file.Size(site.Name, pool.Name)
				if !known || size != pool.PEs || size < 1 || size > berth.MaxPEs || pool.Speed < 0 {
					t.Fatalf("pool %+v", pool)
				}
			}
			for _, partition := range site.Partitions {
				if size, known := file.Size(site.Name, partition.Pool); !known || partition.PEs.Max() >= berth.PE(size) {
					t.Fatalf("partition %+v", partition)
				}
			}
		}
		if e := file.Policies.Eager; e != nil && (e.K1 < 0 || e.K1 > 1000 || e.K2 < 0 || e.K2 > 1000) {
			t.Fatalf("eager %+v", e)
		}
	})
}

// Whatever the file: adding a site is refused, or what the file said before stays
// and one site is behind the others.
func FuzzAdd(f *testing.F) {
	for _, text := range good {
		f.Add(text)
	}
	f.Add("sites:\n- name: a\n  software:\n  - name: |-\n      x\n\n  pes: 4\n# c\nservice: {}\n")
	f.Fuzz(func(t *testing.T, text string) {
		before, err := read(text)
		if err != nil {
			return
		}
		added, err := sites.Add([]byte(text), "s.yaml", "name: added-by-the-test\nadapter:\n  kind: slurm\n")
		if err != nil {
			mistakes(t, err)
			return
		}
		after, err := read(string(added))
		if err != nil {
			t.Fatal(err)
		}
		last := len(after.Sites) - 1
		if after.Sites[last].Name != "added-by-the-test" || after.Adapters["added-by-the-test"].Kind != sites.Slurm {
			t.Fatalf("the last site is %+v", after.Sites[last])
		}
		delete(after.Adapters, "added-by-the-test")
		if diff := cmp.Diff(before.Sites, after.Sites[:last]) + cmp.Diff(before.Adapters, after.Adapters) + cmp.Diff(before.Users, after.Users) +
			cmp.Diff(before.Policies, after.Policies) + cmp.Diff(before.Uplink, after.Uplink) + cmp.Diff(before.Service, after.Service); diff != "" {
			t.Fatal(diff)
		}
	})
}

var errRead = errors.New("the disk is gone")

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errRead }

package lossy

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// imaged returns what a loss of power leaves of a file, "-" if it is gone.
func imaged(t *testing.T, d *Disk, name string, rng *rand.Rand) string {
	t.Helper()
	to := t.TempDir()
	if err := d.Image("/at", to, rng); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(to, name))
	if os.IsNotExist(err) {
		return "-"
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestWhatALossOfPowerLeaves(t *testing.T) {
	d := &Disk{files: map[string]*file{}, room: -1}
	expect := func(name, want string) {
		t.Helper()
		if got := imaged(t, d, name, nil); got != want {
			t.Errorf("%s: %q is left, want %q", name, got, want)
		}
	}
	put := func(name string, offset int64, data string) {
		d.add("/at/"+name, change{kind: write, offset: offset, data: []byte(data)})
	}
	put("db", 0, "hello")
	expect("db", "-")
	d.synced("/at/db", false)
	expect("db", "-") // its name is not durable
	d.synced("/at/log", true)
	expect("db", "hello")
	expect("log", "")
	put("db", 3, "p!")
	expect("db", "hello")
	d.synced("/at/db", false)
	expect("db", "help!")
	d.add("/at/db", change{kind: truncate, offset: 2})
	expect("db", "help!")
	d.synced("/at/db", false)
	expect("db", "he")
	put("db", 4, "x")
	d.synced("/at/db", false)
	expect("db", "he\x00\x00x")
	d.removed("/at/db", false)
	expect("db", "he\x00\x00x")
	d.synced("/at/log", true)
	expect("db", "-")
	put("db", 0, "new")
	d.synced("/at/db", false)
	d.synced("/at/log", true)
	expect("db", "new")
	d.removed("/at/db", true)
	expect("db", "-")
	d.FailSyncs(1)
	put("log", 0, "lost")
	if d.synced("/at/log", false) {
		t.Error("a sync that should fail did not")
	}
	expect("log", "")
}

func TestUnsyncedSectorsComeAndGo(t *testing.T) {
	d := &Disk{files: map[string]*file{}, room: -1}
	old, fresh := strings.Repeat("o", 3*sector), strings.Repeat("n", 3*sector)
	d.add("/at/db", change{kind: write, data: []byte(old)})
	d.synced("/at/db", true)
	d.add("/at/db", change{kind: write, data: []byte(fresh)})
	rng := rand.New(rand.NewPCG(1, 1))
	seen := map[string]bool{}
	for range 200 {
		got := imaged(t, d, "db", rng)
		var pattern []byte
		for at := 0; at < len(got); at += sector {
			if piece := got[at : at+sector]; strings.Count(piece, piece[:1]) != sector {
				t.Fatal("a sector is torn")
			}
			pattern = append(pattern, got[at])
		}
		seen[string(pattern)] = true
	}
	if len(seen) != 8 {
		t.Errorf("%d of the 8 outcomes came", len(seen))
	}
}

package dst

import (
	"bytes"
	"compress/gzip"
	"context"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/service"
)

// Some seeds begin with a journal that an earlier version of the service has written (service/testdata/golden), at the time at which that ends: with
// its records until a site is only watched, since nothing more is promised then.
var writtenBefore = []string{"forms-2", "forms-5", "forms-6", "forms-7", "forms-8", "forms-9", "forms-10", "forms-11", "forms-12", "forms-13", "forms-14", "forms-15", "forms-16", "forms-18", "forms-19", "forms-20", "forms-21", "forms-22", "forms-23", "forms-24", "forms-25", "forms-26", "forms-27", "forms-28", "forms-29", "forms-30"}

// decidedOtherwise are the journals with requests that this version would have decided differently.
var decidedOtherwise = []string{"forms-2", "forms-5", "forms-13", "forms-19"}

// seenAtWatch is the form of a record of what was seen at a site that is only watched.
const seenAtWatch = 4

// golden is such a journal.
type golden struct {
	media *media
	last  berth.Time
}

// goldens are those that have been read, by name.
var goldens = map[string]*golden{}

// readGolden reads one.
func readGolden(t *testing.T, name string) *golden {
	t.Helper()
	if g := goldens[name]; g != nil {
		return g
	}
	packed, err := os.ReadFile(filepath.Join("..", "service", "testdata", "golden", name+".db.gz"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	folder := t.TempDir()
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "journal.db"), data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	store, err := sqlite.Open(folder, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	g := &golden{media: newMedia()}
	for rec, err := range store.Read(t.Context(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		if rec.Event[0] == seenAtWatch {
			break
		}
		rec.Event, rec.Changes, rec.Effects = slices.Clone(rec.Event), slices.Clone(rec.Changes), slices.Clone(rec.Effects)
		g.media.records, g.last = append(g.media.records, rec), rec.At
	}
	for upTo := g.media.last().Number; upTo > 0; {
		s, err := store.Snapshot(t.Context(), upTo)
		if err != nil {
			t.Fatal(err)
		}
		if upTo = 0; s.Number > 0 {
			g.media.snapshots = slices.Insert(g.media.snapshots, 0, journal.Snapshot{Position: s.Position, Data: slices.Clone(s.Data)})
			upTo = s.Number - 1
		}
	}
	goldens[name] = g
	return g
}

// begin has a seed begin with a journal of an earlier version.
func (p *plan) begin(name string) {
	p.before, p.on[faultUpgrade], p.disk, p.shared = name, true, false, false
}

// upgrade has the world begin with a journal of an earlier version, whose sites there still are.
func (w *world) upgrade(g *golden) {
	w.kept = &inMemory{media: g.media.image()}
	w.plan.keep = 1 << 20          // as many as the snapshots have
	w.config.Jobs = "conservative" // some jobs have plans
	w.before = g.media.last().Number
	w.config.Sites = append(w.config.Sites, berth.Site{
		Name: "managed", Managed: true, StorageMB: 5000, Pools: []berth.Pool{{Name: "early", PEs: 8, Binding: berth.Early}},
		Software: []berth.Software{{Name: "solver", Version: "2.1", Licences: 3}}, Link: berth.Link{KilobytesPerSecond: 2000},
	}, berth.Site{Name: "plain", Pools: []berth.Pool{{Name: "late", PEs: 6, Binding: berth.Late}}})
}

// reconfigure changes the configuration between two lives, where that happens: the limits of a QOS, in which order requests are placed, how
// ordinary jobs are, and a pool that has more PEs than before.
func (w *world) reconfigure() {
	if !w.plan.has(faultConfig) || w.lives < 2 {
		return
	}
	rng, c := w.settings, w.config
	c.Sites, c.Limits = slices.Clone(c.Sites), slices.Clone(c.Limits)
	for i := range c.Limits {
		if l := &c.Limits[i]; l.QOS == capped && l.Name == policy.LimitActive {
			l.Value = cappedLive - rng.Int64N(3)
		}
	}
	if order := pick(rng, []string{"", "edf"}); !w.plan.has(featureCost) { // what a promise costs is foreseen when its request comes
		c.Order = order
	}
	if c.Jobs == "" { // plans that jobs have are kept
		c.Jobs = pick(rng, []string{"", "conservative"})
	}
	c.Explain = rng.IntN(2) == 0
	if at := slices.IndexFunc(c.Sites, func(s berth.Site) bool { return s.Name == "open" }); rng.IntN(2) == 0 {
		c.Sites[at].Pools = slices.Clone(c.Sites[at].Pools)
		c.Sites[at].Pools[0].PEs += 2
	}
	w.config = c
	w.life.meet(faultConfig)
	w.record("configured otherwise")
}

var upgrades = flag.Uint64("dst.upgrades", 1, "how many seeds begin with each journal of an earlier version")

// A life begins on each journal of an earlier version, and keeps what is promised there.
func TestLivesBeginOnEarlierJournals(t *testing.T) {
	for _, name := range writtenBefore {
		t.Run(name, func(t *testing.T) {
			g := readGolden(t, name)
			t.Logf("%d records, %d snapshots", len(g.media.records), len(g.media.snapshots))
			store, err := openMemory(g.media.image(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := service.Verify(context.Background(), store, nil); err != nil != slices.Contains(decidedOtherwise, name) {
				t.Fatal(err)
			}
			for seed := uint64(1); seed <= *upgrades; seed++ {
				if o := happen(t, seed, &plant{from: name, less: less{lives: 2, events: 20}}, newLedger()); o.wrong != nil {
					t.Errorf("seed %d: %.2000s", seed, o.wrong.Error())
				} else if o.lives == 0 || o.events == 0 {
					t.Errorf("seed %d: nothing happened", seed)
				}
			}
		})
	}
}

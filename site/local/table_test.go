//go:build linux

package local

import (
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

// The table answers as a list does that is searched from end to end.
func TestTableEqualsPlainList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table, plain := newTable("s", 4), map[string]*booking{}
		free := func(core berth.PE, b *booking) bool {
			for _, o := range plain {
				if o.Name != b.Name && o.Cores.Contains(core) && o.Start < b.End && b.Start < o.End {
					return false
				}
			}
			return true
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				generation := rapid.Uint64Range(1, 3).Draw(t, "generation")
				b := &booking{Name: string(site.NameOf("s", strconv.Itoa(rapid.IntRange(0, 4).Draw(t, "id")), generation)), Start: berth.Time(rapid.IntRange(0, 20).Draw(t, "start"))}
				b.End = b.Start + berth.Time(rapid.IntRange(1, 8).Draw(t, "length"))
				b.Cores = berth.PEsOf(rapid.SliceOfN(rapid.Map(rapid.IntRange(0, 3), func(i int) berth.PE { return berth.PE(i) }), 1, 3).Draw(t, "cores")...)
				fits := true
				var chosen []berth.PE
				for core := range berth.PE(4) {
					fits = fits && (!b.Cores.Contains(core) || free(core, b))
					if len(chosen) < 2 && free(core, b) {
						chosen = append(chosen, core)
					}
				}
				if got := table.fits(b); got != fits {
					t.Fatalf("%+v fits: %v, want %v", b, got, fits)
				}
				if got, ok := table.choose(b, 2); ok != (len(chosen) == 2) || (ok && !got.Equal(berth.PEsOf(chosen...))) {
					t.Fatalf("%+v gets %v %v, want %v", b, got, ok, chosen)
				}
				if fits {
					table.put(b)
					plain[b.Name] = b
				}
			},
			"drop": func(t *rapid.T) {
				name := string(site.NameOf("s", strconv.Itoa(rapid.IntRange(0, 4).Draw(t, "id")), rapid.Uint64Range(1, 3).Draw(t, "generation")))
				table.drop(name)
				delete(plain, name)
			},
			"ended": func(t *rapid.T) {
				at := berth.Time(rapid.IntRange(0, 30).Draw(t, "at"))
				var want []string
				for name, b := range plain {
					if b.End <= at {
						want = append(want, name)
					}
				}
				var got []string
				for _, b := range table.ended(at) {
					got = append(got, b.Name)
					table.drop(b.Name)
					delete(plain, b.Name)
				}
				slices.Sort(want)
				slices.Sort(got)
				if !slices.Equal(got, want) {
					t.Fatalf("ended at %d: %v, want %v", at, got, want)
				}
			},
			"": func(t *rapid.T) {
				for id := range 5 {
					name := site.NameOf("s", strconv.Itoa(id), 1)
					promise, _, _ := name.Promise("s")
					want := plain[promise+"_2"] != nil || plain[promise+"_3"] != nil
					if _, got := table.later(name); got != want {
						t.Fatalf("later than %s: %v, want %v", name, got, want)
					}
				}
				if len(table.bookings) != len(plain) {
					t.Fatalf("%d bookings, want %d", len(table.bookings), len(plain))
				}
			},
		})
	})
}

func FuzzParseStart(f *testing.F) {
	f.Add([]byte("1234 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20"))
	f.Add([]byte(""))
	f.Fuzz(func(_ *testing.T, stat []byte) { _, _ = parseStart(stat) })
}

func TestParseStart(t *testing.T) {
	got, err := parseStart([]byte("1234 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20\n"))
	if got != 4711 || err != nil {
		t.Errorf("%d %v", got, err)
	}
}

func TestParseMount(t *testing.T) {
	const text = "25 1 0:22 / /proc rw - proc proc rw\n30 25 0:26 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw\n"
	if got, err := parseMount(text); got != "/sys/fs/cgroup/unified" || err != nil {
		t.Errorf("%q %v", got, err)
	}
	if _, err := parseMount("25 1 0:22 / /proc rw - proc proc rw\nnonsense\n"); err == nil {
		t.Error("found where there is none")
	}
}

func BenchmarkReserve(b *testing.B) {
	for _, n := range []int{1000, 10000, 100000} {
		b.Run("bookings="+strconv.Itoa(n), func(b *testing.B) {
			const cores = 1024
			table := newTable("s", cores)
			book := func(i int) *booking {
				return &booking{Name: string(site.NameOf("s", strconv.Itoa(i), 1)), Start: berth.Time(i / cores * 10), End: berth.Time(i/cores*10 + 10)}
			}
			for i := range n {
				one := book(i)
				one.Cores = berth.PEsOf(berth.PE(i % cores))
				table.put(one)
			}
			i := n
			for b.Loop() {
				one := book(i)
				one.Cores = berth.PEsOf(berth.PE(i % cores))
				if !table.fits(one) {
					b.Fatal("no room")
				}
				table.put(one)
				i++
			}
		})
	}
}

package sites

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site/hostlist"
)

func TestBandwidths(t *testing.T) {
	for text, want := range map[string]int64{
		"1kB/s": 1, "125MB/s": 125_000, "1Gbit/s": 125_000, "1 Gbit/s": 125_000, "10Gbit/s": 1_250_000, "8kbit/s": 1, "12kbit/s": 1,
		"0.1Tbit/s": 12_500_000, "2.5GB/s": 2_500_000, "1Mbit/s": 125,
	} {
		if got, err := bandwidth(text); err != nil || got != want {
			t.Errorf("%s is %d kB/s %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "1", "1Gb", "1Gbps", "1MiB/s", "7kbit/s", "0MB/s", "99999999999999GB/s"} {
		if got, err := bandwidth(text); err == nil {
			t.Errorf("%q reads as %d kB/s", text, got)
		}
	}
}

func TestDelays(t *testing.T) {
	for text, want := range map[string]int64{"0ms": 0, "20ms": 20, "2s": 2000, "1m": 60_000} {
		if got, err := delay(text); err != nil || got != want {
			t.Errorf("%s is %d ms %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "ms", "-1ms", "1.5ms", "01ms", "20", "20us"} {
		if got, err := delay(text); err == nil {
			t.Errorf("%q reads as %d ms", text, got)
		}
	}
}

func TestThousandths(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "1": 1000, "0.5": 500, "0.333": 333, "1.33": 1330, "-2.5": -2500, "1.000": 1000, "2.93": 2930} {
		if got, ok := thousandths(text); !ok || got != want {
			t.Errorf("%s is %d %v, want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", ".5", "5.", "1e3", "0.3333", "1,5", "+1", ".inf", "1234567890123"} {
		if got, ok := thousandths(text); ok {
			t.Errorf("%q reads as %d", text, got)
		}
	}
	for n, want := range map[int64]string{0: "0", 1: "0.001", 1000: "1", 1500: "1.5", 100_000: "100"} {
		if got := thousandthsText(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

// The values that the application-aware paper's table of sites gives.
func TestDerivedSpeed(t *testing.T) {
	for _, c := range []struct {
		node berth.Node
		want berth.Speed
	}{
		{berth.Node{Sockets: 2, Cores: 6, MHz: 2000}, 1000},
		{berth.Node{Sockets: 2, Cores: 6, MHz: 2930}, 1465},
		{berth.Node{Sockets: 2, Cores: 12, MHz: 2200}, 2200},
		{berth.Node{Sockets: 2, Cores: 6, MHz: 2660}, 1330},
		{berth.Node{Sockets: 1, Cores: 12, MHz: 3000}, 1500},
		{berth.Node{Sockets: 1, Cores: 5, MHz: 2001}, 416},
	} {
		if got, ok := derivedSpeed(c.node); !ok || got != c.want {
			t.Errorf("%+v has speed %d %v, want %d", c.node, got, ok, c.want)
		}
	}
	for _, node := range []berth.Node{{Sockets: 1, Cores: 1, MHz: 1}, {Sockets: maxParts, Cores: maxParts, MHz: maxMHz}} {
		if got, ok := derivedSpeed(node); ok {
			t.Errorf("%+v has speed %d", node, got)
		}
	}
}

// Doubling the clock halves how long work takes, and that of accelerators stays
// (specification 5, A6).
func TestDoublingTheClockHalvesTheTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		node := berth.Node{
			Sockets: rapid.IntRange(1, 4).Draw(t, "sockets"), Cores: rapid.IntRange(1, 48).Draw(t, "cores"), MHz: rapid.IntRange(100, 4000).Draw(t, "MHz"),
		}
		twice := node
		twice.MHz *= 2
		slow, ok := derivedSpeed(node)
		fast, okTwice := derivedSpeed(twice)
		if !ok || !okTwice || fast != 2*slow && fast != 2*slow+1 { // both are rounded down
			t.Fatalf("%+v has speed %d, with twice the clock %d", node, slow, fast)
		}
		d := berth.Duration(rapid.Int64Range(1, 1_000_000).Draw(t, "work"))
		if long, short := slow.Scale(d), (2 * slow).Scale(d); short != (long+1)/2 {
			t.Fatalf("%d s of work take %d s, at twice the speed %d s", d, long, short)
		}
		node.Accelerators, node.AcceleratorSpeed = 1, slow
		needs := berth.Requirements{Accelerators: 1}
		if got := (&berth.Pool{Speed: fast, Node: node}).SpeedFor(&needs); got != slow {
			t.Fatalf("accelerators of speed %d serve at %d", slow, got)
		}
	})
}

func TestNodeNames(t *testing.T) {
	for text, want := range map[string]string{
		"n1": "n1", "n1,n2": "n1 n2", "n[08-10]": "n08 n09 n10", "n[8-10]": "n8 n9 n10", "n[1,3-4]x": "n1x n3x n4x",
		"r[1-2]n[1-2]": "r1n1 r1n2 r2n1 r2n2", "[1-2]": "1 2", "n[1-2],login": "n1 n2 login", "node[1-2]-ib.a_b": "node1-ib.a_b node2-ib.a_b",
		"n[5-5]": "n5", "n[001,2]": "n001 n2",
	} {
		got, err := hostlist.Expand(text)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s is %q %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", ",", "n1,", "n[", "n[]", "n]", "n[1", "n[1-]", "n[-1]", "n[2-1]", "n[1-2-3]", "n[a]", "n 1", "n1,n1", "n[1-2],n2", "n[[1]]",
		"n[0-1048576]", "n[1-2000][1-2000]", "n[1-1000000000]", "n[10-9]", "n[010-11]", "ä", "n[1,,2]", strings.Repeat("n", 300),
		"a[1-1048576],b",
	} {
		if got, err := hostlist.Expand(text); err == nil {
			t.Errorf("%q reads as %d names", text, len(got))
		}
	}
}

// Whatever the text: no panic, and no more names, none empty and none twice.
func FuzzNodeNames(f *testing.F) {
	for _, seed := range []string{"n[01-16,20]", "r[1-2]n[01-08],login", "n[", "", ",", "n[1-2-3]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		names, err := hostlist.Expand(text)
		if err != nil {
			return
		}
		if len(names) < 1 || len(names) > hostlist.Max {
			t.Fatalf("%q is %d names", text, len(names))
		}
		slices.Sort(names)
		if names[0] == "" || len(slices.Compact(names)) != len(names) {
			t.Fatalf("%q has an empty name, or one twice", text)
		}
		if len(names) < 1000 {
			if again, err := hostlist.Expand(strings.Join(names, ",")); err != nil || len(again) != len(names) {
				t.Fatalf("the names of %q do not read back: %v", text, err)
			}
		}
	})
}

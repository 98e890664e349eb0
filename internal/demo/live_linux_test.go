package demo_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/browser"
	"github.com/berth-hpc/berth/internal/demo"
)

var (
	live     = flag.Duration("demo.live", 0, "for how long the memory of a page that follows is watched")
	livePace = flag.Duration("demo.pace", time.Second, "between two movements of the load meanwhile")
)

// watch is what a page takes at one time.
type watch struct{ process, scripts, nodes, listeners float64 }

// private returns how many megabytes the process of the largest page has for itself: pictures
// are no objects of scripts, so what scripts count does not have them.
func private(t *testing.T, b *browser.Browser) float64 {
	t.Helper()
	most := 0.0
	for _, id := range b.Processes() {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", id))
		if err != nil {
			continue // it has just ended
		}
		sum := 0.0
		for line := range strings.Lines(string(data)) {
			var name string
			var kB float64
			if n, _ := fmt.Sscan(line, &name, &kB); n == 2 && (name == "Private_Dirty:" || name == "Private_Clean:" || name == "SwapPss:") {
				sum += kB
			}
		}
		most = max(most, sum*1024/1e6)
	}
	return most
}

// A page that follows for an hour takes no more memory at its end than when it began, and less
// than 150 MB: go test ./internal/demo -run Hour -demo.live 1h, or 5m -demo.pace 20ms for as
// much in less time.
func TestHour(t *testing.T) {
	if *live == 0 {
		t.Skip("not watching: -demo.live 1h does")
	}
	b := browser.Start(t)
	d, err := demo.Start(t.Context(), demo.Options{Folder: t.TempDir(), Listen: "127.0.0.1:0", Seed: 1, Pace: *livePace})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	link, err := d.Link("")
	if err != nil {
		t.Fatal(err)
	}
	p := b.Open(browser.Size{Width: 1600, Height: 900}) // not by paint: a page whose network is watched keeps all answers for that
	p.Visit(link)
	p.Wait(drawnPicture)
	p.Eval(`(() => { globalThis.heard = 0; new BroadcastChannel('berth-events:' + document.baseURI).onmessage = () => globalThis.heard++ })()`)
	ctx, cancel := context.WithCancel(t.Context())
	moved := make(chan error, 1)
	go func() { moved <- d.Run(ctx) }()
	const samples = 40
	var seen []watch
	for range samples {
		for left := *live / samples; left > 0; left -= 20 * time.Second {
			p.Eval(fmt.Sprintf(`new Promise((done) => setTimeout(done, %d))`, min(left, 20*time.Second).Milliseconds()))
		}
		p.Collect()
		m := p.Metrics()
		seen = append(seen, watch{private(t, b), m["JSHeapUsedSize"] / 1e6, m["Nodes"], m["JSEventListeners"]})
		w := seen[len(seen)-1]
		t.Logf("%5.1f MB of the process, %4.1f MB of scripts, %.0f nodes, %.0f listeners", w.process, w.scripts, w.nodes, w.listeners)
	}
	heard := p.Eval(`globalThis.heard`).(float64)
	pictures := p.Eval(`performance.getEntriesByType('resource').length`)
	cancel()
	if err := <-moved; err != nil {
		t.Error(err)
	}
	t.Logf("%.0f events passed on, %v answers in the page's list of them", heard, pictures)
	if heard < live.Seconds()/10 {
		t.Errorf("%.0f events in %s: the page did not follow", heard, *live)
	}
	// The first quarter is for what is kept once. Of the others the middle is compared, since
	// the browser gives memory back when it likes.
	part := func(from int, of func(watch) float64) float64 {
		var list []float64
		for _, w := range seen[from : from+samples/4] {
			list = append(list, of(w))
		}
		slices.Sort(list)
		return list[len(list)/2]
	}
	for _, c := range []struct {
		what  string
		of    func(watch) float64
		grows float64 // by so much without being called growth
	}{
		{"MB of the process", func(w watch) float64 { return w.process }, 8},
		{"MB of scripts", func(w watch) float64 { return w.scripts }, 1},
		{"nodes", func(w watch) float64 { return w.nodes }, 200},
		{"listeners", func(w watch) float64 { return w.listeners }, 20},
	} {
		begin, end := part(samples/4, c.of), part(samples*3/4, c.of)
		t.Logf("%s: %.1f in the second quarter, %.1f in the last", c.what, begin, end)
		if end > begin+c.grows {
			t.Errorf("%s: %.1f grew to %.1f", c.what, begin, end)
		}
	}
	if most := part(samples*3/4, func(w watch) float64 { return w.process }); most > 150 {
		t.Errorf("%.1f MB; want less than 150", most)
	}
}

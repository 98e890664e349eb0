package demo_test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/internal/browser"
	"github.com/berth-hpc/berth/internal/demo"
	"github.com/berth-hpc/berth/internal/performance"
	"github.com/berth-hpc/berth/service"
)

var (
	bench   = flag.Bool("demo.bench", false, "measure the pages in a browser and print the table of docs/performance.md")
	profile = flag.Bool("demo.profile", false, "with -demo.bench: print instead where the time of drawing goes")
	record  = flag.Bool("demo.record", false, "with -demo.bench: put the rows into docs/performance too")
)

// recorded is the table of docs/performance.md.
var recorded = performance.Table{
	Name: "pages-measured", Packages: []string{"web/ui/...", "api", "service"}, Columns: []string{"what", "budget", "median / 95th percentile"},
}

// crowd shows a pool with more bars than the service's, which it would take minutes to
// promise.
type crowd struct {
	*service.Host
	picture service.Picture
}

func (c *crowd) Gantt(ctx context.Context, by service.Principal, id berth.ResourceID) (service.Picture, error) {
	p, err := c.Host.Gantt(ctx, by, id)
	p.Pages, p.Generation = c.picture.Pages, 1
	return p, err
}

func (c *crowd) GanttGeneration(service.Principal, berth.ResourceID) (uint64, error) { return 1, nil }

// crowded returns a picture of n bars between 14 hours ago and in 34 hours, which is
// what the page fetches for its usual window.
func crowded(now berth.Time, bars int) service.Picture {
	const span = 48 * 3600
	p := service.Picture{PEs: demo.Nodes, Pages: make([][]service.Bar, demo.Nodes)}
	each := bars / demo.Nodes
	for pe := range p.Pages {
		for i := range each {
			start := now - 14*3600 + berth.Time(i*span/each)
			p.Pages[pe] = append(p.Pages[pe], service.Bar{
				Start: start, End: start + berth.Time(span/each*9/10), First: berth.PE(pe), PEs: 1, Number: uint32(pe*each + i + 1), Class: service.Class(1 + (pe*7+i*3)%4),
			})
		}
	}
	return p
}

// figures are some measured milliseconds.
type figures []float64

func (f figures) at(part float64) float64 {
	sorted := slices.Sorted(slices.Values(f))
	return sorted[min(len(sorted)-1, int(part*float64(len(sorted))))]
}

func (f figures) String() string {
	return fmt.Sprintf("%.1f / %.1f", f.at(0.5), f.at(0.95))
}

// benchTable gathers rows: what, the budget, what was measured.
type benchTable struct {
	t     *testing.T
	text  strings.Builder
	cells [][]string
}

// add adds a row. What is above its budget by half fails.
func (b *benchTable) add(what, unit string, budget float64, measured figures) {
	b.t.Helper()
	limit := "–"
	if budget > 0 {
		limit = fmt.Sprintf("%g", budget)
		if got := measured.at(0.95); got > 1.5*budget {
			b.t.Errorf("%s: %.1f %s; the budget is %g", what, got, unit, budget)
		}
	}
	text := measured.String()
	if len(measured) == 1 {
		text = fmt.Sprintf("%.1f", measured[0])
	}
	b.cells = append(b.cells, []string{what, limit, text + " " + unit})
	line := fmt.Sprintf("| %s | %s | %s %s |\n", what, limit, text, unit)
	fmt.Fprint(&b.text, line)
	b.t.Log(strings.TrimSpace(line))
}

// frames moves the view of the page so often and returns the CPU time that the main thread
// took for each move, until the second frame behind it.
func frames(p *browser.Page, times int, move func(i int)) figures {
	const settled = `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))`
	var took figures
	for i := range times {
		before := p.Metrics()["TaskDuration"]
		move(i)
		p.Eval(settled)
		took = append(took, 1000*(p.Metrics()["TaskDuration"]-before))
	}
	return took
}

const drawnPicture = `(() => { const c = document.querySelector('.gantt canvas[aria-hidden]'); if (!c) return false; const d = c.getContext('2d').getImageData(c.width / 3, 0, 200, c.height).data; let n = 0; for (let i = 0; i < d.length; i += 4) if (d[i] < 0xf0) n++; return n > d.length / 20 })()`

// paint opens the page in a new browser's tab and returns the milliseconds until the picture is painted.
func paint(t *testing.T, b *browser.Browser, d *demo.Demo, slow bool) (*browser.Page, float64) {
	t.Helper()
	link, err := d.Link("")
	if err != nil {
		t.Fatal(err)
	}
	// A login takes a call of its own that is no part of this, and leaves the session.
	first := b.Open(browser.Size{Width: 1600, Height: 900})
	first.Visit(link)
	first.Wait(drawnPicture)
	p := first.Beside(browser.Size{Width: 1600, Height: 900})
	first.Close()
	if slow {
		p.Slow(20e6, 20)
	}
	p.Cold()
	p.Visit(d.URL + "/")
	took := p.Eval(`new Promise((done) => { const look = () => { if (` + drawnPicture + `) done(performance.now()); else requestAnimationFrame(look) }; look() })`).(float64)
	return p, took
}

// tell prints how the CPU time of a number of moves divides among functions and kinds of work.
func tell(t *testing.T, p *browser.Page, kind string, moves int, run func()) {
	t.Helper()
	list := func(what string, shares []browser.Share) {
		for _, s := range shares[:min(24, len(shares))] {
			t.Logf("%s, %s: %6.2f ms a move: %s", kind, what, s.Milliseconds/float64(moves), s.Name)
		}
	}
	list("own time", p.Profile(run))
	list("trace", p.Tasks(run))
}

// TestTable measures what section 10 of the pages' design bounds, in a real browser without a
// GPU: make bench-web.
func TestTable(t *testing.T) {
	if !*bench {
		t.Skip("not measuring: make bench-web does")
	}
	b := browser.Start(t)
	table := &benchTable{t: t}

	root := filepath.Join("..", "..")
	if out, err := exec.CommandContext(t.Context(), "npx", "--prefix", filepath.Join(root, "web", "ui"), "tsc", "-p", filepath.Join(root, "web", "ui", "tsconfig.test.json")).CombinedOutput(); err != nil {
		t.Fatalf("tsc: %v: %s", err, out)
	}
	mux := http.NewServeMux()
	mux.Handle("/src/", http.StripPrefix("/src/", http.FileServerFS(os.DirFS(filepath.Join(root, "web", "ui", "out", "src")))))
	mux.Handle("/vis/", http.StripPrefix("/vis/", http.FileServerFS(os.DirFS(filepath.Join(root, "web", "bench", "node_modules", "vis-timeline")))))
	mux.Handle("/", http.FileServerFS(os.DirFS("testdata")))
	files := httptest.NewServer(mux)
	defer files.Close()
	size := browser.Size{Width: 1600, Height: 920}
	p := b.Open(size)
	p.Visit(files.URL + "/canvas.html")
	p.Wait(`globalThis.ready`)
	steps := func(p *browser.Page, how, what string, times int) figures {
		return frames(p, times, func(i int) { p.Eval(fmt.Sprintf("void step(%q, %q, %d)", how, what, i)) })
	}
	if *profile {
		for _, kind := range []string{"pan", "zoom"} {
			steps(p, "anew", kind, 10)
			tell(t, p, kind, 40, func() { steps(p, "anew", kind, 40) })
		}
		p.Close()
		profilePage(t, b, 200_000)
		return
	}
	for _, row := range []struct {
		what, how, kind string
		budget          float64
	}{
		{"200,000 bars drawn: pan, pixels moved", "ours", "pan", 8},
		{"200,000 bars drawn: pan, drawn anew", "anew", "pan", 16},
		{"200,000 bars drawn: zoom", "anew", "zoom", 16},
		{"plain canvas, fillRect, 200,000 bars: pan", "plain", "pan", 0},
		{"plain canvas, fillRect, 200,000 bars: zoom", "plain", "zoom", 0},
	} {
		steps(p, row.how, row.kind, 5) // warm
		table.add(row.what, "ms CPU", row.budget, steps(p, row.how, row.kind, 40))
	}
	p.Close()
	p = b.Open(size)
	p.Visit(files.URL + "/vis.html")
	table.add("vis-timeline 8.5.4, 5,000 bars: loads", "ms CPU", 0, frames(p, 1, func(int) { p.Eval(`load()`) }))
	table.add("vis-timeline 8.5.4, 5,000 bars: pan", "ms CPU", 0, steps(p, "vis", "pan", 15))
	table.add("vis-timeline 8.5.4, 5,000 bars: zoom", "ms CPU", 0, steps(p, "vis", "zoom", 15))
	p.Close()

	for _, bars := range []int{50_000, 200_000} {
		measurePage(t, b, table, bars)
	}
	measureLive(t, b, table)
	fmt.Printf("\n| what | budget | p50 / p95 |\n|---|---|---|\n%s\n", table.text.String())
	if *record && !t.Failed() {
		if err := performance.Put(t.Context(), root, &recorded, table.cells); err != nil {
			t.Fatal(err)
		}
	}
}

// crowdedDemo starts a demonstration with the given number of bars in its picture.
func crowdedDemo(t *testing.T, bars int) *demo.Demo {
	t.Helper()
	d, err := demo.Start(t.Context(), demo.Options{Folder: t.TempDir(), Listen: "127.0.0.1:0", Seed: 1, Instead: func(h *service.Host) api.Service {
		return &crowd{h, crowded(h.Now()+7200, bars)} // two hours are made up for when it begins
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// measurePage measures the harbour with n bars.
func measurePage(t *testing.T, b *browser.Browser, table *benchTable, bars int) {
	t.Helper()
	d := crowdedDemo(t, bars)
	name := fmt.Sprintf("the page, %d,000 bars", bars/1000)
	var cold, slow figures
	for range 5 {
		p, took := paint(t, b, d, false)
		cold = append(cold, took)
		p.Close()
		p, took = paint(t, b, d, true)
		slow = append(slow, took)
		p.Close()
	}
	table.add(name+": first paint, cold, loopback", "ms", 1000, cold)
	table.add(name+": first paint, cold, 20 Mbit/s and 20 ms", "ms", 1100, slow)
	p, _ := paint(t, b, d, false)
	if bars == 50_000 {
		load := p.Eval(`[performance.getEntriesByType('navigation')[0], ...performance.getEntriesByType('resource').filter((e) => /\/ui\//.test(e.name))].reduce((n, e) => n + e.encodedBodySize, 0) / 1000`).(float64)
		table.add("first load", "kB", 260, figures{load})
	}
	drag(p, func() { table.add(name+": pan", "ms CPU", 16, frames(p, 60, dragged(p))) })
	table.add(name+": zoom", "ms CPU", 16, frames(p, 30, zoomed(p)))
	p.Collect()
	table.add(name+": memory of scripts", "MB", 150, figures{p.Metrics()["JSHeapUsedSize"] / 1e6})
	p.Close()
}

var held = browser.Point{X: 900, Y: 600}

// drag holds the picture while run moves the pointer by dragged, and leaves the focus on it.
func drag(p *browser.Page, run func()) {
	p.Mouse("mouseMoved", held)
	p.Mouse("mousePressed", held)
	run()
	p.Mouse("mouseReleased", browser.Point{X: held.X - 240, Y: held.Y})
	p.Eval(`document.querySelector('.gantt canvas[role=application]').focus()`)
}

func dragged(p *browser.Page) func(i int) {
	return func(i int) { p.Mouse("mouseMoved", browser.Point{X: held.X - float64(4*(i+1)), Y: held.Y}) }
}

func zoomed(p *browser.Page) func(i int) {
	return func(i int) { p.Key([]string{"+", "-"}[i/3%2]) }
}

// profilePage prints where the time of the harbour's moves goes.
func profilePage(t *testing.T, b *browser.Browser, bars int) {
	t.Helper()
	p, _ := paint(t, b, crowdedDemo(t, bars), false)
	drag(p, func() { tell(t, p, "pan of the page", 60, func() { frames(p, 60, dragged(p)) }) })
	tell(t, p, "zoom of the page", 30, func() { frames(p, 30, zoomed(p)) })
	p.Close()
}

// measureLive measures what happens while the page is open.
func measureLive(t *testing.T, b *browser.Browser, table *benchTable) {
	t.Helper()
	d := start(t)
	p, _ := paint(t, b, d, false)
	olga := service.Ask{By: service.Principal{User: demo.Guest, Role: service.User}}
	// Alone on the night behind the window's load stands what is looked for.
	p.Eval(`history.replaceState(null, '', location.pathname + '?t=now%2B40h..now%2B44h'); dispatchEvent(new PopStateEvent('popstate'))`)
	const dark = `(() => { const c = document.querySelector('.gantt canvas[aria-hidden]'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let n = 0; for (let i = 0; i < d.length; i += 4) if (d[i] === 0x12 && d[i+1] === 0x3f && d[i+2] === 0x7a) n++; return n })()`
	p.Wait(dark + ` === 0`)
	var seen figures
	for i := range 20 {
		p.Eval(`new Promise((done) => setTimeout(done, 600))`) // what came before does not hold this one back
		before := p.Eval(dark).(float64)
		now := d.Host.Now()
		start := now.Add(berth.Duration(41*3600 + i*400))
		waiting := make(chan any, 1)
		go func() {
			waiting <- p.Eval(fmt.Sprintf(`new Promise((done) => { const look = () => { if (%s > %g) done(Date.now()); else requestAnimationFrame(look) }; look() })`, dark, before))
		}()
		a, err := d.Host.Submit(t.Context(), olga, berth.Rigid(fmt.Sprint("seen", i), now, start, start+300, 64, 300))
		if err != nil || a.Reservation.State == service.Refused {
			t.Fatal(err, a.Reservation.Refusal)
		}
		told := time.Now()
		seen = append(seen, (<-waiting).(float64)-float64(told.UnixMilli()))
	}
	table.add("a promise made until it is painted elsewhere", "ms", 500, seen)

	book, err := d.Link("book")
	if err != nil {
		t.Fatal(err)
	}
	p.Visit(book)
	p.Wait(`document.querySelector('ul[aria-label=Offers] li')`)
	var offers figures
	for i := range 20 {
		offers = append(offers, p.Eval(fmt.Sprintf(`new Promise((done) => {
			const list = () => document.querySelector('ul[aria-label=Offers]')?.innerText ?? '';
			const was = list(), begin = performance.now();
			[...document.querySelectorAll('button')].find((b) => b.innerText === %q).click();
			const look = () => { if (list() !== was && list() !== '') done(performance.now() - begin); else requestAnimationFrame(look) };
			look();
		})`, []string{"An hour more", "An hour less"}[i%2])).(float64))
	}
	table.add("offers redrawn after a change of the deadline", "ms", 100, offers)
	p.Close()

	p, _ = paint(t, b, d, false)
	ctx, cancel := context.WithCancel(t.Context())
	moved := make(chan error, 1)
	go func() { moved <- d.Run(ctx) }()
	heap := func() float64 {
		p.Collect()
		return p.Metrics()["JSHeapUsedSize"] / 1e6
	}
	p.Eval(`new Promise((done) => setTimeout(done, 20000))`) // what is kept once is there
	before := heap()
	p.Eval(`new Promise((done) => setTimeout(done, 40000))`)
	after := heap()
	cancel()
	if err := <-moved; err != nil {
		t.Error(err)
	}
	table.add("memory of scripts, live: after 20 s", "MB", 150, figures{before})
	table.add("memory of scripts, live: 40 s and as many updates later", "MB", 150, figures{after})
	p.Close()
}

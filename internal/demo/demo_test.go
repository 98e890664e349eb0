package demo_test

import (
	"context"
	"flag"
	"path/filepath"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/browser"
	"github.com/berth-hpc/berth/internal/demo"
	"github.com/berth-hpc/berth/service"
)

var (
	pictures = flag.String("demo.pictures", "", "the `folder` in which to leave pictures of the pages")
	program  = flag.String("demo.berth", "", "the `program` berth, which compares schedulers for the picture of the laboratory")
)

func start(t *testing.T) *demo.Demo {
	t.Helper()
	return startWith(t, demo.Options{})
}

func startWith(t *testing.T, o demo.Options) *demo.Demo {
	t.Helper()
	began := time.Now()
	o.Folder, o.Listen, o.Seed = t.TempDir(), "127.0.0.1:0", 1
	d, err := demo.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("full after %s", time.Since(began).Round(100*time.Millisecond))
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// The harbour is full when the demonstration has started: promises run, are over, held and
// to come, and few are degraded.
func TestFull(t *testing.T) {
	d := start(t)
	by := service.Principal{User: demo.Guest, Role: service.Operator}
	p, err := d.Host.Gantt(t.Context(), by, berth.PoolID("harbour", "1c-4096mb"))
	if err != nil {
		t.Fatal(err)
	}
	now := d.Host.Now()
	var held, active, over, degraded, mine int
	var used, all int64
	for _, page := range p.Pages {
		for i := range page {
			b := &page[i]
			for flag, n := range map[service.Flags]*int{service.IsHeld: &held, service.IsActive: &active, service.IsOver: &over, service.IsMine: &mine} {
				if p.Shown(b)&flag != 0 {
					*n++
				}
			}
			if b.Class == service.ClassDegraded {
				degraded++
			}
			if b.Class != service.ClassOutage {
				used += int64(b.PEs) * max(0, int64(min(b.End, now+12*3600)-max(b.Start, now)))
			}
			all++
		}
	}
	share := float64(used) / float64(demo.Nodes*12*3600)
	t.Logf("%d bars: %d held, %d active, %d over, %d degraded, %d of the guest; %.0f %% of the next 12 hours", all, held, active, over, degraded, mine, 100*share)
	if held < 5 || active < 10 || over < 10 || mine < 20 || degraded > active/4 || share < 0.4 {
		t.Error("that is not a full harbour")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	moved := make(chan error, 1)
	go func() { moved <- d.Run(ctx) }()
	for range d.Host.Occupied(ctx, by) {
		break // something moves
	}
	cancel()
	if err := <-moved; err != nil {
		t.Error(err)
	}
}

// keep leaves a picture of a page for the documents, and reports what the page complains of.
func keep(t *testing.T, p *browser.Page, name string) {
	t.Helper()
	if faults := p.Faults(); len(faults) > 0 {
		t.Errorf("%s complains: %q", name, faults)
	}
	if *pictures != "" {
		p.Shot(filepath.Join(*pictures, name))
	}
}

// What the README and the tour of the pages show is made by make pictures.
func TestPicture(t *testing.T) {
	b := browser.Start(t)
	d := start(t)
	link, err := d.Link("?t=now-2h..now%2B16h")
	if err != nil {
		t.Fatal(err)
	}
	p := b.Open(browser.Size{Width: 1440, Height: 860})
	p.Visit(link)
	p.Wait(`document.querySelectorAll('.gantt canvas[role=application]').length === 1`)
	p.Wait(`document.querySelector('[data-testid=live]')?.innerText.toLowerCase() === 'live'`)
	const full = `(() => { const c = document.querySelector('.gantt canvas[aria-hidden]'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let n = 0; for (let i = 0; i < d.length; i += 4) if (d[i] < 0x60 && d[i+2] > 0x60) n++; return n / (d.length / 4) })()`
	if share := p.Eval(full).(float64); share < 0.3 {
		t.Errorf("%.0f %% of the picture is held", 100*share)
	}
	keep(t, p, "harbour.png")
}

// An example is planned among the promises of the demonstration, by a deadline between the
// tightest and the widest.
func TestPictureOfAWorkflow(t *testing.T) {
	b := browser.Start(t)
	d := start(t)
	link, err := d.Link("workflow")
	if err != nil {
		t.Fatal(err)
	}
	p := b.Open(browser.Size{Width: 1440, Height: 1240})
	p.Visit(link)
	p.Press("Take an example")
	p.Wait(`document.querySelector('.slide input')?.max === '11'`)
	p.Eval(`document.querySelector('.slide input').focus()`)
	for range 4 {
		p.Key("ArrowRight")
	}
	p.Wait(`document.querySelector('.slide input').value === '4'`)
	p.Wait(`document.querySelectorAll('.graph circle').length === 10 && document.querySelector('[data-testid=plan]')?.innerText.includes('CPU-hours')`)
	if free := p.Eval(`Number(/(\d+) of 1000 PEs were free on average/.exec(document.querySelector('[data-testid=flow]').innerText)[1])`).(float64); free > 500 {
		t.Errorf("%v of 1000 PEs were free on average: the plans are not made among what others hold", free)
	}
	p.Eval(`document.activeElement.blur()`)
	keep(t, p, "workflow.png")
}

// What was requested of the demonstration is replayed under two placements.
func TestPictureOfALaboratory(t *testing.T) {
	if *program == "" {
		t.Skip("no program that compares: make pictures names one by -demo.berth")
	}
	b := browser.Start(t)
	d := startWith(t, demo.Options{Compare: []string{*program, "lab", "--worker"}})
	link, err := d.Link("laboratory")
	if err != nil {
		t.Fatal(err)
	}
	p := b.Open(browser.Size{Width: 1440, Height: 1240})
	p.Visit(link)
	p.Press("Compare")
	p.Wait(`document.querySelectorAll('.drawings img').length > 1 && [...document.querySelectorAll('.drawings img')].every((i) => i.complete && i.naturalWidth > 0)`)
	p.Eval(`(document.activeElement.blur(), scrollTo(0, 0))`)
	keep(t, p, "laboratory.png")
}

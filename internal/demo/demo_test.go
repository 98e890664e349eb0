package demo_test

import (
	"context"
	"flag"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/browser"
	"github.com/berth-hpc/berth/internal/demo"
	"github.com/berth-hpc/berth/service"
)

var picture = flag.String("demo.picture", "", "where to leave a picture of the harbour")

func start(t *testing.T) *demo.Demo {
	t.Helper()
	began := time.Now()
	d, err := demo.Start(t.Context(), demo.Options{Folder: t.TempDir(), Listen: "127.0.0.1:0", Seed: 1})
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

// What the README shows is made by make pictures.
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
	if faults := p.Faults(); len(faults) > 0 {
		t.Errorf("the page complains: %q", faults)
	}
	if *picture != "" {
		p.Shot(*picture)
	}
}

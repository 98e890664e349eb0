package demo_test

import (
	"strings"
	"testing"

	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/internal/browser"
	"github.com/berth-hpc/berth/internal/demo"
	"github.com/berth-hpc/berth/service"
)

// Where a pool has too many bars to draw each, a filter leaves out bars before shades are made
// of them, and single bars are drawn where few enough are left.
func TestShadesFollowTheFilter(t *testing.T) {
	b := browser.Start(t)
	d, err := demo.Start(t.Context(), demo.Options{Folder: t.TempDir(), Listen: "127.0.0.1:0", Seed: 1, Instead: func(h *service.Host) api.Service {
		return &crowd{h, crowded(h.Now()+7200, 240*demo.Nodes)} // a quarter of them are of each class
	}})
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
	p := b.Open(browser.Size{Width: 1200, Height: 900})
	p.Visit(link)
	const hues = `(() => { const c = document.querySelector('.gantt canvas[aria-hidden]'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let blue = 0, red = 0; for (let i = 0; i < d.length; i += 4) { if (d[i+2] > d[i] + 40) blue++; if (d[i] > d[i+2] + 40) red++ } return { blue, red } })()`
	p.Wait(`document.body.innerText.includes('Too many bars') && ` + hues + `.blue > 1000`)
	choose := func(states string) {
		p.Eval(`history.replaceState(null, '', location.pathname + '?state=` + states + `'); dispatchEvent(new PopStateEvent('popstate'))`)
	}
	choose("degraded")
	p.Wait(`(() => { const h = ` + hues + `; return h.blue === 0 && h.red > 1000 })()`)
	if text := p.Eval(`document.body.innerText`).(string); !strings.Contains(text, "by what the filter shows") {
		t.Errorf("60,000 bars are no shades: %q", text)
	}
	choose("held")
	p.Wait(`document.querySelector('[data-testid=empty]')?.innerText.startsWith('Nothing that the filter shows')`)
	p.Press("Show everything")
	p.Wait(hues + `.blue > 1000`)
	p.Eval(`history.replaceState(null, '', location.pathname + '?q=n5&state=promise'); dispatchEvent(new PopStateEvent('popstate'))`)
	p.Wait(`(() => { const h = ` + hues + `; return h.blue > 100 && h.red === 0 && !document.body.innerText.includes('Too many bars') })()`)
	if faults := p.Faults(); len(faults) > 0 {
		t.Errorf("the page complains: %q", faults)
	}
}

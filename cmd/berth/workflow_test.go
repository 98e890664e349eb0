package main

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/browser"
	"github.com/berth-hpc/berth/internal/realdata"
	"github.com/berth-hpc/berth/service"
)

// drop drops a file on the page.
func drop(p *browser.Page, name, content string) {
	p.Eval(fmt.Sprintf(`(() => {
		const bytes = Uint8Array.from(atob(%q), (c) => c.charCodeAt(0)), data = new DataTransfer();
		data.items.add(new File([bytes], %q));
		document.querySelector('.drop').dispatchEvent(new DragEvent('drop', { bubbles: true, cancelable: true, dataTransfer: data }));
	})()`, base64.StdEncoding.EncodeToString([]byte(content)), name))
}

// curved waits until all deadlines are planned for.
func curved(p *browser.Page) {
	p.Wait(`document.querySelector('.slide input')?.max === '11'`)
}

// A workflow is planned among what others hold, its deadline is dragged, and the plans follow;
// nothing is booked.
func TestWorkflowInABrowser(t *testing.T) {
	b := browser.Start(t)
	q := newQuay(t, "harbour", "record")
	q.load()
	before := len(q.of("alice"))
	for _, dark := range []bool{false, true} {
		scheme := map[bool]string{false: "light", true: "dark"}[dark]
		p := b.Open(browser.Size{Width: 1440, Height: 1300})
		p.Dark(dark)
		p.Visit(q.link("alice", service.User, ""))
		painted(p, 2)
		p.Press("Workflow")
		p.Wait(`location.pathname === '/workflow'`)
		shot(p, "workflow-empty-"+scheme)
		p.Press("Take an example")
		p.Wait(`document.querySelector('[data-testid=flow]')?.innerText.includes('10 tasks, 14 dependencies; harbour')`)
		p.Wait(`document.querySelectorAll('table[aria-label="Planners compared"] tbody tr').length === 8`)
		curved(p)
		p.Wait(`document.querySelector('[data-testid=plan]')?.innerText.includes('CPU-hours')`)
		first := p.Eval(`document.querySelector('[data-testid=plan]').innerText`)
		at, _ := p.Eval(`(() => { const r = document.querySelector('.curve').getBoundingClientRect(); return [r.x, r.y + r.height / 2, r.width] })()`).([]any)
		x, y, width := at[0].(float64), at[1].(float64), at[2].(float64)
		p.Mouse("mouseMoved", browser.Point{X: x + width/2, Y: y})
		p.Mouse("mousePressed", browser.Point{X: x + width/2, Y: y})
		p.Mouse("mouseMoved", browser.Point{X: x + width*0.96, Y: y})
		p.Wait(`document.querySelector('.slide input').value === '11'`)
		p.Mouse("mouseReleased", browser.Point{X: x + width*0.96, Y: y})
		p.Wait(`document.querySelector('#plan-title').innerText === 'Plan of dl-thrift-lambda'`)
		if after := p.Eval(`document.querySelector('[data-testid=plan]').innerText`); after == first {
			t.Errorf("the plan is %v for another deadline", after)
		}
		shot(p, "workflow-"+scheme)
		p.Eval(`document.querySelector('.slide input').focus()`)
		p.Key("ArrowLeft")
		p.Wait(`document.querySelector('.slide input').value === '10'`)
		p.Wait(`document.querySelector('.slide input').getAttribute('aria-valuetext') === document.querySelector('[data-testid=deadline]').innerText`)
		p.Press("As a table")
		p.Wait(`document.querySelectorAll('table[aria-label="The plan"] tbody tr').length === 10`)
		noFaults(t, p)
		p.Close()
	}
	if after := len(q.of("alice")); after != before {
		t.Errorf("%d reservations, want %d as before", after, before)
	}
}

// What is no workflow is told as such, and a recorded one of many tasks is drawn by kinds, on a
// phone too.
func TestWorkflowFiles(t *testing.T) {
	b := browser.Start(t)
	q := newQuay(t, "harbour", "record")
	p := b.Open(browser.Size{Width: 420, Height: 900})
	p.Visit(q.link("alice", service.User, "workflow"))
	p.Wait(`document.querySelector('.drop')`)
	for content, want := range map[string]string{"{]": "no JSON", "[1]": "no workflow", `{"workflow":{}}`: "schemaVersion", strings.Repeat(" ", 99): "no JSON"} {
		drop(p, "x.json", content)
		p.Wait(`[...document.querySelectorAll('[role=alert]')].some((e) => e.innerText.includes('` + want + `'))`)
	}
	shot(p, "workflow-bad-phone")
	p.Faults() // of the status 422
	drop(p, "packed.json.gz", "no gzip")
	p.Wait(`document.querySelector('[data-testid=bad]')?.innerText.includes('cannot be read')`)
	if !strings.Contains(p.Eval(`document.body.innerText`).(string), "Workflow") {
		t.Error("the page is gone")
	}
	p.Eval(`(() => { // what is larger than any workflow is not even read
		const f = new File(['x'], 'huge.json');
		Object.defineProperty(f, 'size', { value: 500e6 });
		globalThis.wasRead = false;
		f.text = f.arrayBuffer = f.stream = () => { globalThis.wasRead = true; throw new Error('read') };
		const d = new DataTransfer();
		d.items.add(f);
		const e = new DragEvent('drop', { bubbles: true, cancelable: true });
		Object.defineProperty(e, 'dataTransfer', { value: { files: [f], items: [], types: ['Files'] } });
		document.querySelector('.drop').dispatchEvent(e);
	})()`)
	p.Wait(`document.querySelector('[data-testid=bad]')?.innerText.includes('500 MB') && !globalThis.wasRead`)
	data, err := os.ReadFile(realdata.File(t, "workflows", "seismology-chameleon-100p-001.json"))
	if err != nil {
		t.Fatal(err)
	}
	drop(p, "seismology.json", string(data))
	p.Wait(`document.querySelector('[data-testid=flow]')?.innerText.includes('101 tasks')`)
	curved(p)
	p.Wait(`document.querySelectorAll('.graph circle').length === 2`)
	if wide := p.Eval(`document.documentElement.scrollWidth`).(float64); wide > 420 {
		t.Errorf("the page is %v pixels wide on a phone", wide)
	}
	p.Eval(`document.querySelector('#plan-title').scrollIntoView()`)
	shot(p, "workflow-phone")
	p.Press("Those of one kind together")
	p.Wait(`document.querySelectorAll('.graph circle').length === 101`)
	noFaults(t, p)
	viewer := b.Open(wide)
	viewer.Visit(q.link("vera", service.Viewer, "workflow"))
	viewer.Wait(`document.body.innerText.includes('A viewer may only look')`)
}

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth/internal/browser"
	"github.com/berth-hpc/berth/scenario"
	"github.com/berth-hpc/berth/service"
)

// What the page offers is what berth lab knows.
func TestThePageLaboratoryOffersWhatThereIs(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "web", "ui", "src", "compare.ts"))
	if err != nil {
		t.Fatal(err)
	}
	listed := func(name string) (names []string) {
		t.Helper()
		line := regexp.MustCompile(`(?m)^export const ` + name + ` = \[(.*)\];$`).FindSubmatch(text)
		if line == nil {
			t.Fatalf("compare.ts has no list %s", name)
		}
		for quoted := range strings.SplitSeq(string(line[1]), ", ") {
			names = append(names, strings.Trim(quoted, "'"))
		}
		return names
	}
	if diff := cmp.Diff(scenario.Placements(), listed("placements")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(scenario.JobPasses(), listed("passes")); diff != "" {
		t.Error(diff)
	}
	_, cmd := (&labPlanner{app: &app{}, cmd: (&app{}).labCommand()}).commandLine()
	for _, name := range listed("others") {
		if cmd.Flags().Lookup(name) == nil || slices.Contains(sweptFiles, name) {
			t.Errorf("--%s is no setting", name)
		}
	}
}

// modelLog returns a log of n jobs.
func modelLog(t *testing.T, jobs int) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log.swf.gz")
	out, err := exec.CommandContext(t.Context(), "berth", "generate", "swf", "--model", "lublin:typeless", "--jobs", fmt.Sprint(jobs), "--pes", "128", "--seed", "1", "--out", path).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// finished waits for what came of the comparison that is shown.
func finished(p *browser.Page) {
	p.Wait(`document.querySelector('table[aria-label="Every combination"] tbody tr')`)
	p.Wait(`[...document.querySelectorAll('.drawings img')].every((i) => i.loading !== 'lazy' || i.getBoundingClientRect().top > innerHeight || i.complete && i.naturalWidth > 0)`)
}

// tick clicks a box or a button of a choice by its label.
func tick(p *browser.Page, label string) {
	p.Eval(fmt.Sprintf(`[...document.querySelectorAll('label.choice, label.pick')].find((l) => l.innerText.trim().startsWith(%q)).querySelector('input').click()`, label))
}

const slurmLog = `JobID|User|Partition|State|Submit|Start|ElapsedRaw|TimelimitRaw|AllocCPUS
1|ann|main|COMPLETED|2026-03-01T10:00:00|2026-03-01T10:05:00|600|60|48
2|bob|main|COMPLETED|2026-03-01T10:01:00|2026-03-01T10:15:00|5000|120|24
3|bob|main|COMPLETED|2026-03-01T10:02:00|2026-03-01T10:15:00|4000|120|32
4|ann|main|COMPLETED|2026-03-01T10:03:00|2026-03-01T10:15:00|3000|60|16
5|ann|main|COMPLETED|2026-03-01T10:04:00|2026-03-01T10:15:00|6000|120|40
6|ann|main|COMPLETED|<b>yesterday</b>|2026-03-01T10:15:00|60|1|8
`

// The service's own past and a log of Slurm are compared, in both themes; what failed says why,
// with the place of what cannot be read.
func TestLaboratoryInABrowser(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	for _, dark := range []bool{false, true} {
		scheme := map[bool]string{false: "light", true: "dark"}[dark]
		q := newQuay(t, "harbour", "record")
		q.load()
		p := b.Open(browser.Size{Width: 1440, Height: 1300})
		p.Dark(dark)
		p.Visit(q.link("alice", service.User, ""))
		painted(p, 2)
		p.Press("Laboratory")
		p.Wait(`location.pathname === '/laboratory' && document.querySelector('[data-testid=none]')`)
		shot(p, "laboratory-empty-"+scheme)
		tick(p, "late")
		tick(p, "early")
		p.Wait(`document.querySelector('[data-testid=count]').innerText === '4 combinations, 4 runs'`)
		p.Press("Compare")
		finished(p)
		if got := p.Eval(`document.querySelectorAll('table[aria-label="Every combination"] tbody tr').length`); got != 4.0 {
			t.Errorf("%v rows, want 4", got)
		}
		if got, _ := p.Eval(`document.querySelector('[data-testid=one] code').innerText`).(string); got != "berth lab --workload history.jsonl --sites sites.yaml --preset=default --sweep=policy=first-fit,pe-worst --sweep=bind=early,late --baseline=policy=first-fit --out report" &&
			got != "berth lab --workload history.jsonl --sites sites.yaml --preset=default --sweep=policy=first-fit,pe-worst --sweep=bind=early,late --out report" {
			t.Errorf("the command is %s", got)
		}
		p.Wait(`document.querySelectorAll('dl.best dd').length === 5 && !document.querySelector('[data-testid=sentence]')`)
		shot(p, "laboratory-past-"+scheme)
		drop(p, "jobs of march.sacct", slurmLog)
		p.Wait(`document.querySelector('input[value^="jobs_of_march.sacct"]')`)
		p.Press("Compare")
		p.Wait(`document.querySelector('[data-testid=one] [role=alert]')?.innerText.includes('does not tell the size of the machine')`)
		shot(p, "laboratory-failed-"+scheme)
		enter(p, "PEs of the machine", "64")
		enter(p, "Slack: deadline factors", "1, 2, 4")
		enter(p, "Replications", "12")
		p.Wait(`document.querySelector('[data-testid=count]').innerText === '12 combinations, 144 runs'`)
		p.Press("Compare")
		p.Wait(`document.querySelector('[data-testid=notes]')?.innerText.includes('jobs_of_march.sacct:7: Submit: "<b>yesterday</b>"')`)
		finished(p)
		p.Wait(`document.querySelector('[data-testid=sentence]')?.innerText === 'Nothing is clearly better than first-fit.'`)
		p.Wait(`document.querySelectorAll('.drawings figure').length >= 1`)
		shot(p, "laboratory-"+scheme)
		// What is chosen stands in the address.
		tick(p, "requests of this service")
		p.Wait(`document.querySelector('#one-title').innerText.includes('requests of this service')`)
		chosen, _ := p.Eval(`location.search`).(string)
		p.Visit(q.url + "/laboratory" + chosen)
		p.Wait(`document.querySelector('#one-title')?.innerText.includes('requests of this service')`)
		p.Visit(q.url + "/laboratory?c=abcdefgh-9")
		p.Wait(`document.querySelector('[data-testid=gone]')`)
		noFaults(t, p)
		p.Close()
	}
}

// A comparison tells how far it is and is cancelled; there is one at a time; files that are too
// large are not sent. By keyboard, on a phone.
func TestLaboratoryOnAPhone(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour", "record")
	q.load()
	p := b.Open(browser.Size{Width: 420, Height: 900})
	p.Visit(q.link("alice", service.User, "laboratory"))
	p.Wait(`document.querySelector('[data-testid=none]')`)
	shot(p, "laboratory-empty-phone")
	drop(p, "log.swf.gz", string(modelLog(t, 3000)))
	p.Wait(`document.querySelector('input[value^="log.swf.gz"]')`)
	for _, name := range []string{"pe-best", "duration-best", "duration-worst", "area-best", "area-worst"} {
		tick(p, name)
	}
	enter(p, "Replications", "100")
	p.Wait(`document.querySelector('[data-testid=count]').innerText === '7 combinations, 700 runs'`)
	p.Key("Enter")
	p.Wait(`/[1-9]\d* of 700 runs/.test(document.querySelector('[data-testid=progress]')?.innerText)`)
	p.Wait(`Number(document.querySelector('[role=progressbar]').getAttribute('aria-valuenow')) > 0`)
	p.Wait(`document.querySelector('[data-testid=count]').innerText.startsWith('One comparison at a time')`)
	shot(p, "laboratory-running-phone")
	if wide := p.Eval(`document.documentElement.scrollWidth`).(float64); wide > 420 {
		t.Errorf("the page is %v pixels wide on a phone", wide)
	}
	p.Eval(`[...document.querySelectorAll('[data-testid=one] button')].find((b) => b.innerText === 'Cancel').focus()`)
	p.Key("Enter")
	p.Wait(`document.querySelector('[data-testid=one]').innerText.includes('It was cancelled')`)
	enter(p, "Replications", "300")
	p.Wait(`document.body.innerText.includes('Want a whole number from 1 to 100')`)
	enter(p, "Replications", "100")
	enter(p, "Load: arrival factors", "1, 2, 3")
	p.Wait(`document.querySelector('[data-testid=count]').innerText.startsWith('2100 runs; want at most 2000')`)
	enter(p, "Load: arrival factors", "heavy")
	p.Wait(`document.body.innerText.includes('Want numbers above 0')`)
	p.Eval(`(() => { const data = new DataTransfer(); data.items.add(new File([new Uint8Array(65 << 20)], 'large.swf')); document.querySelector('.drop').dispatchEvent(new DragEvent('drop', { bubbles: true, cancelable: true, dataTransfer: data })); })()`)
	p.Wait(`document.querySelector('[data-testid=bad]')?.innerText.startsWith('large.swf is not a log')`) // it has nothing but zeros
	noFaults(t, p)
	viewer := b.Open(wide)
	viewer.Visit(q.link("vera", service.Viewer, "laboratory"))
	viewer.Wait(`document.body.innerText.includes('A viewer may only look')`)
}

package main

import (
	"bufio"
	"encoding/base64"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/internal/browser"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/web"
)

// logBytes is how large the log is that is sent; the laboratory takes 64 MiB.
var logBytes = flag.Int64("lab.bytes", 80<<20, "the `bytes` of the accounting log that TestLaboratoryTakesLargeLogs sends")

// accountingLog writes what sacct -P prints of a machine's jobs, of a size.
func accountingLog(t *testing.T, path string, bytes int64) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriterSize(file, 1<<20)
	written, err := w.WriteString("JobID|User|Partition|State|Submit|Start|ElapsedRaw|TimelimitRaw|AllocCPUS\n")
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i, n := 0, 0; int64(written) < bytes && err == nil; i++ {
		at = at.Add(time.Duration(1+i%7) * time.Second)
		n, err = fmt.Fprintf(w, "%d|user%d|main|COMPLETED|%s|%s|%d|%d|%d\n", i+1, i*7919%97, at.Format("2006-01-02T15:04:05"), at.Add(time.Duration(i*31%3600)*time.Second).Format("2006-01-02T15:04:05"), 60+i*7907%7200, 120+i%60, 1<<(i%6))
		written += n
	}
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A log that is larger than the service takes is compressed in the page, which tells how far it is and can be stopped,
// and is compared; what is no log is not sent.
func TestLaboratoryTakesLargeLogs(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	q := newQuay(t, "harbour")
	folder := t.TempDir()
	log, empty := filepath.Join(folder, "jobs of a year.sacct"), filepath.Join(folder, "disk.img")
	accountingLog(t, log, *logBytes)
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(empty, 500<<20); err != nil { // which takes no room
		t.Fatal(err)
	}
	p := b.Open(wide)
	p.Visit(q.link("alice", service.User, "laboratory"))
	p.Wait(`document.querySelector('[data-testid=none]')`)
	tick(p, "A log")
	p.Choose("input[type=file]", empty)
	p.Wait(`document.querySelector('[data-testid=bad]')?.innerText.startsWith('disk.img is not a log')`)
	shot(p, "laboratory-not-a-log")
	sent := func() int { return len(q.lab.Uploads("alice")) }
	if n := sent(); n != 0 {
		t.Errorf("%d logs sent", n)
	}
	p.Choose("input[type=file]", log)
	const compresses = `/^Compressing jobs of a year.sacct: \d/.test(document.querySelector('[data-testid=sending]')?.innerText.trim())`
	p.Wait(compresses + ` && (document.querySelector('[data-testid=sending] button').click(), true)`)
	p.Wait(`!document.querySelector('[data-testid=sending]')`)
	if n := sent(); n != 0 {
		t.Errorf("%d logs sent of one that was stopped", n)
	}
	begun := time.Now()
	p.Choose("input[type=file]", log)
	p.Wait(compresses)
	shot(p, "laboratory-compressing")
	for p.Eval(`Boolean(document.querySelector('[data-testid=sending]'))`) == true {
		p.Eval(`new Promise(requestAnimationFrame)`)
	}
	heap := p.Metrics()["JSHeapUsedSize"] / 1e6
	list := q.lab.Uploads("alice")
	if len(list) != 1 || list[0].Name != "jobs_of_a_year.sacct.gz" {
		t.Fatalf("sent: %+v; the page says %q", list, p.Eval(`document.querySelector('main').innerText`))
	}
	t.Logf("%.0f MB sent as %.1f MB in %s; %.1f MB of scripts", float64(*logBytes)/1e6, float64(list[0].Bytes)/1e6, time.Since(begun).Round(100*time.Millisecond), heap)
	if heap > 60 {
		t.Errorf("%.1f MB of scripts", heap)
	}
	p.Wait(`document.querySelector('input[value^="jobs_of_a_year.sacct.gz"]')`)
	noisy := filepath.Join(folder, "noise.swf")
	file, err := os.Create(noisy)
	if err == nil {
		_, err = io.CopyN(base64.NewEncoder(base64.StdEncoding, file), rand.NewChaCha8([32]byte{}), 80<<20)
	}
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	p.Choose("input[type=file]", noisy)
	p.Wait(`/^This file has 111.8 MB. Compressed with gzip, its first (8\d|9\d).\d MB alone are more than the 67.1 MB/.test(document.querySelector('[data-testid=bad]')?.innerText)`)
	shot(p, "laboratory-too-large")
	if n := sent(); n != 1 {
		t.Errorf("%d logs sent with one that is too large", n)
	}
	enter(p, "PEs of the machine", "512")
	enter(p, "Only the first jobs", "200")
	enter(p, "Replications", "1")
	p.Press("Compare")
	finished(p)
	noFaults(t, p)
}

// A session that ends while the picture is dragged shows the login; after it the view is the same.
func TestSessionEndsWhileThePictureIsDragged(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour")
	secret, e, err := q.tokens.Add(token.Wanted{User: "alice", Role: service.User}, q.host.Now())
	if err != nil {
		t.Fatal(err)
	}
	p := b.Open(wide)
	p.Visit(q.url + "/?tz=UTC#login=" + q.links.Make(e.ID, q.host.Now()))
	painted(p, 1)
	found, _ := p.Eval(`(() => { const r = ` + gantt + `.getBoundingClientRect(); return [r.x + r.width - 100, r.y + r.height / 2] })()`).([]any)
	x, y := found[0].(float64), found[1].(float64)
	p.Mouse("mouseMoved", browser.Point{X: x, Y: y})
	p.Mouse("mousePressed", browser.Point{X: x, Y: y})
	p.Mouse("mouseMoved", browser.Point{X: x - 50, Y: y})
	for _, s := range q.tokens.List() {
		if s.IsSession() {
			if err := q.tokens.EndSession(s.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range 8 { // beyond what has been fetched
		p.Mouse("mouseMoved", browser.Point{X: x - 120*float64(i+1), Y: y})
	}
	p.Mouse("mouseReleased", browser.Point{X: x - 960, Y: y})
	p.Wait(`document.querySelector('input[type=password]')`)
	p.Wait(`new URLSearchParams(location.search).has('t')`) // the window that was dragged to
	address, _ := p.Eval(`location.search`).(string)
	p.Eval(`document.querySelector('input[type=password]').focus()`)
	p.Type(secret)
	p.Key("Enter")
	painted(p, 1)
	if again := p.Eval(`location.search`); again != address {
		t.Errorf("after the login the address is %q, and was %q", again, address)
	}
}

// While the disk is full nothing is cancelled or confirmed, and the page says why; once there is room it is done, at the latest by the same press.
func TestFullDiskWhilePromisesChange(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	q := newQuay(t, "harbour")
	q.reserve("alice", "harbour", "held", 4, 3600, 3600, 1800)
	p := b.Open(wide)
	p.Visit(q.link("alice", service.User, "promises?sel=held"))
	for _, act := range []struct {
		press []string
		now   func() bool
	}{
		{[]string{"Confirm"}, func() bool { return len(q.of("alice", service.Confirmed)) == 1 }},
		{[]string{"Cancel it", "Yes, cancel it"}, func() bool { return len(q.of("alice", service.Cancelled)) == 1 }},
	} {
		p.Wait(`document.querySelector('[data-testid=one]')`)
		q.full.full.Store(true)
		for _, press := range act.press {
			p.Press(press)
		}
		p.Wait(`[...document.querySelectorAll('[role=alert]')].some((e) => /room|journal|disk/.test(e.innerText))`)
		shot(p, "full-disk-"+strings.ToLower(strings.ReplaceAll(act.press[0], " ", "-")))
		if act.now() {
			t.Errorf("%s: done on a full disk", act.press[0])
		}
		q.full.full.Store(false)
		for deadline := time.Now().Add(20 * time.Second); q.host.Ready() != nil && time.Now().Before(deadline); {
			p.Eval(`new Promise(requestAnimationFrame)`)
		}
		again := fmt.Sprintf(`void [...document.querySelectorAll('button')].find((b) => b.innerText.trim() === %q && !b.disabled)?.click()`, act.press[len(act.press)-1])
		for deadline := time.Now().Add(20 * time.Second); !act.now() && time.Now().Before(deadline); {
			p.Eval(again) // what waited for the disk may be done by itself
			p.Eval(`new Promise(requestAnimationFrame)`)
		}
		if !act.now() {
			t.Errorf("%s: not done once there is room", act.press[0])
		}
		p.Wait(`![...document.querySelectorAll('[role=alert]')].some((e) => /room|journal|disk/.test(e.innerText))`)
	}
}

// A gap in the stream of events while a form is filled in leaves what was typed, the focus and what is marked in it.
func TestFormStaysOverAGap(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour")
	p := b.Open(wide)
	p.Visit(q.link("alice", service.User, "book"))
	offered(p, "As asked")
	enter(p, "PEs", "7")
	enter(p, "Deadline", "now+9h")
	offered(p, "As asked")
	const mark = `(() => { const i = [...document.querySelectorAll('input')].find((i) => i.value === 'now+9h'); `
	p.Eval(mark + `i.focus(); i.setSelectionRange(4, 5) })()`)
	address := strings.TrimPrefix(q.url, "http://")
	q.stop()
	p.Wait(`document.body.innerText.includes('Not live')`)
	for range 2 { // events that the stream does not hold any more
		if err := q.host.Close(); err != nil {
			t.Fatal(err)
		}
		q.open()
		q.reserve("bob", "harbour", "", 8, 0, 7*3600, 0)
	}
	q.serve(address, web.Handler("", http.HandlerFunc(api.NotFound)))
	p.Wait(`!document.body.innerText.includes('Not live')`)
	offered(p, "As asked") // two hours are left behind what others were promised meanwhile
	if is := p.Eval(mark + `return i && document.activeElement === i && [i.selectionStart, i.selectionEnd].join() })()`); is != "4,5" {
		t.Errorf("the field that was being filled in has the focus and the mark %v", is)
	}
	if pes, deadline := value(p, "PEs"), value(p, "Deadline"); pes != "7" || deadline != "now+9h" {
		t.Errorf("the form has %q and %q", pes, deadline)
	}
	p.Press("Promise it")
	p.Wait(`document.querySelector('[data-testid=promised]')`)
	if list := q.of("alice"); len(list) != 1 || list[0].Allotments[0].Start < q.host.Now()+6*3600 {
		t.Errorf("%+v", list)
	}
}

// Package browser drives a real Chromium for tests of pages, over a pipe in the DevTools
// protocol, so that nothing but the browser is needed. It knows nothing of what the pages
// are about.
package browser

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/heardlog"
)

// patience is how long a page may take for one thing on a machine that does much else.
const patience = 2 * time.Minute

// Browser is what a test has of the Chromium that all tests of a process share. Its pages are the test's own.
type Browser struct {
	*chromium
	t        testing.TB
	contexts []string // which end with the test
}

// chromium is a running Chromium. It ends with the process of the tests, or when it falls over.
type chromium struct {
	said  heardlog.Log
	to    *os.File
	mu    sync.Mutex
	last  int
	calls map[int]chan reply
	pages map[string]*Page // by session
	dead  error
}

type reply struct {
	Result json.RawMessage
	Error  *struct{ Message string }
}

// shared is the Chromium of this process, started by the first test that wants one.
var shared struct {
	sync.Mutex
	*chromium
}

// Start gives a test pages in a browser, which it loses when it ends. Where there is no browser the test is skipped or fails, as find
// says. Tests that want few cases (-short) do without.
func Start(t testing.TB) *Browser {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser takes long: it is driven without -short")
	}
	return StartAlways(t)
}

// StartAlways is Start for tests that want few cases too.
func StartAlways(t testing.TB) *Browser {
	t.Helper()
	path := find(t)
	shared.Lock()
	defer shared.Unlock()
	if shared.chromium == nil || !shared.alive() {
		started, err := start(path)
		if err != nil {
			t.Fatal(err)
		}
		shared.chromium = started
	}
	b := &Browser{chromium: shared.chromium, t: t}
	t.Cleanup(b.end)
	return b
}

// start starts Chromium with a folder of its own, which is removed behind it.
func start(path string) (*chromium, error) {
	profile, err := os.MkdirTemp("", "berth-browser")
	if err != nil {
		return nil, err
	}
	in, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	from, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("sh", "-c", `profile=$1; shift; "$@"; rm -rf "$profile"`, "sh", profile, path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--lang=en-GB", "--user-data-dir="+profile, "--remote-debugging-pipe",
		// There is no window but those of the pages. In each the list under the address bar would be a page of the browser's
		// own, with a process that takes more of a processor than the page that is tested.
		"--no-startup-window", "--disable-extensions", "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup")
	cmd.ExtraFiles = []*os.File{in, out} // 3 and 4, where the browser expects them
	cmd.Env = append(os.Environ(), "TZ=UTC", "HOME="+profile)
	c := &chromium{to: to, calls: map[int]chan reply{}, pages: map[string]*Page{}}
	cmd.Stdout, cmd.Stderr = &c.said, &c.said
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	_, _ = in.Close(), out.Close() // the browser has them
	go func() {
		c.read(from)
		_, _ = to.Close(), from.Close() // it ends when it can hear nothing more
		_ = cmd.Wait()                  // how it ends does not matter
	}()
	return c, nil
}

func (c *chromium) alive() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead == nil
}

// end takes a test's pages from it.
func (b *Browser) end() {
	for _, context := range b.contexts {
		_, _ = b.call("", "Target.disposeBrowserContext", map[string]any{"browserContextId": context}) // it may have fallen over
	}
	b.mu.Lock()
	for session, p := range b.pages {
		if p.b == b {
			delete(b.pages, session)
		}
	}
	b.mu.Unlock()
	if b.t.Failed() {
		for line := range strings.Lines(b.said.String()) {
			if !strings.Contains(line, "dbus") { // which a server has no use for
				b.t.Logf("the browser said: %.500s", line)
			}
		}
	}
}

// read hands answers to who waits for them, and events to their pages.
func (c *chromium) read(from *os.File) {
	in := bufio.NewReaderSize(from, 1<<20)
	for {
		text, err := in.ReadBytes(0)
		if err != nil {
			c.mu.Lock()
			c.dead = fmt.Errorf("the browser ended: %w", err)
			for id, waiting := range c.calls {
				delete(c.calls, id)
				close(waiting)
			}
			c.mu.Unlock()
			return
		}
		var m struct {
			ID        int
			Method    string
			SessionID string `json:"sessionId"`
			Params    json.RawMessage
			reply
		}
		if json.Unmarshal(text[:len(text)-1], &m) != nil {
			continue // nothing that is waited for
		}
		c.mu.Lock()
		if waiting := c.calls[m.ID]; m.ID != 0 && waiting != nil {
			delete(c.calls, m.ID)
			waiting <- m.reply
		} else if p := c.pages[m.SessionID]; p != nil {
			p.hear(m.Method, m.Params)
		}
		c.mu.Unlock()
	}
}

func (c *chromium) call(session, method string, params any) (json.RawMessage, error) {
	c.mu.Lock()
	if c.dead != nil {
		c.mu.Unlock()
		return nil, c.dead
	}
	c.last++
	id, waiting := c.last, make(chan reply, 1)
	c.calls[id] = waiting
	data, err := json.Marshal(map[string]any{"id": id, "method": method, "params": params, "sessionId": session})
	if session == "" {
		data, err = json.Marshal(map[string]any{"id": id, "method": method, "params": params})
	}
	if err == nil {
		_, err = c.to.Write(append(data, 0))
	}
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	timer := time.NewTimer(2 * patience)
	defer timer.Stop()
	select {
	case r, open := <-waiting:
		switch {
		case !open:
			return nil, c.dead
		case r.Error != nil:
			return nil, errors.New(method + ": " + r.Error.Message)
		}
		return r.Result, nil
	case <-timer.C:
		return nil, errors.New(method + ": no answer")
	}
}

// Page is a tab with cookies of its own.
type Page struct {
	b       *Browser
	t       testing.TB
	session string
	context string
	mu      sync.Mutex
	faults  []string
	loaded  chan struct{}

	dark, paper bool // what the page is to believe
	size        Size

	traced    []traceEvent
	tracedAll chan struct{}
}

// Size is that of a window.
type Size struct{ Width, Height int }

// Open opens a tab that shares nothing with others.
func (b *Browser) Open(size Size) *Page {
	b.t.Helper()
	var made struct{ BrowserContextID string }
	b.must("", "Target.createBrowserContext", nil, &made)
	b.contexts = append(b.contexts, made.BrowserContextID)
	return b.tab(size, made.BrowserContextID)
}

// Beside opens a tab that shares the cookies of a page, as tabs of one browser do.
func (p *Page) Beside(size Size) *Page {
	p.t.Helper()
	return p.b.tab(size, p.context)
}

// Front brings a tab before the others of its window. Those behind it draw a frame every few seconds.
func (p *Page) Front() {
	p.t.Helper()
	p.must("Page.bringToFront", nil, nil)
}

func (b *Browser) tab(size Size, in string) *Page {
	b.t.Helper()
	var target struct{ TargetID string }
	b.must("", "Target.createTarget", map[string]any{"url": "about:blank", "browserContextId": in}, &target)
	var attached struct{ SessionID string }
	b.must("", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	p := &Page{b: b, t: b.t, session: attached.SessionID, context: in, loaded: make(chan struct{}, 16)}
	b.mu.Lock()
	b.pages[p.session] = p
	b.mu.Unlock()
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		p.must(domain+".enable", nil, nil)
	}
	p.must("Emulation.setFocusEmulationEnabled", map[string]any{"enabled": true}, nil) // frames are drawn in the windows behind too
	p.Dark(false)
	p.Resize(size)
	return p
}

// Resize gives the window of a page another size.
func (p *Page) Resize(size Size) {
	p.t.Helper()
	p.must("Emulation.setDeviceMetricsOverride", map[string]any{"width": size.Width, "height": size.Height, "deviceScaleFactor": 1, "mobile": false}, nil)
	p.size = size
}

// Size returns the size of a page's window.
func (p *Page) Size() Size { return p.size }

func (b *Browser) must(session, method string, params, into any) {
	b.t.Helper()
	data, err := b.call(session, method, params)
	if err == nil && into != nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func (p *Page) must(method string, params, into any) {
	p.t.Helper()
	p.b.must(p.session, method, params, into)
}

// hear notes what is wrong with a page.
func (p *Page) hear(method string, params json.RawMessage) {
	var about struct {
		Entry            struct{ Level, Text, URL string }
		ExceptionDetails struct {
			Text      string
			Exception struct{ Description string }
		}
		Type string
		Args []struct{ Value, Description any }
	}
	_ = json.Unmarshal(params, &about) // what has another form is not about that
	fault := ""
	switch {
	case method == "Page.loadEventFired":
		select {
		case p.loaded <- struct{}{}:
		default:
		}
	case method == "Tracing.dataCollected":
		var part struct{ Value []traceEvent }
		_ = json.Unmarshal(params, &part)
		p.mu.Lock()
		p.traced = append(p.traced, part.Value...)
		p.mu.Unlock()
	case method == "Tracing.tracingComplete":
		p.mu.Lock()
		close(p.tracedAll)
		p.mu.Unlock()
	case method == "Runtime.exceptionThrown":
		fault = about.ExceptionDetails.Text + " " + about.ExceptionDetails.Exception.Description
	case method == "Log.entryAdded" && about.Entry.Level == "error":
		fault = about.Entry.Text + " " + about.Entry.URL
	case method == "Runtime.consoleAPICalled" && (about.Type == "error" || about.Type == "warning"):
		fault = fmt.Sprint(about.Args)
	}
	if fault != "" {
		p.mu.Lock()
		p.faults = append(p.faults, fault)
		p.mu.Unlock()
	}
}

// Faults returns what went wrong in the page since it was asked last: exceptions, refused
// loads, violations of its policy.
func (p *Page) Faults() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	faults := p.faults
	p.faults = nil
	return faults
}

// Visit goes to an address and waits until it is loaded.
func (p *Page) Visit(url string) {
	p.t.Helper()
	for len(p.loaded) > 0 {
		<-p.loaded
	}
	var went struct{ ErrorText, LoaderID string }
	p.must("Page.navigate", map[string]any{"url": url}, &went)
	switch {
	case went.ErrorText != "":
		p.t.Fatalf("%s: %s", url, went.ErrorText)
	case went.LoaderID == "":
		return // another place of the same page
	}
	p.awaitLoaded(url)
}

// Reload loads the page again, as its user does, whatever it is doing.
func (p *Page) Reload() {
	p.t.Helper()
	for len(p.loaded) > 0 {
		<-p.loaded
	}
	p.must("Page.reload", nil, nil)
	p.awaitLoaded("the page")
}

func (p *Page) awaitLoaded(what string) {
	p.t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.loaded:
	case <-timer.C:
		p.t.Fatalf("%s: not loaded within %s", what, patience)
	}
}

// Before has a script run in each document that the page visits from now on, before all others.
func (p *Page) Before(script string) {
	p.t.Helper()
	p.must("Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": script}, nil)
}

// Eval returns the value of an expression in the page.
func (p *Page) Eval(expression string) any {
	p.t.Helper()
	var got struct {
		Result           struct{ Value any }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	p.must("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &got)
	if e := got.ExceptionDetails; e != nil {
		p.t.Fatalf("%s: %s %s", expression, e.Text, e.Exception.Description)
	}
	return got.Result.Value
}

// Wait waits until an expression is true in the page, which it looks at in each frame.
func (p *Page) Wait(expression string) {
	p.t.Helper()
	done := p.Eval(fmt.Sprintf(`new Promise((done) => {
		const until = performance.now() + %d;
		const look = () => {
			let is = false;
			try { is = Boolean(%s) } catch {}
			if (is || performance.now() > until) done(is); else requestAnimationFrame(look);
		};
		look();
	})`, patience.Milliseconds(), expression))
	if done != true {
		p.Shot(filepath.Join(os.TempDir(), "berth-browser-failed.png"))
		p.t.Fatalf("not within %s: %s; the page says:\n%s\nand %q", patience, expression, p.Eval("document.body.innerText"), p.Faults())
	}
}

// Key presses a key, as KeyboardEvent.key names it, with Shift or Control if the name begins
// with Shift+ or Control+.
func (p *Page) Key(name string) {
	p.t.Helper()
	name, shift := strings.CutPrefix(name, "Shift+")
	name, control := strings.CutPrefix(name, "Control+")
	text, modifiers := "", 0
	switch {
	case len(name) > 0 && !shift && !control && len([]rune(name)) == 1:
		text = name
	case name == "Enter":
		text = "\r"
	}
	if shift {
		modifiers = 8
	}
	if control {
		modifiers |= 2
	}
	codes := map[string]int{"Enter": 13, "Tab": 9, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, " ": 32}
	params := map[string]any{"type": "keyDown", "key": name, "text": text, "modifiers": modifiers, "windowsVirtualKeyCode": codes[name], "code": name}
	p.must("Input.dispatchKeyEvent", params, nil)
	params["type"], params["text"] = "keyUp", ""
	p.must("Input.dispatchKeyEvent", params, nil)
}

// Type types text into what has the focus.
func (p *Page) Type(text string) {
	p.t.Helper()
	p.must("Input.insertText", map[string]any{"text": text}, nil)
}

// Point is a place in the window, in pixels.
type Point struct{ X, Y float64 }

// Mouse sends one event of the mouse: mouseMoved, mousePressed or mouseReleased.
func (p *Page) Mouse(kind string, at Point) {
	p.t.Helper()
	params := map[string]any{"type": kind, "x": at.X, "y": at.Y, "button": "left", "buttons": 1, "clickCount": 1}
	if kind == "mouseMoved" {
		params["button"], params["clickCount"] = "none", 0
	}
	p.must("Input.dispatchMouseEvent", params, nil)
}

// Click clicks at a place.
func (p *Page) Click(at Point) {
	p.t.Helper()
	p.must("Input.dispatchMouseEvent", map[string]any{"type": "mouseMoved", "x": at.X, "y": at.Y, "button": "none"}, nil)
	p.Mouse("mousePressed", at)
	p.Mouse("mouseReleased", at)
}

// Wheel turns the wheel of the mouse at a place, by a number of pixels: down, or up if it is negative.
func (p *Page) Wheel(at Point, down float64) {
	p.t.Helper()
	p.must("Input.dispatchMouseEvent", map[string]any{"type": "mouseWheel", "x": at.X, "y": at.Y, "deltaX": 0, "deltaY": down}, nil)
}

// Press clicks the button, link or field with a name, to which it scrolls as a person would.
func (p *Page) Press(name string) {
	p.t.Helper()
	find := named(name)
	// What is above it may still be coming, and would take it away from under the pointer, and the page
	// may make it anew between the press and the release: then it hears of no click, and is pressed again.
	for range 10 {
		p.awaitRest(find)
		at, _ := p.Eval(`(() => { const e = ` + find + `; e.scrollIntoView({ block: 'nearest' }); const r = e.getBoundingClientRect();
			window.missed = true;
			const hear = (c) => { window.missed = !(e.contains(c.target) || [...e.labels ?? []].some((l) => l.contains(c.target))) };
			document.addEventListener('click', hear, { capture: true, once: true });
			return [r.x + r.width / 2, r.y + r.height / 2] })()`).([]any)
		p.Click(Point{at[0].(float64), at[1].(float64)})
		if p.Eval(`window.missed`) != true {
			return
		}
	}
	p.t.Fatalf("%q hears of no click", name)
}

// awaitRest waits until what find finds is there and has stayed where it is for some frames.
func (p *Page) awaitRest(find string) {
	p.t.Helper()
	p.Eval(`window.rests = { at: '', frames: 0 }`)
	p.Wait(`(() => { const e = ` + find + `; const r = e.getBoundingClientRect(), at = [r.x, r.y, r.width].join();
		if (rests.at !== at) window.rests = { at, frames: 0 };
		return rests.frames++ >= 3 })()`)
}

// Leave clicks a link that loads another page, also of another site and by way of others, and waits until that is loaded. Press
// would ask the page whether it heard of the click, while it is being replaced.
func (p *Page) Leave(name string) {
	p.t.Helper()
	find := named(name)
	p.awaitRest(find)
	at, _ := p.Eval(`(() => { const e = ` + find + `; e.scrollIntoView({ block: 'nearest' }); const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] })()`).([]any)
	for len(p.loaded) > 0 {
		<-p.loaded
	}
	p.Click(Point{at[0].(float64), at[1].(float64)})
	p.awaitLoaded(name)
}

// named finds the button, link or field with a name.
func named(name string) string {
	return fmt.Sprintf(`[...document.querySelectorAll('button, a, input')].find((e) => (e.getAttribute('aria-label') || e.innerText || e.labels?.[0]?.innerText || '').trim() === %q)`, name)
}

// Choose gives a field for files one of this machine, as a person does who chooses it.
func (p *Page) Choose(selector, path string) {
	p.t.Helper()
	var found struct{ Result struct{ ObjectID string } }
	p.must("Runtime.evaluate", map[string]any{"expression": fmt.Sprintf("document.querySelector(%q)", selector)}, &found)
	p.must("DOM.setFileInputFiles", map[string]any{"files": []string{path}, "objectId": found.Result.ObjectID}, nil)
}

// TakeAnyCertificate has the page take certificates of authorities that the machine does not know.
func (p *Page) TakeAnyCertificate() {
	p.t.Helper()
	p.must("Security.setIgnoreCertificateErrors", map[string]any{"ignore": true}, nil)
}

// Dark has the page believe that the system is dark, or light, and wants nothing to move.
func (p *Page) Dark(dark bool) {
	p.t.Helper()
	p.dark = dark
	p.media()
}

// Paper has the page believe that it is printed.
func (p *Page) Paper(paper bool) {
	p.t.Helper()
	p.paper = paper
	p.media()
}

func (p *Page) media() {
	p.t.Helper()
	scheme := map[bool]string{true: "dark", false: "light"}[p.dark]
	p.must("Emulation.setEmulatedMedia", map[string]any{
		"media":    map[bool]string{true: "print", false: ""}[p.paper],
		"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}},
	}, nil)
}

// Shot writes a picture of the window to a file, and returns it.
func (p *Page) Shot(path string) []byte {
	p.t.Helper()
	var shot struct{ Data string }
	p.must("Page.captureScreenshot", map[string]any{"format": "png"}, &shot)
	data, err := base64.StdEncoding.DecodeString(shot.Data)
	if err == nil && path != "" {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return data
}

// ShotWhole writes a picture of a page to a file, with what is below the window, down to a height. The window is
// made as tall for that: what stays at its top, and what lies over the page, is where a person sees it.
func (p *Page) ShotWhole(path string, most int) {
	p.t.Helper()
	was := p.size
	tall := int(p.Eval(`Math.max(document.documentElement.scrollHeight, ...[...document.querySelectorAll('.mantine-Drawer-content, .mantine-Modal-content')].map((e) => e.scrollHeight + 100))`).(float64))
	from := p.Eval(`scrollY`)
	if tall > was.Height {
		p.Resize(Size{Width: was.Width, Height: min(tall, most)})
		p.Eval(`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done))))`)
	}
	p.Shot(path)
	if tall > was.Height {
		p.Resize(was)
		p.Eval(fmt.Sprintf(`new Promise((done) => requestAnimationFrame(() => { scrollTo(0, %v); requestAnimationFrame(done); }))`, from))
	}
}

// Close closes the tab.
func (p *Page) Close() {
	p.t.Helper()
	p.must("Page.close", nil, nil)
}

// Metrics returns what the browser counts of the page, with times as CPU seconds of its main
// thread; TaskDuration is all that this has done.
func (p *Page) Metrics() map[string]float64 {
	p.t.Helper()
	var got struct {
		Metrics []struct {
			Name  string
			Value float64
		}
	}
	p.must("Performance.enable", map[string]any{"timeDomain": "threadTicks"}, nil)
	p.must("Performance.getMetrics", nil, &got)
	all := map[string]float64{}
	for _, m := range got.Metrics {
		all[m.Name] = m.Value
	}
	return all
}

// Processes returns the browser's processes that show pages.
func (b *Browser) Processes() []int {
	b.t.Helper()
	var got struct {
		ProcessInfo []struct {
			Type string
			ID   int
		}
	}
	b.must("", "SystemInfo.getProcessInfo", nil, &got)
	var ids []int
	for _, p := range got.ProcessInfo {
		if p.Type == "renderer" {
			ids = append(ids, p.ID)
		}
	}
	return ids
}

// Collect has the page give back what it does not use any more.
func (p *Page) Collect() {
	p.t.Helper()
	p.must("HeapProfiler.enable", nil, nil)
	p.must("HeapProfiler.collectGarbage", nil, nil)
}

// Slow has the page's connection have a rate in bits a second and a delay in milliseconds.
func (p *Page) Slow(bitsPerSecond, milliseconds float64) {
	p.t.Helper()
	p.must("Network.enable", nil, nil)
	p.must("Network.emulateNetworkConditions", map[string]any{"offline": false, "latency": milliseconds, "downloadThroughput": bitsPerSecond / 8, "uploadThroughput": bitsPerSecond / 8}, nil)
}

// Touch sends one event of fingers: touchStart, touchMove or touchEnd, with those that touch.
func (p *Page) Touch(kind string, at ...Point) {
	p.t.Helper()
	points := make([]map[string]any, len(at))
	for i := range at {
		points[i] = map[string]any{"x": at[i].X, "y": at[i].Y, "id": i}
	}
	p.must("Input.dispatchTouchEvent", map[string]any{"type": kind, "touchPoints": points}, nil)
}

// Cold has the page keep nothing of what it loads, and forget what it has.
func (p *Page) Cold() {
	p.t.Helper()
	p.must("Network.enable", nil, nil)
	p.must("Network.setCacheDisabled", map[string]any{"cacheDisabled": true}, nil)
}

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/courier"
	"github.com/berth-hpc/berth/api/laboratory"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/browser"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/fake"
	"github.com/berth-hpc/berth/web"
)

// quay is a service with its pages, in front of a fake site of 16 nodes and a recorded one of
// 64 PEs that binds late.
type quay struct {
	t      *testing.T
	host   *service.Host
	site   *fake.Site
	tokens *token.Store
	links  *api.Links
	lab    *laboratory.Laboratory
	mail   *courier.Courier
	mailed string // the file with the message that came by e-mail last
	url    string
	public *url.URL // through a proxy, nil without one
	stop   func()   // the server, with all its connections
	full   *fullDisk
	opened service.Options
}

// fullDisk is a journal that has no room at times.
type fullDisk struct {
	*sqlite.Store
	full atomic.Bool
}

func (f *fullDisk) Append(ctx context.Context, records ...journal.Record) error {
	if f.full.Load() {
		return berth.Errorf(berth.Exhausted, "journal", "no space left on device")
	}
	return f.Store.Append(ctx, records...)
}

func newQuay(t *testing.T, sites ...string) *quay {
	t.Helper()
	store, err := sqlite.Open(t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	q := &quay{t: t, links: &api.Links{}, full: &fullDisk{Store: store}}
	options := service.Options{Config: engine.Config{Explain: true, Limits: policy.Limits{{Scope: policy.Scope{Account: "coal"}, Name: policy.LimitActive, Value: 7}}}, Journal: q.full, Version: "test", Managers: map[string]service.Manager{}}
	for _, name := range sites {
		if name == "tools" {
			options.Config.Sites = append(options.Config.Sites, berth.Site{Name: name, Software: []berth.Software{{Name: "namd"}}, Pools: []berth.Pool{{Name: "batch", PEs: 8, Binding: berth.Early}}})
			continue
		}
		if name == "record" {
			options.Config.Sites = append(options.Config.Sites, berth.Site{Name: "record", Pools: []berth.Pool{{Name: "batch", PEs: 64, Binding: berth.Late}}})
			continue
		}
		description := fake.Nodes(16, 1)
		q.site = fake.New(fake.Config{Name: name, Description: description}, berth.Time(time.Now().Unix()))
		imported, layout, err := site.Import(name, &description, site.UnitNode, berth.Early)
		if err != nil {
			t.Fatal(err)
		}
		imported.Managed = true
		options.Config.Sites = append(options.Config.Sites, imported)
		options.Managers[name] = service.Manager{Kind: "fake", Adapter: q.site, Layout: layout, Every: 50 * time.Millisecond, Horizon: 3600, Shadow: name == "watched"}
	}
	q.opened = options
	q.open()
	if q.tokens, err = token.Open(t.TempDir(), "olga", q.host.Now()); err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if q.lab, err = laboratory.Open(laboratory.Options{Folder: filepath.Join(t.TempDir(), "laboratory"), Program: []string{program, plainWorker}, Log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	q.mailed = filepath.Join(t.TempDir(), "mailed")
	relay, err := startRelay(q.mailed)
	if err != nil {
		t.Fatal(err)
	}
	if q.mail, err = courier.Open(courier.Options{
		Folder: t.TempDir(), Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Relay: &courier.Relay{Address: relay.Addr, TLS: courier.TLSNone, From: "berth@example.org"},
	}); err != nil {
		t.Fatal(err)
	}
	q.host.SendNotices(&api.Messenger{Courier: q.mail, Tokens: q.tokens, Now: q.host.Now, Version: "test"})
	q.serve("127.0.0.1:0", web.Handler("", http.HandlerFunc(api.NotFound)))
	t.Cleanup(func() {
		if err := errors.Join(q.lab.Close(), q.host.Close(), relay.Close()); err != nil {
			t.Error(err)
		}
		q.stop()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return q
}

// open starts a host on the journal.
func (q *quay) open() {
	q.t.Helper()
	host, err := service.Open(context.Background(), q.opened)
	if err != nil {
		q.t.Fatal(err)
	}
	q.host = host
}

// serve starts the server at an address, with its pages.
func (q *quay) serve(address string, pages http.Handler) {
	q.t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(q.t.Context(), "tcp", address)
	if err != nil {
		q.t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(api.New(api.Options{Service: q.host, Tokens: q.tokens, Links: q.links, Laboratory: q.lab, Courier: q.mail, Root: pages, Public: q.public, Log: slog.New(slog.DiscardHandler)}))
	_ = server.Listener.Close() // it is to have that one
	server.Listener = listener
	server.Start()
	q.url = server.URL
	q.stop = func() {
		server.CloseClientConnections()
		server.Close()
	}
}

// link returns the address of a page with a login for a user.
func (q *quay) link(user string, role service.Role, query string) string {
	q.t.Helper()
	_, e, err := q.tokens.Add(token.Wanted{User: user, Role: role}, q.host.Now())
	if err != nil {
		q.t.Fatal(err)
	}
	return q.url + "/" + query + "#login=" + q.links.Make(e.ID, q.host.Now())
}

// reserve has a user promised PEs at a site from some seconds from now on.
func (q *quay) reserve(user, at, id string, npe berth.Count, in, length berth.Duration, hold berth.Duration) {
	q.t.Helper()
	now := q.host.Now()
	r := berth.Rigid(id, now, now.Add(in), now.Add(in+length), npe, length)
	r.Site, r.Hold = at, hold
	ask := service.Ask{By: service.Principal{User: user, Role: service.User}}
	answer, err := q.host.Submit(q.t.Context(), ask, r)
	if err != nil || answer.Reservation.State == service.Refused {
		q.t.Fatalf("%s: %v %+v", id, err, answer.Reservation.Refusal)
	}
}

// load fills the sites as a working day does.
func (q *quay) load() {
	q.t.Helper()
	for i := range 10 {
		q.reserve("bob", "harbour", fmt.Sprintf("bob-%d", i), berth.Count(2+i%3), berth.Duration(600+i*5400), 7000, 0)
	}
	q.reserve("alice", "harbour", "alice-now", 4, 0, 9000, 0)
	q.reserve("alice", "harbour", "alice-later", 6, 20_000, 12_000, 0)
	q.reserve("alice", "harbour", "alice-held", 5, 40_000, 10_000, 1800)
	for i := range 6 {
		q.reserve("carol", "record", fmt.Sprintf("carol-%d", i), berth.Count(8+3*i), berth.Duration(1200+i*9000), 10_000, 0)
	}
	q.reserve("alice", "record", "alice-record", 16, 30_000, 20_000, 0)
}

var (
	wide  = browser.Size{Width: 1440, Height: 1000}
	phone = browser.Size{Width: 390, Height: 844}
)

// shots is where the tests leave pictures of what they saw.
var shots = flag.String("shots", os.Getenv("BERTH_SHOTS"), "the `folder` in which to leave pictures of what tests of pages saw")

// shotsWhole has pictures show the whole of each page, and beside it how it is on a phone.
var shotsWhole = flag.Bool("shots.whole", false, "with -shots: leave a picture of the whole page, and one as wide as a phone")

func shot(p *browser.Page, name string) {
	if *shots == "" {
		return
	}
	if !*shotsWhole {
		p.Shot(filepath.Join(*shots, name+".png"))
		return
	}
	was := p.Size()
	p.ShotWhole(filepath.Join(*shots, name+".png"), 2400)
	if was.Width > phone.Width {
		p.Resize(phone)
		p.Eval(`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done))))`)
		p.ShotWhole(filepath.Join(*shots, name+"-phone.png"), 4000)
		p.Resize(was)
		p.Eval(`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))`)
	}
}

// pagesAlone skips a test of pages under the race detector, which watches the service and not the pages, unless the test has
// several things happen at once there, such as streams beside changes and restarts, or is the one that goes through a page
// from its beginning to its end. Others would ask the service for the same once more.
func pagesAlone(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("short: looks at pages, which ask the service for the same as in other tests")
	}
}

// painted waits until the pictures of n pools are drawn.
func painted(p *browser.Page, pools int) {
	p.Wait(fmt.Sprintf(`document.querySelectorAll('.gantt canvas[role=application]').length === %d`, pools))
	p.Wait(`document.querySelector('[data-testid=live]')?.innerText.toLowerCase() === 'live'`)
}

func noFaults(t *testing.T, p *browser.Page) {
	t.Helper()
	if faults := p.Faults(); len(faults) > 0 {
		t.Errorf("the page complains: %q", faults)
	}
}

const pixelsOf = `(() => { const c = document.querySelector('.gantt canvas[aria-hidden]'); return [...c.getContext('2d').getImageData(0, 0, c.width, c.height).data] })()`

// colours counts the pixels of a colour in the first picture.
func colours(p *browser.Page, rgb [3]int) int {
	n := p.Eval(fmt.Sprintf(`(() => { const d = %s; let n = 0; for (let i = 0; i < d.length; i += 4) if (d[i] === %d && d[i+1] === %d && d[i+2] === %d) n++; return n })()`, pixelsOf, rgb[0], rgb[1], rgb[2]))
	return int(n.(float64))
}

// A login link opens the harbour; a bar shows what the role may see, by mouse and by keys.
func TestHarbourInABrowser(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	q := newQuay(t, "harbour", "record")
	q.load()
	for _, dark := range []bool{false, true} {
		scheme := map[bool]string{false: "light", true: "dark"}[dark]
		p := b.Open(wide)
		p.Dark(dark)
		p.Visit(q.link("alice", service.User, ""))
		painted(p, 2)
		if at := p.Eval(`location.href`); strings.Contains(at.(string), "login") {
			t.Errorf("the code is still in the address: %s", at)
		}
		shot(p, "harbour-"+scheme)
		mine := map[bool][3]int{false: {0x12, 0x3f, 0x7a}, true: {0xa8, 0xd8, 0xff}}[dark]
		if n := colours(p, mine); n < 500 {
			t.Errorf("%s: %d pixels of one's own", scheme, n)
		}
		p.Eval(`document.querySelector('.gantt canvas[role=application]').focus()`)
		p.Key("ArrowDown")
		p.Wait(`/, \d+ PEs, n\d+/.test(document.querySelector('.gantt [role=status]').innerText)`)
		p.Key("Enter")
		p.Wait(`document.querySelector('.mantine-Drawer-body table')`)
		shot(p, "details-"+scheme)
		p.Key("Escape")
		p.Wait(`!document.querySelector('.mantine-Drawer-body')`)
		p.Eval(`document.querySelector('.gantt canvas[role=application]').focus()`)
		p.Key("t")
		p.Wait(`document.querySelectorAll('table tbody tr').length > 10 && document.body.innerText.includes('Your promise')`)
		shot(p, "table-"+scheme)
		noFaults(t, p)
		p.Close()
	}
}

// What a user does is seen by all who look, soon, and their view, selection and focus stay.
func TestHarbourFollows(t *testing.T) {
	t.Parallel()
	b := browser.StartAlways(t)
	q := newQuay(t, "harbour")
	p := b.Open(wide)
	p.Visit(q.link("vera", service.Viewer, ""))
	painted(p, 1)
	p.Wait(`document.querySelector('[data-testid=empty]').innerText.startsWith('Nothing is held')`)
	shot(p, "empty-window")
	promise := [3]int{0x3d, 0x8f, 0xd1}
	if n := colours(p, promise); n != 0 {
		t.Errorf("%d pixels of a promise before there is any", n)
	}
	q.reserve("alice", "harbour", "secret-name", 8, 3600, 20_000, 0)
	p.Wait(`(() => { const d = ` + pixelsOf + `; for (let i = 0; i < d.length; i += 4) if (d[i] === 0x3d && d[i+1] === 0x8f && d[i+2] === 0xd1) return true; return false })()`)
	p.Wait(`!document.querySelector('[data-testid=empty]')`)
	p.Eval(`document.querySelector('.gantt canvas[role=application]').focus()`)
	p.Key("ArrowRight")
	p.Key("Enter")
	p.Wait(`document.querySelector('.mantine-Drawer-body')?.innerText.includes('A promise')`)
	if text := p.Eval(`document.body.innerText`).(string); strings.Contains(text, "alice") || strings.Contains(text, "secret-name") || !strings.Contains(text, "Whose it is only its owner") {
		t.Errorf("a viewer reads %q", text)
	}
	shot(p, "viewer-details")
	p.Key("Escape")
	p.Wait(`!document.querySelector('.mantine-Drawer-body')`)
	p.Eval(`document.querySelector('.gantt canvas[role=application]').focus()`)
	p.Key("ArrowRight")
	p.Key("Shift+ArrowRight")
	p.Wait(`/sel=harbour/.test(location.search) && /t=20/.test(location.search)`)
	before := p.Eval(`location.search + document.activeElement.getAttribute('role')`)
	q.site.Fail("n3", "fire")
	p.Wait(`(() => { const d = ` + pixelsOf + `; for (let i = 0; i < d.length; i += 4) if (d[i] === 0x17 && d[i+1] === 0x19 && d[i+2] === 0x1d) return true; return false })()`)
	if after := p.Eval(`location.search + document.activeElement.getAttribute('role')`); after != before {
		t.Errorf("an update changed the view from %s to %s", before, after)
	}
	shot(p, "outage")
	noFaults(t, p)
}

// A session that is revoked ends on the page at once; a wrong token and an old link say so; a
// service that is gone is told, and what was known stays.
func TestHarbourWithoutAService(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour")
	q.reserve("bob", "harbour", "b", 8, 3600, 20_000, 0)
	p := b.Open(wide)
	p.Visit(q.url + "/")
	p.Wait(`document.querySelector('input[type=password]')`)
	shot(p, "login")
	p.Eval(`document.querySelector('input[type=password]').focus()`)
	p.Type("berth_wrong")
	p.Key("Enter")
	p.Wait(`document.querySelector('[role=alert]')?.innerText.includes('token')`)
	shot(p, "login-wrong")
	old := q.link("alice", service.User, "")
	p.Visit(old)
	painted(p, 1)
	again := b.Open(wide)
	again.Visit(old)
	again.Wait(`document.body.innerText.includes('The login link did not work')`)
	again.Close()
	secret, _, err := q.tokens.Add(token.Wanted{User: "alice", Role: service.User}, q.host.Now())
	if err != nil {
		t.Fatal(err)
	}
	other := b.Open(wide)
	other.Visit(q.url + "/?t=yesterday..now&tz=Mars/Olympus&sel=x")
	other.Wait(`document.querySelector('input[type=password]')`)
	other.Eval(`document.querySelector('input[type=password]').focus()`)
	other.Type(secret)
	other.Key("Enter")
	painted(other, 1)
	other.Wait(`document.body.innerText.includes('could not be read whole (sel, tz, t)')`)
	shot(other, "bad-address")
	for _, e := range q.tokens.List() {
		if e.IsSession() {
			if err := q.tokens.EndSession(e.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	p.Wait(`document.querySelector('input[type=password]')`)
	other.Wait(`document.querySelector('input[type=password]')`)
	other.Close()
	p.Visit(q.link("alice", service.User, ""))
	painted(p, 1)
	p.Faults() // of what was refused above
	q.stop()
	p.Wait(`document.body.innerText.includes('Not live')`)
	if n := colours(p, [3]int{0x3d, 0x8f, 0xd1}); n == 0 {
		t.Error("what was known is gone")
	}
	shot(p, "not-live")
}

// What happened while the page heard nothing, and is not kept for those who listen, it looks at anew, and goes on
// listening from then on: a service that was started again after another had written to its journal.
func TestHarbourAfterAGap(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	q := newQuay(t, "harbour")
	q.reserve("bob", "harbour", "before", 8, 3600, 20_000, 0)
	p := b.Open(wide)
	p.Visit(q.link("alice", service.User, ""))
	painted(p, 1)
	p.Eval(`(() => { window.heard = []; window.ear = new BroadcastChannel('berth-events:' + document.baseURI); ear.onmessage = (m) => heard.push(m.data.kind) })()`)
	q.reserve("bob", "harbour", "last", 1, 3600, 20_000, 0)
	p.Wait(`heard.includes('occupied')`) // it has a place in the stream, which it asks for again
	address := strings.TrimPrefix(q.url, "http://")
	q.stop()
	p.Wait(`document.body.innerText.includes('Not live')`)
	p.Eval(`(() => { heard.length = 0 })()`)
	for range 2 {
		if err := q.host.Close(); err != nil {
			t.Fatal(err)
		}
		q.open()
		q.reserve("alice", "harbour", "", 2, 30_000, 20_000, 0)
	}
	q.serve(address, web.Handler("", http.HandlerFunc(api.NotFound)))
	p.Wait(`heard.filter((kind) => kind === 'open').length === 3`) // connected, told of the gap, and connected from then on
	painted(p, 1)
	const mine = `; for (let i = 0; i < d.length; i += 4) if (d[i] === 0x12 && d[i+1] === 0x3f && d[i+2] === 0x7a) return true; return false })()`
	p.Wait(`(() => { const d = ` + pixelsOf + mine)
	p.Eval(`(() => { heard.length = 0 })()`)
	q.reserve("alice", "harbour", "after", 3, 3600, 9000, 0)
	p.Wait(`heard.includes('occupied') && heard.includes('changed') && !heard.includes('open')`)
}

// Where there is no site to see the page says so, and what to do.
func TestHarbourWithoutSites(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "record")
	_, e, err := q.tokens.Add(token.Wanted{User: "alice", Role: service.User, Sites: service.NewSiteSet([]string{"elsewhere"})}, q.host.Now())
	if err != nil {
		t.Fatal(err)
	}
	p := b.Open(browser.Size{Width: 420, Height: 800})
	p.Visit(q.url + "/#login=" + q.links.Make(e.ID, q.host.Now()))
	p.Wait(`document.body.innerText.includes('No site is open to you')`)
	shot(p, "no-site-phone")
	p.Visit(q.link("olga", service.Operator, "?site=nowhere"))
	p.Wait(`document.body.innerText.includes('There is no site nowhere')`)
	p.Press("All sites")
	painted(p, 1)
	p.Eval(`document.querySelector('.gantt canvas[role=application]').focus()`)
	p.Key("m")
	p.Wait(`document.querySelector('[data-testid=empty]').innerText.startsWith('Nothing of yours')`)
	shot(p, "phone")
	noFaults(t, p)
}

// All tabs of a browser share one stream of events, and when the tab that holds it is closed
// another one takes over: browsers have six connections to a service, and more streams
// would leave none for anything else.
func TestTabsShareAStream(t *testing.T) {
	t.Parallel()
	b := browser.StartAlways(t)
	q := newQuay(t, "harbour")
	first := b.Open(wide)
	first.Visit(q.link("vera", service.Viewer, ""))
	painted(first, 1)
	var others []*browser.Page
	for range 7 {
		p := first.Beside(browser.Size{Width: 800, Height: 600})
		p.Visit(q.url + "/")
		painted(p, 1)
		others = append(others, p)
	}
	const streams = `fetch('metrics').then((a) => a.text()).then((t) => Number(/^berth_api_event_streams (\d+)$/m.exec(t)[1]))`
	if n := others[0].Eval(streams); n != 1.0 {
		t.Errorf("%v streams of eight tabs", n)
	}
	first.Close()
	q.reserve("bob", "harbour", "b", 8, 3600, 20_000, 0)
	for _, p := range others {
		p.Wait(`(() => { const d = ` + pixelsOf + `; for (let i = 0; i < d.length; i += 4) if (d[i] === 0x3d && d[i+1] === 0x8f && d[i+2] === 0xd1) return true; return false })()`)
	}
	if n := others[0].Eval(streams); n != 1.0 {
		t.Errorf("%v streams once the tab with the stream is closed", n)
	}
}

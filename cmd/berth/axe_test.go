package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/internal/browser"
	"github.com/berth-hpc/berth/internal/nodetest"
	"github.com/berth-hpc/berth/service"
)

// axeSource returns axe-core as web/ui/package-lock.json has it: of the folder of the pages if
// it is installed there, else fetched by npm. Where it cannot be had the test is skipped, or fails, as nodetest.Need says.
func axeSource(t *testing.T) string {
	t.Helper()
	ui := filepath.Join("..", "..", "web", "ui")
	var lock struct {
		Packages map[string]struct{ Version string }
	}
	text, err := os.ReadFile(filepath.Join(ui, "package-lock.json"))
	if err == nil {
		err = json.Unmarshal(text, &lock)
	}
	if err != nil {
		t.Fatal(err)
	}
	want := lock.Packages["node_modules/axe-core"].Version
	if want == "" {
		t.Fatal("web/ui/package-lock.json has no axe-core")
	}
	read := func(folder string) string {
		var is struct{ Version string }
		about, err := os.ReadFile(filepath.Join(folder, "node_modules", "axe-core", "package.json"))
		if err != nil || json.Unmarshal(about, &is) != nil || is.Version != want {
			return ""
		}
		source, err := os.ReadFile(filepath.Join(folder, "node_modules", "axe-core", "axe.min.js"))
		if err != nil {
			return ""
		}
		return string(source)
	}
	if source := read(ui); source != "" {
		return source
	}
	nodetest.Need(t)
	folder := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json"} {
		data, err := os.ReadFile(filepath.Join(ui, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	if source := read(folder); err == nil && source != "" {
		return source
	}
	nodetest.Absent(t, fmt.Sprintf("no axe-core %s: npm ci: %v: %.500s", want, err, out))
	return ""
}

// examiner has axe-core look at pages.
type examiner struct {
	t      *testing.T
	source string
	seen   int
	log    string // a large one
}

// examine reports what axe finds wrong with a page as it is now, in both themes. WCAG 2.2 at levels A and AA
// is the claim; axe's own good practices are held as well. The dark theme changes colours
// alone, so those are what is looked at there.
func (x *examiner) examine(p *browser.Page, state string) {
	x.t.Helper()
	for _, look := range []struct{ theme, rules string }{
		{"dark", `['color-contrast']`},
		{"light", `['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']`},
	} {
		x.seen++
		p.Dark(look.theme == "dark")
		p.Wait(`(document.documentElement.dataset.mantineColorScheme ?? '` + look.theme + `') === '` + look.theme + `'`) // pages of the server have no scripts
		if p.Eval(`Boolean(window.axe)`) != true {                                                                       // a page that was not left has it
			p.Eval(x.source + `; 0`)
		}
		// What is as it should be is not reported, so axe need not find a selector for each such element.
		found, _ := p.Eval(`axe.run(document, { runOnly: ` + look.rules + `, resultTypes: ['violations'], selectors: false }).then((r) =>
			r.violations.flatMap((v) => v.nodes.slice(0, 3).map((n) => v.id + ': ' + n.html.slice(0, 160) + ' ' + (n.any[0] || n.all[0] || n.none[0] || {}).message)))`).([]any)
		for _, f := range found {
			x.t.Errorf("%s, %s: %v", state, look.theme, f)
		}
		shot(p, "axe-"+strings.ReplaceAll(state, " ", "-")+"-"+look.theme)
	}
}

// visit goes to a page by its link, as a person does, so that what was done to the window stays.
func visit(p *browser.Page, page string) {
	p.Press(page)
	p.Wait(`document.querySelector('nav a[aria-current=page]')?.innerText === '` + page + `'`)
}

// A page is examined in both themes, for each role that has it, empty, full, while it waits,
// with what went wrong, and with each of its forms and messages.
func TestAxeFindsNothing(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	x := &examiner{t: t, source: axeSource(t), log: string(modelLog(t, 3000))}
	b := browser.Start(t)
	full := newQuay(t, "harbour", "record")
	full.load()
	full.reserve("alice", "harbour", "running", 1, 0, 3000, 0)
	full.site.Fail("n16", "fire")
	for i := range 2 { // which offers may cost something
		if _, err := full.host.Submit(t.Context(), full.ask("bob"), berth.Job(fmt.Sprintf("job-%d", i), full.host.Now(), 64, 3600)); err != nil {
			t.Fatal(err)
		}
	}
	empty := newQuay(t, "harbour")
	for _, role := range service.Roles() {
		who := map[service.Role]string{service.Viewer: "vera", service.User: "alice", service.Operator: "olga"}[role]
		at := func(state string) string { return state + " " + string(role) }
		p := b.Open(wide)
		p.Visit(full.link(who, role, ""))
		painted(p, 2)
		x.examine(p, at("harbour"))
		p.Press("Table")
		p.Wait(`document.querySelector('table tbody tr')`)
		x.examine(p, at("harbour table"))
		p.Press("Picture")
		for _, open := range []string{"Filter", "Share"} {
			p.Press(open)
			p.Wait(`document.querySelector('.mantine-Popover-dropdown')`)
			x.examine(p, at("harbour "+strings.ToLower(open)))
			p.Visit(full.url + "/")
			painted(p, 2)
		}
		p.Key("Control+k")
		p.Wait(`document.activeElement?.getAttribute('role') === 'combobox'`)
		p.Type("n1")
		p.Wait(`document.querySelector('#found [role=option]')`)
		x.examine(p, at("harbour find"))
		p.Key("Escape")
		p.Wait(`!document.querySelector('.mantine-Modal-body')`)
		p.Press(who + ", " + string(role) + ": where you are logged in")
		p.Wait(`document.querySelector('[data-testid=sessions] section')`)
		x.examine(p, at("sessions"))
		if role != service.Viewer {
			name := "svc-" + string(role)
			p.Press("Make a service account")
			enter(p, "Name", "builds")
			p.Wait(`document.body.innerText.includes('want a name that begins with svc-')`)
			x.examine(p, at("account form"))
			enter(p, "Name", name)
			p.Press("Make it")
			p.Wait(`document.querySelector('[data-account] form')`)
			p.Press("Make the token")
			p.Wait(`document.querySelector('[data-testid=account-secret]') && document.querySelector('[data-token]')`)
			x.examine(p, at("account made"))
			p.Press("Put it away")
		}
		p.Key("Escape")
		p.Wait(`!document.querySelector('.mantine-Modal-body')`)
		p.Press("Keys")
		p.Wait(`document.querySelector('.mantine-Modal-body table')`)
		x.examine(p, at("harbour keys"))
		p.Key("Escape")
		p.Wait(`!document.querySelector('.mantine-Modal-body')`)
		p.Eval(`document.querySelector('.gantt canvas[role=application]').focus()`)
		p.Key("ArrowRight")
		p.Key("Enter")
		p.Wait(`document.querySelector('.mantine-Drawer-body table')`)
		x.examine(p, at("harbour details"))
		p.Key("Escape")
		p.Wait(`!document.querySelector('.mantine-Drawer-body')`)
		if role == service.Viewer {
			p.Visit(full.url + "/operate")
			p.Wait(`document.body.innerText.includes('may only look')`)
			x.examine(p, at("not permitted"))
		} else {
			x.userPages(p, at)
		}
		if role == service.Operator {
			visit(p, "Operate")
			part(p, "limits", "bob")
			p.Press("Make a token")
			enter(p, "User", "ann")
			enter(p, "Expires", "sometime")
			p.Wait(`document.querySelector('#tokens form').innerText.includes('want a length of time')`)
			x.examine(p, at("operate token"))
			enter(p, "Expires", "1d")
			p.Press("Make it")
			p.Wait(`document.querySelector('[data-testid=secret]')`)
			x.examine(p, at("operate token made"))
			p.Press("Put it away")
			p.Press("Plan maintenance")
			enter(p, "Name", "cooling")
			enter(p, "Begins", "sometime")
			p.Wait(`document.querySelector('#maintenance form').innerText.includes('want a time')`)
			x.examine(p, at("maintenance form"))
			enter(p, "Begins", "now+300d")
			p.Press("See what is in its way")
			p.Wait(`document.querySelector('[data-testid=tried]')`)
			x.examine(p, at("maintenance tried"))
			p.Press("Announce it")
			p.Wait(`document.querySelector('[data-testid=announced]') && document.querySelector('#maintenance tbody tr')`)
			x.examine(p, at("maintenance announced"))
			p.Press("Call off: cooling")
			p.Press("Yes, call it off: cooling")
			p.Wait(`document.querySelector('[data-testid=off]')`)
			p.Press("16 nodes, 1 not up of harbour")
			p.Press("n16")
			p.Press("Resume 1 node")
			p.Wait(`document.querySelector('form')`)
			x.examine(p, at("operate"))
		}
		x.trouble(p, role, at)
		p.Close()
		p = b.Open(wide)
		p.Visit(empty.link(who, role, ""))
		painted(p, 1)
		p.Wait(`document.querySelector('[data-testid=empty]')`)
		x.examine(p, at("empty harbour"))
		if role != service.Viewer {
			visit(p, "My promises")
			p.Wait(`document.querySelector('[data-testid=none]')`)
			x.examine(p, at("empty promises"))
			visit(p, "Workflow")
			p.Wait(`document.querySelector('.drop')`)
			x.examine(p, at("empty workflow"))
			visit(p, "Laboratory")
			p.Wait(`document.querySelector('[data-testid=none]')`)
			x.examine(p, at("empty laboratory"))
		}
		if role == service.Operator {
			visit(p, "Operate")
			part(p, "limits", "Nothing counts towards a limit")
			x.examine(p, at("empty operate"))
		}
		p.Close()
	}
	p := b.Open(wide)
	p.Visit(full.url + "/")
	p.Wait(`document.querySelector('input[type=password]')`)
	x.examine(p, "login")
	p.Eval(`document.querySelector('input[type=password]').focus()`)
	p.Type("berth_wrong")
	p.Key("Enter")
	p.Wait(`document.querySelector('[role=alert]')`)
	x.examine(p, "login wrong")
	p.Close()
	_, e, err := full.tokens.Add(token.Wanted{User: "alice", Role: service.User, Sites: service.NewSiteSet([]string{"elsewhere"})}, full.host.Now())
	if err != nil {
		t.Fatal(err)
	}
	p = b.Open(browser.Size{Width: 420, Height: 860})
	p.Visit(full.url + "/?t=yesterday#login=" + full.links.Make(e.ID, full.host.Now()))
	p.Wait(`document.body.innerText.includes('No site is open to you')`)
	x.examine(p, "no site on a phone")
	p.Close()
	t.Logf("%d states examined", x.seen)
}

// userPages examines what users and operators have.
func (x *examiner) userPages(p *browser.Page, at func(string) string) {
	visit(p, "Book")
	offered(p, "As asked")
	p.Wait(`document.querySelector('ul[aria-label=Offers] details')`)
	p.Eval(`document.querySelector('ul[aria-label=Offers] details').open = true`)
	x.examine(p, at("book"))
	enter(p, "PEs", "many")
	p.Wait(`document.body.innerText.includes('want a number of PEs')`)
	x.examine(p, at("book with a mistake"))
	enter(p, "PEs", "17")
	enter(p, "Deadline", "now+2h")
	p.Press("Promise it")
	p.Wait(`document.querySelector('[data-testid=promised], [data-testid=refused]')`)
	x.examine(p, at("book answered"))
	visit(p, "My promises")
	if strings.HasSuffix(at(""), "operator") {
		p.Press("Of everybody")
	}
	p.Wait(`document.querySelectorAll('table.list tbody tr').length > 3`)
	x.examine(p, at("promises"))
	p.Press("Details of alice-later")
	p.Wait(`document.querySelector('[data-testid=history]')?.innerText.includes('promised')`)
	x.examine(p, at("promise"))
	for _, form := range []string{"Change", "Extend", "Run a script", "Cancel it"} {
		p.Press(form)
		p.Wait(`document.querySelector('[data-testid=one] form, [data-testid=one] [aria-label="Cancel it"]')`)
		x.examine(p, at("promise "+strings.ToLower(form)))
		leave := "Leave it as it is"
		if form == "Cancel it" {
			leave = "Keep it"
		}
		p.Press(leave)
	}
	p.Key("Escape")
	p.Wait(`!document.querySelector('.mantine-Drawer-body')`)
	p.Press("Calendar feed")
	p.Press("Make one")
	p.Wait(`document.querySelector('[data-testid=address]') && document.querySelector('[data-testid=feeds] tbody tr')`)
	x.examine(p, at("feeds"))
	p.Key("Escape")
	p.Wait(`!document.querySelector('.mantine-Drawer-body')`)
	p.Press("Notices")
	p.Wait(`document.querySelector('[data-testid=hooks]')`)
	p.Press("Add a receiver")
	enter(p, "Address", "nowhere")
	p.Wait(`document.querySelector('[data-testid=hooks] form').innerText.includes('Want an address')`)
	x.examine(p, at("notices add"))
	enter(p, "Address", "http://127.0.0.1:9/"+strings.ReplaceAll(at("x"), " ", "-"))
	p.Press("Add it")
	p.Wait(`document.querySelector('[data-testid=secret] code')`)
	p.Wait(`document.querySelector('[data-testid=hooks] section button')`)
	p.Eval(`document.querySelector('[data-testid=hooks] section button').click()`)
	p.Press("Send a test")
	p.Wait(`document.querySelector('[data-testid=deliveries] tbody tr')`)
	x.examine(p, at("notices"))
	p.Press("Change")
	p.Wait(`document.querySelector('[data-testid=hooks] form')`)
	x.examine(p, at("notices change"))
	p.Press("Leave it as it is")
	p.Press("Remove")
	p.Press("Yes, remove it")
	p.Wait(`!document.querySelector('[data-testid=hooks] section')`)
	p.Key("Escape")
	p.Wait(`!document.querySelector('.mantine-Drawer-body')`)
	visit(p, "Book")
	p.Press("Repeat it")
	enter(p, "How often", "daily 04:00")
	enter(p, "How many times", "none")
	enter(p, "PEs", "1")
	p.Wait(`document.body.innerText.includes('want a whole number')`)
	x.examine(p, at("book a series with a mistake"))
	enter(p, "How many times", "3")
	enter(p, "Hold for", "10m")
	p.Press("Hold them")
	p.Wait(`document.querySelector('[data-testid=series] [data-testid=occurrences]')`)
	x.examine(p, at("series answered"))
	visit(p, "My promises")
	p.Wait(`document.querySelector('[data-testid=groups] tbody tr')`)
	x.examine(p, at("promises of a series"))
	p.Eval(`document.querySelector('[data-testid=groups] tbody button').click()`)
	p.Press("Change: 2")
	enter(p, "PEs", "100")
	p.Press("Change it")
	p.Wait(`document.querySelector('[data-testid=no]')`)
	x.examine(p, at("series that cannot change"))
	p.Press("Leave it as it is")
	p.Press("Cancel all that are left")
	x.examine(p, at("series"))
	p.Press("Yes, give back")
	p.Wait(`document.querySelector('[data-testid=one-series] [data-testid=done]')`)
	p.Key("Escape")
	p.Wait(`!document.querySelector('.mantine-Drawer-body')`)
	visit(p, "Workflow")
	p.Press("Take an example")
	curved(p)
	x.examine(p, at("workflow"))
	p.Press("As a table")
	p.Wait(`document.querySelector('table[aria-label="The plan"]')`)
	x.examine(p, at("workflow table"))
	p.Press("What could be had")
	p.Wait(`document.querySelector('ul[aria-label="What could be had"] li')`)
	x.examine(p, at("workflow offers"))
	p.Eval(`[...document.querySelectorAll('form[aria-labelledby=book-title] button')].find((b) => b.innerText.trim() === 'Hold').click()`)
	p.Wait(`document.querySelector('[data-testid=flow-one]')?.innerText.includes('held')`)
	x.examine(p, at("workflow held"))
	p.Press("Tasks as a table")
	p.Wait(`document.querySelector('table[aria-label="Tasks: planned and present"]')`)
	p.Press("Cancel all of it")
	x.examine(p, at("workflow cancel"))
	p.Press("Yes, cancel it")
	p.Press("Try again what has not succeeded")
	x.examine(p, at("workflow retry"))
	drop(p, "x.json", "{]")
	p.Wait(`document.querySelector('[data-testid=bad]')`)
	x.examine(p, at("workflow of a bad file"))
	visit(p, "Laboratory")
	p.Press("Compare")
	finished(p)
	x.examine(p, at("laboratory"))
	drop(p, "jobs.sacct", slurmLog)
	p.Wait(`document.querySelector('input[value^="jobs.sacct"]')`)
	enter(p, "Replications", "none")
	p.Wait(`document.body.innerText.includes('Want a whole number from 1 to 100')`)
	x.examine(p, at("laboratory with a mistake"))
	enter(p, "Replications", "8")
	p.Press("Compare")
	p.Wait(`document.querySelector('[data-testid=one] [role=alert]')?.innerText.includes('does not tell the size')`)
	x.examine(p, at("laboratory failed"))
	enter(p, "PEs of the machine", "64")
	enter(p, "Slack: deadline factors", "0.1, 4")
	p.Press("Compare")
	p.Wait(`document.querySelector('[data-testid=notes]')`)
	finished(p)
	x.examine(p, at("laboratory of a log"))
	drop(p, "log.swf.gz", x.log)
	p.Wait(`document.querySelector('input[value^="log.swf.gz"]')`)
	enter(p, "Replications", "100")
	p.Key("Enter")
	p.Wait(`/[1-9]\d* of \d+ runs/.test(document.querySelector('[data-testid=progress]')?.innerText)`)
	x.examine(p, at("laboratory running"))
	p.Press("Cancel")
	p.Wait(`document.querySelector('[data-testid=one]').innerText.includes('It was cancelled')`)
	x.examine(p, at("laboratory cancelled"))
}

// trouble examines pages that wait for the service, and whose service does not answer.
func (x *examiner) trouble(p *browser.Page, role service.Role, at func(string) string) {
	pages := []string{"Harbour", "Book", "My promises", "Workflow", "Laboratory"}
	switch role {
	case service.Viewer:
		return // there is nowhere to go to
	case service.Operator:
		pages = append(pages, "Operate")
	}
	for _, page := range pages {
		visit(p, page) // so that it is loaded
	}
	for _, state := range []struct{ name, fetch string }{{"waiting", `() => new Promise(() => {})`}, {"broken", `() => Promise.reject(new TypeError('gone'))`}} {
		p.Eval(`window.fetch = ` + state.fetch + `; 0`)
		visit(p, "Book")
		for _, page := range pages {
			visit(p, page)
			if state.name == "broken" {
				p.Wait(`document.querySelector('main').innerText.includes('The service does not answer')`)
			} else if page != "Book" { // whose form is there at once
				p.Wait(`document.querySelector('[aria-busy=true] .mantine-Skeleton-root')`)
			}
			x.examine(p, at(state.name+" "+strings.ToLower(page)))
		}
	}
}

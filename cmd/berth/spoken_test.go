package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/browser"
	"github.com/berth-hpc/berth/service"
)

// instants are times in what is spoken, which are others in each run.
var instants = regexp.MustCompile(`(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{4}-\d\d-\d\d \d\d:\d\d( – (?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{4}-\d\d-\d\d )?\d\d:\d\d)?|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ|[A-Z0-9]{26}|\d+ min(?: \d+ s)? left|\d+ h(?: \d+ min)? before`)

func timeless(text string) string {
	return instants.ReplaceAllStringFunc(text, func(is string) string {
		switch {
		case len(is) == 26 && !strings.ContainsAny(is, " :"):
			return "01M8…"
		case strings.HasSuffix(is, "Z"):
			return "2026-11-23T18:00:00Z"
		case strings.HasSuffix(is, "before"):
			return "5 h before"
		case strings.HasSuffix(is, "left"):
			return "10 min left"
		case strings.Contains(is, "–"):
			return "Mon 2026-11-23 08:00 – 09:00"
		}
		return "Mon 2026-11-23 18:00"
	})
}

// A promise is booked by keys alone with what a screen reader is told, which docs/screen-reader.md
// has word for word, but for the times.
func TestBookingIsSpoken(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour")
	q.reserve("bob", "harbour", "b", 16, 0, 6*3600, 0)
	p := b.Open(wide)
	p.Visit(q.link("alice", service.User, ""))
	painted(p, 1)
	var said []string
	say := func(key, what string) {
		said = append(said, strings.TrimRight(key+strings.Repeat(" ", max(1, 12-len(key)))+timeless(what), " "))
	}
	keyTo := func(key, what string) {
		t.Helper()
		for range 40 {
			p.Key(key)
			is := p.Focused()
			say(key, is)
			if strings.HasPrefix(is, what) {
				return
			}
		}
		t.Fatalf("%s does not reach %s", key, what)
	}
	tabTo := func(what string) { t.Helper(); keyTo("Tab", what) }
	alerts := func(id string) {
		p.Wait(`document.querySelector('[data-testid=` + id + `]')`)
		for _, line := range p.Tree("alert") {
			say("", line)
		}
	}
	tabTo(`link "Book"`)
	p.Key("Enter")
	offered(p, "As asked")
	p.Wait(`[...document.querySelectorAll('button')].some((b) => b.innerText.includes('When it can start'))`)
	said = append(said, "", "Enter opens the page. Its form and what could be had:", "")
	tree := p.Tree("main")
	for _, line := range tree {
		said = append(said, timeless(line))
	}
	said = append(said, "")
	tabTo(`textbox "PEs"`)
	p.Eval(`document.activeElement.select()`)
	p.Type("4")
	say("4", p.Focused())
	tabTo(`textbox "Duration"`)
	tabTo(`textbox "Not before"`)
	tabTo(`textbox "Deadline"`)
	p.Eval(`document.activeElement.select()`)
	p.Type("now+3h")
	say("now+3h", p.Focused())
	tabTo(`button "Promise it"`)
	p.Key("Enter")
	said = append(said, "", "Enter asks for it. All PEs are held by another user, so it is refused, and said at once:", "")
	alerts("refused")
	said = append(said, "")
	tabTo(`button "Hold for 10 min: Later"`)
	p.Key("Enter")
	said = append(said, "", "Enter holds that offer:", "")
	alerts("held")
	said = append(said, "")
	keyTo("Tab", `button "Confirm"`)
	p.Key("Enter")
	said = append(said, "", "Enter confirms it:", "")
	alerts("promised")
	if n := len(q.of("alice", service.Confirmed)); n != 1 {
		t.Errorf("%d promises, want one", n)
	}
	noFaults(t, p)
	path := filepath.Join("..", "..", "docs", "screen-reader.md")
	doc, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(doc), "```text\n")
	is, after, found := strings.Cut(rest, "```")
	want := strings.Join(said, "\n") + "\n"
	if *update && found {
		if err := os.WriteFile(path, []byte(before+"```text\n"+want+"```"+after), 0o644); err != nil { //nolint:gosec // a document, for everybody
			t.Fatal(err)
		}
		return
	}
	if is != want {
		t.Errorf("docs/screen-reader.md has\n%s\nand what is spoken is\n%s\nLook at it, and run this test with -update", is, want)
	}
}

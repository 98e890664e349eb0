package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/browser"
	"github.com/berth-hpc/berth/service"
)

const giveBack = `document.querySelector('[data-testid=one-series] [data-testid=done]')?.innerText.includes(%q)`

// states waits until the occurrences that are shown are in some states, in order.
func states(p *browser.Page, want string) {
	p.Wait(fmt.Sprintf(`[...document.querySelectorAll('[data-testid=occurrences] tbody tr')].map((r) => r.cells[1].innerText).join() === %q`, want))
}

// The page asks for a series, tells what could be had instead of occurrences that cannot be promised, and takes an offer. The list shows
// one series. One occurrence is skipped, then those after another are given back, then all.
func TestSeriesInABrowser(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	q := newQuay(t, "harbour")
	q.reserve("bob", "harbour", "b", 16, 25*3600, 4*3600, 0)
	p := b.Open(wide)
	p.Visit(q.link("alice", service.User, "book?tz=Europe/Berlin"))
	offered(p, "As asked")
	enter(p, "Not before", "now+2h")
	p.Press("Repeat it")
	p.Wait(`document.body.innerText.includes('by the clock of Europe/Berlin')`)
	enter(p, "How often", "daily")
	enter(p, "How many times", " ")
	p.Wait(`document.body.innerText.includes('Want how many times, the latest start, or how far ahead')`)
	enter(p, "How many times", "4")
	p.Wait(`document.body.innerText.includes('--repeat daily --tz Europe/Berlin --times 4')`)
	p.Press("Promise them")
	p.Wait(`document.querySelector('[data-testid=series]')?.innerText.includes('Refused: none is promised')`)
	if list := q.of("alice"); len(list) != 0 {
		t.Errorf("refused, but there are %d reservations", len(list))
	}
	shot(p, "series-refused-light")
	enter(p, "At least this many, or none", "2")
	p.Press("Promise them")
	p.Wait(`document.querySelector('[data-testid=series]')?.innerText.includes('Some cannot be') && document.querySelector('[data-testid=series]').innerText.includes('3 of 4 are promised')`)
	states(p, "confirmed,refused,confirmed,confirmed")
	shot(p, "series-partly-light")
	p.Wait(`document.querySelector('[aria-label^="Take for occurrence 2: Later"]')`)
	name := p.Eval(`document.querySelector('[aria-label^="Take for occurrence 2: Later"]').getAttribute('aria-label')`).(string)
	p.Press(name)
	states(p, "confirmed,confirmed,confirmed,confirmed")
	if list := q.of("alice", service.Confirmed); len(list) != 4 {
		t.Errorf("%d are confirmed, want 4", len(list))
	}
	look := p.Eval(`[...document.querySelectorAll("[data-testid=series] a")].find((a) => a.innerText === "Look at it").href`).(string)
	p.Visit(look)
	p.Wait(`document.querySelector('[data-testid=one-series]')?.innerText.includes('daily, Europe/Berlin')`)
	p.Wait(`document.querySelector('[data-testid=one-series]').innerText.includes('4 of 4 to come or running')`)
	shot(p, "series-light")
	p.Press("Skip: 3")
	p.Press("Keep it")
	p.Press("Skip: 3")
	p.Wait(`document.querySelector('[data-testid=one-series]').innerText.includes('Skip occurrence 3?')`)
	p.Press("Yes, give back")
	p.Wait(`/berth series skip \S+ 3/.test(document.querySelector('[data-testid=one-series] [data-testid=done]')?.innerText)`)
	states(p, "confirmed,confirmed,cancelled,confirmed")
	p.Press("This and later: 2")
	p.Press("Yes, give back")
	p.Wait(`/berth series cancel \S+ --from 2/.test(document.querySelector('[data-testid=one-series] [data-testid=done]')?.innerText)`)
	states(p, "confirmed,cancelled,cancelled,cancelled")
	p.Key("Escape")
	p.Wait(`!document.querySelector('.mantine-Drawer-body')`)
	p.Wait(`document.querySelector('[data-testid=groups] tbody tr')?.innerText.includes('1 of 4 to come')`)
	if p.Eval(`document.querySelectorAll('table[aria-label="My promises"] tbody tr').length`) != 0.0 {
		t.Error("an occurrence stands beside its series")
	}
	p.Press("Occurrences one by one")
	p.Wait(`document.querySelectorAll('table[aria-label="My promises"] tbody tr').length === 1`)
	shot(p, "promises-series-light")
	p.Eval(`document.querySelector('[data-testid=groups] tbody button').click()`)
	p.Press("Cancel all that are left")
	p.Press("Yes, give back")
	p.Wait(`/berth series cancel [^ ]+$/m.test(document.querySelector('[data-testid=one-series] [data-testid=done]')?.innerText.replace('\nCopy', ''))`)
	states(p, "cancelled,cancelled,cancelled,cancelled")
	if list := q.of("alice", service.Confirmed, service.Held); len(list) != 0 {
		t.Errorf("all are given back, but %d are there", len(list))
	}
	noFaults(t, p)
}

// A series has exceptions and additions, by the clock of its zone, and is held until it is confirmed: all of it by one press.
func TestSeriesWithExceptionsIsHeld(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour")
	// Each day at the full hour that comes half a day from now at the latest, so that no test runs across one.
	first := time.Unix(int64(q.host.Now()), 0).UTC().Add(12 * time.Hour).Truncate(time.Hour)
	const minute = "2006-01-02 15:04"
	h := &hands{t, b.Open(wide)}
	h.Visit(q.link("alice", service.User, "book?tz=UTC"))
	offered(h.Page, "As asked")
	h.to("Repeat it")
	h.Key(" ")
	h.to("How often")
	h.retype("daily " + first.Format("15:04"))
	h.to("How many times")
	h.retype("4")
	h.to("Not on")
	h.Type("christmas")
	h.Wait(`document.body.innerText.includes('christmas: want days or times')`)
	h.retype(first.AddDate(0, 0, 20).Format(time.DateOnly))
	h.to("Also at")
	h.Type(first.Format(time.DateOnly))
	h.Wait(`document.body.innerText.includes('want times with commas between')`)
	h.retype(first.Add(2 * time.Hour).Format(minute))
	h.to("Hold for")
	h.Type("soon")
	h.Wait(`document.body.innerText.includes('soon: want a length of time')`)
	h.retype("20 min")
	h.to("Hold them")
	h.Key("Enter")
	h.Wait(`document.querySelector('[role=alert]')?.innerText.includes('is no time at which it occurs')`) // as the service says
	h.back("Not on")
	h.retype(first.AddDate(0, 0, 1).Format(time.DateOnly))
	h.Wait(fmt.Sprintf(`document.body.innerText.includes("--times 4 --except %s --add '%s' --hold=20m")`, first.AddDate(0, 0, 1).Format(time.DateOnly), first.Add(2*time.Hour).Format(minute)))
	shot(h.Page, "series-form-light")
	h.to("Hold them")
	h.Key("Enter")
	h.Wait(`/Held for you/.test(document.querySelector('[data-testid=series]')?.innerText) && document.querySelector('[data-testid=series]').innerText.includes('4 of 4 are held until')`)
	states(h.Page, "held,held,held,held")
	shot(h.Page, "series-held-light")
	var starts []time.Time
	for _, r := range q.of("alice", service.Held) {
		starts = append(starts, time.Unix(int64(r.Allotments[0].Start), 0).UTC())
	}
	slices.SortFunc(starts, time.Time.Compare)
	if want := []time.Time{first, first.Add(2 * time.Hour), first.AddDate(0, 0, 2), first.AddDate(0, 0, 3)}; !slices.Equal(starts, want) {
		t.Errorf("held are %v, want %v", starts, want)
	}
	h.to("Confirm 4 held")
	h.Key("Enter")
	states(h.Page, "confirmed,confirmed,confirmed,confirmed")
	h.Wait(`document.querySelector('[data-testid=series]').innerText.includes('4 of 4 are promised')`)
	h.Wait(`document.activeElement !== document.body`)
	if n := len(q.of("alice", service.Confirmed)); n != 4 {
		t.Errorf("%d are confirmed, want 4", n)
	}
	h.Faults() // of the exception that was none
}

// A series is asked for, looked at and given back with the keyboard alone. Held occurrences are confirmed together, others do
// not see it, and a repeated press is one series.
func TestSeriesByKeys(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour")
	h := &hands{t, b.Open(wide)}
	h.Visit(q.link("alice", service.User, "book?tz=UTC"))
	offered(h.Page, "As asked")
	h.to("Repeat it")
	h.Key(" ")
	h.to("How often")
	h.retype("RRULE:FREQ=DAILY;BYHOUR=9;BYMINUTE=0")
	h.to("How many times")
	h.retype("3")
	h.to("Promise them")
	h.Key("Enter")
	h.Wait(`document.querySelector('[data-testid=series]')?.innerText.includes('All are promised')`)
	h.on("What came of it, and the pictures")
	h.back("Promise them")
	h.Key("Enter")
	h.Wait(`document.querySelector('[data-testid=series]')`)
	h.back("My promises")
	h.Key("Enter")
	h.Wait(`document.querySelectorAll('[data-testid=groups] tbody tr').length === 1`)
	h.Wait(`document.querySelector('[data-testid=groups] tbody').innerText.includes('every day at 09:00, UTC')`)
	list := q.of("alice", service.Confirmed)
	if len(list) != 3 {
		t.Fatalf("%d are confirmed, want 3", len(list))
	}
	id := strings.TrimSuffix(list[0].ID, ".1")
	h.to("Details of series " + id)
	h.Key("Enter")
	h.Wait(`document.querySelector('[data-testid=one-series] [data-testid=occurrences]')`)
	h.to("Skip: 1")
	h.Key("Enter")
	h.on("Yes, give back")
	h.Key("Enter")
	h.Wait(fmt.Sprintf(giveBack, "berth series skip "+id+" 1"))
	h.on("The series")
	states(h.Page, "cancelled,confirmed,confirmed")
	h.Key("Escape")
	h.Wait(`!document.querySelector('.mantine-Drawer-body')`)

	now := q.host.Now()
	r := berth.Rigid("h", now, now, now.Add(3600), 1, 3600)
	r.Hold, r.Site = 1800, "harbour"
	s := berth.Series{Rule: "daily", Zone: "UTC", Least: 1, Request: r}
	for i := range berth.Time(2) {
		s.Occurrences = append(s.Occurrences, berth.Occurrence{Ready: now + 86_400*(i+1), Deadline: now + 86_400*(i+1) + 3600})
	}
	s.Request.Ready, s.Request.Deadline = s.Occurrences[0].Ready, s.Occurrences[0].Deadline
	made, err := q.host.SubmitSeries(t.Context(), q.ask("alice"), s)
	if err != nil {
		t.Fatal(err)
	}
	h.Visit(q.url + "/promises?series=" + made.Series.Series.ID)
	h.Wait(`document.querySelector('[data-testid=one-series] [data-testid=occurrences]')`)
	h.to("Confirm 2 held")
	h.Key("Enter")
	h.Wait(fmt.Sprintf(giveBack, "berth series confirm "))
	states(h.Page, "confirmed,confirmed")
	bob := b.Open(wide)
	bob.Visit(q.link("bob", service.User, "promises?series="+made.Series.Series.ID))
	bob.Wait(`document.querySelector('.mantine-Drawer-body')?.innerText.includes('This series is not yours')`)
	if bob.Eval(`document.querySelector('[data-testid=groups]') === null`) != true {
		t.Error("bob has a series in the list")
	}
	noFaults(t, h.Page)
}

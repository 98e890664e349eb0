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

const seriesText = `document.querySelector('[data-testid=one-series]')?.innerText`

// starts are when what a user has confirmed starts, and with how many PEs, in order.
func (q *quay) starts(user string) (at []time.Time, pes []berth.Count) {
	list := q.of(user, service.Confirmed)
	slices.SortFunc(list, func(a, b service.Reservation) int { return int(a.Allotments[0].Start - b.Allotments[0].Start) })
	for i := range list {
		at = append(at, time.Unix(int64(list[i].Allotments[0].Start), 0).UTC())
		pes = append(pes, list[i].Allotments[0].NPE)
	}
	return at, pes
}

// An open series is asked for by the form and says until when it is promised. One occurrence changes, then all, and a
// change that cannot be is told for each and changes none. One that is still to come is left out, then no more is asked for.
func TestOpenSeriesInABrowser(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour")
	// Each day at a full hour some half a day from now, so that five are within five days and no test runs across one.
	first := time.Unix(int64(q.host.Now()), 0).UTC().Add(13 * time.Hour).Truncate(time.Hour)
	p := b.Open(wide)
	p.Visit(q.link("alice", service.User, "book?tz=UTC"))
	offered(p, "As asked")
	p.Press("Repeat it")
	enter(p, "How often", "daily "+first.Format("15:04"))
	enter(p, "Promised how far ahead", "42")
	p.Wait(`document.body.innerText.includes('42: want a length of time')`)
	enter(p, "Promised how far ahead", "5d")
	enter(p, "How many times", " ")
	p.Wait(`document.body.innerText.includes('No end: it goes on until you end it')`)
	p.Wait(fmt.Sprintf(`document.body.innerText.includes("berth reserve --npe 1 --duration 1h --repeat 'daily %s' --tz UTC --ahead 5d")`, first.Format("15:04")))
	shot(p, "series-open-form-light")
	p.Press("Promise them")
	p.Wait(fmt.Sprintf(`/All are promised[^]*5 of 5 are promised[^]*Promised 5 d ahead, until ... %s[^]*The next is asked for/.test(document.querySelector('[data-testid=series]')?.innerText)`, first.AddDate(0, 0, 4).Format(time.DateOnly)))
	shot(p, "series-open-answered-light")
	list := q.of("alice", service.Confirmed)
	if len(list) != 5 {
		t.Fatalf("%d are confirmed, want 5", len(list))
	}
	id := list[0].Request.Series.Series
	visit(p, "My promises")
	p.Wait(`/0?5 of 5 to come[^]*open, promised until/.test(document.querySelector('[data-testid=groups] tbody')?.innerText)`)
	p.Press("Details of series " + id)
	p.Wait(seriesText + `?.includes('Promised 5 d ahead')`)
	shot(p, "series-open-light")

	done := func(line string) {
		t.Helper()
		p.Wait(fmt.Sprintf(`document.querySelector('[data-testid=one-series] [data-testid=done]')?.innerText.includes(%q)`, line))
	}
	p.Press("Change: 2")
	enter(p, "PEs", "4")
	p.Wait(fmt.Sprintf(`%s.includes('berth series modify %s --from 2 --to 2 --npe 4')`, seriesText, id))
	p.Press("Change it")
	done("berth series modify " + id + " --from 2 --to 2 --npe 4")
	p.Press("Change those to come")
	enter(p, "Later by", "-1h")
	p.Wait(seriesText + `.includes('1 h earlier') && ` + seriesText + `.includes('What is still to be asked for changes too')`)
	shot(p, "series-change-light")
	p.Press("Change them")
	done("berth series modify " + id + " --earlier 1h")
	p.Wait(seriesText + `.includes('occurrences 1 to') && ` + seriesText + `.includes('1 h earlier')`) // than the rule says
	p.Wait(fmt.Sprintf(`%s.includes('until %s UTC')`, seriesText, first.AddDate(0, 0, 4).Add(-time.Hour).Format("Mon "+time.DateOnly+" 15:04")))
	at, pes := q.starts("alice")
	for i, is := range at {
		if want := first.AddDate(0, 0, i).Add(-time.Hour); !is.Equal(want) {
			t.Errorf("occurrence %d starts at %s, want %s", i+1, is, want)
		}
	}
	if !slices.Equal(pes, []berth.Count{1, 4, 1, 1, 1}) {
		t.Errorf("they have %v PEs, want 4 of the second", pes)
	}

	p.Press("Change: 4")
	enter(p, "PEs", "17")
	h := &hands{t, p}
	h.back("Which")
	h.take("Which", "Occurrence 4 and those after it")
	p.Press("Change them")
	p.Wait(`/Refused: none has changed[^]*Occurrence 4: [^]*Occurrence 5: /.test(document.querySelector('[data-testid=no]')?.innerText)`)
	p.Wait(`document.querySelector('form[aria-label="Change occurrence 4"]')`) // the form stays
	shot(p, "series-change-refused-light")
	if _, is := q.starts("alice"); !slices.Equal(is, pes) {
		t.Errorf("they have %v PEs after a change that was refused, want %v", is, pes)
	}
	p.Press("Leave it as it is")
	p.Wait(`!document.querySelector('[data-testid=no]')`)

	p.Press("Leave out a later one")
	enter(p, "Its number", "5")
	p.Wait(seriesText + `.includes('5: want the number of one that has had no turn yet, from 6 on')`)
	enter(p, "Its number", "7")
	p.Press("Skip")
	done("berth series skip " + id + " 7")
	p.Wait(seriesText + `.includes('Left out: 7.')`)
	p.Press("Ask for no more")
	p.Press("Keep it")
	p.Press("Ask for no more")
	p.Press("Yes, end it")
	done("berth series cancel " + id + " --from 6")
	p.Wait(seriesText + `.includes('Nothing more is asked for.') && ` + seriesText + `.includes('5 of 5 to come')`)
	if p.Eval(seriesText+`.includes('Leave out a later one')`) == true {
		t.Error("what has ended could still be left out")
	}
	shot(p, "series-ended-light")
	if n := len(q.of("alice", service.Confirmed)); n != 5 {
		t.Errorf("%d are confirmed once no more is asked for, want 5", n)
	}
	if faults := p.Faults(); len(faults) > 0 {
		t.Errorf("the page complains: %q", strings.Join(faults, "\n"))
	}

	// The occurrence leads to its series.
	p.Visit(q.url + "/promises?tz=UTC&sel=" + id + ".2")
	p.Press("occurrence 2")
	p.Wait(seriesText + `?.includes('Promised 5 d ahead')`)
}

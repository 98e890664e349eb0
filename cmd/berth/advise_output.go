package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/berth-hpc/berth/advise"
	"github.com/berth-hpc/berth/measure"
)

// adviceWidth is how many columns the page has.
const adviceWidth = 100

// printAdviceJSON writes the advice for programs.
func printAdviceJSON(w io.Writer, title string, advice *advise.Advice) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(struct {
		Title string `json:"title"`
		*advise.Advice
	}{title, advice})
}

// advicePart is a heading, a paragraph or a table of the advice.
type advicePart struct {
	Heading string // in HTML alone
	Text    string
	Apart   bool // from what is above it
	Table   table.Writer
}

// HTML is the table of a part; go-pretty escapes what is in it.
func (p advicePart) HTML() template.HTML { return template.HTML(p.Table.RenderHTML()) }

// adviceParts is the advice for people.
type adviceParts []advicePart

func (a *adviceParts) say(format string, args ...any) {
	*a = append(*a, advicePart{Text: fmt.Sprintf(format, args...)})
}

func (a *adviceParts) show(heading string, t table.Writer) {
	*a = append(*a, advicePart{Heading: heading}, advicePart{Table: t})
}

// advicePartsOf says what the advice is.
func advicePartsOf(title string, advice *advise.Advice) adviceParts {
	var parts adviceParts
	parts.say("%s: %d requests of %.0f days, in %d segments of at least %.1f days. Behind each mean is its 95 %% interval over the segments.", title, advice.Requests, advice.Days, advice.Segments, advice.Shortest)

	t := newTable("")
	t.AppendHeader(table.Row{"placement", "requests accepted, %", "PE-seconds accepted, %", "mean wait from ready, h"})
	best := &advice.Placements[0]
	for i := range advice.Placements {
		p := &advice.Placements[i]
		if p.Name == advice.Recommended {
			best = p
		}
		t.AppendRow(table.Row{p.Name, inPercent.estimate(p.Requests), inPercent.estimate(p.Work), inHours.estimate(p.Wait)})
	}
	parts.show("Which placement", t)
	parts.say("Recommended: %s, with which is all that follows.%s", advice.Recommended, against(advice.Comparisons))
	if best.Requests.Mean != nil && *best.Requests.Mean == 100 {
		parts.say("Everything is accepted: there was no refusal, and nothing to gain by more slack, another width or another notice.")
		parts[len(parts)-1].Apart = true
	} else {
		showChanges(&parts, advice)
		showRefusals(&parts, &advice.Refusals)
	}
	if len(advice.Shares) > 0 {
		showShares(&parts, advice)
	}
	if len(advice.Limits) > 0 {
		showLimits(&parts, advice)
	}
	return parts
}

// printAdvice writes the page for a terminal.
func printAdvice(w io.Writer, title string, advice *advise.Advice) error {
	var page strings.Builder
	for _, part := range advicePartsOf(title, advice) {
		switch {
		case part.Heading != "":
		case part.Table == nil:
			if part.Apart {
				page.WriteByte('\n')
			}
			wrap(&page, part.Text)
		default:
			page.WriteByte('\n')
			for line := range strings.Lines(part.Table.Render() + "\n") {
				page.WriteString(strings.TrimRight(line, " \n") + "\n")
			}
		}
	}
	_, err := io.WriteString(w, page.String())
	return err
}

//go:embed advise.tmpl.html
var advicePage string

var adviceTemplate = template.Must(template.New("advice").Parse(advicePage))

// printAdviceHTML writes the page for a browser. It needs nothing beside it.
func printAdviceHTML(w io.Writer, title string, advice *advise.Advice) error {
	var page bytes.Buffer
	if err := adviceTemplate.Execute(&page, struct {
		Title string
		Parts adviceParts
	}{title, advicePartsOf(title, advice)}); err != nil {
		return err
	}
	_, err := w.Write(page.Bytes())
	return err
}

func against(comparisons []advise.Comparison) string {
	var text strings.Builder
	for i := range comparisons {
		c := &comparisons[i]
		fmt.Fprintf(&text, " Against %s: %s; requests %s, PE-seconds %s points.", c.Against, c.Verdict, inPoints.estimate(c.Requests), inPoints.estimate(c.Work))
	}
	if len(comparisons) > 1 {
		text.WriteString(" These intervals hold all at once.")
	}
	return text.String()
}

func showChanges(parts *adviceParts, advice *advise.Advice) {
	t := newTable("")
	t.AppendHeader(table.Row{"if all had", "requests, points", "PE-seconds, points", "mean wait, h"})
	for i := range advice.Changes {
		c := &advice.Changes[i]
		t.AppendRow(table.Row{string(c.Trait) + ": " + c.Name, inPoints.estimate(c.Requests), inPoints.estimate(c.Work), moreHours.estimate(c.Wait)})
	}
	parts.show("If all asked differently", t)
	for i := range advice.Changes {
		c := &advice.Changes[i]
		if c.Trait != advise.Slack || c.Requests.CI95 == nil {
			continue
		}
		if c.Requests.CI95[0] <= 0 && c.Requests.CI95[1] >= 0 {
			parts.say("What an hour of slack more gives cannot be told from nothing: %s points of requests.", inPoints.estimate(c.Requests))
		} else {
			parts.say("An hour of slack more for all gives %s points of requests, and those that are accepted wait %s h longer.", inPercent.estimate(c.Requests), inHours.estimate(c.Wait))
		}
		break // the first is the hour
	}
}

func showRefusals(parts *adviceParts, r *advise.Refusals) {
	t := newTable("")
	t.AppendHeader(table.Row{fmt.Sprintf("%d of %d refusals: yes if", r.Sample, r.Refused), "possible", "a tenth needs", "half need at most", "nine tenths"})
	for i := range r.Ways {
		w := &r.Ways[i]
		u, name := inPercent, w.Name+", %"
		if w.Unit == "s" {
			u, name = inHours, w.Name+", h"
		}
		t.AppendRow(table.Row{
			name, ofOne.number(w.Possible) + " %", u.known(w.Tenth),
			u.estimate(measure.Estimate{Mean: w.Median, CI95: w.MedianCI95}), u.known(w.NineTenths),
		})
	}
	parts.show("What would turn a refusal into a yes", t)
	if r.HourLater != nil {
		parts.say("A deadline at most one hour later, for each alone, turns %s %% of the refusals into a yes.", ofOne.estimate(measure.Estimate{Mean: r.HourLater, CI95: r.HourLaterCI95}))
	}
}

func showShares(parts *adviceParts, advice *advise.Advice) {
	t := newTable("")
	t.AppendHeader(table.Row{"promised", "of these accepted, %", "jobs' mean wait, h more", "p95, h", "p95, % more"})
	for i := range advice.Shares {
		s := &advice.Shares[i]
		t.AppendRow(table.Row{
			sharePart(s.Share), inPercent.estimate(s.Accepted), moreHours.estimate(s.MeanGrowth), inHours.known(s.P95.Mean), inPoints.estimate(s.P95Percent),
		})
	}
	parts.show("What share may be promised", t)
	bound := strconv.FormatFloat(advice.Bound, 'g', -1, 64)
	switch {
	case advice.Surely != nil && *advice.Surely == *advice.Likely:
		parts.say("Up to %s may be promised before the wait of 95 of 100 jobs grows by more than %s %%.", sharePart(*advice.Surely), bound)
	case advice.Surely != nil:
		parts.say("Up to %s may be promised before the wait of 95 of 100 jobs grows by more than %s %%, by the upper ends of the intervals; by the means up to %s.", sharePart(*advice.Surely), bound, sharePart(*advice.Likely))
	case advice.Likely != nil:
		parts.say("By the means up to %s may be promised before the wait of 95 of 100 jobs grows by more than %s %%, but the intervals do not exclude that already %s is too much.", sharePart(*advice.Likely), bound, sharePart(advice.Shares[0].Share))
	case advice.Shares[0].P95Percent.Mean == nil:
		parts.say("Without promises 95 of 100 jobs do not wait at all, so no growth in %% can be told.")
	case holds(advice.Shares[0].P95Percent.CI95, advice.Bound):
		parts.say("By the mean already %s promised lets the wait of 95 of 100 jobs grow by more than %s %%, but its interval holds less too: this history does not tell.", sharePart(advice.Shares[0].Share), bound)
	default:
		parts.say("Already with %s promised the wait of 95 of 100 jobs grows by more than %s %%.", sharePart(advice.Shares[0].Share), bound)
	}
}

func showLimits(parts *adviceParts, advice *advise.Advice) {
	t := newTable("")
	asked := sharePart(advice.Limits[0].Share)
	t.AppendHeader(table.Row{"limit, " + asked + " ask", "of these accepted, %", "jobs' mean wait, h more", "p95, h", "p95, % more"})
	for i := range advice.Limits {
		l := &advice.Limits[i]
		t.AppendRow(table.Row{
			sharePart(l.Limit), inPercent.estimate(l.Accepted), moreHours.estimate(l.MeanGrowth), inHours.known(l.P95.Mean), inPoints.estimate(l.P95Percent),
		})
	}
	parts.show("What limit keeps waits short", t)
	bound := strconv.FormatFloat(advice.Bound, 'g', -1, 64)
	surely, likely := advice.LimitSurely, advice.LimitLikely
	switch {
	case surely != nil:
		parts.say("Where %s ask, a limit of %s of each pool (ahead: [{beyond: 1s, share: %s}] in a sites file) keeps the growth within %s %%, by the upper ends of the intervals.", asked, sharePart(*surely), strconv.FormatFloat(*surely, 'g', -1, 64), bound)
	case likely != nil:
		parts.say("Where %s ask, a limit of %s of each pool (ahead: [{beyond: 1s, share: %s}] in a sites file) keeps the growth within %s %% by the means, but the intervals do not exclude more.", asked, sharePart(*likely), strconv.FormatFloat(*likely, 'g', -1, 64), bound)
	case advice.Limits[0].P95Percent.Mean == nil:
		parts.say("Without promises 95 of 100 jobs do not wait at all, so no limit can be judged.")
	default:
		parts.say("Where %s ask, none of these limits keeps the growth within %s %% by the means.", asked, bound)
	}
}

// holds reports whether an interval reaches down to a bound.
func holds(interval *[2]float64, bound float64) bool { return interval != nil && interval[0] <= bound }

func sharePart(share float64) string { return strconv.FormatFloat(100*share, 'g', 6, 64) + " %" }

// unit is how numbers of the page are written: times a scale, with a plus in front of what is
// above 0 if wanted, with a number of decimals.
type unit struct {
	scale    float64
	plus     string
	decimals int
}

// The units of the page.
var (
	inPercent = unit{1, "", 1}
	inPoints  = unit{1, "+", 1}
	inHours   = unit{1.0 / 3600, "", 2} // of seconds
	moreHours = unit{1.0 / 3600, "+", 2}
	ofOne     = unit{100, "", 1} // per cent of a part of 1
)

// number writes a number with a proper minus.
func (u unit) number(x float64) string {
	x *= u.scale
	text := strconv.FormatFloat(math.Abs(x), 'f', u.decimals, 64)
	switch {
	case strings.Trim(text, "0.") == "":
		return text
	case x < 0:
		return "−" + text
	}
	return u.plus + text
}

// known writes a number that may be missing.
func (u unit) known(x *float64) string {
	if x == nil {
		return "–"
	}
	return u.number(*x)
}

// estimate writes a mean and its interval, as 2.1 (1.4 to 2.8).
func (u unit) estimate(e measure.Estimate) string {
	if e.Mean == nil {
		return "–"
	}
	text := u.number(*e.Mean)
	if u.plus = ""; e.CI95 != nil {
		text += " (" + u.number(e.CI95[0]) + " to " + u.number(e.CI95[1]) + ")"
	}
	return text
}

// wrap writes a paragraph in lines of the page.
func wrap(page *strings.Builder, text string) {
	at := 0
	for word := range strings.FieldsSeq(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case at == 0:
		case at+1+n > adviceWidth:
			page.WriteByte('\n')
			at = 0
		default:
			page.WriteByte(' ')
			at++
		}
		page.WriteString(word)
		at += n
	}
	page.WriteByte('\n')
}

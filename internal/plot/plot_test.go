package plot

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
)

// schedule makes n requests by a plain rule: each PE is busy until its last
// reservation ends, and a request takes the PEs that are free first. Wide
// requests that would wait too long are refused.
func schedule(seed uint64, n int, pes berth.Count) []berth.Line {
	rng := rand.New(rand.NewPCG(seed, 1))
	freeAt := make([]berth.Time, pes)
	arrival := berth.Time(7200)
	var lines []berth.Line
	for i := range n {
		arrival += berth.Time(rng.IntN(1800))
		npe := berth.Count(1) << rng.IntN(6)
		duration := berth.Duration(600 + rng.IntN(4*hour))
		ready := arrival + berth.Time(rng.IntN(3600))
		line := berth.Line{
			ID: string(rune('a' + i%26)), Kind: berth.KindRequest, Arrival: arrival, Ready: ready,
			Duration: duration, NPE: npe, Deadline: ready.Add(duration + 5*hour),
		}
		order := make([]berth.PE, pes)
		for pe := range order {
			order[pe] = berth.PE(pe)
		}
		slices.SortStableFunc(order, func(a, b berth.PE) int { return cmp.Compare(freeAt[a], freeAt[b]) })
		start := max(ready, freeAt[order[npe-1]])
		if end := start.Add(duration); end <= line.Deadline {
			line.Accepted, line.Start, line.End = true, &start, &end
			line.PEs = berth.PEsOf(order[:npe]...)
			for _, pe := range order[:npe] {
				freeAt[pe] = end
			}
		} else {
			line.Reason = berth.NoCapacity
		}
		lines = append(lines, line)
	}
	return lines
}

func seven(n int) Figure {
	figure := Figure{Title: "Seven policies", PEs: 64}
	for i, name := range []string{"first-fit", "pe-best", "pe-worst", "duration-best", "duration-worst", "area-best", "area-worst"} {
		figure.Runs = append(figure.Runs, Run{Title: name, Lines: berth.Each(schedule(uint64(i), n, 64))})
	}
	return figure
}

func render(t *testing.T, format string, figure Figure) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, format, figure); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// words returns all the text of an SVG in order, and fails on bad XML.
func words(t *testing.T, svg []byte) []string {
	t.Helper()
	var found []string
	decoder := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := token.(xml.CharData); ok && strings.TrimSpace(string(text)) != "" {
			found = append(found, string(text))
		}
	}
}

func TestSameFigureGivesSameBytes(t *testing.T) {
	for _, format := range Formats() {
		if !bytes.Equal(render(t, format, seven(60)), render(t, format, seven(60))) {
			t.Errorf("%s: two drawings of one figure differ", format)
		}
	}
}

func TestPNGHasTheSizeOfTheFigure(t *testing.T) {
	figure := seven(20)
	image, err := png.Decode(bytes.NewReader(render(t, "png", figure)))
	if err != nil {
		t.Fatal(err)
	}
	width, height := figure.size()
	if got := image.Bounds().Size(); got.X != int(width.Dots(pngDPI)+0.5) || got.Y != int(height.Dots(pngDPI)+0.5) {
		t.Errorf("got %v, want %.0f × %.0f", got, width.Dots(pngDPI), height.Dots(pngDPI))
	}
}

func TestEveryRunHasAPanelAndABar(t *testing.T) {
	figure := seven(60)
	found := words(t, render(t, "svg", figure))
	for _, run := range figure.Runs {
		if n := count(found, run.Title); n != 2 {
			t.Errorf("%s stands %d times in the figure, want once over its panel and once at its bars", run.Title, n)
		}
	}
	for _, word := range []string{figure.Title, "Accepted share", "of requests", "of PE-seconds", "PE number"} {
		if count(found, word) == 0 {
			t.Errorf("%q is missing from the figure", word)
		}
	}
}

func TestTitlesMayHoldAnything(t *testing.T) {
	figure := Figure{Title: `a <b> & "c"`, PEs: 64, Runs: []Run{{Title: "x", Lines: berth.Each(schedule(1, 5, 64))}}}
	if found := words(t, render(t, "svg", figure)); count(found, figure.Title) != 1 {
		t.Errorf("the title does not read back: %q", found)
	}
}

func TestBarsTellAcceptedShares(t *testing.T) {
	start, end := berth.Time(0), berth.Time(100)
	lines := []berth.Line{
		{Kind: berth.KindRequest, NPE: 1, Duration: 100, Accepted: true, Start: &start, End: &end, PEs: berth.PEsOf(0)},
		{Kind: berth.KindRequest, NPE: 3, Duration: 100, Reason: berth.NoCapacity},
		{Kind: berth.KindBooking, NPE: 9, Duration: 100, Start: &start, End: &end},
	}
	figure := Figure{Title: "t", PEs: 4, Runs: []Run{{Title: "a", Lines: berth.Each(lines)}, {Title: "b", Lines: berth.Each(lines)}}}
	found := words(t, render(t, "svg", figure))
	if count(found, "50.0 %") != 2 || count(found, "25.0 %") != 2 {
		t.Errorf("want half of the requests and a quarter of the PE-seconds for both runs, got %q", found)
	}
	if count(found, "1 of 2 requests accepted (50.0 %), 25.0 % of PE-seconds; refused: 1 no_capacity") != 2 {
		t.Errorf("the panels' headings are missing or wrong: %q", found)
	}
	figure.Shares = []Share{{Title: "given", Requests: 0.125, PESeconds: 1}}
	if found := words(t, render(t, "svg", figure)); count(found, "12.5 %") != 1 || count(found, "50.0 %") != 0 {
		t.Errorf("given shares are not the ones drawn: %q", found)
	}
}

func TestManyRectanglesBecomeALoad(t *testing.T) {
	figure := Figure{Title: "t", PEs: 64, Runs: []Run{{Title: "many", Lines: berth.Each(schedule(1, 20_000, 64))}}}
	svg := render(t, "svg", figure)
	if count(words(t, svg), "PEs reserved") != 1 {
		t.Error("20,000 reservations are still drawn one by one")
	}
	if len(svg) > 1<<20 {
		t.Errorf("the figure takes %d bytes", len(svg))
	}
}

func TestReservationsWithoutNumbersBecomeALoad(t *testing.T) {
	lines := schedule(1, 50, 64)
	for i := range lines {
		lines[i].PEs = berth.PESet{}
	}
	figure := Figure{Title: "t", PEs: 64, Runs: []Run{{Title: "late", Lines: berth.Each(lines)}}}
	if count(words(t, render(t, "svg", figure)), "PEs reserved") != 1 {
		t.Error("reservations without PE numbers must be drawn as a load")
	}
}

func TestNoRequestsIsSaid(t *testing.T) {
	figure := Figure{Title: "t", PEs: 7, Runs: []Run{{Title: "empty", Lines: berth.Each(nil)}}}
	if count(words(t, render(t, "svg", figure)), "no requests") != 1 {
		t.Error("an empty schedule should say so")
	}
}

func TestWrongFiguresAreInvalid(t *testing.T) {
	for name, try := range map[string]struct {
		format string
		figure Figure
	}{
		"no machine": {"svg", Figure{Runs: []Run{{}}}},
		"no runs":    {"svg", Figure{PEs: 1}},
		"no format":  {"gif", Figure{PEs: 1, Runs: []Run{{}}}},
	} {
		var wrong *berth.Error
		if err := Write(io.Discard, try.format, try.figure); !errors.As(err, &wrong) || wrong.Code != berth.Invalid {
			t.Errorf("%s: got %v, want an invalid argument", name, err)
		}
	}
}

func TestFormatOf(t *testing.T) {
	for name, want := range map[string]string{"a.svg": "svg", "dir.x/b.PNG": "png", "c.pdf": "", "svg": ""} {
		if got, ok := FormatOf(name); ok != (want != "") || ok && got != want {
			t.Errorf("FormatOf(%q) = %q, %v; want %q", name, got, ok, want)
		}
	}
}

func TestProfileKeepsTheArea(t *testing.T) {
	span := berth.Interval{Start: 100, End: 1100}
	load := make(profile, 7)
	load.add(span, berth.Interval{Start: 100, End: 130}, 5)
	load.add(span, berth.Interval{Start: 333, End: 999}, 2)
	load.add(span, berth.Interval{Start: 1000, End: 1100}, 3)
	var area float64
	for _, v := range load {
		area += v * 1000 / 7
	}
	if want := 30.0*5 + 666*2 + 100*3; area < want-1e-6 || area > want+1e-6 {
		t.Errorf("the profile holds %v PE-seconds, want %v", area, want)
	}
}

func TestTicksAreRoundAndFew(t *testing.T) {
	for _, test := range []struct {
		length berth.Duration
		want   string
	}{
		{1, "0"},
		{600, "0 1 2 3 4 5 6 7 8 9 10"},
		{2 * day, "0 6 12 18 24 30 36 42 48"},
		{5 * day, "0 1 2 3 4 5"},
		{1000 * day, "0 100 200 300 400 500 600 700 800 900 1,000"},
	} {
		var labels []string
		for _, tick := range timeTicks(test.length) {
			labels = append(labels, tick.label)
		}
		if got := strings.Join(labels, " "); got != test.want {
			t.Errorf("%d s: %s; want %s", test.length, got, test.want)
		}
	}
	if n := len(timeTicks(2 * berth.TimeLimit)); n > 11 {
		t.Errorf("the longest time has %d ticks", n)
	}
	for pes, want := range map[berth.Count]int{1: 2, 7: 4, 64: 5, 338: 4, 1024: 5, berth.MaxPEs: 5} {
		if got := len(peTicks(pes)); got != want {
			t.Errorf("%d PEs have %d ticks, want %d", pes, got, want)
		}
	}
}

func TestWaitClassesTakeTheirLimit(t *testing.T) {
	for wait, want := range map[berth.Duration]int{0: 0, 1: 1, hour: 1, hour + 1: 2, 12 * hour: 3, 13 * hour: 4, berth.Endless: 4} {
		if got := waitClass(wait); got != want {
			t.Errorf("a wait of %d s is in class %d, want %d", wait, got, want)
		}
	}
}

func TestGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567", -100: "-100"} {
		if got := grouped(n); got != want {
			t.Errorf("grouped(%d) = %s, want %s", n, got, want)
		}
	}
}

func count(words []string, word string) int {
	n := 0
	for _, w := range words {
		if w == word {
			n++
		}
	}
	return n
}

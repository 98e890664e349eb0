package plot

import (
	"bytes"
	"errors"
	"fmt"
	"image/png"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
)

// harbour is a plan of three tasks, two of them on the critical path, on eight
// PEs, some of them held by others.
func harbour() Gantt {
	return Gantt{
		Title: "bd-cpar: diamond", Facts: "turn-around 00:03:00", PEs: 8, Now: 100, Deadline: berth.Forever,
		Tasks: []Bar{
			{Label: "first", NPE: 4, Start: 100, End: 160, Critical: true},
			{Label: "second", NPE: 2, Start: 160, End: 200},
			{Label: "third", NPE: 6, Start: 160, End: 280, Critical: true},
		},
		Others: []Bar{
			{NPE: 8, Start: 0, End: 100}, {NPE: 4, Start: 50, End: 160}, {NPE: 2, Start: 200, End: 1000}, {NPE: 8, Start: 5000, End: 6000},
		},
	}
}

func drawGantt(t *testing.T, format string, g Gantt) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := WriteGantt(&out, format, g); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// colours counts how often a colour is used in an SVG.
func colours(svg []byte, fill string) int { return strings.Count(strings.ToLower(string(svg)), fill) }

func TestGanttTellsItsTasks(t *testing.T) {
	t.Parallel()
	svg := drawGantt(t, "svg", harbour())
	told := words(t, svg)
	for _, want := range []string{
		"bd-cpar: diamond", "turn-around 00:03:00", "first", "second", "third", "booked by others", "tasks", "tasks of the critical path",
		"time in minutes from now (second 100 of the bookings' clock); beside a task the PEs it has",
	} {
		if !slices.Contains(told, want) {
			t.Errorf("no %q among %q", want, told)
		}
	}
	if !bytes.Equal(svg, drawGantt(t, "svg", harbour())) {
		t.Error("the same chart has other bytes")
	}
	if _, err := png.Decode(bytes.NewReader(drawGantt(t, "png", harbour()))); err != nil {
		t.Error(err)
	}
}

// Bookings and the critical path have colours of their own: each stands in its
// key, and besides only where there is something of the kind.
func TestGanttColours(t *testing.T) {
	t.Parallel()
	all := drawGantt(t, "svg", harbour())
	alone := harbour()
	alone.Others = nil
	plain := harbour()
	for i := range plain.Tasks {
		plain.Tasks[i].Critical = false
	}
	const grey, vermilion = "#c9ced4", "#d55e00"
	if got, want := colours(drawGantt(t, "svg", alone), grey), 1; got != want || colours(all, grey) <= want {
		t.Errorf("grey %d times without bookings, %d with some; want %d and more", got, colours(all, grey), want)
	}
	if got, want := colours(drawGantt(t, "svg", plain), vermilion), 1; got != want || colours(all, vermilion) <= want {
		t.Errorf("vermilion %d times without a critical path, %d with one; want %d and more", got, colours(all, vermilion), want)
	}
}

// Others are drawn from the lowest PE on, tasks from the highest.
func TestGanttParts(t *testing.T) {
	t.Parallel()
	g := harbour()
	blocks, ok := g.place(g.span(), loneRectangles)
	var got []string
	for _, b := range blocks {
		got = append(got, fmt.Sprintf("%s%d at %s", b.Label, b.Start, berth.NewPESet(b.pes...)))
	}
	want := []string{"50 at 0-3", "first100 at 4-7", "second160 at 6-7", "third160 at 0-5", "200 at 6-7"}
	if !ok || !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestGanttDeadline(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		deadline, end berth.Time // and the end of the chart
		told          string
	}{
		{berth.Forever, 284, ""},
		{290, 294, "deadline, second 290"},
		{1_000_000, 468, "deadline, second 1,000,000, beyond the chart"},
	} {
		g := harbour()
		g.Deadline = c.deadline
		if got := g.span(); got.Start != 100 || got.End != c.end {
			t.Errorf("deadline %d: the chart is %v, want it to end at %d", c.deadline, got, c.end)
		}
		told := slices.DeleteFunc(words(t, drawGantt(t, "svg", g)), func(word string) bool { return !strings.HasPrefix(word, "deadline") })
		if strings.Join(told, "; ") != c.told {
			t.Errorf("deadline %d: %q, want %q", c.deadline, told, c.told)
		}
	}
}

// Many bars become a profile, many tasks lose their names, and the file stays
// small.
func TestGanttStaysSmall(t *testing.T) {
	t.Parallel()
	g := Gantt{PEs: 64, Deadline: berth.Forever}
	for i := range 20_000 {
		at := berth.Time(i)
		g.Others = append(g.Others, Bar{NPE: 32, Start: at, End: at + 1})
		g.Tasks = append(g.Tasks, Bar{Label: fmt.Sprint("t", i), NPE: 1 + berth.Count(i%32), Start: at, End: at + 1, Critical: i%5 == 0})
	}
	if _, ok := g.place(g.span(), loneRectangles); ok {
		t.Error("40000 bars are drawn one by one")
	}
	svg := drawGantt(t, "svg", g)
	if len(svg) > 3<<20 {
		t.Errorf("%d bytes", len(svg))
	}
	if told := words(t, svg); slices.Contains(told, "t0") {
		t.Error("20000 tasks have names")
	}
}

func TestGanttRefusals(t *testing.T) {
	t.Parallel()
	g := harbour()
	var coded *berth.Error
	if err := WriteGantt(&bytes.Buffer{}, "pdf", g); !errors.As(err, &coded) || coded.Field != "format" {
		t.Errorf("%v", err)
	}
	g.PEs = 0
	if err := WriteGantt(&bytes.Buffer{}, "svg", g); !errors.As(err, &coded) || coded.Field != "pes" {
		t.Errorf("%v", err)
	}
}

// Bars that fit by their counts get PEs: as many as they take, inside the site,
// and none twice at a time. Bars that do not fit get none.
func TestGanttPlacesWhatFits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := Gantt{PEs: berth.Count(rapid.IntRange(1, 12).Draw(t, "pes")), Now: 0, Deadline: 40}
		bars := func(what string) []Bar {
			var bars []Bar
			for range rapid.IntRange(0, 8).Draw(t, what) {
				start := berth.Time(rapid.IntRange(-5, 30).Draw(t, "start"))
				bars = append(bars, Bar{
					NPE: berth.Count(rapid.IntRange(1, 5).Draw(t, "npe")), Start: start, End: start + berth.Time(rapid.IntRange(1, 20).Draw(t, "length")),
				})
			}
			return bars
		}
		g.Others, g.Tasks = bars("others"), bars("tasks")
		span := g.span()
		fits := true
		for at := berth.Time(-5); at < span.End; at++ {
			taken := berth.Count(0)
			for _, b := range slices.Concat(g.Others, g.Tasks) {
				if b.End > span.Start && b.Start <= at && at < b.End {
					taken += b.NPE
				}
			}
			fits = fits && taken <= g.PEs
		}
		blocks, ok := g.place(span, 1000)
		if ok != fits {
			t.Fatalf("placed: %v, fits: %v", ok, fits)
		}
		for i, b := range blocks {
			pes := berth.NewPESet(b.pes...)
			if pes.Count() != b.NPE || pes.Max() >= berth.PE(g.PEs) {
				t.Fatalf("%+v is drawn at %s", b.Bar, pes)
			}
			for _, o := range blocks[:i] {
				if o.End > b.Start && o.Start < b.End && !berth.NewPESet(o.pes...).And(pes).Empty() {
					t.Fatalf("%+v and %+v share PEs", o, b)
				}
			}
		}
	})
}

package api_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/service"
)

// written is a picture as a client reads it.
type written struct {
	Magic                                 [4]byte
	Form                                  uint32
	T0                                    int64
	Step, Width, Height, Count, Lo, Group uint32
	Generation, Event                     uint64
	PEs, Zero                             uint32
	start                                 []int32
	length, first, pes, number            []uint32
	class, flags                          []uint8
	cells                                 []byte
	free                                  []uint32
}

func readPicture(t rapid.TB, text string) written {
	t.Helper()
	var w written
	in := strings.NewReader(text)
	get := func(into any) {
		if err := binary.Read(in, binary.LittleEndian, into); err != nil {
			t.Fatalf("%d bytes: %v", len(text), err)
		}
	}
	get(&w.Magic)
	get(&w.Form)
	get(&w.T0)
	for _, field := range []*uint32{&w.Step, &w.Width, &w.Height, &w.Count, &w.Lo, &w.Group} {
		get(field)
	}
	get(&w.Generation)
	get(&w.Event)
	get(&w.PEs)
	get(&w.Zero)
	if w.Form == 1 {
		w.start = make([]int32, w.Count)
		get(w.start)
		for _, column := range []*[]uint32{&w.length, &w.first, &w.pes, &w.number} {
			*column = make([]uint32, w.Count)
			get(*column)
		}
		w.class, w.flags = make([]uint8, w.Count), make([]uint8, w.Count)
		get(w.class)
		get(w.flags)
	} else {
		w.cells = make([]byte, w.Width*w.Height)
		get(w.cells)
	}
	for in.Len()%4 != 0 {
		_, _ = in.ReadByte() // there is one
	}
	w.free = make([]uint32, w.Width)
	get(w.free)
	if string(w.Magic[:]) != "BGT1" || in.Len() != 0 || w.Zero != 0 {
		t.Fatalf("magic %q, %d bytes too many", w.Magic, in.Len())
	}
	return w
}

const wideView = "/v1/gantt?site=cm5&from=2026-11-21T00:00:00Z&to=2026-11-23T00:00:00Z"

// A picture says what is held and when, and names the owner only of one's own.
func TestPicturesNameNoOtherOwner(t *testing.T) {
	w := newWorld(t, api.Options{})
	id := into[form.Answer](t, w.do("alice", "POST", "/v1/requests", `{"software":"secret",`+askFor[1:]), 201).ID
	for user, mine := range map[string]uint8{"vera": 0, "bob": 0, "root": 0, "alice": 32} {
		a := w.do(user, "GET", wideView, "")
		if a.Code != 200 || a.Header().Get("Content-Type") != form.GanttType {
			t.Fatal(a.Code, a.Header(), a.text)
		}
		for _, word := range []string{id, "alice", "secret"} {
			if strings.Contains(a.text, word) {
				t.Errorf("%s reads %q", user, word)
			}
		}
		p := readPicture(t, a.text)
		// 17:00 is 17 hours behind midnight; 2 days are 1,440 steps of 2 minutes.
		if p.Form != 1 || p.T0 != 1795219200 || p.Step != 120 || p.Width != 1440 || p.Height != 100 || p.Count != 1 || p.Group != 1 || p.PEs != 100 || p.Event != 77 {
			t.Fatalf("%s: %+v", user, p)
		}
		if p.start[0] != 17*3600 || p.length[0] != 7200 || p.first[0] != 0 || p.pes[0] != 64 || p.number[0] != 1 || p.class[0] != 1 || p.flags[0] != 1|mine {
			t.Errorf("%s: %+v", user, p)
		}
		if p.free[17*30-1] != 100 || p.free[17*30] != 36 || p.free[19*30-1] != 36 || p.free[19*30] != 100 {
			t.Errorf("%s: free %v", user, p.free[17*30-2:19*30+2])
		}
	}
	spans := into[form.Occupation](t, w.do("bob", "GET", "/v1/sites/cm5/spans/1", ""), 200).Spans
	if len(spans) != 1 || spans[0].NPE != 64 || spans[0].ID != "" || spans[0].User != "" {
		t.Errorf("bob is told %+v", spans)
	}
	if spans := into[form.Occupation](t, w.do("alice", "GET", "/v1/sites/cm5/spans/1", ""), 200).Spans; spans[0].ID != id || spans[0].User != "alice" {
		t.Errorf("alice is told %+v", spans)
	}
	rows := into[form.Rows](t, w.do("vera", "GET", "/v1/gantt/rows?site=cm5", ""), 200)
	if want := (form.Rows{Site: "cm5", Pool: "batch", PEs: 100, Binding: "late", Rows: []form.Row{{Name: "n1", PEs: 50}, {Name: "n2", First: 50, PEs: 50}}}); fmt.Sprint(rows) != fmt.Sprint(want) {
		t.Errorf("rows %+v", rows)
	}
}

// Who has a picture is told that nothing changed; another user, window or generation is
// another picture.
func TestPicturesAreSentOnce(t *testing.T) {
	w := newWorld(t, api.Options{})
	w.reserve(t, "alice")
	first := w.do("alice", "GET", wideView, "")
	tag := first.Header().Get("ETag")
	if a := w.do("alice", "GET", wideView, "", "If-None-Match", tag); a.Code != 304 || a.text != "" || tag == "" {
		t.Errorf("%d with tag %q: %q", a.Code, tag, a.text)
	}
	for name, a := range map[string]*answer{
		"another user": w.do("bob", "GET", wideView, "", "If-None-Match", tag), "other PEs": w.do("alice", "GET", wideView+"&lo=1", "", "If-None-Match", tag),
		"fewer bars": w.do("alice", "GET", wideView+"&most=0", "", "If-None-Match", tag), "another tag": w.do("alice", "GET", wideView, "", "If-None-Match", `"x"`),
	} {
		if a.Code != 200 {
			t.Errorf("%s: %d", name, a.Code)
		}
	}
	w.reserve(t, "bob")
	if a := w.do("alice", "GET", wideView, "", "If-None-Match", tag); a.Code != 200 || readPicture(t, a.text).Count != 2 {
		t.Error(a.Code)
	}
	if a := w.do("alice", "GET", "/v1/gantt?site=cm5", ""); a.Code != 200 || a.Header().Get("ETag") != "" || a.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("a window that moves with the time: %d %v", a.Code, a.Header())
	}
}

func TestPicturesOfBadWindows(t *testing.T) {
	w := newWorld(t, api.Options{})
	for query, field := range map[string]string{
		"": "site: not given", "site=": "site: not given", "site=cm5&pool=": "", "site=cm5&from=2026-11-21": "from: ", "site=cm5&to=soon": "to: ", "site=cm5&lo=-1": "lo: ",
		"site=cm5&hi=0": "hi: ", "site=cm5&lo=7&hi=7": "hi: 7 is not behind lo", "site=cm5&most=50001": "most: ", "site=cm5&most=1e3": "most: ",
		"site=cm5&from=2026-11-21T00:00:00Z&to=2026-11-21T00:00:00Z": "to: not after from", "site=cm5&from=2026-11-21T00:00:00Z&to=2037-11-21T00:00:00Z": "to: more than ten years",
		"site=cm5&lo=100": "lo: 100; the pool has 100 PEs", "site=cm5&zoom=2": "zoom: ", "site=cm5&site=cm5": "site: given twice",
	} {
		if field != "" {
			wantProblem(t, w.do("vera", "GET", "/v1/gantt?"+query, ""), 422, field)
		}
	}
	wantProblem(t, w.do("vera", "GET", "/v1/gantt?site=cm6", ""), 404, "cm6")
	wantProblem(t, w.do("vera", "GET", "/v1/gantt?site=cm5&pool=", ""), 404, "pool")
	wantProblem(t, w.do("vera", "GET", "/v1/gantt/rows?site=cm5&pool=x", ""), 404, "pool")
	wantProblem(t, w.do("vera", "GET", "/v1/sites/cm5/spans/9", ""), 404, "9")
	wantProblem(t, w.do("vera", "GET", "/v1/sites/cm5/spans/-1", ""), 422, "number: ")
	wantProblem(t, w.do("vera", "GET", "/v1/sites/cm5/spans/99999999999", ""), 422, "number: ")
}

// putBar puts a bar into a picture. Where the PEs are held already it is an outage, since of
// the others a PE has one at a time.
func putBar(p *service.Picture, b service.Bar) {
	if slices.ContainsFunc(p.Pages[0], func(o service.Bar) bool {
		return o.Class != service.ClassOutage && o.Start < b.End && b.Start < o.End && o.First < b.First+berth.PE(b.PEs) && b.First < o.First+berth.PE(o.PEs)
	}) {
		b.Class = service.ClassOutage
	}
	p.Pages[0] = append(p.Pages[0], b)
}

// Cells and the strip are what counting PE by PE and second by second gives.
func TestCellsAreCounted(t *testing.T) {
	w := newWorld(t, api.Options{Limits: unlimited})
	generation := uint64(0)
	rapid.Check(t, func(t *rapid.T) {
		const size = 7
		from := berth.Time(rapid.IntRange(0, 119).Draw(t, "from")) + 1_795_219_200
		generation++
		p := &service.Picture{PEs: size, Generation: generation, Pages: make([][]service.Bar, 1)}
		for range rapid.IntRange(0, 6).Draw(t, "bars") {
			start := from + berth.Time(rapid.IntRange(-200, 400).Draw(t, "start"))
			first := rapid.IntRange(0, size-1).Draw(t, "first")
			putBar(p, service.Bar{
				Start: start, End: start + berth.Time(rapid.IntRange(1, 300).Draw(t, "length")), First: berth.PE(first),
				PEs: berth.Count(rapid.IntRange(1, size-first).Draw(t, "PEs")), Class: service.Class(rapid.IntRange(1, 4).Draw(t, "class")),
			})
		}
		slices.SortFunc(p.Pages[0], func(a, b service.Bar) int { return int(a.First - b.First) }) // as the service has them
		lo := rapid.IntRange(0, size-1).Draw(t, "lo")
		w.fake.picture = p
		a := w.do("vera", "GET", fmt.Sprintf("/v1/gantt?site=cm5&from=%s&to=%s&most=0&lo=%d", form.TimeOf(from), form.TimeOf(from+300), lo), "")
		got := readPicture(t, a.text)
		if some := slices.ContainsFunc(p.Pages[0], func(b service.Bar) bool {
			end := berth.Time(got.T0) + berth.Time(got.Width*got.Step)
			return int(b.First)+int(b.PEs) > lo && b.Start < end && b.End > berth.Time(got.T0)
		}); some != (got.Form == 2) {
			t.Fatalf("form %d of %+v", got.Form, p.Pages)
		}
		for x := range int(got.Width) {
			least := size
			counts := make([][5]int64, got.Height)
			for s := range int(got.Step) {
				at, free := berth.Time(got.T0)+berth.Time(x*int(got.Step)+s), 0
				for pe := range berth.PE(size) {
					held := false
					for _, b := range p.Pages[0] {
						if b.First <= pe && pe < b.First+berth.PE(b.PEs) && b.Start <= at && at < b.End {
							held = true
							if int(pe) >= lo {
								counts[int(pe)-lo][b.Class]++
							}
						}
					}
					if !held {
						free++
					}
				}
				least = min(least, free)
			}
			if int(got.free[x]) != least {
				t.Fatalf("bucket %d: %d free, want %d", x, got.free[x], least)
			}
			for y := range counts {
				if got.Form == 2 {
					if cell, want := got.cells[y*int(got.Width)+x], plainCell(counts[y], int64(got.Step)); cell != want {
						t.Fatalf("cell %d, %d is %#x, want %#x", x, y, cell, want)
					}
				}
			}
		}
	})
}

// The strip counts a PE once if outages are where it is held. Bars may span several words of PEs, windows
// may be long, and nothing beyond the pool is counted.
func TestStripIsCounted(t *testing.T) {
	w := newWorld(t, api.Options{Limits: unlimited})
	generation := uint64(0)
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int{1, 63, 64, 65, 200}).Draw(t, "size")
		length := berth.Time(rapid.SampledFrom([]int{300, 60 * 2048, 24 * 86_400, 9 * 366 * 86_400}).Draw(t, "window"))
		const from = berth.Time(1_795_219_200)
		generation++
		p := &service.Picture{PEs: berth.Count(size), Generation: generation, Pages: make([][]service.Bar, 1)}
		times := []berth.Time{from}
		instant := func(name string) berth.Time {
			at := from + berth.Time(rapid.Int64Range(-int64(length)/4, int64(length)*5/4).Draw(t, name))
			if rapid.Bool().Draw(t, "at once") { // what begins where another ends
				at = rapid.SampledFrom(times).Draw(t, name+" of another")
			}
			times = append(times, at)
			return at
		}
		for range rapid.IntRange(0, 12).Draw(t, "bars") {
			a, b := instant("start"), instant("end")
			bar := service.Bar{Start: min(a, b), End: max(a, b, min(a, b)+1), First: berth.PE(rapid.IntRange(0, size-1).Draw(t, "first")), Class: service.ClassPromise}
			bar.PEs = berth.Count(rapid.IntRange(1, size).Draw(t, "PEs"))
			if rapid.IntRange(0, 5).Draw(t, "unplaced") == 0 {
				bar.Flags = service.Provisional
				p.Unplaced = append(p.Unplaced, bar)
			} else {
				bar.Class = service.Class(rapid.IntRange(1, 4).Draw(t, "class"))
				putBar(p, bar)
			}
		}
		w.fake.picture = p
		got := readPicture(t, w.do("vera", "GET", fmt.Sprintf("/v1/gantt?site=cm5&from=%s&to=%s", form.TimeOf(from), form.TimeOf(from+length)), "").text)
		free := func(at berth.Time) int { // PE by PE
			held, n := make([]bool, size), size
			for _, b := range p.Pages[0] {
				for pe := int(b.First); b.Start <= at && at < b.End && pe < min(size, int(b.First)+int(b.PEs)); pe++ {
					held[pe] = true
				}
			}
			for _, is := range held {
				if is {
					n--
				}
			}
			for _, b := range p.Unplaced {
				if b.Start <= at && at < b.End {
					n -= int(b.PEs)
				}
			}
			return n
		}
		for x := range int(got.Width) {
			begin := berth.Time(got.T0) + berth.Time(x)*berth.Time(got.Step)
			least := free(begin)
			for _, at := range times {
				for _, at := range []berth.Time{at, at + 1} { // a bar lasts for a second at least
					if begin < at && at < begin+berth.Time(got.Step) {
						least = min(least, free(at))
					}
				}
			}
			if int(got.free[x]) != max(least, 0) {
				t.Fatalf("bucket %d: %d free, want %d", x, got.free[x], least)
			}
		}
	})
}

func plainCell(seconds [5]int64, whole int64) byte {
	class, all := 0, int64(0)
	for c := 4; c > 0; c-- {
		all += seconds[c]
		if seconds[c] > 0 && (class == 0 || seconds[c] > seconds[class]) {
			class = c
		}
	}
	if seconds[3] > 0 {
		class = 3
	}
	for fifteenths := int64(0); ; fifteenths++ {
		if fifteenths*whole >= 15*min(all, whole) {
			return byte(class)<<4 | byte(fifteenths)
		}
	}
}

// Of many years and PEs there are no more cells than a screen has pixels, and what has no
// end still fits the form.
func TestLargePictures(t *testing.T) {
	w := newWorld(t, api.Options{})
	w.fake.picture = &service.Picture{
		PEs: 5000, Pages: [][]service.Bar{{{Start: 0, End: berth.Forever, First: 4000, PEs: 1000, Class: service.ClassOutage, Number: 1<<31 | 1, Flags: service.OpenEnd}}},
		Unplaced: []service.Bar{
			{Start: 1_795_219_200, End: 1_795_222_800, PEs: 2, Number: 4, Class: service.ClassPromise, Flags: service.Provisional},
			{Start: 1_795_219_200, End: 1_795_222_800, PEs: 9, Number: 5, Class: service.ClassDegraded}, // lacks them, so they are free
		},
	}
	const years = "/v1/gantt?site=cm5&from=2026-01-01T00:00:00Z&to=2035-01-01T00:00:00Z"
	p := readPicture(t, w.do("vera", "GET", years+"&most=0", "").text)
	if p.Form != 2 || p.Width > 2048 || p.Width <= 1024 || p.Height != 625 || p.Group != 8 || int64(p.Step)%60 != 0 {
		t.Errorf("width %d, height %d, group %d, step %d", p.Width, p.Height, p.Group, p.Step)
	}
	if c := p.cells[624*p.Width]; c != 0x4f {
		t.Errorf("the last cell is %#x, want an outage", c)
	}
	p = readPicture(t, w.do("vera", "GET", years, "").text)
	if p.Form != 1 || p.Count != 3 || p.flags[0] != 6 || int64(p.start[0])+int64(p.length[0]) != int64(p.Width)*int64(p.Step)+1<<30 || p.start[0] != -1<<30 || p.first[1] != 5000 || p.pes[1] != 2 {
		t.Errorf("%+v", p)
	}
	day := readPicture(t, w.do("vera", "GET", wideView, "").text)
	if day.free[0] != 3998 || day.free[31] != 4000 {
		t.Errorf("free %d, then %d", day.free[0], day.free[31])
	}
}

// A picture has one row for each PE up to 1,024 rows; above that each stands for two, four, … PEs.
func TestRowsOfPicturesStandForPEs(t *testing.T) {
	w := newWorld(t, api.Options{})
	for pes, want := range map[berth.Count][2]uint32{1: {1, 1}, 1024: {1024, 1}, 1025: {513, 2}, 2048: {1024, 2}, 2049: {513, 4}} {
		w.fake.picture = &service.Picture{PEs: pes, Generation: uint64(pes), Pages: make([][]service.Bar, (pes+1023)/1024)}
		p := readPicture(t, w.do("vera", "GET", wideView+"&most=0", "").text)
		if got := [2]uint32{p.Height, p.Group}; got != want {
			t.Errorf("%d PEs are %d rows of %d PEs, want %d of %d", pes, got[0], got[1], want[0], want[1])
		}
	}
}

// Large answers are packed for who takes that.
func TestLargeAnswersArePacked(t *testing.T) {
	w := newWorld(t, api.Options{})
	w.fake.picture = &service.Picture{PEs: 5000, Pages: [][]service.Bar{{{Start: 1_795_219_200, End: 1_795_222_800, PEs: 2, Number: 4, Class: service.ClassPromise}}}}
	const cells = "/v1/gantt?site=cm5&from=2026-01-01T00:00:00Z&to=2035-01-01T00:00:00Z&most=0"
	plain := w.do("vera", "GET", cells, "")
	for coding, want := range map[string]bool{"gzip": true, "br, GZIP;q=0.5": true, "gzip;q=0": false, "gzip; q=0.0": false, "br": false, "": false} {
		a := w.do("vera", "GET", cells, "", "Accept-Encoding", coding)
		if packed := a.Header().Get("Content-Encoding") == "gzip"; packed != want {
			t.Errorf("%q: packed is %t", coding, packed)
		}
		if !strings.Contains(a.Header().Get("Vary"), "Accept-Encoding") {
			t.Errorf("%q: Vary is %q", coding, a.Header().Get("Vary"))
		}
		if !want {
			continue
		}
		in, err := gzip.NewReader(strings.NewReader(a.text))
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if _, err := io.Copy(&text, in); err != nil || text.String() != plain.text || len(a.text) >= len(plain.text) {
			t.Errorf("%q: %d bytes, packed %d, plain %d: %v", coding, text.Len(), len(a.text), len(plain.text), err)
		}
	}
	if a := w.do("vera", "GET", "/v1/me", "", "Accept-Encoding", "gzip"); a.Header().Get("Content-Encoding") != "" {
		t.Error("a small answer is packed")
	}
}

// Subscribers, and only they, are told which pools change, without ids.
func TestPoolsThatChangeAreTold(t *testing.T) {
	w := newWorld(t, api.Options{})
	w.fake.occupied = []service.Occupied{{Site: "cm5", Pool: "batch", From: start, To: berth.Forever, Generation: 9}}
	server := w.serve(t)
	l := w.listen(t, server.URL, "vera", "/v1/events?occupied=true")
	if text, ok := l.next(); !ok || !strings.HasPrefix(text, ": events") {
		t.Fatal(text, ok)
	}
	if text, ok := l.next(); !ok || text != "event: occupied\ndata: {\"site\":\"cm5\",\"pool\":\"batch\",\"from\":\"2026-11-21T12:00:00Z\",\"generation\":9}" {
		t.Errorf("%q %t", text, ok)
	}
	quiet := w.listen(t, server.URL, "alice", "/v1/events")
	if text, ok := quiet.next(); !ok || !strings.HasPrefix(text, ": events") {
		t.Fatal(text, ok)
	}
	w.reserve(t, "alice")
	if text, ok := quiet.next(); !ok || !strings.HasPrefix(text, "id: 1\nevent: accepted") {
		t.Errorf("%q: who did not ask is told of pools", text)
	}
	wantProblem(t, w.do("vera", "GET", "/v1/events?occupied=yes", ""), 422, "occupied: ")
}

// What is kept of a picture is only a shortcut: after changes the answer is what a caller
// gets who asks for the first time, packed and plain.
func TestPicturesThatFollowAreThoseDrawnAnew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const window = "/v1/gantt?site=cm5&from=2026-11-21T12:00:00Z&to=2026-11-27T04:32:00Z&most=100"
		p := fullPool(rapid.IntRange(0, 900).Draw(t, "bars"))
		var kept api.Gallery
		for round := range 5 {
			p.Generation++
			p.Event++
			next := *p
			next.Pages = slices.Clone(p.Pages)
			for range rapid.IntRange(0, 4).Draw(t, "changes") {
				n := rapid.IntRange(0, len(next.Pages)-1).Draw(t, "page")
				page := slices.Clone(next.Pages[n])
				if len(page) > 0 && rapid.Bool().Draw(t, "take") {
					page = slices.Delete(page, len(page)/2, len(page)/2+1)
				} else {
					page = append(page, service.Bar{Start: start + berth.Time(rapid.IntRange(0, 400_000).Draw(t, "at")), End: start + 500_000, First: berth.PE(2 * n), PEs: berth.Count(rapid.IntRange(1, 500-2*n).Draw(t, "PEs")), Class: service.ClassJob})
					slices.SortFunc(page, func(a, b service.Bar) int { return int(2*(a.First-b.First)) + int(min(1, max(-1, a.Start-b.Start))) })
				}
				next.Pages[n] = page
			}
			p = &next
			var anew api.Gallery
			for _, packed := range []bool{true, false} {
				got, want := kept.Answer(t, window, p, packed), anew.Answer(t, window, p, packed)
				if !bytes.Equal(got, want) {
					t.Fatalf("round %d, packed %t: %d bytes that followed are not those drawn anew, %d", round, packed, len(got), len(want))
				}
			}
		}
	})
}

// However many windows are asked for, what is kept of them is bounded.
func TestKeptPicturesAreBounded(t *testing.T) {
	p := fullPool(100_000)
	p.Generation = 1
	var g api.Gallery
	for i := range 30 {
		if data := g.Answer(t, fmt.Sprintf("/v1/gantt?from=2026-11-21T12:00:00Z&to=2026-11-27T04:32:00Z&most=%d", i), p, true); len(data) < 10_000 {
			t.Fatal(len(data))
		}
	}
	if size, answers := g.KeptBytes(); size > 96<<20 || answers < 2 || answers == 30 {
		t.Errorf("%d bytes in %d answers", size, answers)
	}
}

// A filter leaves out bars before cells are made of them: the cells are those of the bars that
// it shows, and what is free stays that of all.
func TestCellsOfAFilter(t *testing.T) {
	w := newWorld(t, api.Options{Limits: unlimited})
	generation := uint64(0)
	const window = "/v1/gantt?site=cm5&from=2026-11-21T00:00:00Z&to=2026-11-23T00:00:00Z"
	shows := map[string]func(b *service.Bar) bool{
		"owner=mine":   func(b *service.Bar) bool { return b.Class == service.ClassOutage || b.Flags&service.IsMine != 0 },
		"owner=others": func(b *service.Bar) bool { return b.Class == service.ClassOutage || b.Flags&service.IsMine == 0 },
		"state=held":   func(b *service.Bar) bool { return b.Flags&service.IsHeld != 0 },
		"state=promise": func(b *service.Bar) bool {
			return b.Class == service.ClassPromise && b.Flags&(service.IsHeld|service.IsOver) == 0
		},
		"state=job,degraded":             func(b *service.Bar) bool { return b.Class == service.ClassJob || b.Class == service.ClassDegraded },
		"state=running,over,provisional": func(b *service.Bar) bool { return b.Flags&(service.IsActive|service.IsOver|service.Provisional) != 0 },
		"owner=others&state=outage,held": func(b *service.Bar) bool {
			return b.Class == service.ClassOutage || b.Flags&service.IsMine == 0 && b.Flags&service.IsHeld != 0
		},
		"name=n2":           func(b *service.Bar) bool { return int(b.First)+int(b.PEs) > 50 },
		"name=N1&state=job": func(b *service.Bar) bool { return b.First < 50 && b.Class == service.ClassJob },
		"name=7":            func(b *service.Bar) bool { return b.Number == 7 },
		"name=batch":        func(*service.Bar) bool { return true },
		"name=nowhere":      func(*service.Bar) bool { return false },
	}
	names := slices.Sorted(maps.Keys(shows))
	rapid.Check(t, func(t *rapid.T) {
		p := &service.Picture{PEs: 100, Pages: make([][]service.Bar, 4)}
		for i := range rapid.IntRange(1, 40).Draw(t, "bars") {
			first := rapid.IntRange(0, 99).Draw(t, "first")
			flags := rapid.SampledFrom([]service.Flags{0, service.IsMine, service.IsHeld, service.IsHeld | service.IsMine, service.IsActive, service.IsOver, service.Provisional}).Draw(t, "flags")
			at := start + berth.Time(rapid.IntRange(-9000, 9000).Draw(t, "start"))
			p.Pages[first/25] = append(p.Pages[first/25], service.Bar{
				Start: at, End: at + berth.Time(rapid.IntRange(60, 9000).Draw(t, "length")), First: berth.PE(first), PEs: berth.Count(rapid.IntRange(1, 100-first).Draw(t, "PEs")),
				Number: uint32(i), Class: service.Class(rapid.IntRange(1, 4).Draw(t, "class")), Flags: flags,
			})
		}
		for _, page := range p.Pages {
			slices.SortFunc(page, func(a, b service.Bar) int { return int(a.First - b.First) })
		}
		name := rapid.SampledFrom(names).Draw(t, "filter")
		most := rapid.SampledFrom([]int{0, 3, 100}).Draw(t, "most")
		for range 2 { // the second time only a page has changed
			generation++
			p.Generation = generation
			w.fake.picture = p
			got := readPicture(t, w.do("vera", "GET", fmt.Sprintf("%s&most=%d&%s", window, most, name), "").text)
			left := *p
			left.Pages = make([][]service.Bar, len(p.Pages))
			for i, page := range p.Pages {
				left.Pages[i] = slices.DeleteFunc(slices.Clone(page), func(b service.Bar) bool { return !shows[name](&b) })
			}
			var plain api.Gallery
			want := readPicture(t, string(plain.Answer(t, fmt.Sprintf("%s&most=%d", window, most), &left, false)))
			all := readPicture(t, string(new(api.Gallery).Answer(t, window+"&most=0", p, false)))
			if got.Form != want.Form || !slices.Equal(got.cells, want.cells) || !slices.Equal(got.number, want.number) || !slices.Equal(got.flags, want.flags) {
				t.Fatalf("%s, at most %d: form %d, bars %v; want form %d, bars %v of %+v", name, most, got.Form, got.number, want.Form, want.number, p.Pages)
			}
			if !slices.Equal(got.free, all.free) {
				t.Fatalf("%s: what is free depends on the filter", name)
			}
			next := *p
			next.Pages = slices.Clone(p.Pages)
			n := rapid.IntRange(0, 3).Draw(t, "page")
			if next.Pages[n] = slices.Clone(next.Pages[n]); len(next.Pages[n]) > 0 {
				next.Pages[n] = next.Pages[n][1:]
			}
			p = &next
		}
	})
	tag := w.do("vera", "GET", window, "").Header().Get("ETag")
	if a := w.do("vera", "GET", window+"&state=held", "", "If-None-Match", tag); a.Code != 200 {
		t.Errorf("another filter is the same answer: %d", a.Code)
	}
	for query, want := range map[string]string{
		"owner=me": `owner: "me"; want mine or others`, "state=": `state: ""; want some of promise, held,`, "state=held,late": `state: "late"; want some of`, "name=" + strings.Repeat("x", 201): "name: 201 bytes; want at most 200",
	} {
		wantProblem(t, w.do("vera", "GET", window+"&"+query, ""), 422, want)
	}
}

// Bars are found by the user or name of those that one may see, as a list and by filters of pictures; a picture that
// was kept for one user is not shown to another.
func TestBarsAreFoundByName(t *testing.T) {
	w := newWorld(t, api.Options{})
	for _, user := range []string{"alice", "bob"} {
		w.do(user, "POST", "/v1/requests", `{"name":"weekly-`+user+`",`+askFor[1:])
	}
	for _, look := range []struct {
		user, text string
		want       []uint32
	}{
		{"root", "weekly", []uint32{1, 2}}, {"alice", "weekly", []uint32{1}}, {"bob", "weekly", []uint32{2}}, {"vera", "weekly", nil}, {"root", "bob", []uint32{2}}, {"alice", "bob", nil}, {"root", "alice", []uint32{1}},
	} {
		got := into[form.Named](t, w.do(look.user, "GET", "/v1/gantt/named?site=cm5&pool=batch&name="+look.text, ""), 200).Numbers
		if !slices.Equal(got, look.want) || got == nil {
			t.Errorf("%s finds %v by %q, want %v", look.user, got, look.text, look.want)
		}
		if p := readPicture(t, w.do(look.user, "GET", wideView+"&name="+look.text, "").text); !slices.Equal(p.number, look.want) {
			t.Errorf("the picture of %s with %q has %v, want %v", look.user, look.text, p.number, look.want)
		}
	}
	if s := into[form.Occupation](t, w.do("alice", "GET", "/v1/sites/cm5/spans/1", ""), 200).Spans; s[0].Name != "weekly-alice" {
		t.Errorf("alice is told %+v", s)
	}
	if s := into[form.Occupation](t, w.do("bob", "GET", "/v1/sites/cm5/spans/1", ""), 200).Spans; s[0].Name != "" {
		t.Errorf("bob is told %+v", s)
	}
	for query, want := range map[string]string{"site=cm5": "name: 0 bytes", "site=cm5&name=%20": "name: 0 bytes", "name=x": "site: not given", "site=cm5&name=" + strings.Repeat("x", 201): "name: 201 bytes"} {
		wantProblem(t, w.do("root", "GET", "/v1/gantt/named?"+query, ""), 422, want)
	}
}

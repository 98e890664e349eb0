package icalendar_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/icalendar"
	"github.com/berth-hpc/berth/internal/icalendar/icalendartest"
)

func event(summary string) icalendar.Event {
	return icalendar.Event{
		UID: "a@b", Created: 1_795_262_400, Changed: 1_795_262_460, Sequence: 3, Status: icalendar.Confirmed, Start: 1_795_266_000, End: 1_795_273_200, Summary: summary,
	}
}

func written(events ...icalendar.Event) []byte {
	c := icalendar.Calendar{Name: "Berth", Events: events}
	return c.Append(nil)
}

// A calendar is as RFC 5545 has it, byte by byte.
func TestACalendarIsWritten(t *testing.T) {
	e := event("8 PEs, \\ a;b\r\nc")
	e.Location, e.Description, e.URL, e.Category = "cm5", "Nodes: n[1-4]\n\nberth show x", "https://hpc.example.org/?sel=cm5/3", "promise"
	want := []string{
		"BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Berth//Berth//EN", "CALSCALE:GREGORIAN", "NAME:Berth", "X-WR-CALNAME:Berth",
		"REFRESH-INTERVAL;VALUE=DURATION:PT15M", "X-PUBLISHED-TTL:PT15M",
		"BEGIN:VEVENT", "UID:a@b", "DTSTAMP:20261121T120100Z", "CREATED:20261121T120000Z", "LAST-MODIFIED:20261121T120100Z", "SEQUENCE:3", "STATUS:CONFIRMED",
		"TRANSP:TRANSPARENT", "DTSTART:20261121T130000Z", "DTEND:20261121T150000Z", `SUMMARY:8 PEs\, \\ a\;b\nc`, "LOCATION:cm5", "CATEGORIES:promise",
		`DESCRIPTION:Nodes: n[1-4]\n\nberth show x`, "URL:https://hpc.example.org/?sel=cm5/3", "END:VEVENT", "END:VCALENDAR", "",
	}
	if got := string(written(e)); got != strings.Join(want, "\r\n") {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\r\n"))
	}
	if got := written(); !bytes.Contains(got, []byte("BEGIN:VTIMEZONE\r\n")) {
		t.Errorf("a calendar without events has no component at all:\n%s", got)
	}
	e.Sequence = 1 << 40
	if got := string(written(e)); !strings.Contains(got, "SEQUENCE:2147483647\r\n") {
		t.Errorf("a sequence beyond 31 bits is written in %s", got)
	}
}

// checkLines reports what RFC 5545 says of lines: at most 75 octets, ended by CR LF, and no character in two lines.
func checkLines(t interface{ Errorf(string, ...any) }, data []byte) {
	for line := range strings.SplitSeq(strings.TrimSuffix(string(data), "\r\n"), "\r\n") {
		switch {
		case len(line) > 75:
			t.Errorf("a line has %d octets: %q", len(line), line)
		case strings.ContainsAny(line, "\r\n"):
			t.Errorf("a line ends in the midst: %q", line)
		case !utf8.ValidString(line):
			t.Errorf("a character is broken: %q", line)
		}
	}
}

// Lines are folded at 75 octets, whatever characters stand there, and none before its time.
func TestLinesAreFolded(t *testing.T) {
	for _, character := range []string{"a", "é", "中", "🎉", ",", "\n"} {
		for n := range 200 {
			data := written(event(strings.Repeat("x", n%4) + strings.Repeat(character, n)))
			checkLines(t, data)
			at := strings.Index(string(data), "\r\nSUMMARY:")
			first, more, folded := strings.Cut(string(data)[at+2:], "\r\n ")
			if folded && !strings.Contains(first, "\r\n") && len(first) < 72 {
				t.Errorf("%q is broken after %d octets, before %q", first, len(first), more)
			}
		}
	}
}

// FuzzText has any text come out of a calendar whole, unfolded and unescaped as the RFC says.
func FuzzText(f *testing.F) {
	for _, text := range odd {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		data := written(event(text))
		checkLines(t, data)
		unfolded := strings.ReplaceAll(string(data), "\r\n ", "")
		_, rest, there := strings.Cut(unfolded, "\r\nSUMMARY:")
		value, _, _ := strings.Cut(rest, "\r\n")
		if icalendar.Plain(text) == "" {
			if there {
				t.Error("a blank text is written")
			}
			return
		}
		got := strings.NewReplacer(`\\`, `\`, `\;`, ";", `\,`, ",", `\n`, "\n").Replace(value)
		if want := icalendar.Plain(text); got != want {
			t.Errorf("%q comes out as %q, want %q", text, got, want)
		}
	})
}

// odd are texts that have broken writers of calendars.
var odd = []string{
	"plain", `C:\new\Nodes`, `\`, `\\n`, `\;`, ";", ",", "a,b;c", "two\nlines", "two\r\nlines", "old\rlines", "\n", "\n\n", "tab\there", " leads", "trails ", "  ",
	"<b>markup</b> & \"quotes\" 'too'", "END:VEVENT", "x\r\nEND:VCALENDAR\r\nBEGIN:VCALENDAR", "🎉 launch 🚀, 中文; é", "e\u0301\u0301\u0301", "\u202eright to left", "\ufeffmark", "\u2028\u2029\u0085",
	"\x00\x01\x1f\x7f", "\xff\xfe invalid \xc3", strings.Repeat("long ", 100), strings.Repeat("🎉", 100), strings.Repeat(`\`, 151), "%0A%3B=20", ":", `"`, "a:b;c=d", "^n^^'",
}

// Any text comes out of another program whole: of the odd ones, and of random ones.
func TestTextsComeThroughAnotherParser(t *testing.T) {
	texts := append([]string{}, odd...)
	anything := rapid.String()
	for seed := range 300 {
		texts = append(texts, anything.Example(seed))
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		bytes := make([]byte, r.IntN(200))
		for i := range bytes {
			bytes[i] = byte(r.IntN(256))
		}
		texts = append(texts, string(bytes))
	}
	var events []icalendar.Event
	for i, text := range texts {
		e := event(text)
		e.UID, e.Description, e.Location = fmt.Sprintf("%d@berth", i), text, text
		events = append(events, e)
	}
	c := icalendar.Calendar{Name: odd[len(odd)-1], About: strings.Join(odd, "\n"), Events: events}
	data := c.Append(nil)
	checkLines(t, data)
	read := icalendartest.Read(t, data)[0]
	got := read.Events()
	if len(got) != len(texts) {
		t.Fatalf("%d events of %d", len(got), len(texts))
	}
	if about := read.One(t, "DESCRIPTION"); about != icalendar.Plain(c.About) {
		t.Errorf("the calendar is about %q", about)
	}
	for i, text := range texts {
		want := icalendar.Plain(text)
		for _, name := range []string{"SUMMARY", "DESCRIPTION", "LOCATION"} {
			if is := got[i].One(t, name); is != want {
				t.Errorf("%s %q comes out as %q, want %q", name, text, is, want)
			}
		}
	}
}

// Times, states and numbers come out as they went in, and so does a calendar without events.
func TestEventsComeThroughAnotherParser(t *testing.T) {
	e := event("x")
	e.Status, e.URL = icalendar.Tentative, "https://hpc.example.org/?sel=cm5/3&t=2026-11-21T12:00:00Z..2026-11-21T18:00:00Z"
	read := icalendartest.Read(t, written(e), written())
	got := read[0].Events()[0]
	for name, want := range map[string]string{
		"UID": "a@b", "STATUS": "TENTATIVE", "SEQUENCE": "3", "DTSTART": "20261121T130000Z", "DTEND": "20261121T150000Z", "DTSTAMP": "20261121T120100Z",
		"LAST-MODIFIED": "20261121T120100Z", "CREATED": "20261121T120000Z", "URL": e.URL, "TRANSP": "TRANSPARENT",
	} {
		if is := got.One(t, name); is != want {
			t.Errorf("%s is %q, want %q", name, is, want)
		}
	}
	if len(read[1].Events()) > 0 || read[1].One(t, "NAME") != "Berth" {
		t.Errorf("an empty calendar reads as %+v", read[1])
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("events=%d", n), func(b *testing.B) {
			c := icalendar.Calendar{Name: "Berth"}
			for i := range n {
				e := event("64 PEs at cm5")
				e.UID, e.Start, e.Description = fmt.Sprintf("01M830G6Q0W1PM2YNGNJN1Z%03d@berth", i), e.Start+berth.Time(i), strings.Repeat("Nodes: n[001-016]\n", 10)
				c.Events = append(c.Events, e)
			}
			var data []byte
			b.ReportAllocs()
			for b.Loop() {
				data = c.Append(data[:0])
			}
			b.SetBytes(int64(len(data)))
		})
	}
}

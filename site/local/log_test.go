//go:build linux

package local

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

// numbered returns a booking on one core.
func numbered(n int) *booking {
	start := berth.Time(10 * n)
	return &booking{Name: string(site.NameOf("s", strconv.Itoa(n), 1)), Start: start, End: start + 5, Cores: berth.PEsOf(berth.PE(n % 4))}
}

// reread returns what a log says to a site that starts.
func reread(t *testing.T, path string) (*table, note, *bookingLog) {
	t.Helper()
	again, drain := newTable("s", 4), note{}
	l, err := openLog(path, again, &drain)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.close() }) // some are closed already
	return again, drain, l
}

// What is booked, moved together and given back is there after a restart, and so is why nothing starts.
func TestBookingsAreReadAsTheyWereWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bookings.jsonl")
	table, drain := newTable("s", 4), note{}
	l, err := openLog(path, table, &drain)
	if err != nil {
		t.Fatal(err)
	}
	drained := note{Reason: "a new disk", Since: 70}
	moved := *numbered(2)
	moved.Cores = berth.PEsOf(3)
	for _, r := range []record{
		{Put: numbered(1)},
		{Put: numbered(2)},
		{Put: numbered(3)},
		{Drain: &note{Reason: "an old disk"}},
		{Drop: numbered(1).Name},
		{Together: []*booking{&moved, numbered(4)}},
		{Drain: &drained},
	} {
		if err := l.write(r); err != nil {
			t.Fatal(err)
		}
		r.apply(table, &drain)
	}
	if err := l.close(); err != nil {
		t.Fatal(err)
	}
	again, why, l := reread(t, path)
	if !reflect.DeepEqual(again.bookings, table.bookings) || len(again.bookings) != 3 || why != drained {
		t.Errorf("%+v and %+v are read, want %+v and %+v", again.bookings, why, table.bookings, drained)
	}
	// It was written anew: one line for each booking, in order of name, and one for why nothing starts.
	text, err := os.ReadFile(path)
	lines := strings.SplitAfter(string(text), "\n")
	if err != nil || len(lines) != 5 || !slices.IsSorted(lines[:3]) || !strings.HasPrefix(lines[2], `{"put":`) || !strings.Contains(lines[3], drained.Reason) {
		t.Errorf("written anew: %s%v", text, err)
	}
	if err := errors.Join(l.write(record{Drain: &note{}}), l.close()); err != nil {
		t.Fatal(err)
	}
	if _, why, _ = reread(t, path); why != (note{}) {
		t.Errorf("nothing is drained, and %+v is read", why)
	}
}

// A line that was being written when the process died is left out; one that is whole and wrong is told.
func TestATornLineIsLeftOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bookings.jsonl")
	whole := `{"put":{"name":"` + numbered(1).Name + `","start":10,"end":15,"cores":"1"}}` + "\n"
	for _, torn := range []string{"", "{", `{"drop":"` + numbered(1).Name + `"}`} {
		if err := os.WriteFile(path, []byte(whole+torn), 0o600); err != nil {
			t.Fatal(err)
		}
		if again, _, _ := reread(t, path); len(again.bookings) != 1 || again.bookings[numbered(1).Name] == nil {
			t.Errorf("with %q behind it: %+v", torn, again.bookings)
		}
		if text, err := os.ReadFile(path); err != nil || strings.Count(string(text), "\n") != 1 || !strings.HasSuffix(string(text), "}\n") {
			t.Errorf("with %q behind it the log is written anew as %q, %v", torn, text, err)
		}
	}
	if err := os.WriteFile(path, []byte(whole+"{\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openLog(path, newTable("s", 4), &note{}); err == nil || !strings.Contains(err.Error(), path+" line 2: ") {
		t.Errorf("a wrong line: %v", err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != whole+"{\n" {
		t.Errorf("a log with a wrong line became %q, %v", text, err)
	}
}

// The log is written anew when it has many lines and most of them are out of date, and goes on behind that.
func TestALogOfMostlyOldLinesIsWrittenAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bookings.jsonl")
	table, drain := newTable("s", 4), note{Reason: "why"}
	l, err := openLog(path, table, &note{})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 6000 {
		b := numbered(n)
		table.put(b)
	}
	for _, c := range []struct {
		lines int
		anew  bool
	}{{9_999, false}, {10_000, false}, {11_999, false}, {12_000, true}, {0, false}} {
		l.lines = c.lines
		if err := l.compact(table, &drain); err != nil {
			t.Fatal(err)
		}
		if anew := c.lines > 0 && l.lines == 0; anew != c.anew {
			t.Errorf("of %d lines for 6000 bookings the log is written anew: %v, want %v", c.lines, anew, c.anew)
		}
	}
	for n := range 6000 {
		if n != 7 {
			table.drop(numbered(n).Name)
		}
	}
	for _, lines := range []int{9_999, 10_000} { // few bookings, and few lines to be rid of
		l.lines = lines
		if err := l.compact(table, &drain); err != nil || (l.lines == 0) != (lines == 10_000) {
			t.Errorf("of %d lines for one booking %d are left, %v", lines, l.lines, err)
		}
	}
	if err := l.write(record{Put: numbered(8)}); err != nil || l.lines != 1 {
		t.Errorf("after that: %d lines, %v", l.lines, err)
	}
	if err := l.close(); err != nil {
		t.Fatal(err)
	}
	if again, why, _ := reread(t, path); len(again.bookings) != 2 || again.bookings[numbered(8).Name] == nil || why != drain {
		t.Errorf("%d bookings and %+v are read, want 2 and %+v", len(again.bookings), why, drain)
	}
}

// A failed write is a failure of the world that can be tried again, and says what may be wrong.
func TestABookingThatCannotBeWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bookings.jsonl")
	_, _, l := reread(t, path)
	if err := l.close(); err != nil {
		t.Fatal(err)
	}
	failed, is := errors.AsType[*site.Error](l.write(record{Put: numbered(1)}))
	if !is || failed.Kind != site.Unreachable || failed.Err == nil || !strings.Contains(failed.Hint, path) || l.lines != 0 {
		t.Errorf("%+v, %d lines", failed, l.lines)
	}
}

// Cores are those that the process may use, over again where more are handed out.
func TestCoresAreThoseOfTheProcess(t *testing.T) {
	usable, err := usableCPUs(0)
	if err != nil || len(usable) == 0 {
		t.Fatal(usable, err)
	}
	n := len(usable)
	more, err := usableCPUs(berth.Count(2*n + 1))
	if err != nil || len(more) != 2*n+1 {
		t.Fatal(more, err)
	}
	for i, cpu := range more {
		if cpu != usable[i%n] {
			t.Errorf("core %d is CPU %d, want %d", i, cpu, usable[i%n])
		}
	}
}

func TestTheMountOfGroupsIsFound(t *testing.T) {
	const first = "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
	for _, c := range []struct{ text, want string }{
		{first + "31 22 0:27 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n", "/sys/fs/cgroup"},
		{"31 22 0:27 / /groups rw - cgroup2 none rw\n" + first, "/groups"},
		{first + "32 22 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n", ""},
		{first + "31 22 0:27 / /sys/fs/cgroup\n", ""}, // torn
		{"31 22 0:27 / - cgroup2 none rw\n", ""},
		{"31 22 0:27 / /groups rw - \n", ""},
		{"", ""},
	} {
		if got, err := parseMount(c.text); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q: %q, %v; want %q", c.text, got, err, c.want)
		}
	}
}

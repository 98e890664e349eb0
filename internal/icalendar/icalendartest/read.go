// Package icalendartest reads calendars by another program than ours, Debian's libical, which the calendars of
// GNOME and KDE read with. It is imported by tests only.
package icalendartest

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/debiantest"
)

//go:embed read.py
var program string

// Component is a part of a calendar, such as VEVENT, with the values of its properties by name. Texts are without
// escapes.
type Component struct {
	Kind       string              `json:"kind"`
	Properties map[string][]string `json:"properties"`
	Components []Component         `json:"components"`
	// Errors is how many faults were found in a calendar, and Valid whether it has what it must have.
	Errors int  `json:"errors"`
	Valid  bool `json:"valid"`
}

// faults returns what libical says is wrong in a component and those within.
func (c *Component) faults() []string {
	list := c.Properties["X-LIC-ERROR"]
	for i := range c.Components {
		list = append(list, c.Components[i].faults()...)
	}
	return list
}

// One returns the only value of a property; empty if there is none.
func (c *Component) One(t testing.TB, name string) string {
	t.Helper()
	values := c.Properties[name]
	if len(values) > 1 {
		t.Errorf("%s has %s %d times: %q", c.Kind, name, len(values), values)
	}
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// Events returns the events of a calendar in their order.
func (c *Component) Events() []Component {
	return slices.DeleteFunc(slices.Clone(c.Components), func(e Component) bool { return e.Kind != "VEVENT" })
}

// Read reads some calendars, which must be free of faults. Where there is no libical it is installed if $CI is true, this
// is root, and there is apt-get; else the test is skipped, or fails if $BERTH_REQUIRE, a list separated by commas,
// has "libical".
func Read(t testing.TB, calendars ...[]byte) []Component {
	t.Helper()
	find(t)
	var in, failed bytes.Buffer
	for _, c := range calendars {
		fmt.Fprintf(&in, "%d\n", len(c))
		in.Write(c)
	}
	cmd := exec.CommandContext(t.Context(), "python3", "-c", program)
	cmd.Stdin, cmd.Stderr = &in, &failed
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("libical: %v: %s", err, failed.String())
	}
	list := make([]Component, len(calendars))
	lines := bytes.Split(bytes.TrimSpace(out), []byte{'\n'})
	if len(lines) != len(list) {
		t.Fatalf("libical read %d calendars of %d", len(lines), len(list))
	}
	for i := range list {
		if err := json.Unmarshal(lines[i], &list[i]); err != nil {
			t.Fatal(err)
		}
		if c := &list[i]; c.Kind != "VCALENDAR" || c.Errors > 0 || !c.Valid {
			t.Fatalf("libical finds %d faults in %s, and it has what it must have: %t\n%q", c.Errors, c.Kind, c.Valid, c.faults())
		}
	}
	return list
}

// find skips or fails a test if there is no libical.
func find(t testing.TB) {
	t.Helper()
	why := absent()
	if why == "" {
		return
	}
	if err := debiantest.Install(func() bool { return absent() == "" }, "libical3", "python3"); err != nil {
		debiantest.Absent(t, "libical", "missing package libical3: "+why+": "+err.Error())
	}
}

// absent says what is missing; empty if nothing is.
func absent() string {
	if _, err := exec.LookPath("python3"); err != nil {
		return "there is no python3 to call it"
	}
	if out, err := exec.CommandContext(context.Background(), "python3", "-c", `import ctypes; ctypes.CDLL("libical.so.3")`).CombinedOutput(); err != nil {
		return lastLine(string(out))
	}
	return ""
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

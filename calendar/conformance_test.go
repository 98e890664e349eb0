package calendar_test

import (
	"testing"

	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/calendar/calendartest"
)

// Every form passes the same suite.
func TestForms(t *testing.T) {
	for _, form := range calendar.Forms {
		t.Run(form.Name, func(t *testing.T) { calendartest.Run(t, form.New) })
	}
}

// Every form agrees with the plain one on larger calendars, too; the plain one
// agrees with itself, which proves the comparison.
func TestFormsAgree(t *testing.T) {
	for _, form := range calendar.Forms {
		t.Run(form.Name, func(t *testing.T) { calendartest.Agree(t, form.New, calendar.NewPlain) })
	}
}

func TestFormNamed(t *testing.T) {
	seen := map[string]bool{}
	for _, form := range calendar.Forms {
		got, ok := calendar.FormNamed(form.Name)
		if !ok || got.Name != form.Name || got.About != form.About || form.About == "" {
			t.Errorf("FormNamed(%q) = %q, %t", form.Name, got.Name, ok)
		}
		if seen[form.Name] {
			t.Errorf("two forms are named %q", form.Name)
		}
		seen[form.Name] = true
	}
	if _, ok := calendar.FormNamed("no such form"); ok {
		t.Error("FormNamed knows a form that does not exist")
	}
}

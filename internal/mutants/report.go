package main

import (
	"context"
	"strings"
	"time"
)

// tally is the mutants of one list by what became of them.
type tally struct {
	killed, timedOut, survivors, uncounted []*Mutant
}

func (t *tally) counted() int { return len(t.killed) + len(t.survivors) }

// judge judges a list, prints it and counts.
func (r *run) judge(ctx context.Context, j *judge, title string, want int, next func() *Mutant) (*tally, error) {
	t := &tally{}
	if want == 0 {
		return t, nil
	}
	r.printf("\n%s\n", title)
	began, spent := time.Now(), j.spent()
	err := j.all(ctx, r.jobs, want, next, r.testedBy, func(m *Mutant, v Verdict) {
		r.row(m, v)
		switch v.Outcome {
		case TimedOut:
			t.timedOut = append(t.timedOut, m)
			t.killed = append(t.killed, m)
		case Killed:
			t.killed = append(t.killed, m)
		case Survived:
			t.survivors = append(t.survivors, m)
		default:
			t.uncounted = append(t.uncounted, m)
		}
	})
	if err != nil {
		return nil, err
	}
	r.printf("  %d killed, %d of them by taking too long; %d survived; %d did not count; %s, CPU time %s\n",
		len(t.killed), len(t.timedOut), len(t.survivors), len(t.uncounted), time.Since(began).Round(time.Second), (j.spent() - spent).Round(time.Second))
	return t, nil
}

// testedBy returns the tests that are run against a mutant.
func (r *run) testedBy(m *Mutant) []tests {
	for _, s := range r.suites {
		if s.folder == m.Folder() {
			return s.by
		}
	}
	return own(m.Folder())
}

// widest is how much of an edit a row shows.
const widest = 110

// row prints one verdict.
func (r *run) row(m *Mutant, v Verdict) {
	by := v.Note
	if v.By != "" {
		by = v.By + " " + v.Test
	}
	edit := m.String()
	if len(edit) > widest {
		edit = strings.ToValidUTF8(edit[:widest], "") + "..."
	}
	if m.Name != "" {
		edit = m.Name + ": " + edit
	}
	r.printf("  %-10s %6.1fs  %-10s %s:%d  %s  [%s]\n", v.Outcome, v.Took.Seconds(), m.Kind, m.File.Name, m.Line, edit, by)
}

// summary prints the survivors in the form of the list of arguments, and what
// is wrong.
func (r *run) summary(drawn *tally) {
	if len(drawn.survivors) > 0 {
		r.printf("\nSurvivors: give each a test, or a line in %s with the reason why no test can tell\n", r.argued)
		for _, m := range drawn.survivors {
			r.printf("  %s:%d\n    %s%s\n", m.File.Name, m.Line, m.Key(), separator)
		}
	}
	if n := len(drawn.survivors); 100*n > tolerated*drawn.counted() {
		r.fault("%d of %d drawn mutants survived, more than %d %%", n, drawn.counted(), tolerated)
	}
	if len(r.faults) > 0 {
		r.printf("\nWrong:\n")
	}
	for _, fault := range r.faults {
		r.printf("  %s\n", fault)
	}
}

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/api/form"
)

// What will be left out of an open series before it has its turn is told, since it is in no list yet.
func TestWhatAnOpenSeriesWillLeaveOutIsTold(t *testing.T) {
	for _, c := range []struct {
		skipped []int
		want    string
	}{
		{[]int{2}, "05:00:00 ahead\n"},
		{[]int{2, 9}, "; number 9 will be left out\n"},
		{[]int{2, 9, 11}, "; numbers 9, 11 will be left out\n"},
	} {
		s := &form.Series{Count: 6, Ahead: 18000, Open: true, Skipped: c.skipped}
		if got := prolongation(s, time.Now()); !strings.HasSuffix(got, c.want) {
			t.Errorf("%v: %q, want it to end with %q", c.skipped, got, c.want)
		}
	}
}

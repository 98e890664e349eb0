package main

import (
	"errors"
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
)

func TestOnlyVariablesThatAreAskedForAreSent(t *testing.T) {
	all := []string{"PATH=/bin", "HOME=/home/ada", "LC_ALL=C", "LCD=1", "AWS_SECRET=s", "OMP_NUM_THREADS=4", "OMP_PLACES=cores", tokenVar + "=t"}
	usual := []string{"PATH=/bin", "HOME=/home/ada", "LC_ALL=C"}
	for _, c := range []struct{ asked, want []string }{
		{nil, usual},
		{[]string{"OMP_PLACES"}, append(slices.Clone(usual), "OMP_PLACES=cores")},
		{[]string{"OMP_*", "LCD"}, []string{"PATH=/bin", "HOME=/home/ada", "LC_ALL=C", "LCD=1", "OMP_NUM_THREADS=4", "OMP_PLACES=cores"}},
		{[]string{everyVariable}, all[:len(all)-1]},
		{[]string{tokenVar}, usual},
	} {
		if got, err := environment(all, c.asked); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("asked for %q: %q %v, want %q", c.asked, got, err, c.want)
		}
	}
	var wrong *berth.Error
	if _, err := environment(all, []string{"OMP_STACK"}); !errors.As(err, &wrong) || wrong.Code != berth.Invalid {
		t.Errorf("a variable that is not set: %v, want it refused", err)
	}
}

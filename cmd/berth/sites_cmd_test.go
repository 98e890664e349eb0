package main

import (
	"strings"
	"testing"

	"github.com/berth-hpc/berth/api/form"
)

func TestSiteState(t *testing.T) {
	for _, c := range []struct {
		site            form.Site
		list, reachable string
	}{
		{form.Site{Reachable: true}, "ok", "true"},
		{form.Site{Reachable: true, Shadow: true}, "watched", "true"},
		{form.Site{Shadow: true}, "unreachable", "false"},
		{form.Site{Starting: true}, "starting", "not looked at yet"},
		{form.Site{Starting: true, Shadow: true}, "starting", "not looked at yet"},
	} {
		if got := siteState(&c.site); got != c.list {
			t.Errorf("%+v is %q in a list, want %q", c.site, got, c.list)
		}
		row := ""
		for line := range strings.Lines(describeSite(&c.site)) {
			if strings.Contains(line, "reachable") {
				row = strings.TrimSpace(line)
			}
		}
		if !strings.HasSuffix(row, c.reachable) {
			t.Errorf("%+v shows %q, want %q", c.site, row, c.reachable)
		}
	}
}

package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
)

// What has happened is told in sentences: what, by how much, where to and why.
func TestTales(t *testing.T) {
	local := time.Local
	time.Local = time.UTC
	t.Cleanup(func() { time.Local = local })
	now := time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC)
	at := form.Time(now.Unix())
	place := func(after form.Time, pool string, npe berth.Count, lo berth.PE) form.Place {
		return form.Place{Site: "lab", Pool: pool, NPE: npe, Start: at + after, End: at + after + 3600, PEs: berth.NewPESet(berth.Run{Lo: lo, Hi: lo + berth.PE(npe)})}
	}
	n7 := []form.Outage{{Site: "lab", Pool: "nodes", NPE: 1, Nodes: []string{"n07"}}}
	soon := []form.Outage{{Site: "lab", Pool: "nodes", NPE: 2, Nodes: []string{"n07", "n08"}, From: at + 7200}}
	got := tales([]form.Happening{
		{At: at, What: "queued", By: "alice"},
		{At: at, What: "accepted", Place: place(3600, "nodes", 4, 0)},
		{At: at, What: "moved", Place: place(5100, "nodes", 4, 0), Outages: n7},
		{At: at, What: "moved", Place: place(5100, "nodes", 4, 4), Outages: soon},
		{At: at, What: "moved", Place: place(3600, "gpu", 4, 4)},
		{At: at, What: "modified", By: "bob", Place: place(3600, "gpu", 2, 4)},
		{At: at, What: "modified", By: "bob", Place: place(3600, "gpu", 2, 4)},
		{At: at, What: "extended", By: "alice", Place: form.Place{End: at + 9000}},
		{At: at, What: "resized", Place: place(3600, "gpu", 1, 4), Outages: n7},
		{At: at, What: "resized", Place: place(3600, "gpu", 1, 5), Outages: slices.Concat(n7, n7)},
		{At: at, What: "resized", Place: place(3600, "gpu", 0, 4), Outages: slices.Concat(n7, soon)},
		{At: at, What: "resized", Place: place(3600, "gpu", 2, 4)},
		{At: at, What: "failed", Outages: n7},
		{At: at, What: "lost", Outages: n7, Reason: "no_capacity"},
		{At: at, What: "site_changed", Trouble: "it was deleted"},
		{At: at, What: "made", Place: form.Place{Site: "lab"}},
		{At: at, What: "task_left", Task: &form.TaskReport{Job: "5", Site: "lab", State: "waiting"}, Trouble: "it waits"},
	}, now)
	want := []string{
		"asked for by alice",
		"promised from Thu 26 Nov 09:00 to 10:00",
		"moved 00:25:00 later, to Thu 26 Nov 09:25 because n07 went out of use",
		"moved to other PEs at the same start because n07,n08 go out of use at Thu 26 Nov 10:00",
		"moved 00:25:00 earlier, to Thu 26 Nov 09:00, to lab/gpu",
		"modified 2 PEs instead of 4 by bob",
		"modified by bob",
		"extended to Thu 26 Nov 10:30 by alice",
		"has 1 PEs instead of 2 because n07 went out of use",
		"has other PEs because n07 went out of use",
		"lacks all of its PEs because n07 went out of use and n07,n08 go out of use at Thu 26 Nov 10:00",
		"has 2 PEs instead of 0",
		"failed because n07 went out of use",
		"lost because n07 went out of use: there is no other place (no_capacity)",
		"it was changed by hand at its site: it was deleted",
		"there as promised, at lab",
		"a task could not follow to another place: 5 at lab: it waits",
	}
	var texts []string
	for _, x := range got {
		texts = append(texts, x.Text)
	}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Error(diff)
	}
	text := describeHistory("ID", got, now)
	if lines := strings.Count(text, "\n"); lines != 15 || !strings.HasPrefix(text, "\n history, times at +00:00\n  2 before these: berth history ID\n  Thu 26 Nov 08:00  moved 00:25:00 earlier") {
		t.Errorf("%d lines:\n%s", lines, text)
	}
	var many []form.Happening
	for range 20 {
		many = append(many, form.Happening{At: at, What: "modified"})
	}
	if text := describeHistory("ID", tales(many, now), now); !strings.Contains(text, "\n  8 before these: berth history ID\n") || strings.Count(text, "modified") != 12 {
		t.Error(text)
	}
	if text := describeHistory("ID", got[:2], now); text != "" {
		t.Error(text)
	}
}

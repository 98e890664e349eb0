package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
)

// A local site says at once that a task has started or ended, so the events come long
// before its next look.
func TestALocalSiteTellsOfTasksAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := filepath.Join(dir, "berth.yaml")
	if err := os.WriteFile(config, []byte("sites: [{name: here, adapter: {kind: local, cores: 2, node: n1, every: 40s}}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := openFleet(t, config, filepath.Join(dir, "data"))
	f.until(t, "the site is looked at", func(v map[string]service.SiteView) bool { return v["here"].Reachable })
	soon, stop := context.WithTimeout(t.Context(), 25*time.Second)
	defer stop()
	notices := f.host.Listen(soon, f.by.By, 0)
	now := f.host.Now()
	a, err := f.host.Submit(t.Context(), f.by, berth.Rigid("", 0, now, now.Add(600), 1, 600))
	if err != nil || a.Reservation.State != service.Active && a.Reservation.State != service.Confirmed {
		t.Fatalf("%+v, %v", a.Reservation, err)
	}
	job, err := f.host.Run(t.Context(), f.by, a.Reservation.ID, site.Task{Name: "fails", Command: []string{"/bin/sh", "-c", "sleep 7; exit 3"}, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for n := range notices {
		if n.Task == nil {
			continue
		}
		got = append(got, fmt.Sprint(n.Reservation.ID == a.Reservation.ID, n.Task.ID, n.What, n.Task.Name, n.Task.Result))
		if n.What == service.TaskEnded {
			break
		}
	}
	want := []string{
		fmt.Sprint(true, job, service.TaskStarted, "fails", site.Result{}),
		fmt.Sprint(true, job, service.TaskEnded, "fails", site.Result{Ending: site.Failed, Code: 3}),
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

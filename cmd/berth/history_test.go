package main

import (
	"strings"
	"testing"

	"github.com/berth-hpc/berth/api/form"
)

// A sentence says how much later a promise is and what went out of use.
func TestASentenceTellsWhyAPromiseMoved(t *testing.T) {
	at := func(start form.Time) form.Place {
		return form.Place{Site: "cm5", Pool: "batch", NPE: 4, Start: start, End: start + 600}
	}
	list := []form.Happening{
		{At: 10, What: "accepted", Place: at(1000)},
		{At: 20, What: "moved", Place: at(2500), Outages: []form.Outage{{Site: "cm5", Pool: "batch", NPE: 1, Nodes: []string{"n07"}}}},
		{At: 30, What: "modified", By: "ann", Place: at(2500)},
		{At: 40, What: "moved", Place: at(2440), Outages: []form.Outage{
			{Site: "cm5", Pool: "batch", NPE: 9, Nodes: []string{"a", "b", "c", "d", "e"}}, {Site: "cm5", Pool: "batch", NPE: 3, From: 5000},
		}},
		{At: 50, What: "moved", Place: at(2440)},
		{At: 60, What: "resized", Place: form.Place{Site: "cm5", Pool: "batch", Start: 2440, End: 3040}, Outages: []form.Outage{
			{Site: "cm5", Pool: "batch", NPE: 4, Nodes: []string{"a", "b"}}, {Site: "cm5", Pool: "batch", NPE: 4, Nodes: []string{"a", "b"}},
		}},
		{At: 70, What: "resized", Place: at(2440)},
		{At: 80, What: "resized", Place: at(2440)},
	}
	told := sentences(list)
	for i, want := range map[int]string{
		1: "00:25:00 later; out of use: n07",
		3: ", 00:01:00 earlier; out of use: 5 nodes of cm5/batch and 3 PEs of cm5/batch from " + localTime(5000) + " on",
		5: ": lacks all of its PEs, 0 PEs at cm5/batch from " + localTime(2440) + " to " + localTime(3040) + "; out of use: a,b",
		6: ": has 4 PEs instead of 0, 4 PEs at cm5/batch from " + localTime(2440) + " to " + localTime(3040),
		7: ": has other PEs, 4 PEs at cm5/batch from " + localTime(2440) + " to " + localTime(3040),
		4: "moved, 4 PEs at cm5/batch from " + localTime(2440) + " to " + localTime(3040),
	} {
		if !strings.HasSuffix(told[i], want) {
			t.Errorf("want %q at the end of %q", want, told[i])
		}
	}
}

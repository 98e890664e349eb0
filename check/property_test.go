package check_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/check"
	"pgregory.net/rapid"
)

// object is a line of a schedule under construction.
type object map[string]any

func text(lines []object) string {
	var b strings.Builder
	for _, line := range lines {
		raw, err := json.Marshal(line)
		if err != nil {
			panic(err)
		}
		b.Write(append(raw, '\n'))
	}
	return b.String()
}

func peList(pes []int) string {
	var fields []string
	for _, pe := range pes {
		fields = append(fields, fmt.Sprint(pe))
	}
	return strings.Join(fields, ",")
}

const horizon = 40

// drawValid draws a schedule that keeps every rule, by filling a table of
// seconds and PEs. Its first line is an accepted request.
func drawValid(t *rapid.T) (pes int, lines []object) {
	pes = rapid.IntRange(1, 6).Draw(t, "pes")
	var taken [horizon][8]bool
	var other needsTaken
	var ended []object // accepted requests so far
	n := rapid.IntRange(1, 12).Draw(t, "lines")
	for i := range n {
		start := rapid.IntRange(0, horizon-2).Draw(t, "start")
		end := rapid.IntRange(start+1, horizon-1).Draw(t, "end")
		var free []int
		for pe := range pes {
			idle := true
			for at := start; at < end; at++ {
				idle = idle && !taken[at][pe]
			}
			if idle {
				free = append(free, pe)
			}
		}
		id := fmt.Sprintf("r%d", i)
		kind := rapid.SampledFrom([]string{"request", "request", "request", "booking", "outage", "job"}).Draw(t, "kind")
		if i == 0 {
			kind = "request"
		}
		if len(free) == 0 {
			lines = append(lines, object{
				"id": id, "kind": "request", "arrival": start, "ready": start, "deadline": end, "duration": end - start,
				"npe": 1, "accepted": false, "reason": "no_capacity",
			})
			continue
		}
		npe := rapid.IntRange(1, len(free)).Draw(t, "npe")
		line := object{"id": id, "kind": kind, "npe": npe, "start": start, "end": end}
		if i == 0 || rapid.Bool().Draw(t, "named") {
			line["pes"] = peList(free[:npe])
		}
		for at := start; at < end; at++ {
			for _, pe := range free[:npe] {
				taken[at][pe] = true
			}
		}
		if kind == "request" {
			arrival := start - rapid.IntRange(0, 5).Draw(t, "lead")
			line["arrival"] = arrival
			line["ready"] = rapid.IntRange(arrival, start).Draw(t, "ready")
			line["deadline"] = end + rapid.IntRange(0, 5).Draw(t, "slack")
			line["duration"] = end - start
			line["accepted"] = true
			var after []string
			for _, before := range ended {
				if before["end"].(int) <= start && rapid.Bool().Draw(t, "after") {
					after = append(after, before["id"].(string))
				}
			}
			if after != nil {
				line["after"] = after
			}
			ended = append(ended, line)
		}
		lines = append(lines, line)
		if kind != "outage" {
			lines = append(lines, other.draw(t, line)...)
		}
	}
	return pes, lines
}

func run(t *rapid.T, pes int, lines []object) *check.Report {
	opts := check.Options{PEs: berth.Count(pes), Speed: standard, Software: programs, Storage: storage}
	report, err := check.File(strings.NewReader(text(lines)), "f", opts)
	if err != nil {
		t.Fatalf("%v\nin %s", err, text(lines))
	}
	return report
}

func TestRandomValidSchedulesPass(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pes, lines := drawValid(t)
		lines = rapid.Permutation(lines).Draw(t, "order")
		if report := run(t, pes, lines); !report.Valid() {
			t.Fatalf("%v\nin %s", report.Violations, text(lines))
		}
	})
}

// TestRandomCorruptionsAreFound changes one thing about an accepted request
// and expects the class that belongs to it, and its id.
func TestRandomCorruptionsAreFound(t *testing.T) {
	corruptions := []struct {
		class   check.Class
		corrupt func(pes int, lines *[]object, line object)
	}{
		{check.Duplicate, func(_ int, lines *[]object, line object) { *lines = append(*lines, line) }},
		{check.Identity, func(_ int, lines *[]object, line object) {
			*lines = append(*lines, object{
				"id": "x", "kind": "booking", "npe": line["npe"], "pes": line["pes"],
				"start": line["end"].(int) - 1, "end": horizon,
			})
		}},
		{check.Capacity, func(pes int, lines *[]object, line object) {
			*lines = append(*lines, object{"id": "x", "kind": "outage", "npe": pes, "start": line["start"]})
		}},
		{check.BadRequest, func(_ int, _ *[]object, line object) { line["npe"] = 0 }},
		{check.BadRequest, func(_ int, _ *[]object, line object) { line["arrival"] = line["ready"].(int) + 1 }},
		{check.DeadlineTooEarly, func(_ int, _ *[]object, line object) {
			line["deadline"] = line["ready"].(int) + line["duration"].(int) - 1
		}},
		{check.BadReason, func(_ int, _ *[]object, line object) { line["reason"] = "quota" }},
		{check.RefusalWithStart, func(_ int, _ *[]object, line object) { line["accepted"] = false }},
		{check.MissingStart, func(_ int, _ *[]object, line object) { delete(line, "start") }},
		{check.MissingStart, func(_ int, _ *[]object, line object) { delete(line, "end") }},
		{check.Window, func(_ int, _ *[]object, line object) { line["ready"] = line["start"].(int) + 1 }},
		{check.Window, func(_ int, _ *[]object, line object) { line["deadline"] = line["end"].(int) - 1 }},
		{check.Length, func(_ int, _ *[]object, line object) { line["end"] = line["end"].(int) + 1 }},
		{check.Length, func(_ int, _ *[]object, line object) { line["duration"] = line["duration"].(int) + 1 }},
		{check.Variant, func(_ int, _ *[]object, line object) {
			line["variants"] = []object{{"npe": line["npe"], "duration": line["duration"].(int) + 1}}
		}},
		{check.TooLarge, func(pes int, _ *[]object, line object) { line["npe"] = pes + 1 }},
		{check.Count, func(_ int, _ *[]object, line object) { line["npe"] = line["npe"].(int) + 1 }},
		{check.Range, func(pes int, _ *[]object, line object) { line["pes"] = line["pes"].(string) + fmt.Sprint(",", pes) }},
		{check.Parts, func(_ int, lines *[]object, line object) {
			other := object{}
			maps.Copy(other, line)
			other["part"] = "b"
			other["start"], other["end"] = line["start"].(int)+1, line["end"].(int)+1
			*lines = append(*lines, other)
		}},
		{check.Precedence, func(_ int, lines *[]object, line object) {
			*lines = append(*lines, object{"id": "x", "kind": "job", "npe": 1, "start": 0, "end": line["start"].(int) + 1})
			line["after"] = []string{"x"}
		}},
		{check.Precedence, func(_ int, _ *[]object, line object) { line["after"] = []string{"nothing"} }},
		{check.Software, func(_ int, _ *[]object, line object) { line["software"] = "none" }},
		{check.Software, func(_ int, _ *[]object, line object) { line["software"], line["version"] = "a", "2.11" }},
		{check.Licences, func(_ int, _ *[]object, line object) {
			line["software"], line["version"], line["licences"] = "a", "1.5", 4
		}},
		{check.Licences, func(_ int, lines *[]object, line object) {
			line["software"], line["version"], line["licences"] = "a", "2", 1
			*lines = append(*lines, object{
				"id": "x", "kind": "job", "npe": 1, "start": line["end"].(int) - 1, "end": horizon,
				"software": "a", "version": "2.1", "licences": 2,
			})
		}},
		{check.Storage, func(_ int, _ *[]object, line object) { line["storage_mb"] = 11 }},
		{check.Storage, func(_ int, lines *[]object, line object) {
			begin := line["start"].(int) - 2
			line["storage_mb"] = 6
			*lines = append(*lines,
				object{"id": "r0", "kind": "staging", "start": begin, "end": begin + 1},
				object{"id": "x", "kind": "booking", "npe": 1, "start": begin + 1, "end": begin + 2, "storage_mb": 5})
		}},
		{check.Staging, func(_ int, lines *[]object, line object) {
			at := line["arrival"].(int)
			*lines = append(*lines, object{"id": "r0", "kind": "staging", "start": at - 1, "end": at})
		}},
		{check.Staging, func(_ int, lines *[]object, line object) {
			start := line["start"].(int)
			*lines = append(*lines, object{"id": "r0", "kind": "staging", "start": start - 1, "end": start + 1})
		}},
		{check.Staging, func(_ int, lines *[]object, line object) {
			*lines = append(*lines, object{"id": "r0", "kind": "staging", "start": line["start"], "end": line["end"]})
		}},
		{check.Staging, func(_ int, lines *[]object, line object) {
			*lines = append(*lines, object{"id": "r0", "kind": "staging", "start": line["arrival"], "end": line["start"]})
			line["accepted"], line["reason"] = false, "no_capacity"
		}},
	}
	rapid.Check(t, func(t *rapid.T) {
		pes, lines := drawValid(t)
		line := lines[0]
		k := rapid.IntRange(0, len(corruptions)-1).Draw(t, "corruption")
		corruptions[k].corrupt(pes, &lines, line)
		lines = rapid.Permutation(lines).Draw(t, "order")
		for _, v := range run(t, pes, lines).Violations {
			if v.Class == corruptions[k].class && slices.Contains(v.IDs, "r0") {
				return
			}
		}
		t.Fatalf("corruption %d to %s not found in %s", k, corruptions[k].class, text(lines))
	})
}

// TestAgreesWithTableOfSeconds compares the violations of capacity and of
// identity with those of a table that says for every second who has which PE.
func TestAgreesWithTableOfSeconds(t *testing.T) {
	type booking struct {
		id         string
		pool       string
		start, end int
		npe        int
		pes        []int
	}
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 9).Draw(t, "pes")
		bookings := make([]booking, rapid.IntRange(0, 12).Draw(t, "bookings"))
		var lines []object
		for i := range bookings {
			b := booking{
				id:    fmt.Sprint(i),
				pool:  rapid.SampledFrom([]string{"p", "p", "q"}).Draw(t, "pool"),
				start: rapid.IntRange(0, horizon-1).Draw(t, "start"),
			}
			b.end = min(horizon, b.start+rapid.IntRange(1, 15).Draw(t, "length"))
			line := object{"id": b.id, "kind": "booking", "pool": b.pool, "start": b.start, "end": b.end}
			if rapid.IntRange(0, 3).Draw(t, "named") > 0 {
				if rapid.Bool().Draw(t, "range") {
					first := rapid.SampledFrom([]int{0, 0, 2, 4}).Draw(t, "first") % size
					for pe := first; pe < min(size, first+rapid.SampledFrom([]int{2, 4, 8}).Draw(t, "width")); pe++ {
						b.pes = append(b.pes, pe)
					}
				} else {
					b.pes = rapid.SliceOfNDistinct(rapid.IntRange(0, size-1), 1, min(4, size), rapid.ID[int]).Draw(t, "list")
				}
				b.npe = len(b.pes)
				line["pes"] = peList(b.pes)
			} else {
				b.npe = rapid.IntRange(1, size).Draw(t, "npe")
			}
			line["npe"] = b.npe
			bookings[i] = b
			lines = append(lines, line)
		}

		var want []string
		for _, pool := range []string{"p", "q"} {
			from, ids := -1, []string(nil)
			for at := range horizon + 1 {
				load, here := 0, []string(nil)
				for _, b := range bookings {
					if b.pool == pool && b.start <= at && at < b.end {
						load += b.npe
						here = append(here, b.id)
					}
				}
				switch {
				case load > size && from < 0:
					from, ids = at, here
				case load > size:
					ids = append(ids, here...)
				case from >= 0:
					slices.SortFunc(ids, func(a, b string) int { return len(a)*10 + strings.Compare(a, b) - len(b)*10 })
					want = append(want, fmt.Sprint("capacity ", slices.Compact(ids), " [", from, ",", at, ")"))
					from = -1
				}
			}
		}
		for i, a := range bookings {
			for _, b := range bookings[i+1:] {
				from, to := max(a.start, b.start), min(a.end, b.end)
				shared := slices.ContainsFunc(a.pes, func(pe int) bool { return slices.Contains(b.pes, pe) })
				if a.pool == b.pool && from < to && shared {
					want = append(want, fmt.Sprint("identity ", []string{a.id, b.id}, " [", from, ",", to, ")"))
				}
			}
		}

		var got []string
		for _, v := range run(t, size, lines).Violations {
			interval := v.Text[strings.Index(v.Text, "["):]
			got = append(got, fmt.Sprint(v.Class, " ", v.IDs, " ", interval[:strings.Index(interval, ")")+1]))
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("got  %q\nwant %q\nin %s", got, want, text(lines))
		}
	})
}

// TestRunsAgreeWithRoot compares the two readers of PE lists.
func TestRunsAgreeWithRoot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.StringMatching(`[0-9]{1,2}(-[0-9]{1,2})?(,[0-9]{1,2}(-[0-9]{1,2})?){0,3}`).Draw(t, "list")
		set, want := berth.ParsePESet(list)
		line := object{"id": "1", "kind": "booking", "npe": max(1, int(set.Count())), "start": 0, "end": 1, "pes": list}
		report, err := check.File(strings.NewReader(text([]object{line})), "f", check.Options{PEs: 100})
		if (err == nil) != (want == nil) {
			t.Fatalf("%s: %v, and the root says %v", list, err, want)
		}
		if err == nil && !report.Valid() {
			t.Fatalf("%s: %v, and the root reads %s", list, report.Violations, set)
		}
	})
}

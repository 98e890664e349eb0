package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/scenario"
)

// threeSites is a grid of both bindings and of unlike speeds.
const threeSites = `
sites:
  - name: north
    pools:
      - {name: cpu, pes: 32}
      - {name: gpu, pes: 8, binding: late, speed: 2.2}
  - {name: wide, pes: 24, binding: late, speed: 0.8}
  - {name: small, pes: 16}
users:
  - {id: "1", priority: 9}
  - {id: "3", priority: 4}
`

// command runs a command line that must succeed, and returns what it printed.
func command(t testing.TB, args ...string) string {
	t.Helper()
	var out, messages bytes.Buffer
	if code := run(args, strings.NewReader(""), &out, &messages); code != exitOK {
		t.Fatalf("berth %s: exit code %d\n%s%.2000s", strings.Join(args, " "), code, &messages, &out)
	}
	return out.String()
}

// written writes a file of a test.
func written(t testing.TB, folder, name, text string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// schedule reads the lines of a schedule.
func schedule(t testing.TB, path string) []berth.Line {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var lines []berth.Line
	for line := range bytes.Lines(text) {
		var l berth.Line
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	return lines
}

// sound checks what the validator does not look at: nothing starts before it is
// ready, what has started ends, and everything is decided.
func sound(t testing.TB, lines []berth.Line, flags string) {
	t.Helper()
	for i := range lines {
		l := &lines[i]
		switch {
		case l.Kind == berth.KindOutage:
		case !l.Accepted && l.Reason == "" && l.Kind == berth.KindRequest:
			t.Fatalf("%s: %s is undecided", flags, l.ID)
		case !l.Accepted:
		case l.Start == nil || l.End == nil || *l.Start < l.Arrival || *l.Start < l.Ready:
			t.Fatalf("%s: %+v", flags, l)
		case l.Kind == berth.KindJob && l.ActualEnd == nil:
			t.Fatalf("%s: job %s never ended", flags, l.ID)
		}
	}
}

// TestEveryScheduleIsValid runs every preset with every pass for jobs, every
// way to treat what scenario.Overruns(), and failing nodes, on three sites of both
// bindings: the independent validator accepts every schedule.
func TestEveryScheduleIsValid(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	grid := written(t, folder, "grid.yaml", threeSites)
	names := scenario.Presets()
	if testing.Short() {
		names = []string{"li", "default"}
	}
	for _, preset := range names {
		t.Run(preset, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			killed, moved, failed := 0, 0, 0
			for i, overrun := range scenario.Overruns() {
				for k, failing := range []string{"", "3d,5h,4"} {
					args := []string{
						"sim", "--workload", firstLight, "--sites", grid, "--preset", preset, "--as", "mixed", "--reserve-share", "0.4",
						"--noise", "0.5", "--overrun", overrun, "--backfill", "all", "--seed", strconv.Itoa(i + 1), "-o", "json",
						"--schedule", filepath.Join(folder, "s.jsonl"),
					}
					if failing != "" {
						args = append(args, "--failures", failing)
					}
					if bind := []string{"", "early", "late"}[(i+k)%3]; bind != "" {
						args = append(args, "--bind", bind)
					}
					var out simOutput
					if err := json.Unmarshal([]byte(command(t, args...)), &out); err != nil {
						t.Fatal(err)
					}
					for _, r := range out.Runs {
						path := filepath.Join(folder, "s-"+r.Backfill+".jsonl")
						if got := command(t, "check", path, "--sites", grid); got != "valid\n" {
							t.Fatalf("berth %s: %s", strings.Join(args, " "), got)
						}
						sound(t, schedule(t, path), strings.Join(args, " "))
						killed, moved, failed = killed+r.Queue.Killed, moved+r.Promises.Moved, failed+r.Queue.Failed+r.Promises.Failed
					}
				}
			}
			moves := preset != "ajsm" // whose promises begin when they are made
			if killed == 0 || moves == (moved == 0) || failed == 0 {
				t.Errorf("%d jobs killed, %d promises moved, %d lost to outages: nothing was tried", killed, moved, failed)
			}
		})
	}
}

// TestEveryWorkloadHasAValidSchedule draws small workloads of all kinds, with
// outages, and flags: the command never fails, the validator accepts what it
// writes, twice the same comes out, and a request moves only if something may
// come between.
func TestEveryWorkloadHasAValidSchedule(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		folder, err := os.MkdirTemp("", "berth-matrix-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(folder)
		pick := func(label string, words []string) string { return rapid.SampledFrom(words).Draw(t, label) }
		moldable := rapid.Bool().Draw(t, "moldable")
		work := drawWorkload(t, moldable)
		// Policies of a file may do nothing for a workload, which flags must not.
		grid := threeSites + "policies:\n"
		policy := func(key, value string) { grid += fmt.Sprintf("  %s: %s\n", key, value) }
		policy("preset", pick("preset", scenario.Presets()))
		policy("order", pick("order", scenario.Orders()))
		policy("match", pick("match", scenario.Matches()))
		args := []string{"sim", "--workload", writtenTo(t, folder, "w.jsonl", work), "--sites", filepath.Join(folder, "grid.yaml")}
		requests, jobs := strings.Contains(work, `"ready"`), strings.Contains(work, `"job"`)
		immediate := pick("immediate", scenario.Immediates())
		policy("immediate", immediate)
		if requests {
			args = append(args, "--policy", pick("place", scenario.Placements()))
		}
		if queues := jobs || immediate == string(engine.ImmediateQueue); requests && queues && rapid.Bool().Draw(t, "preempt") {
			args = append(args, "--preempt")
		}
		if bind := pick("bind", []string{"", "early", "late"}); bind != "" {
			args = append(args, "--bind", bind)
		}
		if trigger := pick("trigger", append(scenario.Triggers(), "")); trigger != "" {
			policy("trigger", trigger)
			if trigger == string(engine.TriggerOnPeriod) {
				policy("every", fmt.Sprintf("%ds", rapid.IntRange(1, 20).Draw(t, "every")))
			}
		}
		writtenTo(t, folder, "grid.yaml", grid)
		outages := drawOutages(t)
		if outages != "" {
			args = append(args, "--outages", writtenTo(t, folder, "o.jsonl", outages))
		}
		if noise := pick("noise", []string{"0", "0.3", "1"}); !moldable && (noise != "0" || strings.Contains(work, `"run"`)) {
			args = append(args, "--noise", noise, "--overrun", pick("overrun", scenario.Overruns()))
		}
		schedules := make([]string, 2)
		for i := range schedules {
			path := filepath.Join(folder, fmt.Sprint(i, ".jsonl"))
			var out, messages bytes.Buffer
			args := append(slices.Clone(args), "--schedule", path, "--calendar", scenario.Calendars()[i])
			code := run(args, strings.NewReader(""), &out, &messages)
			if code != exitOK {
				t.Fatalf("%q: exit code %d\n%s\n%s%s%s", args, code, &messages, work, outages, grid)
			}
			out.Reset()
			if run([]string{"check", path, "--sites", filepath.Join(folder, "grid.yaml")}, strings.NewReader(""), &out, &messages); out.String() != "valid\n" {
				t.Fatalf("%q: %s%s\n%s%s%s", args, &out, &messages, work, outages, grid)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			schedules[i] = string(text)
		}
		if schedules[0] != schedules[1] {
			t.Fatalf("the calendars differ:\n%s\n%s", schedules[0], schedules[1])
		}
	})
}

func writtenTo(t *rapid.T, folder, name, text string) string {
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// drawWorkload draws up to twenty requests and jobs.
func drawWorkload(t *rapid.T, moldable bool) string {
	var text strings.Builder
	number := func(label string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(t, label) }
	for id := range number("lines", 1, 20) {
		arrival, duration, npe := number("arrival", 0, 60), number("duration", 1, 40), number("npe", 1, 34)
		line := fmt.Sprintf(`{"id":"%d","user":"%d","arrival":%d`, id, number("user", 1, 3), arrival)
		run := ""
		if !moldable && number("runs", 0, 2) == 0 {
			run = fmt.Sprintf(`,"run":%d`, number("run", 1, 60))
		}
		if number("kind", 0, 1) == 0 {
			deadline := ""
			if number("limited", 0, 2) == 0 {
				deadline = fmt.Sprintf(`,"deadline":%d`, arrival+duration+number("limit", 0, 60))
			}
			fmt.Fprintf(&text, `%s,"kind":"job","npe":%d,"duration":%d%s%s}`+"\n", line, npe, duration, deadline, run)
			continue
		}
		ready := arrival + number("lead", 0, 30)*number("ahead", 0, 1)
		line += fmt.Sprintf(`,"ready":%d,"deadline":%d%s`, ready, ready+duration+number("slack", 0, 80), run)
		switch number("shape", 0, 3) {
		case 0:
			fmt.Fprintf(&text, `%s,"part":1,"npe":%d,"duration":%d}`+"\n", line, npe, duration)
			fmt.Fprintf(&text, `%s,"part":2,"npe":%d,"duration":%d}`+"\n", line, number("npe 2", 1, 16), max(1, duration-number("shorter", 0, 9)))
			continue
		case 1:
			if moldable {
				fmt.Fprintf(&text, `%s,"variants":[{"npe":%d,"duration":%d},{"npe":%d,"duration":%d}]}`+"\n", line, npe, duration,
					min(34, 2*npe), max(1, duration*2/3))
				continue
			}
		}
		fmt.Fprintf(&text, `%s,"npe":%d,"duration":%d}`+"\n", line, npe, duration)
	}
	return text.String()
}

// drawOutages draws the lines of up to six outages, or none at all.
func drawOutages(t *rapid.T) string {
	pools := []struct {
		names string
		pes   int
	}{
		{`"site":"north","pool":"cpu"`, 32}, {`"site":"north","pool":"gpu"`, 8}, {`"site":"wide"`, 24}, {`"site":"small"`, 16},
	}
	var text strings.Builder
	for range rapid.IntRange(0, 6).Draw(t, "outages") {
		p := rapid.SampledFrom(pools).Draw(t, "pool")
		lo := rapid.IntRange(0, p.pes-1).Draw(t, "lo")
		start := rapid.IntRange(-5, 90).Draw(t, "start")
		fmt.Fprintf(&text, `{"kind":"outage",%s,"pes":"%d-%d","start":%d`, p.names, lo, rapid.IntRange(lo, p.pes-1).Draw(t, "hi"), start)
		if rapid.IntRange(0, 7).Draw(t, "ends") > 0 {
			fmt.Fprintf(&text, `,"end":%d`, start+rapid.IntRange(1, 50).Draw(t, "length"))
		}
		text.WriteString("}\n")
	}
	return text.String()
}

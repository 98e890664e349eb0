package reproduce

import (
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/internal/realdata"
	"github.com/berth-hpc/berth/internal/stream"
	"github.com/berth-hpc/berth/sim"
	"github.com/berth-hpc/berth/workload"
)

// What docs/results/offers.md states; segments are those of docs/results/least-pressure.md.
var (
	offersTaken      = []float64{0, 0.25, 0.5, 0.75, 1}
	offersPlacements = []string{"first-fit", "least-pressure"}
	offersPatience   = []float64{1, math.Inf(1)} // how late an offer may be to be taken, in windows
	offersHeader     = []string{"log", "load", "segment", "placement", "patience", "taken", "asked", "served", "work", "offered", "late"}
)

const (
	offersBegin = "<!-- from segments.csv; go test ./reproduce -run OffersTaken -update writes it -->\n"
	offersEnd   = "<!-- end of segments.csv -->\n"
)

// takers is what became of requests whose users, when refused, take the earliest later end that is offered, each with a probability.
type takers struct {
	asked, offered, served int     // requests: accepted as asked for, by an offer, both
	work                   int64   // PE-seconds accepted
	late                   float64 // of the offers taken: the sum of what they are late, in windows from ready time to deadline
}

// take plays requests in the order of their arrivals. A window is the time from ready time to deadline.
func take(t *testing.T, pes berth.Count, place string, requests []berth.Request, patience, taken float64, seed uint64) (k takers) {
	t.Helper()
	preset, _ := engine.PresetNamed("li")
	config := engine.Config{Sites: sim.OnePool(pes, berth.Early), Place: place}
	preset.Apply(&config)
	e, err := engine.New(config)
	if err != nil {
		t.Fatal(err)
	}
	submit := func(r *berth.Request) bool {
		changes, _, err := e.Apply(r.Arrival, engine.Submit(r))
		if err != nil {
			t.Fatal(err)
		}
		for i := range changes {
			if changes[i].Kind == change.Accepted {
				k.work += r.Parts[0].Variants[0].Area()
				return true
			}
		}
		return false
	}
	draws := stream.New(seed, "takers")
	for i := range requests {
		r := &requests[i]
		if submit(r) {
			k.asked++
			continue
		}
		if draws.Float64(uint64(i)) >= taken { // the same users take at any higher probability
			continue
		}
		offers, err := e.Offers(r, 8)
		if err != nil {
			t.Fatal(err)
		}
		for j := range offers {
			o := &offers[j]
			if o.Difference != engine.OfferLater {
				continue
			}
			late := float64(o.Allotments[0].End-r.Deadline) / float64(r.Deadline-r.Ready)
			if late > patience {
				continue
			}
			o.Request.ID = r.ID + "-later"
			if !submit(&o.Request) {
				t.Fatalf("%s: an offer of %s for request %s is refused", place, r.ID, o.Request.ID)
			}
			k.offered++
			k.late += late
		}
	}
	k.served = k.asked + k.offered
	return k
}

// offersSegment returns the rows of one segment of a log, from 0.
func offersSegment(t *testing.T, l *archiveLog, records []workload.Record, load float64, segment int) [][]string {
	t.Helper()
	from := (len(records) - pressureJobs) * segment / (pressureSegments - 1)
	transform := workload.NewTransform(uint64(segment + 1))
	transform.ArrivalFactor = load
	requests, err := transform.Requests(records[from:from+pressureJobs], true, nil)
	if err != nil {
		t.Fatal(err)
	}
	var work int64
	for i := range requests {
		work += requests[i].Parts[0].Variants[0].Area()
	}
	var rows [][]string
	for _, place := range offersPlacements {
		for _, patience := range offersPatience {
			for _, taken := range offersTaken {
				k := take(t, l.pes, place, requests, patience, taken, uint64(segment+1))
				percent := func(n int) string { return strconv.FormatFloat(100*float64(n)/float64(len(requests)), 'f', 3, 64) }
				rows = append(rows, []string{
					l.name, fmt.Sprint(load), strconv.Itoa(segment + 1), place, fmt.Sprint(patience), fmt.Sprint(taken), percent(k.asked), percent(k.served),
					strconv.FormatFloat(100*float64(k.work)/float64(work), 'f', 3, 64), percent(k.offered), strconv.FormatFloat(k.late/float64(max(1, k.offered)), 'f', 3, 64),
				})
			}
		}
	}
	return rows
}

// The numbers of the page are those of segments.csv, and those are what is measured: the first segment of each log is played
// again, all with -update.
func TestOffersTaken(t *testing.T) {
	if testing.Short() {
		t.Skip("whole simulations in one goroutine")
	}
	file := filepath.Join("..", "docs", "results", "offers", "segments.csv")
	page := filepath.Join("..", "docs", "results", "offers.md")
	segments := 1
	if *update {
		segments = pressureSegments
	}
	var measured [][]string
	logs := bestLogs()
	for i := range logs {
		l := &logs[i]
		log, err := l.open(realdata.File(t, "swf", l.file+".swf.gz"))
		if err != nil {
			t.Fatal(err)
		}
		for _, load := range pressureLoads {
			for segment := range segments {
				measured = append(measured, offersSegment(t, l, log.Records, load, segment)...)
			}
		}
	}
	if *update {
		writeRows(t, file, append([][]string{offersHeader}, measured...))
	}
	kept := readRows(t, file)
	if want := len(pressureLogs) * len(pressureLoads) * pressureSegments * len(offersPlacements) * len(offersPatience) * len(offersTaken); len(kept) != want {
		t.Fatalf("%s has %d rows, want %d", file, len(kept), want)
	}
	var first [][]string
	for _, row := range kept {
		if row[2] == "1" || *update {
			first = append(first, row)
		}
	}
	if diff := cmp.Diff(first, measured); diff != "" {
		t.Errorf("segments.csv (-) is not what is measured (+):\n%s", diff)
	}
	pageHolds(t, page, offersBegin, offersEnd, offersTable(t, kept))
}

// offersTable writes a table for each placement and patience: by log and load, what is served as more users take offers.
func offersTable(t *testing.T, rows [][]string) string {
	t.Helper()
	const asked, served, work, offered, late = 6, 7, 8, 9, 10
	last := len(offersTaken) - 1
	var text strings.Builder
	for place, name := range offersPlacements {
		for patience, windows := range offersPatience {
			title := fmt.Sprintf("offers at most %g window late", windows)
			if math.IsInf(windows, 1) {
				title = "any offer"
			}
			fmt.Fprintf(&text, "\n**%s, %s**\n\n| log | load | served with p = 0, 0.25, 0.5, 0.75, 1, %% | with p = 1: more served, points | more work, points | more as asked for, points | offers taken, %% | more served for each | late, windows |\n|---|---|---|---|---|---|---|---|---|\n", name, title)
			for log := range pressureLogs {
				for load := range pressureLoads {
					at := func(taken, column int) (s sample) {
						for segment := range pressureSegments {
							row := rows[((((log*len(pressureLoads)+load)*pressureSegments+segment)*len(offersPlacements)+place)*len(offersPatience)+patience)*len(offersTaken)+taken]
							x, err := strconv.ParseFloat(row[column], 64)
							if err != nil {
								t.Fatal(err)
							}
							s = append(s, x)
						}
						return s
					}
					var all []string
					for p := range offersTaken {
						all = append(all, fmt.Sprintf("%.2f", pricedMean(at(p, served))))
					}
					more, each := at(last, served).minus(at(0, served)), "—"
					if n := pricedMean(at(last, offered)); n > 0 {
						each = fmt.Sprintf("%.2f", pricedMean(more)/n)
					}
					fmt.Fprintf(&text, "| %s | %g | %s | %s | %s | %s | %.2f | %s | %.2f |\n", pressureLogs[log].name, pressureLoads[load], strings.Join(all, ", "), gained(more),
						gained(at(last, work).minus(at(0, work))), gained(at(last, asked).minus(at(0, asked))), pricedMean(at(last, offered)), each, pricedMean(at(last, late)))
				}
			}
		}
	}
	text.WriteString("\n")
	return text.String()
}

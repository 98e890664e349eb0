package reproduce

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/internal/offline"
	"github.com/berth-hpc/berth/internal/realdata"
	"github.com/berth-hpc/berth/sim"
	"github.com/berth-hpc/berth/workload"
)

var competitiveSteps = flag.Int("competitive.steps", 1500, "steps of each search for a worst case that -update measures for docs/results/competitive.md")

// What docs/results/competitive.md states.
const (
	worstPEs    = 16
	worstJobs   = 20
	worstRounds = 300 // of the search for the best plan
	orderJobs   = 60
	orderSteps  = 1500
	orderLoad   = 4
)

var worstPlacements = []string{"first-fit", "pe-worst", "least-pressure"}

// worstClass is what an adversary may ask for: durations from 60 s to spread, PEs up to width, and windows that are longer than the duration
// by slack quarters of it or more. It may ask up to 2·spread before the ready time.
type worstClass struct {
	spread berth.Duration
	width  berth.Count
	slack  int64
}

var worstClasses = func() (all []worstClass) {
	for _, spread := range []berth.Duration{1, 4, 16} {
		for _, width := range []berth.Count{worstPEs, worstPEs / 4} {
			for _, slack := range []int64{0, 4} {
				all = append(all, worstClass{spread * 60, width, slack})
			}
		}
	}
	return all
}()

// online returns what a placement accepts of requests that arrive in this order.
func online(t *testing.T, pes berth.Count, place string, requests []berth.Request) offline.Plan {
	t.Helper()
	preset, _ := engine.PresetNamed("li")
	config := engine.Config{Sites: sim.OnePool(pes, berth.Early), Place: place}
	preset.Apply(&config)
	e, err := engine.New(config)
	if err != nil {
		t.Fatal(err)
	}
	plan := make(offline.Plan, len(requests))
	for i := range requests {
		plan[i] = offline.Rejected
		changes, _, err := e.Apply(requests[i].Arrival, engine.Submit(&requests[i]))
		if err != nil {
			t.Fatal(err)
		}
		for j := range changes {
			if changes[j].Kind == change.Accepted {
				plan[i] = changes[j].Reservation.Allotments[0].Start
			}
		}
	}
	return plan
}

// against returns how many times as much as a placement accepts could have been accepted: by a plan that is found. It is 1 if no plan can
// be worth more than enough times as much, and nothing is looked for then.
func against(t *testing.T, pes berth.Count, place string, requests []berth.Request, by int, enough float64) float64 {
	t.Helper()
	p := offline.Of(requests, pes, by)
	plan := online(t, pes, place, requests)
	value, possible := p.Value(plan)
	if !possible {
		t.Fatalf("the plan of %s breaks the rules of offline", place)
	}
	if value == 0 || float64(p.Worth())/float64(value) <= enough {
		return 1
	}
	best, possible := p.Value(p.Search(plan, worstRounds, rand.New(rand.NewPCG(1, 1))))
	if !possible {
		t.Fatal("the best plan is none")
	}
	return float64(best) / float64(value)
}

// worst looks for requests of a class on which a placement is far from the best, by simulated annealing.
func worst(t *testing.T, place string, class worstClass, by, steps int, seed uint64) (found []berth.Request, r float64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 7))
	draw := func(name int) berth.Request {
		d := 60 + berth.Duration(random.Int64N(int64(class.spread)-59))
		arrival := berth.Time(random.Int64N(int64(class.spread) * 2))
		ready := arrival + berth.Time(random.Int64N(int64(class.spread)*2+1))
		slack := int64(d) * class.slack / 4
		slack += random.Int64N(int64(d) + 1)
		if random.IntN(2) == 0 {
			slack = int64(d) * class.slack / 4
		}
		return berth.Rigid(strconv.Itoa(name), arrival, ready, ready.Add(d)+berth.Time(slack), 1+berth.Count(random.IntN(int(class.width))), d)
	}
	ordered := func(list []berth.Request) []berth.Request {
		list = slices.Clone(list)
		slices.SortStableFunc(list, func(a, b berth.Request) int { return int(a.Arrival - b.Arrival) })
		return list
	}
	now := make([]berth.Request, worstJobs)
	for i := range now {
		now[i] = draw(i)
	}
	at := against(t, worstPEs, place, ordered(now), by, 0)
	found, r = ordered(now), at
	for step := range steps {
		next := slices.Clone(now)
		for range 1 + random.IntN(3) {
			i := random.IntN(len(next))
			if random.IntN(2) == 0 { // as another one, or at its time
				one := next[random.IntN(len(next))]
				one.ID = next[i].ID
				next[i] = one
			} else {
				next[i] = draw(i)
			}
		}
		heat := 0.1 * (1 - float64(step)/float64(steps))
		wanted := at * (1 + float64(heat*math.Log(1-random.Float64())))
		if got := against(t, worstPEs, place, ordered(next), by, wanted); got >= wanted {
			now, at = next, got
			if got > r {
				found, r = ordered(next), got
			}
		}
	}
	return found, r
}

// worstOrder looks for an order of arrivals in which a placement does worst, of requests that all ask before the first may begin: by
// exchanging two. It returns what could have been accepted, at least, as a multiple of what is in the order of the log, and in the worst.
func worstOrder(t *testing.T, pes berth.Count, place string, requests []berth.Request, by, steps int) (given, found float64) {
	t.Helper()
	p := offline.Of(requests, pes, by)
	now := make([]berth.Request, len(requests))
	for i := range requests {
		now[i] = requests[i]
		now[i].Arrival = requests[0].Arrival
	}
	value := func(list []berth.Request) (int64, offline.Plan) {
		plan := online(t, pes, place, list)
		v, possible := offline.Of(list, pes, by).Value(plan)
		if !possible {
			t.Fatalf("the plan of %s breaks the rules of offline", place)
		}
		return v, plan
	}
	first, plan := value(now)
	best, _ := p.Value(p.Search(plan, 20*worstRounds, rand.New(rand.NewPCG(1, 1))))
	random, least := rand.New(rand.NewPCG(3, 3)), first
	for range steps {
		i, j := random.IntN(len(now)), random.IntN(len(now))
		now[i], now[j] = now[j], now[i]
		if v, _ := value(now); v <= least {
			least = v
		} else {
			now[i], now[j] = now[j], now[i]
		}
	}
	return float64(best) / float64(first), float64(best) / float64(least)
}

const (
	competitiveBegin = "<!-- from cases.csv and orders.csv; go test ./reproduce -run Competitive -update writes it -->\n"
	competitiveEnd   = "<!-- end of cases.csv and orders.csv -->\n"
	orderSegments    = 10
)

var (
	caseHeader  = []string{"spread", "width", "slack", "placement", "measure", "arrival", "ready", "deadline", "npe", "duration"}
	orderHeader = []string{"log", "segment", "placement", "measure", "given", "worst"}
)

// caseRows writes requests down, a row for each.
func caseRows(class worstClass, place string, by int, requests []berth.Request) (rows [][]string) {
	for i := range requests {
		r := &requests[i]
		v := r.Parts[0].Variants[0]
		rows = append(rows, []string{
			fmt.Sprint(class.spread), fmt.Sprint(class.width), fmt.Sprint(class.slack), place, bestMeasures[by],
			fmt.Sprint(r.Arrival), fmt.Sprint(r.Ready), fmt.Sprint(r.Deadline), fmt.Sprint(v.NPE), fmt.Sprint(v.Duration),
		})
	}
	return rows
}

// caseOf reads the requests of rows.
func caseOf(t *testing.T, rows [][]string) (requests []berth.Request) {
	t.Helper()
	for i, row := range rows {
		var x [5]int64
		for k := range x {
			n, err := strconv.ParseInt(row[5+k], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			x[k] = n
		}
		requests = append(requests, berth.Rigid(strconv.Itoa(i), berth.Time(x[0]), berth.Time(x[1]), berth.Time(x[2]), berth.Count(x[3]), berth.Duration(x[4])))
	}
	return requests
}

// orderRows looks for the worst order of segments of a log.
func orderRows(t *testing.T, l *archiveLog, segments int) (rows [][]string) {
	t.Helper()
	log, err := l.open(realdata.File(t, "swf", l.file+".swf.gz"))
	if err != nil {
		t.Fatal(err)
	}
	for segment := range segments {
		from := (len(log.Records) - orderJobs) * segment / (orderSegments - 1)
		transform := workload.NewTransform(uint64(segment + 1))
		transform.ArrivalFactor = orderLoad
		requests, err := transform.Requests(log.Records[from:from+orderJobs], true, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, place := range worstPlacements {
			for by, measure := range bestMeasures {
				given, found := worstOrder(t, l.pes, place, requests, by, orderSteps)
				rows = append(rows, []string{l.name, strconv.Itoa(segment + 1), place, measure, fmt.Sprintf("%.3f", given), fmt.Sprintf("%.3f", found)})
			}
		}
	}
	return rows
}

// The page shows what is on record; the worst cases on record are as bad as it says, and the orders of the first segments of two logs are found
// again. With -update all are looked for.
func TestCompetitive(t *testing.T) {
	if testing.Short() {
		t.Skip("whole simulations in one goroutine")
	}
	folder := filepath.Join("..", "docs", "results", "competitive")
	page := folder + ".md"
	logs, segments := bestLogs()[:2], 1
	if *update {
		logs, segments = bestLogs(), orderSegments
		cases := [][]string{caseHeader}
		for _, class := range worstClasses {
			for _, place := range worstPlacements {
				for by := range bestMeasures {
					requests, r := worst(t, place, class, by, *competitiveSteps, 1)
					t.Logf("%v, %s, %s: %.2f", class, place, bestMeasures[by], r)
					cases = append(cases, caseRows(class, place, by, requests)...)
				}
			}
		}
		writeRows(t, filepath.Join(folder, "cases.csv"), cases)
	}
	var measured [][]string
	for i := range logs {
		measured = append(measured, orderRows(t, &logs[i], segments)...)
	}
	if *update {
		writeRows(t, filepath.Join(folder, "orders.csv"), append([][]string{orderHeader}, measured...))
	}
	cases, orders := readRows(t, filepath.Join(folder, "cases.csv")), readRows(t, filepath.Join(folder, "orders.csv"))
	if len(cases) != len(worstClasses)*len(worstPlacements)*len(bestMeasures)*worstJobs || len(orders) != len(bestLogs())*orderSegments*len(worstPlacements)*len(bestMeasures) {
		t.Fatalf("%d rows of cases and %d of orders on record", len(cases), len(orders))
	}
	var first [][]string
	for _, row := range orders {
		if *update || row[1] == "1" && (row[0] == logs[0].name || row[0] == logs[1].name) {
			first = append(first, row)
		}
	}
	if diff := cmp.Diff(first, measured); diff != "" {
		t.Errorf("orders.csv (-) is not what is measured (+):\n%s", diff)
	}
	pageHolds(t, page, competitiveBegin, competitiveEnd, competitiveTable(t, cases, orders))
}

// competitiveTable measures the cases again, and writes both tables.
func competitiveTable(t *testing.T, cases, orders [][]string) string {
	t.Helper()
	var text strings.Builder
	text.WriteString("\n**Worst cases found: how many times as much could have been accepted, at least (and at most)**\n\n| durations | PEs of a request | slack of a window |")
	for _, measure := range bestMeasures {
		for _, place := range worstPlacements {
			fmt.Fprintf(&text, " %s: %s |", measure, place)
		}
	}
	text.WriteString("\n|" + strings.Repeat("---|", 3+len(bestMeasures)*len(worstPlacements)) + "\n")
	at := 0
	for _, class := range worstClasses {
		cells := make([]string, len(bestMeasures)*len(worstPlacements))
		for k, place := range worstPlacements {
			for by := range bestMeasures {
				rows := cases[at : at+worstJobs]
				at += worstJobs
				requests := caseOf(t, rows)
				if diff := cmp.Diff(rows, caseRows(class, place, by, requests)); diff != "" {
					t.Fatalf("cases.csv (-) has another case than is looked for (+):\n%s", diff)
				}
				p := offline.Of(requests, worstPEs, by)
				value, _ := p.Value(online(t, worstPEs, place, requests))
				most := float64(min(p.Bound(p.Price(512, 1000)), p.Worth())) / float64(value)
				cells[by*len(worstPlacements)+k] = fmt.Sprintf("%.2f (%.2f)", against(t, worstPEs, place, requests, by, 0), most)
			}
		}
		slack := "any"
		if class.slack > 0 {
			slack = fmt.Sprintf("at least %g duration", float64(class.slack)/4)
		}
		spread := "1"
		if class.spread > 60 {
			spread = fmt.Sprintf("1 to %d", class.spread/60)
		}
		fmt.Fprintf(&text, "| %s | up to %d of %d | %s | %s |\n", spread, class.width, worstPEs, slack, strings.Join(cells, " | "))
	}
	text.WriteString("\n**Orders of arrival: what could have been accepted, in multiples of what is: in the order of the log → in the worst order found**\n\n| log |")
	for _, measure := range bestMeasures {
		for _, place := range worstPlacements {
			fmt.Fprintf(&text, " %s: %s |", measure, place)
		}
	}
	text.WriteString("\n|" + strings.Repeat("---|", 1+len(bestMeasures)*len(worstPlacements)) + "\n")
	for _, l := range bestLogs() {
		fmt.Fprintf(&text, "| %s |", l.name)
		for _, measure := range bestMeasures {
			for _, place := range worstPlacements {
				var given, found float64
				for _, row := range orders {
					if row[0] == l.name && row[2] == place && row[3] == measure {
						given += bestFigure(t, row[4]) / orderSegments
						found += bestFigure(t, row[5]) / orderSegments
					}
				}
				fmt.Fprintf(&text, " %.2f → %.2f |", given, found)
			}
		}
		text.WriteString("\n")
	}
	text.WriteString("\n")
	return text.String()
}

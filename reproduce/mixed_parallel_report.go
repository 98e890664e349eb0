package reproduce

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
)

// mixedNotes say where the paper leaves something open, and what was done.
func mixedNotes(logs []*openLog) []string {
	notes := []string{
		"The reservations of Grid'5000 (GWA-T-2 of the Grid Workloads Archive) were not at hand. Where the paper uses it (Tables 5, 7, 9 and 10 and a column of Table 6), the schedules thinned exponentially stand in for it, which the paper finds most like it (correlation 0.54): made of batch jobs, not of reservations, so only shapes can be compared. The correlations of section 3.2.2 are not testable.",
		"A scenario is a kind of workflow on a kind of schedule, 40 × 9 for each log. Its instances are times drawn uniformly from the log (thirty days from its beginning to seven before its end), taggings of its jobs, and of the paper's 20 workflows of each kind as many as fit the number of instances, in turn.",
		"Intervals are Student's t over the times at which is planned: each scenario is averaged over what was tagged and planned then, and these means over the scenarios. Wins are counted on the means of scenarios, over all instances.",
		"The degradation is from the best of the planners in the same table, instance by instance.",
		"CPA's improved stopping rule is not in the paper. Here the average area is taken over √(q·min(q,n)) PEs, which gives the table's pattern (spec 2, b.2).",
		"What resource conservative planners keep free comes from a schedule that CPA makes of the tasks that are left. PEs are allotted once, to the whole workflow, and only the mapping is repeated, as section 6.1 counts it; allotted anew each time, as section 5.2.2 may also be read, tightest deadlines are two to three times as loose.",
		"The loose deadline is half as late again as the latest of the seven tightest ones; taken literally, the paper's \"50 % as large\" could not be met. Instances in which a planner misses it do not count for its CPU-hours, and are counted (table failures).",
		"Tightest deadlines are searched to a minute or half a per cent. The planners may fail at a deadline although they meet an earlier one, so the search finds a border, not the border.",
		"Table 6 is of SDSC-BLUE, as in the paper, which searched deadlines on no other log; claims A8, A13 and A14 are over all logs.",
		"The times of Tables 9 and 10 are measured here, in processor time where the system tells it, and are the one thing in this report that another run does not repeat. They are in two forms: the paper's own steps, one after another, and ours, which remembers what steps have in common; both give the same plans. Each is the median of repetitions: as many as make its 95 % interval at most 5 % wide, at least six, or as take 50 ms, so that plans of more than that are timed once. Deadlines there are half as late again as the latest tightest one of these planners.",
	}
	if missing := absent(mixedLogs, logs); missing != "" {
		notes = append(notes, "Not there (--data): "+missing+". Scenarios on them are left out.")
	}
	for _, l := range logs {
		notes = append(notes, fmt.Sprintf("%s is of the Parallel Workloads Archive; thanks to %s, and to the archive (Feitelson, Tsafrir, Krakov, JPDC 2014).", l.file, l.thanks))
	}
	if logOf(logs, 0) != nil {
		notes = append(notes, "The archive's log of the CTC SP2 is of the 338 PEs of its batch partition, the paper's machine has 430; that of the OSC cluster is of 178 PEs, the paper's has 57, so tagged jobs that do not fit are left out.")
	}
	if logOf(logs, 3) != nil {
		notes = append(notes, "Of SDSC-DS the jobs of partition 3 that completed are taken: their run times and waits have the means of Table 3 (1.52 and 4.41 hours). They use 31 % of the 224 PEs, the paper says 27.3 %; with the jobs that were cancelled or failed it would be 65 %.")
	}
	return notes
}

// mixedRows tells what was simulated.
func mixedRows(scale mixedScale, logs []*openLog) []Row {
	var names []string
	for _, l := range logs {
		names = append(names, fmt.Sprintf("%s (%d PEs)", l.file, l.pes))
	}
	n := len(mixedSchedules(logs)) * len(mixedKinds())
	return []Row{
		{"logs", strings.Join(names, ", ")},
		{"scenarios", fmt.Sprintf("%d: 40 kinds of workflows on φ 0.1, 0.2 and 0.5 × linear, expo and real of each log", n)},
		{"instances", fmt.Sprintf("%d of each scenario, %d in all: %d starts, %d taggings each, %d workflows each", scale.instances(), n*scale.instances(), scale.starts, scale.taggings, scale.workflows)},
		{"workflows", "as the program daggen makes them; 10 to 100 tasks (50), α below 0.05 to 0.2 (0.2), width, density and regularity 0.1 to 0.9 (0.5), jump 1 to 4 (1); a minute to ten hours on one PE"},
		{"planners", strings.Join(bdNames, ", ") + " with bottom levels " + strings.Join(blNames, ", ") + "; " + strings.Join(dlNames, ", ")},
	}
}

// mixedFigures draws the trends.
func mixedFigures(d *mixedData) []Figure {
	if len(d.schedules) == 0 {
		return nil
	}
	const caption = "Means over the scenarios and 95 % intervals over the times at which is planned; what belongs to one value stands side by side."
	var figures []Figure
	along := func(name, title, x, y string, xs []float64, names []string, of func(i int, x float64) sample) {
		f := Figure{Name: name, Title: title, Caption: caption, X: x, Y: y, Within: notNegative}
		for _, at := range xs {
			f.Ticks = append(f.Ticks, Tick{At: at, Label: strconv.FormatFloat(at, 'g', -1, 64)})
		}
		for i := range names {
			var samples []sample
			for _, at := range xs {
				samples = append(samples, of(i, at))
			}
			f.Series = append(f.Series, line(names[i], xs, nil, samples))
		}
		figures = append(figures, f)
	}
	byKind := func(parameter string, first int) func(int, float64) sample {
		return func(i int, x float64) sample { return d.over(d.among(ofKind(parameter, x)), first+i) }
	}
	byShare := func(first int) func(int, float64) sample {
		return func(i int, x float64) sample { return d.over(d.of6List(x), first+i) }
	}
	const tat, cpu, tight, hours = "turn-around above the best, %", "CPU-hours above the fewest, %", "tightest deadline above the best, %", "CPU-hours above the fewest, %"
	const width, density, share, tasks = "width of the workflows", "density of the workflows", "φ, share of the log's jobs that are bookings", "tasks of a workflow"
	along("turnaround-by-width", "Turn-around by the width of workflows (Table 4)", width, tat, ninths, bdNames, byKind("width", atTAT))
	along("turnaround-by-width-bounded", "Turn-around by the width of workflows, bd-cpa and bd-cpar alone (Table 4)", width, tat, ninths, bdNames[bdCPA:], byKind("width", atTAT+bdCPA))
	along("hours-by-width", "CPU-hours by the width of workflows (Table 4)", width, cpu, ninths, bdNames, byKind("width", atCPU))
	along("turnaround-by-tasks", "Turn-around by the number of tasks", tasks, tat, taskNumbers, bdNames, byKind("tasks", atTAT))
	along("turnaround-by-density", "Turn-around by the density of workflows", density, tat, ninths, bdNames, byKind("density", atTAT))
	along("turnaround-by-share", "Turn-around by the share of booked jobs", share, tat, mixedShares, bdNames,
		func(i int, x float64) sample { return d.over(d.among(ofShare(x)), atTAT+i) })
	if len(d.machines) > 0 {
		var sizes []float64
		for _, pes := range machineSizes {
			sizes = append(sizes, float64(pes))
		}
		along("behind-by-machine", "How far bd-all is behind bd-cpar, by the size of the machine (SDSC-BLUE scaled)", "PEs", "turn-around above bd-cpar's, %", sizes,
			[]string{"bd-all"}, func(_ int, x float64) sample { return d.machines[slices.Index(machineSizes, berth.Count(x))] })
	}
	along("tightest-by-share", "Tightest deadlines by the share of booked jobs (Table 6)", share, tight, mixedShares, dlNames[:5], byShare(at6Tight))
	along("tightest-by-share-others", "Tightest deadlines by the share of booked jobs, without dl-bd-all (Table 6)", share, tight, mixedShares, dlNames[dlCPA:5], byShare(at6Tight+dlCPA))
	along("hours-by-share", "CPU-hours by a loose deadline, by the share of booked jobs (Table 6)", share, hours, mixedShares, dlNames[:5], byShare(at6CPU))
	along("hours-by-share-others", "CPU-hours by a loose deadline, without dl-bd-all (Table 6)", share, hours, mixedShares, dlNames[dlCPA:5], byShare(at6CPU+dlCPA))
	along("tightest-by-tasks", "Tightest deadlines by the number of tasks (Table 7)", tasks, tight, taskNumbers, names7(), byKind("tasks", at7Tight))
	along("lambda", "λ at the tightest deadline, by the number of tasks", tasks, "λ", taskNumbers, []string{dlNames[ofLambda[0]], dlNames[ofLambda[1]]},
		func(i int, x float64) sample { return d.over(d.among(ofKind("tasks", x)), atLambda+2*i) })
	figures = append(figures, d.levelsFigure(), d.logsFigure())
	for form, name := range timeForms {
		along("times-"+name, "Planning times by the number of tasks, "+timeTitles[form]+" (Table 9)", tasks, "ms", taskNumbers, timedNames,
			func(i int, x float64) sample { return d.time(mixedKind{"tasks", x}, timedNames[i], form).log() })
		f := &figures[len(figures)-1]
		f.Log, f.Within = true, nil
		f.Caption = "Geometric means of processor times and their 95 % intervals over the times at which is planned; what belongs to one number stands side by side."
		for i := range f.Series {
			f.Series[i] = geometric(f.Series[i])
		}
	}
	return figures
}

// timeTitles are the forms of planners for people, in the order of timeForms.
var timeTitles = []string{"the paper's form", "our form"}

// log returns the sample's decimal logarithms; a time too short to be measured
// has none.
func (s sample) log() sample {
	logs := make(sample, len(s))
	for i := range s {
		if logs[i] = math.NaN(); s[i] > 0 {
			logs[i] = math.Log10(s[i])
		}
	}
	return logs
}

// levelsFigure shows what the ways to compute bottom levels are worth.
func (d *mixedData) levelsFigure() Figure {
	f := Figure{
		Name: "levels", Title: "Improvement of the turn-around over bl-1 (section 4.3.1)", X: "bottom levels", Y: "improvement, %", Zero: true,
		Caption: "Means over the scenarios and the bounds all, cpa and cpar, and 95 % intervals over the times at which is planned.", Ticks: ticksAt(blNames),
	}
	s := d.levels()
	series := line("over bl-1", nil, blNames, s.improvement[:])
	series.Line = false
	f.Series = []Series{series}
	return f
}

// logsFigure compares the logs.
func (d *mixedData) logsFigure() Figure {
	f := Figure{
		Name: "turnaround-by-log", Title: "Turn-around by log", X: "log", Y: "turn-around above the best, %", Within: notNegative,
		Caption: "Means over the scenarios and 95 % intervals over the times at which is planned.",
	}
	var labels []string
	var lists [][]scenario
	for i := range mixedLogs {
		if list := d.among(ofLog(i)); len(list) > 0 {
			labels, lists = append(labels, mixedLogs[i].name), append(lists, list)
		}
	}
	f.Ticks = ticksAt(labels)
	for i, name := range bdNames {
		var samples []sample
		for _, list := range lists {
			samples = append(samples, d.over(list, atTAT+i))
		}
		f.Series = append(f.Series, line(name, nil, labels, samples))
	}
	return f
}

// mixedTables has the counterparts of the paper's tables, and every scenario.
func mixedTables(d *mixedData) []Table {
	if len(d.schedules) == 0 {
		return nil
	}
	tables := []Table{d.logTable(), d.boundTable("table4", "Table 4: turn-around and CPU-hours", table4, d.among(nil))}
	if expo := d.among(ofExpo); len(expo) > 0 {
		tables = append(tables, d.boundTable("table5", "Table 5: the same, exponential schedules for Grid'5000", table5, expo))
	}
	tables = append(tables, d.table6(), d.table7(), d.timeTable("table9", "Table 9: planning times in ms by the number of tasks", "tasks", taskNumbers, table9),
		d.timeTable("table10", "Table 10: planning times in ms by the density", "density", ninths, table10), d.growthTable(), d.failureTable(), d.scenarioTable())
	return tables
}

// Published numbers, in the order of our planners.
var (
	table4 = [][4]float64{{33.75, 36, 42.48, 0}, {28.38, 3, 37.83, 1}, {0.29, 1026, 0.75, 6}, {0.21, 386, 0, 1434}}
	table5 = [][4]float64{{34.32, 0, 43.08, 0}, {30.43, 9, 29.17, 0}, {0.19, 9, 0.82, 0}, {0.15, 30, 0, 40}}
	// By planner, φ 0.1, 0.2, 0.5 and Grid'5000; the last cell of DL_BD_ALL's
	// CPU-hours is lost in the text.
	table6Tight = [][4]float64{{178.43, 175.58, 188.33, 227.03}, {6.11, 6.16, 6.26, 8}, {6.52, 6.44, 6.91, 8.38}, {13.17, 13.27, 17.36, 19.51}, {4.12, 4.27, 8.26, 15.13}}
	table6Hours = [][4]float64{{3556.70, 3486.30, 3769.20, math.NaN()}, {252.30, 251.36, 275.05, 185.58}, {231.01, 236.97, 243.60, 179.35}, {6.39, 6.80, 7.98, 2.15}, {0.16, 0.15, 0.16, 0.09}}
	table7      = [][2]float64{{10.96, 123.98}, {55.08, 1.57}, {4.73, 24.46}, {2.57, 21.65}}
	table9      = [][]float64{
		{.531, 1.981, 5.681, 12.310, 20.264},
		{.217, 1.206, 4.059, 10.025, 17.244},
		{.201, 1.112, 3.753, 9.289, 15.920},
		{.524, 1.946, 5.585, 12.112, 19.937},
		{.387, 2.197, 7.607, 18.815, 32.588},
		{.205, 1.117, 3.764, 9.272, 15.977},
		{2.711, 30.084, 200.079, 732.413, 1690.289},
		{2.303, 24.813, 166.258, 627.961, 1474.890},
		{2.347, 24.810, 166.360, 629.305, 1476.448},
		{2.351, 24.881, 166.140, 628.664, 1474.986},
	}
	table10 = [][]float64{
		{4.971, 5.119, 5.315, 5.507, 5.662, 5.792, 6.019, 6.090, 6.200},
		{3.017, 3.255, 3.547, 3.825, 4.053, 4.204, 4.491, 4.605, 4.734},
		{2.797, 3.013, 3.286, 3.535, 3.771, 3.885, 4.149, 4.267, 4.361},
		{4.878, 5.011, 5.210, 5.398, 5.571, 5.690, 5.918, 6.008, 6.104},
		{5.614, 6.095, 6.616, 7.161, 7.596, 7.857, 8.431, 8.622, 8.852},
		{2.814, 3.046, 3.292, 3.553, 3.765, 3.893, 4.156, 4.264, 4.384},
		{147.555, 159.882, 174.086, 188.301, 199.822, 206.957, 221.579, 226.611, 232.671},
		{123.758, 134.074, 145.794, 156.901, 166.037, 172.068, 184.152, 188.308, 193.274},
		{123.758, 134.078, 145.782, 156.937, 166.084, 172.348, 184.114, 188.304, 193.341},
		{124.357, 134.602, 145.725, 156.896, 166.066, 172.121, 184.443, 188.329, 193.234},
	}
	// Table 2's utilisation, and Table 3's mean run time and mean time from
	// submission to start with their variations, by row of mixedLogs.
	tables2and3 = [][5]float64{{65.8, 3.20, 1.41, 7.49, 0.61}, {38.5, 9.33, 2.84, 3.02, 1.63}, {75.7, 1.18, 0.77, 8.90, 0.69}, {27.3, 1.52, 2.75, 4.41, 2.48}}
	// Table 8: how the times may grow at most.
	table8 = []string{
		"V²P' + V²P + VEP' + VRP", "V²P' + V²P + VEP' + VEP + VRP", "V²P' + VEP' + VRP'", "V²P' + V²P + VEP' + VR'P", "V²P' + V²P + VEP' + VEP + VR'P",
		"V²P' + VEP' + VR'P'", "V²P' + V²P + VEP' + VEP + VR'P", "V²P' + VEP' + VR'P'", "V²P' + VEP' + VR'P'", "V²P' + VEP' + VR'P'",
	}
)

// cells writes a sample as mean, low and high.
func cells(s sample) []string {
	e, n := s.estimate()
	return numbers(e, n)[:3]
}

// published writes a number of the paper, or nothing for NaN.
func published(x float64) string {
	if math.IsNaN(x) {
		return ""
	}
	return digits(x)
}

func (d *mixedData) logTable() Table {
	t := Table{Name: "table2and3", Title: "Tables 2 and 3: what our logs are", Header: []string{
		"log", "PEs", "usable jobs", "days", "utilisation %", "paper", "mean run time h", "paper", "variation", "paper", "mean wait h", "paper", "variation", "paper",
	}}
	for i := range mixedLogs {
		v := d.logs[mixedLogs[i].name]
		if v == nil {
			continue
		}
		row := []string{mixedLogs[i].file, strconv.Itoa(int(mixedLogs[i].pes)), digits(v[0]), digits(v[1])}
		for k, x := range tables2and3[i] {
			row = append(row, digits(v[2+k]), digits(x))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func (d *mixedData) boundTable(name, title string, paper [][4]float64, list []scenario) Table {
	t := Table{Name: name, Title: title, Header: []string{
		"planner", "turn-around above the best %", "low", "high", "paper", "wins", "paper", "CPU-hours above the fewest %", "low", "high", "paper", "wins", "paper", "scenarios",
	}}
	tat, cpu := d.wins(list, atTAT, len(bdNames)), d.wins(list, atCPU, len(bdNames))
	for i, planner := range bdNames {
		row := append([]string{planner}, cells(d.over(list, atTAT+i))...)
		row = append(row, digits(paper[i][0]), strconv.Itoa(tat[i]), digits(paper[i][1]))
		row = append(append(row, cells(d.over(list, atCPU+i))...), digits(paper[i][2]), strconv.Itoa(cpu[i]), digits(paper[i][3]))
		t.Rows = append(t.Rows, append(row, strconv.Itoa(len(list))))
	}
	return t
}

func (d *mixedData) table6() Table {
	t := Table{Name: "table6", Title: "Table 6: deadlines, by the share of booked jobs", Header: []string{
		"planner", "schedules", "tightest deadline above the best %", "low", "high", "paper", "CPU-hours above the fewest %", "low", "high", "paper",
	}}
	expo := d.among(ofExpo)
	for i, planner := range dlNames[:5] {
		for k, title := range []string{"φ 0.1", "φ 0.2", "φ 0.5", "exponential, for Grid'5000"} {
			list := expo
			if k < len(mixedShares) {
				list = d.of6List(mixedShares[k])
			}
			row := append([]string{planner, title}, cells(d.over(list, at6Tight+i))...)
			row = append(append(row, published(table6Tight[i][k])), cells(d.over(list, at6CPU+i))...)
			t.Rows = append(t.Rows, append(row, published(table6Hours[i][k])))
		}
	}
	return t
}

func (d *mixedData) table7() Table {
	t := Table{Name: "table7", Title: "Table 7: deadlines with λ, exponential schedules for Grid'5000", Header: []string{
		"planner", "tightest deadline above the best %", "low", "high", "paper", "CPU-hours above the fewest %, λ kept", "low", "high", "paper", "λ searched again %", "low", "high",
		"λ at the tightest", "λ at the loose",
	}}
	expo := d.among(ofExpo)
	for i, of := range of7 {
		row := append([]string{dlNames[of]}, cells(d.over(expo, at7Tight+i))...)
		row = append(append(row, digits(table7[i][0])), cells(d.over(expo, at7Kept+i))...)
		row = append(append(row, digits(table7[i][1])), cells(d.over(expo, at7CPU+i))...)
		row = append(row, "", "")
		for k, widens := range ofLambda {
			if widens == of {
				row[len(row)-2], row[len(row)-1] = middle(d.over(expo, atLambda+2*k)), middle(d.over(expo, atLambda+2*k+1))
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func (d *mixedData) timeTable(name, title, parameter string, values []float64, paper [][]float64) Table {
	t := Table{Name: name, Title: title, Header: []string{"planner", parameter, "the paper's form", "low", "high", "paper", "our form", "low", "high"}}
	for i, planner := range timedNames {
		for k, x := range values {
			kind := mixedKind{parameter, x}
			if d.times[kind] == nil {
				continue
			}
			row := append([]string{planner, digits(x)}, cells(d.time(kind, planner, 0))...)
			t.Rows = append(t.Rows, append(append(row, digits(paper[i][k])), cells(d.time(kind, planner, 1))...))
		}
	}
	return t
}

// growthTable compares how times grow with the tasks, from 25 to 100, as a power
// of their number, with what the paper's Table 8 allows and its Table 9 shows.
func (d *mixedData) growthTable() Table {
	t := Table{Name: "growth", Title: "Tables 8 and 9: time grows as which power of the number of tasks", Header: []string{
		"planner", "the paper's form", "low", "high", "our form", "low", "high", "Table 9", "at most, by Table 8 (V tasks, E edges, R bookings, P and P' PEs)",
	}}
	few, many := mixedKind{"tasks", 25}, mixedKind{"tasks", 100}
	for i, planner := range timedNames {
		row := []string{planner}
		for form := range timeForms {
			a, b := d.time(few, planner, form).log(), d.time(many, planner, form).log()
			row = append(row, cells(b.minus(a).times(1/math.Log10(4)))...)
		}
		t.Rows = append(t.Rows, append(row, digits(math.Log(table9[i][4]/table9[i][1])/math.Log(4)), table8[i]))
	}
	return t
}

func (d *mixedData) failureTable() Table {
	t := Table{Name: "failures", Title: "How often a loose deadline is not met", Header: []string{"planner", "instances %", "low", "high"}}
	for i, planner := range dlNames {
		t.Rows = append(t.Rows, append([]string{planner}, cells(d.over(d.among(nil), atFailed+i))...))
	}
	return t
}

// scenarioTable has a row for each scenario, with the measurements it rests on.
func (d *mixedData) scenarioTable() Table {
	t := Table{Name: "scenarios", Title: "Every scenario", Header: []string{"schedule", "workflows"}}
	columns := []struct {
		first int
		names []string
		what  string
	}{
		{atTAT, bdNames, "turn-around above the best %"},
		{atCPU, bdNames, "CPU-hours above the fewest %"},
		{at6Tight, dlNames[:5], "tightest deadline above the best %"},
		{at6CPU, dlNames[:5], "loose CPU-hours above the fewest %"},
		{at7Tight, names7(), "tightest deadline above the best of four %"},
		{at7CPU, names7(), "loose CPU-hours above the fewest of four %"},
	}
	for _, c := range columns {
		for _, name := range c.names {
			t.Header = append(t.Header, name+" "+c.what)
		}
	}
	t.Header = append(t.Header, "measurements")
	for _, s := range d.among(nil) {
		row := []string{d.schedules[s.schedule].String(), d.kinds[s.kind].String()}
		for _, c := range columns {
			for i := range c.names {
				row = append(row, published(d.of(s, c.first+i)))
			}
		}
		t.Rows = append(t.Rows, append(row, d.schedules[s.schedule].String()+"/seed=*"))
	}
	return t
}

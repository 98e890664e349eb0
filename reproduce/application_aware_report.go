package reproduce

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/measure"
)

// awareNotes say where the paper leaves something open, and what was done.
func awareNotes(source *awareSource) []string {
	notes := []string{
		"The paper's equations are lost in the text at hand; they are reconstructed from its words and tables (spec 5). Its bandwidths of the China National Grid, its sites' programs and its jobs are not public: what stands in for them is drawn from the seed and named here.",
		"Bandwidths (synthetic): the logarithm is a level of the link, between 25 and 1,250 MB/s, plus a wave of the day, plus an AR(1) with a coefficient of 0.9 by 5 s and a standard deviation of 0.2, which is the median of the measured links; cut to 12.5 to 6,250 MB/s. The paper draws them uniformly and independently, so that nothing can be forecast; R6 does so too.",
		"Programs (synthetic): 200, the i-th with a weight of 1/i; a site has as many as Table 2 says, in versions 1.0 to 1.15 with 8 to 1,024 licences; a job asks for one by weight, for the smaller of two such versions and 1 to 8 licences. Licences and storage are used up while a job runs, which the paper's are not.",
		"Free nodes (synthetic): others leave a share of a site's nodes, drawn anew at each scheduling point: 0.5 to 3 % at GC4, 5, 8, 16, 3 to 10 % at GC1, 2, 9, 12, 10 to 50 % elsewhere, at least one node. What runs of the jobs here counts against that share and keeps its nodes if the share falls.",
		"Jobs: run times and nodes of records of at least 600 s drawn at random, arrivals uniform over the periods, deadlines 1.1 to 1.5 run times after the arrival (as in Table 3), data of 0.1 to 20 GB log-uniform, accelerators with probability 0.3. Shorter jobs are left out: they wait up to 240 s for a scheduling point, and half of their run time is the most that they may.",
		"Table 2 is split as its sum of 74,626 nodes allows; GC5's processor cannot be read and is that of the machine behind it. Storage is taken as printed, in TB.",
		"The paper has scheduling points every two minutes once and every four minutes thrice, and its 60 periods are 4 hours: four it is. After the last arrival points go on, with the last forecasts, until all jobs are decided.",
		"Nodes are held from the decision, while the data move, until the end that was foreseen, and are given back then. Data that come later make a job late; whether it is still within its deadline is D1. APT, TPT and makespan are of the ends foreseen, as the paper's.",
		"MGA and Min-Min as in the paper look at nodes and run times alone; a site refuses what it cannot do. MGA's parameters are not published: see policy mga. The aware ones look at programs, accelerators, storage and deadlines as AJSM does. Means and 95 % intervals over the repetitions.",
		"All matchers see the same jobs, sites and bandwidths in each repetition; with more jobs, the first ones stay. Intervals are Student's t over the repetitions, of differences or ratios where matchers are compared.",
		fmt.Sprintf("Forecast errors are |foreseen - actual| / actual of AJSM's transfers of %d s or more, as all of Table 4 are.", longTransfer),
	}
	if source.log == nil {
		notes = append(notes, fmt.Sprintf("The log %s.swf.gz was not there (--data). The jobs are of the Lublin-Feitelson model for %d PEs, of at most 128.", hpc2n.file, hpc2n.pes))
	} else {
		notes = append(notes, "The log is "+hpc2n.file+" of the Parallel Workloads Archive (thanks to "+hpc2n.thanks+"; Feitelson, Tsafrir, Krakov, JPDC 2014). Its processors are taken as nodes.")
	}
	if source.measured == nil {
		return append(notes, fmt.Sprintf("The measured bandwidths, %s, were not there (--data): R8 is not testable, and the curve is a synthetic one.", measuredFile))
	}
	return append(notes, fmt.Sprintf("The measured bandwidths are %d series of throughput between clouds (%s), in bursts of tests 20 s apart; the pauses are left out, and each link reads its series to and fro from a random place.", len(source.measured.measured), measuredFile))
}

// awareRows tells what was simulated.
func awareRows(scale awareScale, source *awareSource) []Row {
	var counts, names []string
	for _, n := range append(slices.Clone(scale.counts), crowdedJobs) {
		counts = append(counts, strconv.Itoa(n))
	}
	for _, m := range awareMatchers {
		names = append(names, m.name)
	}
	jobs := "the Lublin-Feitelson model, for want of the log"
	if source.log != nil {
		jobs = source.log.file
	}
	return []Row{
		{"repetitions", strconv.Itoa(scale.repetitions)},
		{"sites", fmt.Sprintf("%d, of Table 2", len(awareGrid))},
		{"jobs", strings.Join(counts, ", ") + " over 60 and 120 periods of 240 s; from " + jobs},
		{"matchers", strings.Join(names, ", ")},
		{"forecasts", "ARIMA of the last 288 values of each link, fitted anew at every scheduling point"},
	}
}

// awareFigures draws Figures 5 and 6, what stands in for Figure 3, and what the
// paper does not show.
func awareFigures(d *awareData) []Figure {
	var figures []Figure
	for i, periods := range awareSpans {
		for _, panel := range []struct {
			name, title, y string
			figure         int
		}{
			{"a-tpt", "Total processing time", "total processing time, 10^6 s", awTPT},
			{"b-apt", "Average processing time", "average processing time, s", awAPT},
			{"c-makespan", "Makespan", "makespan, s", awMakespan},
			{"d-rejection", "Job rejection ratio", "rejected jobs, %", awRejected},
		} {
			figures = append(figures, awarePanel(d, fmt.Sprintf("fig%d%s", 5+i, panel.name),
				fmt.Sprintf("%s, %d periods", panel.title, periods), panel.y, awareRuns(d, netSynthetic, periods), panel.figure, fairMGA))
		}
	}
	figures = append(figures, awareFair(d), awareSharedFigure(d), awareErrors(d), awareCurve(d), awareLateFigure(d))
	if measured := awareRuns(d, netMeasured, awareSpans[0]); len(measured) > 0 {
		figures = append(figures, awarePanel(d, "measured-rejection", "Job rejection ratio with measured bandwidths", "rejected jobs, %", measured, awRejected, fairMinMin+1))
	}
	return figures
}

// awareRuns lists the settings of a net and a span.
func awareRuns(d *awareData, net string, periods int) []awareSetting {
	var list []awareSetting
	for _, s := range d.settings {
		if s.net == net && s.periods == periods {
			list = append(list, s)
		}
	}
	return list
}

// awarePanel draws a figure of the first matchers by the number of jobs.
func awarePanel(d *awareData, name, title, y string, settings []awareSetting, figure, matchers int) Figure {
	f := Figure{
		Name: name, Title: title, X: "jobs", Y: y, Zero: figure == awRejected, Within: notNegative,
		Caption: title + " by the number of jobs; HPC2N jobs on the 20 sites of Table 2. Means and 95 % intervals over the repetitions.",
	}
	var xs []float64
	for _, s := range settings {
		xs = append(xs, float64(s.jobs))
	}
	for m := range matchers {
		var samples []sample
		for _, s := range settings {
			samples = append(samples, d.of(s, m, figure))
		}
		f.Series = append(f.Series, line(awareMatchers[m].name, xs, nil, samples))
	}
	return f
}

// awareFair shows every matcher in the setting that has all.
func awareFair(d *awareData) Figure {
	setting := fairSetting
	f := Figure{
		Name: "fair-rejection", Title: "Who looks at requirements, and who does not", X: "matcher", Y: "rejected jobs, %", Zero: true, Within: percentages,
		Caption: "Rejected jobs of every matcher, " + setting.at() + "; all but the plain ones look at programs, accelerators, storage and deadlines as AJSM does. Means and 95 % intervals over the repetitions.",
	}
	var labels []string
	for _, m := range awareMatchers {
		label := m.match
		if m.unaware {
			label = "plain " + m.match
		}
		labels = append(labels, label)
	}
	f.Ticks = ticksAt(labels)
	for _, figure := range []struct {
		name  string
		value int
	}{{"all rejections", awRejected}, {"the site lacks the program", awSoftware}} {
		var samples []sample
		for m := range awareMatchers {
			samples = append(samples, d.of(setting, m, figure.value))
		}
		s := line(figure.name, nil, labels, samples)
		s.Line = false
		f.Series = append(f.Series, s)
	}
	return f
}

// awareSharedFigure shows processing times of jobs that two matchers accept.
func awareSharedFigure(d *awareData) Figure {
	f := Figure{
		Name: "shared-apt", Title: "Processing time of the jobs that both accept, 60 periods", X: "jobs", Y: "average processing time, s", Within: notNegative,
		Caption: "Figures 5(b) and 6(b) compare different jobs; these are the same ones. Means and 95 % intervals over the repetitions.",
	}
	settings := d.spanned(awareSpans[0])
	var xs []float64
	for _, s := range settings {
		xs = append(xs, float64(s.jobs))
	}
	for _, m := range awareBaselines {
		var theirs, ajsm []sample
		for _, s := range settings {
			theirs, ajsm = append(theirs, d.of(s, m, awSharedAPT)), append(ajsm, d.of(s, m, awSharedAPTOfAJSM))
		}
		name := awareMatchers[m].name
		f.Series = append(f.Series, line(name, xs, nil, theirs), line("AJSM, jobs shared with "+name, xs, nil, ajsm))
	}
	return f
}

// awareErrors shows the errors of transfers by model and net.
func awareErrors(d *awareData) Figure {
	f := Figure{
		Name: "forecast-errors", Title: "How far transfer times are off", X: "model", Y: "|foreseen − actual| / actual, %", Zero: true, Within: notNegative,
		Caption: "Time to move what the mean of the past moves in 24 periods, mean over 19 links. Means and 95 % intervals over the repetitions.", Ticks: ticksAt(trialModels),
	}
	for _, net := range []string{netSynthetic, netUniform, netMeasured} {
		if len(d.trials[net]) == 0 {
			continue
		}
		var samples []sample
		for m := range trialModels {
			samples = append(samples, d.trial(net, m, trialTransfer))
		}
		s := line(net, nil, trialModels, samples)
		s.Line = false
		f.Series = append(f.Series, s)
	}
	return f
}

// awareCurve replaces Figure 3.
func awareCurve(d *awareData) Figure {
	f := Figure{
		Name: "fig3-bandwidth", Title: "Bandwidth of a link, " + d.shown, X: "period", Y: "MB/s", Zero: true, Within: notNegative,
		Caption: "Instead of Figure 3, whose data are not public: values of one link in a row, and what ARIMA expected each to be one period before, with intervals of 95 %.",
	}
	value := func(part, i int) float64 { return d.curve[part*curveLength+i] }
	for _, shown := range []struct {
		name            string
		mean, low, high int
	}{{"bandwidth", curveValue, curveValue, curveValue}, {"ARIMA, one period before", curveMean, curveLow, curveHigh}} {
		s := Series{Name: shown.name, Line: true}
		for i := range curveLength {
			mean := value(shown.mean, i)
			s.Points = append(s.Points, Point{
				X: float64(i + 1), N: 1, Value: measure.Estimate{Mean: &mean, CI95: &[2]float64{value(shown.low, i), value(shown.high, i)}},
			})
		}
		f.Series = append(f.Series, s)
	}
	return f
}

// awareLateFigure shows jobs that miss their deadlines because of their data.
func awareLateFigure(d *awareData) Figure {
	return awarePanel(d, "late", "Accepted jobs that are late, 60 periods", "late jobs, % of the accepted", awareRuns(d, netSynthetic, awareSpans[0]), awLate, fairMGA)
}

// awareTables lists every figure of every matcher in every setting.
func awareTables(d *awareData) []Table {
	t := Table{
		Name: "runs", Title: "Every matcher in every setting, means over the repetitions",
		Header: []string{"bandwidths", "periods", "jobs", "matcher"},
	}
	for _, name := range awareFigureNames {
		t.Header = append(t.Header, strings.NewReplacer(" ", "_", "'", "", "%", "percent").Replace(strings.ToLower(name)))
	}
	for _, setting := range d.settings {
		for m := range setting.matchers() {
			row := []string{setting.net, strconv.Itoa(setting.periods), strconv.Itoa(setting.jobs), awareMatchers[m].name}
			for figure := range awKept {
				e, n := d.of(setting, m, figure).estimate()
				row = append(row, numbers(e, n)[0])
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return []Table{t}
}

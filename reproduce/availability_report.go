package reproduce

import (
	"fmt"
	"strconv"
	"strings"
)

// rectNotes say where the paper leaves something open, and what was done.
func rectNotes(log bool) []string {
	notes := []string{
		"The paper prints no number of Figures 2 to 7, only curves: the claims are about their shapes.",
		"Its workload is the Lublin-Feitelson model with the sizes of the LANL CM-5. Of its other constants it prints none, nor how run times become the six: here they are the model's public defaults and the nearest of the six in log space, with the slope of run time by size scaled to 1024 nodes.",
		"Where a rectangle ends that nobody blocks is not in the paper. The capped horizon ends it at the last booking or the deadline, whichever is later; the unbounded one never. With the capped one the order of the policies is the paper's, see B3.",
		"Requests are decided on arrival; no warm-up is left out, for the paper says nothing of one. All policies, variants and bounds see the same requests in each repetition; intervals are Student's t over the repetitions, of differences where policies are compared.",
		"Work is the accepted part of the requested PE-seconds. The paper counts requests alone.",
		"The bound knows all requests beforehand, may accept parts of them, stop them and spread their work over their windows in slots of half an hour, each slot with no more PEs of a request than it asks for and no more in all than there are. Every schedule is a solution of that, so none accepts more; the greedy solution, least work first, is the best one, because the amounts of work that fit together form a polymatroid. It is a bound on what could be reached with hindsight, not a policy.",
		"Odd sizes are drawn within a quarter of the model's either way, so that the load stays.",
	}
	if !log {
		return append(notes, fmt.Sprintf("The log %s.swf.gz was not there (--data), so what is said of it is not testable.", cm5.file))
	}
	return append(notes,
		"The log is "+cm5.file+" of the Parallel Workloads Archive (thanks to "+cm5.thanks+"; Feitelson, Tsafrir, Krakov, JPDC 2014). Each repetition takes another stretch of it, from its beginning to its end, and draws ready times and deadlines of its own. It has no UMed: Figures 2 and 3 cannot be made of it, and S2 to S4 are judged by the arrival factor instead.",
		"In the second form of it each run time is replaced by the nearest of the paper's six in log space.")
}

// rectRows tells what was simulated.
func rectRows(scale rectScale, log bool) []Row {
	rows := []Row{
		{"repetitions", strconv.Itoa(scale.repetitions)},
		{"requests", fmt.Sprintf("%d in each run", scale.requests)},
		{"machine", fmt.Sprintf("%d PEs", rectPEs)},
		{"sweeps", "UMed 5 to 9; arrival factor 0.5 to 1.5; artime factor = deadline factor 1 to 5; the others at UMed 7, 1 and 3"},
		{"policies", "first-fit (FF), pe-best and pe-worst (PE_B, PE_W), duration-best and -worst (Du_B, Du_W), area-best and -worst (PEDu_B, PEDu_W)"},
	}
	var workloads, variants []string
	for _, w := range rectWorkloads {
		if !w.log || log {
			workloads = append(workloads, w.title)
		}
	}
	for _, v := range rectVariants {
		variants = append(variants, v.title)
	}
	return append(rows, Row{"workloads", strings.Join(workloads, "; ")}, Row{"variants", strings.Join(variants, "; ")})
}

// rectFigures draws every figure of the paper, and the work beside each
// acceptance, for every workload and variant.
func rectFigures(d *rectData) []Figure {
	var figures []Figure
	for w := range rectWorkloads {
		for variant := range rectVariants {
			v := &rectView{d, w, variant}
			if !v.there() {
				continue
			}
			for _, axis := range v.axes() {
				for figure := range rectKept {
					figures = append(figures, v.figure(axis, figure))
				}
			}
		}
	}
	return append(figures, d.lateFigure())
}

// lateFigure shows what is gained by binding late.
func (d *rectData) lateFigure() Figure {
	axis := &rectAxes[byUMed]
	f := Figure{
		Name: "late-gain", Title: "What late binding gains over early binding", X: axis.label, Y: "late − early binding, points",
		Caption: "Differences with equal draws, means over the seven policies; 95 % intervals over the repetitions.", Zero: true,
	}
	for _, x := range axis.values {
		f.Ticks = append(f.Ticks, Tick{At: x, Label: digits(x)})
	}
	for _, shown := range []struct {
		name             string
		workload, figure int
	}{
		{"acceptance, odd sizes", 1, accepts},
		{"acceptance, powers of two", 0, accepts},
		{"work, odd sizes", 1, works},
		{"work, powers of two", 0, works},
	} {
		var gains []sample
		for i := range axis.values {
			gains = append(gains, meanOf(d.lateGains(shown.workload, shown.figure, i)))
		}
		f.Series = append(f.Series, line(shown.name, axis.values, nil, gains))
	}
	return f
}

// rectYs label the figures.
var rectYs = [rectKept]string{"accepted requests, %", "mean slowdown", "accepted PE-seconds, %"}

// rectWithin is what their values can be.
var rectWithin = [rectKept]*Range{percentages, notBelowOne, percentages}

func (v *rectView) figure(axis, figure int) Figure {
	a := &rectAxes[axis]
	name, number := figureName(axis, figure), ""
	if figure == works {
		number = "beside Fig. " + strconv.Itoa(a.first)
	} else {
		number = "Fig. " + strings.TrimPrefix(strings.Split(name, "-")[0], "fig")
	}
	where := ""
	if v.workload > 0 {
		where += ", " + rectWorkloads[v.workload].short
	}
	if v.variant > 0 {
		where += ", " + rectVariants[v.variant].short
	}
	title := fmt.Sprintf("%s by %s%s (%s)", sentence(rectFigureNames[figure]), a.title, where, number)
	for _, part := range []string{rectWorkloads[v.workload].name, rectVariants[v.variant].name} {
		if part != "" {
			name += "-" + part
		}
	}
	f := Figure{
		Name: name, Title: title, X: a.label, Y: rectYs[figure], Within: rectWithin[figure],
		Caption: fmt.Sprintf("%s, %s. Means and 95 %% intervals over the repetitions; what belongs to one value stands side by side.", sentence(rectWorkloads[v.workload].title), rectVariants[v.variant].title),
	}
	for _, x := range a.values {
		f.Ticks = append(f.Ticks, Tick{At: x, Label: strconv.FormatFloat(x, 'g', -1, 64)})
	}
	for p := range rectPlacements {
		f.Series = append(f.Series, line(rectPlacements[p].Name, a.values, nil, v.curve(axis, p, figure)))
	}
	if figure != slows {
		f.Series = append(f.Series, line("bound on any policy", a.values, nil, v.d.bounds(v.workload, axis, figure)))
	}
	return f
}

// rectTable has every number that was measured, row by row with its cell.
func rectTable(d *rectData) Table {
	t := Table{Name: "settings", Title: "Every setting, policy and variant", Header: []string{
		"workload", "umed", "arrival factor", "k", "variant", "policy",
		"acceptance %", "low", "high", "slowdown", "low", "high", "work %", "low", "high", "repetitions", "bound on acceptance %", "bound on work %", "cell",
	}}
	for _, setting := range rectSettings(d.log) {
		point := d.points[setting]
		for v := range rectVariants {
			for p := range rectPlacements {
				row := []string{
					rectWorkloads[setting.workload].title, digits(setting.umed), digits(setting.arrivals), digits(setting.k),
					rectVariants[v].title, rectPlacements[p].Name,
				}
				if rectWorkloads[setting.workload].log {
					row[1] = ""
				}
				n := 0
				for figure := range rectKept {
					e, count := point.figures[v][p][figure].estimate()
					row = append(row, numbers(e, count)[:3]...)
					n = count
				}
				row = append(row, strconv.Itoa(n))
				for _, figure := range []int{accepts, works} {
					e, count := point.bound[figure].estimate()
					row = append(row, numbers(e, count)[0])
				}
				t.Rows = append(t.Rows, append(row, setting.key()))
			}
		}
	}
	return t
}

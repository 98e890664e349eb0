package reproduce

import (
	"fmt"
	"strconv"
)

// gridNotes say where the paper leaves something open, and what was done.
func gridNotes(d gridData) []string {
	last := len(reservedShares) - 1
	late, _ := d[0]["dpsar"][last].late.estimate()
	return []string{
		"The paper prints no number, only curves: the claims are about their shapes.",
		"Of the five resources it gives one, 5 PEs at 417 MIPS; the others are those of the public GridSim testbed. Lengths, wanted starts and the run-time error are ours.",
		"A standard PE has 1000 MIPS, so a length of 55,000 MI is 55 standard seconds; lengths are rounded up to whole thousands of MI, estimates at a pool up to whole seconds, actual run times to the nearest second.",
		"A gridlet without a wanted start is reserved too, at the earliest gap of a resource chosen \"in a random manner\", as the paper says and as the presets do. Claims with -best choose the resource that can start it first instead.",
		"Where the wanted starts lie is not said. Within 8 h, twice the time in which the queue drains, the waiting grows as in Figure 4; claims with -4h and -behind have them elsewhere, and some of them come out the other way round.",
		"Utilisation is that of the time in which 95 % of the work is done: after that a few wanted starts lie on an empty grid, and the last of them would decide the figure.",
		fmt.Sprintf("A wanted start is a window of the run time on the slowest pool, because one deadline serves pools of different speed. On faster pools that leaves up to a minute: of 1500 reserved gridlets %s on average are promised a start after the wanted one (DPSAR, 30 %%).", interval(late)),
		"SD is half of the 10 levels; users served alone have 3 gridlets a round, as in the paper's example, and the rest is deferred to the next round. With 50 users on 10 levels hardly any user is served alone.",
		"Promised starts are those decided at time 0. A gridlet whose PEs are still in use waits for the first of its resource (W1 to W4). Under W2b it is Berth's overrun policy \"delay\" instead: what overruns goes on, and the promise in the way moves to the next gap on any resource in its window, or else after its window on its own; in a full queue both are far away.",
		"Every order sees the same users, lengths, wanted starts and errors in each repetition, and who is reserved at 10 % is so at 20 and 30 %; intervals are Student's t over the differences.",
	}
}

// gridRows tells what was simulated.
func gridRows(repetitions int) []Row {
	return []Row{
		{"repetitions", strconv.Itoa(repetitions)},
		{"resources", "PEs at MIPS: 5 at 417, 8 at 410, 16 at 380, 12 at 377, 6 at 515; 47 in all"},
		{"gridlets", fmt.Sprintf("%d users with %d each, all submitted at time 0, one PE, lengths uniform on 10,000 to 100,000 MI", gridUsers, gridGridlets)},
		{"priorities", "uniform on 1 to 10"},
		{"reserved", "0, 10, 20 and 30 % of the gridlets want a start uniform on the first 8 h; the queue drains in 4; other readings beside it"},
		{"run times", "the estimate times 1 + e, e uniform on [-0.1, 0.1]"},
		{"orders", "dpsar and arwp; shortest first alone and priority alone as ablations"},
	}
}

// gridFigures draws the data: the paper's four figures, and what they leave
// out.
func gridFigures(d gridData) []Figure {
	all := gridPolicies
	two := all[:2]
	used := gridFigure("fig7-utilisation", "Utilisation (Fig. 7)", "utilisation, %", d[0], all, utilizationOf)
	used.Within = percentages
	figures := []Figure{
		gridFigure("fig4-waiting", "Average waiting time (Fig. 4)", "waiting, s", d[0], all, waitingOf),
		gridFigure("fig5-offset", "Average offset time (Fig. 5)", "actual − promised start, s", d[0], all, offsetOf),
		gridFigure("fig5b-offset-moved", "Average offset where promises move out of the way", "actual − promised start, s", d[0], two, movedOf),
		gridFigure("fig6-rejections", "Rejections (Fig. 6)", "rejected gridlets", d[0], all, rejectionsOf),
		used,
		importanceFigure(d[0]),
	}
	for k, rows := range d[1:] {
		reading := &gridReadings[k+1]
		figures = append(figures, gridFigure("fig4-waiting-"+reading.name, "Average waiting time, "+reading.title, "waiting, s", rows, two, waitingOf))
	}
	return figures
}

// reservedTicks marks the shares of reserved gridlets.
func reservedTicks() []Tick {
	var ticks []Tick
	for _, share := range reservedShares {
		ticks = append(ticks, Tick{At: float64(share), Label: strconv.Itoa(share)})
	}
	return ticks
}

func reservedAxis() []float64 {
	var xs []float64
	for _, share := range reservedShares {
		xs = append(xs, float64(share))
	}
	return xs
}

const (
	reservedLabel = "gridlets reserved in advance, %"
	gridCaption   = "Means and 95 % intervals over the repetitions, against the share of gridlets that want a future start."
)

func gridFigure(name, title, y string, rows gridRowsOf, policies []gridPolicy, of func(*gridMeans) sample) Figure {
	f := Figure{Name: name, Title: title, Caption: gridCaption, X: reservedLabel, Y: y, Ticks: reservedTicks(), Within: notNegative}
	for i := range policies {
		f.Series = append(f.Series, line(policies[i].title, reservedAxis(), nil, row(rows[policies[i].name], of)))
	}
	return f
}

// importanceFigure shows whom the orders serve first.
func importanceFigure(d gridRowsOf) Figure {
	f := Figure{
		Name: "waiting-by-importance", Title: "Waiting of important and other users", Caption: gridCaption,
		X: reservedLabel, Y: "waiting, s", Ticks: reservedTicks(), Zero: true, Within: notNegative,
	}
	for i := range gridPolicies[:2] {
		p := &gridPolicies[i]
		f.Series = append(
			f.Series,
			line(p.title+", priorities 8 to 10", reservedAxis(), nil, row(d[p.name], func(m *gridMeans) sample { return m.important })),
			line(p.title+", priorities 1 to 3", reservedAxis(), nil, row(d[p.name], func(m *gridMeans) sample { return m.unimportant })),
		)
	}
	return f
}

package reproduce

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/workload"
)

// The places in bdNames and dlNames.
const (
	bdAll, bdHalf, bdCPA, bdCPAR               = 0, 1, 2, 3
	dlAll, dlCPA, dlCPAR, rcCPA, rcCPAR        = 0, 1, 2, 3, 4
	in7CPA, in7RC, in7Lambda, in7Bounded       = 0, 1, 2, 3 // among of7
	blOne, blAll, blCPA, blCPAR                = 0, 1, 2, 3
	farAhead, farAheadDeadlines, fewer, closer = 10, 50, 50, 2 // points of degradation
)

// mixedClaims judges the data.
func mixedClaims(d *mixedData) []Claim {
	claims := []Claim{
		claimUnbounded(d), claimFewestHours(d), claimCPAWins(d), claimLevels(d), claimNarrow(d), claimConservative(d),
		claimAllDeadlines(d), claimLambda(d), claimTighter(d), claimTail(d), claimTimes(d), claimWidth(d), claimBookings(d), claimMachine(d), claimUtilized(d), claimTasks(d), claimLambdaText(d),
	}
	if len(d.schedules) > 0 {
		return claims
	}
	for i := range claims {
		claims[i].Parts, claims[i].Figure = nil, ""
		claims[i].Ours = "none of the logs: give the folder of " + absent(mixedLogs, nil) + " by --data"
	}
	return claims
}

// gap returns by how much one figure exceeds another, by start.
func (d *mixedData) gap(list []scenario, figure, other int) sample {
	return d.over(list, figure).minus(d.over(list, other))
}

// The filters of scenarios.
func ofShare(shares ...float64) func(*mixedSchedule, *mixedKind) bool {
	return func(m *mixedSchedule, _ *mixedKind) bool { return slices.Contains(shares, m.share) }
}

func ofKind(parameter string, value float64) func(*mixedSchedule, *mixedKind) bool {
	return func(_ *mixedSchedule, k *mixedKind) bool { return k.parameter == parameter && k.value == value }
}

func ofLog(log int) func(*mixedSchedule, *mixedKind) bool {
	return func(m *mixedSchedule, _ *mixedKind) bool { return m.log == log }
}

// ofExpo lets through what stands in for Grid'5000.
func ofExpo(m *mixedSchedule, _ *mixedKind) bool { return m.method == workload.Expo }

// both joins two filters.
func both(a, b func(*mixedSchedule, *mixedKind) bool) func(*mixedSchedule, *mixedKind) bool {
	return func(m *mixedSchedule, k *mixedKind) bool { return a(m, k) && b(m, k) }
}

// each writes the means of figures in percent with their names.
func (d *mixedData) each(list []scenario, first int, names []string) string {
	var words []string
	for i, name := range names {
		words = append(words, fmt.Sprintf("%s %s %%", name, middle(d.over(list, first+i))))
	}
	return strings.Join(words, ", ")
}

func claimUnbounded(d *mixedData) Claim {
	c := Claim{
		ID: "A1", Source: "section 4.3.2, Table 4", Figure: "turnaround-by-width",
		Paper: "BD_ALL and BD_HALF are far worse than BD_CPA and BD_CPAR: 33.75 and 28.38 % above the best turn-around, 42.48 and 37.83 % above the fewest CPU-hours",
	}
	all := d.among(nil)
	for what, first := range []int{atTAT, atCPU} {
		for _, y := range []int{bdAll, bdHalf} {
			for _, bound := range []int{bdCPA, bdCPAR} {
				c.Parts = append(c.Parts, part(
					fmt.Sprintf("%s above the best, %s - %s - %d", []string{"turn-around", "CPU-hours"}[what], bdNames[y], bdNames[bound], farAhead),
					"points", d.gap(all, first+y, first+bound).plus(-farAhead), above()))
			}
		}
	}
	for i, published := range [][2]float64{{33.75, 42.48}, {28.38, 37.83}} {
		c.Parts = append(
			c.Parts,
			asPrinted("turn-around above the best, "+bdNames[i], "%", d.over(all, atTAT+i), published[0]),
			asPrinted("CPU-hours above the fewest, "+bdNames[i], "%", d.over(all, atCPU+i), published[1]),
		)
	}
	c.Ours = "turn-around: " + d.each(all, atTAT, bdNames) + "; CPU-hours: " + d.each(all, atCPU, bdNames)
	return c
}

func claimFewestHours(d *mixedData) Claim {
	c := Claim{
		ID: "A2", Source: "section 4.3.2, Table 4", Figure: "hours-by-width",
		Paper: "BD_CPAR takes the fewest CPU-hours, in 1434 of 1440 scenarios",
	}
	all := d.among(nil)
	for _, y := range []int{bdAll, bdHalf, bdCPA} {
		c.Parts = append(c.Parts, part("CPU-hours above the fewest, bd-cpar - "+bdNames[y], "points", d.gap(all, atCPU+bdCPAR, atCPU+y), below()))
	}
	wins, n := d.wins(all, atCPU, len(bdNames)), len(all)
	c.Parts = append(c.Parts, counted("scenarios in which bd-cpar takes the fewest", "scenarios", wins[bdCPAR], n, percentOf(95, n), percentOf(80, n)))
	c.Parts = append(c.Parts, sharePrinted("scenarios in which bd-cpar takes the fewest CPU-hours", wins[bdCPAR], n, 100*1434/1440.0))
	c.Ours = fmt.Sprintf("in %d of %d scenarios; %s", wins[bdCPAR], n, d.each(all, atCPU, bdNames))
	return c
}

// percentOf returns that many percent of n, rounded up.
func percentOf(percent, n int) int { return (n*percent + 99) / 100 }

func claimCPAWins(d *mixedData) Claim {
	c := Claim{
		ID: "A3", Source: "section 4.3.2, Table 4", Figure: "turnaround-by-width-bounded",
		Paper: "BD_CPA ends first more often than BD_CPAR (1026 against 386 scenarios), and both are nearly the best (0.29 and 0.21 %)",
	}
	all := d.among(nil)
	wins := d.wins(all, atTAT, len(bdNames))
	cpa, cpar := d.over(all, atTAT+bdCPA), d.over(all, atTAT+bdCPAR)
	c.Parts = []Part{
		counted("scenarios in which bd-cpa or bd-cpar ends first: those of bd-cpa", "scenarios", wins[bdCPA], wins[bdCPA]+wins[bdCPAR],
			(wins[bdCPA]+wins[bdCPAR])/2+1, (wins[bdCPA]+wins[bdCPAR])/2+1),
		part("turn-around above the best, bd-cpa", "points", cpa, smaller(closer)),
		part("turn-around above the best, bd-cpar", "points", cpar, smaller(closer)),
		part("turn-around above the best, bd-cpa - bd-cpar", "points", cpa.minus(cpar), smaller(closer)),
		sharePrinted("scenarios in which bd-cpa or bd-cpar ends first: those of bd-cpa", wins[bdCPA], wins[bdCPA]+wins[bdCPAR], 100*1026/(1026+386.0)),
		asPrinted("turn-around above the best, bd-cpa", "%", cpa, 0.29),
		asPrinted("turn-around above the best, bd-cpar", "%", cpar, 0.21),
	}
	c.Ours = fmt.Sprintf("bd-cpa ends first in %d scenarios, bd-cpar in %d; %s and %s %% above the best", wins[bdCPA], wins[bdCPAR], cpa, cpar)
	return c
}

// levelStudy is the comparison of ways to compute bottom levels, over the
// scenarios and the bounds of the paper (all, cpa, cpar).
type levelStudy struct {
	cases       int
	best        [4]int  // by way: cases in which it ends first
	least, most float64 // improvement over bl-1, percent
	improvement [4]sample
	inRange     int // improvements within the paper's range
	compared    int
}

// levels makes the study.
func (d *mixedData) levels() *levelStudy {
	s := &levelStudy{least: math.Inf(1), most: math.Inf(-1)}
	all := d.among(nil)
	bounds := []int{bdAll, bdCPA, bdCPAR}
	at := func(x, y int) int { return atBL + x*len(bdNames) + y }
	for _, scenario := range all {
		for _, y := range bounds {
			s.cases++
			least := math.Inf(1)
			for x := range blNames {
				least = min(least, d.of(scenario, at(x, y)))
			}
			for x := range blNames {
				turnaround := d.of(scenario, at(x, y))
				if turnaround == least {
					s.best[x]++
				}
				if x != blOne {
					one := d.of(scenario, at(blOne, y))
					gain := 100 * (one - turnaround) / one
					s.least, s.most = min(s.least, gain), max(s.most, gain)
					s.compared++
					if gain >= -3.46 && gain <= 5.69 {
						s.inRange++
					}
				}
			}
		}
	}
	for x := range blNames {
		s.improvement[x] = make(sample, d.starts)
		for r := range s.improvement[x] {
			sum := 0.0
			for _, scenario := range all {
				for _, y := range bounds {
					one := d.value(scenario, r, at(blOne, y))
					sum += 100 * (one - d.value(scenario, r, at(x, y))) / one
				}
			}
			s.improvement[x][r] = sum / float64(len(all)*len(bounds))
		}
	}
	return s
}

func claimLevels(d *mixedData) Claim {
	s := d.levels()
	c := Claim{
		ID: "A4", Source: "section 4.3.1", Figure: "levels",
		Paper: "bottom levels by CPA or CPAR end first in 78.4 % of the cases, BL_1 in 13.7 %, BL_ALL in 7.9 %; improvements over BL_1 lie between -3.46 and 5.69 %",
	}
	// Ties count for all, so the two may win the same case: one of them must win.
	either := s.cases - d.levelLosses()
	c.Parts = []Part{
		counted("cases in which bl-cpa or bl-cpar ends first", "cases", either, s.cases, percentOf(75, s.cases), percentOf(50, s.cases)),
		part("improvement over bl-1, bl-cpar", "%", s.improvement[blCPAR], above()),
		part("improvement over bl-1, bl-cpar - bl-all", "points", s.improvement[blCPAR].minus(s.improvement[blAll]), above()),
		part("improvement over bl-1, bl-cpa - bl-all", "points", s.improvement[blCPA].minus(s.improvement[blAll]), above()),
		sharePrinted("cases in which bl-cpa or bl-cpar ends first", either, s.cases, 78.4),
		sharePrinted("improvements within the paper's range", s.inRange, s.compared, 100),
	}
	c.Ours = fmt.Sprintf("bl-cpa or bl-cpar ends first in %d of %d cases, bl-1 in %d, bl-all in %d; improvements over bl-1 from %s to %s %%",
		either, s.cases, s.best[blOne], s.best[blAll], short(s.least), short(s.most))
	return c
}

// levelLosses counts the cases in which neither bl-cpa nor bl-cpar ends first.
func (d *mixedData) levelLosses() int {
	losses := 0
	for _, s := range d.among(nil) {
		for _, y := range []int{bdAll, bdCPA, bdCPAR} {
			var by [4]float64
			for x := range by {
				by[x] = d.of(s, atBL+x*len(bdNames)+y)
			}
			if min(by[blCPA], by[blCPAR]) > min(by[blOne], by[blAll]) {
				losses++
			}
		}
	}
	return losses
}

func claimNarrow(d *mixedData) Claim {
	narrow := d.among(ofKind("width", 0.1))
	wider := d.among(func(_ *mixedSchedule, k *mixedKind) bool { return k.parameter != "width" || k.value != 0.1 })
	here, elsewhere := d.wins(narrow, atTAT, len(bdNames))[bdAll], d.wins(wider, atTAT, len(bdNames))[bdAll]
	lead := d.gap(narrow, atTAT+bdCPAR, atTAT+bdAll)
	return Claim{
		ID: "A5", Source: "section 4.3.2", Figure: "turnaround-by-width",
		Paper: "BD_ALL ends first only where workflows are chains: all its 36 wins are at width 0.1, by at most 0.5 % over BD_CPAR",
		Ours:  fmt.Sprintf("bd-all ends first in %d of %d scenarios of width 0.1, in %d of the %d others; there bd-cpar ends %s points later", here, len(narrow), elsewhere, len(wider), lead),
		Parts: []Part{
			counted("scenarios of width 0.1 in which bd-all ends first", "scenarios", here, len(narrow), percentOf(90, len(narrow)), percentOf(50, len(narrow))),
			counted("other scenarios, in which it does not", "scenarios", len(wider)-elsewhere, len(wider), percentOf(99, len(wider)), percentOf(95, len(wider))),
			part("turn-around above the best at width 0.1, bd-cpar - bd-all", "points", lead, smaller(closer)),
		},
	}
}

// of6List are the scenarios of Table 6: those of SDSC-BLUE, or all where its log
// is not there.
func (d *mixedData) of6List(shares ...float64) []scenario {
	if list := d.among(both(ofShare(shares...), ofLog(2))); len(list) > 0 {
		return list
	}
	return d.among(ofShare(shares...))
}

func claimConservative(d *mixedData) Claim {
	c := Claim{
		ID: "A6", Revised: reservesOnce, Source: "section 5.3, Table 6", Figure: "hours-by-share-others",
		Paper: "by a loose deadline the resource conservative planners take far fewer CPU-hours: 6.4 and 0.2 % above the fewest, the aggressive ones 252 and 231 %",
	}
	for _, share := range mixedShares {
		list := d.of6List(share)
		for _, pair := range [][2]int{{dlCPA, rcCPA}, {dlCPAR, rcCPAR}, {dlAll, rcCPA}} {
			c.Parts = append(c.Parts, part(
				fmt.Sprintf("CPU-hours above the fewest, φ %g, %s - %s - %d", share, dlNames[pair[0]], dlNames[pair[1]], fewer),
				"points", d.gap(list, at6CPU+pair[0], at6CPU+pair[1]).plus(-fewer), above()))
		}
	}
	for _, p := range []struct {
		planner   int
		published float64
	}{{dlCPA, 252}, {dlCPAR, 231}, {rcCPA, 6.4}, {rcCPAR, 0.2}} {
		c.Parts = append(c.Parts, asPrinted("CPU-hours above the fewest, "+dlNames[p.planner], "%", d.over(d.of6List(mixedShares...), at6CPU+p.planner), p.published))
	}
	c.Ours = "φ 0.1 to 0.5: " + d.each(d.of6List(mixedShares...), at6CPU, dlNames[:5])
	return c
}

func claimAllDeadlines(d *mixedData) Claim {
	c := Claim{
		ID: "A7", Revised: reservesOnce, Source: "section 5.3, Table 6", Figure: "tightest-by-share",
		Paper: "DL_BD_ALL's tightest deadlines are by far the loosest: 178 % above the best, the others 4 to 17 %",
	}
	for _, share := range mixedShares {
		list := d.of6List(share)
		for _, i := range []int{dlCPA, dlCPAR, rcCPA, rcCPAR} {
			c.Parts = append(c.Parts, part(
				fmt.Sprintf("tightest deadline above the best, φ %g, dl-bd-all - %s - %d", share, dlNames[i], farAheadDeadlines),
				"points", d.gap(list, at6Tight+dlAll, at6Tight+i).plus(-farAheadDeadlines), above()))
		}
	}
	c.Parts = append(c.Parts, asPrinted("tightest deadline above the best, dl-bd-all", "%", d.over(d.of6List(mixedShares...), at6Tight+dlAll), 178))
	c.Ours = "φ 0.1 to 0.5: " + d.each(d.of6List(mixedShares...), at6Tight, dlNames[:5])
	return c
}

// names7 are the planners of Table 7.
func names7() []string {
	var names []string
	for _, i := range of7 {
		names = append(names, dlNames[i])
	}
	return names
}

func claimLambda(d *mixedData) Claim {
	list := d.among(ofExpo)
	tight := func(a, b int) sample { return d.gap(list, at7Tight+a, at7Tight+b) }
	c := Claim{
		ID: "A8", Source: "section 5.4, Table 7", Figure: "tightest-by-tasks",
		Paper: "λ makes RC_CPAR tight, tighter than DL_BD_CPA, and bounds make it tighter still: 10.96, 55.08, 4.73 and 2.57 % above the best",
		Ours: "tightest deadline: " + d.each(list, at7Tight, names7()) + "; CPU-hours, λ kept: " + d.each(list, at7Kept, names7()) +
			"; λ searched again: " + d.each(list, at7CPU, names7()),
		Revised: lambdaKept,
		Parts: []Part{
			part("tightest deadline above the best, dl-rc-cpar - dl-rc-cpar-lambda", "points", tight(in7RC, in7Lambda), above()),
			part("tightest deadline above the best, dl-bd-cpa - dl-rc-cpar-lambda", "points", tight(in7CPA, in7Lambda), above()),
			part("tightest deadline above the best, dl-rc-cpar-lambda - dl-rcbd-cpar-lambda", "points", tight(in7Lambda, in7Bounded), above()),
			part("CPU-hours above the fewest, dl-bd-cpa - dl-rc-cpar-lambda", "points", d.gap(list, at7Kept+in7CPA, at7Kept+in7Lambda), above()),
			part("CPU-hours above the fewest, dl-rc-cpar-lambda - dl-rcbd-cpar-lambda", "points", d.gap(list, at7Kept+in7Lambda, at7Kept+in7Bounded), above()),
			part("CPU-hours above the fewest, dl-rcbd-cpar-lambda - dl-rc-cpar", "points", d.gap(list, at7Kept+in7Bounded, at7Kept+in7RC), above()),
		},
	}
	for i, published := range [][2]float64{in7CPA: {10.96, 123.98}, in7RC: {55.08, 1.57}, in7Lambda: {4.73, 24.46}, in7Bounded: {2.57, 21.65}} {
		c.Parts = append(
			c.Parts,
			asPrinted("tightest deadline above the best, "+names7()[i], "%", d.over(list, at7Tight+i), published[0]),
			asPrinted("CPU-hours above the fewest, "+names7()[i], "%", d.over(list, at7Kept+i), published[1]),
		)
	}
	return c
}

func claimTighter(d *mixedData) Claim {
	c := Claim{
		ID: "A9", Source: "section 5.3, Table 6", Figure: "tightest-by-share-others", Revised: reservesOnce,
		Paper: "with few bookings (φ 0.1 and 0.2) RC_CPAR is mostly even tighter than the aggressive planners; with many (φ 0.5) it is not",
	}
	var ours []string
	for _, share := range mixedShares {
		gap := d.gap(d.of6List(share), at6Tight+rcCPAR, at6Tight+dlCPA)
		tighter, n := 0, 0
		for _, x := range gap {
			if !math.IsNaN(x) {
				n++
				if x < 0 {
					tighter++
				}
			}
		}
		what := fmt.Sprintf("starts at which dl-rc-cpar is tighter than dl-bd-cpa, φ %g", share)
		if share == 0.5 {
			c.Parts = append(c.Parts, counted(what+": not most", "starts", n-tighter, n, (n+1)/2, (n+1)/2))
		} else {
			c.Parts = append(c.Parts, counted(what, "starts", tighter, n, percentOf(80, n), percentOf(67, n)))
		}
		ours = append(ours, fmt.Sprintf("at %d of %d starts with φ %g (median %s points, mean %s)", tighter, n, share, short(gap.median()), gap))
	}
	c.Ours = "dl-rc-cpar is tighter than dl-bd-cpa " + strings.Join(ours, ", ")
	return c
}

// The tail of Table 6 that section 5.4 tells: of the cases in which RC_CPAR is less tight.
const (
	twiceAsLong = 16 // percent of them in which its tightest deadline is more than twice as far away
	twoLooser   = 25 // percent of all in which it is more than 2 % looser: fewer
)

func claimTail(d *mixedData) Claim {
	c := Claim{
		ID: "A15", Kind: Check, Source: "section 5.4", Figure: "tightest-by-share-others", Revised: reservesOnce,
		Paper: "where RC_CPAR is less tight than DL_BD_CPA it is so by far: in 16 % of the cases its tightest deadline is more than twice as far away, in under 25 % it is more than 2 % looser (bookings of Grid'5000)",
	}
	list := d.among(ofExpo)
	double, looser, n := 0, 0, 0
	for _, s := range list {
		for r := range d.starts {
			rc, bd := d.value(s, r, atTight+rcCPAR), d.value(s, r, atTight+dlCPA)
			if math.IsNaN(rc) || math.IsNaN(bd) {
				continue
			}
			n++
			if rc > 2*bd {
				double++
			}
			if rc > 1.02*bd {
				looser++
			}
		}
	}
	c.Parts = []Part{
		sharePrinted("cases in which dl-rc-cpar takes more than twice as long as dl-bd-cpa", double, n, twiceAsLong),
		counted("cases in which dl-rc-cpar is at most 2 % looser", "cases", n-looser, n, percentOf(100-twoLooser, n), percentOf(100-2*twoLooser, n)),
	}
	c.Ours = fmt.Sprintf("of %d cases in %d more than twice as long, in %d more than 2 %% looser", n, double, looser)
	return c
}

// time returns what a planner took in a form for a kind of workflow, by start, in
// milliseconds.
func (d *mixedData) time(kind mixedKind, planner string, form int) sample {
	var s sample
	for _, row := range d.times[kind] {
		for i, name := range timedNames {
			if name == planner {
				s = append(s, row[form*len(timedNames)+i])
			}
		}
	}
	return s
}

func claimTimes(d *mixedData) Claim {
	c := Claim{
		ID: "A10", Source: "section 6, Tables 9 and 10", Figure: "times-plain",
		Paper: "resource conservative planners take ten to ninety times as long as aggressive ones; all times grow with the tasks and with the density",
	}
	if len(d.times) == 0 {
		return c
	}
	ratio := func(kind mixedKind, a, b string, form int) sample {
		x, y := d.time(kind, a, form), d.time(kind, b, form)
		ratios := make(sample, len(x))
		for i := range ratios {
			ratios[i] = x[i] / y[i]
		}
		return ratios
	}
	const plain, fast = 0, 1
	for _, n := range taskNumbers[1:] {
		kind := mixedKind{"tasks", n}
		c.Parts = append(c.Parts, part(
			fmt.Sprintf("time in the paper's form, %g tasks, dl-rc-cpar / dl-bd-cpar - 10", n), "", ratio(kind, "dl-rc-cpar", "dl-bd-cpar", plain).plus(-10), above()))
	}
	first, last := mixedKind{"tasks", taskNumbers[0]}, mixedKind{"tasks", taskNumbers[len(taskNumbers)-1]}
	sparse, dense := mixedKind{"density", ninths[0]}, mixedKind{"density", ninths[len(ninths)-1]}
	for _, name := range []string{"bd-all", "bd-cpar", "dl-bd-cpar", "dl-rc-cpar"} {
		c.Parts = append(
			c.Parts,
			part("time in the paper's form, "+name+", 100 tasks - 10 tasks", "ms", d.time(last, name, plain).minus(d.time(first, name, plain)), above()),
			part("time in the paper's form, "+name+", density 0.9 - 0.1", "ms", d.time(dense, name, plain).minus(d.time(sparse, name, plain)), above()),
		)
	}
	c.Ours = fmt.Sprintf("100 tasks: dl-rc-cpar %s ms in the paper's form, %s times dl-bd-cpar's; in ours %s ms, %s times",
		middle(d.time(last, "dl-rc-cpar", plain)), middle(ratio(last, "dl-rc-cpar", "dl-bd-cpar", plain)),
		middle(d.time(last, "dl-rc-cpar", fast)), middle(ratio(last, "dl-rc-cpar", "dl-bd-cpar", fast)))
	return c
}

func claimWidth(d *mixedData) Claim {
	at := func(width float64) sample { return d.gap(d.among(ofKind("width", width)), atTAT+bdAll, atTAT+bdCPAR) }
	return Claim{
		ID: "A11", Source: "section 4.3.2", Figure: "turnaround-by-width",
		Paper: "the wider the workflow, the further BD_ALL is behind BD_CPAR",
		Ours:  fmt.Sprintf("bd-all - bd-cpar: %s points at width 0.1, %s at 0.5, %s at 0.9", at(0.1), at(0.5), at(0.9)),
		Parts: []Part{
			part("turn-around above the best, bd-all - bd-cpar, width 0.5 - 0.1", "points", at(0.5).minus(at(0.1)), above()),
			part("turn-around above the best, bd-all - bd-cpar, width 0.9 - 0.5", "points", at(0.9).minus(at(0.5)), above()),
		},
	}
}

func claimBookings(d *mixedData) Claim {
	at := func(list []scenario) sample { return d.gap(list, atTAT+bdAll, atTAT+bdCPAR) }
	few, many := at(d.among(ofShare(0.1))), at(d.among(ofShare(0.5)))
	return Claim{
		ID: "A12", Source: "section 4.3.2", Figure: "turnaround-by-share",
		Paper: "the more bookings there are, the less BD_ALL is behind",
		Ours:  fmt.Sprintf("bd-all - bd-cpar: %s points at φ 0.1, %s at φ 0.5", few, many),
		Parts: []Part{part("turn-around above the best, bd-all - bd-cpar, φ 0.1 - φ 0.5", "points", few.minus(many), above())},
	}
}

// claimMachine is the second half of that sentence, by an experiment in which nothing but the
// size of the machine differs: the four logs differ in everything.
func claimMachine(d *mixedData) Claim {
	c := Claim{
		ID: "A12b", Source: "section 4.3.2", Figure: "behind-by-machine",
		Paper: "the smaller the machine, the less BD_ALL is behind (one log, its jobs scaled with the machine)",
	}
	if len(d.machines) == 0 {
		c.Ours, c.Figure = "the log of "+mixedLogs[blueLog].file+" is not there", ""
		return c
	}
	var ours []string
	for i, behind := range d.machines {
		ours = append(ours, fmt.Sprintf("%s points on %d PEs", behind, machineSizes[i]))
		if i > 0 {
			c.Parts = append(c.Parts, part(fmt.Sprintf("turn-around, bd-all - bd-cpar, %d PEs - %d PEs", machineSizes[i-1], machineSizes[i]), "points",
				d.machines[i-1].minus(behind), above()))
		}
	}
	c.Ours = strings.Join(ours, ", ")
	return c
}

// claimUtilized is the third, over the logs.
func claimUtilized(d *mixedData) Claim {
	const utilization = 2 // among logNames
	c := Claim{
		ID: "A12c", Source: "section 4.3.2", Figure: "turnaround-by-log",
		Paper: "the more a platform is utilised, the less BD_ALL is behind",
	}
	var logs []int
	for i := range mixedLogs {
		if d.logs[mixedLogs[i].name] != nil {
			logs = append(logs, i)
		}
	}
	slices.SortStableFunc(logs, func(a, b int) int {
		return cmp.Compare(d.logs[mixedLogs[a].name][utilization], d.logs[mixedLogs[b].name][utilization])
	})
	var ours []string
	for k, i := range logs {
		at := d.gap(d.among(ofLog(i)), atTAT+bdAll, atTAT+bdCPAR)
		ours = append(ours, fmt.Sprintf("%s points at %s %% (%s)", at, short(d.logs[mixedLogs[i].name][utilization]), mixedLogs[i].name))
		if k > 0 {
			less := mixedLogs[logs[k-1]].name
			c.Parts = append(c.Parts, part(fmt.Sprintf("turn-around above the best, bd-all - bd-cpar, %s - %s", less, mixedLogs[i].name), "points",
				d.gap(d.among(ofLog(logs[k-1])), atTAT+bdAll, atTAT+bdCPAR).minus(at), above()))
		}
	}
	c.Ours = strings.Join(ours, ", ")
	return c
}

func claimTasks(d *mixedData) Claim {
	at := func(n float64) sample { return d.gap(d.among(ofKind("tasks", n)), at6Tight+rcCPAR, at6Tight+dlCPAR) }
	few, many := at(taskNumbers[0]), at(taskNumbers[len(taskNumbers)-1])
	return Claim{
		ID: "A13", Source: "section 5.3", Figure: "tightest-by-tasks",
		Paper: "the more tasks, the less tight resource conservative planners are beside aggressive ones",
		Ours:  fmt.Sprintf("dl-rc-cpar - dl-bd-cpar: %s points with 10 tasks, %s with 100", few, many),
		Parts: []Part{part("tightest deadline above the best, dl-rc-cpar - dl-bd-cpar, 100 tasks - 10 tasks", "points", many.minus(few), above())},
	}
}

// lambdaKept and reservesOnce say which readings were changed after verdicts had been seen.
const (
	lambdaKept   = "the λ of the tightest deadline is kept by the loose one, and each table has its own loose deadline (docs/adr/0029); " + reservesOnce
	reservesOnce = "reserves are allotted once (docs/adr/0009)"
)

// lostShare returns how much less is saved, in percent of what was.
func lostShare(saved, less sample) sample {
	s := make(sample, len(saved))
	for r := range s {
		s[r] = 100 * (saved[r] - less[r]) / saved[r]
	}
	return s
}

// lambdaText are the figures of section 5.4's text.
type lambdaText struct{ savedRC, savedLambda, overRC, overCPA sample }

func (d *mixedData) lambdaText() lambdaText {
	list := d.among(ofExpo)
	hours, tight := func(i int) sample { return d.over(list, atKept+i) }, func(i int) sample { return d.over(list, atTight+i) }
	percent := func(a, b sample) sample {
		s := make(sample, len(a))
		for i := range s {
			s[i] = 100 * (a[i] - b[i]) / a[i]
		}
		return s
	}
	return lambdaText{
		savedRC: hours(in7CPA).minus(hours(in7RC)), savedLambda: hours(in7CPA).minus(hours(in7Lambda)),
		overRC: percent(tight(rcCPAR), tight(ofLambda[0])), overCPA: percent(tight(dlCPA), tight(ofLambda[0])),
	}
}

func claimLambdaText(d *mixedData) Claim {
	t := d.lambdaText()
	return Claim{
		ID: "A14", Source: "section 5.4", Figure: "lambda", Revised: lambdaKept,
		Paper: "RC_CPAR saves 544 CPU-hours over DL_BD_CPA, with λ it saves 478; with λ the tightest deadline is 13.6 % tighter than RC_CPAR's, 4.8 % tighter than DL_BD_CPA's",
		Ours: fmt.Sprintf("dl-rc-cpar saves %s CPU-hours, with λ %s; with λ %s %% tighter than dl-rc-cpar, %s %% than dl-bd-cpa",
			t.savedRC, t.savedLambda, t.overRC, t.overCPA),
		Parts: []Part{
			part("CPU-hours saved by dl-rc-cpar over dl-bd-cpa", "CPU-hours", t.savedRC, above()),
			part("CPU-hours saved by dl-rc-cpar - by dl-rc-cpar-lambda", "CPU-hours", t.savedRC.minus(t.savedLambda), above()),
			asPrinted("of the CPU-hours saved by dl-rc-cpar those lost by λ", "%", lostShare(t.savedRC, t.savedLambda), 100*(544-478)/544.0),
			part("tighter by λ, of dl-rc-cpar's turn-around", "%", t.overRC, above()),
			part("tighter by λ, of dl-bd-cpa's turn-around", "%", t.overCPA, above()),
			asPrinted("CPU-hours saved by dl-rc-cpar over dl-bd-cpa", "CPU-hours", t.savedRC, 544),
			asPrinted("CPU-hours saved by dl-rc-cpar-lambda over dl-bd-cpa", "CPU-hours", t.savedLambda, 478),
			asPrinted("tighter by λ, of dl-rc-cpar's turn-around", "%", t.overRC, 13.6),
			asPrinted("tighter by λ, of dl-bd-cpa's turn-around", "%", t.overCPA, 4.8),
		},
	}
}

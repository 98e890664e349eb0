package reproduce

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
)

// waitingNotes say where the paper leaves something open, and what was done.
var waitingNotes = []string{
	"The paper prints no experiment. Arrivals, run times, limits, sites and loads are ours.",
	"D(·) is not defined in the paper; here it is the booked share of a site's PE-seconds from now to the job's deadline.",
	"The linear programme as printed puts all mass on the largest size, which contradicts P(A) > 1/2; the weights c, which it never uses, are taken as the size law in closed form, with m(1-K2) as the upper end of the band.",
	"Where C refuses a job at one site, the next larger one is asked.",
	"PEs are promised as counts and numbered at the start (late binding).",
	"Utilisation is that of all sites from the arrival of the request that ends the first tenth to the last arrival, so that neither the filling nor the draining of the machine counts.",
	"Sequential and eager see the same requests in each repetition; intervals are Student's t over the differences.",
}

// waitingRows tells what was simulated.
func waitingRows(scale waitingScale) []Row {
	return []Row{
		{"repetitions", strconv.Itoa(scale.repetitions)},
		{"requests in a run", strconv.Itoa(scale.requests)},
		{"arrivals", "Poisson; load = PE-seconds that arrive in a second, for each PE"},
		{"run times", fmt.Sprintf("exponential or fixed, mean %d s", meanDuration)},
		{"waiting limits", "exponential, mean in run times; 0 is no waiting"},
		{"theorem's search", fmt.Sprintf("%d settings: sites of 32, 16+32 and 32+32 PEs; (K1, K2) = (0.4, 0.3), (0.5, 0.2), (0.6, 0.1), (0.35, 0.35); loads 0.7, 1, 2; limits 0, 1, 10; run times exponential and fixed; sizes by the law \"theorem\"", len(searchSettings()))},
		{"limits and loads", "sites of 16 and 32 PEs, sizes uniform on 1..32, K1 = 0.4, K2 = 0.3, exponential run times; wide is 16 PEs or more"},
		{"counted as better or worse", fmt.Sprintf("a mean difference of more than %s points whose 95 %% interval excludes 0", short(tellable))},
	}
}

// waitingFigures draws the data.
func waitingFigures(d *waitingData) []Figure {
	return []Figure{searchFigure(d.search), limitFigure(d.waits), loadFigure(d.loads), utilizationFigure(d.loads)}
}

// searchFigure shows all settings of the search, sorted by what eager gains.
func searchFigure(search []comparison) Figure {
	f := Figure{
		Name: "search", Title: "What eager utilises more than sequential, setting by setting",
		Caption: "Each point is one setting of the theorem's search with its 95 % interval, sorted; the theorem wants all of them above 0.",
		X:       "settings, sorted by the difference", Y: "eager − sequential, points of utilisation", Zero: true,
	}
	names := map[float64]string{0: "no waiting", 1: "limits of 1 run time", 10: "limits of 10 run times"}
	index := map[float64]int{}
	for i, limit := range searchLimits {
		f.Series = append(f.Series, Series{Name: names[limit]})
		index[limit] = i
	}
	points := make([]Point, len(search))
	order := make([]int, len(search))
	for i := range search {
		points[i].Label = search[i].setting.String()
		points[i].Value, points[i].N = search[i].gain().estimate()
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(*points[a].Value.Mean, *points[b].Value.Mean), cmp.Compare(a, b))
	})
	for rank, i := range order {
		points[i].X = float64(rank + 1)
		s := &f.Series[index[search[i].setting.limit]]
		s.Points = append(s.Points, points[i])
	}
	return f
}

// gather returns one sample for each comparison.
func gather(compared []comparison, of func(*comparison) sample) []sample {
	samples := make([]sample, len(compared))
	for i := range compared {
		samples[i] = of(&compared[i])
	}
	return samples
}

func limitFigure(waits []comparison) Figure {
	var labels []string
	for i := range waits {
		labels = append(labels, short(waits[i].setting.limit))
	}
	return Figure{
		Name: "acceptance-by-limit", Title: "Acceptance by waiting limit",
		Caption: "Accepted requests against the mean waiting limit; sites of 16 and 32 PEs, load 1. Means and 95 % intervals over the repetitions.",
		X:       "mean waiting limit, in mean run times", Y: "accepted requests, %", Ticks: ticksAt(labels), Within: percentages,
		Series: []Series{
			line("sequential", nil, labels, gather(waits, func(c *comparison) sample { return c.sequential.acceptance })),
			line("eager", nil, labels, gather(waits, func(c *comparison) sample { return c.eager.acceptance })),
		},
	}
}

func loadFigure(loads []comparison) Figure {
	labels := loadLabels(loads)
	return Figure{
		Name: "acceptance-by-load", Title: "Acceptance of narrow and wide requests",
		Caption: "Accepted requests of fewer than 16 PEs and of 16 or more, against the load; sites of 16 and 32 PEs. Means and 95 % intervals over the repetitions.",
		X:       "load, PE-seconds that arrive in a second for each PE", Y: "accepted requests, %", Ticks: ticksAt(labels), Zero: true, Within: percentages,
		Series: []Series{
			line("narrow, sequential", nil, labels, gather(loads, func(c *comparison) sample { return c.sequential.narrow })),
			line("narrow, eager", nil, labels, gather(loads, func(c *comparison) sample { return c.eager.narrow })),
			line("wide, sequential", nil, labels, gather(loads, func(c *comparison) sample { return c.sequential.wide })),
			line("wide, eager", nil, labels, gather(loads, func(c *comparison) sample { return c.eager.wide })),
		},
	}
}

func utilizationFigure(loads []comparison) Figure {
	labels := loadLabels(loads)
	return Figure{
		Name: "utilisation-by-load", Title: "Utilisation by load",
		Caption: "Utilisation under uniform sizes, against the load; sites of 16 and 32 PEs, limits of one run time. Means and 95 % intervals over the repetitions.",
		X:       "load, PE-seconds that arrive in a second for each PE", Y: "utilisation, %", Ticks: ticksAt(labels), Within: percentages,
		Series: []Series{
			line("sequential", nil, labels, gather(loads, func(c *comparison) sample { return c.sequential.utilization })),
			line("eager", nil, labels, gather(loads, func(c *comparison) sample { return c.eager.utilization })),
		},
	}
}

func loadLabels(loads []comparison) []string {
	var labels []string
	for i := range loads {
		labels = append(labels, short(loads[i].setting.load))
	}
	return labels
}

// searchTable lists the settings of the search with what both policies came
// to.
func searchTable(search []comparison) Table {
	t := Table{
		Name: "settings", Title: "The theorem's search, setting by setting (percentages and points)",
		Header: []string{
			"sites", "k1", "k2", "load", "limit", "durations", "p_a", "fulfils", "sequential_utilisation", "eager_utilisation",
			"gain", "gain_low", "gain_high", "narrow_gain", "wide_gain",
		},
	}
	mean := func(s sample) string {
		e, n := s.estimate()
		return numbers(e, n)[0]
	}
	for i := range search {
		c := &search[i]
		s := &c.setting
		gain, n := c.gain().estimate()
		row := []string{
			s.sizes(), digits(float64(s.k1) / 1000), digits(float64(s.k2) / 1000), digits(s.load), digits(s.limit), s.durations(),
			digits(s.bandShare()), strconv.FormatBool(s.fulfils()), mean(c.sequential.utilization), mean(c.eager.utilization),
		}
		row = append(row, numbers(gain, n)[:3]...)
		row = append(row, mean(c.eager.narrow.minus(c.sequential.narrow)), mean(c.eager.wide.minus(c.sequential.wide)))
		t.Rows = append(t.Rows, row)
	}
	return t
}

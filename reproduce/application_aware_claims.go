package reproduce

import (
	"fmt"
	"strings"
)

// The published figures, in percent: how much less of it AJSM has than MGA and
// than Min-Min, on average over 960 to 2,880 jobs.
var awarePublished = []struct {
	periods                 int
	rejected, apt, makespan [2]float64 // MGA, Min-Min
}{
	{60, [2]float64{85.3, 87.5}, [2]float64{6.9, 5.4}, [2]float64{6.2, 5.4}},
	{120, [2]float64{91.6, 92.3}, [2]float64{10.7, 5.0}, [2]float64{9.7, 5.8}},
}

// What counts as reproduced, for want of more than printed means.
const (
	farLess       = 50  // percent fewer rejections: "much lower"
	noMore        = 0.5 // points of rejection that may go the other way
	mostlyClosed  = 25  // percent of a gap that is left when it has mostly closed
	crowdedNear   = 5   // points between two rejection ratios that are close
	tableShare    = 70  // percent of the transfers within 10 % in Table 4, which lists ten
	rarelyLate    = 1   // percent of the accepted jobs
	equalForecast = 5   // percent between two errors that are alike
)

var awareBaselines = []int{plainMGA, plainMinMin}

// awareClaims judges the data.
func awareClaims(d *awareData) []Claim {
	claims := []Claim{
		claimAwareRejection(d), claimAwarePublished(d, "F1", "rejection ratio", awRejected), claimAwareLoad(d), claimAwareGrowth(d),
		claimAwarePeriods(d), claimAwareTotal(d), claimAwarePublished(d, "F2", "average processing time", awAPT),
		claimAwarePublished(d, "F3", "makespan", awMakespan), claimAwareBaselines(d), claimAwareFair(d),
		claimAwareOrder(d), claimAwareCrowd(d), claimAwareTable(d), claimAwareForecasts(d), claimAwareLate(d), claimAwareMeasured(d),
	}
	claims = append(claims, claimAwareFew(d), claimAwareReason(d))
	claims = append(claims, sharedClaims(d)...)
	for _, demands := range otherDemands {
		claims = append(claims, claimAwareDemands(d, demands))
	}
	return claims
}

// The numbers of jobs that the paper calls low workloads, and what "a few" of them are, in
// percent.
const (
	lowWorkload = 1440
	aFew        = 5
)

func claimAwareFew(d *awareData) Claim {
	c := Claim{
		ID: "R9", Source: "experimental results, Figure 5(d)", Figure: "fig5d-rejection",
		Paper: "of 960, 1200 or 1440 jobs AJSM rejects only a few",
	}
	for _, setting := range d.spanned(awareSpans[0]) {
		if setting.jobs <= lowWorkload {
			rejected := d.of(setting, awareAJSM, awRejected)
			c.Parts = append(c.Parts, part(fmt.Sprintf("AJSM's rejection - %d %%, %s", aFew, setting.at()), "points", rejected.plus(-aFew), below()))
			c.Ours = joined(c.Ours, fmt.Sprintf("%s: %s %%", setting.at(), rejected))
		}
	}
	return c
}

func claimAwareReason(d *awareData) Claim {
	c := Claim{
		ID: "R10", Kind: Own, Source: "experimental results", Figure: "fig5d-rejection",
		Paper: "what AJSM rejects at low workloads it rejects mainly for want of a program, not because of the deadline",
	}
	for _, setting := range d.spanned(awareSpans[0]) {
		if setting.jobs > lowWorkload {
			continue
		}
		reason, rejected := d.of(setting, awareAJSM, awSoftware), d.of(setting, awareAJSM, awRejected)
		part100 := make(sample, len(reason))
		for r := range part100 {
			part100[r] = 100 * reason[r] / rejected[r]
		}
		c.Parts = append(c.Parts, part("AJSM's rejections that lack a program or licence - 50 %, "+setting.at(), "points", part100.plus(-50), above()))
		c.Ours = joined(c.Ours, fmt.Sprintf("%s: %s %% of its rejections", setting.at(), part100))
	}
	return c
}

// claimAwareDemands is F1 for jobs that demand something else: what the paper leaves open
// decides it.
func claimAwareDemands(d *awareData, demands awareDemands) Claim {
	title := fmt.Sprintf("deadlines of 1.1 to %g run times, %g %% of the jobs with accelerators", demands.mostFactor, 100*demands.accelerated)
	c := Claim{
		ID: "F1-" + demands.name, Kind: Own, Source: "experimental results, where they leave the jobs open",
		Paper: "AJSM's rejection ratio is less than MGA's and Min-Min's, by as much as the paper prints (" + title + ")",
	}
	for i, m := range awareBaselines {
		var settings []awareSetting
		for _, s := range d.settings {
			if s.demands == demands {
				settings = append(settings, s)
			}
		}
		gain := over(settings, func(s awareSetting) sample { return d.reduction(s, m, awRejected) })
		what := "rejection ratio less than " + awareMatchers[m].name + "'s, fewest and most jobs"
		c.Parts = append(c.Parts, part(what, "%", gain, above()), asPrinted(what, "%", gain, awarePublished[0].rejected[i]))
		c.Ours = joined(c.Ours, fmt.Sprintf("less by %s %% than %s's", gain, awareMatchers[m].name))
	}
	return c
}

// at names a setting in a part.
func (s *awareSetting) at() string {
	return fmt.Sprintf("%d periods, %d jobs", s.periods, s.jobs)
}

// ends returns the settings of fewest and most jobs among those of a span.
func (d *awareData) ends(periods int) (fewest, most awareSetting) {
	all := d.spanned(periods)
	return all[0], all[len(all)-1]
}

func claimAwareRejection(d *awareData) Claim {
	c := Claim{
		ID: "R1", Source: "experimental results, Figures 5(d) and 6(d)", Figure: "fig5d-rejection",
		Paper: "AJSM rejects far fewer jobs than MGA and Min-Min, which do not look at what jobs require, at every load",
	}
	for _, periods := range awareSpans {
		for _, setting := range d.spanned(periods) {
			for _, m := range awareBaselines {
				c.Parts = append(c.Parts, part("rejections fewer than "+awareMatchers[m].name+"'s, less half of them, "+setting.at(), "percent",
					d.reduction(setting, m, awRejected).plus(-farLess), above()))
			}
		}
	}
	var ours []string
	for _, periods := range awareSpans {
		fewest, most := d.ends(periods)
		for _, setting := range []awareSetting{fewest, most} {
			ours = append(ours, fmt.Sprintf("%s: AJSM %s, MGA %s, Min-Min %s %%", setting.at(),
				d.of(setting, awareAJSM, awRejected), d.of(setting, plainMGA, awRejected), d.of(setting, plainMinMin, awRejected)))
		}
	}
	c.Ours = strings.Join(ours, "; ")
	return c
}

// claimAwarePublished compares a mean with what the paper prints.
func claimAwarePublished(d *awareData, id, title string, figure int) Claim {
	c := Claim{ID: id, Source: "experimental results"}
	letter := ""
	var paper, ours []string
	for _, published := range awarePublished {
		values := published.apt
		switch letter = "b-apt"; figure {
		case awRejected:
			values, letter = published.rejected, "d-rejection"
		case awMakespan:
			values, letter = published.makespan, "c-makespan"
		}
		for i, m := range awareBaselines {
			gain := over(d.spanned(published.periods), func(s awareSetting) sample { return d.reduction(s, m, figure) })
			what := fmt.Sprintf("%s less than %s's, %d periods", title, awareMatchers[m].name, published.periods)
			c.Parts = append(c.Parts, part(what, "%", gain, above()), asPrinted(what, "%", gain, values[i]))
			ours = append(ours, fmt.Sprintf("%s %% against %s, %d periods", gain, awareMatchers[m].name, published.periods))
		}
		paper = append(paper, fmt.Sprintf("by %s and %s %% (%d periods)", short(values[0]), short(values[1]), published.periods))
	}
	c.Figure = "fig5" + letter
	c.Paper = fmt.Sprintf("AJSM's %s is less than MGA's and Min-Min's, on average %s", title, strings.Join(paper, ", "))
	c.Ours = "less by (more, where negative) " + strings.Join(ours, ", ")
	return c
}

func claimAwareLoad(d *awareData) Claim {
	c := Claim{
		ID: "R2", Source: "experimental results, Figure 5(d)", Figure: "fig5d-rejection",
		Paper: "the more jobs, the larger the rejection ratio of all three",
	}
	var ours []string
	for _, periods := range awareSpans {
		for m := range fairMGA {
			growth := d.growth(periods, m)
			c.Parts = append(c.Parts, part(fmt.Sprintf("rejection, most jobs - fewest, %s, %d periods", awareMatchers[m].name, periods), "points", growth, above()))
			ours = append(ours, fmt.Sprintf("%s %s points, %d periods", awareMatchers[m].name, growth, periods))
		}
	}
	c.Ours = "from fewest to most jobs " + strings.Join(ours, "; ")
	return c
}

// growth returns how much more a matcher rejects of most jobs than of fewest.
func (d *awareData) growth(periods, matcher int) sample {
	fewest, most := d.ends(periods)
	return d.of(most, matcher, awRejected).minus(d.of(fewest, matcher, awRejected))
}

func claimAwareGrowth(d *awareData) Claim {
	c := Claim{
		ID: "R2b", Source: "experimental results, Figure 5(d)", Figure: "fig5d-rejection",
		Paper: "AJSM's rejection ratio grows faster with the number of jobs than MGA's and Min-Min's",
	}
	var ours []string
	for _, periods := range awareSpans {
		for _, m := range awareBaselines {
			more := d.growth(periods, awareAJSM).minus(d.growth(periods, m))
			c.Parts = append(c.Parts, part(fmt.Sprintf("growth of AJSM's rejection - %s's, %d periods", awareMatchers[m].name, periods), "points", more, above()))
			ours = append(ours, fmt.Sprintf("%s points more than %s's, %d periods", more, awareMatchers[m].name, periods))
		}
	}
	c.Ours = "it grows by " + strings.Join(ours, "; ")
	return c
}

func claimAwarePeriods(d *awareData) Claim {
	c := Claim{
		ID: "R3", Kind: Check, Source: "experimental results, Figure 6(d)", Figure: "fig6d-rejection",
		Paper: "over 120 periods AJSM rejects no more, and processes no longer, than over 60",
	}
	longer := d.spanned(awareSpans[1])
	for i, setting := range d.spanned(awareSpans[0]) {
		c.Parts = append(
			c.Parts,
			part(fmt.Sprintf("AJSM's rejection, 60 periods - 120, %d jobs", setting.jobs), "points",
				d.of(setting, awareAJSM, awRejected).minus(d.of(longer[i], awareAJSM, awRejected)), notBelow(noMore)),
			part(fmt.Sprintf("AJSM's APT, 60 periods - 120, %d jobs", setting.jobs), "s",
				d.of(setting, awareAJSM, awAPT).minus(d.of(longer[i], awareAJSM, awAPT)), notBelow(0)),
		)
	}
	mean := func(periods, figure int) sample {
		return over(d.spanned(periods), func(s awareSetting) sample { return d.of(s, awareAJSM, figure) })
	}
	c.Ours = fmt.Sprintf("on average %s %% and %s s over 60 periods, %s %% and %s s over 120",
		mean(60, awRejected), mean(60, awAPT), mean(120, awRejected), mean(120, awAPT))
	return c
}

func claimAwareTotal(d *awareData) Claim {
	c := Claim{
		ID: "R4", Source: "experimental results, Figures 5(a) and 6(a)", Figure: "fig5a-tpt",
		Paper: "AJSM's total processing time is larger than MGA's and Min-Min's, because it serves more jobs",
	}
	var ours []string
	for _, periods := range awareSpans {
		for _, m := range awareBaselines {
			for _, setting := range d.spanned(periods) {
				c.Parts = append(c.Parts, part("TPT, AJSM - "+awareMatchers[m].name+", "+setting.at(), "10^6 s",
					d.of(setting, awareAJSM, awTPT).minus(d.of(setting, m, awTPT)), above()))
			}
			_, most := d.ends(periods)
			ours = append(ours, fmt.Sprintf("%s: %s against %s million s of %s", most.at(), d.of(most, awareAJSM, awTPT), d.of(most, m, awTPT), awareMatchers[m].name))
		}
	}
	c.Ours = strings.Join(ours, "; ")
	return c
}

// sharedClaims compare AJSM with each of two over the jobs that both accept, in the time
// that they take and in their makespan.
func sharedClaims(d *awareData) []Claim {
	var claims []Claim
	ids := []string{"S1", "S1b", "S1c", "S1d"}
	for _, m := range awareBaselines {
		for _, what := range []struct {
			name          string
			ajsm, another int
		}{{"processing time", awSharedAPTOfAJSM, awSharedAPT}, {"makespan", awSharedMakespanOfAJSM, awSharedMakespan}} {
			c := Claim{
				ID: ids[len(claims)], Kind: Own, Source: "against Figures 5(b) and (c) (spec 5, d)", Figure: "shared-apt",
				Paper: fmt.Sprintf("AJSM's %s is less than %s's, of the jobs that both accept", what.name, awareMatchers[m].name),
			}
			for _, periods := range awareSpans {
				gain := over(d.spanned(periods), func(s awareSetting) sample { return less(d.of(s, m, what.ajsm), d.of(s, m, what.another)) })
				c.Parts = append(c.Parts, part(fmt.Sprintf("%s of the shared jobs less than %s's, %d periods", what.name, awareMatchers[m].name, periods), "percent", gain, above()))
				shared := over(d.spanned(periods), func(s awareSetting) sample { return d.of(s, m, awShared) })
				c.Ours = joined(c.Ours, fmt.Sprintf("less by %s %%, of %s %% of the jobs, %d periods", gain, shared, periods))
			}
			claims = append(claims, c)
		}
	}
	return claims
}

func claimAwareBaselines(d *awareData) Claim {
	c := Claim{
		ID: "M1", Source: "experimental results",
		Paper: "Min-Min is better than MGA in APT and makespan, MGA than Min-Min in rejections", Figure: "fig5b-apt",
	}
	var ours []string
	for _, periods := range awareSpans {
		gap := func(figure, a, b int) sample {
			return over(d.spanned(periods), func(s awareSetting) sample { return less(d.of(s, a, figure), d.of(s, b, figure)) })
		}
		apt, makespan, rejected := gap(awAPT, plainMinMin, plainMGA), gap(awMakespan, plainMinMin, plainMGA), gap(awRejected, plainMGA, plainMinMin)
		c.Parts = append(
			c.Parts,
			part(fmt.Sprintf("Min-Min's APT less than MGA's, %d periods", periods), "percent", apt, above()),
			part(fmt.Sprintf("Min-Min's makespan less than MGA's, %d periods", periods), "percent", makespan, above()),
			part(fmt.Sprintf("MGA's rejections fewer than Min-Min's, %d periods", periods), "percent", rejected, above()),
		)
		ours = append(ours, fmt.Sprintf("%d periods: Min-Min's APT less by %s, makespan by %s, MGA's rejections by %s %%", periods, apt, makespan, rejected))
	}
	c.Ours = strings.Join(ours, "; ")
	return c
}

func claimAwareFair(d *awareData) Claim {
	c := Claim{
		ID: "R5", Kind: Own, Source: "against the comparison (spec 5, c; our prediction)", Figure: "fair-rejection",
		Paper: "what AJSM gains is gained by looking at requirements: baselines that do so too close most of the gap",
	}
	var ours []string
	for _, fair := range []struct{ unaware, aware int }{{plainMGA, fairMGA}, {plainMinMin, fairMinMin}} {
		for _, periods := range awareSpans {
			left := over(d.spanned(periods), func(s awareSetting) sample {
				ajsm, before := d.of(s, awareAJSM, awRejected), d.of(s, fair.unaware, awRejected)
				now := d.of(s, fair.aware, awRejected).minus(ajsm)
				for r := range now {
					now[r] *= 100 / (before[r] - ajsm[r])
				}
				return now
			})
			c.Parts = append(c.Parts, part(fmt.Sprintf("what is left of the gap of rejections to %s - %d %%, %d periods", awareMatchers[fair.aware].name, mostlyClosed, periods),
				"percent", left.plus(-mostlyClosed), below()))
			ours = append(ours, fmt.Sprintf("%s %% of the gap is left to %s, %d periods", left, awareMatchers[fair.aware].name, periods))
		}
	}
	c.Ours = strings.Join(ours, "; ")
	return c
}

func claimAwareOrder(d *awareData) Claim {
	c := Claim{
		ID: "R5b", Kind: Own, Source: "against the comparison (spec 5, c)", Figure: "fair-rejection",
		Paper: "AJSM's order and its forecasts of transfers gain something too: it rejects fewer jobs than any baseline that looks at requirements",
	}
	setting := fairSetting
	var ours []string
	for m := fairMGA; m < len(awareMatchers); m++ {
		more := d.of(setting, m, awRejected).minus(d.of(setting, awareAJSM, awRejected))
		c.Parts = append(c.Parts, part("rejection, "+awareMatchers[m].name+" - AJSM, "+setting.at(), "points", more, above()))
		ours = append(ours, fmt.Sprintf("%s %s", awareMatchers[m].name, more))
	}
	c.Ours = fmt.Sprintf("points that others reject more, %s: %s", setting.at(), strings.Join(ours, "; "))
	return c
}

func claimAwareCrowd(d *awareData) Claim {
	c := Claim{
		ID: "R7", Source: "experimental results", Figure: "fig5d-rejection",
		Paper: "near 5,000 jobs AJSM's rejection ratio comes close to MGA's",
	}
	var ours []string
	for _, periods := range awareSpans {
		crowded := awareSetting{netSynthetic, periods, crowdedJobs, printedDemands}
		fewest, _ := d.ends(periods)
		gap := d.of(crowded, plainMGA, awRejected).minus(d.of(crowded, awareAJSM, awRejected))
		before := d.of(fewest, plainMGA, awRejected).minus(d.of(fewest, awareAJSM, awRejected))
		c.Parts = append(
			c.Parts,
			part("rejection, MGA - AJSM, "+crowded.at(), "points", gap, smaller(crowdedNear)),
			part(fmt.Sprintf("the same with %d jobs - with %d, %d periods", fewest.jobs, crowdedJobs, periods), "points", before.minus(gap), above()),
		)
		ours = append(ours, fmt.Sprintf("%s: AJSM %s, MGA %s %%", crowded.at(), d.of(crowded, awareAJSM, awRejected), d.of(crowded, plainMGA, awRejected)))
	}
	c.Ours = strings.Join(ours, "; ")
	return c
}

func claimAwareTable(d *awareData) Claim {
	c := Claim{
		ID: "T4", Kind: Check, Source: "Table 4", Figure: "forecast-errors",
		Paper: "transfer times are foreseen to within 10 % in 7 of 10 cases",
	}
	var ours []string
	for _, net := range d.simulated() {
		near, off := d.transfers(net, awNear), d.transfers(net, awError)
		c.Parts = append(
			c.Parts,
			part(fmt.Sprintf("transfers within 10 %% - half of them, %s bandwidths", net), "points", near.plus(-50), above()),
			asPrinted(fmt.Sprintf("transfers within 10 %%, %s bandwidths", net), "%", near, tableShare),
		)
		ours = append(ours, fmt.Sprintf("%s bandwidths: %s %% of the transfers within 10 %%, off by %s %% on average", net, near, off))
	}
	c.Ours = strings.Join(ours, "; ")
	return c
}

// simulated lists the nets in which jobs were decided.
func (d *awareData) simulated() []string {
	nets := []string{netSynthetic}
	if d.settings[len(d.settings)-1].net == netMeasured {
		nets = append(nets, netMeasured)
	}
	return nets
}

// transfers returns a figure of AJSM's, the mean over the settings of a net.
func (d *awareData) transfers(net string, figure int) sample {
	var settings []awareSetting
	for _, s := range d.settings {
		if s.net == net {
			settings = append(settings, s)
		}
	}
	return over(settings, func(s awareSetting) sample { return d.of(s, awareAJSM, figure) })
}

// trial returns a figure of a model on a net, by repetition.
func (d *awareData) trial(net string, model, figure int) sample {
	s := make(sample, len(d.trials[net]))
	for r, values := range d.trials[net] {
		s[r] = values[model*trialKept+figure]
	}
	return s
}

func claimAwareForecasts(d *awareData) Claim {
	next := func(net string, than int) sample {
		return less(d.trial(net, byARIMA, trialNext), d.trial(net, than, trialNext))
	}
	c := Claim{
		ID: "R6", Kind: Own, Source: "forecasting (spec 5, c)", Figure: "forecast-errors",
		Paper: "ARIMA foresees bandwidths with a memory better than the last value does, and those without one like their mean",
		Parts: []Part{
			part("ARIMA's error less than the last value's, synthetic bandwidths", "percent", next(netSynthetic, byLast), above()),
			part("ARIMA's error less than the mean's, uniform bandwidths", "percent", next(netUniform, byMean), smaller(equalForecast)),
			part("ARIMA's transfer error - the last value's, synthetic bandwidths", "points",
				d.trial(netSynthetic, byARIMA, trialTransfer).minus(d.trial(netSynthetic, byLast, trialTransfer)), below()),
		},
	}
	if len(d.trials[netMeasured]) > 0 {
		c.Parts = append(c.Parts, part("ARIMA's error less than the last value's, measured bandwidths", "percent", next(netMeasured, byLast), above()))
	}
	var ours []string
	for _, net := range []string{netSynthetic, netUniform, netMeasured} {
		if len(d.trials[net]) == 0 {
			continue
		}
		var off []string
		for m, name := range trialModels {
			off = append(off, fmt.Sprintf("%s %s %%", name, d.trial(net, m, trialTransfer)))
		}
		ours = append(ours, fmt.Sprintf("%s bandwidths: a transfer of %d periods is off by %s; ARIMA's error of the next value is %s %% less than the last value's",
			net, trialPeriods, strings.Join(off, ", "), next(net, byLast)))
	}
	c.Ours = strings.Join(ours, "; ")
	return c
}

func claimAwareLate(d *awareData) Claim {
	c := Claim{
		ID: "D1", Kind: Check, Source: "equation 10 (not examined in the paper)", Figure: "late",
		Paper: "what is accepted ends by its deadline",
	}
	var ours []string
	for _, net := range d.simulated() {
		late := d.transfers(net, awLate)
		c.Parts = append(c.Parts, part(fmt.Sprintf("accepted jobs that miss the deadline because of their data - %d %%, %s bandwidths", rarelyLate, net), "points",
			late.plus(-rarelyLate), below()))
		ours = append(ours, fmt.Sprintf("%s %% of those that AJSM accepts are late, %s bandwidths", late, net))
	}
	c.Ours = strings.Join(ours, "; ")
	return c
}

func claimAwareMeasured(d *awareData) Claim {
	c := Claim{
		ID: "R8", Kind: Own, Source: "the same on measured bandwidths", Figure: "measured-rejection",
		Paper: "with bandwidths as they were measured, too, AJSM rejects far fewer jobs than MGA and Min-Min",
	}
	var ours []string
	for _, setting := range d.settings {
		if setting.net != netMeasured {
			continue
		}
		for _, m := range awareBaselines {
			c.Parts = append(c.Parts, part("rejections fewer than "+awareMatchers[m].name+"'s, less half of them, "+setting.at(), "percent",
				d.reduction(setting, m, awRejected).plus(-farLess), above()))
		}
		ours = append(ours, fmt.Sprintf("%s: AJSM %s, MGA %s, Min-Min %s %%", setting.at(),
			d.of(setting, awareAJSM, awRejected), d.of(setting, plainMGA, awRejected), d.of(setting, plainMinMin, awRejected)))
	}
	if c.Ours = strings.Join(ours, "; "); len(ours) == 0 {
		c.Ours, c.Figure = "the measurements were not there", ""
		c.Parts = []Part{part("rejections fewer", "percent", nil, above())}
	}
	return c
}

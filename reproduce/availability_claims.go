package reproduce

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/policy"
)

// What "nearly equal" means, in points of acceptance and in slowdown, and how
// straight "almost linear" is: the part of the variance along the axis that a
// straight line explains.
const (
	alikeAcceptance = 2
	alikeSlowdown   = 0.03
	nearlyLinear    = 0.9
)

// placed returns the place of a placement in the table.
func placed(name string) int {
	return slices.IndexFunc(rectPlacements, func(p policy.NamedPlacement) bool { return p.Name == name })
}

// The placements by the paper's names.
var (
	rectFF           = placed("first-fit")
	rectPEB, rectPEW = placed("pe-best"), placed("pe-worst")
	rectDuB, rectDuW = placed("duration-best"), placed("duration-worst")
	rectArB, rectArW = placed("area-best"), placed("area-worst")
	rectEvery        = []int{rectFF, rectPEB, rectPEW, rectDuB, rectDuW, rectArB, rectArW}
)

// rectView is the data of one workload in one variant.
type rectView struct {
	d                 *rectData
	workload, variant int
}

func (v *rectView) curve(axis, policy, figure int) []sample {
	return v.d.curve(v.workload, axis, v.variant, policy, figure)
}

// there reports whether anything of the workload was measured.
func (v *rectView) there() bool { return v.d.log || !rectWorkloads[v.workload].log }

// axes returns those along which the workload was varied.
func (v *rectView) axes() []int {
	if rectWorkloads[v.workload].log {
		return []int{byArrivals, byFlexibility}
	}
	return []int{byUMed, byArrivals, byFlexibility}
}

// loads returns the axes of job sizes and of load.
func (v *rectView) loads() []int {
	return slices.DeleteFunc(v.axes(), func(axis int) bool { return axis == byFlexibility })
}

// place names a point of an axis.
func place(axis, i int) string {
	return fmt.Sprintf("%s %g", rectAxes[axis].title, rectAxes[axis].values[i])
}

// course writes the first and the last mean of policies along an axis.
func (v *rectView) course(axis, figure int, unit string, policies ...int) string {
	values := rectAxes[axis].values
	var words []string
	for _, p := range policies {
		c := v.curve(axis, p, figure)
		words = append(words, fmt.Sprintf("%s %s to %s", rectPlacements[p].Name, middle(c[0]), middle(c[len(c)-1])))
	}
	return fmt.Sprintf("%s%s for %s %g to %g", strings.Join(words, ", "), unit, rectAxes[axis].title, values[0], values[len(values)-1])
}

// steps judges every step of policies along an axis.
func (v *rectView) steps(axis, figure int, unit string, r rule, policies ...int) []Part {
	var parts []Part
	for _, p := range policies {
		c := v.curve(axis, p, figure)
		for i := 1; i < len(c); i++ {
			what := fmt.Sprintf("%s, %s, %s - %s", rectFigureNames[figure], rectPlacements[p].Name, place(axis, i), place(axis, i-1))
			parts = append(parts, part(what, unit, c[i].minus(c[i-1]), r))
		}
	}
	return parts
}

// rival returns the one of policies with the largest mean at a point, or the
// smallest.
func (v *rectView) rival(axis, i, figure int, largest bool, policies []int) int {
	best, at := policies[0], math.NaN()
	for _, p := range policies {
		e, _ := v.curve(axis, p, figure)[i].estimate()
		if e.Mean == nil {
			continue
		}
		if math.IsNaN(at) || largest == (*e.Mean > at) && *e.Mean != at {
			best, at = p, *e.Mean
		}
	}
	return best
}

// against judges a policy against another at a point of an axis.
func (v *rectView) against(axis, i, figure, p, other int, unit string, r rule) Part {
	what := fmt.Sprintf("%s, %s - %s, %s", rectFigureNames[figure], rectPlacements[p].Name, rectPlacements[other].Name, place(axis, i))
	return part(what, unit, v.curve(axis, p, figure)[i].minus(v.curve(axis, other, figure)[i]), r)
}

// alike judges two policies as nearly equal all along an axis.
func (v *rectView) alike(axis, figure, p, q int, unit string, by float64) []Part {
	var parts []Part
	for i := range rectAxes[axis].values {
		parts = append(parts, v.against(axis, i, figure, p, q, unit, smaller(by)))
	}
	return parts
}

// others returns the placements that are not among those given.
func others(policies ...int) []int {
	return slices.DeleteFunc(slices.Clone(rectEvery), func(p int) bool { return slices.Contains(policies, p) })
}

// rectClaims judges the data: the paper's claims on its own workload, those that
// a log can tell on the log, and what goes beyond the paper.
func rectClaims(d *rectData) []Claim {
	model := &rectView{d, 0, earlyCapped}
	claims := []Claim{
		claimSizes(model), claimBest(model), claimMiddle(model), claimGroups(model), claimApart(model), claimEarliest(model), claimSlower(model),
		claimPairs(model), claimPairsUnderLoad(model), claimPairsFlexible(model), claimLoad(model),
	}
	claims = append(claims, flexibilityClaims(model)...)
	claims = append(claims, claimFlexibleSlowdown(model))
	for w := range rectWorkloads {
		if !rectWorkloads[w].log {
			continue
		}
		v := &rectView{d, w, earlyCapped}
		for _, claim := range []func(*rectView) Claim{
			claimBest, claimMiddle, claimGroups, claimApart, claimEarliest, claimSlower, claimPairsUnderLoad, claimPairsFlexible, claimLoad,
			claimGrown, claimStraight, claimUnsteady, claimAlwaysBest, claimLead, claimFlexibleSlowdown,
		} {
			c := v.onLog(claim)
			c.ID += "-" + rectWorkloads[w].name
			c.Paper += " (on " + rectWorkloads[w].title + ")"
			c.Over = segments
			if c.Kind != Check {
				c.Kind = Own
			}
			if c.Figure != "" {
				c.Figure += "-" + rectWorkloads[w].name
			}
			claims = append(claims, c)
		}
	}
	return append(claims, claimWork(model), claimOdd(d), claimHorizon(d), claimBound(d))
}

// segments is what intervals on a log are over: they tell how much the log changes along its
// time, not what chance alone would make of it.
const segments = "successive segments of the log"

// onLog judges a claim on a log, or says why it cannot be.
func (v *rectView) onLog(claim func(*rectView) Claim) Claim {
	if v.there() {
		return claim(v)
	}
	words := claim(&rectView{v.d, 0, earlyCapped}) // for its id and what the paper says
	return Claim{
		ID: words.ID, Source: words.Source, Paper: words.Paper, Figure: "",
		Ours: fmt.Sprintf("no %s.swf.gz: give the folder of the log by --data", cm5.file),
	}
}

func claimSizes(v *rectView) Claim {
	return Claim{
		ID: "S1", Source: "section 6.2.1, Fig. 2", Figure: "fig2-acceptance",
		Paper: "acceptance falls with UMed for all policies",
		Ours:  v.course(byUMed, accepts, " %", rectFF, rectPEW, rectDuB),
		Parts: v.steps(byUMed, accepts, "points", below(), rectEvery...),
	}
}

// acceptanceFigure names the figure of acceptance that a claim about the
// workload can show.
func (v *rectView) acceptanceFigure() string { return figureName(v.axes()[0], accepts) }

// slowdownFigure is its like.
func (v *rectView) slowdownFigure() string { return figureName(v.axes()[0], slows) }

func figureName(axis, figure int) string {
	n := rectAxes[axis].first
	if figure == slows {
		n++
	}
	return fmt.Sprintf("fig%d-%s", n, rectFigureNames[figure])
}

func claimBest(v *rectView) Claim {
	c := Claim{
		ID: "S2", Source: "sections 6.2.1 and 6.2.2, Figs. 2 and 4", Figure: v.acceptanceFigure(),
		Paper: "PE_W and Du_B accept nearly the same, and most of all",
	}
	for _, axis := range v.loads() {
		c.Parts = append(c.Parts, v.alike(axis, accepts, rectPEW, rectDuB, "points", alikeAcceptance)...)
		for i := range rectAxes[axis].values {
			rival := v.rival(axis, i, accepts, true, others(rectPEW, rectDuB))
			c.Parts = append(
				c.Parts,
				v.against(axis, i, accepts, rectPEW, rival, "points", above()),
				v.against(axis, i, accepts, rectDuB, rival, "points", above()),
			)
		}
	}
	c.Ours = v.course(v.axes()[0], accepts, " %", rectPEW, rectDuB, rectArB, rectArW)
	return c
}

func claimMiddle(v *rectView) Claim {
	c := Claim{
		ID: "S3", Source: "sections 6.2.1 and 6.2.2, Figs. 2 and 4", Figure: v.acceptanceFigure(),
		Paper: "PEDu_B and PEDu_W accept almost the same, between the best two and FF",
	}
	for _, axis := range v.loads() {
		c.Parts = append(c.Parts, v.alike(axis, accepts, rectArB, rectArW, "points", alikeAcceptance)...)
		for i := range rectAxes[axis].values {
			lower := v.rival(axis, i, accepts, false, []int{rectPEW, rectDuB})
			for _, p := range []int{rectArB, rectArW} {
				c.Parts = append(
					c.Parts,
					v.against(axis, i, accepts, p, rectFF, "points", above()),
					v.against(axis, i, accepts, p, lower, "points", below()),
				)
			}
		}
	}
	c.Ours = v.course(v.axes()[0], accepts, " %", rectArB, rectArW)
	return c
}

func claimGroups(v *rectView) Claim {
	c := Claim{
		ID: "S4", Source: "sections 6.2.1 and 6.2.2, Figs. 2 and 4", Figure: v.acceptanceFigure(),
		Paper: "PE_B and Du_W accept nearly the same and no more than FF; the other four accept more than FF",
	}
	for _, axis := range v.loads() {
		c.Parts = append(c.Parts, v.alike(axis, accepts, rectPEB, rectDuW, "points", alikeAcceptance)...)
		for i := range rectAxes[axis].values {
			for _, p := range []int{rectPEB, rectDuW} {
				c.Parts = append(c.Parts, v.against(axis, i, accepts, rectFF, p, "points", notBelow(alikeAcceptance/4.0)))
			}
			rival := v.rival(axis, i, accepts, false, []int{rectPEW, rectDuB, rectArB, rectArW})
			c.Parts = append(c.Parts, v.against(axis, i, accepts, rival, rectFF, "points", above()))
		}
	}
	c.Ours = v.course(v.axes()[0], accepts, " %", rectPEB, rectDuW, rectFF)
	return c
}

func claimEarliest(v *rectView) Claim {
	c := Claim{
		ID: "S5", Source: "section 6.2, Figs. 3, 5 and 7", Figure: v.slowdownFigure(),
		Paper: "FF has the lowest slowdown everywhere",
	}
	for _, axis := range v.axes() {
		c.Parts = append(c.Parts, v.lowest(axis)...)
	}
	c.Ours = v.course(v.axes()[0], slows, "", rectFF, rectPEB, rectPEW)
	return c
}

// lowest judges first-fit's slowdown against the lowest other, all along an
// axis.
func (v *rectView) lowest(axis int) []Part {
	var parts []Part
	for i := range rectAxes[axis].values {
		rival := v.rival(axis, i, slows, false, others(rectFF))
		parts = append(parts, v.against(axis, i, slows, rival, rectFF, "", above()))
	}
	return parts
}

func claimSlower(v *rectView) Claim {
	c := Claim{
		ID: "S6", Source: "sections 6.2.1 and 6.2.2, Figs. 3 and 5", Figure: v.slowdownFigure(),
		Paper: "the slowdown grows with the sizes of jobs and with the load",
	}
	var ours []string
	for _, axis := range v.loads() {
		c.Parts = append(c.Parts, v.steps(axis, slows, "", above(), rectEvery...)...)
		ours = append(ours, v.course(axis, slows, "", rectFF, rectPEW))
	}
	c.Ours = strings.Join(ours, "; ")
	return c
}

// claimApart is that of what the paper says is different.
func claimApart(v *rectView) Claim {
	c := Claim{
		ID: "S4b", Kind: Check, Source: "section 6.2.1, Fig. 2", Figure: v.acceptanceFigure(),
		Paper: "PE_B and PE_W, and Du_B and Du_W accept quite differently",
	}
	axis := v.axes()[0]
	var ours []string
	for _, pair := range [][2]int{{rectPEB, rectPEW}, {rectDuB, rectDuW}} {
		gap := v.gap(axis, accepts, pair[0], pair[1])
		names := rectPlacements[pair[0]].Name + " and " + rectPlacements[pair[1]].Name
		c.Parts = append(c.Parts, part(fmt.Sprintf("mean gap in acceptance, %s - %d", names, alikeAcceptance), "points", gap.plus(-alikeAcceptance), above()))
		ours = append(ours, fmt.Sprintf("%s %s points", names, gap))
	}
	c.Ours = "mean gap of " + strings.Join(ours, ", of ")
	return c
}

// gap returns how far two policies are apart, the mean along an axis.
func (v *rectView) gap(axis, figure, p, q int) sample {
	var gaps []sample
	for i := range rectAxes[axis].values {
		gaps = append(gaps, v.curve(axis, p, figure)[i].minus(v.curve(axis, q, figure)[i]).size())
	}
	return meanOf(gaps)
}

func claimPairs(v *rectView) Claim {
	return v.pairs("S7", "section 6.2.1, Fig. 3", byUMed)
}

func claimPairsUnderLoad(v *rectView) Claim {
	return v.pairs("S7b", "section 6.2.2, Fig. 5, relatively as in Fig. 3", byArrivals)
}

func claimPairsFlexible(v *rectView) Claim {
	return v.pairs("S7c", "section 6.2.3, Fig. 7, relatively as before", byFlexibility)
}

// pairs judges which policies have the same slowdown along an axis.
func (v *rectView) pairs(id, source string, axis int) Claim {
	c := Claim{
		ID: id, Source: source, Figure: figureName(axis, slows),
		Paper: "PE_W and Du_B have nearly the same slowdown, and so have PE_B and Du_W; PEDu_B and PEDu_W differ, along the " + rectAxes[axis].title,
	}
	c.Parts = append(v.alike(axis, slows, rectPEW, rectDuB, "", alikeSlowdown), v.alike(axis, slows, rectPEB, rectDuW, "", alikeSlowdown)...)
	area, wide, narrow := v.gap(axis, slows, rectArB, rectArW), v.gap(axis, slows, rectPEW, rectDuB), v.gap(axis, slows, rectPEB, rectDuW)
	c.Parts = append(
		c.Parts,
		part("mean gap in slowdown, PEDu_B and PEDu_W - PE_W and Du_B", "", area.minus(wide), above()),
		part("mean gap in slowdown, PEDu_B and PEDu_W - PE_B and Du_W", "", area.minus(narrow), above()),
	)
	c.Ours = fmt.Sprintf("mean gap of PEDu_B and PEDu_W %s, of PE_W and Du_B %s, of PE_B and Du_W %s", middle(area), middle(wide), middle(narrow))
	return c
}

func claimLoad(v *rectView) Claim {
	return Claim{
		ID: "S8", Source: "section 6.2.2, Fig. 4", Figure: figureName(byArrivals, accepts),
		Paper: "acceptance falls with the arrival factor for all policies",
		Ours:  v.course(byArrivals, accepts, " %", rectFF, rectPEW, rectDuB),
		Parts: v.steps(byArrivals, accepts, "points", below(), rectEvery...),
	}
}

// The policies whose acceptance grows steadily with the flexibility, and the others.
var (
	rectSteady   = []int{rectPEW, rectDuB, rectArB}
	rectUnsteady = others(rectPEW, rectDuB, rectArB)
)

const flexibilitySource = "section 6.2.3, Fig. 6"

// flexibilityClaims are the statements about Figure 6, each by itself.
func flexibilityClaims(v *rectView) []Claim {
	return []Claim{claimGrown(v), claimStraight(v), claimUnsteady(v), claimAlwaysBest(v), claimLead(v)}
}

func (v *rectView) flexible(p int) []sample { return v.curve(byFlexibility, p, accepts) }

func claimGrown(v *rectView) Claim {
	c := Claim{
		ID: "S9", Kind: Check, Source: flexibilitySource, Figure: figureName(byFlexibility, accepts),
		Paper: "acceptance of PE_W, Du_B and PEDu_B grows with {k,k}",
		Ours:  v.course(byFlexibility, accepts, " %", rectSteady...),
	}
	for _, p := range rectSteady {
		c.Parts = append(c.Parts, part("acceptance, "+rectPlacements[p].Name+", k 5 - k 1", "points", grown(v.flexible(p)), above()))
	}
	return c
}

func claimStraight(v *rectView) Claim {
	c := Claim{
		ID: "S9b", Source: flexibilitySource, Figure: figureName(byFlexibility, accepts),
		Paper: "acceptance of PE_W, Du_B and PEDu_B grows almost linearly with {k,k}",
	}
	var ours []string
	for _, p := range rectSteady {
		r2 := straightness(v.flexible(p))
		c.Parts = append(c.Parts, part(fmt.Sprintf("linearity of %s, R² of the mean curve - %g", rectPlacements[p].Name, nearlyLinear), "", r2.plus(-nearlyLinear), above()))
		ours = append(ours, fmt.Sprintf("%s %s", rectPlacements[p].Name, middle(r2)))
	}
	c.Ours = "R² of a straight line through the mean curve: " + strings.Join(ours, ", ")
	return c
}

func claimUnsteady(v *rectView) Claim {
	c := Claim{
		ID: "S9c", Source: flexibilitySource, Figure: figureName(byFlexibility, accepts),
		Paper: "what the other four gain with {k,k} is not steady: a straight line tells less of it",
	}
	var lines, bends []sample
	for _, p := range rectSteady {
		lines = append(lines, straightness(v.flexible(p)))
	}
	for _, p := range rectUnsteady {
		bends = append(bends, straightness(v.flexible(p)))
	}
	c.Parts = []Part{part("mean linearity of PE_W, Du_B and PEDu_B - of the other four", "", meanOf(lines).minus(meanOf(bends)), above())}
	c.Ours = fmt.Sprintf("mean R² %s against %s", middle(meanOf(lines)), middle(meanOf(bends)))
	return c
}

func claimAlwaysBest(v *rectView) Claim {
	c := Claim{
		ID: "S9d", Source: flexibilitySource, Figure: figureName(byFlexibility, accepts),
		Paper: "PE_W accepts most, at every {k,k} but perhaps the smallest, where it is not far from Du_B yet",
		Ours:  v.course(byFlexibility, accepts, " %", rectPEW, rectDuB, rectFF),
	}
	for i := range rectAxes[byFlexibility].values {
		among := others(rectPEW)
		if i == 0 {
			among = others(rectPEW, rectDuB)
		}
		rival := v.rival(byFlexibility, i, accepts, true, among)
		c.Parts = append(c.Parts, v.against(byFlexibility, i, accepts, rectPEW, rival, "points", above()))
	}
	return c
}

func claimLead(v *rectView) Claim {
	last := len(rectAxes[byFlexibility].values) - 1
	lead := func(i int) sample { return v.flexible(rectPEW)[i].minus(v.flexible(rectDuB)[i]) }
	return Claim{
		ID: "S9e", Source: flexibilitySource, Figure: figureName(byFlexibility, accepts),
		Paper: "the more flexible the requests, the further PE_W is ahead of Du_B",
		Ours:  fmt.Sprintf("PE_W - Du_B: %s points at k 1, %s at k 5", lead(0), lead(last)),
		Parts: []Part{part("PE_W's lead over Du_B, k 5 - k 1", "points", lead(last).minus(lead(0)), above())},
	}
}

// straightness returns how much of the variance of a mean curve over the flexibilities a
// straight line explains (the coefficient of determination), as jackknife pseudo-values over
// the repetitions: their mean is the figure, less its bias, and their interval that of it
// (Quenouille, Tukey). In a single repetition it is the figure itself.
func straightness(by []sample) sample {
	n := len(by[0])
	without := func(r int) float64 { // the figure of all repetitions but r
		means := make([]float64, len(by))
		for i, s := range by {
			var sum float64
			kept := 0
			for k, x := range s {
				if k != r {
					sum += x
					kept++
				}
			}
			means[i] = sum / float64(kept)
		}
		return determination(rectAxes[byFlexibility].values, means)
	}
	all := without(-1)
	if n == 1 {
		return sample{all}
	}
	pseudo := make(sample, n)
	for r := range pseudo {
		pseudo[r] = float64(float64(n)*all) - float64(float64(n-1)*without(r))
	}
	return pseudo
}

// determination returns the coefficient of determination of a straight line through points,
// 1 if all are equal.
func determination(xs, ys []float64) float64 {
	var mx, my, sxx, sxy, syy float64
	for i, x := range xs {
		mx += x / float64(len(xs))
		my += ys[i] / float64(len(xs))
	}
	for i, x := range xs {
		dx, dy := x-mx, ys[i]-my
		sxx += float64(dx * dx)
		sxy += float64(dx * dy)
		syy += float64(dy * dy)
	}
	if syy == 0 {
		return 1
	}
	return float64(sxy*sxy) / float64(sxx*syy)
}

func claimFlexibleSlowdown(v *rectView) Claim {
	return Claim{
		ID: "S10", Source: "section 6.2.3, Fig. 7", Figure: figureName(byFlexibility, slows),
		Paper: "the slowdown grows with {k,k} for all policies; FF's is the lowest",
		Ours:  v.course(byFlexibility, slows, "", rectFF, rectPEB, rectPEW),
		Parts: append(v.steps(byFlexibility, slows, "", above(), rectEvery...), v.lowest(byFlexibility)...),
	}
}

// claimWork asks what counting requests hides.
func claimWork(v *rectView) Claim {
	c := Claim{
		ID: "B1", Kind: Own, Source: "beyond the paper (spec 1, d)", Figure: "fig2-work",
		Paper: "those that accept the most requests accept the least work",
	}
	for i := range rectAxes[byUMed].values {
		for _, p := range []int{rectPEW, rectDuB} {
			c.Parts = append(
				c.Parts,
				v.against(byUMed, i, accepts, p, rectFF, "points", above()),
				v.against(byUMed, i, works, p, rectFF, "points", below()),
			)
		}
	}
	c.Ours = v.course(byUMed, works, " % of the PE-seconds", rectFF, rectPEW, rectDuB)
	return c
}

// lateGains returns what each policy gains by late binding at a place of the
// sweep over UMed.
func (d *rectData) lateGains(workload, figure, i int) []sample {
	var gains []sample
	for _, p := range rectEvery {
		gains = append(gains, d.curve(workload, byUMed, lateCapped, p, figure)[i].minus(d.curve(workload, byUMed, earlyCapped, p, figure)[i]))
	}
	return gains
}

// claimOdd asks where early binding hurts.
func claimOdd(d *rectData) Claim {
	gain := func(workload int, figure int) (sample, []Part) {
		var gains []sample
		var parts []Part
		for i := range rectAxes[byUMed].values {
			gains = append(gains, d.lateGains(workload, figure, i)...)
		}
		mean := meanOf(gains)
		parts = append(parts, part(fmt.Sprintf("%s, late - early binding, mean over policies and UMed, %s", rectFigureNames[figure], rectWorkloads[workload].title), "points", mean, above()))
		return mean, parts
	}
	powers, _ := gain(0, accepts)
	odd, parts := gain(1, accepts)
	work, more := gain(1, works)
	parts = append(parts, more...)
	parts = append(parts, part("acceptance gained by late binding, odd sizes - powers of two", "points", odd.minus(powers), above()))
	return Claim{
		ID: "B2", Kind: Own, Source: "beyond the paper", Figure: "late-gain", Parts: parts,
		Paper: "with odd sizes early binding fragments the machine, and late binding accepts more",
		Ours: fmt.Sprintf("late - early binding: %s points of acceptance with odd sizes, %s with powers of two; %s points of work with odd sizes",
			odd, powers, work),
	}
}

// claimHorizon asks for what the paper leaves undefined.
func claimHorizon(d *rectData) Claim {
	capped, unbounded := &rectView{d, 0, earlyCapped}, &rectView{d, 0, earlyUnbounded}
	c := Claim{
		ID: "B3", Kind: Own, Source: "beyond the paper (spec 1, b.5)", Figure: "fig2-acceptance-unbounded",
		Paper: "without a horizon Du_B and PEDu_B lose their lead over FF",
	}
	var ours []string
	for _, p := range []int{rectDuB, rectArB} {
		var with, without []sample
		for i := range rectAxes[byUMed].values {
			with = append(with, capped.curve(byUMed, p, accepts)[i].minus(capped.curve(byUMed, rectFF, accepts)[i]))
			without = append(without, unbounded.curve(byUMed, p, accepts)[i].minus(unbounded.curve(byUMed, rectFF, accepts)[i]))
		}
		name := rectPlacements[p].Name
		c.Parts = append(
			c.Parts,
			part("acceptance, "+name+" - first-fit, capped, mean over UMed", "points", meanOf(with), above()),
			part("acceptance, "+name+" - first-fit, unbounded, mean over UMed", "points", meanOf(without), smaller(1)),
		)
		ours = append(ours, fmt.Sprintf("%s - first-fit: %s points with the capped horizon, %s without", name, meanOf(with), meanOf(without)))
	}
	c.Ours = strings.Join(ours, "; ")
	return c
}

// claimBound says how far from the best possible the best policy is.
func claimBound(d *rectData) Claim {
	c := Claim{
		ID: "B4", Kind: Check, Source: "beyond the paper", Figure: "fig2-acceptance",
		Paper: "no policy exceeds the bound on what any could accept",
	}
	v := &rectView{d, 0, earlyCapped}
	bounds := d.bounds(0, byUMed, accepts)
	var gaps []string
	for i, x := range rectAxes[byUMed].values {
		best := v.rival(byUMed, i, accepts, true, rectEvery)
		gap := bounds[i].minus(v.curve(byUMed, best, accepts)[i])
		gaps = append(gaps, fmt.Sprintf("%s at UMed %g", middle(gap), x))
	}
	within, all := 0, 0
	for _, point := range d.points {
		for v := range point.figures {
			for p := range point.figures[v] {
				for _, figure := range []int{accepts, works} {
					for r, x := range point.figures[v][p][figure] {
						if all++; x <= point.bound[figure][r] {
							within++
						}
					}
				}
			}
		}
	}
	c.Parts = []Part{counted("runs, by acceptance and by work, that stay within the bound", "runs", within, all, all, all)}
	c.Ours = "the best policy is below it by " + strings.Join(gaps, ", ") + " points"
	return c
}

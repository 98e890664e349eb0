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
	return slices.IndexFunc(policy.Placements, func(p policy.NamedPlacement) bool { return p.Name == name })
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
		words = append(words, fmt.Sprintf("%s %s to %s", policy.Placements[p].Name, middle(c[0]), middle(c[len(c)-1])))
	}
	return fmt.Sprintf("%s%s for %s %g to %g", strings.Join(words, ", "), unit, rectAxes[axis].title, values[0], values[len(values)-1])
}

// steps judges every step of policies along an axis.
func (v *rectView) steps(axis, figure int, unit string, r rule, policies ...int) []Part {
	var parts []Part
	for _, p := range policies {
		c := v.curve(axis, p, figure)
		for i := 1; i < len(c); i++ {
			what := fmt.Sprintf("%s, %s, %s - %s", rectFigureNames[figure], policy.Placements[p].Name, place(axis, i), place(axis, i-1))
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
	what := fmt.Sprintf("%s, %s - %s, %s", rectFigureNames[figure], policy.Placements[p].Name, policy.Placements[other].Name, place(axis, i))
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
		claimSizes(model), claimBest(model), claimMiddle(model), claimGroups(model), claimEarliest(model), claimSlower(model),
		claimPairs(model), claimLoad(model), claimFlexibility(model), claimFlexibleSlowdown(model),
	}
	for w := range rectWorkloads {
		if !rectWorkloads[w].log {
			continue
		}
		v := &rectView{d, w, earlyCapped}
		for _, claim := range []func(*rectView) Claim{
			claimBest, claimMiddle, claimGroups, claimEarliest, claimSlower, claimPairs, claimLoad, claimFlexibility, claimFlexibleSlowdown,
		} {
			c := v.onLog(claim)
			c.ID += "-" + rectWorkloads[w].name
			c.Paper += " (on " + rectWorkloads[w].title + ")"
			if c.Figure != "" {
				c.Figure += "-" + rectWorkloads[w].name
			}
			claims = append(claims, c)
		}
	}
	return append(claims, claimWork(model), claimOdd(d), claimHorizon(d), claimBound(d))
}

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
		ID: "S1", Source: "section 5.2, Fig. 2", Figure: "fig2-acceptance",
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
		ID: "S2", Source: "section 5.2, Figs. 2 and 4", Figure: v.acceptanceFigure(),
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
		ID: "S3", Source: "section 5.2, Figs. 2 and 4", Figure: v.acceptanceFigure(),
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
		ID: "S4", Source: "section 5.2, Figs. 2 and 4", Figure: v.acceptanceFigure(),
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
		ID: "S5", Source: "section 5.2, Figs. 3, 5 and 7", Figure: v.slowdownFigure(),
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
		ID: "S6", Source: "section 5.2, Figs. 3 and 5", Figure: v.slowdownFigure(),
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

func claimPairs(v *rectView) Claim {
	c := Claim{
		ID: "S7", Source: "section 5.2, Fig. 3", Figure: v.slowdownFigure(),
		Paper: "PE_W and Du_B have nearly the same slowdown, and so have PE_B and Du_W; PEDu_B and PEDu_W differ",
	}
	axis := v.axes()[0]
	gap := func(p, q int) sample {
		var gaps []sample
		for i := range rectAxes[axis].values {
			gaps = append(gaps, v.curve(axis, p, slows)[i].minus(v.curve(axis, q, slows)[i]).size())
		}
		return meanOf(gaps)
	}
	c.Parts = append(v.alike(axis, slows, rectPEW, rectDuB, "", alikeSlowdown), v.alike(axis, slows, rectPEB, rectDuW, "", alikeSlowdown)...)
	area, wide, narrow := gap(rectArB, rectArW), gap(rectPEW, rectDuB), gap(rectPEB, rectDuW)
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
		ID: "S8", Source: "section 5.3, Fig. 4", Figure: figureName(byArrivals, accepts),
		Paper: "acceptance falls with the arrival factor for all policies",
		Ours:  v.course(byArrivals, accepts, " %", rectFF, rectPEW, rectDuB),
		Parts: v.steps(byArrivals, accepts, "points", below(), rectEvery...),
	}
}

func claimFlexibility(v *rectView) Claim {
	c := Claim{
		ID: "S9", Source: "section 5.4, Fig. 6", Figure: figureName(byFlexibility, accepts),
		Paper: "acceptance of PE_W, Du_B and PEDu_B grows almost linearly with {k,k}; PE_W is best, further ahead of Du_B as k grows; the others are unsteady",
	}
	last := len(rectAxes[byFlexibility].values) - 1
	straight := func(p int) sample {
		return straightness(rectAxes[byFlexibility].values, v.curve(byFlexibility, p, accepts))
	}
	steady, unsteady := []int{rectPEW, rectDuB, rectArB}, others(rectPEW, rectDuB, rectArB)
	var lines, bends []sample
	for _, p := range steady {
		name := policy.Placements[p].Name
		c.Parts = append(
			c.Parts,
			part("acceptance, "+name+", k 5 - k 1", "points", grown(v.curve(byFlexibility, p, accepts)), above()),
			part("linearity of "+name+", R² - 0.9", "", straight(p).plus(-nearlyLinear), above()),
		)
		lines = append(lines, straight(p))
	}
	for _, p := range unsteady {
		bends = append(bends, straight(p))
	}
	for i := range rectAxes[byFlexibility].values {
		rival := v.rival(byFlexibility, i, accepts, true, others(rectPEW))
		c.Parts = append(c.Parts, v.against(byFlexibility, i, accepts, rectPEW, rival, "points", above()))
	}
	lead := func(i int) sample {
		return v.curve(byFlexibility, rectPEW, accepts)[i].minus(v.curve(byFlexibility, rectDuB, accepts)[i])
	}
	c.Parts = append(
		c.Parts,
		part("PE_W's lead over Du_B, k 5 - k 1", "points", lead(last).minus(lead(0)), above()),
		part("mean linearity of PE_W, Du_B and PEDu_B - of the other four", "", meanOf(lines).minus(meanOf(bends)), above()),
	)
	c.Ours = fmt.Sprintf("%s; mean R² %s against %s", v.course(byFlexibility, accepts, " %", rectPEW, rectDuB, rectFF), middle(meanOf(lines)), middle(meanOf(bends)))
	return c
}

// straightness returns, repetition by repetition, the coefficient of
// determination of a straight line through the points, 1 if all are equal.
func straightness(xs []float64, by []sample) sample {
	r2 := make(sample, len(by[0]))
	for r := range r2 {
		var mx, my, sxx, sxy, syy float64
		for i, x := range xs {
			mx += x / float64(len(xs))
			my += by[i][r] / float64(len(xs))
		}
		for i, x := range xs {
			dx, dy := x-mx, by[i][r]-my
			sxx += float64(dx * dx)
			sxy += float64(dx * dy)
			syy += float64(dy * dy)
		}
		if r2[r] = 1; syy > 0 {
			r2[r] = float64(sxy*sxy) / float64(sxx*syy)
		}
	}
	return r2
}

func claimFlexibleSlowdown(v *rectView) Claim {
	return Claim{
		ID: "S10", Source: "section 5.4, Fig. 7", Figure: figureName(byFlexibility, slows),
		Paper: "the slowdown grows with {k,k} for all policies; FF's is the lowest",
		Ours:  v.course(byFlexibility, slows, "", rectFF, rectPEB, rectPEW),
		Parts: append(v.steps(byFlexibility, slows, "", above(), rectEvery...), v.lowest(byFlexibility)...),
	}
}

// claimWork asks what counting requests hides.
func claimWork(v *rectView) Claim {
	c := Claim{
		ID: "B1", Source: "beyond the paper (spec 1, d)", Figure: "fig2-work",
		Paper: "not in the paper: those that accept the most requests accept the least work",
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
		ID: "B2", Source: "beyond the paper", Figure: "late-gain", Parts: parts,
		Paper: "not in the paper: with odd sizes early binding fragments the machine, and late binding accepts more",
		Ours: fmt.Sprintf("late - early binding: %s points of acceptance with odd sizes, %s with powers of two; %s points of work with odd sizes",
			odd, powers, work),
	}
}

// claimHorizon asks for what the paper leaves undefined.
func claimHorizon(d *rectData) Claim {
	capped, unbounded := &rectView{d, 0, earlyCapped}, &rectView{d, 0, earlyUnbounded}
	c := Claim{
		ID: "B3", Source: "beyond the paper (spec 1, b.5)", Figure: "fig2-acceptance-unbounded",
		Paper: "not in the paper: without a horizon Du_B and PEDu_B lose their lead over FF",
	}
	var ours []string
	for _, p := range []int{rectDuB, rectArB} {
		var with, without []sample
		for i := range rectAxes[byUMed].values {
			with = append(with, capped.curve(byUMed, p, accepts)[i].minus(capped.curve(byUMed, rectFF, accepts)[i]))
			without = append(without, unbounded.curve(byUMed, p, accepts)[i].minus(unbounded.curve(byUMed, rectFF, accepts)[i]))
		}
		name := policy.Placements[p].Name
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
		ID: "B4", Source: "beyond the paper", Figure: "fig2-acceptance",
		Paper: "not in the paper: no policy exceeds the bound on what any could accept",
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

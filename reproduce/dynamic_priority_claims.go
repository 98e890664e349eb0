package reproduce

import "fmt"

// gridClaims judges the data: the paper's claims in the first reading, and in the others for
// what turns on it.
func gridClaims(d gridData) []Claim {
	first := d[0]
	claims := []Claim{
		claimWaiting(first), claimOffset(first), claimMoved(first), claimRejections(first), claimGridUtilization(first),
		claimShortest(first), claimPriorityAlone(first), claimImportant(first),
	}
	for k, rows := range d[1:] {
		reading := &gridReadings[k+1]
		for _, claim := range []func(gridRowsOf) Claim{claimWaiting, claimOffset, claimRejections, claimGridUtilization} {
			c := claim(rows)
			c.ID += "-" + reading.name
			c.Paper += " (" + reading.title + ")"
			c.Figure = ""
			if c.Kind != Check {
				c.Kind = Own
			}
			if c.ID == "W1-"+reading.name {
				c.Figure = "fig4-waiting-" + reading.name
			}
			claims = append(claims, c)
		}
	}
	return claims
}

// startsRevised says which reading was changed after verdicts had been seen.
const startsRevised = "wanted starts lie in 8 h instead of 4, and resources are chosen at random as the paper says instead of by the earliest start; the other readings are judged beside it"

// row returns one figure of an order, by share of reserved gridlets.
func row(rows []gridMeans, of func(*gridMeans) sample) []sample {
	samples := make([]sample, len(rows))
	for i := range rows {
		samples[i] = of(&rows[i])
	}
	return samples
}

func waitingOf(m *gridMeans) sample     { return m.waiting }
func offsetOf(m *gridMeans) sample      { return m.offset }
func movedOf(m *gridMeans) sample       { return m.moved }
func rejectionsOf(m *gridMeans) sample  { return m.rejections }
func utilizationOf(m *gridMeans) sample { return m.utilization }

// pair is one figure of the two orders that the paper compares.
type pair struct{ dpsar, arwp []sample }

func pairOf(rows gridRowsOf, of func(*gridMeans) sample) pair {
	return pair{row(rows["dpsar"], of), row(rows["arwp"], of)}
}

// named are the two with their names.
func (p *pair) named() []struct {
	name string
	by   []sample
} {
	return []struct {
		name string
		by   []sample
	}{{"DPSAR", p.dpsar}, {"ARWP", p.arwp}}
}

// lead returns DPSAR − ARWP, averaged over the shares from the given one on.
func (p *pair) lead(from int) sample {
	var all []sample
	for i := from; i < len(p.dpsar); i++ {
		all = append(all, p.dpsar[i].minus(p.arwp[i]))
	}
	return meanOf(all)
}

// grown returns the last minus the first.
func grown(by []sample) sample { return by[len(by)-1].minus(by[0]) }

// course writes the first and the last mean of both orders.
func (p *pair) course(unit string) string {
	last := len(p.dpsar) - 1
	return fmt.Sprintf("DPSAR %s to %s, ARWP %s to %s%s for 0 to %d %% reserved",
		middle(p.dpsar[0]), middle(p.dpsar[last]), middle(p.arwp[0]), middle(p.arwp[last]), unit, reservedShares[last])
}

// middle writes the mean alone.
func middle(s sample) string {
	e, _ := s.estimate()
	if e.Mean == nil {
		return "nothing"
	}
	return short(*e.Mean)
}

func claimWaiting(rows gridRowsOf) Claim {
	p := pairOf(rows, waitingOf)
	c := Claim{
		ID: "W1", Figure: "fig4-waiting", Revised: startsRevised,
		Source: "Fig. 4 and its text",
		Paper:  "waiting grows with the reserved share, most from 0 to 10 %; it is less under DPSAR, and grows less",
	}
	for _, o := range p.named() {
		first, second := o.by[1].minus(o.by[0]), o.by[2].minus(o.by[1])
		c.Parts = append(
			c.Parts,
			part("waiting, "+o.name+", 10 % - 0 % reserved", "s", first, above()),
			part("waiting, "+o.name+", 30 % - 0 % reserved", "s", grown(o.by), above()),
			part("waiting, "+o.name+", rise from 0 to 10 % - rise from 10 to 20 %", "s", first.minus(second), above()),
		)
	}
	lead := p.lead(0)
	c.Parts = append(
		c.Parts,
		part("waiting, DPSAR - ARWP, mean over the shares", "s", lead, below()),
		part("waiting, DPSAR's change from 0 to 30 % - ARWP's", "s", grown(p.dpsar).minus(grown(p.arwp)), below()),
	)
	c.Ours = fmt.Sprintf("%s; DPSAR - ARWP %s s", p.course(" s"), lead)
	return c
}

func claimOffset(d gridRowsOf) Claim {
	c := offsetClaim(pairOf(d, offsetOf))
	c.ID, c.Figure, c.Revised = "W2", "fig5-offset", startsRevised
	return c
}

// claimMoved is W2 under another rule for overruns.
func claimMoved(d gridRowsOf) Claim {
	c := offsetClaim(pairOf(d, movedOf))
	c.ID, c.Kind, c.Figure = "W2b", Own, "fig5b-offset-moved"
	c.Paper += " (promises that an overrun is in the way of move instead of waiting)"
	return c
}

func offsetClaim(p pair) Claim {
	c := Claim{
		Source: "Fig. 5 and its text",
		Paper:  "the offset of actual from promised starts falls with the reserved share, and is less under DPSAR",
	}
	for _, o := range p.named() {
		c.Parts = append(c.Parts, part("offset, "+o.name+", 30 % - 0 % reserved", "s", grown(o.by), below()))
	}
	lead := p.lead(0)
	c.Parts = append(c.Parts, part("offset, DPSAR - ARWP, mean over the shares", "s", lead, below()))
	c.Ours = fmt.Sprintf("%s; DPSAR - ARWP %s s", p.course(" s"), lead)
	return c
}

func claimRejections(d gridRowsOf) Claim {
	p := pairOf(d, rejectionsOf)
	c := Claim{
		ID: "W3", Revised: startsRevised, Source: "Fig. 6 and its text", Figure: "fig6-rejections",
		Paper: "rejections grow with the reserved share, and are fewer under DPSAR",
	}
	for _, o := range p.named() {
		for i := 1; i < len(o.by); i++ {
			what := fmt.Sprintf("rejections, %s, %d %% - %d %% reserved", o.name, reservedShares[i], reservedShares[i-1])
			c.Parts = append(c.Parts, part(what, "gridlets", o.by[i].minus(o.by[i-1]), above()))
		}
	}
	lead := p.lead(1) // without reserved gridlets nothing is rejected
	c.Parts = append(c.Parts, part("rejections, DPSAR - ARWP, mean over the shares from 10 %", "gridlets", lead, below()))
	c.Ours = fmt.Sprintf("%s; DPSAR - ARWP %s gridlets", p.course(""), lead)
	return c
}

// par is what "almost at par" means for utilisation, in points.
const par = 1

func claimGridUtilization(d gridRowsOf) Claim {
	p := pairOf(d, utilizationOf)
	c := Claim{
		ID: "W4", Kind: Check, Revised: startsRevised, Source: "Fig. 7, its text and the conclusion", Figure: "fig7-utilisation",
		Paper: "utilisation falls with the reserved share; DPSAR's is no less than ARWP's, almost at par",
	}
	for _, o := range p.named() {
		c.Parts = append(c.Parts, part("utilisation, "+o.name+", 30 % - 0 % reserved", "points", grown(o.by), below()))
	}
	lead := p.lead(0)
	c.Parts = append(
		c.Parts,
		part("utilisation, DPSAR - ARWP, mean over the shares", "points", lead, notBelow(par)),
		part("utilisation, DPSAR - ARWP, mean over the shares: almost at par", "points", lead, smaller(par)),
	)
	c.Ours = fmt.Sprintf("%s; DPSAR - ARWP %s points", p.course(" %"), lead)
	return c
}

// claimShortest is an ablation: what is DPSAR's gain, if it has one?
func claimShortest(d gridRowsOf) Claim {
	waiting := pair{row(d["sjf"], waitingOf), row(d["dpsar"], waitingOf)}
	rejections := pair{row(d["sjf"], rejectionsOf), row(d["dpsar"], rejectionsOf)}
	shorter, fewer := waiting.lead(0), rejections.lead(1)
	return Claim{
		ID: "A1", Kind: Own, Source: "ablation (spec 3, d)", Figure: "fig4-waiting",
		Paper: "shortest first alone waits and rejects less than DPSAR",
		Ours:  fmt.Sprintf("shortest first - DPSAR: waiting %s s, rejections %s", shorter, fewer),
		Parts: []Part{
			part("waiting, shortest first alone - DPSAR, mean over the shares", "s", shorter, below()),
			part("rejections, shortest first alone - DPSAR, mean over the shares from 10 %", "gridlets", fewer, below()),
		},
	}
}

// The differences that priority alone may make, in percent of ARWP's waiting
// and rejections.
const (
	alikeWaiting    = 1
	alikeRejections = 5
)

// relative returns differences in percent of the mean of what they are of.
func relative(differences sample, of []sample) sample {
	e, _ := meanOf(of).estimate()
	if e.Mean == nil || *e.Mean == 0 {
		return nil
	}
	return differences.times(100 / *e.Mean)
}

// claimPriorityAlone is the other ablation.
func claimPriorityAlone(d gridRowsOf) Claim {
	waiting := pair{row(d["priority"], waitingOf), row(d["arwp"], waitingOf)}
	rejections := pair{row(d["priority"], rejectionsOf), row(d["arwp"], rejectionsOf)}
	longer, more := relative(waiting.lead(0), waiting.arwp), relative(rejections.lead(1), rejections.arwp[1:])
	return Claim{
		ID: "A2", Kind: Own, Source: "ablation (spec 3, d)", Figure: "fig4-waiting",
		Paper: "priority alone gains nothing on average over ARWP",
		Ours:  fmt.Sprintf("priority - ARWP: waiting %s %%, rejections %s %%", longer, more),
		Parts: []Part{
			part("waiting, priority alone - ARWP, mean over the shares, of ARWP's", "%", longer, smaller(alikeWaiting)),
			part("rejections, priority alone - ARWP, mean over the shares from 10 %, of ARWP's", "%", more, smaller(alikeRejections)),
		},
	}
}

// claimImportant asks for what DPSAR is for.
func claimImportant(d gridRowsOf) Claim {
	gap := func(m *gridMeans) sample { return m.important.minus(m.unimportant) }
	p := pairOf(d, gap)
	dpsar, arwp := meanOf(p.dpsar), meanOf(p.arwp)
	return Claim{
		ID: "A3", Kind: Own, Source: "Fig. 5's text: \"preferential jobs\"", Figure: "waiting-by-importance",
		Paper: "DPSAR favours the gridlets of important users",
		Ours:  fmt.Sprintf("waiting of the three highest priorities - the three lowest: DPSAR %s s, ARWP %s s", dpsar, arwp),
		Parts: []Part{
			part("waiting, highest - lowest priorities, DPSAR", "s", dpsar, below()),
			part("the same, DPSAR - ARWP", "s", dpsar.minus(arwp), below()),
		},
	}
}

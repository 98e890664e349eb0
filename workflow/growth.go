package workflow

import (
	"math"
	"slices"

	"github.com/berth-hpc/berth"
)

// growth is phase 1 of CPA: all tasks begin with the fewest PEs they run on, mostly one, and step by step one
// task of the critical path gets one more, until the critical path is no longer
// than the average area. It works on the first n tasks of an order in which
// parents come before their children.
//
// Source: Radulescu and van Gemund, "A low-cost approach towards mixed task and
// data parallel scheduling", ICPP 2001, with the stopping rule of Epsilon, as
// specified in spec 2, b.2. The steps do not depend on the stopping rule, so one
// growth serves every number of PEs that no task has reached, and the growth of
// the first n−1 tasks begins like that of the first n (see drop). Values are
// those of the plain form, bit for bit: bottom levels are computed as there, but
// only where they can matter (see settle), and the sum of the areas, which would
// round differently when kept up to date, decides only where it is clear.
//
// Cost: O(n + e) to begin; a step O(length of the critical path + tasks whose
// bottom level is computed anew and their edges); a stop test O(1), rarely O(n).
type growth struct {
	w     *Workflow
	curve []curve
	limit berth.Count // no task grows beyond
	fine  berth.Count // a task with as many PEs grows by more than one at a time, see more; 0 is never
	rule  rule

	stopped func() bool // if given, asked before each new step: whether to end before the stopping rule says so

	order    []int32
	n        int       // how many of the order take part
	children [][]int32 // of each task, those that take part; of root, those without parents
	likely   []int32   // see node
	root     int32     // a task of no time before all others, beside the n real ones

	// What has happened: step s let chosen[s] grow, when the critical path was
	// path[s] long, and made the area larger by grown[s]. area[s] is the sum of
	// the areas before the step, up to rounding. firstOn is the first step whose
	// critical path had the task.
	chosen     []int32
	path, area []float64
	grown      []float64
	firstOn    []int32
	saturated  bool

	// What follows from it, unless stale.
	stale bool
	level []int64 // the bottom levels of the tasks, see bits; no less than that of those not settled
	nodes []node
	sizes []size
	gain  []int64 // bits of what one more PE is worth by the rule, 0 at the limit
	way   []int32 // the critical path, from root on
	pile  []int32

	// With MCPA, the depth of each task and the PEs allotted in each depth.
	depth, width []int32
}

// node is what is known of a task after all steps.
type node struct {
	time    float64
	rival   int64 // no child but next has a higher bottom level
	next    int32 // the child on the longest way down, -1 at the end
	settled bool

	// The likely children are those that next is mostly among: few of them, from likely[from] on, in the order
	// of children. The bottom levels of the others are at most beyond. A child is likely if its level is less
	// than span (see bits) below the highest.
	few, from    int32
	beyond, span int64

	// The settled tasks that have this one as next are a list: first is one of them, after is what follows this
	// one in the list of its own next, -1 if there is none.
	first, after int32
}

// size is a task with its PEs.
type size struct {
	npe   berth.Count
	after float64 // the time on one PE more
	per   float64 // after over the PEs it takes
}

// Where a task has more than manyLikely likely children, fewer are next time; where it has less than fewLikely, more. A span
// is between 1 and mostSpan, and first is firstSpan, 128 s of levels of some days.
const (
	fewLikely, manyLikely = 4, 12
	firstSpan, mostSpan   = 1 << 40, 1 << 50
)

// never is a step that no growth reaches.
const never = math.MaxInt32

// newGrowth prepares the growth of all tasks of an order, none beyond limit.
func newGrowth(w *Workflow, curves []curve, order []int32, limit berth.Count, rule rule) *growth {
	n := w.Len()
	g := &growth{
		w: w, curve: curves, limit: limit, rule: rule, order: order, n: n, stale: true,
		children: make([][]int32, n+1), root: int32(n), firstOn: make([]int32, n+1),
		level: make([]int64, n+1), nodes: make([]node, n+1), sizes: make([]size, n), gain: make([]int64, n+1),
	}
	list, edges := slices.Clone(w.children.list), 0
	for i := range n {
		g.firstOn[i] = never
		g.children[i] = list[w.children.from[i]:w.children.from[i+1]]
		if len(w.Parents(i)) == 0 {
			g.children[n] = append(g.children[n], int32(i))
		}
	}
	for i := range g.nodes {
		g.nodes[i].from, g.nodes[i].span = int32(edges), firstSpan
		edges += len(g.children[i])
	}
	g.likely = make([]int32, edges)
	if rule == levelled {
		g.depth, g.width = depths(w), make([]int32, n)
		for i, d := range g.depth {
			g.width[d] += int32(min(curves[i].few(), berth.Count(math.MaxInt32-g.width[d])))
		}
	}
	return g
}

// rule says which task of the critical path grows next.
type rule uint8

const (
	steepest rule = iota // CPA: the largest fall of time per PE
	levelled             // MCPA: as CPA, while the tasks of one depth fit side by side
	thrifty              // ours: the most time saved for its price, see curve.thrift
)

// thrift is what a second saved by growing from m PEs to more is worth: the fall
// of the time over the PE-seconds that the task then takes more; a
// twentieth of its time is counted on top, for a PE given here is missing
// elsewhere. By Amdahl's law that is (1−α)/((α+1/20)·m·more), whatever the length
// of the task, if it has any. The twentieth was chosen by experiment; from a
// fiftieth to a tenth the outcome differs little.
func (c *curve) thrift(m, more berth.Count) float64 {
	if c.sizes != nil {
		return c.sizes.thrift(c, m, more)
	}
	if c.total == 0 {
		return 0
	}
	return c.parallel / float64(float64((c.serial+.05)*float64(m))*float64(more))
}

// more returns how many PEs a task of m gets when it grows: one more, and by the
// thrifty rule an eighth more, at most all. That takes half the steps, for about
// a thousandth more turn-around and CPU-hours. Of a task that was measured the
// thrifty rule takes the next measurement at least, for up to there nothing is
// gained. No task grows beyond what it can use.
func (r rule) more(c *curve, m, limit berth.Count) berth.Count {
	if r == thrifty {
		return min(limit, c.most(), max(c.next(m), m+1+m/8))
	}
	return m + 1
}

// more returns how many PEs a task of m gets when it grows. Beyond those that are given one by one
// it gets a 32nd more, at most all, so that the steps of a task are no more than those and 32 times the
// logarithm of how many times as many it ends with.
func (g *growth) more(task int32, m berth.Count) berth.Count {
	c := &g.curve[task]
	if g.fine == 0 || m < g.fine {
		return g.rule.more(c, m, g.limit)
	}
	return min(g.limit, c.most(), m+1+m/32)
}

// refresh computes everything that follows from chosen.
func (g *growth) refresh() {
	g.stale = false
	for i := range g.nodes {
		v := &g.nodes[i]
		*v = node{next: -1, first: -1, from: v.from, span: v.span, beyond: math.MaxInt64}
	}
	for i := range g.sizes {
		g.sizes[i].npe = g.curve[i].few()
	}
	for _, task := range g.chosen {
		v := &g.sizes[task]
		v.npe = g.more(task, v.npe)
	}
	for _, i := range slices.Backward(g.order[:g.n]) {
		g.anew(i)
		g.sized(i)
		g.settle(i)
	}
	g.settle(g.root)
	g.way = g.way[:0]
	g.follow(g.root)
}

// anew forgets what one PE more was found to be for a task: it did not get that one.
func (g *growth) anew(i int32) {
	v := &g.sizes[i]
	v.after = g.curve[i].time(v.npe)
	v.per = v.after / float64(v.npe)
}

// sized computes what follows from the PEs of a task that it just got.
func (g *growth) sized(i int32) {
	v := &g.sizes[i]
	g.gain[i] = 0
	if g.rule == thrifty {
		// What more are worth follows from the number alone.
		g.nodes[i].time = g.curve[i].time(v.npe)
		if v.npe < min(g.limit, g.curve[i].most()) {
			g.gain[i] = bits(g.curve[i].thrift(v.npe, g.rule.more(&g.curve[i], v.npe, g.limit)))
		}
		return
	}
	g.nodes[i].time = v.after
	v.after = g.curve[i].time(v.npe + 1)
	over := v.per
	v.per = v.after / float64(v.npe+1)
	if v.npe < min(g.limit, g.curve[i].most()) && !g.full(i) {
		g.gain[i] = bits(over - v.per)
	}
}

// settle computes the bottom level of a task. Levels only fall, so an old one
// bounds the new from above: of the children only the highest matters, the first
// of equals, once it has been settled and is still the highest.
func (g *growth) settle(i int32) {
	v := &g.nodes[i]
	if v.next >= 0 {
		if v.settled { // of the critical path, so it is alone in the list of its next, see unsettle
			g.nodes[v.next].first = -1
		}
		for g.level[v.next] > v.rival { // it was the highest, and may well be still
			if g.nodes[v.next].settled {
				g.lean(i)
				return
			}
			g.settle(v.next)
		}
	}
	for {
		if g.compare(i); v.next < 0 || g.nodes[v.next].settled {
			break
		}
		if g.settle(v.next); g.level[v.next] > v.rival {
			break
		}
	}
	g.lean(i)
}

// compare finds the child with the highest bottom level, the first of equals. As levels fall by little at a time, it
// mostly is one of the few that were close to the highest when all were looked at last.
func (g *growth) compare(i int32) {
	v := &g.nodes[i]
	if g.highest(v) > v.beyond {
		return
	}
	children, level := g.children[i], int64(-1)
	likely := g.likely[v.from:][:len(children)]
	if len(children) <= manyLikely {
		v.few, v.beyond = int32(copy(likely, children)), -1
		g.highest(v)
		return
	}
	for _, child := range children {
		level = max(level, g.level[child])
	}
	few := 0
	v.beyond = level - v.span
	for _, child := range children {
		likely[few] = child
		if g.level[child] > v.beyond {
			few++
		}
	}
	switch v.few = int32(few); {
	case few > manyLikely:
		v.span /= 2
	case few < fewLikely:
		v.span = min(2*v.span, mostSpan)
	}
	v.span = max(v.span, 1)
	g.highest(v)
}

// highest finds the highest of the likely children and returns its bottom level, -1 if there are none.
func (g *growth) highest(v *node) int64 {
	next, level, rival := int32(-1), int64(-1), v.beyond
	for _, child := range g.likely[v.from:][:v.few] {
		l := g.level[child]
		rival = max(rival, min(l, level))
		if l > level {
			next = child
		}
		level = max(level, l)
	}
	v.next, v.rival = next, rival
	return level
}

// lean settles a task whose next is settled.
func (g *growth) lean(i int32) {
	v := &g.nodes[i]
	v.settled = true
	if v.next >= 0 {
		g.list(i, v.next)
	}
	g.sumDown(i)
}

// list puts a task into the list of those that have a child as next.
func (g *growth) list(i, child int32) {
	c := &g.nodes[child]
	g.nodes[i].after, c.first = c.first, i
}

// sumDown computes a task's bottom level from that of the next on its longest
// way down.
func (g *growth) sumDown(i int32) {
	v, below := &g.nodes[i], 0.0
	if v.next >= 0 {
		below = unbits(g.level[v.next])
	}
	g.level[i] = bits(v.time + below)
}

// bits returns a whole number that compares with others as x does, which is not
// negative; unbits returns x. The smaller and the larger of two whole numbers are
// found without a branch, which would mostly be guessed wrong.
func bits(x float64) int64 { return int64(math.Float64bits(x)) }

func unbits(b int64) float64 { return math.Float64frombits(uint64(b)) }

// follow lets the critical path go on from a task to its end.
func (g *growth) follow(i int32) {
	s := int32(len(g.chosen))
	for ; i >= 0; i = g.nodes[i].next {
		g.way = append(g.way, i)
		g.firstOn[i] = min(g.firstOn[i], s)
	}
}

// unsettle notes that a task's bottom level has fallen, and with it that of
// every task whose longest way down leads through it, save above on the
// critical path, which is looked at next. The longest way down from a settled
// task leads through settled ones only.
func (g *growth) unsettle(task, above int32) {
	nodes := g.nodes
	g.pile = append(g.pile[:0], task)
	for len(g.pile) > 0 {
		v := &nodes[g.pile[len(g.pile)-1]]
		g.pile = g.pile[:len(g.pile)-1]
		i := v.first
		for v.first = -1; i >= 0; i = nodes[i].after {
			if i == above {
				continue
			}
			nodes[i].settled = false
			if nodes[i].first >= 0 {
				g.pile = append(g.pile, i)
			}
		}
	}
	g.list(above, task)
}

// step lets one more task grow. It is false if none can.
func (g *growth) step() bool {
	if g.saturated {
		return false
	}
	if g.stale {
		g.refresh()
	}
	place, most := -1, int64(0)
	for k, i := range g.way {
		if gain := g.gain[i]; gain > most {
			place, most = k, gain
		}
	}
	if place < 0 {
		g.saturated = true
		return false
	}
	task := g.way[place]
	v := &g.sizes[task]
	area := float64(float64(v.npe) * g.nodes[task].time)
	was := v.npe
	if v.npe = g.more(task, was); g.fine > 0 && v.npe > was+1 {
		g.anew(task)
	}
	g.sized(task)
	if g.rule == levelled {
		g.widen(g.depth[task])
	}
	g.chosen = append(g.chosen, task)
	g.grown = append(g.grown, float64(float64(v.npe)*g.nodes[task].time)-area)
	g.climb(place)
	return true
}

// climb brings the critical path up to date from a place on it upwards, whose
// task has become faster.
func (g *growth) climb(place int) {
	turn := len(g.way) // where the path first takes another way
	for k := place; k >= 0; k-- {
		i := g.way[k]
		v := &g.nodes[i]
		was := g.level[i]
		if k == place || g.level[v.next] > v.rival {
			g.sumDown(i)
		} else if g.settle(i); v.next != g.way[k+1] {
			turn = k
		}
		if g.level[i] == was {
			break // and so is all above
		}
		if v.first >= 0 && g.nodes[v.first].after >= 0 { // not the task above alone
			g.unsettle(i, g.way[k-1])
		}
	}
	if turn < len(g.way) {
		g.way = g.way[:turn+1]
		g.follow(g.nodes[g.way[turn]].next)
	}
}

// widen counts one more PE for the tasks of a depth. MCPA lets none of them grow
// once they need all PEs to run at once.
func (g *growth) widen(depth int32) {
	if g.width[depth]++; berth.Count(g.width[depth]) < g.limit {
		return
	}
	for i, d := range g.depth {
		if d == depth {
			g.gain[i] = 0
		}
	}
}

// full reports whether MCPA keeps a task from growing.
func (g *growth) full(i int32) bool {
	return g.rule == levelled && berth.Count(g.width[g.depth[i]]) >= g.limit
}

// until computes into npe how many PEs each task has when CPA stops for q PEs and
// this stopping rule. It is false if a task would have to grow beyond q before
// that, in which case q needs a growth of its own.
func (g *growth) until(q berth.Count, e Epsilon, npe []berth.Count) bool {
	share := 1 / e.divisor(q, g.n)
	for i := range npe {
		npe[i] = g.curve[i].few()
	}
	for s := 0; ; s++ {
		if s == len(g.path) {
			if g.stopped != nil && g.stopped() {
				return true
			}
			g.look()
		}
		if g.stops(s, share) || s == len(g.chosen) && !g.step() {
			return true
		}
		task := g.chosen[s]
		if npe[task] >= q && q < g.limit {
			return false
		}
		npe[task] = g.more(task, npe[task])
	}
}

// look notes the length of the critical path and the area before the next
// step.
func (g *growth) look() {
	if g.stale {
		g.refresh()
	}
	g.path = append(g.path, unbits(g.level[g.way[0]]))
	g.addArea()
}

// addArea notes the area before the next step.
func (g *growth) addArea() {
	if s := len(g.area); s == 0 {
		g.area = append(g.area, g.sum(0))
	} else {
		g.area = append(g.area, g.area[s-1]+g.grown[s-1])
	}
}

// stops reports whether the critical path before step s is no longer than the
// average area, where share is one over the PEs it is averaged over.
func (g *growth) stops(s int, share float64) bool {
	// The kept sum and the exact one have been rounded less than 4·(s+n) + 64
	// times between them, and the sum never shrinks by more than rounding: so
	// they differ by less than this part.
	slack := float64(4*(s+g.n)+64) * 0x1p-52
	average := share * g.area[s]
	switch {
	case g.path[s] < float64(average*(1-slack)):
		return true
	case g.path[s] > float64(average*(1+slack))+2e-9:
		return false
	default:
		return g.path[s] <= float64(share*g.sum(s))+1e-9
	}
}

// sum returns the sum of the areas before step s, added in the order of the
// workflow as the plain form does.
func (g *growth) sum(s int) float64 {
	npe := make([]berth.Count, g.root)
	for _, i := range g.order[:g.n] {
		npe[i] = g.curve[i].few()
	}
	for _, task := range g.chosen[:s] {
		npe[task] = g.more(task, npe[task])
	}
	total := 0.0
	for i, m := range npe {
		if m > 0 {
			total += float64(float64(m) * g.curve[i].time(m))
		}
	}
	return total
}

// drop takes out the last task of the order. As long as the task was not on the
// critical path, nothing would have been different without it: the steps up to
// there stay, the rest is forgotten.
func (g *growth) drop() {
	g.n--
	task := g.order[g.n]
	for _, parent := range g.w.parents.of(task) {
		g.children[parent] = without(g.children[parent], task)
	}
	g.children[g.root] = without(g.children[g.root], task)
	cut := min(int(g.firstOn[task]), len(g.chosen))
	for i, s := range g.firstOn {
		if int(s) >= cut {
			g.firstOn[i] = never
		}
	}
	g.chosen, g.grown = g.chosen[:cut], g.grown[:cut]
	g.saturated, g.stale = false, true
	g.path, g.area = g.path[:min(cut, len(g.path))], g.area[:0]
	for range g.path {
		g.addArea()
	}
}

// without takes a task out of an ascending list that may have it.
func without(list []int32, task int32) []int32 {
	if i, found := slices.BinarySearch(list, task); found {
		return slices.Delete(list, i, i+1)
	}
	return list
}

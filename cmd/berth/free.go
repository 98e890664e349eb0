package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/site/hostlist"
)

const (
	// maxDays is how many days berth free shows at most.
	maxDays = 31
	// cellHours is how long a column of berth free is: twelve of them, with their day, fit 80 columns.
	cellHours = 2
)

// freeCommand returns berth free.
func (a *app) freeCommand() *cobra.Command {
	var r *remote
	var w window
	var from moment
	f := freeView{days: 7}
	cmd := &cobra.Command{
		Use:   "free [SITE...]",
		Short: "Show how many PEs are free, or which nodes, a week at a glance",
		Long: `Shows for each pool and day how many PEs are free, in columns of two hours: the
fewest at any time of these. What is promised, runs or is out of use is taken. A dot
is a time that has passed. In a column in which PEs are free in the end a request may
be refused all the same: a limit, a partition or a constraint can bind it. berth offers
says what can be had.

With --nodes the nodes are named, those that are free alike in one line, with a letter
for two hours, of more than three days for four: - is free throughout, # is taken at
some time, + has some PEs that are free. Where PEs get their numbers late, promises
without nodes take some of those that are free.

With --window it is told what is free throughout that window. At a terminal there are
colours, unless NO_COLOR is set.`,
		Example: `  berth free
  berth free cm5 --from monday --days 3 --nodes
  berth free cm5 --window "next tue 14:00–18:00" --nodes`,
		RunE: func(cmd *cobra.Command, args []string) error {
			begin := time.Now()
			switch {
			case w.text != "" && (from.given() || cmd.Flags().Changed("days")):
				return usagef(cmd, "--window: given beside --from or --days; want one of the ways")
			case w.text != "":
				a.echo("from", &w.from)
				a.echo("to", &w.to)
				f.edges = []form.Time{form.Time(w.from.at.Unix()), form.Time(w.to.at.Unix())}
			default:
				if from.given() {
					begin = from.at
				}
				a.echo("from", &from)
				f.edges = cellEdges(begin, f.days)
			}
			if f.now = form.Time(time.Now().Unix()); f.edges[len(f.edges)-1] <= f.now && w.text != "" {
				return usagef(cmd, "--window: %q is over; want one that is to come", w.text)
			}
			f.window = w.text != ""
			return a.free(cmd, r, args, &f)
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().Var(&from, "from", "the first day (default: today)")
	cmd.Flags().Var(&whole[int]{&f.days, 1, maxDays}, "days", "how many days")
	cmd.Flags().Var(&w, "window", "a window instead of days, such as \"next tue 14:00–18:00\"")
	cmd.Flags().BoolVar(&f.nodes, "nodes", false, "which nodes are free, by name")
	cmd.Flags().StringVar(&f.pool, "pool", "", "only this `POOL`")
	r = remoteFlags(cmd)
	r.offerSites(cmd, math.MaxInt)
	r.offerSiteFlags(cmd)
	return cmd
}

// freeView is what berth free shows, of what times, and in what form.
type freeView struct {
	pool   string // only this; empty is all
	days   int
	edges  []form.Time // of cells; with window of one
	now    form.Time
	window bool
	nodes  bool
	palette
}

// freeCell is how many PEs of a pool are free at any time of a cell, and which nodes.
type freeCell struct {
	Site  string      `json:"site"`
	Pool  string      `json:"pool"`
	Start form.Time   `json:"start"`
	End   form.Time   `json:"end"`
	Free  berth.Count `json:"free"`
	Of    berth.Count `json:"of"`
	// Nodes are free throughout; missing unless they were asked for. Unnamed is how many PEs are promised beside that
	// have no numbers yet.
	Nodes   []string    `json:"nodes,omitzero"`
	Unnamed berth.Count `json:"unnamed,omitempty"`
}

func (a *app) free(cmd *cobra.Command, r *remote, names []string, f *freeView) error {
	ctx, stop, c, err := r.connect(cmd)
	if err != nil {
		return err
	}
	defer stop()
	list, err := c.Sites(ctx)
	if err != nil {
		return err
	}
	if err := haveSites(list, names...); err != nil {
		return err
	}
	f.palette = paletteOf(a.stdout)
	all := []freeCell{}
	var text strings.Builder
	for i := range list {
		s := &list[i]
		if len(names) > 0 && !slices.Contains(names, s.Name) {
			continue
		}
		var spans []form.Span
		for span, err := range c.Occupation(ctx, s.Name, max(f.edges[0], f.now), f.edges[len(f.edges)-1]) {
			if err != nil {
				return err
			}
			spans = append(spans, span)
		}
		for j := range s.Pools {
			p := &s.Pools[j]
			if f.pool != "" && p.Name != f.pool {
				continue
			}
			var rows form.Rows
			if f.nodes {
				if rows, err = c.Rows(ctx, s.Name, p.Name); err != nil {
					return err
				}
			}
			cells := f.poolText(&text, s.Name, p, rows.Rows, spans)
			all = append(all, cells...)
		}
	}
	switch {
	case r.format == "json":
		return printForm(a.stdout, map[string][]freeCell{"free": all})
	case text.Len() == 0:
		return berth.Errorf(berth.NotFound, "pool", "no pool %q", f.pool)
	}
	return a.show(text.String())
}

// haveSites returns an error about the first name that is of no site of a list.
func haveSites(list []form.Site, names ...string) error {
	known := make([]string, len(list))
	for i := range list {
		known[i] = list[i].Name
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return berth.Errorf(berth.NotFound, "site", "no site %q; there are %s", name, strings.Join(known, ", "))
		}
	}
	return nil
}

// poolText writes what is free in a pool, and returns it by cell.
func (f *freeView) poolText(text *strings.Builder, site string, p *form.Pool, nodes []form.Row, spans []form.Span) (all []freeCell) {
	cells := freeCells(p.PEs, p.Name, spans, f.edges, f.now)
	var states [][]nodeState
	var unnamed []berth.Count
	if f.nodes {
		var taken []berth.PESet
		taken, unnamed = takenIn(p.Name, spans, f.edges, f.now)
		states = nodeStates(nodes, taken, f.edges, f.now)
	}
	for k, free := range cells {
		if free == passed {
			continue
		}
		cell := freeCell{Site: site, Pool: p.Name, Start: f.edges[k], End: f.edges[k+1], Free: free, Of: p.PEs}
		if f.nodes {
			cell.Nodes, cell.Unnamed = freeNodes(nodes, states, k), unnamed[k]
		}
		all = append(all, cell)
	}
	switch {
	case f.window:
		now := f.now.In(time.Local)
		fmt.Fprintf(text, "%s/%s: %s PEs are free from %s to %s\n", site, p.Name, f.free(int(cells[0]), int(p.PEs), fmt.Sprintf("%d of %d", cells[0], p.PEs)),
			shortTime(f.edges[0], now), endAfter(f.edges[0], f.edges[1], now))
		for _, line := range brokenAt(hostlist.Fold(all[0].Nodes), maxColumns-2) {
			if line != "" {
				text.WriteString("  " + line + "\n")
			}
		}
	case f.nodes && len(nodes) > 0:
		fmt.Fprintf(text, "%s/%s: %d PEs\n%s", site, p.Name, p.PEs, nodeTable(nodes, states, f.edges, f.days, f.palette))
	default:
		fmt.Fprintf(text, "%s/%s: %d PEs\n%s", site, p.Name, p.PEs, freeTable(cells, f.edges, f.days, p.PEs, f.palette))
	}
	switch {
	case f.nodes && len(nodes) == 0:
		text.WriteString("its nodes are not known by name: names come from the adapter of a site\n")
	case f.nodes && slices.Max(unnamed) > 0:
		fmt.Fprintf(text, "up to %d PEs are promised without nodes: they take some of those that are free\n", slices.Max(unnamed))
	}
	if !f.window {
		text.WriteByte('\n')
	}
	return all
}

// cellEdges returns where the cells of some days begin, and where the last one ends, by the clock of a zone: a cell
// in which the clock is put forward is shorter, and one in which it is put back longer.
func cellEdges(begin time.Time, days int) []form.Time {
	var edges []form.Time
	for day := range days {
		for hour := 0; hour < 24; hour += cellHours {
			edges = append(edges, form.Time(time.Date(begin.Year(), begin.Month(), begin.Day()+day, hour, 0, 0, 0, begin.Location()).Unix()))
		}
	}
	return append(edges, form.Time(time.Date(begin.Year(), begin.Month(), begin.Day()+days, 0, 0, 0, 0, begin.Location()).Unix()))
}

// passed is a cell that has passed.
const passed berth.Count = -1

// freeCells returns the fewest free PEs of a pool at any time of each cell, from now on. A PE that several spans take at once, such as
// overlapping outages, is taken once. Cost: spans are sorted, and each one changes the stretches of PEs that it takes.
func freeCells(pes berth.Count, pool string, spans []form.Span, edges []form.Time, now form.Time) []berth.Count {
	var taken takings
	for i := range spans {
		if s := &spans[i]; s.Pool == pool {
			taken.add(s, edges[0])
		}
	}
	taken.sort()
	cells := make([]berth.Count, len(edges)-1)
	for i := range cells {
		if edges[i+1] <= now {
			cells[i] = passed
			continue
		}
		most := taken.upTo(max(edges[i], now) + 1)
		for at, is := taken.next(); is && at < edges[i+1]; at, is = taken.next() {
			most = max(most, taken.upTo(at+1))
		}
		cells[i] = max(0, pes-most)
	}
	return cells
}

// takings counts PEs of a pool that are taken, as time goes on.
type takings struct {
	changes []taking
	bounds  []berth.PE // where stretches of PEs begin and end which each span takes as a whole or not at all
	depth   []int32    // how many spans take each stretch
	count   berth.Count
}

// taking is a span that begins or ends.
type taking struct {
	at      form.Time
	by      int32 // 1 or -1
	pes     berth.PESet
	unnamed berth.Count // PEs whose numbers are not known
}

// add adds a span, which begins no earlier than a time.
func (t *takings) add(s *form.Span, first form.Time) {
	begin := taking{max(s.Start, first), 1, s.PEs, max(0, s.NPE-s.PEs.Count())}
	t.changes = append(t.changes, begin)
	if s.End != 0 {
		t.changes = append(t.changes, taking{s.End, -1, begin.pes, begin.unnamed})
	}
	for _, run := range s.PEs.Runs() {
		t.bounds = append(t.bounds, run.Lo, run.Hi)
	}
}

// sort follows the last add.
func (t *takings) sort() {
	slices.SortFunc(t.changes, func(a, b taking) int { return cmp.Compare(a.at, b.at) })
	slices.Sort(t.bounds)
	t.bounds = slices.Compact(t.bounds)
	t.depth = make([]int32, len(t.bounds))
}

// next returns when the next span begins or ends.
func (t *takings) next() (at form.Time, is bool) {
	if len(t.changes) == 0 {
		return 0, false
	}
	return t.changes[0].at, true
}

// upTo returns how many PEs are taken right before a time, no earlier than that of the call before.
func (t *takings) upTo(end form.Time) berth.Count {
	for ; len(t.changes) > 0 && t.changes[0].at < end; t.changes = t.changes[1:] {
		c := &t.changes[0]
		t.count += berth.Count(c.by) * c.unnamed
		for _, run := range c.pes.Runs() {
			k, _ := slices.BinarySearch(t.bounds, run.Lo)
			for ; t.bounds[k] < run.Hi; k++ {
				if t.depth[k] += c.by; t.depth[k] == max(0, c.by) { // the first that takes it, or the last
					t.count += berth.Count(c.by) * berth.Count(t.bounds[k+1]-t.bounds[k])
				}
			}
		}
	}
	return t.count
}

// freeTable writes cells of a pool, a day in each line.
func freeTable(cells []berth.Count, edges []form.Time, days int, of berth.Count, c palette) string {
	width := 4
	for _, free := range cells {
		width = max(width, len(strconv.Itoa(int(free))))
	}
	var text strings.Builder
	const perDay = 24 / cellHours
	fmt.Fprintf(&text, "%-10s", "")
	for i := range perDay {
		fmt.Fprintf(&text, " %*s", width, fmt.Sprintf("%02dh", i*cellHours))
	}
	text.WriteByte('\n')
	for day := range days {
		fmt.Fprintf(&text, "%-10s", edges[day*perDay].In(time.Local).Format("Mon 02 Jan"))
		for _, free := range cells[day*perDay : (day+1)*perDay] {
			word := "."
			if free != passed {
				word = strconv.Itoa(int(free))
			}
			text.WriteString(" " + c.free(int(free), int(of), fmt.Sprintf("%*s", width, word)))
		}
		text.WriteByte('\n')
	}
	return text.String()
}

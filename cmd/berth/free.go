package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
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
	var from moment
	var pool string
	days := 7
	cmd := &cobra.Command{
		Use:   "free [SITE...]",
		Short: "Show how many PEs are free, a week at a glance",
		Long: `Shows for each pool and day how many PEs are free, in columns of two hours: the
fewest at any time of these. What is promised, runs or is out of use is taken. A dot
is a time that has passed. In a column in which PEs are free in the end a request may
be refused all the same: a limit, a partition or a constraint can bind it. berth offers
says what can be had.`,
		Example: "  berth free\n  berth free cm5 --from monday --days 3",
		RunE: func(cmd *cobra.Command, args []string) error {
			begin := time.Now()
			if from.given() {
				begin = from.at
			}
			a.echo("from", &from)
			return a.free(cmd, r, args, pool, begin, days)
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().Var(&from, "from", "the first day (default: today)")
	cmd.Flags().Var(&whole[int]{&days, 1, maxDays}, "days", "how many days")
	cmd.Flags().StringVar(&pool, "pool", "", "only this `POOL`")
	r = remoteFlags(cmd)
	r.offerSites(cmd, math.MaxInt)
	r.offerSiteFlags(cmd)
	return cmd
}

// freeCell is how many PEs of a pool are free at any time of a cell.
type freeCell struct {
	Site  string      `json:"site"`
	Pool  string      `json:"pool"`
	Start form.Time   `json:"start"`
	End   form.Time   `json:"end"`
	Free  berth.Count `json:"free"`
	Of    berth.Count `json:"of"`
}

func (a *app) free(cmd *cobra.Command, r *remote, names []string, pool string, begin time.Time, days int) error {
	ctx, stop, c, err := r.connect(cmd)
	if err != nil {
		return err
	}
	defer stop()
	list, err := c.Sites(ctx)
	if err != nil {
		return err
	}
	var known []string
	for i := range list {
		known = append(known, list[i].Name)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return berth.Errorf(berth.NotFound, "site", "no site %q; there are %s", name, strings.Join(known, ", "))
		}
	}
	edges := cellEdges(begin, days)
	now := form.Time(time.Now().Unix())
	all := []freeCell{}
	var text strings.Builder
	for i := range list {
		s := &list[i]
		if len(names) > 0 && !slices.Contains(names, s.Name) {
			continue
		}
		var spans []form.Span
		for span, err := range c.Occupation(ctx, s.Name, max(edges[0], now), edges[len(edges)-1]) {
			if err != nil {
				return err
			}
			spans = append(spans, span)
		}
		for j := range s.Pools {
			p := &s.Pools[j]
			if pool != "" && p.Name != pool {
				continue
			}
			cells := freeCells(p.PEs, p.Name, spans, edges, now)
			fmt.Fprintf(&text, "%s/%s: %d PEs\n%s\n", s.Name, p.Name, p.PEs, freeTable(cells, edges, days))
			for k, free := range cells {
				if free >= 0 {
					all = append(all, freeCell{s.Name, p.Name, edges[k], edges[k+1], free, p.PEs})
				}
			}
		}
	}
	switch {
	case r.format == "json":
		return printForm(a.stdout, map[string][]freeCell{"free": all})
	case text.Len() == 0:
		return berth.Errorf(berth.NotFound, "pool", "no pool %q", pool)
	}
	return a.show(text.String())
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

// freeCells returns the fewest free PEs of a pool at any time of each cell, from now on. Cost: each span is looked at
// once, and sorted.
func freeCells(pes berth.Count, pool string, spans []form.Span, edges []form.Time, now form.Time) []berth.Count {
	change := map[form.Time]berth.Count{}
	for i := range spans {
		s := &spans[i]
		if s.Pool != pool {
			continue
		}
		change[max(s.Start, edges[0])] += s.NPE
		if s.End != 0 {
			change[s.End] -= s.NPE
		}
	}
	times := make([]form.Time, 0, len(change))
	for at := range change {
		times = append(times, at)
	}
	slices.Sort(times)
	cells := make([]berth.Count, len(edges)-1)
	taken, next := berth.Count(0), 0
	for i := range cells {
		if edges[i+1] <= now {
			cells[i] = passed
			continue
		}
		begin := max(edges[i], now)
		for ; next < len(times) && times[next] <= begin; next++ {
			taken += change[times[next]]
		}
		most := taken
		for ; next < len(times) && times[next] < edges[i+1]; next++ {
			taken += change[times[next]]
			most = max(most, taken)
		}
		cells[i] = max(0, pes-most)
	}
	return cells
}

// freeTable writes cells, a day in each line.
func freeTable(cells []berth.Count, edges []form.Time, days int) string {
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
			fmt.Fprintf(&text, " %*s", width, word)
		}
		text.WriteByte('\n')
	}
	return text.String()
}

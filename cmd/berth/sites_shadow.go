package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth/api/form"
)

func (a *app) sitesShadow() *cobra.Command {
	var r *remote
	latest := 20
	cmd := &cobra.Command{
		Use: "shadow NAME", Short: "Compare what Berth would have promised at a site with what happened there", Args: one("NAME of a site"),
		Long: `Compares what Berth would have promised at a site that it only watches (berth
serve --slurm NAME --shadow) with what became of the jobs there. Operators only.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			s, err := c.Shadow(ctx, args[0], latest)
			switch {
			case err != nil:
				return err
			case r.format == "json":
				return printForm(a.stdout, &s)
			}
			return a.show(describeShadow(&s))
		},
	}
	cmd.Flags().Var(&whole[int]{&latest, 0, 1000}, "latest", "how many of the latest jobs to show")
	r = remoteFlags(cmd)
	r.offerSites(cmd, 1)
	return cmd
}

// describeShadow writes a comparison for people. Every count is there, whether
// it is 0 or not.
func describeShadow(s *form.Shadow) string {
	var f facts
	j := &s.Jobs
	f.add("watched since", localTime(s.Since))
	f.add("last seen", localTime(s.Seen))
	f.add("trouble", s.Trouble)
	count := func(name string, n int, about string) {
		f = append(f, [2]string{name, strings.TrimSpace(strconv.Itoa(n) + about)})
	}
	count("jobs seen", j.Seen, "")
	count("left out", j.Seen-j.Asked, by(j.LeftOut))
	count("promised", j.Promised, fmt.Sprintf(" of %d asked for", j.Asked))
	count("refused", sum(j.Refused), by(j.Refused))
	count("moved", j.Moved, fmt.Sprintf(" of those promised; %d lost their place", j.Broken))
	count("waiting", j.Open, fmt.Sprintf(" of those promised; %d of them past the promised start", j.Overdue))
	count("never ran", j.Cancelled+j.Vanished, fmt.Sprintf(": %d cancelled, %d vanished", j.Cancelled, j.Vanished))
	count("ended", j.Ended, fmt.Sprintf("; %d of them before their limit", j.BeforeLimit))
	count("part of a node", j.Partial, " of those asked for")
	count("compared", j.Compared, fmt.Sprintf(" promised and started: %d promised earlier, %d the same within %s, %d later", j.Earlier, j.Same, lasting(s.Tolerance), j.Later))
	text := "site " + s.Site + " is only watched: nothing of this is a promise\n" + f.String()
	if j.Compared > 0 {
		waits := newTable("waits")
		waits.AppendHeader(table.Row{"wait", "mean", "half within", "95 % within"})
		for _, row := range []struct {
			name string
			form.Spread
		}{{"promised", s.PromisedWait}, {"actual", s.ActualWait}} {
			waits.AppendRow(table.Row{row.name, lasting(row.Mean), lasting(row.P50), lasting(row.P95)})
		}
		text += "\n" + waits.Render() + "\n"
	}
	if len(s.Latest) == 0 {
		return text
	}
	jobs := newTable("jobs")
	jobs.AppendHeader(table.Row{"job", "user", "PEs", "limit", "ready", "promised", "started", "phase", "remark"})
	for i := range s.Latest {
		l := &s.Latest[i]
		jobs.AppendRow(table.Row{
			l.Job, l.User, l.NPE, lasting(l.Limit), localTime(l.Ready), localTime(l.Promised), localTime(l.Start), l.Phase, orDash(remark(l)),
		})
	}
	return text + "\n" + jobs.Render() + "\n"
}

// remark says what is out of the ordinary about a job.
func remark(j *form.ShadowJob) string {
	switch {
	case j.LeftOut != "":
		return "left out: " + j.LeftOut
	case j.Refusal != "":
		return "refused: " + j.Refusal
	case j.Broken:
		return "lost its place"
	case j.Moved:
		return "moved"
	}
	return ""
}

// by lists counts by name, in the order of the names.
func by(counts map[string]int) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		words = append(words, fmt.Sprintf("%s %d", name, counts[name]))
	}
	if len(words) == 0 {
		return ""
	}
	return ": " + strings.Join(words, ", ")
}

func sum(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

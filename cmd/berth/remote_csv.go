package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/site/hostlist"
)

// printRows writes a list as CSV. Columns bear the names that fields have in
// JSON; what JSON leaves out is an empty field.
func printRows(w io.Writer, header []string, rows [][]string) error {
	if err := csv.NewWriter(w).WriteAll(append([][]string{header}, rows...)); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return nil
}

// placeColumns are the columns of a place.
var placeColumns = []string{"site", "pool", "npe", "duration", "start", "end", "pes", "nodes"}

// placeCells are the fields of a place under placeColumns.
func placeCells(p *form.Place) []string {
	return []string{
		p.Site, p.Pool, strconv.Itoa(int(p.NPE)), strconv.FormatInt(int64(p.Duration), 10),
		timeCell(p.Start), timeCell(p.End), p.PEs.String(), hostlist.Fold(p.Nodes),
	}
}

// timeCell writes a time as JSON does.
func timeCell(t form.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.String()
}

// reservationRows writes a row for each reservation.
func reservationRows(w io.Writer, list []form.Reservation) error {
	rows := make([][]string, len(list))
	for i := range list {
		r := &list[i]
		row := append([]string{r.ID, r.State, r.User}, placeCells(&r.Place)...)
		rows[i] = append(row, timeCell(r.Arrival), timeCell(r.Ready), timeCell(r.Deadline), string(r.Reason), r.Name)
	}
	header := append([]string{"id", "state", "user"}, placeColumns...)
	return printRows(w, append(header, "arrival", "ready", "deadline", "reason", "name"), rows)
}

// taskRows writes a row for each task.
func taskRows(w io.Writer, list []taskOf) error {
	rows := make([][]string, len(list))
	for i := range list {
		t := &list[i]
		signal := ""
		if t.Signal != 0 {
			signal = strconv.Itoa(t.Signal)
		}
		rows[i] = []string{
			t.Reservation, t.Job, t.Array, t.Key, t.Name, t.Site, t.State, exitCell(t.ExitCode), signal, t.Reason, t.Output,
			timeCell(t.Submitted), timeCell(t.Start), timeCell(t.End),
		}
	}
	return printRows(w, []string{
		"reservation", "job", "array", "key", "name", "site", "state", "exit_code", "signal", "reason", "output", "submitted", "start", "end",
	}, rows)
}

// offerRows writes a row for each offer.
func offerRows(w io.Writer, list []form.Offer) error {
	rows := make([][]string, len(list))
	for i := range list {
		o := &list[i]
		row := append([]string{o.ID, timeCell(o.Expires), o.Difference}, placeCells(&o.Place)...)
		charge := ""
		if o.Charge != nil {
			charge = strconv.FormatInt(*o.Charge, 10)
		}
		rows[i] = append(append(append(row, strconv.FormatInt(o.IdlePESeconds, 10)), costCells(o.Cost)...), charge)
	}
	return printRows(w, slices.Concat([]string{"id", "expires", "difference"}, placeColumns, []string{"idle_pe_seconds"}, costColumns, []string{"charged_pe_seconds"}), rows)
}

// costColumns are the columns of what an offer costs the ordinary jobs.
var costColumns = []string{"delayed_jobs", "delay_sum", "delay_largest", "cost_idle_pe_seconds", "cost_jobs", "cost_complete"}

// costCells are the cells of costColumns, empty where the cost was not foreseen.
func costCells(c *form.Cost) []string {
	if c == nil {
		return make([]string, len(costColumns))
	}
	return []string{
		strconv.Itoa(c.Delayed), strconv.FormatInt(int64(c.DelaySum), 10), strconv.FormatInt(int64(c.DelayLargest), 10), strconv.FormatInt(c.IdlePESeconds, 10),
		strconv.Itoa(c.Jobs), strconv.FormatBool(c.Complete),
	}
}

// siteRows writes a row for each pool of each site.
func siteRows(w io.Writer, sites []form.Site) error {
	var rows [][]string
	for i := range sites {
		s := &sites[i]
		for k := range s.Pools {
			p := &s.Pools[k]
			rows = append(rows, []string{
				s.Name, p.Name, strconv.Itoa(int(p.PEs)), strconv.Itoa(int(p.Free)), strconv.Itoa(p.Running), strconv.Itoa(p.Waiting),
				string(p.Binding), s.Adapter, siteState(s),
			})
		}
	}
	return printRows(w, []string{"site", "pool", "pes", "free", "running", "waiting", "binding", "adapter", "state"}, rows)
}

// spanRows writes a row for each thing that holds PEs.
func spanRows(w io.Writer, spans []form.Span) error {
	rows := make([][]string, len(spans))
	for i := range spans {
		s := &spans[i]
		rows[i] = []string{
			string(s.Kind), s.Pool, timeCell(s.Start), timeCell(s.End), strconv.Itoa(int(s.NPE)), s.PEs.String(), s.State, s.ID, s.User,
		}
	}
	return printRows(w, []string{"kind", "pool", "start", "end", "npe", "pes", "state", "id", "user"}, rows)
}

// tokenRows writes a row for each token, without its secret.
func tokenRows(w io.Writer, tokens []form.Token) error {
	rows := make([][]string, len(tokens))
	for i := range tokens {
		t := &tokens[i]
		rows[i] = []string{t.ID, t.User, t.Role, timeCell(t.Created), timeCell(t.Expires), strings.Join(t.Sites, " "), t.Note, strings.Join(t.Scopes, " ")}
	}
	return printRows(w, []string{"id", "user", "role", "created", "expires", "sites", "note", "scopes"}, rows)
}

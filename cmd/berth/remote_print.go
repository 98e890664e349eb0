package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/internal/hpctime"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site/hostlist"
)

// printForm writes an answer as it came.
func printForm(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return nil
}

// localTime writes a time in the reader's zone, and with it.
func localTime(t form.Time) string {
	if t == 0 {
		return "-"
	}
	return t.In(time.Local).Format("Mon 2006-01-02 15:04:05 -07:00")
}

func lasting(d berth.Duration) string {
	if d == 0 {
		return "-"
	}
	return hpctime.Format(d)
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// where is the place in short, with a slash between site and pool.
func where(p *form.Place) string {
	if p.Pool == "" {
		return orDash(p.Site)
	}
	return p.Site + "/" + p.Pool
}

// facts are names with values, in their order; those without a value are left
// out.
type facts [][2]string

func (f *facts) add(name, value string) {
	if value != "" && value != "-" && value != "0" {
		*f = append(*f, [2]string{name, value})
	}
}

func (f *facts) String() string {
	width := 0
	for _, fact := range *f {
		width = max(width, len(fact[0]))
	}
	var text strings.Builder
	for _, fact := range *f {
		fmt.Fprintf(&text, "  %-*s  %s\n", width, fact[0], fact[1])
	}
	return text.String()
}

// sharedWith says who may run in a reservation beside its user.
func sharedWith(r *form.Reservation) string {
	switch {
	case r.Group != "":
		return "members of " + r.Group
	case slices.Contains(r.Users, berth.EveryUser):
		return "all users of the account"
	}
	return strings.Join(r.Users, ", ")
}

// describeReservation writes a reservation for people.
func describeReservation(r *form.Reservation) string {
	var f facts
	f.add("name", r.Name)
	f.add("user", r.User)
	f.add("account", r.Account)
	f.add("QOS", r.QOS)
	f.add("also for", sharedWith(r))
	f.add("constraint", r.Constraint)
	f.add("nodelist", r.Nodelist)
	f.add("exclude", r.Exclude)
	placeFacts(&f, &r.Place)
	for i := range r.Parts {
		p := &r.Parts[i]
		f.add("part "+strconv.Itoa(i+1), fmt.Sprintf("%s: %d PEs, %s", where(p), p.NPE, lasting(p.Duration)))
	}
	if r.Start == 0 {
		f.add("ready", localTime(r.Ready))
	}
	f.add("deadline", localTime(r.Deadline))
	f.add("held until", localTime(r.Expires))
	if r.State == "active" {
		f.add("used", map[bool]string{true: "yes", false: "not yet"}[r.CheckedIn])
	}
	if r.Data != nil {
		f.add("data moved by", localTime(r.Data.End))
	}
	if r.Charge != nil {
		f.add("charged PE-hours", peHours(*r.Charge))
	}
	f.add("missing PEs", strconv.Itoa(int(r.Missing)))
	for i := range r.Sites {
		s := &r.Sites[i]
		made := "not yet there"
		if s.Made {
			made = "there as " + s.Name
		}
		f.add("at "+s.Site, strings.TrimSuffix(made+"; "+s.Trouble, "; "))
	}
	if r.Refusal != nil {
		f.add("reason", string(r.Refusal.Reason)+": "+r.Refusal.Detail)
	}
	return fmt.Sprintf("reservation %s is %s\n%s", r.ID, stateOf(r), f.String())
}

// stateOf says in which state a reservation is, and that it lacks PEs though it runs.
func stateOf(r *form.Reservation) string {
	if r.State == string(service.Active) && r.Missing > 0 {
		return r.State + ", " + string(service.Degraded)
	}
	return r.State
}

func placeFacts(f *facts, p *form.Place) {
	f.add("site", where(p))
	pes := strconv.Itoa(int(p.NPE))
	if !p.PEs.Empty() {
		pes += " (" + p.PEs.String() + ")"
	}
	f.add("PEs", pes)
	f.add("nodes", hostlist.Fold(p.Nodes))
	f.add("start", localTime(p.Start))
	f.add("end", localTime(p.End))
	f.add("duration", lasting(p.Duration))
}

// describeOffers writes offers as a table, and how each can be held.
func describeOffers(offers []form.Offer, hold string) string {
	now := time.Now()
	out := newTable("offers" + timesAt(now))
	header := table.Row{"offer", "what", "PEs", "site", "start", "end", "duration", "idle PE-seconds"}
	if offers[0].Charge != nil {
		header = append(header, "charged PE-hours")
	}
	out.AppendHeader(header)
	for i := range offers {
		o := &offers[i]
		row := table.Row{
			i + 1, strings.ReplaceAll(o.Difference, "_", " "), o.NPE, where(&o.Place), shortTime(o.Start, now), endAfter(o.Start, o.End, now), lasting(o.Duration), o.IdlePESeconds,
		}
		if o.Charge != nil {
			row = append(row, peHours(*o.Charge))
		}
		out.AppendRow(row)
	}
	var text strings.Builder
	text.WriteString(out.Render() + "\n\n" + describeCosts(offers))
	fmt.Fprintf(&text, "Each can be held until %s, unless another request takes its place first:\n\n", localTime(offers[0].Expires))
	for i := range offers {
		fmt.Fprintf(&text, "    %s %s\n", hold, offers[i].ID)
	}
	return text.String()
}

// describeCosts writes what offers cost the ordinary jobs as a table; nothing while none of these waits or
// where no cost was foreseen. A + says that it is that much at least.
func describeCosts(offers []form.Offer) string {
	if !slices.ContainsFunc(offers, func(o form.Offer) bool { return o.Cost != nil && (o.Cost.Jobs > 0 || !o.Cost.Complete) }) {
		return ""
	}
	out := newTable("cost to ordinary jobs, by the queue and the estimates as they are")
	out.AppendHeader(table.Row{"offer", "delayed jobs", "delays together", "largest delay", "idle PE-hours before it", "jobs compared"})
	for i := range offers {
		c := offers[i].Cost
		if c == nil {
			out.AppendRow(table.Row{i + 1, "?", "?", "?", "?", 0})
			continue
		}
		more := ""
		if !c.Complete {
			more = "+"
		}
		out.AppendRow(table.Row{i + 1, strconv.Itoa(c.Delayed) + more, lasting(c.DelaySum) + more, lasting(c.DelayLargest) + more, peHours(c.IdlePESeconds) + more, c.Jobs})
	}
	return out.Render() + "\n\n"
}

// peHours is a number of PE-seconds in PE-hours.
func peHours(seconds int64) string { return strconv.FormatFloat(float64(seconds)/3600, 'f', 1, 64) }

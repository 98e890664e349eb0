package api

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/internal/hpctime"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/service"
)

// reservation shows a reservation. Only callers who may see all of it
// get it from the service.
func reservation(r *service.Reservation) form.Reservation {
	f := form.Reservation{ID: r.ID, Name: r.Request.Name, State: string(r.State), Version: r.Version}
	places(&f.Place, &f.Parts, r.Allotments)
	q := &r.Request
	f.Kind, f.User = q.Kind, q.User
	if q.Series != nil {
		f.Series, f.Occurrence = q.Series.Series, q.Series.Number
	}
	f.Arrival, f.Ready = form.TimeOf(q.Arrival), form.TimeOf(q.Ready)
	if q.Deadline < berth.TimeLimit-1 { // which tasks of a workflow without a deadline have
		f.Deadline = form.TimeOf(q.Deadline)
	}
	if r.Extended > 0 && len(r.Allotments) == 1 && f.Deadline != 0 {
		f.Deadline = max(f.Deadline, form.TimeOf(r.Allotments[0].End)) // an extension moves the deadline too
	}
	f.Requirements, f.Sharing, f.NodeNames, f.NoShow = q.Requirements, q.Sharing, q.NodeNames, q.NoShow
	shape(&f, q, len(r.Allotments) == 0)
	for i := range r.Nodes {
		if len(f.Parts) > i {
			f.Parts[i].Nodes = r.Nodes[i]
		} else if len(r.Nodes) == 1 {
			f.Nodes = r.Nodes[0]
		}
	}
	if len(r.Data) > 0 { // from the first transfer to the last
		start, end := r.Data[0].Start, r.Data[0].End
		for _, d := range r.Data[1:] {
			start, end = min(start, d.Start), max(end, d.End)
		}
		f.Data = &form.Transfer{Start: form.TimeOf(start), End: form.TimeOf(end)}
	}
	f.Expires, f.Missing, f.CheckedIn = form.TimeOf(r.Expires), r.Missing, r.CheckedIn
	if f.Refusal = refusal(r.Refusal, q); f.Refusal != nil {
		f.Reason = f.Refusal.Reason
	}
	for i := range r.Sites {
		m := &r.Sites[i]
		f.Sites = append(f.Sites, form.Materialised{Site: m.Site, Name: string(m.Name), Made: m.Made, Trouble: m.Trouble})
	}
	f.Created, f.Changed, f.Charge = form.TimeOf(r.Created), form.TimeOf(r.Changed), r.Charge
	return f
}

// places says where the parts are: the only one in place, several in parts.
func places(place *form.Place, parts *[]form.Place, allotments []berth.Allotment) {
	for i := range allotments {
		a := &allotments[i]
		p := form.Place{
			Site: a.Resource.Site, Pool: a.Resource.Name, NPE: a.NPE, Duration: a.End.Sub(a.Start),
			Start: form.TimeOf(a.Start), End: form.TimeOf(a.End), PEs: a.PEs,
		}
		if len(allotments) == 1 {
			*place = p
			return
		}
		*parts = append(*parts, p)
		place.Start, place.End = p.Start, max(place.End, p.End)
		place.NPE += p.NPE
		place.Duration = berth.Duration(place.End - place.Start)
	}
}

// shape says what was asked for, where it says more than the place.
func shape(f *form.Reservation, q *berth.Request, unplaced bool) {
	if len(q.Parts) == 1 && len(q.Parts[0].Variants) > 1 {
		f.Variants = q.Parts[0].Variants
	}
	if !unplaced {
		return
	}
	f.Site, f.Pool = q.Site, q.Pool
	for i := range q.Parts {
		p := &q.Parts[i]
		first := form.Place{NPE: p.Variants[0].NPE, Duration: p.Variants[0].Duration, PEs: p.Eligible}
		if len(q.Parts) > 1 {
			f.Parts = append(f.Parts, first)
			continue
		}
		f.NPE, f.Duration, f.PEs = first.NPE, first.Duration, first.PEs
	}
}

// refusal shows a refusal of a request; nil if the request is not known.
func refusal(r *berth.Refusal, q *berth.Request) *form.Refusal {
	if r == nil {
		return nil
	}
	f := &form.Refusal{
		Reason: r.Reason, Site: r.Resource.Site, Pool: r.Resource.Name, Wanted: r.Wanted, Limit: r.Limit,
		Possible: form.TimeOf(r.Possible), Exceeded: exceeded(r.Exceeded), Task: r.Task, Detail: detail(r, q),
	}
	if r.Task != "" {
		f.Detail = fmt.Sprintf("task %q: %s", r.Task, f.Detail)
	}
	if n := r.Nearest; n != nil {
		f.Nearest = &form.Nearest{NPE: n.NPE, Duration: n.Duration, Start: form.TimeOf(n.Start)}
	}
	return f
}

// detail says a refusal in a sentence.
func detail(r *berth.Refusal, q *berth.Request) string {
	if q == nil {
		q = new(berth.Request)
	}
	at := "anywhere"
	if r.Resource.Site != "" {
		at = "at " + r.Resource.Site + "/" + r.Resource.Name
	}
	switch r.Reason {
	case berth.TooLarge:
		return fmt.Sprintf("%d PEs are wanted; %s there are %d", r.Wanted, at, r.Limit)
	case berth.NoSuitableSite:
		if r.Limit >= r.Wanted || r.Resource == (berth.ResourceID{}) {
			if list := kinds(q); len(list) > 0 {
				return "no site has all of this: " + strings.Join(list, ", ")
			}
			return "no site has PEs of such a kind"
		}
		return fmt.Sprintf("%d PEs of such a kind are wanted; %s there are %d", r.Wanted, at, r.Limit)
	case berth.NoSoftware:
		name := cmp.Or(q.Software, "that software")
		if q.Version != "" {
			name += " of version " + q.Version + " or later"
		}
		return "no site has " + name
	case berth.NoLicence:
		if r.Resource.Kind == berth.LicenceKind { // of one that was to last longer
			return fmt.Sprintf("%d licences of %s are wanted for longer; %s has %d, and others hold too many of them until then", r.Wanted, r.Resource.Name, r.Resource.Site, r.Limit)
		}
		if q.Licences > 0 {
			return fmt.Sprintf("%s is there, but nowhere with %d licences", q.Software, q.Licences)
		}
		return "the software is there, but it has fewer licences than the request needs"
	case berth.DeadlineMissed:
		if r.Possible >= berth.TimeLimit {
			return "its data would never arrive " + at + ", as fast as they can be moved there"
		}
		return fmt.Sprintf("even if %s nothing else ran it would not end before %s", at, stamp(r.Possible))
	case berth.PolicyRefused:
		return "the site's admission policy says no " + at
	case berth.Quota:
		return beyond(r, at)
	case berth.NoCapacity:
		switch r.Resource.Kind {
		case berth.LicenceKind:
			return fmt.Sprintf("%d licences of %s are wanted; %s has %d, and others hold too many of them throughout the window", r.Wanted, r.Resource.Name, r.Resource.Site, r.Limit)
		case berth.StorageKind:
			return fmt.Sprintf("others' data leave too little room at %s throughout the window", r.Resource.Site)
		case berth.UplinkKind:
			return "others' data leave too little of the uplink to have its own there in time"
		}
		if n := r.Nearest; n != nil && n.Duration <= 0 { // of one that was to last longer
			return fmt.Sprintf("%d PEs are wanted for longer; %s they are not all free from %s on", r.Wanted, at, stamp(n.Start))
		} else if n != nil {
			return fmt.Sprintf("%d PEs are wanted; %s at most %d are free for %s, from %s on",
				r.Wanted, at, n.NPE, hpctime.Format(n.Duration), stamp(n.Start))
		}
		return fmt.Sprintf("%d PEs are wanted; %s others hold them throughout the window", r.Wanted, at)
	case berth.Expired:
		return "it was not confirmed in time"
	case berth.RefusedConflict:
		if r.Resource.Site != "" {
			return fmt.Sprintf("%d PEs are wanted; %s refuses it where it is, and its window has no other place", r.Wanted, r.Resource.Site)
		}
		return "another request was faster"
	case berth.SiteRefused:
		return fmt.Sprintf("%s will not have it: %s", cmp.Or(r.Resource.Site, "its site"), r.Words)
	}
	return string(r.Reason)
}

// beyond says which limit a request would exceed, and when it would not.
func beyond(r *berth.Refusal, at string) string {
	x := exceeded(r.Exceeded)
	if x == nil {
		return "your share of this round is used up"
	}
	has := "what you have"
	if x.Owner != "" {
		has = "what they have together"
	}
	if x.Account != "" || x.QOS != "" || x.Partition != "" {
		has = "what it has"
	}
	var allowed, asked string
	says := "this would be"
	switch policy.LimitName(x.Limit) {
	case policy.LimitLead, policy.LimitLength, policy.LimitHold:
		allowed, asked = hpctime.Format(berth.Duration(r.Exceeded.Allowed)), hpctime.Format(berth.Duration(r.Exceeded.Asked))
	case policy.LimitAhead:
		allowed, asked = fmt.Sprintf("%g PEs %s", x.Allowed, at), fmt.Sprintf("%g", x.Asked)
	case policy.LimitShare:
		allowed, asked = fmt.Sprintf("%g PEs %s at any one time", x.Allowed, at), fmt.Sprintf("%g", x.Asked)
	case policy.LimitBudget:
		allowed, asked = fmt.Sprintf("%g PE-hours", x.Allowed), fmt.Sprintf("%.6g with what is charged already", x.Asked)
	case policy.LimitMonthBudget:
		allowed, asked = fmt.Sprintf("%g PE-hours for what starts in one month", x.Allowed), fmt.Sprintf("%.6g with what is charged to that month", x.Asked)
	case policy.LimitPESeconds:
		allowed, asked = fmt.Sprintf("%g PE-hours", x.Allowed), fmt.Sprintf("%.6g with %s", x.Asked, has)
	case policy.LimitDelay:
		allowed, asked = hpctime.Format(berth.Duration(r.Exceeded.Allowed)), "a job that waits by "+hpctime.Format(berth.Duration(r.Exceeded.Asked))
		says = "this would delay"
	case policy.LimitIdle:
		allowed, asked = fmt.Sprintf("%g PE-hours", x.Allowed), fmt.Sprintf("%.6g PE-hours idle that jobs would use", x.Asked)
		says = "this would leave"
	case policy.LimitNoShow:
		allowed, asked = fmt.Sprintf("%g", x.Allowed), fmt.Sprintf("%g that went unused in the last %d days", x.Asked, policy.NoShowWindow/86_400)
		says = "there are"
	default:
		allowed, asked = fmt.Sprintf("%g", x.Allowed), fmt.Sprintf("%g with %s", x.Asked, has)
	}
	if (x.Limit == string(policy.LimitDelay) || x.Limit == string(policy.LimitIdle)) && r.Exceeded.Asked <= r.Exceeded.Allowed {
		says, asked = "too many jobs wait", "to foresee what this would cost them"
	}
	whose := "your limit " + x.Limit
	switch {
	case x.Limit == string(policy.LimitAhead):
		whose = "what may be promised to everyone together so far ahead"
	case x.Owner != "":
		whose = fmt.Sprintf("the limit %s of %s, who owns this service account,", x.Limit, x.Owner)
	case x.Account != "":
		whose = fmt.Sprintf("the limit %s of account %s", x.Limit, x.Account)
	case x.QOS != "":
		whose = fmt.Sprintf("the limit %s of QOS %s", x.Limit, x.QOS)
	case x.Partition != "":
		whose = fmt.Sprintf("the limit %s of partition %s", x.Limit, x.Partition)
	}
	text := fmt.Sprintf("%s is %s, and %s %s", whose, allowed, says, asked)
	switch {
	case x.Frees == 0:
	case policy.LimitName(x.Limit) == policy.LimitMonthBudget:
		text += "; it may start at " + stamp(r.Exceeded.Frees) + " or later"
	case policy.LimitName(x.Limit) == policy.LimitLead, policy.LimitName(x.Limit) == policy.LimitAhead:
		text += "; ask again at " + stamp(r.Exceeded.Frees) + " or later"
	default:
		text += "; it is free again at " + stamp(r.Exceeded.Frees)
	}
	return text
}

// kinds says what a request asks of PEs and sites, apart from software.
func kinds(q *berth.Request) []string {
	var list []string
	say := func(is bool, format string, args ...any) {
		if is {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	say(q.Site != "", "the name %s", q.Site)
	say(q.Pool != "", "a pool %s", q.Pool)
	say(q.Partition != "", "a partition %s that takes it", q.Partition)
	say(q.Constraint != "", "the features %s", q.Constraint)
	say(q.Nodelist != "", "the nodes %s", q.Nodelist)
	say(q.Exclude != "", "none of the nodes %s", q.Exclude)
	for i := range q.Parts {
		say(q.Parts[i].Constraint != "", "a part with the features %s", q.Parts[i].Constraint)
		say(q.Parts[i].Nodelist != "", "a part on the nodes %s", q.Parts[i].Nodelist)
		say(q.Parts[i].Exclude != "", "a part without the nodes %s", q.Parts[i].Exclude)
	}
	say(q.MemoryMB > 0, "%d MB of memory a PE", q.MemoryMB)
	say(q.Accelerators > 0, "%d accelerators a PE", q.Accelerators)
	say(q.StorageMB > 0, "room for %d MB of data", q.StorageMB)
	return list
}

func offers(list []service.Offer) []form.Offer {
	result := make([]form.Offer, len(list))
	for i := range list {
		o := &list[i]
		f := &result[i]
		f.ID, f.Expires, f.Difference, f.IdlePESeconds = o.ID, form.TimeOf(o.Expires), string(o.Difference), o.Idle
		if c := o.Cost; c != nil {
			f.Cost = &form.Cost{Delayed: c.Delayed, DelaySum: c.Sum, DelayLargest: c.Largest, IdlePESeconds: c.Idle, Jobs: c.Followed, Complete: c.Complete}
		}
		f.Charge = o.Charge
		places(&f.Place, &f.Parts, o.Allotments)
	}
	return result
}

func chances(list []service.Chance) []form.Chance {
	result := make([]form.Chance, len(list))
	for i := range list {
		c := &list[i]
		if result[i] = (form.Chance{Event: string(c.Kind), Later: c.Later}); c.Enough {
			result[i].Share = &form.Share{Percent: 100 * c.Share, Low: 100 * c.Low, High: 100 * c.High, Cases: c.Sample}
		}
	}
	return result
}

// decision is the answer to a request.
func decision(a *service.Answer) form.Answer {
	r := reservation(&a.Reservation)
	f := form.Answer{ID: r.ID, Decision: form.Accepted, Reservation: &r, Offers: offers(a.Offers)}
	switch a.Reservation.State {
	case service.Refused, service.Failed: // failed before it was told
		f.Decision, f.Reservation, f.Reason, f.Refusal = form.Refused, nil, r.Reason, r.Refusal
	case service.Pending:
		f.Decision = form.Pending
	}
	if why := refusal(a.Refusal, nil); why != nil { // of a change: it is as it was
		f.Decision, f.Reason, f.Refusal = form.Refused, why.Reason, why
	}
	return f
}

// arrayDecision is the answer to an array, whose parts share an id but for their
// numbers. The reason and the offers are those of the first part refused.
func arrayDecision(answers []service.Answer) form.Answer {
	f := form.Answer{Array: make([]form.Answer, len(answers))}
	counts := map[string]int{}
	for i := range answers {
		part := decision(&answers[i])
		if counts[part.Decision]++; part.Decision == form.Refused && counts[form.Refused] == 1 {
			f.Reason, f.Refusal, f.Offers = part.Reason, part.Refusal, part.Offers
		}
		part.Offers = nil
		f.Array[i] = part
	}
	f.ID = strings.TrimSuffix(f.Array[0].ID, "_1")
	switch {
	case counts[form.Refused] == len(answers):
		f.Decision = form.Refused
	case counts[form.Refused] > 0:
		f.Decision = form.Partly
	case counts[form.Pending] > 0:
		f.Decision = form.Pending
	default:
		f.Decision = form.Accepted
	}
	return f
}

func siteView(by service.Principal, s *service.SiteView) form.Site {
	f := form.Site{
		Name: s.Name, Adapter: s.Adapter, Shadow: s.Shadow, Reachable: s.Reachable, Starting: s.Starting, Seen: form.TimeOf(s.Seen), Pools: make([]form.Pool, len(s.Pools)),
		Partitions: s.Partitions, Software: s.Software, StorageMB: s.StorageMB, Link: s.Link,
	}
	for i := range s.Pools {
		f.Pools[i] = form.Pool{Pool: s.Pools[i], Free: s.Pools[i].PEs}
		for _, load := range s.Loads {
			if load.Resource == berth.PoolID(s.Name, s.Pools[i].Name) {
				f.Pools[i].Free, f.Pools[i].Running, f.Pools[i].Waiting = load.Free, load.Running, load.Waiting
			}
		}
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		node := form.Node{Name: n.Name, Condition: string(n.Condition), Since: form.TimeOf(n.Since), Busy: n.Busy}
		if by.Can(service.Operator) { // reasons are written by people about people
			node.Reason = n.Reason
		}
		f.Nodes = append(f.Nodes, node)
	}
	if !by.Can(service.Operator) {
		return f
	}
	f.Trouble = s.Trouble
	for i := range s.Drift {
		d := &s.Drift[i]
		f.Drift = append(f.Drift, form.Drift{Kind: string(d.Kind), Name: string(d.Name), What: d.What})
	}
	return f
}

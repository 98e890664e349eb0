package main

import (
	"fmt"
	"strings"

	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/service"
)

// Bounds of lists: the counts beside them are whole.
const (
	mostToldLost  = 20   // in words
	mostShownLost = 1000 // as JSON
)

// restored is what berth journal restore tells.
type restored struct {
	Backup   string    `json:"backup"`
	Records  int       `json:"records"`
	Last     uint64    `json:"last"` // record
	At       form.Time `json:"at"`   // when it is of
	Chain    string    `json:"chain"`
	Promises int       `json:"promises"` // that are not over
	Tokens   int       `json:"tokens"`
	Has      []string  `json:"has,omitempty"`   // beside the journal
	Lacks    []string  `json:"lacks,omitempty"` // of what a backup can have

	To       string `json:"to"`
	Restored bool   `json:"restored"`
	Aside    string `json:"aside,omitempty"`

	Old    string    `json:"old,omitempty"`
	Unread string    `json:"unread,omitempty"` // why the old journal was not compared
	Since  *lostForm `json:"since,omitempty"`

	TokensAgain []restoredToken `json:"tokens_again,omitempty"` // revoked since, and good again
	TokensLost  []restoredToken `json:"tokens_lost,omitempty"`  // made since

	Next []string `json:"next,omitempty"`

	managed                     []string
	operatorFile, operatorKnown bool
}

type restoredToken struct {
	ID   string `json:"id"`
	User string `json:"user"`
}

// lostForm is what the old journal has that the backup does not.
type lostForm struct {
	Records   uint64     `json:"records"`
	First     uint64     `json:"first,omitempty"`
	Last      uint64     `json:"last,omitempty"`
	From      form.Time  `json:"from,omitzero"`
	To        form.Time  `json:"to,omitzero"`
	Other     bool       `json:"other_history,omitempty"`
	Dropped   uint64     `json:"dropped,omitempty"`
	Damage    string     `json:"damage,omitempty"`
	Missing   lostList   `json:"missing"`
	Again     lostList   `json:"again"`
	Otherwise lostList   `json:"otherwise"`
	Sites     []lostSite `json:"sites,omitempty"`
}

type lostList struct {
	Count    int           `json:"count"`
	Live     int           `json:"live"` // of them not over
	Promises []lostPromise `json:"promises,omitempty"`
}

type lostPromise struct {
	ID    string `json:"id"`
	User  string `json:"user"`
	State string `json:"state"`
	form.Place
	Parts []form.Place `json:"parts,omitempty"`
}

type lostSite struct {
	Name      string   `json:"name"`
	Unknown   int      `json:"unknown"`
	Absent    int      `json:"absent"`
	Otherwise int      `json:"otherwise"`
	IDs       []string `json:"unknown_ids,omitempty"`
}

func sinceOf(s *service.Since) *lostForm {
	f := &lostForm{
		Records: s.Records, First: s.First, Last: s.Last, Other: s.Other, Dropped: s.Dropped,
		Missing: lostOf(s.Missing), Again: lostOf(s.Again), Otherwise: lostOf(s.Otherwise),
	}
	if s.From != 0 {
		f.From, f.To = form.TimeOf(s.From), form.TimeOf(s.To)
	}
	if s.Damage != nil {
		f.Damage = s.Damage.Error()
	}
	for i := range s.Sites {
		at := &s.Sites[i]
		f.Sites = append(f.Sites, lostSite{at.Name, len(at.Unknown), len(at.Absent), len(at.Otherwise), at.Unknown[:min(mostShownLost, len(at.Unknown))]})
	}
	return f
}

func lostOf(list []service.Promised) lostList {
	f := lostList{Count: len(list)}
	for i := range list {
		p := &list[i]
		if !p.State.Over() {
			f.Live++
		}
		if i >= mostShownLost {
			continue
		}
		lost := lostPromise{ID: p.ID, User: p.User, State: string(p.State)}
		for _, a := range p.Allotments {
			lost.Parts = append(lost.Parts, form.Place{Site: a.Resource.Site, Pool: a.Resource.Name, NPE: a.NPE, Start: form.TimeOf(a.Start), End: form.TimeOf(a.End)})
		}
		if len(lost.Parts) == 1 {
			lost.Place, lost.Parts = lost.Parts[0], nil
		}
		f.Promises = append(f.Promises, lost)
	}
	return f
}

// counted is a number with what it counts.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// firstOfMany writes the first of some words.
func firstOfMany(words []string) string {
	if len(words) > mostToldLost {
		words = append(words[:mostToldLost:mostToldLost], "…")
	}
	return strings.Join(words, ", ")
}

// next says what the operator has to do.
func (r *restore) next() {
	t := &r.told
	do := func(command string) { t.Next = append(t.Next, command) }
	where := " --data " + quoted(r.data)
	if r.dry {
		command := "berth journal restore " + quoted(r.backup) + where
		if r.journal != "" {
			command += " --journal " + quoted(placeName(r.journal))
		}
		if t.Old == r.data || r.aside {
			command += " --aside"
		}
		do(command)
		return
	}
	if s := t.Since; s != nil && s.Records > s.Dropped {
		old := r.old
		if old == r.data {
			old = t.Aside
		}
		if s.Damage == "" {
			from := " --data " + quoted(old)
			if t.Old != r.old {
				from = " --journal " + quoted(t.Old)
			}
			do(fmt.Sprintf("berth journal export%s --from %d --out lost.jsonl", from, s.First))
		}
	}
	serve := "berth serve" + where
	if r.journal != "" {
		serve += " --journal " + quoted(placeName(r.journal))
	}
	do(serve)
	for _, name := range t.managed {
		do("berth sites show " + quoted(name))
	}
	for _, gone := range t.TokensAgain[:min(mostToldLost, len(t.TokensAgain))] {
		do("berth token revoke " + gone.ID)
	}
	if t.Since != nil {
		for i := range t.Since.Again.Promises[:min(mostToldLost, len(t.Since.Again.Promises))] {
			do("berth release " + t.Since.Again.Promises[i].ID)
		}
	}
}

// tell writes it.
func (r *restore) tell() error {
	if r.format == "json" {
		return printForm(r.stdout, &r.told)
	}
	t := &r.told
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("backup %s: valid, %s up to record %d of %s, %s not over", t.Backup, counted(t.Records, "record", "records"), t.Last, localTime(t.At), counted(t.Promises, "promise", "promises"))
	line("chain  %s", t.Chain)
	has := "the journal"
	if len(t.Has) > 0 {
		has += ", " + strings.Join(t.Has, ", ")
	}
	line("it has %s (%s); it has not %s", has, counted(t.Tokens, "token", "tokens"), strings.Join(append(t.Lacks, "operator.token, clock.json, tasks of local sites"), ", "))
	switch {
	case t.Since != nil:
		t.Since.tell(t.Old, line)
	case t.Unread != "":
		line("what was lost since is not known, the journal in %s cannot be read: %s", t.Old, t.Unread)
	default:
		line("what was lost since is not known: there is no journal to compare with (--old PLACE)")
	}
	r.tellTokens(line)
	switch {
	case !t.Restored:
		line("nothing was changed. To restore:")
	case t.Aside != "":
		line("restored to %s: the journal up to record %d; what was there is in %s", t.To, t.Last, t.Aside)
		line("next:")
	default:
		line("restored to %s: the journal up to record %d", t.To, t.Last)
		line("next:")
	}
	for _, command := range t.Next {
		line("  %s", command)
	}
	if t.Restored && len(t.managed) > 0 {
		line("A service with a configuration starts with its --config as well. While a site has reservations that the journal does not know, nothing is promised there,")
		line("and berth sites show lists them: wait until they have ended, or stop the service and start it once with --adopt, which deletes them with the jobs in them.")
	}
	return r.show(b.String())
}

// tellTokens says what becomes of tokens.
func (r *restore) tellTokens(line func(format string, args ...any)) {
	t := &r.told
	list := func(of []restoredToken) string {
		words := make([]string, len(of))
		for i := range of {
			words[i] = of[i].ID + " of " + of[i].User
		}
		return firstOfMany(words)
	}
	if n := len(t.TokensAgain); n > 0 {
		line("tokens revoked since and good again: %d: %s", n, list(t.TokensAgain))
	}
	if n := len(t.TokensLost); n > 0 {
		line("tokens made since and not known any more: %d: %s", n, list(t.TokensLost))
	}
	switch {
	case t.operatorFile && !t.operatorKnown:
		line("operator.token in %s is of no token in the backup; on the machine of the service its account needs none", r.data)
	case !t.operatorFile:
		line("there is no operator.token in %s, and none is made while the backup has tokens; on the machine of the service its account needs none", r.data)
	}
}

// tell says what was lost in words.
func (s *lostForm) tell(old string, line func(format string, args ...any)) {
	switch {
	case s.Other:
		line("the journal of %s is not the one that the backup was made of", old)
	case s.Records == 0:
		line("the journal of %s has no record that the backup has not", old)
	case s.From == 0:
		line("lost since: %s, up to record %d; the journal of %s keeps none of them", counted(int(s.Records), "record", "records"), s.Last, old)
	default:
		line("lost since: %s, number %d of %s to number %d of %s, in the journal of %s", counted(int(s.Records), "record", "records"), s.First, localTime(s.From), s.Last, localTime(s.To), old)
		if s.Dropped > 0 {
			line("  %s before these were dropped there", counted(int(s.Dropped), "record", "records"))
		}
	}
	if s.Damage != "" {
		line("  more may be lost: %s", s.Damage)
	}
	s.Missing.tell(fmt.Sprintf("acknowledged after the backup and not in it: %%d, not over: %d", s.Missing.Live), line)
	s.Again.tell("given up or failed since and live again: %d", line)
	s.Otherwise.tell("changed since and as they were before again: %d; in that journal they are", line)
	for i := range s.Sites {
		at := &s.Sites[i]
		if at.Unknown+at.Absent+at.Otherwise == 0 {
			line("site %s, by that journal: no difference from the backup is on record", at.Name)
			continue
		}
		line("site %s, by that journal: reservations that the backup does not know: %d; that are not there and are made again: %d; that are changed back: %d", at.Name, at.Unknown, at.Absent, at.Otherwise)
		if at.Unknown > 0 {
			line("  nothing is promised there while it has those that the backup does not know: %s", firstOfMany(at.IDs))
		}
	}
}

func (l *lostList) tell(what string, line func(format string, args ...any)) {
	if l.Count == 0 {
		return
	}
	line("promises "+what+":", l.Count)
	for i := range l.Promises {
		if i == mostToldLost {
			line("  … and %d more (-o json)", l.Count-i)
			break
		}
		p := &l.Promises[i]
		places := p.Parts
		if len(places) == 0 {
			places = []form.Place{p.Place}
		}
		var words []string
		for k := range places {
			words = append(words, fmt.Sprintf("%d PEs at %s from %s to %s", places[k].NPE, where(&places[k]), localTime(places[k].Start), localTime(places[k].End)))
		}
		line("  %s of %s, %s: %s", p.ID, orDash(p.User), p.State, strings.Join(words, " and "))
	}
}

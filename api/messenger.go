package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/courier"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/api/identity"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/notice"
	"github.com/berth-hpc/berth/service"
)

// Messenger writes notices in the forms of the API, signs them and sends them. A receiver is told no
// more than its user, and the token with which it was made, may see when it is sent.
type Messenger struct {
	Courier  *courier.Courier
	Tokens   *token.Store
	Identity *identity.Ways // nil is tokens alone
	Access   []service.Access
	Public   *url.URL // nil is unknown
	Now      func() berth.Time
	Version  string
}

var _ service.Messenger = (*Messenger)(nil)

// maxNotice is how long a notice is at most, as the specification of Standard Webhooks recommends.
const maxNotice = 20_000

// noticeID is the id of a notice for a hook. Of at, which is 0 where the notice is not named by its time, it has the seconds.
func noticeID(hook string, number uint64, at berth.Time) string {
	if at == 0 {
		return fmt.Sprintf("evt_%d_%s", number, hook)
	}
	return fmt.Sprintf("evt_%d-%d_%s", number, at, hook)
}

// noticeNumber reads what noticeID wrote.
func noticeNumber(hook, id string) (uint64, error) {
	text, begins := strings.CutPrefix(id, "evt_")
	text, ends := strings.CutSuffix(text, "_"+hook)
	text, at, dated := strings.Cut(text, "-")
	number, err := strconv.ParseUint(text, 10, 64)
	if dated && err == nil {
		var seconds uint64
		seconds, err = strconv.ParseUint(at, 10, 62)
		ends = ends && seconds > 0
	}
	if !begins || !ends || err != nil {
		return 0, fmt.Errorf("%.64q; want the id of a notice of this hook, such as %s", id, noticeID(hook, 4711, 1795262400))
	}
	return number, nil
}

// Send sends a notice.
func (m *Messenger) Send(ctx context.Context, hook *service.Hook, o *service.Owed) service.Sent {
	sites, err := m.sites(ctx, hook)
	if e, is := errors.AsType[*berth.Error](err); is && e.Code == berth.Denied {
		return service.Sent{Words: e.Msg, Disable: e.Msg}
	}
	if err != nil {
		return service.Sent{Words: "cannot tell what its user may see: " + err.Error()}
	}
	r, is := o.Reservation()
	if is && slices.ContainsFunc(r.Allotments, func(a berth.Allotment) bool { return !sites.Has(a.Resource.Site) }) || o.Flow != nil && !sites.All() {
		return service.Sent{} // the site is not open to them any more
	}
	target, err := m.Courier.Open(hook.ID, hook.Sealed)
	if err != nil {
		return service.Sent{Words: err.Error()}
	}
	if hook.Form == service.MailForm {
		status, words, final := m.Courier.Mail(ctx, m.letter(hook, o, target.URL))
		return service.Sent{Status: status, Words: words, Final: final}
	}
	header := http.Header{"Content-Type": {"application/json"}, "User-Agent": {"Berth/" + m.Version}}
	if hook.Form == service.ChatForm {
		status, words := m.Courier.Post(ctx, target.URL, header, m.chat(hook, o))
		return m.sent(status, words)
	}
	id, now, body := noticeID(hook.ID, o.Number, o.NamedAt()), m.Now(), noticeBody(hook, o)
	header.Set(notice.HeaderID, id)
	header.Set(notice.HeaderTimestamp, strconv.FormatInt(int64(now), 10))
	header.Set(notice.HeaderSignature, notice.Signature(id, now, body, target.Keys(now)...))
	status, words := m.Courier.Post(ctx, target.URL, header, body)
	return m.sent(status, words)
}

func (m *Messenger) sent(status int, words string) service.Sent {
	s := service.Sent{Status: status, Words: words}
	if status == http.StatusGone {
		s.Disable = "its receiver has answered 410 Gone, by which it asks for no more notices"
	}
	return s
}

// sites returns the sites that a hook may be told of. The error is of code Denied if it may not be told
// anything any more.
func (m *Messenger) sites(ctx context.Context, hook *service.Hook) (service.SiteSet, error) {
	now := m.Now()
	if !isWay(hook.Parent) && !slices.ContainsFunc(m.Tokens.List(), func(e token.Entry) bool { return e.ID == hook.Parent && e.User == hook.User }) {
		return "", berth.Errorf(berth.Denied, "hook", "the token with which it was made was revoked; add it anew with another one")
	}
	sites, may := service.NewSiteSet(nil).And(hook.Sites), false
	take := func(p service.Principal) {
		open := p.Sites.And(service.SitesOf(m.Access, p)).And(hook.Sites)
		if !p.Can(service.User) || open.None() {
			return
		}
		if may {
			open = open.Or(sites)
		}
		sites, may = open, true
	}
	all := standings{m.Tokens, m.Identity, m.Access, now}
	for _, e := range m.Tokens.Of(hook.User, now) {
		p, err := all.narrowed(ctx, &e)
		switch {
		case err == nil:
			take(p)
		case !denied(err):
			return "", err
		}
	}
	if !may && m.Identity != nil {
		p, err := remembered(ctx, m.Identity, m.Tokens, hook.User, now)
		if e, is := errors.AsType[*berth.Error](err); err != nil && (!is || e.Code != berth.Denied) {
			return "", err
		}
		if err == nil {
			take(p)
		}
	}
	if !may {
		return "", berth.Errorf(berth.Denied, "hook", "%s has neither a token that is good nor an account of the machine or of the OpenID provider that may see reservations", hook.User)
	}
	return sites, nil
}

// isWay reports whether a parent is a way of identity, and no token; of what was made in a browser's session that is "machine" or a
// provider.
func isWay(parent string) bool {
	return parent == token.OfMachine || slices.Contains([]identity.Way{identity.Socket, identity.Munge, identity.SlurmJWT, identity.OIDC}, identity.Way(parent))
}

// noticeBody writes a notice.
func noticeBody(hook *service.Hook, o *service.Owed) []byte {
	n := form.Notice{Type: noticeType(o), Timestamp: form.TimeOf(o.At), Data: form.NoticeData{Hook: hook.ID, Missed: o.Missed, Workflow: workflowEvent(o.Flow)}}
	if r, is := o.Reservation(); is {
		n.Data.Reservation = new(reservation(&r))
	}
	body := mustJSON(&n)
	if r := n.Data.Reservation; len(body) > maxNotice && r != nil {
		n.Data.Brief = true
		n.Data.Reservation = &form.Reservation{ID: r.ID, Name: r.Name, State: r.State, Version: r.Version, User: r.User, Created: r.Created, Changed: r.Changed}
		n.Data.Reservation.Place = form.Place{Site: r.Site, Pool: r.Pool, NPE: r.NPE, Duration: r.Duration, Start: r.Start, End: r.End}
		body = mustJSON(&n)
	}
	return body
}

func noticeType(o *service.Owed) string {
	of := "reservation."
	switch {
	case o.Flow != nil:
		of = "workflow."
	case o.Kind == notice.Test, o.Kind == notice.Gap:
		of = "hook."
	}
	return of + string(o.Kind)
}

func mustJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic("api: a notice cannot be written: " + err.Error())
	}
	return data
}

// facts returns what a text can say of a notice.
func (m *Messenger) facts(hook *service.Hook, o *service.Owed) notice.Facts {
	f := notice.Facts{Kind: string(o.Kind), User: hook.User}
	if m.Public != nil {
		f.URL = strings.TrimSuffix(m.Public.String(), "/") + "/"
	}
	switch r, is := o.Reservation(); {
	case is:
		f.ID, f.Name, f.State = r.ID, r.Request.Name, string(r.State)
		shown := reservation(&r)
		if f.Site, f.PEs = shown.Site, strconv.Itoa(int(shown.NPE)); shown.Start != 0 {
			f.Start, f.End = stamp(berth.Time(shown.Start)), stamp(berth.Time(shown.End))
		}
		if len(shown.Parts) > 0 {
			var places []string
			npe := berth.Count(0)
			for i := range shown.Parts {
				places, npe = append(places, shown.Parts[i].Site), npe+shown.Parts[i].NPE
			}
			slices.Sort(places)
			f.Site, f.PEs = strings.Join(slices.Compact(places), ", "), strconv.Itoa(int(npe))
		}
	case o.Flow != nil:
		f.ID, f.Name, f.State = o.Flow.ID, o.Flow.Name, string(o.Flow.State)
		if o.Flow.End != 0 {
			f.End = stamp(o.Flow.End)
		}
	default:
		f.Name = "Berth"
	}
	return f
}

// chat writes a notice as a text, in the form that Slack and Mattermost take.
func (m *Messenger) chat(hook *service.Hook, o *service.Owed) []byte {
	f := m.facts(hook, o)
	text := cmp.Or(hook.Text, notice.DefaultText)
	switch {
	case o.Flow != nil && hook.Text == "":
		text = "{link} workflow {kind}, end {end}"
	case o.Kind == notice.Gap:
		text = fmt.Sprintf("{link}: %d notices were not sent; look at your promises", o.Missed)
	case o.Kind == notice.Test:
		text = "{link}: a test, as you asked for"
	}
	return mustJSON(struct {
		Text string `json:"text"`
	}{notice.Text(text, &f)})
}

// letter writes a notice as e-mail.
func (m *Messenger) letter(hook *service.Hook, o *service.Owed, to string) *courier.Letter {
	f := m.facts(hook, o)
	switch o.Kind {
	case notice.Gap:
		f.Kind = fmt.Sprintf("%d notices were not sent; look at your promises", o.Missed)
	case notice.Test:
		f.Kind = "a test, as you asked for"
	}
	l := &courier.Letter{User: hook.User, To: to, ID: noticeID(hook.ID, o.Number, o.NamedAt()), At: time.Unix(int64(o.At), 0).UTC(), Agent: "Berth/" + m.Version}
	if l.Subject, l.Text = notice.Letter(&f, hook.ID); o.First != 0 {
		l.First, l.Subject = noticeID(hook.ID, o.First, o.FirstAt), "Re: "+l.Subject
	}
	return l
}

package client

import (
	"context"
	"encoding/json"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
)

// Request asks for a reservation. A refusal is an answer.
func (c *Client) Request(ctx context.Context, r *form.Request, action Action) (answer form.Answer, err error) {
	err = c.send(ctx, http.MethodPost, "/v1/requests", action, r, &answer)
	return answer, err
}

// Offers asks what could be had, at most n offers; 0 is the service's
// default.
func (c *Client) Offers(ctx context.Context, r *form.Request, most int) ([]form.Offer, error) {
	answer, err := c.offers(ctx, r, most, url.Values{})
	return answer.Offers, err
}

// OffersAndChances asks for offers as Offers does, and how probable it is that the request is
// accepted later, and that an ordinary job of its size starts in time.
func (c *Client) OffersAndChances(ctx context.Context, r *form.Request, most int) (form.Offers, error) {
	return c.offers(ctx, r, most, url.Values{"chance": {"true"}})
}

func (c *Client) offers(ctx context.Context, r *form.Request, most int, query url.Values) (answer form.Offers, err error) {
	if most > 0 {
		query.Set("most", strconv.Itoa(most))
	}
	path := "/v1/offers"
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	err = c.send(ctx, http.MethodPost, path, Action{}, r, &answer)
	return answer, err
}

// Hold asks for what was offered; hold is seconds or form.DefaultHold.
func (c *Client) Hold(ctx context.Context, offer string, hold form.Hold, action Action) (answer form.Answer, err error) {
	in := struct {
		Hold form.Hold `json:"hold"`
	}{hold}
	err = c.send(ctx, http.MethodPost, "/v1/offers/"+url.PathEscape(offer)+"/hold", action, in, &answer)
	return answer, err
}

// Get looks at a reservation.
func (c *Client) Get(ctx context.Context, id string) (r form.Reservation, err error) {
	err = c.send(ctx, http.MethodGet, reservationPath(id), Action{}, nil, &r)
	return r, err
}

func reservationPath(id string) string { return "/v1/reservations/" + url.PathEscape(id) }

// Modify asks for a reservation to be changed. Fields of r that
// are zero stay as they are, except those whose keys are given, such as constraint: nothing is
// asked for there any more. If it is refused the reservation is as it was.
func (c *Client) Modify(ctx context.Context, id string, r *form.Request, action Action, without ...string) (answer form.Answer, err error) {
	body := any(r)
	if len(without) > 0 {
		if body, err = withNulls(r, without); err != nil {
			return answer, err
		}
	}
	err = c.send(ctx, http.MethodPatch, reservationPath(id), action, body, &answer)
	return answer, err
}

// withNulls writes a request with null for each of some keys.
func withNulls(r *form.Request, keys []string) (map[string]json.RawMessage, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	var body map[string]json.RawMessage
	if err := json.Unmarshal(text, &body); err != nil {
		return nil, err
	}
	for _, key := range keys {
		body[key] = json.RawMessage("null")
	}
	return body, nil
}

// Extend lets a reservation go on until then.
func (c *Client) Extend(ctx context.Context, id string, until form.Time, action Action) (answer form.Answer, err error) {
	in := struct {
		Until form.Time `json:"until"`
	}{until}
	err = c.send(ctx, http.MethodPost, reservationPath(id)+"/extend", action, in, &answer)
	return answer, err
}

// ExtendBy lets a reservation go on for longer.
func (c *Client) ExtendBy(ctx context.Context, id string, by berth.Duration, action Action) (answer form.Answer, err error) {
	in := struct {
		By berth.Duration `json:"by"`
	}{by}
	err = c.send(ctx, http.MethodPost, reservationPath(id)+"/extend", action, in, &answer)
	return answer, err
}

// Confirm makes a held reservation a confirmed one.
func (c *Client) Confirm(ctx context.Context, id string, action Action) (form.Reservation, error) {
	return c.act(ctx, id, "/confirm", action)
}

// Occupation returns what holds PEs of a site at some time in [from, to), in
// the order of starts, page after page.
func (c *Client) Occupation(ctx context.Context, site string, from, to form.Time) iter.Seq2[form.Span, error] {
	query := url.Values{"from": {from.String()}, "to": {to.String()}}
	return pages(ctx, c, "/v1/sites/"+url.PathEscape(site)+"/occupation", query, func(p *form.Occupation) ([]form.Span, string) { return p.Spans, p.Next })
}

// Rows returns the nodes of a pool in the order of their PEs; the pool may be empty if the site has one alone.
func (c *Client) Rows(ctx context.Context, site, pool string) (rows form.Rows, err error) {
	query := url.Values{"site": {site}}
	if pool != "" {
		query.Set("pool", pool)
	}
	err = c.send(ctx, http.MethodGet, "/v1/gantt/rows?"+query.Encode(), Action{}, nil, &rows)
	return rows, err
}

// Named returns the numbers of bars in pictures of a pool whose user, name or id contains a text, of those whose
// owner the client sees; the pool may be empty if the site has one alone.
func (c *Client) Named(ctx context.Context, site, pool, text string) ([]uint32, error) {
	query := url.Values{"site": {site}, "name": {text}}
	if pool != "" {
		query.Set("pool", pool)
	}
	var answer form.Named
	err := c.send(ctx, http.MethodGet, "/v1/gantt/named?"+query.Encode(), Action{}, nil, &answer)
	return answer.Numbers, err
}

// Release gives back what is left of a reservation: one that has not started is
// cancelled.
func (c *Client) Release(ctx context.Context, id string, action Action) (form.Reservation, error) {
	return c.act(ctx, id, "/release", action)
}

// Cancel gives a reservation back, as Release does.
func (c *Client) Cancel(ctx context.Context, id string, action Action) (r form.Reservation, err error) {
	err = c.send(ctx, http.MethodDelete, reservationPath(id), action, nil, &r)
	return r, err
}

// CheckIn says that a reservation is in use.
func (c *Client) CheckIn(ctx context.Context, id string, action Action) (form.Reservation, error) {
	return c.act(ctx, id, "/check-in", action)
}

func (c *Client) act(ctx context.Context, id, what string, action Action) (r form.Reservation, err error) {
	err = c.send(ctx, http.MethodPost, reservationPath(id)+what, action, nil, &r)
	return r, err
}

// Prepare has the sites of a reservation make it now, so that tasks can be handed
// in long before its start, and returns it once they have.
func (c *Client) Prepare(ctx context.Context, id string, action Action) (form.Reservation, error) {
	return c.act(ctx, id, "/prepare", action)
}

// Run hands in a task, which runs in a reservation from its start on, at a site
// that runs tasks itself.
func (c *Client) Run(ctx context.Context, id string, task *form.Task, action Action) (string, error) {
	var job form.Job
	err := c.send(ctx, http.MethodPost, reservationPath(id)+"/run", action, task, &job)
	return job.Job, err
}

// Tasks returns the tasks of a reservation, by site and job, and which of its sites
// do not tell, from all pages.
func (c *Client) Tasks(ctx context.Context, id string) (form.Tasks, error) {
	all := form.Tasks{Tasks: []form.TaskReport{}}
	query := url.Values{"limit": {"999"}}
	for task, err := range pages(ctx, c, reservationPath(id)+"/tasks", query, func(p *form.Tasks) ([]form.TaskReport, string) {
		all.Untold = p.Untold
		return p.Tasks, p.Next
	}) {
		if err != nil {
			return form.Tasks{}, err
		}
		all.Tasks = append(all.Tasks, task)
	}
	return all, nil
}

// History returns what has happened to a reservation, in order.
func (c *Client) History(ctx context.Context, id string) (h form.History, err error) {
	err = c.send(ctx, http.MethodGet, reservationPath(id)+"/history", Action{}, nil, &h)
	return h, err
}

// Filter chooses reservations. Zero fields choose all.
type Filter struct {
	User, Site, Name string
	States           []string
	From, To         form.Time
	PageSize         int
}

// List yields the reservations that the filter chooses, by id, fetching them
// page by page. An error ends it.
func (c *Client) List(ctx context.Context, f Filter) iter.Seq2[form.Reservation, error] {
	query := url.Values{}
	set := func(name, text string) {
		if text != "" {
			query.Set(name, text)
		}
	}
	set("user", f.User)
	set("site", f.Site)
	set("name", f.Name)
	set("state", strings.Join(f.States, ","))
	if f.From != 0 {
		set("from", f.From.String())
	}
	if f.To != 0 {
		set("to", f.To.String())
	}
	if f.PageSize > 0 {
		set("limit", strconv.Itoa(f.PageSize))
	}
	return pages(ctx, c, "/v1/reservations", query, func(p *form.Page) ([]form.Reservation, string) { return p.Reservations, p.Next })
}

// pages yields what is in pages of a list, one page after the other. items
// returns what is in a page, and the cursor of the next.
func pages[P, T any](ctx context.Context, c *Client, path string, query url.Values, items func(*P) ([]T, string)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		query := maps.Clone(query) // of this walk
		for {
			var page P
			var none T
			if err := c.send(ctx, http.MethodGet, path+"?"+query.Encode(), Action{}, nil, &page); err != nil {
				yield(none, err)
				return
			}
			list, next := items(&page)
			for i := range list {
				if !yield(list[i], nil) {
					return
				}
			}
			if next == "" {
				return
			}
			query.Set("cursor", next)
		}
	}
}

// Sites lists the sites.
func (c *Client) Sites(ctx context.Context) ([]form.Site, error) {
	var answer form.Sites
	err := c.send(ctx, http.MethodGet, "/v1/sites", Action{}, nil, &answer)
	return answer.Sites, err
}

// Site looks at a site.
func (c *Client) Site(ctx context.Context, name string) (s form.Site, err error) {
	err = c.send(ctx, http.MethodGet, "/v1/sites/"+url.PathEscape(name), Action{}, nil, &s)
	return s, err
}

// Doctor has the service examine a site.
func (c *Client) Doctor(ctx context.Context, name string) ([]form.Finding, error) {
	var answer form.Findings
	err := c.send(ctx, http.MethodGet, "/v1/sites/"+url.PathEscape(name)+"/doctor", Action{}, nil, &answer)
	return answer.Findings, err
}

// Shadow compares what would have been promised at a site that is only watched
// with what happened there, with at most n of the latest jobs.
func (c *Client) Shadow(ctx context.Context, name string, latest int) (s form.Shadow, err error) {
	path := "/v1/sites/" + url.PathEscape(name) + "/shadow?latest=" + strconv.Itoa(latest)
	err = c.send(ctx, http.MethodGet, path, Action{}, nil, &s)
	return s, err
}

// UpdateForecast says how fast data can be moved to a site: how many kilobytes will have
// been moved by the end of each period from now on.
func (c *Client) UpdateForecast(ctx context.Context, site string, period berth.Duration, kilobytes []int64) error {
	in := struct {
		Period    berth.Duration `json:"period"`
		Kilobytes []int64        `json:"kilobytes"`
	}{period, kilobytes}
	return c.send(ctx, http.MethodPut, "/v1/sites/"+url.PathEscape(site)+"/forecast", Action{}, in, nil)
}

// Drain lets nothing new start on a node.
func (c *Client) Drain(ctx context.Context, site, node, reason string) error {
	in := struct {
		Reason string `json:"reason,omitempty"`
	}{reason}
	return c.send(ctx, http.MethodPost, nodePath(site, node)+"/drain", Action{}, in, nil)
}

// AddMaintenance takes nodes out of use at times that are known before, or only says what is in its way.
func (c *Client) AddMaintenance(ctx context.Context, in *form.MaintenanceRequest) (form.MaintenanceAnswer, error) {
	var answer form.MaintenanceAnswer
	err := c.send(ctx, http.MethodPost, "/v1/maintenance", Action{}, in, &answer)
	return answer, err
}

// Maintenance lists maintenance that is not over.
func (c *Client) Maintenance(ctx context.Context) (form.MaintenanceList, error) {
	var list form.MaintenanceList
	err := c.send(ctx, http.MethodGet, "/v1/maintenance", Action{}, nil, &list)
	return list, err
}

// RemoveMaintenance calls maintenance off, or only the time of it that begins at one that is not 0.
func (c *Client) RemoveMaintenance(ctx context.Context, name string, start form.Time) error {
	path := "/v1/maintenance/" + url.PathEscape(name)
	if start != 0 {
		path += "?start=" + url.QueryEscape(time.Unix(int64(start), 0).UTC().Format(time.RFC3339))
	}
	return c.send(ctx, http.MethodDelete, path, Action{}, nil, nil)
}

// Resume lets a node be used again.
func (c *Client) Resume(ctx context.Context, site, node string) error {
	return c.send(ctx, http.MethodPost, nodePath(site, node)+"/resume", Action{}, nil, nil)
}

func nodePath(site, node string) string {
	return "/v1/sites/" + url.PathEscape(site) + "/nodes/" + url.PathEscape(node)
}

// Me says whose token this is.
func (c *Client) Me(ctx context.Context) (me form.Me, err error) {
	err = c.send(ctx, http.MethodGet, "/v1/me", Action{}, nil, &me)
	return me, err
}

// LoginLink makes the code of a link that logs a browser on the machine of the service in,
// once and within two minutes.
func (c *Client) LoginLink(ctx context.Context) (link form.Link, err error) {
	err = c.send(ctx, http.MethodPost, "/v1/session/links", Action{}, struct{}{}, &link)
	return link, err
}

// Tokens lists the tokens, without their secrets.
func (c *Client) Tokens(ctx context.Context) ([]form.Token, error) {
	var answer form.Tokens
	err := c.send(ctx, http.MethodGet, "/v1/tokens", Action{}, nil, &answer)
	return answer.Tokens, err
}

// NewToken is a token to be made.
type NewToken struct {
	User string `json:"user,omitempty"`
	Role string `json:"role,omitempty"`
	Note string `json:"note,omitempty"`
	// Expires is from when on it is worthless: a time in RFC 3339, or a length of time
	// such as 30d; empty is never.
	Expires string   `json:"expires,omitempty"`
	Sites   []string `json:"sites,omitempty"`  // the only ones that it lets see and use
	Scopes  []string `json:"scopes,omitempty"` // what it is good for within its role; none are all that the caller's is good for
	// Renews is the id of the token of a service account that it takes over from, which is good for no longer than Overlap, a length of time, from then on: a day if that is empty.
	Renews  string `json:"renews,omitempty"`
	Overlap string `json:"overlap,omitempty"`
}

// AddToken makes a token; its secret is in the answer and nowhere else.
func (c *Client) AddToken(ctx context.Context, in NewToken) (t form.Token, err error) {
	err = c.send(ctx, http.MethodPost, "/v1/tokens", Action{}, in, &t)
	return t, err
}

// ChangeScopes has a token be good for some scopes alone from now on.
func (c *Client) ChangeScopes(ctx context.Context, id string, scopes []string) (t form.Token, err error) {
	in := struct {
		Scopes []string `json:"scopes"`
	}{scopes}
	err = c.send(ctx, http.MethodPatch, "/v1/tokens/"+url.PathEscape(id), Action{}, in, &t)
	return t, err
}

// NewServiceAccount is a service account to be made.
type NewServiceAccount struct {
	Name  string   `json:"name"`
	Owner string   `json:"owner,omitempty"` // empty is who asks
	Role  string   `json:"role,omitempty"`
	Note  string   `json:"note,omitempty"`
	Sites []string `json:"sites,omitempty"` // the only ones that it sees and uses
}

// ServiceAccounts lists one's service accounts with their tokens, for operators those of all users.
func (c *Client) ServiceAccounts(ctx context.Context) ([]form.ServiceAccount, error) {
	var answer form.ServiceAccounts
	err := c.send(ctx, http.MethodGet, "/v1/service-accounts", Action{}, nil, &answer)
	return answer.Accounts, err
}

// AddServiceAccount makes a service account.
func (c *Client) AddServiceAccount(ctx context.Context, in NewServiceAccount) (a form.ServiceAccount, err error) {
	err = c.send(ctx, http.MethodPost, "/v1/service-accounts", Action{}, in, &a)
	return a, err
}

// RemoveServiceAccount ends a service account with its tokens and feeds.
func (c *Client) RemoveServiceAccount(ctx context.Context, name string) error {
	return c.send(ctx, http.MethodDelete, accountPath(name), Action{}, nil, nil)
}

// AddServiceAccountToken makes a token of a service account; its secret is in the answer and nowhere else. User and Role of what is
// wanted stay empty.
func (c *Client) AddServiceAccountToken(ctx context.Context, name string, in NewToken) (t form.Token, err error) {
	err = c.send(ctx, http.MethodPost, accountPath(name)+"/tokens", Action{}, in, &t)
	return t, err
}

// RevokeServiceAccountToken makes a token of a service account worthless.
func (c *Client) RevokeServiceAccountToken(ctx context.Context, name, id string) error {
	return c.send(ctx, http.MethodDelete, accountPath(name)+"/tokens/"+url.PathEscape(id), Action{}, nil, nil)
}

func accountPath(name string) string { return "/v1/service-accounts/" + url.PathEscape(name) }

// Sessions lists sessions in browsers: those of a user, or without a name one's own and for operators those of all users.
func (c *Client) Sessions(ctx context.Context, user string) ([]form.Session, error) {
	var answer form.Sessions
	err := c.send(ctx, http.MethodGet, "/v1/sessions"+ofUser(user), Action{}, nil, &answer)
	return answer.Sessions, err
}

// EndSession ends a session in a browser.
func (c *Client) EndSession(ctx context.Context, id string) error {
	return c.send(ctx, http.MethodDelete, "/v1/sessions/"+url.PathEscape(id), Action{}, nil, nil)
}

// EndSessions ends the sessions in browsers of a user, or without a name one's own, and returns how many there were.
func (c *Client) EndSessions(ctx context.Context, user string) (int, error) {
	var answer form.EndedSessions
	err := c.send(ctx, http.MethodDelete, "/v1/sessions"+ofUser(user), Action{}, nil, &answer)
	return answer.Ended, err
}

func ofUser(user string) string {
	if user == "" {
		return ""
	}
	return "?" + url.Values{"user": {user}}.Encode()
}

// Quotas returns the limits of a user and what is used of them; without a name one's own,
// or for an operator those of all who have something, and of accounts and partitions.
func (c *Client) Quotas(ctx context.Context, user string) (answer form.Quotas, err error) {
	path := "/v1/quotas"
	if user != "" {
		path += "?" + url.Values{"user": {user}}.Encode()
	}
	err = c.send(ctx, http.MethodGet, path, Action{}, nil, &answer)
	return answer, err
}

// Usage returns what one's own reservations came to that start in months from one to another, such as 2027-01, or, for an operator,
// those of all users; an empty month is no bound.
func (c *Client) Usage(ctx context.Context, from, to string) (answer form.Usage, err error) {
	query := url.Values{}
	if from != "" {
		query.Set("from", from)
	}
	if to != "" {
		query.Set("to", to)
	}
	path := "/v1/usage"
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	err = c.send(ctx, http.MethodGet, path, Action{}, nil, &answer)
	return answer, err
}

// AcceptClock has the service believe its machine's clock as it is.
func (c *Client) AcceptClock(ctx context.Context) error {
	return c.send(ctx, http.MethodPost, "/v1/clock/accept", Action{}, nil, nil)
}

// Lead has the service of an address lead instead of the one that does, or any that stands
// by if it is empty, and returns where it is reached. It is answered when that one has the
// journal. Errors: Conflict, none stands by there; Unavailable, it cannot take over now.
func (c *Client) Lead(ctx context.Context, to string) (leader string, err error) {
	in := struct {
		To  string `json:"to,omitempty"`
		Any bool   `json:"any,omitempty"`
	}{to, to == ""}
	var done form.Led
	err = c.send(ctx, http.MethodPost, "/v1/lead", Action{}, in, &done)
	return done.Leader, err
}

// Ready returns whether the service that leads takes requests, and who that is.
func (c *Client) Ready(ctx context.Context) (health form.Health, err error) {
	err = c.send(ctx, http.MethodGet, "/readyz", Action{}, nil, &health)
	return health, err
}

// Compact drops the records of the journal that are older than a length of time. It can
// take minutes.
func (c *Client) Compact(ctx context.Context, keep berth.Duration) (done form.Compacted, err error) {
	in := struct {
		Keep berth.Duration `json:"keep_history"`
	}{keep}
	return done, c.send(ctx, http.MethodPost, "/v1/journal/compact", Action{}, in, &done)
}

// RevokeToken makes a token worthless.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	return c.send(ctx, http.MethodDelete, "/v1/tokens/"+url.PathEscape(id), Action{}, nil, nil)
}

package api

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/api/identity"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/service"
)

// wantedFeed is a feed to be made.
type wantedFeed struct{ site, note string }

var feedBody = body[wantedFeed]{
	{"site", "The site whose promises and outages it shows; your own promises at all sites if it is not given.", text("cm5"), func(f *wantedFeed, v value) (err error) {
		f.site, err = v.word()
		return err
	}},
	{"note", "What it is for, for people.", text("phone"), func(f *wantedFeed, v value) (err error) {
		f.note, err = v.word()
		return err
	}},
}

// feedEnd is what the address of a feed ends with.
const feedEnd = ".ics"

func (c *call) addFeed() error {
	var wanted wantedFeed
	if _, err := read(c, feedBody, &wanted); err != nil {
		return err
	}
	if _, err := c.FeedGeneration(c.by, wanted.site); err != nil {
		return err
	}
	w := token.WantedFeed{User: c.by.User, Role: c.by.Role, Site: wanted.site, Note: wanted.note, Sites: c.token.Sites, Parent: c.token.ID}
	if wanted.site == "" { // what is one's own is not more for an operator
		w.Role = service.User
	}
	if c.token.IsSession() {
		w.Parent = c.token.Parent
	}
	secret, feed, err := c.tokens.AddFeed(w, c.Now())
	if err != nil {
		return err
	}
	c.log.Info("feed made", "by", c.by.User, "id", feed.ID, "site", feed.Site)
	f := c.feedForm(&feed)
	f.Secret, f.Path = secret, "/calendar/"+secret+feedEnd
	if base := c.base(); base != "" {
		f.URL = base + f.Path
	}
	return c.answer(http.StatusCreated, &f)
}

func (c *call) feedForm(f *token.Feed) form.Feed {
	return form.Feed{
		ID: f.ID, User: f.User, Role: string(f.Role), Site: f.Site, Note: f.Note, Created: form.TimeOf(f.Created), Used: form.TimeOf(c.tokens.FeedUsed(f)),
	}
}

// hasFeed reports whether who asks may see and revoke a feed: their own, and operators those of the sites
// that they have to do with.
func (c *call) hasFeed(f *token.Feed) bool {
	if f.User == c.by.User {
		return true
	}
	of := f.Sites
	if f.Site != "" {
		of = of.And(service.NewSiteSet([]string{f.Site}))
	}
	return c.by.Can(service.Operator) && (c.by.Sites.All() || !of.All() && of.And(c.by.Sites) == of)
}

func (c *call) listFeeds() error {
	f := form.Feeds{Feeds: []form.Feed{}}
	for _, feed := range c.tokens.Feeds() {
		if c.hasFeed(&feed) {
			f.Feeds = append(f.Feeds, c.feedForm(&feed))
		}
	}
	return c.answer(http.StatusOK, &f)
}

func (c *call) revokeFeed() error {
	id := c.r.PathValue("id")
	if slices.ContainsFunc(c.tokens.Feeds(), func(f token.Feed) bool { return f.ID == id && !c.hasFeed(&f) }) {
		return berth.Errorf(berth.NotFound, "id", "no feed %q", id)
	}
	if err := c.tokens.RevokeFeed(id, c.Now()); err != nil {
		return err
	}
	c.log.Info("feed revoked", "by", c.by.User, "id", id)
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// base returns the address of the pages for who asks, without a slash at its end; empty if it is not known.
func (c *call) base() string {
	switch {
	case c.door.public != nil:
		return strings.TrimSuffix(c.door.public.String(), "/")
	case identity.OverSocket(c.r.Context()):
		return c.at
	case c.door.host(c.r) != nil:
		return ""
	case c.r.TLS != nil:
		return "https://" + c.r.Host
	}
	return "http://" + c.r.Host
}

// errNoFeed is the answer to every address that is of no feed, or of one whose user may not see it any more: it says
// nothing about which.
var errNoFeed = berth.Errorf(berth.NotFound, "calendar", "there is none here; the address is wrong, or the feed has ended")

// readFeed answers who shows the secret of a feed.
func (c *call) readFeed() error {
	secret, is := strings.CutSuffix(c.r.PathValue("secret"), feedEnd)
	feed, known := c.tokens.CheckFeed(secret)
	if !is || !known {
		return errNoFeed
	}
	by, err := c.readerOf(&feed)
	if err != nil {
		return err
	}
	c.by = by
	if !c.rates.allow(c.asker(), 1) {
		c.slowDown()
		return tooFast(c.asker())
	}
	err = c.sendCalendar(feed.Site)
	if e, is := errors.AsType[*berth.Error](err); is && (e.Code == berth.NotFound || e.Code == berth.Denied) {
		return errNoFeed
	}
	if err == nil {
		if kept := c.tokens.UsedFeed(&feed, c.Now()); kept != nil {
			c.log.Warn("the use of a feed cannot be kept", "id", feed.ID, "error", kept)
		}
	}
	return err
}

// readerOf returns as whom a feed is read: its user with what their tokens are good for now, or their account of
// the machine or of the OpenID provider, and no more than it was made with. The error is errNoFeed if that is nothing.
func (c *call) readerOf(f *token.Feed) (service.Principal, error) {
	by := service.Principal{User: f.User}
	take := func(p service.Principal) {
		p.Sites = p.Sites.And(service.SitesOf(c.access, p)).And(f.Sites)
		if p.Can(f.Role) {
			p.Role = f.Role
		}
		switch {
		case f.Site == "" && !p.Can(service.User) || f.Site != "" && !p.Sites.Has(f.Site) || p.Sites.None():
		case by.Role == "" || !by.Can(p.Role):
			by = p
		case p.Can(by.Role): // the same
			by.Sites = by.Sites.Or(p.Sites)
		}
	}
	all := c.standings()
	for _, e := range c.tokens.Of(f.User, c.Now()) {
		p, err := all.narrowed(c.r.Context(), &e)
		switch {
		case err == nil:
			take(p)
		case !denied(err):
			return by, err
		}
	}
	if by.Role == "" && c.ways != nil {
		p, err := remembered(c.r.Context(), c.ways, c.tokens, f.User, c.Now())
		if err == nil {
			take(p)
		} else if e, is := errors.AsType[*berth.Error](err); !is || e.Code != berth.Denied {
			return by, err
		}
	}
	if by.Role == "" {
		return by, errNoFeed
	}
	return by, nil
}

var calendarParams = []param{{"site", "The site whose promises and outages it shows; your own promises at all sites if it is not given.", text("cm5")}}

// ownCalendar answers who shows a token.
func (c *call) ownCalendar() error {
	query, err := c.query(calendarParams)
	if err != nil {
		return err
	}
	return c.sendCalendar(query["site"])
}

package api

import (
	"crypto/rand"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/api/identity"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/service"
)

// The names of the cookie of a session. Browsers take the first from a page over https
// alone, which some hold to on loopback too; there the second is set beside it.
const (
	sessionCookie  = "__Host-berth"
	loopbackCookie = "berth"
)

// door lets browsers in: it knows under which names they may come, and the codes that open
// sessions.
type door struct {
	public *url.URL // nil if there is no proxy
	prefix string   // of all paths, without a slash at its end
	cross  *http.CrossOriginProtection
	links  *Links
}

func newDoor(public *url.URL, links *Links) door {
	d := door{public: public, cross: http.NewCrossOriginProtection(), links: links}
	if d.links == nil {
		d.links = &Links{}
	}
	if public != nil {
		d.prefix = strings.TrimSuffix(public.Path, "/")
		if err := d.cross.AddTrustedOrigin(public.Scheme + "://" + public.Host); err != nil {
			panic("api: " + err.Error())
		}
	}
	return d
}

// underPrefix serves paths with the prefix as without: some proxies take it away, others
// do not.
func (d *door) underPrefix(next http.Handler) http.Handler {
	if d.prefix == "" {
		return next
	}
	strip := http.StripPrefix(d.prefix, next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, d.prefix+"/") {
			strip.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// host returns the error about a request under a name that is not ours. A page of another
// site can have its name resolve to our address, and its scripts would be of our origin
// then; an address instead of a name cannot be made to resolve to another one.
func (d *door) host(r *http.Request) error {
	name := hostOf(r.Host)
	if _, err := netip.ParseAddr(name); err == nil || strings.EqualFold(name, "localhost") {
		return nil
	}
	if d.public != nil && strings.EqualFold(name, d.public.Hostname()) {
		return nil
	}
	return &statusError{http.StatusMisdirectedRequest, berth.Errorf(
		berth.Denied, "Host", "%.100q is not a name of this service; an operator names it with berth serve --public https://%.100s/", name, name)}
}

// hostOf returns the name or the address in a Host header.
func hostOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}

// pages lets browsers see pages under names of ours alone.
func (d *door) pages(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := d.host(r); err != nil {
			p, _ := problemOf(err)
			p.Status, p.Title = http.StatusMisdirectedRequest, http.StatusText(http.StatusMisdirectedRequest)
			writeProblem(w, p)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// own returns why a request may come from a page of another site.
func (d *door) own(r *http.Request) error {
	if err := d.host(r); err != nil {
		return err
	}
	if err := d.cross.Check(r); err != nil {
		return berth.Errorf(berth.Denied, "Origin", "%.100q: a page of another site may not act here", r.Header.Get("Origin"))
	}
	return nil
}

// https reports whether a browser speaks to us in a way that others cannot read, to the
// best of our knowledge, and loopback whether that is because it is on this machine.
func (d *door) private(r *http.Request) (https, loopback bool) {
	name := hostOf(r.Host)
	if d.public != nil && d.public.Scheme == "https" && strings.EqualFold(r.Host, d.public.Host) {
		return true, false
	}
	at, err := netip.ParseAddr(name)
	return r.TLS != nil, err == nil && at.IsLoopback() || strings.EqualFold(name, "localhost")
}

// sameMachine reports whether a request comes from this machine and not through a proxy.
func sameMachine(r *http.Request) bool {
	if identity.OverSocket(r.Context()) {
		return true
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	at, err := netip.ParseAddr(host)
	return err == nil && at.Unmap().IsLoopback() && r.Header.Get("X-Forwarded-For") == "" && r.Header.Get("Forwarded") == ""
}

// session finds out whose session a request comes with. known is false if there is none,
// or it is over.
func (c *call) session() (secret string, e token.Entry, outdated <-chan struct{}, known bool, err error) {
	for _, name := range []string{sessionCookie, loopbackCookie} {
		cookie, none := c.r.Cookie(name)
		if none != nil {
			continue
		}
		if err := c.door.own(c.r); err != nil {
			return "", e, nil, false, err
		}
		var kept error
		if e, outdated, known, kept = c.tokens.CheckSession(cookie.Value, c.Now()); kept != nil {
			c.log.Warn("the use of a session cannot be kept", "id", e.ID, "error", kept)
		}
		if known {
			return cookie.Value, e, outdated, true, nil
		}
	}
	return "", e, nil, false, nil
}

var sessionBody = body[string]{
	{"code", "The code of a login link, instead of a bearer token.", text(""), func(code *string, v value) (err error) {
		*code, err = v.word()
		return err
	}},
}

// openSession lets a browser in that shows a token, or the code of a login link.
func (c *call) openSession() error {
	if err := c.door.own(c.r); err != nil {
		return err
	}
	https, loopback := c.door.private(c.r)
	if !https && !loopback {
		return withoutTLS(c.r)
	}
	var code string
	if _, err := read(c, sessionBody, &code); err != nil {
		return err
	}
	var of link
	switch {
	case code != "" && !sameMachine(c.r):
		return berth.Errorf(berth.Denied, "code", "a login link works on the machine of the service alone; log in with a token")
	case code != "":
		var good bool
		if of, good = c.door.links.take(code, c.Now()); !good {
			return &statusError{http.StatusUnauthorized, berth.Errorf(berth.Denied, "code", "used already, or older than two minutes; berth open makes another one")}
		}
	default:
		if err := c.identify(service.Viewer); err != nil {
			return err
		}
		switch {
		case c.token.OfAccount:
			return notAPerson(c.by.User)
		case c.token.IsSession():
			return c.answerMe(http.StatusCreated) // it has one
		}
		of = c.linkOf()
	}
	secret, e, err := c.enter(&of)
	if err != nil {
		return err
	}
	c.log.Info("session opened", "id", e.ID, "user", e.User, "token", of.token)
	c.setSession(secret, &e, loopback && !https)
	c.token, c.by = e, e.Principal()
	c.caller.Way = of.way
	c.by.Sites = c.by.Sites.And(service.SitesOf(c.access, c.by))
	return c.answerMe(http.StatusCreated)
}

// setSession hands a browser the cookies of a session.
func (c *call) setSession(secret string, e *token.Entry, loopback bool) {
	for _, cookie := range c.cookies(loopback) {
		cookie.Value, cookie.MaxAge = secret, int(e.Expires.Sub(c.Now()))
		http.SetCookie(c.w, cookie)
	}
}

// linkOf returns what opens sessions of who asks.
func (c *call) linkOf() link {
	if c.caller.Way != "" {
		return link{token: c.token.ID, user: c.by.User, way: c.caller.Way, groups: c.caller.Groups, until: c.token.Expires}
	}
	return link{token: c.token.ID}
}

// enter opens a session. A user of the machine or of a provider may have another role by now.
func (c *call) enter(of *link) (secret string, e token.Entry, err error) {
	if of.user == "" {
		return c.tokens.OpenSession(of.token, c.came(), c.Now())
	}
	if of.way == identity.OIDC {
		caller, err := c.ways.Member(of.user, of.groups)
		if err != nil {
			return "", e, c.unidentified(err)
		}
		return c.tokens.OpenMemberSession(caller.User, caller.Role, caller.Groups, of.until, c.came(), c.Now())
	}
	caller, err := c.ways.Named(c.r.Context(), of.user)
	if err != nil {
		return "", e, c.unidentified(err)
	}
	return c.tokens.OpenMachineSession(caller.User, caller.Role, of.until, c.came(), c.Now())
}

// cookies returns those of a session, without values.
func (c *call) cookies(loopback bool) []*http.Cookie {
	list := []*http.Cookie{{Name: sessionCookie, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode}}
	if loopback {
		list = append(list, &http.Cookie{Name: loopbackCookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	}
	return list
}

// endSession logs a browser out.
func (c *call) endSession() error {
	if !c.token.IsSession() {
		return berth.Errorf(berth.NotFound, "session", "this call came with a token, not with a session; berth token revoke ends tokens")
	}
	if err := c.tokens.EndSession(c.token.ID); err != nil {
		return err
	}
	c.log.Info("session ended", "id", c.token.ID, "user", c.by.User)
	for _, cookie := range c.cookies(true) {
		cookie.MaxAge = -1
		http.SetCookie(c.w, cookie)
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

var linkBody = body[struct{}]{}

// loginLink makes the code of a login link for a caller that shows a token.
func (c *call) loginLink() error {
	switch {
	case c.token.OfAccount:
		return notAPerson(c.by.User)
	case c.token.IsSession():
		return berth.Errorf(berth.Denied, "session", "a session makes no login links; use a token")
	case !sameMachine(c.r):
		return berth.Errorf(berth.Denied, "code", "login links are for the machine of the service alone; log in with a token")
	}
	now := c.Now()
	return c.answer(http.StatusCreated, &form.Link{Code: c.door.links.make(c.linkOf(), now), Expires: form.TimeOf(now.Add(linkLasts)), At: c.at})
}

const (
	linkLasts berth.Duration = 120
	// maxLinks is how many codes there are at once: far more than people open pages.
	maxLinks = 1024
)

// Links are codes that each open one session, within two minutes. They are kept in memory
// alone. The zero value has none; it is safe for concurrent use.
type Links struct {
	mu sync.Mutex
	of map[string]link
}

type link struct {
	token   string // its id; of a user of the machine or a provider, the way
	user    string // of these; else ""
	way     identity.Way
	groups  []string   // at an OpenID provider
	until   berth.Time // when the credential expires; 0 is never
	expires berth.Time
}

// Make returns a code that opens a session of a token.
func (l *Links) Make(tokenID string, now berth.Time) string { return l.make(link{token: tokenID}, now) }

func (l *Links) make(of link, now berth.Time) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for code, one := range l.of {
		if one.expires <= now {
			delete(l.of, code)
		}
	}
	if l.of == nil || len(l.of) >= maxLinks {
		l.of = map[string]link{}
	}
	code := rand.Text() + rand.Text()
	of.expires = now.Add(linkLasts)
	l.of[code] = of
	return code
}

// take uses a code up.
func (l *Links) take(code string, now berth.Time) (of link, good bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one, known := l.of[code]
	delete(l.of, code)
	return one, known && now < one.expires
}

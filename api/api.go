package api

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/courier"
	"github.com/berth-hpc/berth/api/identity"
	"github.com/berth-hpc/berth/api/laboratory"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
)

// Options says what the API works with. Service and Tokens are needed.
type Options struct {
	Service Service
	Tokens  *token.Store
	// Identity says who asks without a token of Tokens; nil is that all need one.
	Identity *identity.Ways
	// Registry is what /metrics shows, with the API's own figures added; nil is
	// a new one.
	Registry *prometheus.Registry
	Log      *slog.Logger // nil is none
	Version  string       // of the program, for the description
	// Limits is the table of limits of users. The API applies rate, burst, streams and
	// request_bytes; the service and the engine apply the others. nil is service.DefaultLimits.
	Limits policy.Limits
	// Access says who sees and uses some sites alone.
	Access []service.Access
	// MetricsToken has /metrics answer only who has a token, of any role.
	MetricsToken bool
	// Root answers what is no path of the API, such as the pages of the UI; nil
	// answers with a problem.
	Root http.Handler
	// Public is the address at which browsers reach the service through a proxy, such as
	// https://hpc.example.org/berth/; nil if they reach it as it listens.
	Public *url.URL
	// At is the address at which browsers on this machine reach the service, such as
	// http://127.0.0.1:7117; empty is unknown.
	At string
	// Links are those that open sessions; nil is none yet.
	Links *Links
	// Laboratory compares schedulers for users; nil is none.
	Laboratory *laboratory.Laboratory
	// Courier keeps the addresses of receivers of notices; nil is that none are sent.
	Courier *courier.Courier
	// Others are the services that share the journal with this one; nil is that it has it to itself.
	Others Others
	// Heartbeat is how often a stream of events that is silent says that it is
	// there; 0 is 15 s, as proxies cut off what is silent for 30 to 60 s.
	Heartbeat time.Duration
}

type api struct {
	Service
	tokens  *token.Store
	ways    *identity.Ways
	log     *slog.Logger
	rates   rates
	counts  counts
	beat    time.Duration
	streams streams
	desk    *desk
	access  []service.Access
	openapi func() []byte // made when it is first asked for
	boot    string        // of this start of the program
	gallery gallery
	// calendars are tags of calendars that were sent.
	calendars calendarTags
	door      door
	lab       *laboratory.Laboratory // nil if there is none
	courier   *courier.Courier       // nil if no notices are sent
	at        string                 // for browsers on this machine
	others    Others                 // nil if there are none
}

// New returns what answers the requests. It may be used at once by any number of
// clients.
func New(o Options) http.Handler {
	if o.Limits == nil {
		o.Limits = service.DefaultLimits()
	}
	a := &api{Service: o.Service, tokens: o.Tokens, ways: o.Identity, log: o.Log, rates: newRates(o.Limits), access: o.Access, streams: streams{of: map[string]int{}}, desk: newDesk(), beat: o.Heartbeat, boot: rand.Text(), door: newDoor(o.Public, o.Links), lab: o.Laboratory, courier: o.Courier, at: o.At, others: o.Others}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	if a.beat == 0 {
		a.beat = 15 * time.Second
	}
	registry := o.Registry
	if registry == nil {
		registry = prometheus.NewRegistry()
	}
	a.counts = newCounts(registry)
	if p := a.provider(); p != nil {
		registry.MustRegister(reachable(p))
	}
	a.openapi = sync.OnceValue(func() []byte { return describe(o.Version) })
	mux := http.NewServeMux()
	methods := map[string][]string{}
	served := map[string]bool{"GET /metrics": true} // patterns
	for i := range endpoints {
		e := &endpoints[i]
		path := e.pattern()
		mux.Handle(e.method+" "+path, a.handler(e))
		methods[path] = append(methods[path], e.method)
		served[e.method+" "+path] = true
	}
	for path, allowed := range methods {
		// A path such as /v1/workflows/plans is also one of /v1/workflows/{id}, which has other methods. What no pattern takes is answered
		// by others, below: a pattern costs time, since it is compared with those before it.
		for pattern, more := range methods {
			if pattern == path || !overlap(pattern, path) || strings.Count(path, "{") > strings.Count(pattern, "{") {
				continue
			}
			for _, method := range more {
				if !served[method+" "+path] {
					served[method+" "+path] = false
				}
			}
		}
		for _, method := range everyMethod {
			if is, taken := served[method+" "+path]; taken && !is {
				mux.HandleFunc(method+" "+path, notAllowed(slices.Clone(allowed)))
			}
		}
	}
	metrics := promhttp.HandlerFor(registry, promhttp.HandlerOpts{Registry: nil, ErrorHandling: promhttp.ContinueOnError})
	if o.MetricsToken {
		open := metrics
		metrics = a.handler(&endpoint{id: "metrics", method: http.MethodGet, role: service.Viewer, do: func(c *call) error {
			open.ServeHTTP(c.w, c.r)
			return nil
		}})
	}
	mux.Handle("GET /metrics", metrics)
	// others answers what no endpoint serves: with 405 where one serves the path by another method,
	// for the methods that HTTP may have are without number.
	others := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var allowed []string
			for _, method := range everyMethod {
				if _, pattern := mux.Handler(&http.Request{Method: method, URL: r.URL, Host: r.Host}); served[pattern] && method != http.MethodHead {
					allowed = append(allowed, method)
				}
			}
			if len(allowed) > 0 {
				notAllowed(allowed)(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
	mux.Handle("/v1/", others(http.HandlerFunc(NotFound)))
	if o.Root == nil {
		o.Root = http.HandlerFunc(NotFound)
	}
	mux.Handle("/", others(a.door.pages(o.Root)))
	return a.door.underPrefix(mux)
}

// Server returns a server for a handler that lets no slow client hold it up:
// headers, bodies and answers each have their time.
func Server(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, WriteTimeout: time.Minute, IdleTimeout: time.Minute,
		MaxHeaderBytes: 1 << 15, ConnContext: identity.ConnContext,
	}
}

// everyMethod is the methods of HTTP.
var everyMethod = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace,
}

func notAllowed(methods []string) http.HandlerFunc {
	if slices.Contains(methods, http.MethodGet) {
		methods = append(methods, http.MethodHead)
	}
	slices.Sort(methods)
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", strings.Join(methods, ", "))
		writeProblem(w, problem(http.StatusMethodNotAllowed, berth.Invalid, fmt.Sprintf("%.20s; want %s", r.Method, strings.Join(methods, " or "))))
	}
}

// overlap reports whether some path is one of both patterns.
func overlap(a, b string) bool {
	for a != "" && b != "" {
		var one, other string
		one, a, _ = strings.Cut(a, "/")
		other, b, _ = strings.Cut(b, "/")
		if one != other && !strings.HasPrefix(one, "{") && !strings.HasPrefix(other, "{") {
			return false
		}
	}
	return a == "" && b == ""
}

// NotFound answers that there is no such path.
func NotFound(w http.ResponseWriter, r *http.Request) {
	writeProblem(w, problem(http.StatusNotFound, berth.NotFound, fmt.Sprintf("no such path as %.100q; /openapi.json has them all", r.URL.Path)))
}

// handler wraps an endpoint: a panic of ours ends the request and not the
// process, what is asked is counted, and who asks is known and not too fast.
func (a *api) handler(e *endpoint) http.HandlerFunc {
	count := a.counts.of(e)
	return func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		watched := &watched{ResponseWriter: w}
		defer func() {
			fault := recover()
			if fault != nil && fault != http.ErrAbortHandler { //nolint:errorlint // a panic's value is no chain of errors
				stack := debug.Stack()
				if raised, is := fault.(*site.Panic); is {
					stack = raised.Stack
				}
				a.log.Error("panic", "endpoint", e.id, "fault", fault, "stack", string(stack))
				if watched.status == 0 {
					writeProblem(watched, problem(http.StatusInternalServerError, berth.Internal, "an internal error; the log of the service says more"))
				}
			}
			count(watched.status, time.Since(began))
			if fault != nil && watched.status == 0 {
				panic(http.ErrAbortHandler)
			}
		}()
		h := w.Header()
		h["X-Content-Type-Options"], h["Cache-Control"] = noSniff, noStore
		c := &call{api: a, w: watched, r: r, id: callID(r.Header.Get(requestID))}
		h.Set(requestID, c.id)
		if err := c.serve(e); err != nil {
			c.fail(e, err)
		}
	}
}

// The headers of all answers are the same lists, which are not written: to add to one makes another.
var noSniff, noStore = []string{"nosniff"}, []string{"no-store"}

// serve does what an endpoint is for.
func (c *call) serve(e *endpoint) error {
	if e.role != "" {
		if err := c.identify(e.role); err != nil {
			return err
		}
		if held := c.token.Scopes; !e.anyScope && !held.Has(e.scopes()) {
			return beyondScope(held, e.scopes())
		}
		if c.token.OfAccount && !e.anyScope && !token.AccountScopes.Has(e.scopes()) { // whatever the file of tokens says
			return errAccount("makes and ends no tokens")
		}
	}
	defer c.rest()
	if err := c.elsewhere(e); err != nil {
		return err
	}
	if e.costly {
		if err := c.begin(); err != nil {
			return err
		}
	}
	if e.body != nil && e.bare && c.r.ContentLength == 0 {
		c.body = []byte("{}")
	} else if e.body != nil {
		if err := c.readBody(); err != nil {
			return err
		}
	}
	err := e.do(c)
	if err != nil && e.keyed && !e.siteKeys {
		err = c.refused(err)
	}
	return err
}

// refused returns the error that is the answer to what was asked under a key, which is remembered: what was refused stays
// refused. Where there is no key, or it may be tried again, that is the error itself.
func (c *call) refused(err error) error {
	ask, unread := c.ask()
	if _, is := errors.AsType[*statusError](err); is || unread != nil || ask.Key == "" {
		return err
	}
	c.rest()
	return c.Refuse(c.r.Context(), ask, err)
}

// fail answers with a problem.
func (c *call) fail(e *endpoint, err error) {
	c.rest()
	p, known := problemOf(err)
	if s, is := errors.AsType[*statusError](err); is {
		p.Status, p.Title = s.status, http.StatusText(s.status)
	}
	if !known {
		c.log.Error("failed", "endpoint", e.id, "user", c.by.User, "error", err)
	}
	if c.others != nil && p.Status == http.StatusServiceUnavailable && c.mayAskAgain(e) {
		p.Leader = c.others.Leader(c.r.Context())
	}
	if c.challenge != "" {
		c.w.Header().Add("WWW-Authenticate", c.challenge)
	}
	writeProblem(c.w, p)
}

// identify finds out who asks.
func (c *call) identify(least service.Role) error {
	scheme, secret, _ := strings.Cut(c.r.Header.Get("Authorization"), " ")
	entry, outdated, known := c.tokens.Check(secret)
	known = known && strings.EqualFold(scheme, "Bearer") && !entry.IsSession()
	if c.r.Header.Get("Authorization") == "" {
		var err error
		if secret, entry, outdated, known, err = c.session(); err != nil {
			return err
		}
	}
	if !known {
		caller, is, err := c.ways.Of(c.r, c.Now())
		switch {
		case err != nil:
			return c.unidentified(err)
		case !is:
			return c.unidentified(berth.Errorf(berth.Denied, "Authorization", "want Bearer and a token of this service; an operator makes them with berth token add"))
		}
		// What the machine says is no token of the store, and cannot be revoked there.
		secret, entry, outdated = "", token.Entry{ID: string(caller.Way), User: caller.User, Role: caller.Role, Expires: caller.Expires}, nil
		if c.caller = caller; caller.Way == identity.OIDC {
			c.met(&caller)
		}
	}
	if entry.ExpiredAt(c.Now()) {
		return &statusError{http.StatusUnauthorized, expired(&entry)}
	}
	by, err := c.standings().narrowed(c.r.Context(), &entry)
	if err != nil {
		return c.unidentified(err)
	}
	if entry.OfMachine() { // the roles may be others than when the session was opened
		caller, err := c.ways.Named(c.r.Context(), entry.User)
		if err != nil {
			return c.unidentified(err)
		}
		by.Role, c.caller = caller.Role, caller
	}
	if entry.OfProvider() {
		caller, err := c.ways.Member(entry.User, entry.GroupList())
		if err != nil {
			return c.unidentified(err)
		}
		by.Role, c.caller = caller.Role, caller
	}
	by.Sites = by.Sites.And(service.SitesOf(c.access, by))
	c.by, c.secret, c.token, c.outdated = by, secret, entry, outdated
	if !c.rates.allow(c.asker(), 1) {
		c.slowDown()
		return tooFast(c.asker())
	}
	if !by.Can(least) {
		return berth.Errorf(berth.Denied, "role", "a %s may not do this; it takes the role of %s", by.Role, least)
	}
	return nil
}

// beyondScope is the error about a call with a token of some scopes that takes others.
func beyondScope(held, wanted token.Scopes) error {
	if wanted.All() {
		return berth.Errorf(berth.Denied, "scope", "the token is for %s alone; this takes one of all scopes", held)
	}
	return berth.Errorf(berth.Denied, "scope", "the token is for %s alone; this takes %s", held, wanted)
}

// unidentified is the error about a call by an unknown caller. A credential that is no
// good is answered with 401, and an account that may not do anything with 403.
func (c *call) unidentified(err error) error {
	e, is := errors.AsType[*berth.Error](err)
	if !is || e.Code != berth.Denied || e.Field != "Authorization" {
		return err
	}
	c.challenge = c.ways.Challenge()
	return &statusError{http.StatusUnauthorized, e}
}

// expired says that a token was good until a time that is over.
func expired(e *token.Entry) *berth.Error {
	return berth.Errorf(berth.Denied, "Authorization", "token %s has expired at %s; an operator makes another one with berth token add", e.ID, stamp(e.Expires))
}

// requestID is the header that names a call: what the client, or a proxy before us,
// calls it, else a name of ours. It stands on record with what the call changed.
const requestID = "X-Request-Id"

const maxRequestID = 64

func callID(given string) string {
	if given != "" && len(given) <= maxRequestID && !strings.ContainsFunc(given, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return given
	}
	return rand.Text()
}

// watched notes the status of an answer.
type watched struct {
	http.ResponseWriter
	status int
}

func (w *watched) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *watched) Write(data []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(data)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }

package api

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/service"
)

// asked reads a request from the body.
func (c *call) asked(b body[asked]) (r berth.Request, a asked, err error) {
	var wrong faults
	defer c.rest() // what follows waits for the service
	b.read(c.body, &a, &wrong)
	if len(wrong) > 0 {
		return berth.Request{}, asked{}, wrong.err()
	}
	r, err = a.request(c.Now())
	return r, a, err
}

func (c *call) request() error {
	ask, err := c.ask()
	if err != nil {
		return err
	}
	r, a, err := c.asked(submitBody)
	ask.FromNow = a.fromNow()
	array := a.array
	if err != nil || array > 0 {
		if known, was := c.recallRequest(ask); known {
			return was
		}
	}
	if err != nil {
		return err
	}
	if array > 0 {
		return c.requestArray(ask, &r, array)
	}
	answer, err := c.Submit(c.r.Context(), ask, r)
	if err != nil {
		return err
	}
	return c.decided(http.StatusCreated, &answer)
}

// recallRequest answers a request as it was answered before under the same key; known
// is false if it was not, or not all parts of the array were. It is for bodies that are
// refused today, because times in them lie in the past by now, and for arrays, which cost their parts if
// they are new; Submit looks for one request by itself, in the turn that it takes anyway.
func (c *call) recallRequest(ask service.Ask) (known bool, err error) {
	if ask.Key == "" {
		return false, nil
	}
	var of struct {
		Array int `json:"array"`
	}
	_ = json.Unmarshal(c.body, &of) // what is wrong with it is said where it is read
	answers, err := c.Recall(c.r.Context(), ask, of.Array)
	switch {
	case err != nil:
		return true, err
	case answers == nil:
		return false, nil
	case of.Array > 0:
		return true, c.arrayDecided(answers)
	}
	return true, c.decided(http.StatusCreated, &answers[0])
}

// requestArray asks for each part of an array, each of which counts as
// a request.
func (c *call) requestArray(ask service.Ask, r *berth.Request, parts int) error {
	if most := c.rates.most(c.asker()); parts > most {
		return berth.Errorf(berth.Invalid, "array", "%d; a %s may ask for %d at once here, so ask for several arrays", parts, c.by.Role, most)
	}
	if !c.rates.allow(c.asker(), parts-1) {
		return tooFast(c.asker())
	}
	c.rates.charge(c.asker(), (parts-1)*(len(c.body)/bytesAtOnce)) // each part has all that the body says
	answers, err := c.SubmitArray(c.r.Context(), ask, *r, parts)
	if err != nil {
		return err
	}
	return c.arrayDecided(answers)
}

// arrayDecided writes the answer to an array.
func (c *call) arrayDecided(answers []service.Answer) error {
	if err := c.telling(len(answers)); err != nil {
		return err
	}
	f := arrayDecision(answers)
	return c.answer(http.StatusCreated, &f)
}

// decided writes the answer to a request.
func (c *call) decided(status int, a *service.Answer) error {
	if err := c.telling(1); err != nil {
		return err
	}
	f := decision(a)
	h := c.w.Header()
	h.Set("ETag", etag(a.Reservation.Version))
	if status == http.StatusCreated {
		h.Set("Location", "/v1/reservations/"+a.Reservation.ID)
	}
	return c.answer(status, &f)
}

// The most offers of one answer: there are six differences, and further sites.
const (
	defaultOffers = 5
	maxOffers     = 50
)

var mostParam = param{"most", "How many offers at most; 5 by default.", whole(1, maxOffers)}

var offersParams = []param{
	mostParam,
	{"chance", "Whether to tell how probable acceptance is if the request is made in an hour or a day, and that an ordinary job of its size starts in time.", truth()},
}

func (c *call) offers() error {
	query, err := c.query(offersParams)
	if err != nil {
		return err
	}
	most := defaultOffers
	if text, given := query["most"]; given {
		n, err := value(text).whole(1, maxOffers)
		if err != nil {
			return berth.Errorf(berth.Invalid, "most", "%v", err)
		}
		most = int(n)
	}
	chance := false
	if text, given := query["chance"]; given {
		if chance, err = value(text).truth(); err != nil {
			return berth.Errorf(berth.Invalid, "chance", "%v", err)
		}
	}
	r, a, err := c.asked(requestBody)
	if err != nil {
		return err
	}
	ask := service.Ask{By: c.by, FromNow: a.fromNow()}
	list, err := c.Offers(c.r.Context(), ask, r, most)
	if err != nil {
		return err
	}
	f := form.Offers{Offers: offers(list)}
	if chance {
		if err := c.begin(); err != nil {
			return err
		}
		list, looked, err := c.Chances(c.r.Context(), ask, r)
		c.rates.charge(c.asker(), looked/lookedAtOnce)
		if err != nil {
			return err
		}
		f.Chances = chances(list)
	}
	return c.answer(http.StatusOK, f)
}

var holdBody = body[berth.Duration]{
	{"hold", "For how long; half an hour if it is not given.", holding(), func(hold *berth.Duration, v value) error {
		d, err := v.hold()
		if err == nil && d == 0 {
			return errors.New("false; want for how long, or true for half an hour")
		}
		*hold = d
		return err
	}},
}

func (c *call) hold() error {
	hold := defaultHold
	ask, err := read(c, holdBody, &hold)
	if err != nil {
		return err
	}
	answer, err := c.Hold(c.r.Context(), ask, c.r.PathValue("id"), hold)
	if err != nil {
		return err
	}
	return c.decided(http.StatusCreated, &answer)
}

// read reads a body and what the headers say.
func read[T any](c *call, b body[T], into *T) (service.Ask, error) {
	defer c.rest() // what follows waits for the service
	var wrong faults
	b.read(c.body, into, &wrong)
	if len(wrong) > 0 {
		return service.Ask{}, wrong.err()
	}
	return c.ask()
}

var listParams = []param{
	{"user", "Only of this user.", text("alice")},
	{"site", "Only at this site.", text("cm5")},
	{"name", "Only of this name.", text("weekly-run")},
	{"state", "Only in these states, with commas between them.", text("held,confirmed")},
	{"from", "Only what holds PEs after this time.", instant()},
	{"to", "Only what holds PEs before this time.", instant()},
	{"limit", "How many at most; 100 by default.", whole(1, maxPage)},
	{"cursor", "The next of the page before.", text("")},
}

// lookedAtOnce is how many reservations, or tasks of workflows, are looked at for the price of one call.
const lookedAtOnce = 500

const (
	defaultPage = 100
	maxPage     = 999 // the service returns at most one more, which tells whether there is one
)

var states = []service.State{
	service.Pending, service.Held, service.Confirmed, service.Degraded, service.Active, service.Finished,
	service.Cancelled, service.Expired, service.NoShow, service.Failed, service.Refused,
}

// filter reads the query of a list.
func filter(query map[string]string) (service.Filter, error) {
	var wrong faults
	f := service.Filter{User: query["user"], Site: query["site"], Name: query["name"]}
	if text, given := query["state"]; given {
		for name := range strings.SplitSeq(text, ",") {
			if !slices.Contains(states, service.State(name)) {
				wrong.add("state", fmt.Errorf("%.40q; want some of %s", name, joined(states)))
			}
			f.States = append(f.States, service.State(name))
		}
	}
	for _, bound := range []struct {
		name string
		into *berth.Time
	}{{"from", &f.From}, {"to", &f.To}} {
		if text, given := query[bound.name]; given {
			t, err := parseInstant(text, down)
			wrong.add(bound.name, err)
			*bound.into = t
		}
	}
	switch {
	case f.From != 0 && f.To == 0:
		f.To = berth.Forever
	case f.To != 0 && f.From >= f.To:
		wrong.add("to", errors.New("not after from; want a later time"))
	}
	f.Limit, f.After = pageOf(query, &wrong)
	return f, wrong.err()
}

// pageOf reads how many entries a page has, and after which one it begins: empty is
// the first page.
func pageOf(query map[string]string, wrong *faults) (limit int, after string) {
	limit = defaultPage
	if text, given := query["limit"]; given {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxPage {
			wrong.add("limit", fmt.Errorf("%.40q; want 1 to %d", text, maxPage))
		}
		limit = n
	}
	last, err := base64.RawURLEncoding.DecodeString(query["cursor"])
	if err != nil || !utf8.Valid(last) {
		wrong.add("cursor", fmt.Errorf("%.40q; want the next of the page before", query["cursor"]))
	}
	return limit, string(last)
}

// cursor names the page after an entry.
func cursor(last string) string { return base64.RawURLEncoding.EncodeToString([]byte(last)) }

func joined[T ~string](names []T) string {
	list := make([]string, len(names))
	for i := range names {
		list[i] = string(names[i])
	}
	return strings.Join(list, ", ")
}

func (c *call) list() error {
	query, err := c.query(listParams)
	if err != nil {
		return err
	}
	f, err := filter(query)
	if err != nil {
		return err
	}
	limit := f.Limit
	f.Limit++
	list, looked, err := c.List(c.r.Context(), c.by, f)
	c.rates.charge(c.asker(), looked/lookedAtOnce)
	if err != nil {
		return err
	}
	page := form.Page{Reservations: make([]form.Reservation, 0, min(len(list), limit))}
	if len(list) > limit {
		list = list[:limit]
		page.Next = cursor(list[limit-1].ID)
	}
	for i := range list {
		page.Reservations = append(page.Reservations, reservation(&list[i]))
	}
	return c.answer(http.StatusOK, &page)
}

// get answers with a reservation by its id, or by a word that can be no other. Then it says which it is by
// Content-Location, and whatever version the client has seen may have been of another.
func (c *call) get() error {
	word := c.r.PathValue("id")
	r, err := c.Get(c.r.Context(), c.by, word)
	if coded, is := errors.AsType[*berth.Error](err); is && coded.Code == berth.NotFound {
		if err := c.begin(); err != nil {
			return err
		}
		var looked int
		r, looked, err = c.Find(c.r.Context(), c.by, word)
		c.rates.charge(c.asker(), looked/lookedAtOnce)
		if err != nil {
			return err
		}
		c.w.Header().Set("Content-Location", "/v1/reservations/"+r.ID)
		return c.shown(&r)
	}
	if err != nil {
		return err
	}
	if c.r.Header.Get("If-None-Match") == etag(r.Version) {
		c.w.Header().Set("ETag", etag(r.Version))
		c.w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return c.shown(&r)
}

// shown answers with a reservation.
func (c *call) shown(r *service.Reservation) error {
	c.w.Header().Set("ETag", etag(r.Version))
	f := reservation(r)
	return c.answer(http.StatusOK, &f)
}

// recall answers a change as it was answered before under the same key; known is false
// if it was not. What a change is made of may be gone or be another by now, so this
// comes before it is looked at.
func (c *call) recall(ask service.Ask) (known bool, err error) {
	answers, err := c.Recall(c.r.Context(), ask, 0)
	if err != nil || answers == nil {
		return err != nil, err
	}
	return true, c.decided(http.StatusOK, &answers[0])
}

// patchBody is what of a request can be changed.
var patchBody = slices.DeleteFunc(slices.Clone(requestBody), func(f field[asked]) bool {
	return f.name == "kind" || f.name == "user" || f.name == "hold"
})

// modifyTries is how often a change is tried anew because another caller changed
// the reservation in between.
const modifyTries = 5

func (c *call) modify() error {
	ask, err := c.ask()
	if err != nil {
		return err
	}
	c.rest()
	if known, err := c.recall(ask); known {
		return err
	}
	return c.asRead(ask, func(ask service.Ask, was *service.Reservation) (service.Answer, error) {
		if len(c.body) > lightBody {
			if err := c.begin(); err != nil {
				return service.Answer{}, err
			}
		}
		a := asked{Request: was.Request}
		var wrong faults
		patchBody.read(c.body, &a, &wrong)
		if len(wrong) > 0 {
			return service.Answer{}, wrong.err()
		}
		r, err := a.modified(was, c.Now())
		if err != nil {
			return service.Answer{}, err
		}
		c.rest()
		ask.FromNow, ask.Keeps = a.fromNow(), a.keeps()
		return c.Modify(c.r.Context(), ask, was.ID, r)
	})
}

// asRead has a reservation changed in a way that depends on what it was read as: again if it has changed
// meanwhile, unless the client said which version it has seen.
func (c *call) asRead(ask service.Ask, change func(ask service.Ask, was *service.Reservation) (service.Answer, error)) error {
	seen := ask.IfVersion
	for try := 1; ; try++ {
		was, err := c.Get(c.r.Context(), c.by, c.r.PathValue("id"))
		if err != nil {
			return err
		}
		if seen == 0 {
			ask.IfVersion = was.Version // what is not given must be as it was read
		}
		answer, err := change(ask, &was)
		if coded, is := errors.AsType[*berth.Error](err); is && seen == 0 && try < modifyTries && statusOf(coded) == http.StatusPreconditionFailed {
			continue
		}
		if err != nil {
			return err
		}
		return c.decided(http.StatusOK, &answer)
	}
}

type extension struct {
	until *berth.Time
	by    *berth.Duration
}

var extendBody = body[extension]{
	{"until", "Its new end.", instant(), func(e *extension, v value) error {
		t, err := v.instant(down)
		e.until = &t
		return err
	}},
	{"by", "How much longer, instead of until.", duration(), func(e *extension, v value) error {
		d, err := v.length(1)
		e.by = &d
		return err
	}},
}

func (c *call) extend() error {
	var e extension
	ask, err := read(c, extendBody, &e)
	switch {
	case err != nil:
		return err
	case (e.until == nil) == (e.by == nil):
		return berth.Errorf(berth.Invalid, "until", "want either until, the new end, or by, how much longer")
	}
	if known, err := c.recall(ask); known {
		return err
	}
	if e.by != nil {
		return c.asRead(ask, func(ask service.Ask, was *service.Reservation) (service.Answer, error) {
			if len(was.Allotments) == 0 {
				return service.Answer{}, berth.Errorf(berth.Conflict, "id", "%q is %s; there is nothing to extend", was.ID, was.State)
			}
			return c.Extend(c.r.Context(), ask, was.ID, was.Allotments[0].End.Add(*e.by))
		})
	}
	answer, err := c.Extend(c.r.Context(), ask, c.r.PathValue("id"), *e.until)
	if err != nil {
		return err
	}
	return c.decided(http.StatusOK, &answer)
}

// action does something to a reservation that needs no more to be said.
func (c *call) action(do func(ask service.Ask, id string) (service.Reservation, error)) error {
	ask, err := c.ask()
	if err != nil {
		return err
	}
	r, err := do(ask, c.r.PathValue("id"))
	if err != nil {
		return err
	}
	return c.shown(&r)
}

func (c *call) confirm() error {
	return c.action(func(ask service.Ask, id string) (service.Reservation, error) {
		return c.Confirm(c.r.Context(), ask, id)
	})
}

func (c *call) release() error {
	return c.action(func(ask service.Ask, id string) (service.Reservation, error) {
		return c.Release(c.r.Context(), ask, id)
	})
}

func (c *call) prepare() error {
	return c.action(func(ask service.Ask, id string) (service.Reservation, error) {
		return c.Prepare(c.r.Context(), ask, id)
	})
}

func (c *call) checkIn() error {
	return c.action(func(ask service.Ask, id string) (service.Reservation, error) {
		return c.CheckIn(c.r.Context(), ask, id)
	})
}

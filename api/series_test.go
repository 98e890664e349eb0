package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/form"
)

const seriesFor = `{"npe":2,"duration":"1h","repeat":"every weekday 09:00","time_zone":"Europe/Berlin","times":3}`

// A series is asked for, shown, listed page by page and given back; times are those of the zone.
func TestSeriesOverHTTP(t *testing.T) {
	w := newWorld(t, api.Options{})
	answer := into[form.SeriesAnswer](t, w.do("alice", "POST", "/v1/series", seriesFor), http.StatusCreated)
	s := answer.Series
	if answer.Decision != form.Accepted || s.Count != 3 || s.Live != 3 || s.AtLeast != 3 || s.TimeZone != "Europe/Berlin" || len(s.Occurrences) != 3 {
		t.Fatalf("the answer is %+v", answer)
	}
	for i, want := range []string{"2026-11-23T08:00:00Z", "2026-11-24T08:00:00Z", "2026-11-25T08:00:00Z"} { // it is a Saturday
		o := &s.Occurrences[i]
		if got, _ := o.Start.MarshalText(); string(got) != want || o.Deadline-o.Ready != 3600 || o.NPE != 2 {
			t.Errorf("occurrence %d starts at %s and is due %d s later; want %s", i+1, got, o.Deadline-o.Ready, want)
		}
	}
	if got := into[form.Series](t, w.do("alice", "GET", "/v1/series/"+s.ID, ""), http.StatusOK); got.Occurrences[1].ID != s.ID+".2" {
		t.Errorf("it is shown as %+v", got)
	}
	named := into[form.SeriesAnswer](t, w.do("alice", "POST", "/v1/series", strings.Replace(seriesFor, "{", `{"name":"standup",`, 1)), http.StatusCreated).Series
	byName := w.do("alice", "GET", "/v1/series/standup", "")
	if got := into[form.Series](t, byName, http.StatusOK); got.ID != named.ID || byName.Header().Get("Content-Location") != "/v1/series/"+named.ID {
		t.Errorf("by its name it is %+v at %q", got, byName.Header().Get("Content-Location"))
	}
	if a := w.do("bob", "GET", "/v1/series/standup", ""); a.Code != http.StatusNotFound {
		t.Errorf("to others it is %d %s", a.Code, a.text)
	}
	page := into[form.SeriesList](t, w.do("alice", "GET", "/v1/series?limit=1", ""), http.StatusOK)
	if len(page.Series) != 1 || page.Next == "" || page.Series[0].Occurrences != nil {
		t.Errorf("the first page is %+v", page)
	}
	if page = into[form.SeriesList](t, w.do("alice", "GET", "/v1/series?limit=1&cursor="+page.Next, ""), http.StatusOK); len(page.Series) != 1 || page.Next != "" {
		t.Errorf("the second page is %+v", page)
	}
	if got := into[form.SeriesAnswer](t, w.do("alice", "POST", "/v1/series/"+s.ID+"/cancel", `{"from":2,"to":2}`), http.StatusOK).Series; got.Live != 2 || got.Occurrences[1].State != "cancelled" {
		t.Errorf("after one was skipped it is %+v", got)
	}
	if got := into[form.SeriesAnswer](t, w.do("alice", "POST", "/v1/series/"+s.ID+"/cancel", ""), http.StatusOK).Series; got.Live != 0 {
		t.Errorf("after all were given back it is %+v", got)
	}
	large := into[form.SeriesAnswer](t, w.do("alice", "POST", "/v1/series", strings.Replace(seriesFor, `"npe":2`, `"npe":200`, 1)), http.StatusCreated)
	if large.Decision != form.Refused || large.Series.Occurrences[2].Reason != "too_large" || large.Series.Occurrences[2].Refusal.Detail == "" {
		t.Errorf("what is too large is answered %+v", large)
	}
}

// Occurrences change together, and what stands in the way of each is told.
func TestSeriesChangeOverHTTP(t *testing.T) {
	w := newWorld(t, api.Options{})
	s := into[form.SeriesAnswer](t, w.do("alice", "POST", "/v1/series", seriesFor), http.StatusCreated).Series
	path := "/v1/series/" + s.ID + "/modify"
	changed := into[form.SeriesAnswer](t, w.do("alice", "POST", path, `{"from":2,"by":-1800,"npe":4}`), http.StatusOK)
	if o := changed.Series.Occurrences; changed.Decision != form.Accepted || o[0].Start != s.Occurrences[0].Start || o[1].Start != s.Occurrences[1].Start-1800 || o[2].NPE != 4 {
		t.Errorf("it is %+v", changed)
	}
	if m := changed.Series.Moved; !slices.Equal(m, []form.MovedOccurrences{{From: 2, To: 3, By: -1800}}) || changed.Series.Occurrences[1].Ready != s.Occurrences[1].Ready-1800 {
		t.Errorf("moved are %+v, and it is %+v", m, changed.Series)
	}
	if a := w.do("alice", "POST", path, `{"from":3,"to":3,"by":1800}`); a.Code != http.StatusOK {
		t.Errorf("%d %s", a.Code, a.text)
	}
	got := into[form.Series](t, w.do("alice", "GET", "/v1/series/"+s.ID, ""), http.StatusOK)
	listed := into[form.SeriesList](t, w.do("alice", "GET", "/v1/series", ""), http.StatusOK).Series
	if want := []form.MovedOccurrences{{From: 2, To: 2, By: -1800}}; !slices.Equal(got.Moved, want) || len(listed) != 1 || !slices.Equal(listed[0].Moved, want) {
		t.Errorf("once the third is back in its place moved are %+v, in the list %+v", got.Moved, listed)
	}
	refused := into[form.SeriesAnswer](t, w.do("alice", "POST", path, `{"from":2,"to":2,"npe":400}`), http.StatusOK)
	if refused.Decision != form.Refused || len(refused.Refusals) != 1 || refused.Refusals[0].Number != 2 || refused.Refusals[0].Reason != "too_large" || refused.Refusals[0].Refusal.Detail == "" {
		t.Errorf("it is %+v", refused)
	}
	for body, field := range map[string]string{`{}`: "by", `{"from":2}`: "by", `{"by":"soon"}`: "by", `{"from":3,"to":2,"by":1}`: "from", `{"npe":0}`: "npe", `{"duration":0}`: "duration", `{"by":1,"kind":"job"}`: "kind"} {
		if a := w.do("alice", "POST", path, body); a.Code != http.StatusUnprocessableEntity || !strings.Contains(a.text, field) {
			t.Errorf("%s: %d %s; want 422 that names %s", body, a.Code, a.text, field)
		}
	}
}

// An open series shows the occurrences that have had their turn, and when the next has its own.
func TestOpenSeriesOverHTTP(t *testing.T) {
	w := newWorld(t, api.Options{})
	body := strings.Replace(seriesFor, `"times":3`, `"ahead":"8d"`, 1)
	s := into[form.SeriesAnswer](t, w.do("alice", "POST", "/v1/series", body), http.StatusCreated).Series
	until, _ := s.PromisedUntil.MarshalText()
	next, _ := s.Prolonged.MarshalText()
	last := s.Ends.String() // after ten years
	if !s.Open || s.Count != 5 || len(s.Occurrences) != 5 || s.AtLeast != 5 || s.Ahead != 8*24*3600 || string(until) != "2026-11-27T08:00:00Z" || string(next) != "2026-11-22T08:00:00Z" || !strings.HasPrefix(last, "2036-11-") {
		t.Errorf("it is %+v, promised until %s, the next turn at %s", s, until, next)
	}
	moved := into[form.SeriesAnswer](t, w.do("alice", "POST", "/v1/series/"+s.ID+"/modify", `{"from":5,"by":1800}`), http.StatusOK).Series
	if moved.PromisedUntil != s.PromisedUntil+1800 {
		t.Errorf("once the last has moved it is promised until %d, want %d", moved.PromisedUntil, s.PromisedUntil+1800)
	}
	s = moved
	if m := moved.Moved; !slices.Equal(m, []form.MovedOccurrences{{From: 5, To: 2610, By: 1800}}) {
		t.Errorf("moved are %+v, want all from the fifth on, those to come too", m)
	}
	skipped := into[form.SeriesAnswer](t, w.do("alice", "POST", "/v1/series/"+s.ID+"/cancel", `{"from":7,"to":7}`), http.StatusOK).Series
	if !skipped.Open || !slices.Equal(skipped.Skipped, []int{7}) {
		t.Errorf("it is %+v, want the seventh left out", skipped)
	}
	ended := into[form.SeriesAnswer](t, w.do("alice", "POST", "/v1/series/"+s.ID+"/cancel", `{"from":9}`), http.StatusOK).Series
	if last, _ := ended.Ends.MarshalText(); !ended.Open || ended.Live != 5 || string(last) != "2026-12-02T08:30:00Z" {
		t.Errorf("it is %+v and ends %s", ended, last)
	}
	if listed := into[form.SeriesList](t, w.do("alice", "GET", "/v1/series", ""), http.StatusOK).Series; len(listed) != 1 || !listed[0].Open || listed[0].Ahead != s.Ahead || listed[0].PromisedUntil != s.PromisedUntil || listed[0].Ends != ended.Ends {
		t.Errorf("it is listed as %+v", listed)
	}
	if over := into[form.SeriesAnswer](t, w.do("alice", "POST", "/v1/series/"+s.ID+"/cancel", ""), http.StatusOK).Series; over.Open || over.Live != 0 {
		t.Errorf("it is %+v, want nothing more of it", over)
	}
}

// What a change of the clock makes of a time is told.
func TestChangesOfTheClockAreTold(t *testing.T) {
	w := newWorld(t, api.Options{})
	body := `{"npe":2,"duration":60,"window":"2h","ready":"2027-03-28T00:00:00Z","repeat":"daily 02:30","time_zone":"Europe/Berlin","times":1,"at_least":1}`
	o := into[form.SeriesAnswer](t, w.do("alice", "POST", "/v1/series", body), http.StatusCreated).Series.Occurrences[0]
	if got, _ := o.Ready.MarshalText(); string(got) != "2027-03-28T01:30:00Z" || o.Shift != "later" || !strings.Contains(o.Note, "put forward") || o.Deadline-o.Ready != 7200 {
		t.Errorf("it is ready at %s, %+v", got, o)
	}
}

// What cannot be right is refused with its field.
func TestBadSeriesOverHTTP(t *testing.T) {
	w := newWorld(t, api.Options{})
	for body, field := range map[string]string{
		`{"npe":2,"duration":60,"repeat":"daily"}`:                                                                          "repeat",
		`{"npe":2,"duration":60}`:                                                                                           "repeat",
		`{"npe":2,"duration":60,"repeat":"RRULE:FREQ=SECONDLY","times":3}`:                                                  "repeat",
		`{"npe":2,"duration":60,"repeat":"daily","times":3,"time_zone":"Mars/Olympus"}`:                                     "time_zone",
		`{"npe":2,"duration":60,"repeat":"daily","times":3,"time_zone":"Local"}`:                                            "time_zone",
		`{"npe":2,"duration":60,"repeat":"daily","times":3,"at_least":4}`:                                                   "at_least",
		`{"npe":2,"duration":60,"repeat":"daily","ahead":0}`:                                                                "ahead",
		`{"npe":2,"duration":60,"repeat":"daily","ahead":"1d","ready":"2027-01-01T00:00:00Z"}`:                              "ahead",
		`{"npe":2,"duration":60,"repeat":"daily","ahead":"3d","at_least":5}`:                                                "at_least",
		`{"npe":2,"duration":60,"repeat":"RRULE:FREQ=SECONDLY","ahead":"3d"}`:                                               "repeat",
		`{"npe":2,"duration":60,"repeat":"daily","times":0}`:                                                                "times",
		`{"npe":2,"duration":60,"repeat":"daily","times":3,"window":30}`:                                                    "window",
		`{"npe":2,"duration":60,"repeat":"daily","times":3,"deadline":"2027-01-01T00:00:00Z"}`:                              "deadline",
		`{"npe":2,"duration":60,"repeat":"daily","times":3,"kind":"job"}`:                                                   "kind",
		`{"npe":2,"duration":60,"repeat":"daily","times":3,"except":["2020-01-01"]}`:                                        "except",
		`{"npe":2,"duration":60,"repeat":"daily","times":3,"add":["2020-01-01 09:00"]}`:                                     "add",
		`{"npe":2,"repeat":"daily","times":3}`:                                                                              "duration",
		`{"npe":2,"duration":60,"repeat":"yearly","times":3,"ready":"9998-01-01T00:00:00Z"}`:                                "",
		`{"npe":2,"duration":60,"repeat":"daily","times":3,"name":"` + strings.Repeat("x", 63) + `"}`:                       "name",
		`{"npe":2,"duration":60,"repeat":"daily","until":"2026-11-21T12:00:00Z","ready":"2026-11-22T00:00:00Z"}`:            "repeat",
		`{"npe":2,"duration":60,"repeat":"every monday and 09:00 and 10:30","times":3}`:                                     "repeat",
		`{"npe":2,"duration":60,"repeat":"RRULE:FREQ=DAILY;COUNT=3;UNTIL=20270101T000000Z","time_zone":"America/New_York"}`: "repeat",
	} {
		a := w.do("alice", "POST", "/v1/series", body)
		if field == "" {
			continue // whatever it is, it is answered
		}
		if a.Code != http.StatusUnprocessableEntity || !strings.Contains(a.text, field) {
			t.Errorf("%s: %d %s; want 422 that names %s", body, a.Code, a.text, field)
		}
	}
	wantProblem(t, w.do("alice", "POST", "/v1/series/none/cancel", `{"from":3,"to":2}`), http.StatusUnprocessableEntity, "from")
	wantProblem(t, w.do("alice", "GET", "/v1/series/none", ""), http.StatusNotFound)
}

// Five years of weekdays are one series, promised whole; what occurs more often than 4,000 times in ten years is refused.
func TestYearsOfWeekdaysOverHTTP(t *testing.T) {
	w := newWorld(t, api.Options{})
	body := strings.Replace(seriesFor, `"times":3`, `"times":1300`, 1)
	s := into[form.SeriesAnswer](t, w.do("alice", "POST", "/v1/series", body), http.StatusCreated)
	if s.Decision != form.Accepted || s.Series.Live != 1300 || len(s.Series.Occurrences) != 1300 || s.Series.Occurrences[1299].ID != s.Series.ID+".1300" {
		t.Errorf("%s, %d of %d are live", s.Decision, s.Series.Live, s.Series.Count)
	}
	if start, _ := s.Series.Occurrences[1299].Start.MarshalText(); string(start) != "2031-11-14T08:00:00Z" {
		t.Errorf("the last starts at %s", start)
	}
	a := w.do("alice", "POST", "/v1/series", strings.Replace(seriesFor, `"every weekday 09:00","time_zone":"Europe/Berlin","times":3`, `"hourly","time_zone":"Europe/Berlin","until":"2027-11-21T00:00:00Z"`, 1))
	if a.Code != http.StatusUnprocessableEntity || !strings.Contains(a.text, "more than 4000 times") {
		t.Errorf("a year of hours is answered %d %s", a.Code, a.text)
	}
}

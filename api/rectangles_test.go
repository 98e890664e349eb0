package api_test

import (
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/service"
)

// Starts are told with their reasons in words; without from and to only those that end in time.
func TestRectangles(t *testing.T) {
	w := newWorld(t, api.Options{})
	a := w.do("alice", "POST", "/v1/rectangles", askFor)
	got := into[form.Rectangles](t, a, 200)
	if len(got.Pools) != 1 || len(got.Pools[0].Stretches) != 2 || !w.fake.window.InTime() || w.fake.window.Most != 200 {
		t.Fatalf("%s, of %+v", a.text, w.fake.window)
	}
	fits, short := got.Pools[0].Stretches[0], got.Pools[0].Stretches[1]
	if fits.Refusal != nil || fits.End <= fits.Last || short.Refusal == nil || !strings.Contains(short.Refusal.Detail, "at most 1 are free") || short.End != 0 {
		t.Errorf("%s", a.text)
	}
	now := w.fake.now
	into[form.Rectangles](t, w.do("alice", "POST", "/v1/rectangles?most=7&from="+at(now-3600)+"&to="+at(now+7200), askFor), 200)
	if want := (service.Window{First: now - 3600, Last: now + 7200, Most: 7}); w.fake.window != want {
		t.Errorf("asked about %+v, want %+v", w.fake.window, want)
	}
}

// at writes a time as it stands in an address.
func at(t berth.Time) string { return time.Unix(int64(t), 0).UTC().Format(time.RFC3339) }

// What is wrong is told with its name, its value and what would be right.
func TestRectanglesBadInput(t *testing.T) {
	w := newWorld(t, api.Options{})
	for _, c := range []struct {
		query, body string
		status      int
		want        string
	}{
		{"?from=noon", askFor, 422, `"field":"from"`},
		{"?to=never", askFor, 422, `"field":"to"`},
		{"?to=" + at(w.fake.now-3600), askFor, 422, "the first start"},
		{"?to=" + at(w.fake.now+4000*86400), askFor, 422, "ten years"},
		{"?most=0", askFor, 422, `"field":"most"`},
		{"?most=1001", askFor, 422, `"field":"most"`},
		{"?limit=3", askFor, 422, "unknown parameter"},
		{"?most=1&most=2", askFor, 422, "given twice"},
		{"", `{"npe":0,"duration":60,"deadline":"2027-11-22T18:00:00Z"}`, 422, `"field":"npe"`},
		{"", `{"npe":1,"duration":7200,"deadline":"2001-11-22T18:00:00Z"}`, 422, `"field":"deadline"`},
		{"", `{"kind":"job","npe":1,"duration":60}`, 422, `"field":"kind"`},
		{"", `{"npe":1}`, 422, `"field":"duration"`},
		{"", `[]`, 422, "body"},
		{"", `{`, 422, "body"},
	} {
		a := w.do("alice", "POST", "/v1/rectangles"+c.query, c.body)
		if a.Code != c.status || !strings.Contains(a.text, c.want) {
			t.Errorf("%s %s: %d %s; want %d and %q", c.query, c.body, a.Code, a.text, c.status, c.want)
		}
	}
}

package api_test

import (
	"context"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/form"
)

// others are the services beside one that leads until it is told otherwise.
type others struct {
	elsewhere error
	asked     []string
}

const next = "https://b.example.org:7117"

func (o *others) Elsewhere() error { return o.elsewhere }

func (o *others) Leader(context.Context) string { return next }

func (o *others) Leading() form.Leading {
	return form.Leading{Leader: "https://a.example.org:7117", Record: 9, Standbys: []form.Standby{{Address: next, Record: 8, Behind: 0.5}}}
}

func (o *others) HandOver(_ context.Context, by, to string) (string, error) {
	o.asked = append(o.asked, by+" "+to)
	return next, nil
}

// What changes something goes to the service that leads. What was begun here, and cannot be finished, goes there only if
// it can be asked twice.
func TestCallsGoToTheServiceThatLeads(t *testing.T) {
	o := &others{}
	w := newWorld(t, api.Options{Others: o})
	stopping := berth.Errorf(berth.Unavailable, "service", "it is stopping")
	for _, c := range []struct {
		what      string
		elsewhere error
		fails     error
		headers   []string
		leader    bool
	}{
		{"before it is done", stopping, nil, nil, true},
		{"while it is done, without a key", nil, stopping, nil, false},
		{"while it is done, with a key", nil, stopping, []string{"Idempotency-Key", "k"}, true},
	} {
		o.elsewhere, w.fake.fails = c.elsewhere, c.fails
		a := w.do("alice", "POST", "/v1/requests", askFor, c.headers...)
		if a.Code != 503 || strings.Contains(a.text, `"leader":"`+next+`"`) != c.leader {
			t.Errorf("%s: %d %s", c.what, a.Code, a.text)
		}
	}
	o.elsewhere, w.fake.fails = stopping, nil
	if a := w.do("alice", "GET", "/v1/reservations", ""); a.Code != 200 {
		t.Errorf("reading: %d %s", a.Code, a.text)
	}
	o.elsewhere = nil
	if a := w.do("", "GET", "/readyz", ""); a.Code != 200 || !strings.Contains(a.text, `"leading":{"leader":"https://a.example.org:7117","record":9,"standbys":[{"address":"`+next+`","record":8,"behind_seconds":0.5,`) {
		t.Errorf("%d %s", a.Code, a.text)
	}
}

// A hand-over is asked for with an address, or with any.
func TestHandOverIsAskedFor(t *testing.T) {
	o := &others{}
	w := newWorld(t, api.Options{Others: o})
	for body, want := range map[string]int{`{"to":"` + next + `"}`: 200, `{"any":true}`: 200, `{}`: 422, `{"any":true,"to":"` + next + `"}`: 422, `{"any":1}`: 422} {
		if a := w.do("root", "POST", "/v1/lead", body); a.Code != want || want == 200 && !strings.Contains(a.text, `{"leader":"`+next+`"}`) {
			t.Errorf("%s: %d %s", body, a.Code, a.text)
		}
	}
	if len(o.asked) != 2 {
		t.Errorf("%q", o.asked)
	}
}

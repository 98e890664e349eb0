package api_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/courier"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/api/identity"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/notice"
	"github.com/berth-hpc/berth/service"
)

// A receiver is added, changed, given another secret and removed; its address is in no answer, and its secret in
// that alone which makes it.
func TestHooks(t *testing.T) {
	w := newWorld(t, api.Options{})
	made := w.do("alice", "POST", "/v1/hooks", `{"url":"https://hooks.example.org/T0/secretpath","note":"on-call"}`)
	h := into[form.Hook](t, made, 201)
	if h.Host != "hooks.example.org" || h.Form != "webhook" || h.User != "alice" || !strings.HasPrefix(h.Secret, "whsec_") || !slices.Contains(h.Kinds, "degraded") || h.Starts != 900 || strings.Contains(made.text, "secretpath") {
		t.Errorf("%s", made.text)
	}
	list := w.do("alice", "GET", "/v1/hooks", "")
	all := into[form.Hooks](t, list, 200).Hooks
	if len(all) != 1 || strings.Contains(list.text, h.Secret) || strings.Contains(list.text, "secretpath") || all[0].Last.Status != 500 {
		t.Errorf("%s", list.text)
	}
	changed := into[form.Hook](t, w.do("alice", "PATCH", "/v1/hooks/"+h.ID, `{"kinds":["granted","ended"],"starts":"1h","site":"cm5","enabled":false}`), 200)
	if changed.Secret != "" || len(changed.Kinds) != 2 || changed.Starts != 3600 || changed.Site != "cm5" || changed.Disabled != "by alice" || changed.Note != "on-call" {
		t.Errorf("%+v", changed)
	}
	if again := into[form.Hook](t, w.do("alice", "PATCH", "/v1/hooks/"+h.ID, `{"enabled":true}`), 200); again.Disabled != "" {
		t.Errorf("%+v", again)
	}
	if rotated := into[form.Hook](t, w.do("alice", "POST", "/v1/hooks/"+h.ID+"/rotate", ""), 200); rotated.Secret == h.Secret || rotated.Rotated == 0 {
		t.Errorf("%+v", rotated)
	}
	d := into[form.Deliveries](t, w.do("alice", "GET", "/v1/hooks/"+h.ID+"/deliveries", ""), 200).Deliveries
	if len(d) != 1 || d[0].State != "dead" || d[0].ID != "evt_4711_"+h.ID || d[0].Tries[0].Trouble == "" {
		t.Errorf("%+v", d)
	}
	if a := w.do("alice", "POST", "/v1/hooks/"+h.ID+"/resend", `{"notices":["`+d[0].ID+`"]}`); a.Code != 204 {
		t.Errorf("%d %s", a.Code, a.text)
	}
	wantProblem(t, w.do("alice", "POST", "/v1/hooks/"+h.ID+"/resend", `{"notices":["evt_4711-1795262395_`+h.ID+`"]}`), 404, "is no notice of this hook; want one that it has, such as evt_4711_")
	wantProblem(t, w.do("alice", "POST", "/v1/hooks/"+h.ID+"/resend", `{"notices":["evt_4711-0_`+h.ID+`"]}`), 422, "want the id of a notice of this hook")
	wantProblem(t, w.do("alice", "POST", "/v1/hooks/"+h.ID+"/resend", `{"notices":["evt_4711_other"]}`), 422, "want the id of a notice of this hook")
	wantProblem(t, w.do("alice", "POST", "/v1/hooks/"+h.ID+"/resend", `{"notices":[`+strings.Repeat(`"x",`, 1000)+`"x"]}`), 422, "1001 notices; want at most 1000 at a time")
	if a := w.do("alice", "DELETE", "/v1/hooks/"+h.ID, ""); a.Code != 204 {
		t.Errorf("%d %s", a.Code, a.text)
	}
	wantProblem(t, w.do("alice", "DELETE", "/v1/hooks/"+h.ID, ""), 404, "no hook")
}

func TestHooksThatAreNone(t *testing.T) {
	w := newWorld(t, api.Options{})
	for body, word := range map[string]string{
		`{}`:                                                                        "missing",
		`{"url":"ftp://x.example.org"}`:                                             "not an address",
		`{"url":"https://u:p@x.example.org"}`:                                       "user or a fragment",
		`{"url":"http://x.example.org"}`:                                            "want https",
		`{"url":"https://127.0.0.1/x"}`:                                             "inside the network",
		`{"url":"https://[::ffff:10.0.0.1]/x"}`:                                     "inside the network",
		`{"url":"https://169.254.169.254/latest"}`:                                  "inside the network",
		`{"url":"https://x.example.org","kinds":[]}`:                                "empty list",
		`{"url":"https://x.example.org","kinds":["grantd"]}`:                        "granted",
		`{"url":"https://x.example.org","site":"nowhere"}`:                          "want some of",
		`{"url":"https://x.example.org","text":"{x}","form":"chat"}`:                "want one of",
		`{"url":"https://x.example.org","text":"x"}`:                                "form chat",
		`{"url":"https://x.example.org","form":"pigeon"}`:                           "want one of",
		`{"url":"https://x.example.org","starts":"99d"}`:                            "30 days",
		`{"url":"mailto:ann@example.org","form":"chat"}`:                            "not an address",
		`{"url":"https://x.example.org","secret":"x"}`:                              "unknown field",
		`{"url":"https://x.example.org/` + strings.Repeat("x", 3000) + `"}`:         "at most",
		`{"url":"https://x.example.org","note":"` + strings.Repeat("x", 300) + `"}`: "at most",
	} {
		a := w.do("alice", "POST", "/v1/hooks", body)
		if a.Code < 400 || a.Code >= 500 || !strings.Contains(a.text, word) {
			t.Errorf("%.80s: %d %s", body, a.Code, a.text)
		}
	}
	wantProblem(t, w.do("alice", "POST", "/v1/hooks", `{"url":"mailto:ann@example.org"}`), 503, "no e-mail")
	wantProblem(t, w.do("alice", "POST", "/v1/hooks", `{"url":"https://x.example.org","form":"email"}`), 503, "no e-mail")
	if len(w.fake.hooks) != 0 {
		t.Errorf("%+v", w.fake.hooks)
	}
}

// got is what a receiver got.
type got struct {
	header http.Header
	body   []byte
}

// receiver is a server that answers with a status, and a messenger that may send to it.
func receiver(t *testing.T, status int, header ...string) (url string, received *[]got, m *api.Messenger, store *token.Store) {
	t.Helper()
	received = &[]got{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*received = append(*received, got{r.Header, body})
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.Copy(w, io.LimitReader(endless{}, 1<<20))
	}))
	t.Cleanup(server.Close)
	folder := t.TempDir()
	store, err := token.Open(folder, "root", start)
	if err != nil {
		t.Fatal(err)
	}
	c, err := courier.Open(courier.Options{Folder: folder, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	if err != nil {
		t.Fatal(err)
	}
	return server.URL, received, &api.Messenger{Courier: c, Tokens: store, Now: func() berth.Time { return start }, Version: "test"}, store
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// A notice of a hook that names notices by their times as well has the time in its id, and so has the first of a thread.
func TestNoticesAreNamedByTheirTimes(t *testing.T) {
	url, received, m, store := receiver(t, 204)
	_, entry, err := store.Add(token.Wanted{User: "alice", Role: service.User}, start)
	if err != nil {
		t.Fatal(err)
	}
	hook := service.Hook{ID: "h1", User: "alice", Form: service.WebhookForm, Parent: entry.ID, Dated: true}
	hook.Sealed = m.Courier.Seal("h1", &courier.Target{URL: url, Secrets: []courier.Secret{{Key: []byte("0123456789abcdef01234567")}}})
	o := &service.Owed{Number: 4711, At: start - 5, Dated: true, Kind: notice.Moved, Flow: &service.FlowNews{ID: "w1", User: "alice", State: service.FlowPromised, End: start + 100}}
	if sent := m.Send(context.Background(), &hook, o); sent != (service.Sent{Status: 204}) {
		t.Fatalf("%+v", sent)
	}
	if id := (*received)[0].header.Get("webhook-id"); id != "evt_4711-1795262395_h1" {
		t.Errorf("its id is %q", id)
	}
}

// A notice is signed with each secret that is good, and says what it is about in the form of the API.
func TestNoticesAreSigned(t *testing.T) {
	url, received, m, store := receiver(t, 204)
	_, entry, err := store.Add(token.Wanted{User: "alice", Role: service.User}, start)
	if err != nil {
		t.Fatal(err)
	}
	now, old, gone := []byte("0123456789abcdef01234567"), []byte("76543210fedcba9876543210"), []byte("gone")
	target := courier.Target{URL: url, Secrets: []courier.Secret{{Key: now}, {Key: old, Until: start + 1}, {Key: gone, Until: start}}}
	hook := service.Hook{ID: "h1", User: "alice", Form: service.WebhookForm, Parent: entry.ID}
	hook.Sealed = m.Courier.Seal("h1", &target)
	o := &service.Owed{Number: 4711, At: start - 5, Kind: notice.Moved, Flow: &service.FlowNews{ID: "w1", User: "alice", State: service.FlowPromised, End: start + 100}}
	if sent := m.Send(context.Background(), &hook, o); sent != (service.Sent{Status: 204}) {
		t.Fatalf("%+v", sent)
	}
	r := (*received)[0]
	id, at := r.header.Get("webhook-id"), r.header.Get("webhook-timestamp")
	var want []string
	for _, key := range [][]byte{now, old} {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + at + "." + string(r.body)))
		want = append(want, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	if id != "evt_4711_h1" || at != "1795262400" || r.header.Get("webhook-signature") != strings.Join(want, " ") || r.header.Get("Content-Type") != "application/json" {
		t.Errorf("%v, want %q", r.header, want)
	}
	var n form.Notice
	if err := json.Unmarshal(r.body, &n); err != nil || n.Type != "workflow.moved" || n.Data.Hook != "h1" || n.Data.Workflow.ID != "w1" || n.Data.Reservation != nil {
		t.Errorf("%s: %v", r.body, err)
	}
	hook.Form = service.ChatForm
	if sent := m.Send(context.Background(), &hook, o); sent.Words != "" || string((*received)[1].body) != `{"text":"w1 workflow moved, end 2026-11-21T12:01:40Z"}` || (*received)[1].header.Get("webhook-id") != "" {
		t.Errorf("%+v %s", sent, (*received)[1].body)
	}
	hook.Sites, o.Number = service.NewSiteSet([]string{"cm5"}), 4712 // which see no workflows
	if sent := m.Send(context.Background(), &hook, o); sent != (service.Sent{}) || len(*received) != 2 {
		t.Errorf("%+v", sent)
	}
	hook.ID = "h2" // what was sealed for one is no good for another
	hook.Sites = ""
	if sent := m.Send(context.Background(), &hook, o); !strings.Contains(sent.Words, "another notices.key") || sent.Disable != "" {
		t.Errorf("%+v", sent)
	}
	if err := store.Revoke(entry.ID); err != nil {
		t.Fatal(err)
	}
	if sent := m.Send(context.Background(), &hook, o); !strings.Contains(sent.Disable, "revoked") || len(*received) != 2 {
		t.Errorf("%+v", sent)
	}
}

// What a receiver answers wrongly is told by its status alone, and a redirection is not followed.
func TestReceiversThatDoNotTakeIt(t *testing.T) {
	for status, want := range map[int]service.Sent{
		302: {Status: 302, Words: "a redirection, which is not followed: Found"},
		410: {Status: 410, Words: "410 Gone", Disable: "its receiver has answered 410 Gone, by which it asks for no more notices"},
		500: {Status: 500, Words: "500 Internal Server Error"},
	} {
		url, received, m, store := receiver(t, status, "Location", "/elsewhere")
		_, entry, err := store.Add(token.Wanted{User: "alice", Role: service.User}, start)
		if err != nil {
			t.Fatal(err)
		}
		hook := service.Hook{ID: "h", User: "alice", Form: service.WebhookForm, Parent: entry.ID, Sealed: m.Courier.Seal("h", &courier.Target{URL: url})}
		if sent := m.Send(context.Background(), &hook, &service.Owed{Kind: notice.Test}); sent != want || len(*received) != 1 {
			t.Errorf("%d: %+v, want %+v; %d calls", status, sent, want, len(*received))
		}
	}
}

// A receiver that was added in a session without a token of the service is sent notices for as long as its user is known: by the
// machine, or by what the OpenID provider said in the last month.
func TestReceiversOfUsersWithoutTokens(t *testing.T) {
	url, received, m, _ := receiver(t, 204)
	folder := t.TempDir()
	store, err := token.Open(folder, "root", start)
	if err != nil {
		t.Fatal(err)
	}
	m.Identity = (&world{munged: munged{}}).ways(t)
	now := start
	m.Now = func() berth.Time { return now }
	if err := store.Meet("mia", []string{"hpc"}, start); err != nil {
		t.Fatal(err)
	}
	again, err := token.Open(folder, "root", start) // as after a restart
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range []struct {
		user, parent string
		tokens       *token.Store
		after        berth.Duration
		sent         bool
	}{
		{"alice", token.OfMachine, store, 0, true},
		{"alice", string(identity.Socket), store, 0, true},
		{"mia", token.OfProvider, store, 0, true},
		{"mia", token.OfProvider, again, 29 * 86_400, true},
		{"mia", token.OfProvider, again, 30 * 86_400, false},
		{"eve", token.OfProvider, store, 0, false},
		{"stranger", token.OfMachine, store, 0, false},
	} {
		before := len(*received)
		now, m.Tokens = start.Add(row.after), row.tokens
		hook := service.Hook{ID: "h", User: row.user, Form: service.WebhookForm, Parent: row.parent, Sealed: m.Courier.Seal("h", &courier.Target{URL: url})}
		sent := m.Send(t.Context(), &hook, &service.Owed{Kind: notice.Test})
		if is := len(*received) > before; is != row.sent || row.sent != (sent.Disable == "") {
			t.Errorf("%d: %s by %s: %+v, sent: %t", i, row.user, row.parent, sent, is)
		}
	}
	m.Tokens = store
	m.Identity.Accounts = identity.NewAccounts(func(context.Context, string) (identity.Account, bool, error) {
		return identity.Account{}, false, errors.New("no answer")
	})
	before := len(*received)
	hook := service.Hook{ID: "h", User: "alice", Form: service.WebhookForm, Parent: token.OfMachine, Sealed: m.Courier.Seal("h", &courier.Target{URL: url})}
	if sent := m.Send(t.Context(), &hook, &service.Owed{Kind: notice.Test}); len(*received) != before || sent.Disable != "" || !strings.Contains(sent.Words, "cannot tell what its user may see") {
		t.Errorf("while the directory of users is silent: %+v", sent)
	}
}

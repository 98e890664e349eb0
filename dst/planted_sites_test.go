package dst

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
)

// believing has the service see at a site what it was told, whatever is there.
type believing map[string]site.Booking

func (b believing) told(want *site.Reservation) site.Outcome {
	b[string(want.Name)] = site.Booking{Name: string(want.Name), Start: want.Start, End: want.End, Users: want.Users, Shares: want.Shares, Cores: want.Cores}
	return site.Outcome{Verdict: site.Made}
}

// changeUnmade has every other change be settled that the site has not made.
func changeUnmade() *plant {
	believed, n := believing{}, 0
	return &plant{
		swallows: func(_ *port, want *site.Reservation) (site.Outcome, bool) {
			if n++; n%2 == 0 {
				delete(believed, string(want.Name))
				return site.Outcome{}, false
			}
			return believed.told(want), true
		},
		sees: func(p *port, s *site.State) *site.State {
			for _, name := range slices.Sorted(maps.Keys(believed)) {
				b := believed[name]
				if _, _, ours := site.Name(name).Promise(p.name); !ours || b.End <= s.At {
					continue
				}
				if at := slices.IndexFunc(s.Ours, func(is site.Booking) bool { return is.Name == name }); at >= 0 {
					is := &s.Ours[at]
					is.Start, is.End, is.Shares, is.Cores = b.Start, b.End, b.Shares, b.Cores
				} else {
					s.Ours = append(s.Ours, b)
				}
			}
			return s
		},
	}
}

// runsOn has the tasks of a promise that is given back run all the same: those that run go on, and those that wait are started.
func runsOn() *plant {
	kept := map[string]bool{}
	of := func(list []site.Job, name string) bool {
		return slices.ContainsFunc(list, func(j site.Job) bool { return j.Reservation == name })
	}
	return &plant{
		skips: func(p *port, name site.Name) bool {
			state, err := p.state(berth.Time(time.Now().Unix()))
			if err != nil || !of(state.Running, string(name)) && !of(state.Pending, string(name)) {
				return false
			}
			kept[string(name)] = true
			return true
		},
		sees: func(p *port, s *site.State) *site.State {
			for name := range kept {
				if of(s.Running, name) {
					p.fake.Unbook(name)
				}
			}
			s.Ours = slices.DeleteFunc(s.Ours, func(b site.Booking) bool { return kept[b.Name] })
			ours := func(j site.Job) bool { return kept[j.Reservation] }
			s.Running, s.Pending = slices.DeleteFunc(s.Running, ours), slices.DeleteFunc(s.Pending, ours)
			return s
		},
	}
}

// droppedByCompaction has compactions leave out the promise that was made last.
func droppedByCompaction() *plant {
	d := &dropping{}
	return &plant{
		wrap: func(s journal.Store) journal.Store {
			return droppingStore{s, s.(journal.Compactor), d}
		},
		serve: func(h http.Handler, _ int) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				both := &copying{ResponseWriter: w}
				h.ServeHTTP(both, r)
				if r.Method == http.MethodPost && r.URL.Path == "/v1/requests" {
					d.heard(sights("\n" + both.said.String()))
				}
			})
		},
	}
}

// dropping knows what has been promised.
type dropping struct {
	mu  sync.Mutex
	ids []string
}

func (d *dropping) heard(seen []sight) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range seen {
		d.ids = append(d.ids, s.ID)
	}
}

type droppingStore struct {
	journal.Store
	journal.Compactor
	d *dropping
}

// Compact leaves the last promise out that is in the snapshot from which the journal begins then.
func (s droppingStore) Compact(ctx context.Context, upTo uint64) error {
	if err := s.drop(ctx, upTo); err != nil {
		return err
	}
	return s.Compactor.Compact(ctx, upTo)
}

func (s droppingStore) drop(ctx context.Context, upTo uint64) error {
	snapshot, err := s.Snapshot(ctx, upTo)
	if err != nil || snapshot.Number != upTo || snapshot.Data == nil {
		return err
	}
	alone, err := openMemory(newMedia(), nil)
	if err != nil {
		return err
	}
	if err := alone.Found(ctx, snapshot.Position, snapshot.Data); err != nil {
		return err
	}
	core, err := service.Recover(ctx, alone, engine.Config{}, "test", 1000)
	if err != nil {
		return err
	}
	var now berth.Time
	for rec := range s.Read(ctx, upTo) { // which is not kept any more if it has been compacted to there before: nothing is as late
		now = rec.At
		break
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	for _, id := range slices.Backward(s.d.ids) {
		event := engine.Cancel(id)
		if _, _, err := core.Step(now, &event, service.Key{}); err != nil {
			continue // it is over, or was made later
		}
		data, err := core.Snapshot()
		if err != nil {
			return err
		}
		return s.SaveSnapshot(ctx, snapshot.Position, data)
	}
	return nil
}

// unlimited has those calls that it chooses be decided as an operator's in the name of who calls, who has no limits.
func unlimited(chooses func(r *http.Request, body []byte) bool) *plant {
	return serving(func(h http.Handler, _ int, w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // of memory
		who := ""
		for user, secret := range clients.secret {
			if r.Header.Get("Authorization") == "Bearer "+secret {
				who = user
			}
		}
		if chooses(r, body) && who != "operator" && visible(h, r) {
			r.Header.Set("Authorization", "Bearer "+clients.secret["operator"])
			if r.URL.Path == "/v1/requests" || r.URL.Path == "/v1/series" || r.URL.Path == "/v1/workflows" {
				body = bytes.Replace(body, []byte("{"), fmt.Appendf(nil, `{"user":%q,`, who), 1)
			}
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		h.ServeHTTP(w, r)
	})
}

// visible reports whether the caller sees the reservation that the call is about; true if it is about none.
func visible(h http.Handler, r *http.Request) bool {
	id, is := strings.CutPrefix(r.URL.Path, "/v1/reservations/")
	if !is {
		return true
	}
	id, _, _ = strings.Cut(id, "/")
	said := httptest.NewRecorder()
	h.ServeHTTP(said, shows(r, id))
	return said.Code == http.StatusOK
}

// shows is a call by the same caller that shows a reservation.
func shows(r *http.Request, id string) *http.Request {
	get := httptest.NewRequestWithContext(r.Context(), http.MethodGet, "/v1/reservations/"+id, nil)
	get.Host, get.RemoteAddr = r.Host, r.RemoteAddr
	get.Header.Set("Authorization", r.Header.Get("Authorization"))
	return get
}

// asksFor chooses the requests whose bodies have a field, and the QOS with limits.
func asksFor(path, field string) func(r *http.Request, body []byte) bool {
	return func(r *http.Request, body []byte) bool {
		return r.Method == http.MethodPost && r.URL.Path == path && bytes.Contains(body, []byte(field)) && bytes.Contains(body, []byte(`"qos"`))
	}
}

// staleReads has what is shown of a reservation be what was shown within the last minute.
func staleReads() *plant {
	type page struct {
		at     time.Time
		header http.Header
		body   []byte
	}
	var mu sync.Mutex
	pages := map[string]page{}
	return serving(func(h http.Handler, _ int, w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || !strings.HasPrefix(r.URL.Path, "/v1/reservations/") {
			h.ServeHTTP(w, r)
			return
		}
		mu.Lock()
		p, kept := pages[r.URL.Path]
		mu.Unlock()
		if !kept || time.Since(p.at) > time.Minute {
			said := httptest.NewRecorder()
			h.ServeHTTP(said, r)
			p = page{time.Now(), said.Header(), said.Body.Bytes()}
			if said.Code != http.StatusOK {
				w.WriteHeader(said.Code)
				_, _ = w.Write(p.body)
				return
			}
			mu.Lock()
			pages[r.URL.Path] = p
			mu.Unlock()
		}
		maps.Copy(w.Header(), p.header)
		_, _ = w.Write(p.body)
	})
}

// unrecorded has every call without a key that confirms a reservation or gives it back be answered and not be done.
func unrecorded() *plant {
	return serving(func(h http.Handler, _ int, w http.ResponseWriter, r *http.Request) {
		id, confirm := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/v1/reservations/"), "/confirm")
		if r.Header.Get("Idempotency-Key") != "" || r.Method != http.MethodDelete && (r.Method != http.MethodPost || !confirm) || !strings.HasPrefix(r.URL.Path, "/v1/reservations/") {
			h.ServeHTTP(w, r)
			return
		}
		said := httptest.NewRecorder()
		h.ServeHTTP(said, shows(r, id))
		seen := sights("\n" + said.Body.String())
		if said.Code != http.StatusOK || len(seen) == 0 || confirm && seen[0].State != service.Held || seen[0].State.Over() {
			h.ServeHTTP(w, r)
			return
		}
		state := map[bool]service.State{true: service.Confirmed, false: service.Cancelled}[confirm]
		_, _ = fmt.Fprintf(w, `{"id":%q,"state":%q,"version":%d}`, seen[0].ID, state, seen[0].Version+1)
	})
}

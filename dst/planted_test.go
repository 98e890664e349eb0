package dst

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/journaltest"
	"github.com/berth-hpc/berth/site"
)

// plantedFault is a fault that a seed finds.
type plantedFault struct {
	about string
	seed  uint64
	plant func() *plant
}

// planted are faults that a service could have, each with a seed that finds it.
var planted = []plantedFault{
	{"an answer comes before its record is durable", 15, func() *plant {
		return &plant{wrap: func(s journal.Store) journal.Store { return &journaltest.Early{Store: s} }}
	}},
	{"an effect is settled before its site has said so", 3, func() *plant {
		believed, n := map[string]site.Booking{}, 0
		return &plant{
			hears: func(p *port, want *site.Reservation, o site.Outcome, err error) (site.Outcome, error) {
				if n++; n%4 > 0 {
					return o, err
				}
				p.fake.Unbook(string(want.Name)) // it has not been made yet
				believed[string(want.Name)] = site.Booking{Name: string(want.Name), Start: want.Start, End: want.End, Users: want.Users, Shares: want.Shares, Cores: want.Cores}
				return site.Outcome{Verdict: site.Made}, nil
			},
			sees: func(p *port, s *site.State) *site.State {
				for i := range s.Ours {
					delete(believed, s.Ours[i].Name)
				}
				for _, b := range believed {
					if _, _, ours := site.Name(b.Name).Promise(p.name); ours && b.End > s.At {
						s.Ours = append(s.Ours, b)
					}
				}
				return s
			},
		}
	}},
	{"a key is forgotten at a restart", 1, func() *plant {
		return &plant{serve: func(h http.Handler, life int) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if key := r.Header.Get("Idempotency-Key"); key != "" {
					r.Header.Set("Idempotency-Key", fmt.Sprint(key, "-", life))
				}
				h.ServeHTTP(w, r)
			})
		}}
	}},
	{"a snapshot is one record off", 1, func() *plant {
		return &plant{wrap: func(s journal.Store) journal.Store { return oneOff{s} }}
	}},
	{"an event is left out", 1, eventLeftOut},
	{"a reservation of a promise that is over is not taken down", 33, func() *plant {
		gone := map[string]bool{}
		return &plant{
			skips: func(_ *port, name site.Name) bool {
				gone[string(name)] = true
				return true
			},
			sees: func(_ *port, s *site.State) *site.State {
				s.Ours = slices.DeleteFunc(s.Ours, func(b site.Booking) bool { return gone[b.Name] })
				return s
			},
		}
	}},
	{"an older snapshot is taken for the newest", 3, func() *plant {
		return &plant{wrap: func(s journal.Store) journal.Store { return older{s} }}
	}},
	{"a server that no longer leads writes", 1, unfenced},
	{"an event is told again after a restart", 1, eventAgain},
	{"a hold that has expired is confirmed", 13, revived},
	{"a no-show is not given back", 5, func() *plant {
		return rewriting(http.MethodPost, "/v1/requests", func(body []byte) []byte { return ofNoShow.ReplaceAll(body, nil) })
	}},
	{"a modification loses the licence", 6, func() *plant {
		return rewriting(http.MethodPatch, "", func(body []byte) []byte {
			return bytes.Replace(body, []byte("{"), []byte(`{"software":null,"licences":null,`), 1)
		})
	}},
	{"a member of an array is doubled", 5, doubled},
	{"an occurrence of a series is given back at a restart", 1, skipsOccurrence},
	{"a call that is repeated while it is under way is decided twice", 2, decidedTwice},
	{"a limit is not asked for by an extension", 3, func() *plant {
		return promoting(func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/extend") })
	}},
	{"the reservations of others are cancelled", 1, func() *plant {
		return promoting(func(r *http.Request) bool {
			return r.Method == http.MethodDelete && strings.HasPrefix(r.URL.Path, "/v1/reservations/")
		})
	}},
	{"a notice is lost by a crash", 8, noticeLost},
	{"a notice overtakes the one before", 7, overtaken},
}

// oneOff says of a snapshot that it is of the record before.
type oneOff struct{ journal.Store }

func (s oneOff) SaveSnapshot(ctx context.Context, at journal.Position, data []byte) error {
	for r, err := range s.Read(ctx, max(at.Number, 2)-1) {
		if err != nil {
			return err
		}
		return s.Store.SaveSnapshot(ctx, r.Position(), data)
	}
	return nil
}

// forgetful leaves out every fifth thing that it is to send.
type forgetful struct {
	http.ResponseWriter
	n int
}

func (w *forgetful) Flush() {}

func (w *forgetful) Write(data []byte) (int, error) {
	if bytes.Contains(data, []byte("\nevent: ")) {
		if w.n++; w.n%5 == 0 {
			return len(data), nil
		}
	}
	return w.ResponseWriter.Write(data)
}

// find looks for the fault from its seed on.
func (p *plantedFault) find(t *testing.T) {
	t.Helper()
	for seed := p.seed; seed < p.seed+*search; seed++ {
		if o := happen(t, seed, p.plant(), newLedger()); o.wrong != nil {
			t.Logf("seed %d: %.300s", seed, o.wrong.Error())
			return
		}
	}
	t.Errorf("not found by %d seeds from %d on", *search, p.seed)
}

// Each planted fault is found by its seed.
func TestPlantedFaultsAreFound(t *testing.T) {
	for i := range planted {
		t.Run(strings.ReplaceAll(planted[i].about, " ", "-"), func(t *testing.T) { planted[i].find(t) })
	}
}

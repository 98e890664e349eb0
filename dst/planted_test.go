package dst

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/journaltest"
	"github.com/berth-hpc/berth/site"
)

// plantedFault is a fault that a seed finds.
type plantedFault struct {
	about string
	seed  uint64
	plant func() *plant
	says  string   // what finds it says at least this
	needs []string // the features and faults without which it cannot show; seeds that lack one are passed over
}

// planted are faults that a service could have, each with a seed that finds it.
var planted = []plantedFault{
	{about: "an answer comes before its record is durable", seed: 16, plant: func() *plant {
		return &plant{wrap: func(s journal.Store) journal.Store { return &journaltest.Early{Store: s} }}
	}},
	{about: "an effect is settled before its site has said so", seed: 13, plant: func() *plant {
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
	{about: "a key is forgotten at a restart", seed: 1, plant: func() *plant {
		return &plant{serve: func(h http.Handler, life int) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if key := r.Header.Get("Idempotency-Key"); key != "" {
					r.Header.Set("Idempotency-Key", fmt.Sprint(key, "-", life))
				}
				h.ServeHTTP(w, r)
			})
		}}
	}},
	{about: "a snapshot is one record off", seed: 1, plant: func() *plant {
		return &plant{wrap: func(s journal.Store) journal.Store { return oneOff{s} }}
	}},
	{about: "an event is left out", seed: 1, plant: eventLeftOut},
	{about: "a reservation of a promise that is over is not taken down", seed: 26, plant: func() *plant {
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
	{about: "an older snapshot is taken for the newest", seed: 4, plant: func() *plant {
		return &plant{wrap: func(s journal.Store) journal.Store { return older{s} }}
	}},
	{about: "a server that no longer leads writes", seed: 3, plant: unfenced},
	{about: "an event is told again after a restart", seed: 6, plant: eventAgain},
	{about: "a hold that has expired is confirmed", seed: 33, plant: revived},
	{about: "a no-show is not given back", seed: 5, plant: func() *plant {
		return rewriting(http.MethodPost, "/v1/requests", func(body []byte) []byte { return ofNoShow.ReplaceAll(body, nil) })
	}},
	{about: "a modification loses the licence", seed: 7, plant: func() *plant {
		return rewriting(http.MethodPatch, "", func(body []byte) []byte {
			return bytes.Replace(body, []byte("{"), []byte(`{"software":null,"licences":null,`), 1)
		})
	}},
	{about: "a member of an array is doubled", seed: 5, plant: doubled},
	{about: "an occurrence of a series is given back at a restart", seed: 1, plant: skipsOccurrence},
	{about: "an open series ends at a restart", seed: 9, plant: endsOpenSeries},
	{about: "a call that is repeated while it is under way is decided twice", seed: 2, plant: decidedTwice},
	{about: "an offer is taken again when its call is repeated", seed: 2, needs: []string{featureOffer, faultRepeat}, says: "POST /v1/offers/", plant: func() *plant { return keyless("/v1/offers/") }},
	{about: "a workflow is planned again when its call is repeated", seed: 9, needs: []string{featureWorkflow, faultRepeat}, says: "POST /v1/workflows", plant: func() *plant { return keyless("/v1/workflows") }},
	{about: "a limit is not asked for by an extension", seed: 104, says: "allows", plant: func() *plant {
		return unlimited(func(r *http.Request, _ []byte) bool { return strings.HasSuffix(r.URL.Path, "/extend") })
	}},
	{about: "a limit is not asked for by a modification", seed: 256, says: "allows", plant: func() *plant {
		return unlimited(func(r *http.Request, _ []byte) bool { return r.Method == http.MethodPatch })
	}},
	{about: "a limit is not asked for by an array", seed: 19, says: "allows", plant: func() *plant { return unlimited(asksFor("/v1/requests", `"array"`)) }},
	{about: "a limit is not asked for by a hold", seed: 38, says: "allows", plant: func() *plant { return unlimited(asksFor("/v1/requests", `"hold"`)) }},
	{about: "a limit is not asked for by a series", seed: 11, says: "allows", plant: func() *plant { return unlimited(asksFor("/v1/series", "")) }},
	{about: "a limit is not asked for by what was offered", seed: 501, needs: []string{featureLimit, featureOffer}, says: "allows", plant: func() *plant {
		return unlimited(func(r *http.Request, _ []byte) bool { return strings.HasPrefix(r.URL.Path, "/v1/offers/") })
	}},
	{about: "the reservations of others are cancelled", seed: 2, plant: func() *plant {
		return promoting(func(r *http.Request) bool {
			return r.Method == http.MethodDelete && strings.HasPrefix(r.URL.Path, "/v1/reservations/")
		})
	}},
	{about: "a change is settled that its site has not made", seed: 112, plant: changeUnmade},
	{about: "a task of a promise that was given back runs", seed: 258, plant: runsOn, says: "the task"},
	{about: "a compaction drops a promise", seed: 8, plant: droppedByCompaction},
	{about: "a read answers from before a write that was acknowledged", seed: 5, plant: staleReads, says: "not linearizable"},
	{about: "an answer was never recorded", seed: 7, plant: unrecorded, says: "not linearizable"},
	{about: "a notice is lost by a crash", seed: 8, plant: noticeLost},
	{about: "a notice overtakes the one before", seed: 7, plant: overtaken},
	{about: "a notice goes to one of two receivers alone", seed: 7, plant: toOneAlone},
	{about: "a receiver that hangs keeps others waiting", seed: 8, plant: keepsOthersWaiting, says: "wait"},
	{about: "more is promised ahead than may be", seed: 4, says: "s ahead", plant: func() *plant {
		return &plant{config: func(c engine.Config) engine.Config {
			c.Ahead = nil
			return c
		}}
	}},
	{about: "a change of a series is made to its first two occurrences alone", seed: 42, says: "of series", plant: func() *plant {
		return rewriting(http.MethodPost, "/modify", func(body []byte) []byte { return bytes.Replace(body, []byte("}"), []byte(`,"to":2}`), 1) })
	}},
	{about: "a server that was cut off goes on to tell sites", seed: 30, says: "leads no more", plant: func() *plant { return &plant{blind: true} }},
	{about: "a lost connection is taken for a commit", seed: 2, plant: func() *plant {
		return &plant{wrap: func(s journal.Store) journal.Store {
			if of, is := s.(*shared); is {
				return hopeful{of}
			}
			return s
		}}
	}},
}

// hopeful takes a connection that was lost for a commit.
type hopeful struct{ *shared }

func (s hopeful) Append(ctx context.Context, records ...journal.Record) error {
	if err := s.shared.Append(ctx, records...); !journal.CanRetry(err) {
		return err
	}
	return nil
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
		plan := planOf(seed)
		if slices.ContainsFunc(p.needs, func(feature string) bool { return !plan.has(feature) }) {
			continue
		}
		if o := happen(t, seed, p.plant(), newLedger()); o.wrong != nil && strings.Contains(o.wrong.Error(), p.says) {
			t.Logf("seed %d: %.300s", seed, o.wrong.Error())
			return
		}
	}
	t.Errorf("not found by %d seeds from %d on", *search, p.seed)
}

// Each planted fault is found by its seed.
func TestPlantedFaultsAreFound(t *testing.T) {
	for _, p := range allPlanted() {
		t.Run(strings.ReplaceAll(p.about, " ", "-"), func(t *testing.T) { p.find(t) })
	}
}

func allPlanted() []plantedFault {
	return slices.Concat(planted, plantedBudgets, plantedUpkeep, plantedTold)
}

// The document lists the planted faults with their seeds.
func TestDocumentListsPlantedFaults(t *testing.T) {
	text, err := os.ReadFile("../docs/fault-simulation.md")
	if err != nil {
		t.Fatal(err)
	}
	want := "\n| planted fault | seed |\n|---|---:|\n"
	for _, p := range allPlanted() {
		want += fmt.Sprintf("| %s | %d |\n", p.about, p.seed)
	}
	if !strings.Contains(string(text), want+"\n") {
		t.Errorf("docs/fault-simulation.md has another table; want%s", want)
	}
}

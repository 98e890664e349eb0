//go:build unix

package servicebench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/service"
)

// ann asks for everything.
var ann = service.Ask{By: service.Principal{User: "ann", Role: service.User}}

// root sees everything.
var root = service.Principal{User: "root", Role: service.Operator}

// clusters is a configuration of sites of one pool each, which share PEs.
func clusters(sites, pes int) engine.Config {
	var config engine.Config
	for i := range sites {
		pool := berth.Pool{Name: "p", PEs: berth.Count(pes / sites), Binding: berth.Late}
		config.Sites = append(config.Sites, berth.Site{Name: fmt.Sprint("site", i), Pools: []berth.Pool{pool}})
	}
	return config
}

// open starts a service on a journal.
func open(t *testing.T, options *service.Options) *service.Host {
	t.Helper()
	options.Version = "bench"
	h, err := service.Open(t.Context(), *options)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func openStore(t *testing.T, dir string) *sqlite.Store {
	t.Helper()
	store, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// demand draws requests for powers of two up to widest PEs, from a minute to four
// hours, at times spread so that live of them offer seven tenths of the PEs; each
// may be shifted by seven times its length.
type demand struct {
	from   berth.Time // nothing is asked for before
	span   int64
	widest int // the exponent
}

func newDemand(h *service.Host, live, pes, widest int) demand {
	const meanLength = 60 + 14_340/2
	mean := float64(int(1)<<(widest+1)-1) / float64(widest+1)
	return demand{h.Now() + 3600, int64(float64(live)*meanLength*mean/float64(pes)/.7) + 1, widest}
}

func (d *demand) draw(r *rand.Rand) berth.Request {
	ready := d.from + berth.Time(r.Int64N(d.span))
	length := berth.Duration(60 + r.Int64N(14_341))
	return berth.Rigid("", 0, ready, ready.Add(8*length), berth.Count(1)<<r.IntN(d.widest+1), length)
}

// crowd has clients do something n times in all, each with random numbers of its
// own, and returns how long each time took. The first error ends it.
func crowd(t *testing.T, clients, n int, seed uint64, do func(ctx context.Context, r *rand.Rand, i int) error) latencies {
	t.Helper()
	took := make([]latencies, clients)
	failed := make([]error, clients)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var next atomic.Int64
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(c)))
			for i := int(next.Add(1)); i <= n; i = int(next.Add(1)) {
				began := time.Now()
				if failed[c] = do(ctx, r, i-1); failed[c] != nil {
					stop()
					return
				}
				took[c] = append(took[c], time.Since(began))
			}
		})
	}
	all.Wait()
	if err := errors.Join(failed...); err != nil {
		t.Fatal(err)
	}
	return slices.Concat(took...)
}

// fill has the service promise n reservations, drawn at every site in turn, and
// returns how many it refused.
func fill(t *testing.T, h *service.Host, d demand, n int, seed uint64, sites int) (refused int) {
	t.Helper()
	var no atomic.Int64
	crowd(t, 256, n, seed, func(ctx context.Context, r *rand.Rand, i int) error {
		q := d.draw(r)
		q.Site = fmt.Sprint("site", i%sites)
		a, err := h.Submit(ctx, ann, q)
		if err == nil && a.Reservation.State == service.Refused {
			no.Add(1)
		}
		return err
	})
	return int(no.Load())
}

// right returns what is wrong with everything that is promised: more PEs than
// there are, or a place that was not asked for.
func right(t *testing.T, h *service.Host, config *engine.Config) {
	t.Helper()
	type step struct {
		at berth.Time
		by berth.Count
	}
	steps := map[berth.ResourceID][]step{}
	for after := ""; ; {
		page, _, err := h.List(t.Context(), root, service.Filter{After: after})
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for i := range page {
			p := &page[i]
			after = p.ID
			if p.State.Over() {
				continue
			}
			v, a := p.Request.Parts[0].Variants[0], p.Allotments[0]
			if a.Start < p.Request.Ready || a.End > p.Request.Deadline || a.End.Sub(a.Start) != v.Duration || a.NPE != v.NPE {
				t.Fatalf("%s is promised %+v, asked for was %+v", p.ID, a, p.Request)
			}
			steps[a.Resource] = append(steps[a.Resource], step{a.Start, a.NPE}, step{a.End, -a.NPE})
		}
	}
	for _, s := range config.Sites {
		list := steps[berth.PoolID(s.Name, "p")]
		slices.SortFunc(list, func(a, b step) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
		var used berth.Count
		for _, x := range list {
			if used += x.by; used > s.Pools[0].PEs {
				t.Fatalf("%d PEs of %s are promised at %d", used, s.Name, x.at)
			}
		}
	}
}

// speak serves the API of a host over loopback and returns a client of it, for ann.
func speak(t *testing.T, h *service.Host, clients int) *client.Client {
	t.Helper()
	return speakAs(t, h, clients, "ann")
}

// speakAs is speak for a user.
func speakAs(t *testing.T, h *service.Host, clients int, user string) *client.Client {
	t.Helper()
	handler, secret := answering(t, h, user)
	return speakTo(t, handler, secret, clients)
}

// answering returns the API of a host, and the secret of a token of a user.
func answering(t *testing.T, h *service.Host, user string) (handler http.Handler, secret string) {
	t.Helper()
	tokens, err := token.Open(t.TempDir(), "root", h.Now())
	if err != nil {
		t.Fatal(err)
	}
	secret, _, err = tokens.Add(token.Wanted{User: user, Role: service.User}, h.Now())
	if err != nil {
		t.Fatal(err)
	}
	return api.New(api.Options{Service: h, Tokens: tokens, Limits: policy.Limits{{Name: policy.LimitRate, Value: policy.NoLimit}}}), secret
}

// speakTo serves a handler over loopback and returns a client of it.
func speakTo(t *testing.T, handler http.Handler, secret string, clients int) *client.Client {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := api.Server(handler)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	c, err := client.New("http://"+listener.Addr().String(), secret, &http.Client{Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

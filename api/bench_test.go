package api_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/service"
)

// silent is a fake without a memory, so that the API alone is measured.
type silent struct {
	*fake
	answer service.Answer
}

func (s *silent) Submit(context.Context, service.Ask, berth.Request) (service.Answer, error) {
	return s.answer, nil
}

func newSilent() *silent {
	r := service.Reservation{ID: "01KABCDEFGHJKMNPQRSTVWXYZ0", State: service.Held, Version: 1, Request: berth.Rigid("x", start, start, start+9000, 64, 7200)}
	r.Request.User = "alice"
	r.Allotments = []berth.Allotment{{Resource: berth.PoolID("cm5", "batch"), Start: start, End: start + 7200, NPE: 64}}
	r.Created, r.Changed = start, start
	return &silent{newFake(), service.Answer{Reservation: r}}
}

// BenchmarkPOST is a request for a reservation with everything but the
// service: in the handler alone, and over loopback with the client that asks.
// handler/nothing is a handler that does nothing at all.
func BenchmarkPOST(b *testing.B) {
	w := newWorld(b, api.Options{Service: newSilent(), Limits: unlimited})
	nothing := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	for name, handler := range map[string]http.Handler{"nothing": nothing, "request": w.Handler} {
		b.Run("handler/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				rec := httptest.NewRecorder()
				handler.ServeHTTP(rec, w.ask("alice", "POST", "/v1/requests", askFor, "Idempotency-Key", "k"))
				if rec.Code != http.StatusCreated {
					b.Fatal(rec.Code, rec.Body.String())
				}
			}
		})
	}
	b.Run("loopback/clients=64", func(b *testing.B) {
		server := httptest.NewServer(w.Handler)
		defer server.Close()
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
		b.SetParallelism(32) // for each of two cores
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, server.URL+"/v1/requests", strings.NewReader(askFor))
				if err != nil {
					b.Error(err)
					return
				}
				r.Header.Set("Authorization", "Bearer "+w.tokens["alice"])
				r.Header.Set("Content-Type", "application/json")
				answer, err := client.Do(r)
				if err != nil {
					b.Error(err)
					return
				}
				_, err = io.Copy(io.Discard, answer.Body)
				if answer.Body.Close(); err != nil || answer.StatusCode != http.StatusCreated {
					b.Error(answer.StatusCode, err)
					return
				}
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
	})
}

//go:build unix

package servicebench

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
)

// answered is an answer as it was written.
type answered struct {
	header http.Header
	status int
	body   []byte
}

// recording returns a handler that answers as another one does, and what it has answered.
func recording(handler http.Handler) (recorder http.Handler, answers func() []answered) {
	var mu sync.Mutex
	var list []answered
	recorder = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		handler.ServeHTTP(rec, r)
		a := answered{rec.Header(), rec.Code, rec.Body.Bytes()}
		mu.Lock()
		list = append(list, a)
		mu.Unlock()
		a.write(w)
	})
	return recorder, func() []answered {
		mu.Lock()
		defer mu.Unlock()
		return list
	}
}

func (a *answered) write(w http.ResponseWriter) {
	h := w.Header()
	maps.Copy(h, a.header)
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // a client that has gone fails itself
}

// bare returns a handler that reads what it is sent and answers what others were answered, in turn: what
// it takes is what HTTP and the clients take.
func bare(answers []answered) http.Handler {
	var next atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, r.ContentLength)
		if _, err := io.ReadFull(r.Body, body); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		answers[int(next.Add(1))%len(answers)].write(w)
	})
}

package api_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/api"
)

// Each path answers the methods that it has not with those that it has, also where it is a path of another one's pattern too.
func TestEveryPathTellsItsMethods(t *testing.T) {
	w := newWorld(t, api.Options{})
	var all struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal([]byte(w.do("alice", "GET", "/openapi.json", "").text), &all); err != nil {
		t.Fatal(err)
	}
	tried := 0
	for path, by := range all.Paths {
		var allowed []string
		for method := range by {
			if method = strings.ToUpper(method); slices.Contains(asked, method) {
				allowed = append(allowed, method)
			}
		}
		if slices.Contains(allowed, http.MethodGet) {
			allowed = append(allowed, http.MethodHead)
		}
		slices.Sort(allowed)
		for _, method := range asked {
			if slices.Contains(allowed, method) {
				continue
			}
			tried++
			a := w.do("alice", method, placeholder.ReplaceAllString(path, "x"), "")
			if got, want := a.Header().Get("Allow"), strings.Join(allowed, ", "); a.Code != http.StatusMethodNotAllowed || got != want {
				t.Errorf("%s %s: status %d, allowed is %q; want 405 and %q", method, path, a.Code, got, want)
			}
		}
	}
	if tried < 100 {
		t.Errorf("%d paths and methods were tried", tried)
	}
}

var (
	asked       = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, http.MethodTrace}
	placeholder = regexp.MustCompile(`\{[^}]*\}`)
)

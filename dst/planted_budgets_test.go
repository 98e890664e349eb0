package dst

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"time"

	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/policy"
)

// plantedBudgets are faults of budgets.
var plantedBudgets = []plantedFault{
	{about: "a budget is not asked for by a request", seed: 4, needs: []string{featureBudget}, says: "budget is", plant: func() *plant { return unlimited(charging("/v1/requests", "")) }},
	{about: "a budget is not asked for by a hold", seed: 4, needs: []string{featureBudget, featureHold}, says: "budget is", plant: func() *plant { return unlimited(charging("/v1/requests", `"hold"`)) }},
	{about: "a budget is not asked for by an array", seed: 18, needs: []string{featureBudget, featureArray}, says: "budget is", plant: func() *plant { return unlimited(charging("/v1/requests", `"array"`)) }},
	{about: "a budget is not asked for by an extension", seed: 184, needs: []string{featureBudget, featureExtend}, says: "budget is", plant: func() *plant {
		return unlimited(func(r *http.Request, _ []byte) bool { return strings.HasSuffix(r.URL.Path, "/extend") })
	}},
	{about: "a budget is not asked for by a modification", seed: 407, needs: []string{featureBudget, featureModify}, says: "budget is", plant: func() *plant {
		return unlimited(func(r *http.Request, _ []byte) bool { return r.Method == http.MethodPatch })
	}},
	{about: "the budget of a month is not asked for", seed: 25, needs: []string{featureBudget}, says: "in month", plant: func() *plant {
		return &plant{config: func(c engine.Config) engine.Config {
			c.Limits = slices.Clone(c.Limits)
			for i := range c.Limits {
				if c.Limits[i].Name == policy.LimitMonthBudget {
					c.Limits[i].Value = budgetAll
				}
			}
			return c
		}}
	}},
	{about: "what is given back stays charged", seed: 63, needs: []string{featureBudget, featureCancel}, says: "is charged", plant: func() *plant {
		return chargesMore(func(r *http.Request) bool {
			return r.Method == http.MethodDelete && strings.HasPrefix(r.URL.Path, "/v1/reservations/")
		})
	}},
	{about: "a modification is charged beside what it was before", seed: 1, needs: []string{featureBudget, featureModify}, says: "is charged", plant: func() *plant {
		return chargesMore(func(r *http.Request) bool { return r.Method == http.MethodPatch })
	}},
	{about: "a hold is charged to no account", seed: 3, needs: []string{featureBudget, featureHold}, says: "account", plant: func() *plant {
		return rewriting(http.MethodPost, "/v1/requests", func(body []byte) []byte {
			if !bytes.Contains(body, []byte(`"hold"`)) {
				return body
			}
			return bytes.Replace(body, fmt.Appendf(nil, `"account":%q,`, charged), nil, 1)
		})
	}},
	{about: "what is over counts no more after a restart", seed: 3, needs: []string{featureBudget}, says: "is charged", plant: func() *plant {
		return bills(func(life int, b *billed) {
			if life > 1 {
				b.used = b.held
			}
		})
	}},
}

// charging chooses the requests that name the account, and whose bodies have a field.
func charging(path, field string) func(r *http.Request, body []byte) bool {
	return func(r *http.Request, body []byte) bool {
		return r.Method == http.MethodPost && r.URL.Path == path && bytes.Contains(body, []byte(field)) && bytes.Contains(body, []byte(`"account"`))
	}
}

// asOperator makes a call beside one that a client makes.
func asOperator(h http.Handler, r *http.Request, method, path, body string) *httptest.ResponseRecorder {
	own := httptest.NewRequestWithContext(r.Context(), method, path, strings.NewReader(body))
	own.Host, own.RemoteAddr = r.Host, r.RemoteAddr
	own.Header.Set("Authorization", "Bearer "+clients.secret["operator"])
	own.Header.Set("Content-Type", "application/json")
	said := httptest.NewRecorder()
	h.ServeHTTP(said, own)
	return said
}

// chargesMore has the account be charged for something more after some of the calls about what it is charged for.
func chargesMore(after func(r *http.Request) bool) *plant {
	return serving(func(h http.Handler, _ int, w http.ResponseWriter, r *http.Request) {
		if !after(r) {
			h.ServeHTTP(w, r)
			return
		}
		id := strings.TrimPrefix(r.URL.Path, "/v1/reservations/")
		was := asOperator(h, r, http.MethodGet, "/v1/reservations/"+id, "")
		both := &copying{ResponseWriter: w}
		h.ServeHTTP(both, r)
		if bytes.Contains(was.Body.Bytes(), fmt.Appendf(nil, `"account":%q`, charged)) && !bytes.Contains(both.said.Bytes(), []byte(`"problem`)) {
			deadline := time.Now().Add(48 * time.Hour).UTC().Format(time.RFC3339)
			asOperator(h, r, http.MethodPost, "/v1/requests", fmt.Sprintf(`{"name":"again","account":%q,"npe":1,"duration":600,"deadline":%q}`, charged, deadline))
		}
	})
}

// billed is a row of what the account is charged for, in PE-hours.
type billed struct {
	limit      string
	used, held float64
}

// bills changes what is told of the charges of the account.
func bills(change func(life int, b *billed)) *plant {
	return serving(func(h http.Handler, life int, w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/quotas" {
			h.ServeHTTP(w, r)
			return
		}
		said := httptest.NewRecorder()
		h.ServeHTTP(said, r)
		var q struct {
			Shared []struct {
				Account string           `json:"account"`
				Limits  []map[string]any `json:"limits"`
			} `json:"shared"`
		}
		if json.Unmarshal(said.Body.Bytes(), &q) != nil {
			return
		}
		for i := range q.Shared {
			for _, l := range q.Shared[i].Limits {
				b := billed{limit: fmt.Sprint(l["limit"])}
				b.used, _ = l["used"].(float64) // 0 where there is none
				b.held, _ = l["held"].(float64)
				if q.Shared[i].Account == charged && strings.HasSuffix(b.limit, "budget") {
					change(life, &b)
					l["used"] = b.used
				}
			}
		}
		_ = json.NewEncoder(w).Encode(&q) // to memory
	})
}

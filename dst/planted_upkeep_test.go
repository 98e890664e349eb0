package dst

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/berth-hpc/berth/service"
)

// plantedUpkeep are faults of maintenance, projects and workflows that are charged to an account.
var plantedUpkeep = []plantedFault{
	{about: "maintenance is forgotten at a restart", seed: 3, needs: []string{featureMaintenance}, says: "maintenance", plant: upkeepForgotten},
	{about: "maintenance that is called off goes on", seed: 5, needs: []string{featureMaintenance}, says: "of maintenance", plant: upkeepGoesOn},
	{about: "maintenance lasts ten times as long", seed: 3, needs: []string{featureMaintenance}, says: "of maintenance", plant: func() *plant {
		return rewriting(http.MethodPost, "/v1/maintenance", func(body []byte) []byte {
			return ofLength.ReplaceAllFunc(body, func(is []byte) []byte { return fmt.Appendf(nil, "%s0", is) })
		})
	}},
	{about: "maintenance takes all nodes of its site", seed: 3, needs: []string{featureMaintenance}, says: "of maintenance", plant: func() *plant {
		return rewriting(http.MethodPost, "/v1/maintenance", func(body []byte) []byte { return ofNodes.ReplaceAll(body, nil) })
	}},
	{about: "maintenance takes nothing out of use", seed: 5, needs: []string{featureMaintenance}, says: "maintenance takes", plant: upkeepTakesNothing},
	{about: "a workflow is charged to no account", seed: 3, needs: []string{featureBudget, featureWorkflow}, says: "is charged to account", plant: func() *plant {
		return rewriting(http.MethodPost, "/v1/workflows", func(body []byte) []byte { return bytes.Replace(body, []byte(`"account":"`+charged+`",`), nil, 1) })
	}},
	{about: "a budget is not asked for by a workflow", seed: 184, needs: []string{featureBudget, featureWorkflow}, says: "budget is", plant: func() *plant { return unlimited(charging("/v1/workflows", "")) }},
	{about: "a request is charged to a project of others", seed: 1, needs: []string{featureProject, featureBudget}, says: "is no project of theirs", plant: func() *plant {
		return &plant{members: func(p service.Projects, _ int) service.Projects {
			p.List = p.List[:1]
			return p
		}}
	}},
	{about: "who is in a project is forgotten at a restart", seed: 1, needs: []string{featureProject}, says: "no project of theirs", plant: func() *plant {
		return &plant{members: func(p service.Projects, life int) service.Projects {
			if life > 1 {
				return service.Projects{}
			}
			return p
		}}
	}},
}

var (
	ofLength = regexp.MustCompile(`"duration":\d+`)
	ofNodes  = regexp.MustCompile(`,"nodes":\[[^]]*\]`)
)

// listed returns the names of the maintenance that there is.
func listed(h http.Handler, r *http.Request) (names []string) {
	var said struct{ Maintenance []struct{ Name string } }
	if json.Unmarshal(asOperator(h, r, http.MethodGet, "/v1/maintenance", "").Body.Bytes(), &said) == nil {
		for _, m := range said.Maintenance {
			names = append(names, m.Name)
		}
	}
	return names
}

// upkeepForgotten calls all maintenance off when the service starts again.
func upkeepForgotten() *plant {
	var mu sync.Mutex
	lived := 1
	return serving(func(h http.Handler, life int, w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		fresh := life > lived && r.Method == http.MethodPost
		if fresh {
			lived = life
		}
		mu.Unlock()
		if fresh {
			for _, name := range listed(h, r) {
				asOperator(h, r, http.MethodDelete, "/v1/maintenance/"+name, "")
			}
		}
		h.ServeHTTP(w, r)
	})
}

// upkeepGoesOn answers that maintenance is called off that is not.
func upkeepGoesOn() *plant {
	return serving(func(h http.Handler, _ int, w http.ResponseWriter, r *http.Request) {
		name, is := strings.CutPrefix(r.URL.Path, "/v1/maintenance/")
		if is && r.Method == http.MethodDelete && slices.Contains(listed(h, r), name) {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// upkeepTakesNothing has maintenance be shown as it was asked for, and call it off.
func upkeepTakesNothing() *plant {
	var mu sync.Mutex
	shown := map[string]map[string]any{}
	return serving(func(h http.Handler, _ int, w http.ResponseWriter, r *http.Request) {
		name, one := strings.CutPrefix(r.URL.Path, "/v1/maintenance/")
		switch {
		case one && r.Method == http.MethodDelete:
			mu.Lock()
			delete(shown, name)
			mu.Unlock()
			h.ServeHTTP(w, r)
		case r.URL.Path != "/v1/maintenance":
			h.ServeHTTP(w, r)
		case r.Method == http.MethodGet:
			mu.Lock()
			defer mu.Unlock()
			list := []map[string]any{}
			for _, m := range shown {
				list = append(list, m)
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"maintenance": list}) // to memory
		default:
			both := &copying{ResponseWriter: w}
			h.ServeHTTP(both, r)
			var said struct{ Maintenance map[string]any }
			if json.Unmarshal(both.said.Bytes(), &said) != nil || said.Maintenance == nil {
				return
			}
			name, _ := said.Maintenance["name"].(string)
			asOperator(h, r, http.MethodDelete, "/v1/maintenance/"+name, "")
			mu.Lock()
			shown[name] = said.Maintenance
			mu.Unlock()
		}
	})
}

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/berth-hpc/berth"
)

// described is the part of an OpenAPI description that says what can be sent.
type described struct {
	Paths map[string]map[string]struct {
		Parameters []struct {
			Name, In string
			Schema   shape
		}
		RequestBody *struct {
			Content map[string]struct{ Schema shape }
		}
		Security []map[string][]string
	}
}

// shape is a JSON Schema of the description.
type shape struct {
	Type       string
	Format     string
	Properties map[string]*shape
	Items      *shape
	OneOf      []*shape
	Enum       []string
	Examples   []any
	Maximum    *float64
	Minimum    *float64
}

// row is something that a user sends again and again.
type row struct {
	method, path string // with parameters in braces
	what         string // of its body or query
	query        string
	body         string
	kind         string // of a body that is no JSON
}

func (r *row) String() string { return strings.TrimSpace(r.method + " " + r.path + " " + r.what) }

// largestBody and longestList bound what is made up: what a role may send at most, and
// the longest list that requests take.
const (
	largestBody = 1<<20 - 1<<12
	longestList = 1000
)

// legal are bodies that their endpoint takes, where a body without fields is none of
// them. What is largest is added to them field by field.
func legal(path string) map[string]any {
	hour := func(n int) string { return time.Now().Add(time.Duration(n) * time.Hour).UTC().Format(time.RFC3339) }
	switch path {
	case "/v1/requests", "/v1/offers":
		return map[string]any{"npe": 1, "duration": 60, "ready": hour(1), "deadline": hour(100), "site": "cm5", "pool": "batch"}
	case "/v1/reservations/{id}":
		return map[string]any{"npe": 2}
	case "/v1/reservations/{id}/extend":
		return map[string]any{"by": 1}
	case "/v1/reservations/{id}/run":
		return map[string]any{"command": []string{"true"}, "dir": "/"}
	case "/v1/sites/{name}/forecast":
		return map[string]any{"period": 60, "kilobytes": []int{1000}}
	case "/v1/lab/comparisons":
		return map[string]any{"sweep": []map[string]any{{"name": "policy", "values": []string{"first-fit", "pe-worst"}}}}
	case "/v1/tokens":
		return map[string]any{"user": "zoe"}
	case "/v1/series":
		return map[string]any{"npe": 1, "duration": 60, "repeat": "daily", "times": 3}
	case "/v1/workflows", "/v1/workflows/offers":
		return map[string]any{"site": "here", "tasks": tasksOf(3)}
	}
	return map[string]any{}
}

// tasksOf returns n tasks of a workflow in layers of a hundred. Each follows two tasks of the layer
// before.
func tasksOf(n int) []any {
	tasks := make([]any, n)
	for i := range tasks {
		task := map[string]any{"id": fmt.Sprint(i), "seconds": 60 + i*37%600, "most": 1 + i%4}
		if i >= 100 {
			task["after"] = []string{fmt.Sprint(i - 100), fmt.Sprint(i - i%100 - 1)}
		}
		tasks[i] = task
	}
	return tasks
}

// largeWorkflows are the largest workflows that a role may send, which take the longest to plan:
// one that is promised, one that a deadline holds to fewer PEs, and one that is refused with offers.
func largeWorkflows() []large {
	at := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }
	var all []large
	for _, n := range []int{128, 1000, berth.MaxWorkflowTasks} { // the most that is planned in the loop, and more
		all = append(all,
			large{fmt.Sprint(n, " tasks"), map[string]any{"tasks": tasksOf(n)}},
			large{fmt.Sprint(n, " tasks by a deadline"), map[string]any{"tasks": tasksOf(n), "deadline": at(10000 * time.Hour)}},
			large{fmt.Sprint(n, " tasks by too early a deadline"), map[string]any{"tasks": tasksOf(n), "deadline": at(time.Hour)}},
		)
	}
	return all
}

// replaces says which fields of a legal body a field replaces.
var replaces = map[string][]string{"variants": {"npe", "duration"}, "parts": {"npe", "duration"}, "script": {"command"}}

// rowsOf makes up what can be sent to every endpoint of a description: as it is, with
// every list, set, number and text at its largest, one after another, and with the
// widest question.
func rowsOf(d *described) []row {
	var rows []row
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(d.Paths[path])) {
			op := d.Paths[path][method]
			add := func(what, query string, body any) {
				r := row{method: strings.ToUpper(method), path: path, what: what, query: query}
				if body != nil {
					text, err := json.Marshal(body)
					if err != nil {
						panic(err)
					}
					r.body = string(text)
				}
				rows = append(rows, r)
			}
			widest, least, asShown := url.Values{}, url.Values{}, url.Values{}
			for _, p := range op.Parameters {
				switch {
				case p.In != "query":
				case p.Schema.Type == "integer":
					widest.Set(p.Name, fmt.Sprintf("%.0f", *p.Schema.Maximum))
					asShown.Set(p.Name, fmt.Sprintf("%.0f", *p.Schema.Maximum))
					least.Set(p.Name, "1")
				case p.Schema.Format == "date-time":
					widest.Set(p.Name, map[bool]string{true: "1970-01-01T00:00:01Z", false: "2200-01-01T00:00:00Z"}[p.Name == "from"])
				case len(p.Schema.Examples) > 0:
					asShown.Set(p.Name, fmt.Sprint(p.Schema.Examples[0]))
				}
			}
			if op.RequestBody == nil {
				add("", "", nil)
				for what, query := range map[string]url.Values{"widest": widest, "least": least, "chosen": asShown} {
					if len(query) > 0 {
						add(what, query.Encode(), nil)
					}
				}
				continue
			}
			if _, plain := op.RequestBody.Content["application/octet-stream"]; plain {
				for what, body := range map[string]string{"small": "1 0 -1 60 8", "large": strings.Repeat("1 0 -1 60 8\n", largestBody/12)} {
					rows = append(rows, row{method: strings.ToUpper(method), path: path, what: what, query: asShown.Encode(), body: body, kind: "application/octet-stream"})
				}
				continue
			}
			add("legal", "", legal(path))
			s := op.RequestBody.Content["application/json"].Schema
			bodies := s.largest()
			if _, flow := s.Properties["tasks"]; flow && method == "post" {
				bodies = append(bodies, largeWorkflows()...)
			}
			for _, l := range bodies {
				body := legal(path)
				for name, v := range l.fields {
					for _, without := range replaces[name] {
						delete(body, without)
					}
					body[name] = v
				}
				add(l.what, widest.Encode(), body)
			}
		}
	}
	return rows
}

// large is fields of a body at their largest.
type large struct {
	what   string
	fields map[string]any
}

// largest makes up the largest values of an object: each list, set and number by
// itself, and each text.
func (f *shape) largest() (all []large) {
	for _, name := range slices.Sorted(maps.Keys(f.Properties)) {
		p := f.Properties[name]
		add := func(what string, v any) { all = append(all, large{what, map[string]any{name: v}}) }
		switch {
		case p.Type == "array" && p.Items.Type == "object":
			inner := ""
			for _, field := range slices.Sorted(maps.Keys(p.Items.Properties)) {
				if q := p.Items.Properties[field]; q.Type == "array" {
					inner = field
				}
			}
			add(fmt.Sprintf("%d %s", longestList, name), p.list(longestList, "", 0))
			if inner != "" {
				side := int(math.Sqrt(longestList))
				add(fmt.Sprintf("%d %s of %d %s", side, name, side, inner), p.list(side, inner, side))
				add(fmt.Sprintf("%d %s in 2 %s", longestList, inner, name), p.list(2, inner, longestList/2))
			}
		case p.Type == "array" && p.Items.Type == "integer":
			add(name, slices.Repeat([]int{1000}, largestBody/5))
		case p.Type == "array":
			add(name, slices.Repeat([]string{"A=b"}, largestBody/6))
		case p.isSet():
			var text strings.Builder
			for i := 0; text.Len() < largestBody-8; i += 2 {
				fmt.Fprintf(&text, ",%d", i)
			}
			add(name+", a set", text.String()[1:])
			add(name+", 1000 of them", "1-1000")
		case p.Type == "integer":
			add(fmt.Sprintf("%s %.0f", name, *p.Maximum), int64(*p.Maximum))
		case p.Type == "string" && p.Format == "" && p.Enum == nil:
			add(name+", a text", strings.Repeat("x", largestBody))
		}
	}
	return all
}

// isSet reports whether a text is a set of numbers, by its example.
func (f *shape) isSet() bool {
	if f.Type != "string" || len(f.Examples) == 0 {
		return false
	}
	example := fmt.Sprint(f.Examples[0])
	return strings.Contains(example, "-") && strings.Trim(example, "0123456789-,") == ""
}

// list makes up a list of n objects with a list in each, if there is one.
func (f *shape) list(n int, inner string, each int) []any {
	list := make([]any, n)
	for i := range list {
		if inner != "" {
			list[i] = map[string]any{inner: f.Items.Properties[inner].list(each, "", 0)}
		} else {
			list[i] = map[string]any{"npe": 1 + i%64, "duration": 60 + i}
		}
	}
	return list
}

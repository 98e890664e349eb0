package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What is odd or wrong about a workflow is promised all the same or told: by a real service, with the
// status, the field and what would be right.
func TestBadWorkflowsAreTold(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a service")
	}
	dir := t.TempDir()
	k := &killed{t: t, address: freeAddress(t), data: filepath.Join(dir, "data"), config: filepath.Join(dir, "sites.yaml")}
	k.a = &asker{url: "http://" + k.address, rng: rand.New(rand.NewPCG(18, 6)), tokens: map[string]string{}, pairs: map[string]int{}}
	if err := os.WriteFile(k.config, []byte("sites:\n  - {name: here, adapter: {kind: local, cores: 4, node: n1}}\n  - {name: far, pes: 2}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	k.start()
	defer func() { k.kill() }()
	for _, name := range []string{"ann", "bob"} {
		k.a.tokens[name] = secretOf(k, name)
	}
	ask := func(who, method, path, body, key string) (int, string) {
		t.Helper()
		status, text, err := k.a.plain(who, method, path, body, key)
		if err != nil {
			t.Fatal(err)
		}
		return status, text
	}
	work := func(id string, command ...string) string {
		list, err := json.Marshal(command)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf(`{"id":%q,"tasks":[{"id":"a","seconds":2,"alpha":1,"command":%s,"dir":%q}]}`, id, list, dir)
	}
	soon := time.Now().Add(5 * time.Second).UTC().Format(time.RFC3339)
	const task = `{"id":"a","seconds":1}`
	if status, text := ask("ann", http.MethodPost, "/v1/workflows", `{"id":"first","tasks":[`+task+`]}`, "k"); status != http.StatusCreated {
		t.Fatalf("one task: %d %s", status, text)
	}
	for name, c := range map[string]struct {
		body, key, who string
		status         int
		says           string
	}{
		"100,000 tasks":        {body: `{"tasks":[` + strings.Repeat(task+",", 99_999) + task + `]}`, status: http.StatusRequestEntityTooLarge, says: "larger than 1048576 bytes"},
		"10,001 tasks":         {body: `{"tasks":[` + strings.Repeat(task+",", 10_000) + task + `]}`, status: http.StatusUnprocessableEntity, says: "10001 tasks; want 1 to 10000"},
		"10,000 of one name":   {body: `{"tasks":[` + strings.Repeat(task+",", 9_999) + task + `]}`, status: http.StatusUnprocessableEntity, says: `belongs to two tasks`},
		"empty":                {body: `{"tasks":[]}`, status: http.StatusUnprocessableEntity, says: "0 tasks; want 1 to 10000"},
		"nothing":              {body: ``, status: http.StatusUnsupportedMediaType, says: "want application/json"},
		"no JSON":              {body: `{"tasks":[`, status: http.StatusUnprocessableEntity, says: "not JSON at byte 10"},
		"a cycle":              {body: `{"tasks":[{"id":"a","seconds":1,"after":["b"]},{"id":"b","seconds":1,"after":["a"]}]}`, status: http.StatusUnprocessableEntity, says: "cycle"},
		"after itself":         {body: `{"tasks":[{"id":"a","seconds":1,"after":["a"]}]}`, status: http.StatusUnprocessableEntity, says: `\"a\"`},
		"a name of two lines":  {body: `{"tasks":[{"id":"a\nb","seconds":1}]}`, status: http.StatusUnprocessableEntity, says: "one line"},
		"a name that quotes":   {body: `{"id":"quotes","tasks":[{"id":"a\"b'c $(x) \\","seconds":1}]}`, status: http.StatusCreated, says: `"decision":"promised"`},
		"no time":              {body: `{"id":"zero","tasks":[{"id":"a","seconds":0}]}`, status: http.StatusCreated, says: `"decision":"promised"`},
		"a time of years":      {body: `{"tasks":[{"id":"a","seconds":3e9}]}`, status: http.StatusCreated, says: `your limit length is 7-00:00:00, and this would be`},
		"a time beyond all":    {body: `{"tasks":[{"id":"a","seconds":1e300}]}`, status: http.StatusUnprocessableEntity, says: "1e+300"},
		"a deadline gone by":   {body: `{"deadline":"2020-01-01T00:00:00Z","tasks":[` + task + `]}`, status: http.StatusUnprocessableEntity, says: "2020-01-01T00:00:00Z is over"},
		"a deadline too tight": {body: `{"deadline":"` + soon + `","tasks":[{"id":"a","seconds":600}]}`, status: http.StatusCreated, says: `"decision":"refused"`},
		"no such site":         {body: `{"site":"mars","tasks":[` + task + `]}`, status: http.StatusCreated, says: `no site has all of this: the name mars`},
		"no such site of one":  {body: `{"tasks":[{"id":"a","seconds":1,"site":"mars"}]}`, status: http.StatusCreated, says: `no site has all of this: the name mars`},
		"two writers": {
			body: `{"tasks":[{"id":"a","seconds":1,"command":["x"],"dir":"/","outputs":["f"]},{"id":"b","seconds":1,"command":["x"],"dir":"/","outputs":["f"]}]}`,
			who:  "operator", status: http.StatusUnprocessableEntity, says: `\"f\"`,
		},
		"a site that runs nothing": {
			body: `{"tasks":[{"id":"a","seconds":1,"command":["x"],"dir":"/","site":"here"},{"id":"b","seconds":1,"command":["x"],"dir":"/","site":"far"}]}`,
			who:  "operator", status: http.StatusConflict, says: `task \"b\": site far runs no tasks of workflows by itself, and a workflow with commands is at sites that do (here)`,
		},
		"more PEs than any site":    {body: `{"tasks":[{"id":"a","seconds":1,"few":5}]}`, status: http.StatusCreated, says: `"reason":"too_large"`},
		"no such planner":           {body: `{"algorithm":"bd-cpra","tasks":[` + task + `]}`, status: http.StatusUnprocessableEntity, says: `bd-cpar`},
		"software of one task":      {body: `{"tasks":[` + task + `,{"id":"b","seconds":1,"software":"cfd"}]}`, status: http.StatusCreated, says: `task \"b\": no site has cfd`},
		"a key of another workflow": {body: `{"id":"second","tasks":[` + task + `]}`, key: "k", status: http.StatusUnprocessableEntity, says: "idempotency_key"},
		"an id that is taken":       {body: `{"id":"first","tasks":[` + task + `]}`, status: http.StatusConflict, says: `workflow \"first\" is taken`},
	} {
		if status, text := ask(cmp.Or(c.who, "ann"), http.MethodPost, "/v1/workflows", c.body, c.key); status != c.status || !strings.Contains(text, c.says) {
			t.Errorf("%s: %d %.400s; want %d and %s", name, status, text, c.status, c.says)
		}
	}

	// Somebody else is told no more of an id than that it is taken, if they want it for their own.
	for method, path := range map[string]string{http.MethodGet: "first", http.MethodDelete: "first", http.MethodPost: "first/confirm", "POST ": "first/retry"} {
		if status, text := ask("bob", strings.TrimSpace(method), "/v1/workflows/"+path, "", ""); status != http.StatusNotFound || !strings.Contains(text, `no workflow \"first\"`) {
			t.Errorf("%s %s by somebody else: %d %s", method, path, status, text)
		}
	}
	if status, text := ask("bob", http.MethodPost, "/v1/workflows", `{"id":"first","tasks":[`+task+`]}`, ""); status != http.StatusConflict || strings.Contains(text, "ann") {
		t.Errorf("the id of somebody else: %d %s", status, text)
	}
	if status, text := ask("bob", http.MethodPost, "/v1/workflows", `{"user":"ann","tasks":[`+task+`]}`, ""); status != http.StatusForbidden {
		t.Errorf("in the name of somebody else: %d %s", status, text)
	}

	// A command that is not there fails its task, and the workflow with it, in words.
	if status, text := ask("operator", http.MethodPost, "/v1/workflows", work("missing", "/nonexistent/program"), ""); status != http.StatusCreated {
		t.Fatalf("%d %s", status, text)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		w, _ := k.workflow("missing")
		if w.State == "failed" {
			if why := w.Tasks[0].Why; !strings.Contains(why, "/nonexistent/program") && !strings.Contains(why, "127") {
				t.Errorf("it failed because %q", why)
			}
			break
		}
		if time.Now().After(end) {
			t.Fatalf("it is %s: %+v", w.State, w.Tasks)
		}
	}
}

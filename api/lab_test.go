package api_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/api/laboratory"
	"github.com/berth-hpc/berth/lab"
)

const compareThis = `{"sweep":[{"name":"policy","values":["first-fit","pe-worst"]}],"settings":{"noise":"0.1"}}`

// labProgram stands in for berth lab: with --noise=0.9 it does not end.
const labProgram = `
case "$*" in
*--noise=0.9*) echo '{"done":1.5,"runs":4}'; exec cat >/dev/null ;;
*) mkdir report; cp ../../summary.json report/; echo "$*" > report/runs.csv; echo '<p>' > report/report.html; echo '<svg/>' > report/wait.svg; head -c 20000 /dev/zero > report/summary.csv ;;
esac
`

// newLaboratory returns a laboratory with a program that stands in for berth lab.
func newLaboratory(t testing.TB) *laboratory.Laboratory {
	t.Helper()
	folder := t.TempDir()
	summary, err := json.Marshal(lab.Summary{
		Title: "a.swf on 64 PEs", Figures: []lab.SummaryFigure{{Name: "mean_wait", Title: "mean wait"}}, Rows: []lab.SummaryRow{{Name: "pe-worst", Cells: []lab.SummaryCell{{Value: "1"}}}},
		Best: []lab.SummaryBest{{Title: "mean wait", Where: "pe-worst"}}, Drawings: []lab.SummaryDrawing{{Name: "wait"}},
	})
	for name, text := range map[string]string{"program": labProgram, "summary.json": string(summary)} {
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	l, err := laboratory.Open(laboratory.Options{Folder: filepath.Join(folder, "laboratory"), Program: []string{"sh", filepath.Join(folder, "program")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// sendLog sends a log and returns its id.
func (w *world) sendLog(t testing.TB, user string) string {
	t.Helper()
	return into[form.Log](t, w.do(user, "POST", "/v1/lab/logs?name=a.swf", "1 0 -1 60 8\n", "Content-Type", "application/octet-stream"), 201).ID
}

// compared waits for the end of a comparison: it is of another process, which gives no signal.
func (w *world) compared(t testing.TB, user, id string) form.Comparison {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for limit := time.Now().Add(20 * time.Second); ; <-tick.C {
		c := into[form.Comparison](t, w.do(user, "GET", "/v1/lab/comparisons/"+id, ""), 200)
		if c.Ended != 0 || time.Now().After(limit) {
			return c
		}
	}
}

// fillLaboratory gives a user a log, a comparison that is done and one that runs.
func (w *world) fillLaboratory(t testing.TB, user string) (log, done, running string) {
	t.Helper()
	log = w.sendLog(t, user)
	ask := `{"log":"` + log + `",` + compareThis[1:]
	done = into[form.Comparison](t, w.do(user, "POST", "/v1/lab/comparisons", ask), 201).ID
	if c := w.compared(t, user, done); c.State != "done" {
		t.Fatalf("it is %+v", c)
	}
	running = into[form.Comparison](t, w.do(user, "POST", "/v1/lab/comparisons", strings.Replace(ask, "0.1", "0.9", 1)), 201).ID
	return log, done, running
}

func TestAComparisonOfALogThatWasSent(t *testing.T) {
	w := newWorld(t, api.Options{Limits: unlimited})
	log, done, running := w.fillLaboratory(t, "alice")
	list := into[form.Laboratory](t, w.do("alice", "GET", "/v1/lab", ""), 200)
	if len(list.Logs) != 1 || list.Logs[0].ID != log || list.Logs[0].Name != "a.swf" || list.Logs[0].Bytes != 12 || len(list.Comparisons) != 2 || list.MaxBytes != 64<<20 || list.KeptSeconds != 86_400 {
		t.Errorf("%+v", list)
	}
	c := list.Comparisons[0]
	if want := "berth lab --workload a.swf --noise=0.1 --sweep=policy=first-fit,pe-worst --out report"; c.ID != done || c.Command != want || c.Log != "a.swf" || c.User != "alice" {
		t.Errorf("%+v, want the command %s", c, want)
	}
	results := into[form.ComparisonResults](t, w.do("alice", "GET", "/v1/lab/comparisons/"+done+"/results", ""), 200)
	if results.Title != "a.swf on 64 PEs" || results.Rows[0].Cells[0].Value != "1" || results.Drawings[0].Name != "wait" {
		t.Errorf("%+v", results)
	}
	for name, want := range map[string][2]string{
		"runs.csv": {"text/csv; charset=utf-8", "attachment; filename=runs.csv"}, "report.html": {"text/html; charset=utf-8", "attachment; filename=report.html"}, "wait.svg": {"image/svg+xml", ""},
	} {
		a := w.do("alice", "GET", "/v1/lab/comparisons/"+done+"/files/"+name, "")
		h := a.Header()
		if a.Code != 200 || h.Get("Content-Type") != want[0] || h.Get("Content-Disposition") != want[1] || !strings.Contains(h.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("%s: %d %v", name, a.Code, h)
		}
	}
	if a := w.do("alice", "GET", "/v1/lab/comparisons/"+done+"/files/summary.csv", "", "Accept-Encoding", "gzip"); a.Header().Get("Content-Encoding") != "gzip" {
		t.Errorf("not packed: %v", a.Header())
	}
	for _, name := range []string{"a.swf", "program", "%2e%2e%2fsummary.json"} {
		wantProblem(t, w.do("alice", "GET", "/v1/lab/comparisons/"+done+"/files/"+name, ""), 404, "has no file")
	}
	wantProblem(t, w.do("alice", "GET", "/v1/lab/comparisons/"+running+"/results", ""), 404)
	wantProblem(t, w.do("alice", "POST", "/v1/lab/comparisons", compareThis), 409, running)
	for range 2 {
		if c := into[form.Comparison](t, w.do("alice", "DELETE", "/v1/lab/comparisons/"+running, ""), 200); c.State != "cancelled" {
			t.Errorf("%+v", c)
		}
	}
	if list := into[form.Laboratory](t, w.do("root", "GET", "/v1/lab", ""), 200); len(list.Comparisons) != 2 || len(list.Logs) != 0 {
		t.Errorf("an operator sees %+v", list)
	}
	if list := into[form.Laboratory](t, w.do("bob", "GET", "/v1/lab", ""), 200); len(list.Comparisons) != 0 || len(list.Logs) != 0 {
		t.Errorf("bob sees %+v", list)
	}
	wantProblem(t, w.do("alice", "GET", "/v1/lab/comparisons/abcdefgh-1", ""), 404, "has been restarted")
}

// Users replay what they requested, operators what everybody did.
func TestAComparisonOfTheServicesOwnPast(t *testing.T) {
	w := newWorld(t, api.Options{Limits: unlimited})
	w.reserve(t, "alice")
	w.reserve(t, "bob")
	for user, want := range map[string]string{"alice": "alice", "bob": "bob", "root": "alice bob"} {
		id := into[form.Comparison](t, w.do(user, "POST", "/v1/lab/comparisons", `{"journal":{"from":"2026-01-01T00:00:00Z"},`+compareThis[1:]), 201).ID
		c := w.compared(t, user, id)
		if want := "berth lab --workload history.jsonl --sites sites.yaml --preset=default --noise=0.1 --sweep=policy=first-fit,pe-worst --out report"; c.Command != want || c.State != "done" {
			t.Fatalf("%+v, want the command %s", c, want)
		}
		var users []string
		for line := range strings.Lines(w.do(user, "GET", "/v1/lab/comparisons/"+id+"/files/history.jsonl", "").text) {
			var request struct{ User string }
			if err := json.Unmarshal([]byte(line), &request); err != nil {
				t.Fatal(err)
			}
			users = append(users, request.User)
		}
		if got := strings.Join(users, " "); got != want {
			t.Errorf("%s replays what %s requested, want %s", user, got, want)
		}
		if text := w.do(user, "GET", "/v1/lab/comparisons/"+id+"/files/sites.yaml", "").text; !strings.Contains(text, `"cm5"`) {
			t.Error(text)
		}
	}
	id := into[form.Comparison](t, w.do("alice", "POST", "/v1/lab/comparisons", `{"journal":{"to":"2026-01-01T00:00:00Z"},`+compareThis[1:]), 201).ID
	if c := w.compared(t, "alice", id); c.State != "failed" || !strings.Contains(c.Trouble, "nothing was requested in that time") {
		t.Errorf("%+v", c)
	}
}

func TestComparisonsThatAreWrong(t *testing.T) {
	w := newWorld(t, api.Options{Limits: unlimited})
	log := w.sendLog(t, "alice")
	for body, words := range map[string][]string{
		`{}`:           {"sweep: missing"},
		`{"sweep":[]}`: {"sweep: 0 settings; want 1 to 6"},
		`{"sweep":[{"name":"workload","values":["/etc/passwd","b"]}]}`:                                        {"sweep[0].name: unknown setting"},
		`{"sweep":[{"name":"sites","values":["a"]}]}`:                                                         {"sweep[0].name: unknown setting"},
		`{"sweep":[{"name":"outages","values":["a"]}]}`:                                                       {"sweep[0].name: unknown setting"},
		`{"settings":{"cells":"/tmp/x"},` + compareThis[1:]:                                                   {"settings: "},
		`{"sweep":[{"name":"policy"}]}`:                                                                       {"sweep[0]: incomplete; want name and values"},
		`{"sweep":[{"name":"policy","values":[]}]}`:                                                           {"sweep[0].values: 0 values; want 1 to 64"},
		`{"sweep":[{"name":"policy","values":[null]}]}`:                                                       {"sweep[0].values[0]: null; want a string, a number, true or false"},
		`{"sweep":[{"name":"policy","values":[""]}]}`:                                                         {"sweep[0].values[0]: 0 bytes; want 1 to 200"},
		`{"sweep":[{"name":"policy","values":["a\u0007"]}]}`:                                                  {"control characters"},
		`{"log":"` + log + `","journal":{},` + compareThis[1:]:                                                {"journal: beside log; want one of them"},
		`{"log":"` + log + `","settings":{"policy":"pe-worst"},"sweep":[{"name":"policy","values":["all"]}]}`: {"settings.policy: compared too"},
		`{"settings":{"pes":4},"sweep":[{"name":"policy","values":["all"]}]}`:                                 {"settings.pes: the machine is that of the service"},
		`{"replications":101,"seed":-1,` + compareThis[1:]:                                                    {"replications: 101; want a whole number from 1 to 100", "seed: -1"},
		`{"journal":{"from":"yesterday"},` + compareThis[1:]:                                                  {"journal.from: "},
	} {
		wantProblem(t, w.do("alice", "POST", "/v1/lab/comparisons", body), 422, words...)
	}
	wantProblem(t, w.do("alice", "POST", "/v1/lab/comparisons", `{"log":"nonsense",`+compareThis[1:]), 404, "no log")
	if list := into[form.Laboratory](t, w.do("alice", "GET", "/v1/lab", ""), 200); len(list.Comparisons) != 0 {
		t.Errorf("%+v", list)
	}
}

func TestLogsThatAreWrong(t *testing.T) {
	w := newWorld(t, api.Options{Limits: unlimited})
	send := func(query, body, kind string) *answer {
		return w.do("alice", "POST", "/v1/lab/logs"+query, body, "Content-Type", kind)
	}
	const plain = "application/octet-stream"
	wantProblem(t, send("?name=a.swf", "", plain), 422, "body: empty")
	wantProblem(t, send("", "x", plain), 422, "name: 0 bytes")
	wantProblem(t, send("?name="+strings.Repeat("x", 256), "x", plain), 422, "name: 256 bytes")
	wantProblem(t, send("?nam=x", "x", plain), 422, "nam: unknown parameter")
	for _, kind := range []string{"text/plain", "multipart/form-data", "application/x-www-form-urlencoded", "", "application/json"} {
		wantProblem(t, send("?name=a.swf", "x", kind), 415, "Content-Type", plain)
	}
	ask := w.ask("alice", "POST", "/v1/lab/logs?name=a.swf", "x", "Content-Type", plain)
	ask.ContentLength = 500 << 20
	ask.Body = unread{t}
	rec := httptest.NewRecorder()
	w.ServeHTTP(rec, ask)
	wantProblem(t, &answer{rec, rec.Body.String()}, http.StatusRequestEntityTooLarge, "larger than 64 MiB")
	ask = w.ask("alice", "POST", "/v1/lab/logs?name=a.swf", "x", "Content-Type", plain)
	ask.ContentLength, ask.Body = -1, io.NopCloser(zeros{}) // who does not say how long it is
	rec = httptest.NewRecorder()
	w.ServeHTTP(rec, ask)
	wantProblem(t, &answer{rec, rec.Body.String()}, http.StatusRequestEntityTooLarge, "larger than 64 MiB")
	if list := into[form.Laboratory](t, w.do("alice", "GET", "/v1/lab", ""), 200); len(list.Logs) != 0 {
		t.Errorf("%+v is kept", list.Logs)
	}
}

// unread is a body that must not be read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("what is too large was read")
	return 0, io.EOF
}

func (unread) Close() error { return nil }

type zeros struct{}

func (zeros) Read(into []byte) (int, error) { return len(into), nil }

// The form of the answer is that of the file that berth lab writes.
func TestResultsHaveTheFormOfTheReport(t *testing.T) {
	names := func(v any) string {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	ours := form.ComparisonResults{Figures: []form.ComparedFigure{{}}, Rows: []form.ComparedRow{{Cells: []form.ComparedCell{{}}}}, Best: []form.ComparedBest{{}}, Drawings: []form.ComparisonSketch{{}}}
	theirs := lab.Summary{Figures: []lab.SummaryFigure{{}}, Rows: []lab.SummaryRow{{Cells: []lab.SummaryCell{{}}}}, Best: []lab.SummaryBest{{}}, Drawings: []lab.SummaryDrawing{{}}}
	if diff := cmp.Diff(names(theirs), names(ours)); diff != "" {
		t.Error(diff)
	}
}

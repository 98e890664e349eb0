package rest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm"
	"github.com/berth-hpc/berth/site/slurm/rest"
)

// jwt writes a token of alice, which no server here looks at.
func jwt(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jwt")
	if err := os.WriteFile(path, []byte("SLURM_JWT=e30.eyJzdW4iOiJhbGljZSJ9.e30\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ address, jwt, field, want string }{
		{"unix:///run/slurmrestd.socket", "", "", ""},
		{"unix:///run/slurmrestd.socket", "/t", "", ""},
		{"https://head:6820", "/t", "", ""},
		{"https://head/", "/t", "", ""},
		{"http://127.0.0.1:6820", "/t", "", ""},
		{"http://[::1]:6820", "/t", "", ""},
		{"http://localhost:6820", "/t", "", ""},
		{"http://head:6820", "/t", "rest", "in the clear"},
		{"http://127.0.0.1.head:6820", "/t", "rest", "in the clear"},
		{"https://head:6820", "", "jwt", "wants a token"},
		{"https://head:6820/slurm/v0.0.45", "/t", "rest", "it has a path"},
		{"https://me:secret@head", "/t", "rest", "more than a place"},
		{"unix://run/x", "", "rest", "there are three"},
		{"unix:///", "", "", ""},
		{"head:6820", "/t", "rest", "neither unix:// nor https://"},
		{"ftp://head", "/t", "rest", "neither unix:// nor https://"},
		{"https://", "/t", "rest", "neither unix:// nor https://"},
		{"http://a\nb", "/t", "rest", "it is no address"},
		{"", "/t", "rest", "neither unix:// nor https://"},
	} {
		o := rest.Options{Address: c.address, JWT: c.jwt}
		err := rest.Check(o)
		var wrong *berth.Error
		if c.want == "" {
			if err != nil {
				t.Errorf("%q: %v", c.address, err)
			}
			continue
		}
		if !errors.As(err, &wrong) || wrong.Code != berth.Invalid || wrong.Field != c.field || !strings.Contains(wrong.Msg, c.want) {
			t.Errorf("%q: %v, want %s: …%s…", c.address, err, c.field, c.want)
			continue
		}
		if got, err := rest.New(o).Run(t.Context(), slurm.Command{Argv: []string{"scontrol", "ping"}}); err != nil || got.Exit == 0 || !strings.Contains(got.Stderr, c.want) {
			t.Errorf("%q: %q %v", c.address, got.Stderr, err)
		}
	}
}

// An authority is for https alone.
func TestAuthorityOfNoCertificate(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"unix:///run/slurmrestd.socket", "http://127.0.0.1:6820"} {
		err := rest.Check(rest.Options{Address: address, JWT: "/t", CA: "/ca"})
		if wrong, is := errors.AsType[*berth.Error](err); !is || wrong.Code != berth.Invalid || wrong.Field != "ca" || !strings.Contains(wrong.Msg, address) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// server is a slurmrestd of the test's own, at a Unix socket. It notes what it is asked.
type server struct {
	mu      sync.Mutex
	asked   []string
	answers map[string]string // by method and path
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // a short one is a shorter note
	s.mu.Lock()
	defer s.mu.Unlock()
	at := r.Method + " " + strings.TrimPrefix(r.URL.RequestURI(), "/slurm/v0.0.45/")
	s.asked = append(s.asked, strings.TrimSpace(at+" "+string(body)))
	w.Header().Set("Content-Type", "application/json")
	text, known := s.answers[at]
	if !known {
		text = `{"errors": [], "warnings": []}`
	}
	_, _ = io.WriteString(w, text) // the asker is gone otherwise
}

// serve returns an API in front of a handler.
func serve(t *testing.T, h http.Handler) *rest.API {
	t.Helper()
	dir, err := os.MkdirTemp("", "rest") // paths of sockets are short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // it is in the folder for such
	l, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: h}} //nolint:gosec // a test asks
	s.Start()
	t.Cleanup(s.Close)
	return rest.New(rest.Options{Address: "unix://" + l.Addr().String(), JWT: jwt(t)})
}

func run(t *testing.T, a *rest.API, argv ...string) (slurm.Result, error) {
	t.Helper()
	return a.Run(t.Context(), slurm.Command{Argv: argv})
}

// slurmrestd makes what it is to change if it is not there, and changes what it is to make if it is. The
// commands do neither.
func TestMakingAndChangingAreTwo(t *testing.T) {
	t.Parallel()
	s := &server{answers: map[string]string{"GET reservations/": `{"reservations": [{"name": "berth_a_1"}]}`}}
	a := serve(t, s)
	for _, c := range []struct {
		args []string
		said string // what is refused
		want []string
	}{
		{[]string{"create", "reservation", "ReservationName=berth_a_1", "StartTime=2026-11-23T12:00:00", "EndTime=2026-11-23T13:00:00", "Nodes=n1"}, "Duplicate reservation name", []string{"GET reservations/"}},
		{[]string{"update", "ReservationName=berth_a_2", "EndTime=2026-11-23T13:00:00"}, "Requested reservation is invalid", []string{"GET reservations/"}},
		{[]string{"create", "reservation", "ReservationName=berth_a_2", "StartTime=2026-11-23T12:00:00", "EndTime=2026-11-23T13:00:00", "Nodes=n[1-2]", "CoreCnt=3", "Users=a,b", "Licenses=x:2"}, "", []string{
			"GET reservations/",
			`POST reservation {"name":"berth_a_2","start_time":{"set":true,"infinite":false,"number":1795435200},"end_time":{"set":true,"infinite":false,"number":1795438800},"node_list":["n1","n2"],"core_count":{"set":true,"infinite":false,"number":3},"users":["a","b"],"licenses":["x:2"]}`,
		}},
		{[]string{"update", "ReservationName=berth_a_1", "EndTime=2026-11-23T13:00:00", "NodeCnt=2"}, "", []string{
			"GET reservations/",
			`POST reservation {"name":"berth_a_1","end_time":{"set":true,"infinite":false,"number":1795438800},"node_count":{"set":true,"infinite":false,"number":2}}`,
		}},
		{[]string{"update", "ReservationName=berth-probe-0", "EndTime=now+1hour"}, "", []string{"DELETE reservation/berth-probe-0"}},
		{[]string{"create", "reservation", "ReservationName=berth_a_2", "Flags=MAINT"}, "a reservation with Flags= is not asked of slurmrestd", nil},
		{[]string{"create", "reservation", "ReservationName=berth_a_2", "Nodes=n1,n2", "CoreCnt=1,2"}, "array for CoreCnt is no longer valid", nil},
		{[]string{"create", "reservation", "ReservationName=berth_a_2", "Nodes=n[1-"}, "Invalid node name specified", nil},
		{[]string{"create", "reservation", "ReservationName=berth_a_2", "NodeCnt=-1"}, `"-1" is no number`, nil},
		{[]string{"create", "reservation", "ReservationName=berth_a_2", "StartTime=noon"}, `Invalid time specified: "noon"`, nil},
		{[]string{"delete", "ReservationName=../jobs?x"}, "", []string{"DELETE reservation/..%2Fjobs%3Fx"}},
		{[]string{"update", "JobId=7", "TimeLimit=12"}, "", []string{`POST job/7 {"time_limit":{"set":true,"infinite":false,"number":12}}`}},
		{[]string{"update", "JobId=7", "Nice=1"}, "a job with Nice= is not asked", nil},
		{[]string{"update", "NodeName=n1", "State=DRAIN", "Reason=a = b"}, "", []string{`POST node/n1 {"state":["DRAIN"],"reason":"a = b"}`}},
		{[]string{"update", "NodeName=n1", "Weight=1"}, "a node with Weight= is not asked", nil},
		{[]string{"reboot", "n1"}, "scontrol reboot n1 is not asked", nil},
	} {
		s.asked = nil
		got, err := run(t, a, append([]string{"scontrol"}, c.args...)...)
		if err != nil || (got.Exit == 0) != (c.said == "") || !strings.Contains(got.Stderr, c.said) || !slices.Equal(s.asked, c.want) {
			t.Errorf("%v: exit %d %q %v, asked\n%s\nwant\n%s", c.args, got.Exit, got.Stderr, err, strings.Join(s.asked, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// What slurmrestd or whatever stands before it says is told as it is, and whether something may have been done:
// an error is that it may have.
func TestStrangeAnswers(t *testing.T) {
	t.Parallel()
	respond := func(code int, kind, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(code)
			_, _ = io.WriteString(w, text) // the asker is gone otherwise
		}
	}
	const js = "application/json"
	for name, c := range map[string]struct {
		h        http.HandlerFunc
		said     string
		unsure   bool
		contains string
	}{
		"a proxy without a slurmrestd": {respond(502, "text/html", "<h1>Bad\nGateway</h1>"), "slurmrestd is not reached behind unix://", false, ""},
		"another server":               {respond(200, "text/html", "<h1>It works!</h1>"), "slurmrestd says 200 OK and no JSON", false, ""},
		"a redirection":                {respond(302, "text/plain", "elsewhere"), "slurmrestd says 302 Found and no JSON", false, ""},
		"a token of another":           {respond(401, "text/plain", "Authentication failure"), "slurmrestd does not take the token of alice in ", false, ""},
		"no such API":                  {respond(404, "text/plain", "Unable to find"), "slurmrestd has no API v0.0.45", false, ""},
		"an error":                     {respond(500, js, `{"errors":[{"error":"Requested nodes are busy","error_number":2016,"description":"why"}]}`), "Requested nodes are busy (why)", false, ""},
		"an error and no status":       {respond(200, js, `{"pings":null,"errors":[{"error":"Zero Bytes were transmitted or received"}]}`), "Zero Bytes", false, ""},
		"a status and no error":        {respond(500, js, `{}`), "slurmrestd says 500 Internal Server Error and not why", false, ""},
		"half an answer":               {respond(200, js, `{"pings": [{"hostname": "a", "resp`), "", true, "cannot read what slurmrestd says"},
		"a list":                       {respond(200, js, `[]`), "", true, "cannot read what slurmrestd says"},
		"another type":                 {respond(200, js, `{"pings": [7]}`), "", true, "pings: json: cannot unmarshal"},
		"no list":                      {respond(200, js, `{"pings": {"a": 1}}`), "", true, "is no list"},
		"nothing":                      {respond(200, js, ``), "", true, "cannot read what slurmrestd says"},
		"it dies meanwhile":            {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "", true, "EOF"},
		"all controllers down": {
			respond(200, js, `{"pings":[{"hostname":"a","responding":false,"primary":true,"status":"Unable to contact slurm controller (connect failure)"}]}`), "Unable to contact slurm controller", false, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := run(t, serve(t, c.h), "scontrol", "ping")
			switch {
			case c.unsure && (err == nil || !strings.Contains(err.Error(), c.contains)):
				t.Errorf("%q %v, want an error with %q", got.Stderr, err, c.contains)
			case !c.unsure && (err != nil || got.Exit == 0 || !strings.Contains(got.Stderr, c.said)):
				t.Errorf("exit %d %q %v, want %q", got.Exit, got.Stderr, err, c.said)
			}
		})
	}
}

// One that does not answer is left when the time of a command is over.
func TestSilence(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	a := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end }))
	t.Cleanup(func() { close(end) })
	s := slurm.New(slurm.Options{Site: "a", Exec: a, Timeout: 50 * time.Millisecond})
	began := time.Now()
	if _, err := s.Observe(t.Context()); site.KindOf(err) != site.Unreachable || !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 5*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}

// Names and reasons are people's: what is in them begins no line and no record of its own.
func TestOddTextsOverREST(t *testing.T) {
	t.Parallel()
	odd := "a\n NodeName=n9 StartTime=2030-01-01T00:00:00 {\"x\": 1}\t\x00é%s"
	text := func(v any) string {
		out, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	type obj = map[string]any
	num := func(n int) obj { return obj{"set": true, "infinite": false, "number": n} }
	a := serve(t, &server{answers: map[string]string{
		"GET conf": text(obj{
			"slurm_conf": obj{"ClusterName": "c", "SlurmUser": "slurm", "Licenses": []string{"matlab:4"}, "OverTimeLimit": 5}, "slurm_conf_meta": obj{"BOOT_TIME": 1, "LastUpdate": 1795444198, "SLURM_VERSION": "26.05.5"},
		}),
		"GET nodes/": text(obj{"nodes": []obj{
			{"name": "n1", "state": []string{"DRAIN", "IDLE"}, "sockets": 2, "cores": 4, "threads": 2, "cpus": 16, "reason": odd, "reason_set_by_user": "root", "reason_changed_at": num(100)},
		}}),
		"GET partitions/": text(obj{"partitions": []obj{{
			"name": "main", "nodes": obj{"configured": "n1"}, "flags": []string{"DEFAULT"}, "partition": obj{"state": []string{"UP"}},
			"maximums": obj{"time": num(1441), "nodes": obj{"set": false, "infinite": true}}, "groups": obj{"allowed": ""}, "accounts": obj{"allowed": "", "deny": "x"},
		}}}),
		"GET reservations/": text(obj{"reservations": []obj{{
			"name": odd, "start_time": num(1000), "end_time": num(2000), "node_list": "n1", "core_count": 3, "flags": []string{"DAILY"},
			"core_specializations": []obj{{"node": "n1", "core": "0-2"}}, "users": "root",
		}}}),
		"GET jobs/?flags=ALL": text(obj{"jobs": []obj{
			{
				"job_id": 7, "job_state": []string{"RUNNING", "COMPLETING"}, "user_name": "bob", "name": odd, "comment": odd, "nodes": "n1", "cpus": num(16), "node_count": num(1),
				"start_time": num(1000), "end_time": num(1600), "time_limit": num(10), "array_task_id": obj{"set": false}, "partition": "main",
			},
			{"job_id": 8, "array_job_id": num(8), "array_task_string": "3-9%2", "job_state": []string{"PENDING"}, "state_reason": "Resources", "user_name": "bob", "time_limit": obj{"infinite": true, "set": true}},
			{"job_id": 9, "job_state": []string{"PENDING", "RESV_DEL_HOLD"}, "state_reason": "ReservationDeleted", "state_description": "Reservation its was deleted", "user_name": "bob"},
		}}),
	}})
	s := slurm.New(slurm.Options{Site: "a", Exec: a, WholeNodes: true})
	state, err := s.Observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := state.Nodes[0]
	if len(state.Nodes) != 1 || n.Condition != site.Drained || !strings.HasPrefix(n.Reason, "a  NodeName=n9") || n.Since != 100 {
		t.Errorf("nodes %+v", state.Nodes)
	}
	if p := state.Partitions[0]; len(state.Partitions) != 1 || !p.Default || !p.Up || p.MaxTime != 86460 || p.MaxNodes != 0 || !slices.Equal(p.DeniedAccounts, []string{"x"}) || len(p.Groups) != 0 {
		t.Errorf("partitions %+v", state.Partitions)
	}
	if b := state.Foreign[0]; len(state.Foreign) != 1 || b.Start != 1000 || b.End != 2000 || b.Active || b.Repeat.Each != site.Daily || b.Cores != 3 || b.Shares[0].Cores.Count() != 3 {
		t.Errorf("reservations %+v", state.Foreign)
	}
	if len(state.Running) != 1 || len(state.Pending) != 2 || len(state.Ended) != 0 {
		t.Fatalf("jobs %+v %+v %+v", state.Running, state.Pending, state.Ended)
	}
	if j := state.Running[0]; j.ID != "7" || j.End != 1600 || j.Limit != 600 || j.User != "bob" || j.Shares[0].Node != "n1" {
		t.Errorf("%+v", j)
	}
	if j := state.Pending[0]; j.ID != "8_[3-9%2]" || j.Elements.Count() != 2 || j.Limit != 0 {
		t.Errorf("%+v", j)
	}
	if j := state.Pending[1]; j.ID != "9" || j.Left != "its" || !j.Held {
		t.Errorf("%+v", j)
	}
	if state.Licences[0].Name != "matlab" || state.Boot != 1 {
		t.Errorf("%+v", state)
	}
}

// The cores that a job has are told as hardware threads, as the commands tell them.
func TestCoresOfJobs(t *testing.T) {
	t.Parallel()
	core := func(i int, status string) string { return fmt.Sprintf(`{"index": %d, "status": [%q]}`, i, status) }
	a := serve(t, &server{answers: map[string]string{
		"GET nodes/": `{"nodes": [{"name": "n1", "threads": 2}]}`,
		"GET jobs/?flags=ALL&flags=DETAIL": `{"jobs": [{"job_id": 1, "job_resources": null}, {"job_id": 2, "job_resources": {"nodes": {"allocation": [{"name": "n1", "sockets": [
			{"index": 0, "cores": [` + core(0, "UNALLOCATED") + "," + core(1, "ALLOCATED") + `]}, {"index": 1, "cores": [` + core(0, "ALLOCATED") + "," + core(1, "UNALLOCATED") + `]}]}]}}}]}`,
	}})
	if got, err := run(t, a, "scontrol", "--all", "--oneliner", "show", "node"); err != nil || got.Exit != 0 {
		t.Fatal(got.Stderr, err)
	}
	got, err := run(t, a, "scontrol", "--all", "--details", "--oneliner", "show", "job")
	if want := "JobId=1\nJobId=2 Nodes=n1 CPU_IDs=2-3,4-5\n"; err != nil || got.Stdout != want {
		t.Errorf("%q %v, want %q", got.Stdout, err, want)
	}
}

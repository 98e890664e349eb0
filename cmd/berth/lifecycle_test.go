package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/courier"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/fake"
)

// startService [ADAPTER] starts a service with 64 PEs at the site cm5 for the
// rest of a script; with an adapter's name a fake of that kind is behind them,
// and one called watched is only watched, with two jobs that wait.
// SERVER is its URL; ROOT, ALICE, BOB and VERA are tokens of an operator, two
// users and a viewer, and alice's is the one that counts. RECEIVER is the URL of a receiver of
// notices, which writes the last one into the file received, and answers 410 at /gone; e-mail goes into the file
// mailed, but none to gone@example.org.
func startService(ts *testscript.TestScript, _ bool, args []string) {
	store, err := sqlite.Open(ts.MkAbs("journal"), sqlite.Options{})
	ts.Check(err)
	options := service.Options{
		Config: engine.Config{
			Explain: true, Sites: []berth.Site{{Name: "cm5", Pools: []berth.Pool{{Name: "batch", PEs: 64, Binding: berth.Late}}}},
			Limits: policy.Limits{
				{Scope: policy.Scope{Account: "phys"}, Name: policy.LimitActive, Value: 20},
				{Scope: policy.Scope{User: "dora"}, Name: policy.LimitActive, Value: 3},
				{Scope: policy.Scope{User: "dora"}, Name: policy.LimitShare, Value: 250},
			},
		},
		Journal: store, Version: "test",
	}
	if len(args) > 0 && args[0] == "slow" { // a second pool
		options.Config.Sites[0].Pools = append(options.Config.Sites[0].Pools, berth.Pool{Name: "slow", PEs: 8, Speed: berth.StandardSpeed / 2, Binding: berth.Late})
	} else if len(args) > 0 {
		description := fake.Nodes(64, 1)
		adapter := fake.New(fake.Config{Name: "cm5", Description: description}, berth.Time(time.Now().Unix()))
		imported, layout, err := site.Import("cm5", &description, site.UnitNode, berth.Early)
		ts.Check(err)
		imported.Managed = true
		options.Config.Sites = []berth.Site{imported}
		options.Managers = map[string]service.Manager{"cm5": {Kind: args[0], Adapter: adapter, Layout: layout, Every: 50 * time.Millisecond, Horizon: 3600, Shadow: args[0] == "watched"}}
		if args[0] == "watched" {
			adapter.Enqueue(site.Job{User: "alice", Partition: "main", Nodes: 64, Cores: 64, Limit: 3600})
			adapter.Enqueue(site.Job{User: "bob", Partition: "main", Nodes: 65, Cores: 65, Limit: 60})
		}
	}
	host, err := service.Open(context.Background(), options)
	ts.Check(err)
	for len(args) > 0 && args[0] == "watched" {
		s, err := host.Score(context.Background(), service.Principal{User: "zoe", Role: service.Operator}, "cm5", 0)
		ts.Check(err)
		if s.Promised+len(s.Refused) == 2 {
			break
		}
		time.Sleep(10 * time.Millisecond) // until the first look, for which there is no signal
	}
	tokens, err := token.Open(ts.MkAbs("journal"), "root", berth.Time(time.Now().Unix()))
	ts.Check(err)
	relay, err := startRelay(ts.MkAbs("mailed"))
	ts.Check(err)
	mail, err := sendNotices(host, tokens, ts.MkAbs("journal"), &courier.Relay{Address: relay.Addr, TLS: courier.TLSNone, From: "berth@example.org"})
	ts.Check(err)
	received := ts.MkAbs("received")
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // of a test
		if r.URL.Path == "/gone" {
			w.WriteHeader(http.StatusGone)
			return
		}
		if err := os.WriteFile(received, append(body, '\n'), 0o600); err != nil {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	ts.Setenv("RECEIVER", receiver.URL)
	server := httptest.NewServer(api.New(api.Options{Service: host, Tokens: tokens, Courier: mail}))
	ts.Defer(func() {
		receiver.Close()
		server.CloseClientConnections()
		server.Close()
		ts.Check(errors.Join(host.Close(), store.Close(), relay.Close()))
	})
	for _, who := range []struct {
		variable, user string
		role           service.Role
	}{{"ROOT", "zoe", service.Operator}, {"BOB", "bob", service.User}, {"VERA", "vera", service.Viewer}, {"ALICE", "alice", service.User}} {
		secret, _, err := tokens.Add(token.Wanted{User: who.user, Role: who.role}, 0)
		ts.Check(err)
		ts.Setenv(who.variable, secret)
		ts.Setenv(tokenVar, secret)
	}
	ts.Setenv("SERVER", server.URL)
	ts.Setenv(serverVar, server.URL)
	ts.Setenv("XDG_CONFIG_HOME", ts.MkAbs("settings"))
}

// sendNotices has a service send notices, also to this machine.
func sendNotices(host *service.Host, tokens *token.Store, folder string, relay *courier.Relay) (*courier.Courier, error) {
	mail, err := courier.Open(courier.Options{Folder: folder, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, Relay: relay})
	if err == nil {
		host.SendNotices(&api.Messenger{Courier: mail, Tokens: tokens, Now: host.Now, Version: "test"})
	}
	return mail, err
}

// mailbox is a session of an SMTP server that writes what it is sent into a file.
type mailbox string

// startRelay starts an SMTP server, whose Addr says where.
func startRelay(file string) (*smtp.Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return mailbox(file), nil }))
	server.Addr = listener.Addr().String()
	go func() { _ = server.Serve(listener) }() // until it is closed
	return server, nil
}

func (mailbox) Reset()                               {}
func (mailbox) Logout() error                        { return nil }
func (mailbox) Mail(string, *smtp.MailOptions) error { return nil }
func (mailbox) Rcpt(to string, _ *smtp.RcptOptions) error {
	if to == "gone@example.org" {
		return &smtp.SMTPError{Code: 550, Message: "no such user"}
	}
	return nil
}

func (m mailbox) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	if err == nil {
		err = os.WriteFile(string(m), text, 0o600)
	}
	return err
}

// grab VARIABLE PATTERN keeps what the pattern's group matches in the last
// output.
func grab(ts *testscript.TestScript, _ bool, args []string) {
	found := regexp.MustCompile(args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if found == nil {
		ts.Fatalf("nothing in the output matches %s", args[1])
	}
	ts.Setenv(args[0], found[1])
}

// mode FILE MODE wants that mode, in octal digits.
func mode(ts *testscript.TestScript, _ bool, args []string) {
	info, err := os.Stat(ts.MkAbs(args[0]))
	ts.Check(err)
	if got := fmt.Sprintf("%o", info.Mode().Perm()); got != args[1] {
		ts.Fatalf("%s has mode %s, want %s", args[0], got, args[1])
	}
}

func pasteWords(t *testing.T, words ...string) (form.Request, error) {
	t.Helper()
	var messages discard
	a := &app{stderr: &messages}
	cmd := a.reserveCommand()
	q := &ask{}
	q.lasts = span{value: &q.Duration, least: 1}
	err := a.paste(cmd, q, words)
	if err == nil {
		err = a.settle(cmd, q)
	}
	return q.Request, err
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

func TestLinesForSlurm(t *testing.T) {
	t.Setenv("TZ", "UTC")
	start := form.Time(time.Date(2030, 1, 2, 10, 0, 0, 0, time.Local).Unix())
	for line, want := range map[string]form.Request{
		"scontrol create reservation StartTime=2030-01-02T10:00:00 Duration=120 NodeCnt=4": {
			NPE: 4, Duration: 7200, Ready: start, Deadline: start + 7200,
		},
		"StartTime=2030-01-02T10:00:00 EndTime=2030-01-02T11:30:00 CoreCnt=8 PartitionName=gpu Users=alice": {
			NPE: 8, Duration: 5400, Ready: start, Deadline: start + 5400, User: "alice", Requirements: berth.Requirements{Partition: "gpu"},
		},
		"StartTime=2030-01-02T10:00:00 Duration=90 NodeCnt=8 Users=alice,bob Accounts=physics": {
			NPE: 8, Duration: 5400, Ready: start, Deadline: start + 5400, User: "alice", Sharing: berth.Sharing{Account: "physics", Users: []string{"bob"}},
		},
		"StartTime=2030-01-02T10:00:00 Duration=90 NodeCnt=8 Groups=phys": {
			NPE: 8, Duration: 5400, Ready: start, Deadline: start + 5400, Sharing: berth.Sharing{Group: "phys"},
		},
		"starttime=2030-01-02T10:00:00 duration=1-00:00:00 tres=node=4,gres/gpu=8,license/matlab=3 flags=PURGE_COMP=10 ReservationName=x": {
			NPE: 4, Duration: 86400, Ready: start, Deadline: start + 86400, NoShow: 600,
			Requirements: berth.Requirements{Accelerators: 2, Software: "matlab", Licences: 3},
		},
		"create reservation StartTime=2030-01-02T10:00:00 Duration=30:00 NodeCnt=1 Licenses=ansys:2 Flags=PURGE_COMP": {
			NPE: 1, Duration: 1800, Ready: start, Deadline: start + 1800, NoShow: 300, Requirements: berth.Requirements{Software: "ansys", Licences: 2},
		},
	} {
		got, err := pasteWords(t, line)
		if diff := cmp.Diff(want, got, cmp.Comparer(berth.PESet.Equal)); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", line, err, diff)
		}
	}
	for line, want := range map[string]string{
		"scontrol create reservation":           "nothing behind",
		"scontrol create reservation NodeCnt":   `unexpected "NodeCnt"`,
		"NodeCount=4":                           "NodeCount: no key of scontrol create reservation (did you mean NodeCnt?)",
		"NodeCnt=0":                             "NodeCnt: ",
		"NodeCnt=4 CoreCnt=8":                   "several of NodeCnt, CoreCnt and TRES",
		"Nodes=node[01":                         `Nodes: "node[01": a range`,
		"Accounts=physics,chemistry":            "Accounts: ",
		"Flags=MAINT,IGNORE_JOBS":               `Flags: no word here for the flag "MAINT"`,
		"Duration=UNLIMITED":                    "Duration: ",
		"Duration=2h":                           "Duration: ",
		"StartTime=yesterday":                   "StartTime: ",
		"EndTime=2030-01-02T11:30:00 NodeCnt=1": "EndTime: without StartTime",
		"StartTime=2030-01-02T10:00:00 EndTime=2030-01-02T10:00:00": "is not after StartTime",
		"StartTime=now EndTime=tomorrow Duration=5":                 "EndTime: given beside Duration",
		"Users=alice,,bob":                              "Users: ",
		"TRES=node=4,gres/gpu=6 Duration=5":             "TRES: 6 GPUs for 4 PEs",
		"TRES=bb/cray=4":                                `TRES: no count here of "bb/cray"`,
		"Licenses=a:1,b:2":                              "Licenses: ",
		"StartTime=now Duration=5 NodeCnt=1 ; rm -rf /": `unexpected ";"`,
		"StartTime=2030-01-02T10:00:00 NodeCnt=1":       "--start: without --duration",
	} {
		if _, err := pasteWords(t, line); err == nil || !regexp.MustCompile(regexp.QuoteMeta(want)).MatchString(err.Error()) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}

func TestWithoutSbatchNothingIsSubmitted(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := sbatch(t.Context(), &form.Reservation{}, "berth_x_1", &form.Task{Key: "k", Command: []string{"true"}, Dir: t.TempDir()})
	if code := exitCode(err); code != exitUnreachable {
		t.Errorf("exit code %d: %v", code, err)
	}
}

func TestOnlyWaitingHasNoLimit(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	for _, test := range []struct {
		remote
		limit time.Duration
	}{
		{remote{}, 30 * time.Second}, {remote{timeout: 5}, 5 * time.Second}, {remote{wait: true}, 0}, {remote{wait: true, timeout: 90}, 90 * time.Second},
	} {
		a := &app{}
		cmd := a.root()
		cmd.SetContext(t.Context())
		ctx, stop, _, err := test.connect(cmd)
		if err != nil {
			t.Fatal(err)
		}
		deadline, limited := ctx.Deadline()
		if left := time.Until(deadline); limited != (test.limit > 0) || limited && (left > test.limit || left < test.limit-5*time.Second) {
			t.Errorf("%+v: %s left, want %s", test.remote, left, test.limit)
		}
		stop()
	}
}

func TestWordsAreQuotedForShells(t *testing.T) {
	for word, want := range map[string]string{
		"http://127.0.0.1:7117": "http://127.0.0.1:7117", "a b": "'a b'", "": "''", "it's": `'it'\''s'`, "$(rm)": "'$(rm)'", "a;b": "'a;b'",
	} {
		if got := quoted(word); got != want {
			t.Errorf("%q is written %s, want %s", word, got, want)
		}
	}
}

// What is pending is not promised, and who is told to confirm is told of what is
// held alone: berth confirm ends at the first part that cannot be.
func TestArraysTellWhatIsPromised(t *testing.T) {
	for _, c := range []struct{ states, first, confirm string }{
		{"ccc", "array A: 3 of 3 parts are promised\n", ""},
		{"ppp", "array A: 0 of 3 parts are promised, 3 pending\n", ""},
		{"crp", "array A: 1 of 3 parts are promised, 1 pending\n", ""},
		{"cco", "array A: 2 of 3 parts are promised\n", ""},
		{"hhrr", "array A: 2 of 4 parts are held\n", "A_{1..2}"},
		{"hrhphhh", "array A: 5 of 7 parts are held, 1 pending\n", "A_1 A_3 A_{5..7}"},
	} {
		answer := form.Answer{ID: "A", Refusal: &form.Refusal{}}
		for i, state := range c.states {
			part := form.Answer{ID: fmt.Sprint("A_", i+1), Decision: form.Accepted, Reservation: &form.Reservation{}}
			switch state {
			case 'c':
				part.Reservation.State = "confirmed"
			case 'h':
				part.Reservation.State = "held"
			case 'p':
				part.Reservation.State, part.Decision = "pending", form.Pending
			case 'o':
				part.Reservation.State = "cancelled"
			case 'r':
				part.Reservation, part.Decision = nil, form.Refused
			}
			answer.Array = append(answer.Array, part)
		}
		var out, messages bytes.Buffer
		a := &app{stdout: &out, stderr: &messages}
		if err := a.answered(&remote{}, &answer); err != nil {
			t.Fatal(err)
		}
		if first, _, _ := strings.Cut(out.String(), "\n"); first+"\n" != c.first {
			t.Errorf("%s: %q, want %q", c.states, first, c.first)
		}
		_, confirm, _ := strings.Cut(messages.String(), "    berth confirm")
		if confirm = strings.TrimSpace(confirm); confirm != c.confirm {
			t.Errorf("%s: told to confirm %q, want %q", c.states, confirm, c.confirm)
		}
	}
}

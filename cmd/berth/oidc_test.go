package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/api/identity/openidtest"
	"github.com/berth-hpc/berth/internal/browser"
)

// withProvider is a service whose users are known by an OpenID provider, and programs of a user in a home of their own.
type withProvider struct {
	*openidtest.Provider
	url, dir, config string
	env              []string
	log              bytes.Buffer // to be read when the service has ended
	secret           string       // that is not in it
}

func serveWithProvider(t *testing.T, state openidtest.State, lasts time.Duration) *withProvider {
	t.Helper()
	address := freeAddress(t)
	s := &withProvider{url: "http://" + address, dir: t.TempDir()}
	s.Provider = openidtest.Start(t, openidtest.Options{Redirects: []string{s.url + "/login/oidc/callback", s.named() + "/login/oidc/callback"}, Lasts: lasts},
		openidtest.User{Name: "alice", Groups: []string{"hpc"}}, openidtest.User{Name: "eve"})
	s.Set(state)
	s.config = filepath.Join(s.dir, "berth.yaml")
	text := fmt.Sprintf(`sites: [{name: cm5, pools: [{name: batch, pes: 64, binding: late}]}]
service:
  data: %s/data
  listen: %s
  socket: none
  oidc:
    issuer: %s
    name: Test ID
    client: %s
    roles:
    - {role: user, groups: [hpc]}
`, s.dir, address, s.URL, openidtest.Public)
	if err := os.WriteFile(s.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "XDG_CONFIG_HOME=" + s.dir + "/settings", "no_proxy=127.0.0.1"}
	cmd := s.command(t, "serve", "--config", s.config)
	cmd.Stdout, cmd.Stderr = &s.log, &s.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v\n%s", err, s.log.String())
		}
		if s.secret != "" && strings.Contains(s.log.String(), s.secret) {
			t.Error("the log has a secret")
		}
	})
	for deadline := time.Now().Add(longest); ; time.Sleep(20 * time.Millisecond) {
		if answer, err := http.Get(s.url + "/readyz"); err == nil {
			_ = answer.Body.Close()
			return s
		}
		if time.Now().After(deadline) {
			t.Fatal("the service does not answer")
		}
	}
}

// named is the address of the service by name: a browser takes the provider, which has a number, for another site then, as it is in a centre.
func (s *withProvider) named() string { return strings.Replace(s.url, "127.0.0.1", "localhost", 1) }

func (s *withProvider) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	berth, err := exec.LookPath("berth")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(berth, args...)
	cmd.Env, cmd.Dir = s.env, s.dir
	return cmd
}

// run runs berth and wants the exit code and words in what it writes.
func (s *withProvider) run(t *testing.T, code int, words string, args ...string) string {
	t.Helper()
	cmd := s.command(t, args...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if cmd.ProcessState.ExitCode() != code || !strings.Contains(string(out), words) {
		t.Errorf("berth %v: exit %d, want %d and %q:\n%s", args, cmd.ProcessState.ExitCode(), code, words, out)
	}
	return string(out)
}

// login logs in with a code; decide is what the user does with it elsewhere. It returns what was written and the exit code.
func (s *withProvider) login(t *testing.T, decide func(code string) error) (text string, code int) {
	t.Helper()
	cmd := s.command(t, "login", s.url, "--oidc")
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(errs)
	first, err := lines.ReadString('\n')
	found := regexp.MustCompile(`open (http\S+/device) in a browser and enter the code (\S+)`).FindStringSubmatch(first)
	if err != nil || found == nil || found[1] != s.URL+"/device" {
		_ = cmd.Process.Kill()
		t.Fatalf("%v %q", err, first)
	}
	if err := decide(found[2]); err != nil {
		t.Error(err)
	}
	rest, _ := io.ReadAll(lines) // of a pipe that ends
	_ = cmd.Wait()               // the code says it
	return first + string(rest), cmd.ProcessState.ExitCode()
}

func (s *withProvider) readiness(t *testing.T) (h form.Health) {
	t.Helper()
	answer, err := http.Get(s.url + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if err := json.NewDecoder(answer.Body).Decode(&h); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatal(answer.Status, err)
	}
	return h
}

// A user logs in from a terminal with a code, at a provider that was away when the service began. The login is kept for its
// owner alone, renewed whenever it expires, by several programs at once too, and forgotten.
func TestLoggingInWithACode(t *testing.T) {
	t.Parallel()
	// Tokens are good for less than what is spared: each command renews the login.
	s := serveWithProvider(t, openidtest.Down, 20*time.Second)
	if h := s.readiness(t); h.Status != "ready" || h.OIDC != "unreachable" {
		t.Errorf("%+v", h)
	}
	operator := filepath.Join(s.dir, "data", "operator.token")
	s.run(t, 0, "operator", "whoami", "--server", s.url, "--token-file", operator)
	s.run(t, 0, "warning: the OpenID provider Test ID does not answer", "serve", "--check", "--config", s.config)
	s.run(t, exitUnreachable, "does not answer", "login", s.url, "--oidc")
	s.Set(openidtest.Up)
	s.run(t, 0, "the OpenID provider Test ID answers", "serve", "--check", "--config", s.config)
	plain := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for deadline := time.Now().Add(longest); s.readiness(t).OIDC != "reachable" && time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if answer, err := plain.Get(s.url + "/login/oidc"); err == nil { // which has it asked
			_ = answer.Body.Close()
		}
	}

	if text, code := s.login(t, s.Deny); code != exitDenied || !strings.Contains(text, "was refused there") {
		t.Errorf("denied: exit %d %s", code, text)
	}
	if text, code := s.login(t, func(code string) error { return s.Approve(code, "eve") }); code != exitDenied || !strings.Contains(text, "eve has no role here") {
		t.Errorf("without a role: exit %d %s", code, text)
	}
	kept := filepath.Join(s.dir, "settings", "berth", "login.json")
	if _, err := os.Stat(kept); err == nil {
		t.Error("a login that has failed is kept")
	}
	text, code := s.login(t, func(code string) error { return s.Approve(code, "alice") })
	if code != 0 || !strings.Contains(text, "as alice, user") {
		t.Fatalf("exit %d %s", code, text)
	}
	if info, err := os.Stat(kept); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
	before, err := os.ReadFile(kept)
	if err != nil {
		t.Fatal(err)
	}
	s.run(t, 0, "alice, user, at "+s.url+", by the OpenID provider", "whoami")
	after, err := os.ReadFile(kept)
	if err != nil || bytes.Equal(before, after) {
		t.Errorf("the login was not renewed: %v", err)
	}
	s.run(t, 0, "reservation ", "reserve", "--npe", "1", "--duration", "1h", "--deadline", "now+3h")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { s.run(t, 0, "batch", "list") })
	}
	all.Wait()
	if h := s.readiness(t); h.OIDC != "reachable" {
		t.Errorf("%+v", h)
	}
	var refresh struct {
		Grants map[string]struct {
			Refresh string `json:"refresh_token"`
		}
	}
	after, err = os.ReadFile(kept)
	if err == nil {
		err = json.Unmarshal(after, &refresh)
	}
	if err != nil || refresh.Grants[s.url].Refresh == "" {
		t.Fatal(refresh, err)
	}
	s.run(t, 0, "logged out at "+s.url, "logout")
	gone, err := os.ReadFile(kept)
	if err != nil || bytes.Contains(gone, []byte("refresh_token")) {
		t.Errorf("%s %v", gone, err)
	}
	s.run(t, exitDenied, "", "whoami", "--server", s.url)
	s.run(t, exitNotFound, "no login at", "logout")
	// What renewed the login is worthless, also to who has a copy of it.
	if err := os.WriteFile(kept, after, 0o600); err != nil {
		t.Fatal(err)
	}
	s.run(t, exitDenied, "the login has ended", "whoami")
	s.secret = refresh.Grants[s.url].Refresh
}

// A browser logs in at the real service, and goes on while the provider is away.
func TestLoggingInWithABrowser(t *testing.T) {
	t.Parallel()
	s := serveWithProvider(t, openidtest.Up, time.Hour)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	h := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	get := func(path string) *http.Response {
		t.Helper()
		answer, err := h.Get(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = answer.Body.Close() })
		return answer
	}
	begun := get(s.url + "/login/oidc?to=/book")
	if begun.StatusCode != http.StatusSeeOther {
		t.Fatal(begun.Status)
	}
	back, err := s.LogIn(h, begun.Header.Get("Location"), "alice", openidtest.Password)
	if err != nil {
		t.Fatal(err)
	}
	if done := get(back); done.StatusCode != http.StatusSeeOther || done.Header.Get("Location") != "/book" {
		text, _ := io.ReadAll(done.Body)
		t.Fatalf("%s %s", done.Status, text)
	}
	s.Set(openidtest.Hanging)
	at, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	if len(jar.Cookies(at)) == 0 {
		t.Fatal("no cookies")
	}
	var me form.Me
	if err := json.NewDecoder(get(s.url + "/v1/me").Body).Decode(&me); err != nil || me.User != "alice" || me.Role != "user" || me.Way != "oidc" {
		t.Errorf("%+v %v", me, err)
	}
}

// A user of a provider logs in by clicking, at another site and back, is on the page to which they went, sees and ends their
// sessions there, and logs out. A way back that is wrong ends at a page that says what to do.
func TestLoggingInAtAProviderInABrowser(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	s := serveWithProvider(t, openidtest.Up, time.Hour)
	p := b.Open(wide)
	atProvider := func() string {
		t.Helper()
		p.Wait(`document.querySelector('input[name=password]')`)
		return p.Eval(`location.href`).(string)
	}
	// elsewhere has alice log in at the provider's page by another program, and returns the way back.
	elsewhere := func(page string) string {
		t.Helper()
		back, err := s.LogIn(http.DefaultClient, page+"&user=alice&password="+openidtest.Password, "alice", openidtest.Password)
		if err != nil {
			t.Fatal(err)
		}
		return back
	}
	x := &examiner{t: t, source: axeSource(t)}
	refused := func(state, words, advice string) {
		t.Helper()
		p.Wait(`document.querySelector('h1')?.innerText === 'Not logged in'`)
		if text := p.Eval(`document.body.innerText`).(string); !strings.Contains(text, words) || !strings.Contains(text, advice) {
			t.Errorf("%s: the page says %q, want %q and %q", state, text, words, advice)
		}
		x.examine(p, "login "+state)
		p.Faults() // the status of the page
	}

	p.Visit(s.named() + "/book?npe=3")
	p.Wait(`document.querySelector('input[type=password]')`)
	p.Leave("Log in with Test ID")
	if at := atProvider(); !strings.HasPrefix(at, s.URL) {
		t.Fatalf("the button leads to %s", at)
	}
	for field, text := range map[string]string{"user": "alice", "password": openidtest.Password} {
		p.Eval(fmt.Sprintf(`document.querySelector('input[name=%s]').focus()`, field))
		p.Type(text)
	}
	p.Faults() // that no user is logged in, and what the provider's page lacks
	p.Leave("Go")
	p.Wait(`document.querySelector('nav a[aria-current=page]')?.innerText === 'Book'`)
	if at := p.Eval(`location.href`); at != s.named()+"/book?npe=3" {
		t.Errorf("the way back ends at %s", at)
	}
	p.Press("alice, user: where you are logged in")
	p.Wait(`[...document.querySelectorAll('[data-testid=sessions] section')].length === 1 && /Chrome on Linux\s+from 127.0.0.1\s+this one\s+Opened by the OpenID provider/.test(document.querySelector('[data-testid=sessions]').innerText)`)
	x.examine(p, "sessions")
	p.Key("Escape")
	p.Wait(`!document.querySelector('[data-testid=sessions]')`)
	p.Press("Harbour")
	p.Wait(`document.querySelector('nav a[aria-current=page]')?.innerText === 'Harbour'`)
	noFaults(t, p)
	p.Press("Log out")
	p.Wait(`document.querySelector('input[type=password]')`)
	if text := p.Eval(`document.body.innerText`).(string); strings.Contains(text, "alice") {
		t.Errorf("after logging out: %s", text)
	}
	p.Faults()

	p.Visit(s.named() + "/login/oidc?to=/promises")
	back := elsewhere(atProvider())
	wrong := regexp.MustCompile(`state=\w+`).ReplaceAllString(back, "state=guess")
	p.Visit(wrong)
	refused("wrong state", "has not begun to log in", "Begin anew")
	p.Visit(back) // what was kept for it is used up
	refused("used up", "has not begun to log in", "Begin anew")
	p.Visit(s.named() + "/login/oidc?to=/promises")
	back = elsewhere(atProvider())
	s.Set(openidtest.Down)
	p.Visit(back)
	refused("provider down", "Test ID does not answer", "Try again in some minutes")
	s.Set(openidtest.Up)
	p.Leave("Log in again with Test ID")
	back = elsewhere(atProvider())
	p.Visit(back)
	p.Wait(`document.querySelector('nav a[aria-current=page]')?.innerText === 'My promises'`)
	p.Visit(back)
	refused("twice", "has not begun to log in", "Begin anew")
	p.Leave("To the pages, where a token logs you in too")
	p.Wait(`document.querySelector('nav a[aria-current=page]')?.innerText === 'Harbour'`) // the session is as it was
}

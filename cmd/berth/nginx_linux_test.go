package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/internal/browser"
	"github.com/berth-hpc/berth/internal/debiantest"
	"github.com/berth-hpc/berth/internal/withparent"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/web"
)

// needsNginx returns the path of nginx. Where there is none it is installed if $CI is true, this is root, and there is
// apt-get; else the test is skipped, or fails if $BERTH_REQUIRE, a list separated by commas, has "nginx".
func needsNginx(t *testing.T) string {
	t.Helper()
	look := func() string {
		for _, name := range []string{"nginx", "/usr/sbin/nginx"} { // not on the PATH of everybody
			if path, err := exec.LookPath(name); err == nil {
				return path
			}
		}
		return ""
	}
	if path := look(); path != "" {
		return path
	}
	if err := debiantest.Install(func() bool { return look() != "" }, "nginx-light"); err != nil {
		debiantest.Absent(t, "nginx", "nginx: missing: "+err.Error())
	}
	return look()
}

// location is what the page about the pages has nginx do.
var location = regexp.MustCompile("(?s)```nginx\n(.*?)```")

// Behind a real nginx with TLS, below a path, configured as the documents say: pages, sessions, calls
// and the stream of events, which nginx does not hold back.
func TestPagesBehindNginx(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	nginx := needsNginx(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0") // nginx is given it, so that no one else has the port
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	public := &url.URL{Scheme: "https", Host: listener.Addr().String(), Path: "/berth/"}
	q.stop()
	q.public = public
	q.serve("127.0.0.1:0", web.Handler("/berth", http.HandlerFunc(api.NotFound)))
	text, err := os.ReadFile("../../docs/web.md")
	if err != nil {
		t.Fatal(err)
	}
	block := location.FindSubmatch(text)
	if block == nil || !bytes.Contains(block[1], []byte(defaultServer)) {
		t.Fatalf("docs/web.md does not say how nginx is configured: %s", block)
	}
	dir := t.TempDir()
	newAuthority(t).issue(t, "hpc.example.org", filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	as := ""
	if os.Getuid() == 0 {
		as = "user root;" // whose folder it is
	}
	conf := fmt.Sprintf(`%[1]s daemon off; worker_processes 1; pid %[2]s/pid; error_log stderr;
events { worker_connections 64; }
http {
	access_log off; client_body_temp_path %[2]s/body; proxy_temp_path %[2]s/proxy; fastcgi_temp_path %[2]s/f; uwsgi_temp_path %[2]s/u; scgi_temp_path %[2]s/s;
	server {
		listen %[3]s ssl; ssl_certificate %[2]s/cert.pem; ssl_certificate_key %[2]s/key.pem;
		%[4]s
	}
}
`, as, dir, public.Host, strings.Replace(string(block[1]), defaultServer, q.url, 1))
	if err := os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	held, err := listener.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, nginx, "-e", "stderr", "-p", dir, "-c", filepath.Join(dir, "nginx.conf"))
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = &said, &said, withparent.Attr()
	cmd.ExtraFiles, cmd.Env = []*os.File{held}, append(os.Environ(), "NGINX=3;") // sockets that one nginx hands to the next
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		stop()
		_ = cmd.Wait() // it was interrupted
		if t.Failed() {
			t.Logf("nginx said: %s", &said)
		}
	}()

	secret, _, err := q.tokens.Add(token.Wanted{User: "alice", Role: service.User}, q.host.Now())
	if err != nil {
		t.Fatal(err)
	}
	p := b.Open(wide)
	p.TakeAnyCertificate()
	p.Visit(public.String())
	p.Wait(`document.querySelector('input[type=password]')`)
	p.Eval(`document.querySelector('input[type=password]').focus()`)
	p.Type(secret)
	p.Key("Enter")
	painted(p, 1)
	p.Faults() // that no one was logged in before
	p.Wait(`document.querySelector('[data-testid=empty]').innerText.startsWith('Nothing is held')`)
	q.reserve("bob", "harbour", "b", 12, 600, 20_000, 0)
	p.Wait(`!document.querySelector('[data-testid=empty]')`) // the stream is not held back
	p.Press("Book")
	offered(p, "As asked")
	p.Press("Promise it")
	p.Wait(`document.querySelector('[data-testid=promised]')`)
	if list := q.of("alice", service.Confirmed, service.Active); len(list) != 1 {
		t.Errorf("promised: %+v", list)
	}
	if at := p.Eval(`location.href`).(string); !strings.HasPrefix(at, public.String()) {
		t.Errorf("the page is at %s", at)
	}
	shot(p, "nginx")
	noFaults(t, p)
}

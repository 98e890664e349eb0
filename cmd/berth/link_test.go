package main

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/browser"
)

// serveWithLink starts berth serve in a process of its own, which ends with the test, and returns the login link that it prints, and
// who it logs in.
func serveWithLink(t *testing.T, args ...string) (link, user string) {
	t.Helper()
	server := exec.CommandContext(t.Context(), "berth", append([]string{"serve", "--listen", "127.0.0.1:0", "--link"}, args...)...)
	var log heard
	server.Stderr = &log
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill() // how it ends is looked at elsewhere
		_ = server.Wait()
		if t.Failed() {
			t.Logf("the service said: %.4000s", log)
		}
	})
	printed := ""
	lines := bufio.NewScanner(out)
	for link == "" && lines.Scan() {
		printed += lines.Text() + "\n"
		link = regexp.MustCompile(`http://127\.0\.0\.1:\d+/#login=\S+`).FindString(lines.Text())
	}
	as := regexp.MustCompile(`as ([^,\s]+), once`).FindStringSubmatch(printed)
	if link == "" || as == nil {
		t.Fatalf("no link and whose it is in\n%s", printed)
	}
	return link, as[1]
}

// The link that make run prints, of a service in a process of its own, logs its owner in, and only once.
func TestTheLinkOfServeLogsIn(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	link, user := serveWithLink(t, "--data", filepath.Join(t.TempDir(), "data"))
	p := b.Open(browser.Size{Width: 1280, Height: 800})
	p.Visit(link)
	p.Wait(`document.body.innerText.includes("` + user + `, operator")`)
	p.Wait(`document.querySelector('canvas')`)
	if at, _ := p.Eval(`location.href`).(string); strings.Contains(at, "login") {
		t.Errorf("the code stays in the address %s", at)
	}
	noFaults(t, p)
	again := b.Open(browser.Size{Width: 1280, Height: 800})
	again.Visit(link)
	again.Wait(`document.querySelector('[role=alert]')?.innerText.includes('used already')`)
}

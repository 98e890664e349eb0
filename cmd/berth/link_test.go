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

// The link that make run prints, of a service in a process of its own, logs its owner in, and only once.
func TestTheLinkOfServeLogsIn(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	server := exec.CommandContext(t.Context(), "berth", "serve", "--data", filepath.Join(t.TempDir(), "data"), "--listen", "127.0.0.1:0", "--link")
	var log heard
	server.Stderr = &log
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	link, printed := "", ""
	lines := bufio.NewScanner(out)
	for link == "" && lines.Scan() {
		printed += lines.Text() + "\n"
		link = regexp.MustCompile(`http://127\.0\.0\.1:\d+/#login=\S+`).FindString(lines.Text())
	}
	as := regexp.MustCompile(`as ([^,\s]+), once`).FindStringSubmatch(printed)
	if link == "" || as == nil {
		_ = server.Process.Kill()
		_ = server.Wait()
		t.Fatalf("no link and whose it is in\n%s%s", printed, log)
	}
	p := b.Open(browser.Size{Width: 1280, Height: 800})
	p.Visit(link)
	p.Wait(`document.body.innerText.includes("` + as[1] + `, operator")`)
	p.Wait(`document.querySelector('canvas')`)
	if at, _ := p.Eval(`location.href`).(string); strings.Contains(at, "login") {
		t.Errorf("the code stays in the address %s", at)
	}
	noFaults(t, p)
	again := b.Open(browser.Size{Width: 1280, Height: 800})
	again.Visit(link)
	again.Wait(`document.querySelector('[role=alert]')?.innerText.includes('used already')`)
	_ = server.Process.Kill() // how it ends is looked at elsewhere
	_ = server.Wait()
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth/internal/realdata"
	"github.com/berth-hpc/berth/internal/withparent"
)

// In the documents a block fenced with sh can be pasted. All of one page are run by
// one shell, in order, in a folder that has a copy of examples; a block of text
// or JSON right after one is what it printed. A block that cannot be run here says
// why in its first line, with one of these words; its commands are only checked
// for names and flags.
var notRun = map[string]string{
	"# As root":                     "it installs things",
	"# As a user":                   "it needs the package; packaging/try-docs.sh runs the commands",
	"# With PostgreSQL":             "it needs a database; TestServePostgreSQL runs the commands on a real one",
	"# With an OpenID provider":     "it needs a provider; TestLoggingInWithACode runs the commands with a real one",
	"# With a certificate":          "it needs a certificate; TestServeTLS makes one",
	"# With Slurm":                  "it needs a cluster; the commands are run by TestServeSlurm where there is one",
	"# With podman":                 "it needs a container program; internal/image tests the image",
	"# With logs of the archive":    "the logs are not ours to ship, and some runs take hours",
	"# In your own module":          "it needs another Go module and the network",
	"# In a project of theirs":      "it needs Snakemake or Nextflow, and a workflow of theirs",
	"# In the repository":           "it compiles or tests what is being tested",
	"# After a damaged journal":     "it loses what is behind the damage",
	"# When what is booked differs": "it needs a file that only the reader has",
}

// page is a document whose blocks are run.
type page struct {
	path   string
	server string            // what it speaks to: "", "api" (64 PEs) or "local" (this machine)
	data   map[string]string // file that the page names: folder of the real data it is in
	long   bool              // it measures for long, with what other tests watch for races
	python bool              // it needs Python, which finds the client
}

// pages is every document with blocks to run.
var pages = []page{
	{path: "README.md", server: "local"},
	{path: "docs/advise.md"},
	{path: "docs/api.md", server: "api"},
	{path: "docs/calendar-feeds.md", server: "local"},
	{path: "docs/chance.md"},
	{path: "docs/forecast.md"},
	{path: "docs/jdl.md"},
	{path: "docs/job-scripts.md", server: "local"},
	{path: "docs/lab.md"},
	{path: "docs/notices.md", server: "local", python: true},
	{path: "docs/operating.md", server: "local"},
	{path: "docs/python.md", server: "local", python: true},
	{path: "docs/reproduce.md", long: true},
	{path: "docs/series.md", server: "local"},
	{path: "docs/simulate.md"},
	{path: "docs/workflow-files.md", data: map[string]string{"SDSC-BLUE-2000-4.2-cln.swf.gz": "swf"}},
	{path: "docs/workflows.md", data: map[string]string{
		"SDSC-BLUE-2000-4.2-cln.swf.gz": "swf", "epigenomics-chameleon-ilmn-1seq-50k-001.json.gz": "workflows",
	}},
}

// shortMoment is a time in a table.
const shortMoment = `\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun) (\d\d \w{3}|\d{4}-\d\d-\d\d) \d\d:\d\d(:\d\d)?\b`

var (
	// fenced is a block of a document, with what the fence says of its language.
	fenced = regexp.MustCompile("(?ms)^( *)```(\\w*)\n(.*?)^ *```\n")
	// blockAndOutput is a block that is run, with what it shows, if anything.
	blockAndOutput = regexp.MustCompile("(?ms)^```sh\n(.*?)^```\n(\n?```(?:json|text)\n(.*?)^```\n)?")
	// commandLine is the beginning of a line that people would paste.
	commandLine = regexp.MustCompile(`^ *(bin/)?(berth|make|sbatch|scontrol|curl|go run|go get|go test) `)
	// volatile is what differs from run to run or from machine to machine.
	volatile = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ|(Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{4}-\d\d-\d\d \d\d:\d\d:\d\d [-+]\d\d:\d\d|` +
		`times at [-+]\d\d:\d\d|` + shortMoment + `( +(` + shortMoment + `|\d\d:\d\d(:\d\d)?\b))?|` +
		`\b[0-9A-Z]{26}\b|\b[0-9a-f]{24}\b|\b[0-9a-f]{12}\b|\b[0-9a-f]{64}\b|\d+ records|up to \d+|berth_local_[0-9a-f_]+|"id": "[\w-]{20,}"|"(idle_pe_seconds|duration)": \d+|local/\S+|\b\d+s-\d+c-\d+mb\S*|\b\d+c-\d+mb\S*|\b[0-9.]+ m?s\b|─+`)
	// machine is the kind of node that a local site calls its pool after.
	machine = regexp.MustCompile(`\b\d+c-\d+mb[-\w]*`)
	spaces  = regexp.MustCompile(` +`)
)

// mask leaves of a text what is the same each time.
func mask(text string) string {
	text = spaces.ReplaceAllString(volatile.ReplaceAllString(text, "…"), " ")
	return strings.ReplaceAll(text, " \n", "\n")
}

// whyNot returns why a block is not run, and whether it says so.
func whyNot(block string) (string, bool) {
	for words := range notRun {
		if strings.HasPrefix(block, words) {
			return words, true
		}
	}
	return "", false
}

// Every block of commands of every document is run, or says why not, and what is
// shown under it is what comes out. With -update the documents show that.
func TestPages(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"sh", "curl", "grep", "date"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("needs %s", program)
		}
	}
	for i := range pages {
		p := &pages[i]
		t.Run(strings.ReplaceAll(p.path, "/", "_"), func(t *testing.T) {
			if p.server == "local" && runtime.GOOS != "linux" {
				t.Skip("a local site needs Linux")
			}
			if p.long && testing.Short() {
				t.Skip("measures for long; TestInterruptedReproductionGoesOn does so under the race detector")
			}
			if p.python {
				needsPython(t)
			}
			t.Parallel()
			p.check(t)
		})
	}
}

// check runs the blocks of a page.
func (p *page) check(t *testing.T) {
	t.Helper()
	path := filepath.Join("..", "..", filepath.FromSlash(p.path))
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const border = "===== the next block"
	var script strings.Builder
	n := 0
	for _, block := range blockAndOutput.FindAllSubmatch(text, -1) {
		if _, not := whyNot(string(block[1])); !not {
			n++
			script.Write(block[1])
			fmt.Fprintf(&script, "echo '%s'\n", border)
		}
	}
	if n == 0 {
		t.Fatal("no block is run")
	}
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "examples"), os.DirFS(filepath.Join("..", "..", "examples"))); err != nil {
		t.Fatal(err)
	}
	for name, folder := range p.data {
		if err := os.Symlink(realdata.File(t, folder, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	env := append(os.Environ(), "XDG_CONFIG_HOME="+filepath.Join(dir, "settings"), tokenVar+"=", "no_proxy=127.0.0.1", "TZ=UTC", "GORACE=atexit_sleep_ms=0")
	if p.python {
		folder, err := filepath.Abs(pythonClient)
		if err != nil {
			t.Fatal(err)
		}
		env = append(env, "PYTHONPATH="+folder, "PYTHONDONTWRITEBYTECODE=1")
	}
	commands := script.String()
	switch p.server {
	case "api":
		url, secret := docServer(t)
		env = append(env, "BERTH="+url, "TOKEN="+secret)
	case "local":
		commands = strings.ReplaceAll(commands, defaultServer, localServer(t, dir))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-eu")
	var out, messages bytes.Buffer
	cmd.Dir, cmd.Stdin, cmd.Env, cmd.Stdout, cmd.Stderr = dir, strings.NewReader(commands), env, &out, &messages
	cmd.SysProcAttr = withparent.Attr()
	err = cmd.Run()
	got := strings.Split(out.String(), border+"\n")
	if err != nil || len(got) != n+1 {
		t.Fatalf("block %d of %d: %v\n%s%s", len(got), n, err, got[len(got)-1], messages.String())
	}
	if p.server == "local" {
		host, err := os.Hostname()
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			got[i] = machine.ReplaceAllString(strings.ReplaceAll(got[i], dir, "/home/olga"), "2c-8192mb-amd64")
			for actual, name := range map[string]string{userName(): "olga", host: "node1"} {
				got[i] = regexp.MustCompile(`\b`+regexp.QuoteMeta(actual)+`\b`).ReplaceAllString(got[i], name)
			}
		}
	}
	p.compare(t, path, text, got)
}

// compare holds what the page shows against what came out, or has it show that.
func (p *page) compare(t *testing.T, path string, text []byte, got []string) {
	t.Helper()
	n := 0
	updated := blockAndOutput.ReplaceAllFunc(text, func(whole []byte) []byte {
		m := blockAndOutput.FindSubmatch(whole)
		if _, not := whyNot(string(m[1])); not {
			return whole
		}
		n++
		if len(m[2]) == 0 {
			return whole
		}
		shows := indented(got[n-1])
		form := "text"
		if strings.HasPrefix(shows, "{") {
			form = "json"
		}
		gap := ""
		if m[2][0] == '\n' {
			gap = "\n"
		}
		return []byte("```sh\n" + string(m[1]) + "```\n" + gap + "```" + form + "\n" + shows + "```\n")
	})
	if *update {
		if err := os.WriteFile(path, updated, 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(mask(string(text)), mask(string(updated))); diff != "" {
		t.Errorf("the page and what its commands print differ; -update has it show what they print (-page +now)\n%s", diff)
	}
}

// freeAddress returns an address without a listener.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return listener.Addr().String()
}

// localServer starts berth serve for this machine, with its data in out/data, and
// returns its URL. It ends with the test, or with this process if that is killed.
func localServer(t *testing.T, dir string) string {
	t.Helper()
	berth, err := exec.LookPath("berth")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "out"), 0o777); err != nil {
		t.Fatal(err)
	}
	listen := freeAddress(t)
	cmd := exec.Command(berth, "serve", "--data", "out/data", "--cores", "2", "--listen", listen)
	var log bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := <-ended; err != nil {
			t.Errorf("berth serve: %v\n%s", err, log.String())
		}
	})
	url := "http://" + listen
	for deadline := time.Now().Add(longest); ; time.Sleep(20 * time.Millisecond) {
		select {
		case err := <-ended:
			ended <- errors.Join(err, errors.New("it ended before it was asked to"))
			t.Fatal("berth serve does not start")
		default:
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/readyz", nil)
		if err != nil {
			t.Fatal(err)
		}
		if answer, err := http.DefaultClient.Do(request); err == nil {
			_ = answer.Body.Close() // it was not read
			if answer.StatusCode == http.StatusOK {
				return url
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("berth serve is not ready:\n%s", log.String())
		}
	}
}

// indented indents the lines of an output that are JSON.
func indented(text string) string {
	var out bytes.Buffer
	for line := range strings.Lines(text) {
		var pretty bytes.Buffer
		if line[0] == '{' && json.Indent(&pretty, []byte(strings.TrimSpace(line)), "", "  ") == nil {
			line = pretty.String() + "\n"
		}
		out.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return out.String()
}

// documents returns the paths of all documents but the records of full-scale runs.
func documents(t *testing.T) []string {
	t.Helper()
	paths := []string{"README.md", "CONTRIBUTING.md"}
	for _, pattern := range []string{"docs/*.md", "docs/sites/*.md"} {
		found, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(pattern)))
		if err != nil || len(found) == 0 {
			t.Fatal(found, err)
		}
		for _, path := range found {
			rel, err := filepath.Rel(filepath.Join("..", ".."), path)
			if err != nil {
				t.Fatal(err)
			}
			paths = append(paths, filepath.ToSlash(rel))
		}
	}
	return paths
}

// No command hides in a block that is neither run nor says why; each reason is
// used; and the commands that are not run exist, with their flags and targets.
func TestBlocksOfCommandsAreRunOrSayWhyNot(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join("..", "..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, path := range documents(t) {
		text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(path)))
		if err != nil {
			t.Fatal(err)
		}
		isRun := slices.ContainsFunc(pages, func(p page) bool { return p.path == path })
		for _, m := range fenced.FindAllStringSubmatch(string(text), -1) {
			why, not := whyNot(m[3])
			used[why] = true
			if m[2] == "sh" && !not && !isRun {
				t.Errorf("%s is not among the pages that are run: %s", path, m[3])
			}
			for line := range strings.Lines(strings.ReplaceAll(m[3], "\\\n", "")) {
				if m[2] == "" && commandLine.MatchString(line) {
					t.Errorf("%s: fence this with sh: %s", path, line)
				}
				if m[2] == "sh" && not {
					checkLine(t, path, line, makefile)
				}
			}
		}
		plain := fenced.ReplaceAllString(string(text), "")
		for line := range strings.Lines(plain) {
			if strings.HasPrefix(line, "    ") && commandLine.MatchString(line) {
				t.Errorf("%s: fence this with sh: %s", path, line)
			}
		}
		for _, m := range regexp.MustCompile("`(berth [^`]*)`").FindAllStringSubmatch(plain, -1) {
			checkLine(t, path, m[1], makefile)
		}
	}
	for why := range notRun {
		if !used[why] {
			t.Errorf("no block says %q", why)
		}
	}
}

// checkLine has the commands of a line name commands, flags and targets that exist.
func checkLine(t *testing.T, path, line string, makefile []byte) {
	t.Helper()
	line, _, _ = strings.Cut(line, " #")
	for _, one := range regexp.MustCompile(`&&|\|\||\||;|·| > `).Split(line, -1) {
		words := strings.Fields(one)
		if len(words) < 2 {
			continue
		}
		switch strings.TrimPrefix(words[0], "bin/") {
		case "berth":
			words = slices.DeleteFunc(words, func(word string) bool { return word == "--help" || word == "help" || word == "…" })
			if len(words) > 1 {
				checkCommandLine(t, words[1:])
			}
		case "make":
			if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(words[1]) + `:`).Match(makefile) {
				t.Errorf("%s: the Makefile has no target %s", path, words[1])
			}
		}
	}
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api"
	tokens "github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/sites"
)

// docServer starts a service with 64 PEs, and returns its URL and alice's token.
func docServer(t *testing.T) (url, secret string) {
	t.Helper()
	dir := t.TempDir()
	store, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	host, err := service.Open(context.Background(), service.Options{
		Config:  engine.Config{Explain: true, Sites: []berth.Site{{Name: "cm5", Pools: []berth.Pool{{Name: "batch", PEs: 64, Binding: berth.Late}}}}},
		Journal: store, Version: "test",
	})
	if err != nil {
		t.Fatal(err)
	}
	known, err := tokens.Open(dir, "root", 0)
	if err != nil {
		t.Fatal(err)
	}
	if secret, _, err = known.Add("alice", service.User, "", 0); err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	if err := host.Register(registry); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(api.New(api.Options{Service: host, Tokens: known, Registry: registry}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		if err := errors.Join(host.Close(), store.Close()); err != nil {
			t.Error(err)
		}
	})
	return server.URL, secret
}

// example is a command of a document with what it shows.
var example = regexp.MustCompile("(?s)```sh\n(.*?)```\n```(?:json|text)\n(.*?)```")

// volatile is what differs from run to run.
var volatile = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ|\b[0-9A-Z]{26}\b|"id": "[\w-]{20,}"|"(idle_pe_seconds|duration)": \d+`)

// Every example of the document does what the document shows. With -update the
// document shows what it does.
func TestExamplesOfTheAPI(t *testing.T) {
	for _, program := range []string{"sh", "curl", "grep", "date"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("needs %s", program)
		}
	}
	path := filepath.Join("..", "..", "docs", "api.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	examples := example.FindAllSubmatch(text, -1)
	if starts := bytes.Count(text, []byte("```sh\n")); len(examples) < 10 || len(examples) != starts {
		t.Fatalf("%d examples with what they show of %d", len(examples), starts)
	}
	const border = "=====\n"
	var script strings.Builder
	for _, e := range examples {
		script.Write(e[1])
		script.WriteString("printf '" + strings.TrimSuffix(border, "\n") + "\\n'\n")
	}
	url, secret := docServer(t)
	cmd := exec.Command("sh", "-eu")
	cmd.Dir, cmd.Stdin = t.TempDir(), strings.NewReader(script.String())
	cmd.Env = append(os.Environ(), "BERTH="+url, "TOKEN="+secret, "no_proxy=127.0.0.1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	got := strings.Split(string(out), border)
	if len(got) != len(examples)+1 {
		t.Fatalf("%d outputs of %d examples: %s", len(got)-1, len(examples), out)
	}
	n := 0
	updated := example.ReplaceAllFunc(text, func(whole []byte) []byte {
		command := example.FindSubmatch(whole)[1]
		shown := indented(got[n])
		n++
		form := "text"
		if shown[0] == '{' {
			form = "json"
		}
		return []byte("```sh\n" + string(command) + "```\n```" + form + "\n" + shown + "```")
	})
	if *update {
		if err := os.WriteFile(path, updated, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	mask := func(text []byte) string { return string(volatile.ReplaceAll(text, []byte("…"))) }
	if diff := cmp.Diff(mask(text), mask(updated)); diff != "" && !*update {
		t.Errorf("the document and what its examples do differ; -update has it show what they do (-document +now)\n%s", diff)
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
		out.WriteString(strings.TrimRight(line, "\n") + "\n")
	}
	return out.String()
}

// metricName is the name of a metric of ours.
var metricName = regexp.MustCompile(`^berth_[a-z_]+$`)

// Every metric is in the operator's document, and every one that is there exists.
func TestMetricsAreDocumented(t *testing.T) {
	var names []string
	for _, room := range []string{"service", "api"} {
		files, err := filepath.Glob(filepath.Join("..", "..", room, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if literal, is := n.(*ast.BasicLit); is && literal.Kind == token.STRING {
					if name, _ := strconv.Unquote(literal.Value); metricName.MatchString(name) {
						names = append(names, name)
					}
				}
				return true
			})
		}
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "operating.md"))
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(berth_[a-z_]+)").FindAllSubmatch(text, -1) {
		told = append(told, string(m[1]))
	}
	slices.Sort(names)
	slices.Sort(told)
	if diff := cmp.Diff(slices.Compact(names), told); diff != "" || len(told) < 10 {
		t.Errorf("(-code +document)\n%s", diff)
	}
}

// Every file among the examples reads, and the configuration holds up to a start.
func TestExampleConfigurations(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "examples", "*.yaml"))
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	for _, path := range files {
		var out, messages bytes.Buffer
		if code := run([]string{"serve", "--check", "--config", path}, strings.NewReader(""), &out, &messages); code != 0 || !strings.HasPrefix(out.String(), "valid: ") {
			t.Errorf("%s: exit %d: %s%s", path, code, out.String(), messages.String())
		}
	}
	file, err := sites.Open(filepath.Join("..", "..", "examples", "berth.yaml"))
	if err != nil || len(file.Adapters) != 2 || file.Adapters["gpu"].NoLimit != 7*86400 || file.Service.Data != "/var/lib/berth" {
		t.Errorf("%+v, %v", file, err)
	}
}

// What the unit starts are commands and flags that there are.
func TestUnitStartsWhatThereIs(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "examples", "berth.service"))
	if err != nil {
		t.Fatal(err)
	}
	started := regexp.MustCompile(`(?m)^Exec\w+=/usr/local/bin/berth (.*)$`).FindAllSubmatch(text, -1)
	if len(started) != 2 {
		t.Fatalf("%d commands of berth", len(started))
	}
	for _, line := range started {
		checkCommandLine(t, strings.Fields(string(line[1])))
	}
	for _, want := range []string{"KillMode=process", "Delegate=yes", "RestartPreventExitStatus=" + strconv.Itoa(exitUsage)} {
		if !strings.Contains(string(text), "\n"+want+"\n") {
			t.Errorf("the unit does not have %s", want)
		}
	}
}

// checkCommandLine has the words name a command and flags that there are.
func checkCommandLine(t *testing.T, words []string) {
	t.Helper()
	root := (&app{stderr: &bytes.Buffer{}, stdout: &bytes.Buffer{}}).root()
	cmd, rest, err := root.Find(words)
	if err != nil || cmd == root {
		t.Errorf("berth %v: %v", words, err)
		return
	}
	var flags []string
	for _, word := range rest {
		if strings.HasPrefix(word, "-") {
			flags = append(flags, strings.SplitN(word, "=", 2)[0])
		}
	}
	for _, flag := range flags {
		if name, long := strings.CutPrefix(flag, "--"); long && cmd.Flags().Lookup(name) == nil || !long && cmd.Flags().ShorthandLookup(flag[1:]) == nil {
			t.Errorf("berth %v: %s has no flag %s", words, cmd.CommandPath(), flag)
		}
	}
	if cmd.HasSubCommands() && !cmd.Runnable() {
		t.Errorf("berth %v: %s is no command alone", words, cmd.CommandPath())
	}
}

// The commands in the operators' documents are such that there are.
func TestCommandsInTheDocuments(t *testing.T) {
	for _, name := range []string{"operating.md", "sites/slurm.md", "sites-file.md", "lab.md"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, m := range regexp.MustCompile("(?m)^(berth [^\n#]*)|`(berth [^`]*)`").FindAllSubmatch(text, -1) {
			line := string(m[1]) + string(m[2])
			found++
			checkCommandLine(t, strings.Fields(strings.SplitN(line, " > ", 2)[0])[1:])
		}
		if found == 0 {
			t.Errorf("%s has no commands", name)
		}
	}
}

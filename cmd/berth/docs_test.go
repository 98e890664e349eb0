package main

import (
	"bytes"
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"net/http/httptest"
	"os"
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
	if secret, _, err = known.Add(tokens.Wanted{User: "alice", Role: service.User}, 0); err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	if err := host.Register(registry); err != nil {
		t.Fatal(err)
	}
	bench, err := openLaboratory(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	mail, err := sendNotices(host, known, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(api.New(api.Options{Service: host, Tokens: known, Registry: registry, Laboratory: bench, Courier: mail}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		if err := errors.Join(bench.Close(), host.Close(), store.Close()); err != nil {
			t.Error(err)
		}
	})
	return server.URL, secret
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

// Every file among the examples reads: the configurations hold up to a start, and the
// workflow can be planned. Where the examples keep data only the system's user may write.
func TestExampleConfigurations(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "examples", "*.yaml"))
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	for _, path := range files {
		var out, messages bytes.Buffer
		if filepath.Base(path) == "workflow.yaml" {
			if code := run([]string{"plan", path, "--pes", "64"}, strings.NewReader(""), &out, &messages); code != 0 || messages.Len() > 0 {
				t.Errorf("%s: exit %d: %s", path, code, messages.String())
			}
			continue
		}
		if code := run([]string{"serve", "--check", "--config", path, "--data", filepath.Join(t.TempDir(), "data")}, strings.NewReader(""), &out, &messages); code != 0 || !strings.HasPrefix(out.String(), "valid: ") {
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
	for _, want := range []string{"KillMode=process", "Delegate=yes", "RestartPreventExitStatus=" + strconv.Itoa(exitUsage) + " " + strconv.Itoa(exitFaultAgain)} {
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
	if cmd.DisableFlagParsing { // they are sbatch's
		if _, err := takeApart(rest); err != nil {
			t.Errorf("berth %v: %v", words, err)
		}
		return
	}
	var flags []string
	for _, word := range rest {
		if word == "--" {
			break // what follows is a command of theirs
		}
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

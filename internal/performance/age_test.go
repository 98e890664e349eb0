package performance_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/performance"
)

var root = filepath.Join("..", "..")

// The page is made of the measurements, and no row of it stands for code that has changed since, unless it says so.
func TestThePageIsOfTheMeasurementsAndTellsTheirAge(t *testing.T) {
	file, err := performance.Read(measurements)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(measurements), "page.tmpl"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := file.Page(string(text))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, "docs", "performance.md"))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Error("docs/performance.md is not what docs/performance makes; run: go run ./internal/performance/page")
	}
	h := performance.NewHistory(t.Context(), root)
	if shallow, err := h.Shallow(); err != nil || shallow {
		t.Skipf("the age of measurements needs git and the whole history: shallow %v, %v", shallow, err)
	}
	if h.Foreign(file) {
		t.Skip("the age of measurements needs the history in which they were taken, and this is another one")
	}
	faults, err := file.Faults(h)
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range faults {
		t.Error(fault)
	}
	if len(faults) > 0 {
		t.Log("to note how old they are: go run ./internal/performance/page")
	}
}

// repository is a checkout in which a package is changed and measured.
type repository struct {
	t      *testing.T
	folder string
}

func (r *repository) git(args ...string) string {
	r.t.Helper()
	command := exec.CommandContext(r.t.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"}, args...)...)
	command.Dir = r.folder
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
	out, err := command.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %q: %v, %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// write writes a file.
func (r *repository) write(name, text string) {
	r.t.Helper()
	file := filepath.Join(r.folder, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// commit writes a file and commits it.
func (r *repository) commit(name, text string) string {
	r.t.Helper()
	r.write(name, text)
	r.git("add", ".")
	r.git("commit", "-q", "-m", name)
	return r.git("rev-parse", "--short=8", "HEAD")
}

func newRepository(t *testing.T) *repository {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skipf("needs git: %v", err)
	}
	r := &repository{t, t.TempDir()}
	r.git("init", "-q")
	return r
}

// fileOf has one row of a table about package a and all below b.
func fileOf(commit string, since int, record bool) *performance.File {
	return &performance.File{Tables: []performance.Table{{
		Name: "t", Packages: []string{"a", "b/..."}, Record: record, Columns: []string{"what"}, Rows: []performance.Row{{Commit: commit, Since: since, Cells: []string{"x"}}},
	}}}
}

// faults expects a fault that contains some words, or none.
func faults(t *testing.T, r *repository, f *performance.File, want string) {
	t.Helper()
	got, err := f.Faults(performance.NewHistory(t.Context(), r.folder))
	switch {
	case err != nil:
		t.Fatal(err)
	case want == "" && len(got) != 0, want != "" && (len(got) != 1 || !strings.Contains(got[0], want)):
		t.Errorf("faults %q, want %q", got, want)
	}
}

func TestARowWhosePackagesChangedMustSaySo(t *testing.T) {
	r := newRepository(t)
	first := r.commit("a/x.go", "package a")
	for _, other := range []string{"c/x.go", "a/x_test.go", "a/testdata/x.go", "a/below/x.go", "a/x.md", "b/deep/README.md"} {
		r.commit(other, "other")
	}
	faults(t, r, fileOf(first, 0, false), "")
	faults(t, r, fileOf(first, 1, false), "it says that at least 1 commits have changed its packages; there are 0")

	h, other := performance.NewHistory(t.Context(), r.folder), fileOf("c5c27601", 0, false)
	if _, err := other.Faults(h); !h.Foreign(other) || err == nil || !strings.Contains(err.Error(), "is not in this history") {
		t.Errorf("a commit of another history: %v", err)
	}
	if other.Tables = append(other.Tables, fileOf(first, 0, false).Tables...); h.Foreign(other) {
		t.Error("the history has one of the commits")
	}

	r.write("a/x.go", "package a // changed") // what is not committed counts too
	faults(t, r, fileOf(first, 0, false), "which it does not say")
	r.commit("a/x.go", "package a // changed")
	faults(t, r, fileOf(first, 0, false), "which it does not say")
	faults(t, r, fileOf(first, 1, false), "")

	for n := range strings.SplitSeq("bcdefghijk", "") {
		r.commit("b/deep/x.go", "package deep // "+n)
	}
	faults(t, r, fileOf(first, 1, false), "")
	faults(t, r, fileOf(first, 10, false), "")
	f := fileOf(first, 0, false)
	if err := f.Mark(performance.NewHistory(t.Context(), r.folder)); err != nil || f.Tables[0].Rows[0].Since != 10 {
		t.Errorf("%v, marked with %d, want 10 of 11", err, f.Tables[0].Rows[0].Since)
	}
	if _, err := fileOf("0123abcd", 0, false).Faults(performance.NewHistory(t.Context(), r.folder)); err == nil || !strings.Contains(err.Error(), "0123abcd is not in this history") {
		t.Errorf("the age of a commit that is not there: %v", err)
	}
}

func TestRowsBeyondTheBoundMustBeMeasuredAgain(t *testing.T) {
	r := newRepository(t)
	first := r.commit("a/x.go", "package a")
	// A thousand commits at once.
	var stream strings.Builder
	branch := r.git("symbolic-ref", "HEAD")
	for i := range 1000 {
		stream.WriteString("commit " + branch + "\ncommitter a <a@example.org> 1700000000 +0000\ndata 1\nc\n")
		if i == 0 {
			stream.WriteString("from " + first + "\n")
		}
		stream.WriteString("M 100644 inline a/x.go\ndata <<END\npackage a // " + strings.Repeat("x", 1+i) + "\nEND\n\n")
	}
	stream.WriteString("done\n")
	importing := exec.CommandContext(t.Context(), "git", "fast-import", "--quiet", "--done")
	importing.Dir, importing.Stdin = r.folder, strings.NewReader(strings.Replace(stream.String(), "from "+first, "from "+r.git("rev-parse", first), 1))
	if out, err := importing.CombinedOutput(); err != nil {
		t.Fatalf("git fast-import: %v, %s", err, out)
	}
	r.git("reset", "-q", "--hard")
	faults(t, r, fileOf(first, 1, true), "it says at least 1")
	faults(t, r, fileOf(first, 1000, true), "")
	faults(t, r, fileOf(first, 1000, false), "measure it again, or make the table a record")
	faults(t, r, fileOf(r.git("rev-parse", "HEAD~999"), 100, false), "")
}

const smallFile = `{"Tables": [{"name": "t", "packages": ["a"], "columns": ["what", "how fast"], "rows": [
  {"entered": "01234567", "since": 10, "cells": ["x", "1 <s>"]},
  {"commit": "89abcdef", "packages": ["c"], "cells": ["y", ""]}]}],
 "Counts": {"go": "go1", "rows": [{"name": "w", "per": "job", "allocations": 1.256, "bytes": 80.4}]}}`

func readText(t *testing.T, text string) (*performance.File, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "m.json")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return performance.Read(path)
}

func TestPage(t *testing.T) {
	f, err := readText(t, smallFile)
	if err != nil {
		t.Fatal(err)
	}
	got, err := f.Page("Before.\n\n{{table \"t\"}}\n\n{{measured \"u\" \"make u\"}}\n\n{{counts}}\n")
	want := "Before.\n\n| what | how fast | code |\n|---|---|---|\n| x | 1 <s> | ≤ `01234567`, 10+ |\n| y | | `89abcdef` of `c` |\n\nPackages: `a`.\n\n" +
		"Not measured yet by `make u`.\n\n| work | per | allocations | bytes |\n|---|---|---|---|\n| w | job | 1.26 | 80 |\n\nCounted with go1.\n"
	if err != nil || string(got) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
	for _, wrong := range []string{"", `{{table "t"}}{{table "t"}}`, `{{table "t"}}{{table "u"}}`, `{{table "t"`} {
		if _, err := f.Page(wrong); err == nil {
			t.Errorf("%q makes a page", wrong)
		}
	}
}

func TestMeasurementsThatAreWrong(t *testing.T) {
	for _, c := range [][2]string{
		{`"name": "t"`, `"name": ""`},
		{`"packages": ["a"]`, `"packages": []`},
		{`"cells": ["y", ""]`, `"cells": ["y"]`},
		{`"commit": "89abcdef", `, ``},
		{`"commit": "89abcdef"`, `"commit": "89abcdef", "entered": "89abcdef"`},
		{`"since"`, `"seen"`},
	} {
		if !strings.Contains(smallFile, c[0]) {
			t.Fatal(c[0])
		}
		if _, err := readText(t, strings.Replace(smallFile, c[0], c[1], 1)); err == nil {
			t.Errorf("%s is taken for %s", c[1], c[0])
		}
	}
}

// What is measured replaces rows of the same name, says its commit, and needs one.
func TestPut(t *testing.T) {
	r := newRepository(t)
	r.write("docs/performance/measurements.json", smallFile)
	head := r.commit("a/x.go", "package a")
	table := &performance.Table{Name: "t", Packages: []string{"a", "b"}, Columns: []string{"what", "how fast"}}
	if err := performance.Put(t.Context(), r.folder, table, [][]string{{"y", "2 s"}, {"z", "3 s"}}); err != nil {
		t.Fatal(err)
	}
	other := &performance.Table{Name: "u", Packages: []string{"c"}, Columns: []string{"what"}}
	if err := performance.Put(t.Context(), r.folder, other, [][]string{{"v"}}); err != nil {
		t.Fatal(err) // although the measurements have changed
	}
	f, err := performance.Read(filepath.Join(r.folder, "docs", "performance", "measurements.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, row := range f.Table("t").Rows {
		got = append(got, row.Commit+row.Entered+" "+strings.Join(row.Cells, " "))
	}
	if want := []string{"01234567 x 1 <s>", head + " y 2 s", head + " z 3 s"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if u := f.Table("u"); u == nil || u.Rows[0].Commit != head || len(f.Counts.Rows) != 1 {
		t.Errorf("%+v", f)
	}
	if err := performance.Put(t.Context(), r.folder, other, [][]string{{"v", "w"}}); err == nil {
		t.Error("two cells in one column")
	}
	other.Columns = []string{"what", "else"}
	if err := performance.Put(t.Context(), r.folder, other, [][]string{{"v", "w"}}); err == nil {
		t.Error("rows of other columns")
	}
	r.write("a/x.go", "package a // changed")
	if err := performance.Put(t.Context(), r.folder, table, nil); err == nil {
		t.Error("measured what no commit has")
	}
}

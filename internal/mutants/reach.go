package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// reach says which tests of a package reach which blocks of the program, so that a mutant meets
// only tests that can tell. Each test is run alone, by a binary that counts what is executed. What
// a test reaches by a process that it starts from the same binary counts too; if such a process
// ends without telling what it reached, as one that is killed does, the test counts as reaching
// everything.
//
// The shortcut assumes that a test reaches the same blocks each time. It draws the same cases
// each time, but goroutines of one may meet in another order.
type reach struct {
	Tests  []reaching         `json:"tests"`  // the quickest first
	Blocks map[string][]block `json:"blocks"` // by file below the root; those that no test reaches too
}

// reaching is a test.
type reaching struct {
	Name       string        `json:"name"`
	Took       time.Duration `json:"took"` // alone
	Everywhere bool          `json:"everywhere,omitempty"`
}

// block is a piece of a file that is executed as a whole, unless something in it panics.
type block struct {
	From  place `json:"from"`
	To    place `json:"to"`    // behind its last byte
	Tests []int `json:"tests"` // by their index
}

// place is a place in a file, both from 1; the column counts bytes.
type place struct {
	Line   int `json:"line"`
	Column int `json:"column"`
}

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.Line, q.Line), cmp.Compare(p.Column, q.Column))
}

// placeOf returns the place of a byte.
func placeOf(source []byte, offset int) place {
	before := source[:offset]
	return place{1 + bytes.Count(before, []byte("\n")), offset - bytes.LastIndexByte(before, '\n')}
}

// of returns the tests that may tell a mutant from the original, the quickest first.
//
// An edit in no block, such as one of the expression of a case, is reached by what reaches its
// function. Every test reaches what stands outside of functions, and files whose blocks were not counted.
func (r *reach) of(m *Mutant) []reaching {
	blocks, counted := r.Blocks[m.File.Name]
	if !counted {
		return r.Tests
	}
	at := placeOf(m.File.Source, m.Start)
	holding := slices.DeleteFunc(slices.Clone(blocks), func(b block) bool { return at.compare(b.From) < 0 || at.compare(b.To) >= 0 })
	if len(holding) == 0 {
		i := slices.IndexFunc(m.File.Syntax.Decls, func(d ast.Decl) bool {
			_, function := d.(*ast.FuncDecl)
			return function && int(d.Pos()-m.File.Syntax.FileStart) <= m.Start && m.Start < int(d.End()-m.File.Syntax.FileStart)
		})
		if i < 0 {
			return r.Tests
		}
		d := m.File.Syntax.Decls[i]
		from, to := placeOf(m.File.Source, int(d.Pos()-m.File.Syntax.FileStart)), placeOf(m.File.Source, int(d.End()-m.File.Syntax.FileStart))
		holding = slices.DeleteFunc(slices.Clone(blocks), func(b block) bool { return b.From.compare(from) < 0 || b.To.compare(to) > 0 })
	}
	var found []reaching
	for i, t := range r.Tests {
		if t.Everywhere || slices.ContainsFunc(holding, func(b block) bool { return slices.Contains(b.Tests, i) }) {
			found = append(found, t)
		}
	}
	return found
}

// batches divides tests, the quickest first, into runs: each takes about as long as all before it,
// so that most mutants die early and those that survive start few processes.
func batches(list []reaching) [][]reaching {
	const first = 500 * time.Millisecond // several starts of a process
	var all [][]reaching
	var before, batch time.Duration
	from := 0
	for i, t := range list {
		if batch += t.Took; batch >= max(first, before) || i == len(list)-1 {
			all = append(all, list[from:i+1])
			from, before, batch = i+1, before+batch, 0
		}
	}
	return all
}

// chosenTests are the arguments that run some tests.
func chosenTests(list []reaching) string {
	names := make([]string, len(list))
	for i, t := range list {
		names[i] = t.Name
	}
	return "-test.run=^(" + strings.Join(names, "|") + ")$"
}

// counting is the source of what is compiled into the counting binary: each process that it starts
// leaves a file beside the binary, and what it has reached when it exits.
const counting = `package %s_test

import (
	"os"
	"path/filepath"
	"strconv"
)

func init() {
	self, err := os.Executable()
	if err == nil {
		err = os.Setenv("GOCOVERDIR", filepath.Join(filepath.Dir(self), "reached"))
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(filepath.Dir(self), "processes", strconv.Itoa(os.Getpid())), nil, 0o600)
	}
	if err != nil {
		panic(err)
	}
}
`

// countingBinary compiles the tests of a package so that they count which blocks of the packages in
// these folders are executed, and returns the hash of the binary and the path of the module.
func (j *judge) countingBinary(ctx context.Context, folder, binary string, covered []string) (sum [sha256.Size]byte, module string, err error) {
	out, err := j.command(ctx, "list", "-f", "{{.Name}} {{.Module.Path}}", "./"+folder)
	if err != nil {
		return sum, "", fmt.Errorf("go list: %w: %s", err, complaint(out))
	}
	name, module, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	dir := filepath.Dir(binary)
	file := filepath.Join(dir, "counting.go")
	if err := os.WriteFile(file, fmt.Appendf(nil, counting, name), 0o600); err != nil {
		return sum, "", err
	}
	root, err := filepath.Abs(j.root)
	if err != nil {
		return sum, "", err
	}
	overlay, err := replacing(dir, filepath.Join(root, filepath.FromSlash(folder), "mutants_counting_test.go"), file)
	if err != nil {
		return sum, "", err
	}
	patterns := make([]string, len(covered))
	for i, c := range covered {
		patterns[i] = "./" + c
	}
	sum, err = j.compile(ctx, folder, overlay, binary, "-cover", "-covermode=set", "-coverpkg="+strings.Join(patterns, ","))
	return sum, module, err
}

// record finds out what each test of a package reaches, or remembers it. All must pass.
func (j *judge) record(ctx context.Context, folder string, o *original, short bool) (*reach, error) {
	if o.counting == "" {
		covered := j.covered[folder]
		if len(covered) == 0 {
			covered = []string{folder}
		}
		binary := filepath.Join(filepath.Dir(o.binary), "counting.test")
		var err error
		if o.countingSum, o.module, err = j.countingBinary(ctx, folder, binary, covered); err != nil {
			return nil, err
		}
		o.counting = binary
	}
	remembered := ""
	if j.remembered != "" {
		key, err := j.key(folder, o, short)
		if err != nil {
			return nil, err
		}
		remembered = filepath.Join(j.remembered, fmt.Sprintf("%s-%x.json", strings.ReplaceAll(folder, "/", "-"), key[:8]))
		text, err := os.ReadFile(remembered)
		r := &reach{}
		if err == nil && json.Unmarshal(text, r) == nil {
			return r, nil
		}
	}
	names, err := j.names(ctx, o, folder)
	if err != nil {
		return nil, err
	}
	r := &reach{Tests: make([]reaching, len(names)), Blocks: map[string][]block{}}
	profiles := make([][]byte, len(names))
	failed := make([]error, len(names))
	work := make(chan int)
	var group sync.WaitGroup
	for range max(1, j.jobs) {
		group.Go(func() {
			for i := range work {
				r.Tests[i], profiles[i], failed[i] = j.alone(ctx, o.counting, folder, names[i], o.arguments(short))
				if failed[i] != nil && ctx.Err() == nil { // once may be a machine that is too busy
					r.Tests[i], profiles[i], failed[i] = j.alone(ctx, o.counting, folder, names[i], o.arguments(short))
				}
			}
		})
	}
	for i := range names {
		work <- i
	}
	close(work)
	group.Wait()
	if err := errors.Join(failed...); err != nil {
		return nil, err
	}
	order := make([]int, len(names))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(r.Tests[a].Took, r.Tests[b].Took), strings.Compare(names[a], names[b]))
	})
	sorted := make([]reaching, len(names))
	collected := map[string]map[[2]place]*block{}
	for i, was := range order {
		sorted[i] = r.Tests[was]
		if err := collect(collected, o.module, profiles[was], i); err != nil {
			return nil, fmt.Errorf("what %s reaches: %w", names[was], err)
		}
	}
	r.Tests = sorted
	for file, blocks := range collected {
		list := make([]block, 0, len(blocks))
		for _, b := range blocks {
			list = append(list, *b)
		}
		slices.SortFunc(list, func(a, b block) int { return cmp.Or(a.From.compare(b.From), a.To.compare(b.To)) })
		r.Blocks[file] = list
	}
	if remembered == "" {
		return r, nil
	}
	text, err := json.Marshal(r)
	if err == nil {
		err = os.MkdirAll(j.remembered, 0o700)
	}
	if err == nil {
		err = os.WriteFile(remembered, text, 0o600)
	}
	return r, err
}

// key is a hash of what decides which blocks tests reach: their binary and arguments, which are chosen, the
// files in testdata, and whether there are real data.
func (j *judge) key(folder string, o *original, short bool) ([]byte, error) {
	_, err := os.Stat(filepath.Join(j.root, "..", "shared", "data"))
	decides := fmt.Appendf(o.countingSum[:], "%q %q %t %v %v", o.arguments(short), os.Getenv("BERTH_DATA"), err == nil, j.tests, j.skip)
	err = filepath.WalkDir(filepath.Join(j.root, filepath.FromSlash(folder), "testdata"), func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(file)
		decides = fmt.Appendf(decides, "%q %x", entry.Name(), sha256.Sum256(text))
		return err
	})
	if errors.Is(err, fs.ErrNotExist) { // most have none
		err = nil
	}
	key := sha256.Sum256(decides)
	return key[:], err
}

// names lists the tests of a package that are to judge, its examples and the seeds of its fuzz targets.
func (j *judge) names(ctx context.Context, o *original, folder string) ([]string, error) {
	out, v := j.output(ctx, o.binary, folder, filepath.Dir(o.binary), []string{"-test.list=."}, time.Minute)
	if v.Outcome != Survived {
		return nil, fmt.Errorf("the tests of %s cannot be listed: %s", folder, complaint(out))
	}
	var names []string
	for line := range strings.Lines(string(out)) {
		if name := strings.TrimSpace(line); strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Example") || strings.HasPrefix(name, "Fuzz") {
			if (j.tests == nil || j.tests.MatchString(name)) && (j.skip == nil || !j.skip.MatchString(name)) {
				names = append(names, name)
			}
		}
	}
	return names, nil
}

// alone runs one test by the counting binary, and returns the profile of what it reaches.
func (j *judge) alone(ctx context.Context, binary, folder, name string, args []string) (t reaching, profile []byte, err error) {
	dir, err := j.folder("alone-")
	if err != nil {
		return t, nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // what is left goes with j.temp
	reached, processes := filepath.Join(dir, "reached"), filepath.Join(dir, "processes")
	for _, folder := range []string{reached, processes, filepath.Join(dir, "temp")} {
		if err := os.Mkdir(folder, 0o711); err != nil {
			return t, nil, err
		}
	}
	// Processes of other users leave something there too.
	for _, folder := range []string{reached, processes} {
		if err := os.Chmod(folder, 0o777); err != nil {
			return t, nil, err
		}
	}
	self := filepath.Join(dir, "counting.test") // of its own, by which its processes find the folder
	if err := os.Link(binary, self); err != nil {
		return t, nil, err
	}
	result := filepath.Join(dir, "profile")
	args = append(slices.Clone(args), "-test.run=^"+name+"$", "-test.coverprofile="+result, "-test.gocoverdir="+reached)
	out, v := j.output(ctx, self, folder, filepath.Join(dir, "temp"), args, time.Hour)
	if ctx.Err() != nil {
		return t, nil, ctx.Err()
	}
	if v.Outcome != Survived {
		return t, nil, fmt.Errorf("the tests of %s fail without a mutant: %s\n%s", folder, cmp.Or(v.Test, name), out)
	}
	t = reaching{Name: name, Took: v.Took}
	if profile, err = os.ReadFile(result); err != nil && !errors.Is(err, fs.ErrNotExist) { // there is none where nothing is covered
		return t, nil, err
	}
	t.Everywhere, err = silent(processes, reached)
	return t, profile, err
}

// silent tells whether a process has not told what it reached.
func silent(processes, reached string) (bool, error) {
	began, err := os.ReadDir(processes)
	if err != nil {
		return false, err
	}
	told, err := os.ReadDir(reached)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(began, func(process fs.DirEntry) bool {
		return !slices.ContainsFunc(told, func(e fs.DirEntry) bool { // covcounters.<hash>.<process>.<time>
			parts := strings.Split(e.Name(), ".")
			return parts[0] == "covcounters" && len(parts) == 4 && parts[2] == process.Name()
		})
	}), nil
}

// collect adds what a test reaches, whose profile has lines such as
// example.org/m/low/low.go:4.30,6.2 1 0.
func collect(into map[string]map[[2]place]*block, module string, profile []byte, test int) error {
	lines := bufio.NewScanner(bytes.NewReader(profile))
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "mode:") {
			continue
		}
		colon := strings.LastIndexByte(line, ':')
		if colon < 0 {
			return fmt.Errorf("a profile has the line %q", line)
		}
		var from, to place
		var statements, count int
		if _, err := fmt.Sscanf(line[colon+1:], "%d.%d,%d.%d %d %d", &from.Line, &from.Column, &to.Line, &to.Column, &statements, &count); err != nil {
			return fmt.Errorf("a profile has the line %q: %w", line, err)
		}
		file, ours := strings.CutPrefix(line[:colon], module+"/")
		if !ours {
			return fmt.Errorf("a profile has the file %s, which is not of module %s", line[:colon], module)
		}
		file = path.Clean(file)
		if into[file] == nil {
			into[file] = map[[2]place]*block{}
		}
		b := into[file][[2]place{from, to}]
		if b == nil {
			b = &block{From: from, To: to}
			into[file][[2]place{from, to}] = b
		}
		if count > 0 && (len(b.Tests) == 0 || b.Tests[len(b.Tests)-1] != test) {
			b.Tests = append(b.Tests, test)
		}
	}
	return lines.Err()
}

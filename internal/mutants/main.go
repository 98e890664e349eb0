// Command mutants asks what the tests would not see: it changes the rooms that
// decide, one place at a time, and runs the tests against each change. It
// changes no file, and no test is part of it.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/berth-hpc/berth/internal/source"
)

// tolerated is how many of a hundred drawn mutants may survive without an
// argument: some are equivalent in ways that no argument is worth.
const tolerated = 5

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	r := run{root: ".", suites: suites, stdout: os.Stdout}
	flag.IntVar(&r.n, "n", 200, "how many mutants are drawn and judged")
	flag.Uint64Var(&r.seed, "seed", 1, "of the draws")
	flag.StringVar(&r.packages, "packages", "", "only those of these folders, divided by commas; . is the root")
	flag.StringVar(&r.by, "by", "", "only the tests in these folders judge, divided by commas")
	flag.Func("tests", "only tests whose names match this `pattern` judge; the others are not even measured", func(pattern string) (err error) {
		r.tests, err = regexp.Compile(pattern)
		return err
	})
	flag.Func("skip", "tests whose names match this `pattern` do not judge, such as those that take long", func(pattern string) (err error) {
		r.skip, err = regexp.Compile(pattern)
		return err
	})
	flag.StringVar(&r.only, "only", "", "judge every mutant whose name or key contains this, and draw none")
	flag.StringVar(&r.named, "named", "internal/mutants/named.txt", "the list of named mutants")
	flag.StringVar(&r.argued, "equivalent", "internal/mutants/equivalent.txt", "the list of mutants that no test can kill")
	flag.DurationVar(&r.slack, "slack", 20*time.Second, "how much longer than five times its own time a test may take")
	flag.StringVar(&r.cache, "cache", "", "the go command's cache, which is kept; without it one that is made and removed")
	flag.BoolVar(&r.plain, "plain", false, "run every test against every mutant, whatever it reaches")
	flag.IntVar(&r.jobs, "jobs", runtime.NumCPU(), "how many mutants are judged at a time")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "mutants: %q is no flag\n", flag.Arg(0))
		os.Exit(2)
	}
	passed, err := r.do(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	if !passed {
		os.Exit(1)
	}
}

// run is one run of the command.
type run struct {
	root           string
	suites         []suite
	n, jobs        int
	seed           uint64
	packages, only string
	by             string         // the folders of the tests that judge; "" is what the suites say
	tests, skip    *regexp.Regexp // what the names of tests that judge match, and do not match; nil is any, and none
	cache          string
	named, argued  string
	slack          time.Duration
	plain          bool
	j              *judge // nil is one of its own
	stdout         io.Writer

	module *source.Module
	all    map[string][]*Mutant // by folder
	faults []string
	unsaid error // why the output is not whole
}

// do judges and tells whether the tests are good enough. The error says why
// there is no judgement.
func (r *run) do(ctx context.Context) (passed bool, err error) {
	switch {
	case r.n < 0:
		return false, fmt.Errorf("-n: %d is negative; give how many mutants are drawn, such as 200", r.n)
	case r.jobs < 1:
		return false, fmt.Errorf("-jobs: %d is not positive; give how many mutants are judged at a time, such as 2", r.jobs)
	}
	if err := r.find(ctx); err != nil {
		return false, err
	}
	named, err := r.findNamed()
	if err != nil {
		return false, err
	}
	argued, err := r.findArgued()
	if err != nil {
		return false, err
	}
	j := r.j
	if j == nil {
		temp, err := os.MkdirTemp("", "mutants-")
		if err != nil {
			return false, err
		}
		defer func() { _ = os.RemoveAll(temp) }()
		j = &judge{root: r.root, temp: temp, slack: r.slack, jobs: r.jobs, plain: r.plain, tests: r.tests, skip: r.skip, remembered: filepath.Join(r.root, "out", "mutants"), covered: covered(r.suites)}
		// What is compiled is removed at the end too: hundreds of mutants are
		// gigabytes, and nothing will ask for them again. Some alone are not
		// worth compiling everything else once more.
		if j.cache = r.cache; r.cache == "" && r.only == "" {
			j.cache = filepath.Join(temp, "cache")
		}
	}
	if r.only != "" {
		passed, err = r.judgeSome(ctx, j, named)
	} else {
		passed, err = r.judgeAll(ctx, j, named, argued)
	}
	return passed, cmp.Or(err, r.unsaid)
}

// printf prints a part of the output.
func (r *run) printf(format string, args ...any) {
	if _, err := fmt.Fprintf(r.stdout, format, args...); err != nil {
		r.unsaid = err
	}
}

// find reads the module and lists the mutants of the chosen packages.
func (r *run) find(ctx context.Context) (err error) {
	if r.module, err = source.Open(ctx, r.root, source.Options{}); err != nil {
		return err
	}
	if r.suites, err = chosen(r.suites, r.packages, r.module.Folders()); err != nil {
		return err
	}
	if r.suites, err = judgedBy(r.suites, r.by); err != nil {
		return err
	}
	r.all = map[string][]*Mutant{}
	for _, s := range r.suites {
		p, err := r.module.Package(s.folder)
		if err != nil {
			return err
		}
		r.all[s.folder] = mutantsOf(r.module.Fset, p)
	}
	return nil
}

// judgeSome judges the mutants that -only asks for.
func (r *run) judgeSome(ctx context.Context, j *judge, named []*Mutant) (passed bool, err error) {
	some := slices.Clone(named)
	for _, s := range r.suites {
		some = append(some, r.all[s.folder]...)
	}
	some = slices.DeleteFunc(some, func(m *Mutant) bool { return m.Name != r.only && !strings.Contains(m.Key(), r.only) })
	if len(some) == 0 {
		return false, fmt.Errorf("-only: no mutant's name is %q, and no key contains it", r.only)
	}
	t, err := r.judge(ctx, j, "Chosen mutants", len(some), each(some))
	return err == nil && len(t.survivors) == 0, err
}

// judgeAll judges the named mutants, those that are argued to be equivalent, and
// what is drawn.
func (r *run) judgeAll(ctx context.Context, j *judge, named, argued []*Mutant) (passed bool, err error) {
	if err := r.measure(ctx, j); err != nil {
		return false, err
	}
	t, err := r.judge(ctx, j, "Named mutants, which must be killed", len(named), each(named))
	if err != nil {
		return false, err
	}
	for _, m := range t.survivors {
		r.fault("%s survived: %s", m.Name, m.About)
	}
	for _, m := range t.uncounted {
		r.fault("%s is no mutant: it does not compile, or nothing changes", m.Name)
	}
	if t, err = r.judge(ctx, j, "Mutants that are argued to be equivalent, which must survive", len(argued), each(argued)); err != nil {
		return false, err
	}
	for _, m := range t.killed {
		r.fault("%s: the argument is wrong, for it was killed: %s", r.argued, m.Key())
	}
	for _, m := range t.uncounted {
		r.fault("%s: no argument is needed: %s", r.argued, m.Key())
	}
	total := 0
	for _, all := range r.all {
		total += len(all)
	}
	if t, err = r.judge(ctx, j, fmt.Sprintf("%d of %d mutants, drawn with seed %d", r.n, total, r.seed), r.n, r.drawn(argued)); err != nil {
		return false, err
	}
	r.summary(t)
	return len(r.faults) == 0, nil
}

func (r *run) fault(format string, args ...any) {
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}

// findNamed reads the named mutants of the chosen packages.
func (r *run) findNamed() ([]*Mutant, error) {
	list, err := readNamed(r.named)
	if err != nil {
		return nil, err
	}
	var found []*Mutant
	for _, n := range list {
		folder := path.Dir(n.file)
		if _, chosen := r.all[folder]; !chosen && r.packages != "" {
			continue
		}
		p, err := r.module.Package(folder)
		if err == nil {
			var m *Mutant
			if m, err = n.mutant(r.module.Fset, p); err == nil {
				found = append(found, m)
				continue
			}
		}
		r.fault("%s:%d: %v", r.named, n.line, err)
	}
	return found, nil
}

// findArgued reads the mutants of the chosen packages that are argued to be
// equivalent.
func (r *run) findArgued() ([]*Mutant, error) {
	list, err := readArgued(r.argued)
	if err != nil {
		return nil, err
	}
	var found []*Mutant
	for _, a := range list {
		file, _, _ := strings.Cut(a.key, separator)
		folder := path.Dir(file)
		all, chosen := r.all[folder]
		if !chosen && (r.packages != "" || slices.ContainsFunc(further, func(s suite) bool { return s.folder == folder })) {
			continue // it is not mutated here
		}
		i := slices.IndexFunc(all, func(m *Mutant) bool { return m.Key() == a.key })
		if i < 0 {
			r.fault("%s:%d: there is no such mutant: %s", r.argued, a.line, a.key)
			continue
		}
		found = append(found, all[i])
	}
	return found, nil
}

// measure runs each of the tests as they are, and prints how long they take one after the other.
func (r *run) measure(ctx context.Context, j *judge) error {
	r.printf("The tests as they are\n")
	seen := map[tests]bool{}
	for _, s := range r.suites {
		for _, t := range s.by {
			if seen[t] {
				continue
			}
			seen[t] = true
			o, err := j.measure(ctx, t)
			if err != nil {
				return err
			}
			r.printf("  %-22s", t.folder)
			for i, short := range t.modes() {
				took := time.Duration(0)
				for _, test := range o.reach[short].Tests {
					took += test.Took
				}
				r.printf("%s %s", []string{" short", ", whole"}[i], took.Round(100*time.Millisecond))
			}
			r.printf("\n")
		}
	}
	return nil
}

// each yields a list.
func each(list []*Mutant) func() *Mutant {
	return func() *Mutant {
		if len(list) == 0 {
			return nil
		}
		m := list[0]
		list = list[1:]
		return m
	}
}

// drawn draws from the packages by turns, from each as much as its share, and
// leaves out mutants that do not compile and those that are argued about.
func (r *run) drawn(argued []*Mutant) func() *Mutant {
	sizes := make([]int, len(r.suites))
	for i, s := range r.suites {
		sizes[i] = len(r.all[s.folder])
	}
	var order []int // the index of a suite for each draw
	wanted := shares(r.n, sizes)
	for more := true; more; {
		more = false
		for i := range wanted {
			if wanted[i] > 0 {
				wanted[i]--
				order = append(order, i)
				more = true
			}
		}
	}
	sources := make([]*draws, len(r.suites))
	for i, s := range r.suites {
		sources[i] = newDraws(r.seed, s.folder, r.all[s.folder])
	}
	at := 0
	return func() *Mutant {
		for exhausted := 0; exhausted < len(order); exhausted++ {
			d := sources[order[at%len(order)]]
			at++
			for m := d.next(); m != nil; m = d.next() {
				if !slices.Contains(argued, m) && compiles(r.module, m) {
					return m
				}
			}
		}
		return nil
	}
}

package lint

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/berth-hpc/berth/internal/source"
)

func TestNothingDependsOnMapOrder(t *testing.T) {
	pkgs := rooms(t)
	q := newQuiet(pkgs)
	allowed := exceptions{table: unordered}
	for _, p := range pkgs {
		if deterministic(p.Path) {
			report(t, allowed.remaining(orderFaults(typed(t).Fset, p, q)))
		}
	}
	report(t, allowed.stale())
}

func TestPackageVariablesAreConstants(t *testing.T) {
	var constants []*types.Package
	pkgs := rooms(t)
	for _, p := range pkgs {
		if pure(p.Path) {
			constants = append(constants, p.Types)
		}
	}
	for _, p := range slices.Clone(pkgs) {
		external, err := typed(t).External(p.Path)
		if err != nil {
			t.Fatal(err)
		}
		if external != nil {
			pkgs = append(pkgs, external)
		}
	}
	allowed := exceptions{table: variables}
	for _, p := range pkgs {
		report(t, allowed.remaining(variableFaults(typed(t).Fset, p, constants)))
	}
	report(t, allowed.stale())
}

func TestOwnersAloneWrite(t *testing.T) {
	pkgs := rooms(t)
	q := newQuiet(pkgs)
	for _, o := range owned {
		for _, f := range ownerFaults(typed(t).Fset, pkgs, q, o) {
			t.Error(f)
		}
	}
}

// No signature that other modules can call names a type that they cannot.
func TestPublicPackagesNameNoInternalTypes(t *testing.T) {
	for _, p := range rooms(t) {
		for _, f := range surfaceFaults(typed(t).Fset, p) {
			t.Error(f)
		}
	}
}

// pure tells whether a folder is a pure room.
func pure(folder string) bool {
	return slices.ContainsFunc(table, func(r room) bool { return r.pure && r.path == folder })
}

// deterministic tells whether the output of a room is a function of its input.
func deterministic(folder string) bool { return pure(folder) || slices.Contains(repeatable, folder) }

// exceptions apply a table of places that a rule leaves out.
type exceptions struct {
	table []exception
	met   map[exception]bool
}

// exception is a place that a rule leaves out.
type exception struct {
	where  string // the file and the function or variable, as the fault names them
	reason string
}

// remaining returns the faults that no row of the table covers.
func (x *exceptions) remaining(faults []fault) []string {
	var left []string
	for _, f := range faults {
		i := slices.IndexFunc(x.table, func(e exception) bool { return e.where == f.where })
		if i < 0 {
			left = append(left, f.String())
			continue
		}
		if x.met == nil {
			x.met = map[exception]bool{}
		}
		x.met[x.table[i]] = true
	}
	return left
}

// stale reports rows without a fault.
func (x *exceptions) stale() []string {
	var faults []string
	for _, e := range x.table {
		if !x.met[e] {
			faults = append(faults, fmt.Sprintf("the exception %q covers no fault; delete its row", e.where))
		}
	}
	return faults
}

// fault is a fault at a place.
type fault struct {
	file  string
	line  int
	where string // what an exception names: the file, and the function or variable
	text  string
}

func (f fault) String() string { return fmt.Sprintf("%s:%d: %s", f.file, f.line, f.text) }

// faultAt returns a fault at a place of a package. name is the function or the
// variable by which an exception finds it.
func faultAt(fset *token.FileSet, p *source.Package, at token.Pos, name, format string, args ...any) fault {
	file := fileOf(p, at)
	return fault{file.Name, fset.Position(at).Line, file.Name + " " + name, fmt.Sprintf(format, args...)}
}

func fileOf(p *source.Package, at token.Pos) *source.File {
	for _, f := range p.Files {
		if f.Syntax.FileStart <= at && at < f.Syntax.FileEnd {
			return f
		}
	}
	panic("a position outside the package " + p.Path)
}

// functionName writes a function as `Name`, and a method as `(*T).Name`.
func functionName(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return fn.Name.Name
	}
	receiver := types.ExprString(fn.Recv.List[0].Type)
	if strings.HasPrefix(receiver, "*") {
		receiver = "(" + receiver + ")"
	}
	return receiver + "." + fn.Name.Name
}

// functions yields the functions of a file that have a body.
func functions(file *ast.File) func(func(*ast.FuncDecl) bool) {
	return func(yield func(*ast.FuncDecl) bool) {
		for _, d := range file.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil && !yield(fn) {
				return
			}
		}
	}
}

var typedModule = sync.OnceValues(func() (*source.Module, error) {
	return source.Open(context.Background(), root, source.Options{Tests: true})
})

// typed returns the module with types.
func typed(t *testing.T) *source.Module {
	t.Helper()
	m, err := typedModule()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// rooms returns every package of the module, with the tests inside it.
func rooms(t *testing.T) []*source.Package {
	t.Helper()
	var pkgs []*source.Package
	for _, folder := range typed(t).Folders() {
		p, err := typed(t).Package(folder)
		if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
	return pkgs
}

// plantTyped returns a package of the given files, named x.go, xx.go and so on;
// "test:" before a file makes it one of tests.
func plantTyped(t *testing.T, folder string, sources ...string) *source.Package {
	t.Helper()
	var files []*source.File
	for i, src := range sources {
		name := path.Join(folder, strings.Repeat("x", i+1)+".go")
		src, test := strings.CutPrefix(src, "test:")
		if test {
			name = strings.TrimSuffix(name, ".go") + "_test.go"
		}
		files = append(files, parsed(t, name, src))
	}
	p, err := typed(t).Check(folder, files)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// parsed returns a file of the module that exists in a test only.
func parsed(t *testing.T, name, src string) *source.File {
	t.Helper()
	syntax, err := parser.ParseFile(typed(t).Fset, name, src, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return &source.File{Name: name, Syntax: syntax, Source: []byte(src)}
}

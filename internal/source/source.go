// Package source reads the Go packages of a module from source, with types. It
// judges and changes nothing.
package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Package is a package of the module.
type Package struct {
	Path  string  // its folder below the module's root, with slashes; "." is the root
	Files []*File // sorted by name
	Types *types.Package
	Info  *types.Info
}

// File is a parsed file.
type File struct {
	Name   string // below the module's root, with slashes
	Syntax *ast.File
	Source []byte
}

// IsTest tells whether the file is compiled for tests only.
func (f *File) IsTest() bool { return strings.HasSuffix(f.Name, "_test.go") }

// Module is a module whose packages are type-checked when they are asked for.
// A package that others import is checked once, so its types are the same
// everywhere. A Module is not for concurrent use.
type Module struct {
	Fset *token.FileSet

	root, path string
	foreign    types.Importer      // packages of other modules and of the standard library
	parsed     map[string][]*File  // by folder: the files of the package itself
	outside    map[string][]*File  // by folder: the files of its external tests
	loaded     map[string]*Package // by folder
}

// Open parses the module in the folder root, with its tests if asked for, and
// has the go command compile what the module imports from elsewhere. Like the
// go command it leaves out testdata, folders that begin with a dot or an
// underscore, and files whose build constraints do not hold on this machine.
func Open(ctx context.Context, root string, options Options) (*Module, error) {
	gomod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return nil, err
	}
	m := &Module{
		Fset: token.NewFileSet(), root: root, path: modulePath(gomod),
		parsed: map[string][]*File{}, outside: map[string][]*File{}, loaded: map[string]*Package{},
	}
	if err := m.parse(options); err != nil {
		return nil, err
	}
	exports, err := m.compile(ctx)
	if err != nil {
		return nil, err
	}
	m.foreign = importer.ForCompiler(m.Fset, "gc", func(path string) (io.ReadCloser, error) {
		file, ok := exports[path]
		if !ok {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		return os.Open(file)
	})
	return m, nil
}

// Options says what of a module is read.
type Options struct {
	Tests bool // the files of tests too
}

// modulePath returns the path that a go.mod declares.
func modulePath(gomod []byte) string {
	for line := range bytes.Lines(gomod) {
		if rest, ok := bytes.CutPrefix(line, []byte("module ")); ok {
			return string(bytes.TrimSpace(rest))
		}
	}
	return ""
}

func (m *Module) parse(options Options) error {
	return filepath.WalkDir(m.root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if file != m.root && (name == "testdata" || name == "node_modules" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")) {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ".go" || !options.Tests && strings.HasSuffix(name, "_test.go") {
			return nil
		}
		if match, err := build.Default.MatchFile(filepath.Dir(file), name); err != nil || !match {
			return err
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		syntax, err := parser.ParseFile(m.Fset, file, content, parser.ParseComments)
		if err != nil {
			return err
		}
		below, err := filepath.Rel(m.root, file)
		if err != nil {
			return err
		}
		below = filepath.ToSlash(below)
		folder, into := path.Dir(below), m.parsed
		if strings.HasSuffix(name, "_test.go") && strings.HasSuffix(syntax.Name.Name, "_test") {
			into = m.outside
		}
		into[folder] = append(into[folder], &File{below, syntax, content})
		return nil
	})
}

// compile returns the files of export data of every package outside the module
// that the module needs, by import path.
func (m *Module) compile(ctx context.Context) (map[string]string, error) {
	imported := map[string]bool{}
	for _, files := range slices.Concat(slices.Collect(maps.Values(m.parsed)), slices.Collect(maps.Values(m.outside))) {
		for _, file := range files {
			for _, spec := range file.Syntax.Imports {
				at := Imported(spec)
				if _, inner := m.folder(at); !inner && at != "unsafe" {
					imported[at] = true
				}
			}
		}
	}
	exports := map[string]string{}
	if len(imported) == 0 {
		return exports, nil
	}
	list := exec.CommandContext(ctx, "go", append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}}={{.Export}}", "--"},
		slices.Sorted(maps.Keys(imported))...)...)
	list.Dir = m.root
	var stderr strings.Builder
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list -export: %w\n%s", err, stderr.String())
	}
	for line := range strings.Lines(string(out)) {
		at, file, _ := strings.Cut(strings.TrimSpace(line), "=")
		exports[at] = file
	}
	return exports, nil
}

// folder returns the folder of an import path of the module.
func (m *Module) folder(imported string) (string, bool) {
	inner, ok := strings.CutPrefix(imported+"/", m.path+"/")
	return path.Clean(inner), ok
}

// Folders returns the folders of the packages, sorted.
func (m *Module) Folders() []string { return slices.Sorted(maps.Keys(m.parsed)) }

// Package returns the package in a folder. If the module was opened with its
// tests, the package holds their files, and other packages see it so. The error
// tells what does not compile, or that there is no such package.
func (m *Module) Package(folder string) (*Package, error) {
	if p, ok := m.loaded[folder]; ok {
		if p == nil {
			return nil, fmt.Errorf("%s: packages import one another, perhaps through their tests", folder)
		}
		return p, nil
	}
	files, ok := m.parsed[folder]
	if !ok {
		return nil, fmt.Errorf("no package in %s", folder)
	}
	m.loaded[folder] = nil
	p, err := m.Check(folder, files)
	if err != nil {
		delete(m.loaded, folder)
		return nil, err
	}
	m.loaded[folder] = p
	return p, nil
}

// External returns the external tests of the package in a folder, and nil if
// there are none.
func (m *Module) External(folder string) (*Package, error) {
	files, ok := m.outside[folder]
	if !ok {
		return nil, nil
	}
	return m.Check(folder, files)
}

// Check type-checks files as a package of the folder, which no other package
// sees. The error holds every fault that the type checker finds.
func (m *Module) Check(folder string, files []*File) (*Package, error) {
	p := &Package{Path: folder, Files: files, Info: &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{}, Scopes: map[ast.Node]*types.Scope{}, Implicits: map[ast.Node]types.Object{},
	}}
	syntax := make([]*ast.File, len(files))
	for i, f := range files {
		syntax[i] = f.Syntax
	}
	var faults []error
	config := types.Config{Importer: importing(m.load), Error: func(err error) { faults = append(faults, err) }}
	p.Types, _ = config.Check(path.Join(m.path, folder), m.Fset, syntax, p.Info) // its error is the first of faults
	return p, errors.Join(faults...)
}

// load returns a package that is imported.
func (m *Module) load(imported string) (*types.Package, error) {
	folder, ok := m.folder(imported)
	if !ok {
		return m.foreign.Import(imported)
	}
	p, err := m.Package(folder)
	if err != nil {
		return nil, err
	}
	return p.Types, nil
}

// importing is a function as a types.Importer.
type importing func(string) (*types.Package, error)

func (f importing) Import(imported string) (*types.Package, error) { return f(imported) }

// Imported returns the path of an import.
func Imported(spec *ast.ImportSpec) string {
	imported, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		panic("the parser let a bad import path through: " + spec.Path.Value)
	}
	return imported
}

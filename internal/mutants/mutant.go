package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/source"
)

// Kind is a way to change a program.
type Kind string

// The kinds. Named is a change that the list of named mutants describes.
const (
	Relation   Kind = "relation"   // < and <=, > and >=, == and != stand for each other
	Arithmetic Kind = "arithmetic" // + and - stand for each other, also in += and ++
	Logic      Kind = "logic"      // && and || stand for each other
	Negate     Kind = "negate"     // the condition of an if is its opposite
	MinMax     Kind = "minmax"     // min and max stand for each other
	Drop       Kind = "drop"       // a statement is left out
	Constant   Kind = "constant"   // an integer is one more or one less
	Boolean    Kind = "boolean"    // true and false stand for each other
	Element    Kind = "element"    // an element of a composite, a value of a case or a whole case is left out
	Named      Kind = "named"
)

// kinds lists the kinds that are drawn.
var kinds = []Kind{Relation, Arithmetic, Logic, Negate, MinMax, Drop, Constant, Boolean, Element}

// Mutant is a program that differs from the original by one edit.
type Mutant struct {
	Name   string // of a named mutant
	About  string // what a named mutant breaks
	Kind   Kind
	File   *source.File
	Within string // the declaration that holds the edit, such as `(*Engine).place`
	// Start and End are the bytes of the file that Text replaces.
	Start, End int
	Text       string
	Line       int
	// Old and New are the smallest pieces that show the edit, on one line.
	Old, New string
	Nth      int // among the mutants of the declaration with the same Old and New, from 1
}

// nothing stands for what has been left out.
const nothing = "{}"

// Key identifies a mutant wherever its declaration stands in the file.
func (m *Mutant) Key() string {
	kind := string(m.Kind)
	if m.Nth > 1 {
		kind = fmt.Sprintf("%s %d", m.Kind, m.Nth)
	}
	return strings.Join([]string{m.File.Name, m.Within, kind, m.Old + " => " + m.New}, separator)
}

// Folder is the folder of the mutant's package.
func (m *Mutant) Folder() string { return path.Dir(m.File.Name) }

// Source returns the file with the edit.
func (m *Mutant) Source() []byte {
	src := m.File.Source
	return slices.Concat(src[:m.Start], []byte(m.Text), src[m.End:])
}

// String shows the edit on one line.
func (m *Mutant) String() string { return m.Old + " → " + m.New }

// oneLine writes a piece of source without line breaks and comments, so that
// its place and its form do not matter.
func oneLine(src string) string { return strings.Join(strings.Fields(src), " ") }

// mutantsOf lists every mutant of a package, by kind and place.
func mutantsOf(fset *token.FileSet, p *source.Package) []*Mutant {
	var all []*Mutant
	for _, file := range p.Files {
		if file.IsTest() || ast.IsGenerated(file.Syntax) {
			continue
		}
		for _, decl := range file.Syntax.Decls {
			f := finder{fset: fset, info: p.Info, file: file, within: declarationName(decl)}
			ast.Inspect(decl, func(n ast.Node) bool {
				if n == nil {
					f.above = f.above[:len(f.above)-1]
					return true
				}
				down := f.find(n)
				if down {
					f.above = append(f.above, n)
				}
				return down
			})
			all = append(all, f.found...)
		}
	}
	number(all)
	return all
}

// number counts mutants that look the same.
func number(all []*Mutant) {
	seen := map[string]int{}
	for _, m := range all {
		m.Nth = 1
		key := m.Key()
		seen[key]++
		m.Nth = seen[key]
	}
}

// declarationName names a function as `Name` or `(*T).Name`, and other
// declarations by their first name.
func declarationName(decl ast.Decl) string {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil || len(d.Recv.List) == 0 {
			return d.Name.Name
		}
		receiver := types.ExprString(d.Recv.List[0].Type)
		if strings.HasPrefix(receiver, "*") {
			receiver = "(" + receiver + ")"
		}
		return receiver + "." + d.Name.Name
	case *ast.GenDecl:
		if len(d.Specs) > 0 {
			switch s := d.Specs[0].(type) {
			case *ast.ValueSpec:
				return s.Names[0].Name
			case *ast.TypeSpec:
				return s.Name.Name
			}
		}
	}
	return "-"
}

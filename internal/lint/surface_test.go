package lint

import (
	"fmt"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/source"
)

// surfaceFaults reports where the exported surface of a package names a type of
// an internal package, which no other module can name: in signatures, fields,
// methods, constraints, the types of variables and constants, and type arguments.
// An exported alias in a package that is not internal gives an internal type a
// name; it is followed to the exported fields and methods of that type. Internal
// packages, commands and tests are free.
func surfaceFaults(fset *token.FileSet, p *source.Package) []fault {
	if internal(p.Types) || p.Types.Name() == "main" {
		return nil
	}
	s := surface{fset: fset, p: p, seen: map[types.Type]bool{}, met: map[string]bool{}}
	scope := p.Types.Scope()
	for _, name := range scope.Names() {
		object := scope.Lookup(name)
		if !object.Exported() || fileOf(p, object.Pos()).IsTest() {
			continue
		}
		s.object, s.name = object, name
		if declared, ok := object.(*types.TypeName); ok {
			s.declaration(declared)
		} else {
			s.visit(object.Type())
		}
	}
	return s.faults
}

// internal tells whether a package is internal to some module.
func internal(p *types.Package) bool {
	return p != nil && slices.Contains(strings.Split(p.Path(), "/"), "internal")
}

// surface is the check of one package.
type surface struct {
	fset   *token.FileSet
	p      *source.Package
	object types.Object        // the exported object that is looked at
	name   string              // how a fault names what is looked at
	seen   map[types.Type]bool // declarations whose members were visited
	met    map[string]bool     // faults that were reported
	faults []fault
}

// declaration visits an exported type or alias, with its members.
func (s *surface) declaration(declared *types.TypeName) {
	if alias, ok := declared.Type().(*types.Alias); ok {
		s.parameters(alias.TypeParams())
		if named, ok := types.Unalias(alias).(*types.Named); ok {
			s.arguments(named.TypeArgs())
			if internal(named.Obj().Pkg()) || named.Obj().Pkg() == s.p.Types {
				s.members(named)
			}
			return
		}
		s.visit(alias.Rhs())
		return
	}
	if named, ok := declared.Type().(*types.Named); ok {
		s.parameters(named.TypeParams())
		s.members(named)
	}
}

// members visits what the fields and methods of a named type show.
func (s *surface) members(named *types.Named) {
	if s.seen[named.Origin()] {
		return
	}
	s.seen[named.Origin()] = true
	s.visit(named.Underlying())
	for method := range named.Methods() {
		if method.Exported() && !s.test(method) {
			s.at(method.Name(), func() { s.visit(method.Type()) })
		}
	}
}

// test tells whether a test declares an object of the package.
func (s *surface) test(o types.Object) bool {
	return o.Pkg() == s.p.Types && fileOf(s.p, o.Pos()).IsTest()
}

// at looks at a member of what is looked at.
func (s *surface) at(member string, look func()) {
	whole := s.name
	s.name += "." + member
	look()
	s.name = whole
}

func (s *surface) parameters(list *types.TypeParamList) {
	for p := range list.TypeParams() {
		s.visit(p.Constraint())
	}
}

func (s *surface) arguments(list *types.TypeList) {
	for t := range list.Types() {
		s.visit(t)
	}
}

// visit reports the internal types that a type names.
func (s *surface) visit(t types.Type) {
	switch t := t.(type) {
	case *types.Alias:
		s.arguments(t.TypeArgs())
		if t.Obj().Exported() && !internal(t.Obj().Pkg()) {
			return // a name that others can use
		}
		if internal(t.Obj().Pkg()) {
			s.report(t.Obj())
			return
		}
		s.visit(t.Rhs())
	case *types.Named:
		s.arguments(t.TypeArgs())
		switch {
		case internal(t.Obj().Pkg()):
			s.report(t.Obj())
		case t.Obj().Pkg() == s.p.Types && !t.Obj().Exported():
			s.members(t) // what a type without an exported name shows is in reach
		}
	case *types.Pointer:
		s.visit(t.Elem())
	case *types.Slice:
		s.visit(t.Elem())
	case *types.Array:
		s.visit(t.Elem())
	case *types.Chan:
		s.visit(t.Elem())
	case *types.Map:
		s.visit(t.Key())
		s.visit(t.Elem())
	case *types.Signature:
		s.parameters(t.TypeParams())
		s.visit(t.Params())
		s.visit(t.Results())
	case *types.Tuple:
		for v := range t.Variables() {
			s.visit(v.Type())
		}
	case *types.Struct:
		for field := range t.Fields() {
			if field.Exported() || field.Embedded() {
				s.at(field.Name(), func() { s.visit(field.Type()) })
			}
		}
	case *types.Interface:
		for method := range t.ExplicitMethods() {
			if method.Exported() {
				s.at(method.Name(), func() { s.visit(method.Type()) })
			}
		}
		for e := range t.EmbeddedTypes() {
			s.visit(e)
		}
	case *types.Union:
		for term := range t.Terms() {
			s.visit(term.Type())
		}
	}
}

func (s *surface) report(named *types.TypeName) {
	text := fmt.Sprintf("the exported %s names %s.%s, of an internal package", s.name, named.Pkg().Path(), named.Name())
	if !s.met[text] {
		s.met[text] = true
		s.faults = append(s.faults, faultAt(s.fset, s.p, s.object.Pos(), s.object.Name(), "%s", text))
	}
}

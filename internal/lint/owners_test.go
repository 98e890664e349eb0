package lint

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

// owner says who alone changes the state of a room. Names of functions are like
// `Restore` and `(*State).Fold`, a receiver `(*ledger)` means all its methods,
// and a name that ends with .go all functions of a file.
type owner struct {
	room    string   // the package that declares the types
	types   []string // the struct types that make up the state
	writers []string // who may write their fields
	doors   []string // the writers that every function may call
	readers []string // methods of other types that state is kept in, which change no state but are not quiet
}

// ownerFaults reports functions outside the writers of a state that assign to a
// field of its types, or to what such a field holds, directly or through a
// variable that leads there; that call, on what a field holds, a method of
// another type that is neither quiet nor a reader; and that call a writer which
// does such things, unless it is a door. Values that a function has made itself are not
// yet state. Tests are free. What a function does with an address that it is
// given as an argument is not followed.
func ownerFaults(fset *token.FileSet, pkgs []*source.Package, q *quiet, o owner) []fault {
	c := ownership{owner: o, quiet: q, mutating: map[*types.Func]bool{}, closed: map[*types.Func]bool{}}
	var faults []fault
	for _, p := range pkgs {
		if p.Path == o.room {
			faults = c.declare(p)
		}
	}
	for _, p := range pkgs {
		for _, file := range p.Files {
			if file.IsTest() {
				continue
			}
			for fn := range functions(file.Syntax) {
				if p.Path == o.room && c.writer(file, fn) {
					continue
				}
				c.breaches(p.Info, fn, func(n ast.Node, format string, args ...any) {
					faults = append(faults, faultAt(fset, p, n.Pos(), functionName(fn), "%s %s", functionName(fn), fmt.Sprintf(format, args...)))
				})
			}
		}
	}
	return faults
}

// ownership is the check of one state.
type ownership struct {
	owner
	quiet    *quiet
	state    []types.Object       // the names of its types
	closed   map[*types.Func]bool // writers that are no door
	mutating map[*types.Func]bool // functions of the room that write the state, or call one that does
}

// declare looks up the names of the owner in its room and reports those that
// name nothing.
func (c *ownership) declare(p *source.Package) []fault {
	met := map[string]bool{}
	calls := map[*types.Func][]*types.Func{}
	for _, name := range c.types {
		if object, ok := p.Types.Scope().Lookup(name).(*types.TypeName); ok {
			c.state = append(c.state, object)
			met[name] = true
		}
	}
	for _, file := range p.Files {
		for fn := range functions(file.Syntax) {
			name, receiver := functionName(fn), receiverName(fn)
			met[name], met[receiver], met[path.Base(file.Name)] = true, true, true
			f := p.Info.Defs[fn.Name].(*types.Func)
			c.closed[f] = c.writer(file, fn) && !slices.Contains(c.doors, name)
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				if n == nil {
					return false
				}
				if g := called(p.Info, n); g != nil {
					calls[f] = append(calls[f], g.Origin())
				}
				return true
			})
			c.written(p.Info, fn, func(write, string) { c.mutating[f] = true })
		}
	}
	spread(calls, c.mutating)
	var faults []fault
	for _, name := range slices.Concat(c.types, c.writers, c.doors) {
		if !met[name] {
			faults = append(faults, fault{file: p.Path, text: "the table of owners names " + name + ", which is not there"})
		}
	}
	return faults
}

// receiverName returns the `(*T)` or `T` of a method.
func receiverName(fn *ast.FuncDecl) string {
	return strings.TrimSuffix(strings.TrimSuffix(functionName(fn), fn.Name.Name), ".")
}

func (c *ownership) writer(file *source.File, fn *ast.FuncDecl) bool {
	return slices.ContainsFunc(c.writers, func(w string) bool {
		return w == path.Base(file.Name) || w == functionName(fn) || w == receiverName(fn)
	})
}

// breaches reports what in a function only writers may do.
func (c *ownership) breaches(info *types.Info, fn *ast.FuncDecl, report func(ast.Node, string, ...any)) {
	c.written(info, fn, func(w write, field string) {
		report(w.by, "writes %s, the state's %s", types.ExprString(w.target), field)
	})
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		if f := called(info, n); f != nil && c.closed[f.Origin()] && c.mutating[f.Origin()] {
			report(n, "calls %s, which writes the state", f.Name())
		}
		return true
	})
}

// written calls found for every write of the state in a function.
func (c *ownership) written(info *types.Info, fn *ast.FuncDecl, found func(w write, field string)) {
	own, aliases := ownedBy(info, fn), c.aliases(info, fn)
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		if n == nil {
			return false
		}
		for _, w := range slices.Concat(writes(info, n), c.kept(info, n)) {
			if own(w) || w.address() && !w.through {
				continue
			}
			field := c.field(info, w.target)
			if p := placeOf(info, w.target); field == "" && (p.indirect > 0 || w.through) {
				field = aliases[p.root]
			}
			if field != "" {
				found(w, field)
			}
		}
		return true
	})
}

// kept returns the receiver of a method that may change what it keeps. Methods
// of the state's own types are judged by their bodies.
func (c *ownership) kept(info *types.Info, n ast.Node) []write {
	method, ok := n.(*ast.SelectorExpr)
	if !ok || info.Selections[method] == nil {
		return nil
	}
	f, ok := info.Selections[method].Obj().(*types.Func)
	if !ok || c.isState(info.TypeOf(method.X)) || c.quiet.function(f) || slices.Contains(c.readers, f.Name()) {
		return nil
	}
	return []write{{target: method.X, by: method, through: true}}
}

// aliases returns the variables of a function that lead to a place in the
// state, with the name of the field.
func (c *ownership) aliases(info *types.Info, fn *ast.FuncDecl) map[*types.Var]string {
	leads := map[*types.Var]string{}
	note := func(left, value ast.Expr) {
		id, ok := left.(*ast.Ident)
		if !ok || info.TypeOf(value) == nil { // of a type switch
			return
		}
		value = ast.Unparen(value)
		if unary, ok := value.(*ast.UnaryExpr); ok && unary.Op == token.AND {
			value = unary.X
		} else {
			switch info.TypeOf(value).Underlying().(type) {
			case *types.Slice, *types.Map, *types.Pointer:
			default:
				return // a copy
			}
		}
		v, field := variable(info, id), c.field(info, value)
		if field == "" {
			field = leads[placeOf(info, value).root]
		}
		if field != "" {
			leads[v] = field
		}
	}
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				if len(n.Lhs) == len(n.Rhs) {
					note(left, n.Rhs[i])
				}
			}
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if i < len(n.Values) {
					note(name, n.Values[i])
				}
			}
		}
		return true
	})
	return leads
}

// field names the last field of the state on the way to a place, or the type
// itself if it is written whole; "" if the place is not in the state.
func (c *ownership) field(info *types.Info, target ast.Expr) string {
	for e := ast.Unparen(target); ; {
		if star, ok := e.(*ast.StarExpr); ok && c.isState(info.TypeOf(e)) {
			return types.ExprString(star)
		}
		if selector, ok := e.(*ast.SelectorExpr); ok && info.Selections[selector] != nil && c.isState(info.TypeOf(selector.X)) {
			return selector.Sel.Name
		}
		switch link := e.(type) {
		case *ast.SelectorExpr:
			e = ast.Unparen(link.X)
		case *ast.IndexExpr:
			e = ast.Unparen(link.X)
		case *ast.SliceExpr:
			e = ast.Unparen(link.X)
		case *ast.StarExpr:
			e = ast.Unparen(link.X)
		default:
			return ""
		}
	}
}

// isState tells whether a type is one of the state's, or a pointer to one.
func (c *ownership) isState(t types.Type) bool {
	t = types.Unalias(t)
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = types.Unalias(p.Elem())
	}
	named, ok := t.(*types.Named)
	return ok && slices.Contains(c.state, types.Object(named.Origin().Obj()))
}

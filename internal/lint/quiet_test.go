package lint

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/berth-hpc/berth/internal/source"
)

// quiet tells which functions are quiet: they write nothing that their caller
// can see, so calls of them may come in any order. It proves less than is true:
// a function that calls an unknown function, or writes through a pointer that
// it was given, is not quiet.
type quiet struct {
	loud    map[*types.Func]bool     // functions of the packages that are not quiet
	bodies  map[*types.Func]bool     // all functions of the packages
	methods map[string][]*types.Func // of the packages' own types, by name
}

// quietPackages are packages of the standard library whose functions are
// quiet, but for those that change their first argument. Methods are not meant.
var quietPackages = []string{
	"bytes", "cmp", "errors", "fmt", "maps", "math", "math/bits", "slices", "sort", "strconv", "strings", "unicode", "unicode/utf8",
}

func newQuiet(pkgs []*source.Package) *quiet {
	q := &quiet{loud: map[*types.Func]bool{}, bodies: map[*types.Func]bool{}, methods: map[string][]*types.Func{}}
	decls := map[*types.Func]*ast.FuncDecl{}
	infos := map[*types.Func]*types.Info{}
	for _, p := range pkgs {
		for _, file := range p.Files {
			if file.IsTest() {
				continue
			}
			for fn := range functions(file.Syntax) {
				f := p.Info.Defs[fn.Name].(*types.Func)
				decls[f], infos[f], q.bodies[f] = fn, p.Info, true
				if fn.Recv != nil {
					q.methods[f.Name()] = append(q.methods[f.Name()], f)
				}
			}
		}
	}
	calls := map[*types.Func][]*types.Func{}
	for f, fn := range decls {
		own := ownedBy(infos[f], fn)
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			if n == nil {
				return false
			}
			for _, w := range writes(infos[f], n) {
				q.loud[f] = q.loud[f] || !w.address() && !own(w)
			}
			q.loud[f] = q.loud[f] || acts(infos[f], n, fn)
			if called := called(infos[f], n); called != nil {
				if known, quiet := q.outside(called); known {
					q.loud[f] = q.loud[f] || !quiet
				} else {
					calls[f] = append(calls[f], q.targets(called)...)
				}
			}
			return true
		})
	}
	spread(calls, q.loud)
	return q
}

// function tells whether a function is quiet. A method of an interface is, if
// every method of the module with this name is.
func (q *quiet) function(f *types.Func) bool {
	if known, quiet := q.outside(f); known {
		return quiet
	}
	return !slices.ContainsFunc(q.targets(f), func(f *types.Func) bool { return q.loud[f] })
}

// outside answers for functions whose bodies are not known.
func (q *quiet) outside(f *types.Func) (known, quiet bool) {
	if len(q.targets(f)) > 0 {
		return false, false
	}
	method := f.Signature().Recv() != nil
	return true, !method && f.Pkg() != nil && slices.Contains(quietPackages, f.Pkg().Path())
}

// targets returns the functions of the packages that a call of f may reach.
func (q *quiet) targets(f *types.Func) []*types.Func {
	f = f.Origin()
	if q.bodies[f] {
		return []*types.Func{f}
	}
	if receiver := f.Signature().Recv(); receiver != nil && types.IsInterface(receiver.Type()) {
		return q.methods[f.Name()]
	}
	return nil
}

// quietly tells whether a node, apart from what it writes and what is below it,
// is quiet for those outside of scope.
func (q *quiet) quietly(info *types.Info, n, scope ast.Node) bool {
	f := called(info, n)
	return !acts(info, n, scope) && (f == nil || q.function(f))
}

// called returns the function that an identifier denotes.
func called(info *types.Info, n ast.Node) *types.Func {
	if id, ok := n.(*ast.Ident); ok {
		f, _ := info.Uses[id].(*types.Func)
		return f
	}
	return nil
}

// acts tells whether a node has to do with another goroutine, prints, or uses a
// function that is a variable from outside of scope. One that comes as an
// argument was looked at where it was passed.
func acts(info *types.Info, n, scope ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt, *ast.DeferStmt, *ast.SendStmt, *ast.SelectStmt:
		return true
	case *ast.UnaryExpr:
		return n.Op == token.ARROW
	case *ast.Ident:
		switch object := info.Uses[n].(type) {
		case *types.Var:
			_, function := object.Type().Underlying().(*types.Signature)
			return function && !within(scope, object.Pos())
		case *types.Builtin:
			return slices.Contains([]string{"print", "println", "recover"}, object.Name())
		}
	}
	return false
}

// spread adds to a set of functions all that call one of the set.
func spread(calls map[*types.Func][]*types.Func, set map[*types.Func]bool) {
	for grown := true; grown; {
		grown = false
		for caller, called := range calls {
			if !set[caller] && slices.ContainsFunc(called, func(f *types.Func) bool { return set[f] }) {
				set[caller], grown = true, true
			}
		}
	}
}

// ownedBy returns a function that tells whether a write stays within a node's
// own memory: in a variable that is declared there, or in what the variable
// alone leads to because it was made there.
func ownedBy(info *types.Info, scope ast.Node) func(write) bool {
	fresh, borrowed := map[types.Object]bool{}, map[types.Object]bool{}
	note := func(left, value ast.Expr) {
		id, ok := left.(*ast.Ident)
		if !ok {
			return
		}
		object := info.ObjectOf(id)
		fresh[object] = true
		if value != nil && !makes(info, value) && !lengthens(info, object, value) {
			borrowed[object] = true
		}
	}
	ast.Inspect(scope, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				if len(n.Lhs) == len(n.Rhs) {
					note(left, n.Rhs[i])
				} else {
					note(left, n.Rhs[0])
				}
			}
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if i < len(n.Values) {
					note(name, n.Values[i])
				} else {
					note(name, nil)
				}
			}
		}
		return true
	})
	return func(w write) bool {
		p := placeOf(info, w.target)
		if p.root == nil || !within(scope, p.root.Pos()) {
			return w.through && makes(info, w.target)
		}
		if w.through {
			p.indirect++
		}
		return p.indirect == 0 || p.indirect == 1 && fresh[p.root] && !borrowed[p.root]
	}
}

// lengthens tells whether a value is append(v, ...) for the variable v.
func lengthens(info *types.Info, v types.Object, value ast.Expr) bool {
	call, ok := ast.Unparen(value).(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		return false
	}
	f, ok := callee(info, call).(*types.Builtin)
	id, named := ast.Unparen(call.Args[0]).(*ast.Ident)
	return ok && f.Name() == "append" && named && info.Uses[id] == v
}

// makes tells whether an expression makes new memory, or is nil.
func makes(info *types.Info, e ast.Expr) bool {
	if info.Types[e].IsNil() {
		return true
	}
	switch e := ast.Unparen(e).(type) {
	case *ast.CompositeLit:
		return true
	case *ast.UnaryExpr:
		return e.Op == token.AND && makes(info, e.X)
	case *ast.CallExpr:
		if info.Types[e.Fun].IsType() {
			return makes(info, e.Args[0])
		}
		switch f := callee(info, e).(type) {
		case *types.Builtin:
			return f.Name() == "make" || f.Name() == "new" || f.Name() == "append" && makes(info, e.Args[0])
		case *types.Func:
			return f.Pkg() != nil && slices.Contains([]string{"maps", "slices"}, f.Pkg().Path()) &&
				slices.Contains([]string{"Clone", "Collect", "Concat", "Repeat", "Sorted", "SortedFunc"}, f.Name())
		}
	}
	return false
}

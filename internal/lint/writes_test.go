package lint

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// write is one place of the source that may change what target denotes.
type write struct {
	target ast.Expr
	by     ast.Node    // the statement or the expression that writes
	op     token.Token // of an assignment: =, :=, += and so on, ++ and --; else ILLEGAL
	value  ast.Expr    // what is assigned, if it is one expression
	// through says that not the target itself changes but what it leads to: the
	// elements of a slice or a map.
	through bool
}

// at is the place of the write.
func (w write) at() token.Pos { return w.by.Pos() }

// address tells whether the write is no more than an address taken, with which
// others may write.
func (w write) address() bool {
	switch by := w.by.(type) {
	case *ast.UnaryExpr:
		return true
	case *ast.SelectorExpr:
		return by.X == w.target
	}
	return false
}

// writes lists what a node, but none below it, writes: the left sides of
// assignments, the variables of a range that declares none, what an append,
// delete, clear or copy changes, the argument that a function of the standard
// library changes in place, and what its address is taken of, by & or by the
// call of a method with a pointer receiver. What is written through a copy of a
// pointer, slice or map is seen as a write to the copy.
func writes(info *types.Info, n ast.Node) []write {
	switch n := n.(type) {
	case *ast.AssignStmt:
		var all []write
		for i, left := range n.Lhs {
			w := write{target: left, by: n, op: n.Tok}
			if len(n.Lhs) == len(n.Rhs) {
				w.value = n.Rhs[i]
			}
			all = append(all, w)
		}
		return slices.DeleteFunc(all, func(w write) bool { return blank(w.target) })
	case *ast.IncDecStmt:
		return []write{{target: n.X, by: n, op: n.Tok}}
	case *ast.RangeStmt:
		var all []write
		for _, left := range []ast.Expr{n.Key, n.Value} {
			if left != nil && !blank(left) && n.Tok == token.ASSIGN {
				all = append(all, write{target: left, by: n, op: n.Tok})
			}
		}
		return all
	case *ast.UnaryExpr:
		if _, literal := ast.Unparen(n.X).(*ast.CompositeLit); n.Op == token.AND && !literal {
			return []write{{target: n.X, by: n}}
		}
	case *ast.SelectorExpr:
		if s := info.Selections[n]; s != nil && s.Kind() == types.MethodVal && !pointer(s.Recv()) {
			if receiver := s.Obj().(*types.Func).Signature().Recv(); pointer(receiver.Type()) {
				return []write{{target: n.X, by: n}}
			}
		}
	case *ast.CallExpr:
		if len(n.Args) == 0 {
			return nil
		}
		switch f := callee(info, n).(type) {
		case *types.Builtin:
			if slices.Contains([]string{"append", "clear", "copy", "delete"}, f.Name()) {
				return []write{{target: n.Args[0], by: n, through: true}}
			}
		case *types.Func:
			if inPlace(f) {
				return []write{{target: n.Args[0], by: n, through: true}}
			}
		}
	}
	return nil
}

// changing lists the functions of the standard library that change their first
// argument.
var changing = map[string][]string{
	"slices": {"Compact", "CompactFunc", "Delete", "DeleteFunc", "Insert", "Replace", "Reverse", "Sort", "SortFunc", "SortStableFunc"},
	"sort":   {"Float64s", "Ints", "Slice", "SliceStable", "Sort", "Stable", "Strings"},
	"maps":   {"Copy", "DeleteFunc", "Insert"},
}

func inPlace(f *types.Func) bool {
	return f.Pkg() != nil && slices.Contains(changing[f.Pkg().Path()], f.Name())
}

// callee returns what a call calls by name: a function, a method, a builtin, a
// type, or a variable; nil if it has no name.
func callee(info *types.Info, call *ast.CallExpr) types.Object {
	fun := ast.Unparen(call.Fun)
	switch f := fun.(type) {
	case *ast.IndexExpr:
		fun = f.X
	case *ast.IndexListExpr:
		fun = f.X
	}
	switch f := fun.(type) {
	case *ast.Ident:
		return info.Uses[f]
	case *ast.SelectorExpr:
		return info.Uses[f.Sel]
	}
	return nil
}

// place is how an expression leads from a variable to a place in memory.
type place struct {
	root   *types.Var // nil if it begins with something else, such as a call
	fields []*types.Var
	// indirect counts the steps through a pointer, slice or map, after which a
	// write is seen through every copy of the variable.
	indirect int
}

// placeOf follows selectors, indexes, slices and stars down to a variable, which
// may be one of another package.
func placeOf(info *types.Info, e ast.Expr) place {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return place{root: variable(info, e)}
	case *ast.SelectorExpr:
		s := info.Selections[e]
		if s == nil {
			return place{root: variable(info, e.Sel)}
		}
		p := placeOf(info, e.X)
		if field, ok := s.Obj().(*types.Var); ok {
			p.fields = append(p.fields, field)
		}
		if s.Indirect() {
			p.indirect++
		}
		return p
	case *ast.IndexExpr:
		if tv := info.Types[e.X]; !tv.IsValue() {
			return place{} // a generic type or function
		}
		p := placeOf(info, e.X)
		if _, array := info.TypeOf(e.X).Underlying().(*types.Array); !array {
			p.indirect++
		}
		return p
	case *ast.SliceExpr:
		p := placeOf(info, e.X)
		p.indirect++
		return p
	case *ast.StarExpr:
		p := placeOf(info, e.X)
		p.indirect++
		return p
	case *ast.UnaryExpr:
		if e.Op == token.AND {
			return placeOf(info, e.X)
		}
	}
	return place{}
}

func variable(info *types.Info, id *ast.Ident) *types.Var {
	v, _ := info.ObjectOf(id).(*types.Var)
	return v
}

func pointer(t types.Type) bool {
	_, ok := t.Underlying().(*types.Pointer)
	return ok
}

func blank(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "_"
}

// within tells whether a node encloses a position.
func within(n ast.Node, at token.Pos) bool { return n.Pos() <= at && at < n.End() }

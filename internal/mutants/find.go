package main

import (
	"bytes"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"

	"github.com/berth-hpc/berth/internal/source"
)

// finder collects the mutants of a declaration.
type finder struct {
	fset   *token.FileSet
	info   *types.Info
	file   *source.File
	within string
	above  []ast.Node // from the declaration down to the present node's parent
	found  []*Mutant
}

// swapped is what stands for an operator in a mutant.
var swapped = map[token.Token]struct {
	by   token.Token
	kind Kind
}{
	token.LSS: {token.LEQ, Relation}, token.LEQ: {token.LSS, Relation},
	token.GTR: {token.GEQ, Relation}, token.GEQ: {token.GTR, Relation},
	token.EQL: {token.NEQ, Relation}, token.NEQ: {token.EQL, Relation},
	token.ADD: {token.SUB, Arithmetic}, token.SUB: {token.ADD, Arithmetic},
	token.ADD_ASSIGN: {token.SUB_ASSIGN, Arithmetic}, token.SUB_ASSIGN: {token.ADD_ASSIGN, Arithmetic},
	token.INC: {token.DEC, Arithmetic}, token.DEC: {token.INC, Arithmetic},
	token.LAND: {token.LOR, Logic}, token.LOR: {token.LAND, Logic},
}

// find adds the mutants that change a node itself, and tells whether to look
// below it.
func (f *finder) find(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ImportSpec, *ast.Field, *ast.TypeSpec: // nothing of theirs runs
		return false
	case *ast.BinaryExpr:
		f.operator(n, n.OpPos, n.Op, n.X)
	case *ast.AssignStmt:
		f.operator(n, n.TokPos, n.Tok, n.Lhs[0])
		if n.Tok != token.DEFINE {
			f.drop(n)
		}
	case *ast.IncDecStmt:
		f.operator(n, n.TokPos, n.Tok, n.X)
		f.drop(n)
	case *ast.ExprStmt:
		// A panic is where the program contradicts itself, which no test reaches.
		if call, ok := n.X.(*ast.CallExpr); ok && f.builtin(call) != "panic" {
			f.drop(n)
		}
	case *ast.BranchStmt:
		if n.Tok == token.BREAK || n.Tok == token.CONTINUE {
			f.drop(n)
		}
	case *ast.ReturnStmt:
		if f.guarded() {
			f.drop(n)
		}
	case *ast.IfStmt:
		f.negate(n)
	case *ast.CallExpr:
		f.call(n)
	case *ast.BasicLit:
		f.constant(n)
	case *ast.Ident:
		f.boolean(n)
	case *ast.CompositeLit:
		f.elements(Element, n, n.Elts)
	case *ast.CaseClause:
		f.clause(n)
	}
	return true
}

func (f *finder) offset(at token.Pos) int { return f.fset.Position(at).Offset }

func (f *finder) text(from, to token.Pos) string {
	return string(f.file.Source[f.offset(from):f.offset(to)])
}

// add adds a mutant that replaces what is between two positions. shown is the
// node that shows the edit, in which the same is replaced.
func (f *finder) add(kind Kind, from, to token.Pos, text string, shown ast.Node) {
	m := &Mutant{
		Kind: kind, File: f.file, Within: f.within, Start: f.offset(from), End: f.offset(to), Text: text,
		Line: f.fset.Position(from).Line,
		Old:  oneLine(f.text(shown.Pos(), shown.End())),
		New:  oneLine(f.text(shown.Pos(), from) + text + f.text(to, shown.End())),
	}
	f.found = append(f.found, m)
}

// operator swaps an operator. x is an operand, whose type tells whether + adds.
func (f *finder) operator(n ast.Node, at token.Pos, op token.Token, x ast.Expr) {
	swap, ok := swapped[op]
	if !ok || f.value(n) {
		return
	}
	if swap.kind == Arithmetic {
		basic, ok := f.info.TypeOf(x).Underlying().(*types.Basic)
		if !ok || basic.Info()&types.IsNumeric == 0 || f.capacity(n) {
			return
		}
	}
	f.add(swap.kind, at, at+token.Pos(len(op.String())), swap.by.String(), n)
}

// value tells whether an expression is a constant. Its parts are mutated by
// Constant only, since the same value may come about in many ways.
func (f *finder) value(n ast.Node) bool {
	e, ok := n.(ast.Expr)
	return ok && f.info.Types[e].Value != nil
}

// drop replaces a statement by an empty block.
func (f *finder) drop(n ast.Stmt) {
	if len(f.above) > 0 {
		switch parent := f.above[len(f.above)-1].(type) {
		case *ast.BlockStmt, *ast.CaseClause:
		case *ast.LabeledStmt:
			return
		case *ast.IfStmt:
			if parent.Init == n {
				return // a condition follows
			}
		default:
			return // of a for, a switch or a select
		}
	}
	f.add(Drop, n.Pos(), n.End(), nothing, n)
}

// guarded tells whether the present return is within an if, a case or a loop, so
// that the function may go on without it.
func (f *finder) guarded() bool {
	for _, n := range slices.Backward(f.above) {
		switch n.(type) {
		case *ast.IfStmt, *ast.CaseClause, *ast.ForStmt, *ast.RangeStmt:
			return true
		case *ast.FuncDecl, *ast.FuncLit:
			return false
		}
	}
	return false
}

// negate turns the condition of an if into its opposite, where no other kind
// does so.
func (f *finder) negate(n *ast.IfStmt) {
	switch cond := ast.Unparen(n.Cond).(type) {
	case *ast.BinaryExpr:
		if cond.Op == token.EQL || cond.Op == token.NEQ {
			return // a mutant of kind Relation
		}
	case *ast.UnaryExpr:
		if cond.Op == token.NOT {
			f.add(Negate, n.Cond.Pos(), n.Cond.End(), f.text(cond.X.Pos(), cond.X.End()), n.Cond)
			return
		}
	case *ast.Ident:
		if f.value(cond) {
			return // a mutant of kind Boolean
		}
	}
	f.add(Negate, n.Cond.Pos(), n.Cond.End(), "!("+f.text(n.Cond.Pos(), n.Cond.End())+")", n.Cond)
}

// call swaps min and max.
func (f *finder) call(n *ast.CallExpr) {
	if f.value(n) {
		return
	}
	switch name := f.builtin(n); name {
	case "min":
		f.add(MinMax, n.Fun.Pos(), n.Fun.End(), "max", n)
	case "max":
		f.add(MinMax, n.Fun.Pos(), n.Fun.End(), "min", n)
	}
}

// builtin returns the name of the builtin function that is called, and "".
func (f *finder) builtin(n *ast.CallExpr) string {
	if id, ok := n.Fun.(*ast.Ident); ok {
		if b, ok := f.info.Uses[id].(*types.Builtin); ok {
			return b.Name()
		}
	}
	return ""
}

// constant makes an integer one more and one less.
func (f *finder) constant(n *ast.BasicLit) {
	value, err := strconv.ParseInt(n.Value, 0, 64)
	if n.Kind != token.INT || err != nil || f.capacity(n) {
		return
	}
	shown := f.shown(n)
	for _, v := range []int64{value + 1, value - 1} {
		text := strconv.FormatInt(v, 10)
		if v < 0 {
			text = "(" + text + ")" // x - -1 and x--1 differ
		}
		f.add(Constant, n.Pos(), n.End(), text, shown)
	}
}

// boolean swaps true and false.
func (f *finder) boolean(n *ast.Ident) {
	if object := f.info.Uses[n]; object == types.Universe.Lookup("true") {
		f.add(Boolean, n.Pos(), n.End(), "false", f.shown(n))
	} else if object == types.Universe.Lookup("false") {
		f.add(Boolean, n.Pos(), n.End(), "true", f.shown(n))
	}
}

// shown returns the node that shows an edit of a small expression: its parent,
// if that is on one line too.
func (f *finder) shown(n ast.Node) ast.Node {
	if len(f.above) == 0 {
		return n
	}
	parent := f.above[len(f.above)-1]
	if _, body := parent.(*ast.CaseClause); body {
		return n
	}
	if f.fset.Position(parent.Pos()).Line != f.fset.Position(parent.End()).Line {
		return n
	}
	return parent
}

// capacity tells whether a node is within a size that make is given, which is
// only a hint: the third argument, or the second for a map.
func (f *finder) capacity(n ast.Node) bool {
	for _, above := range slices.Backward(f.above) {
		switch above := above.(type) {
		case *ast.CallExpr:
			if f.builtin(above) != "make" {
				continue
			}
			hint := 2
			if _, isMap := f.info.TypeOf(above.Args[0]).Underlying().(*types.Map); isMap {
				hint = 1
			}
			return len(above.Args) > hint && above.Args[hint].Pos() <= n.Pos()
		case ast.Stmt:
			return false
		}
	}
	return false
}

// elements leaves out each expression of a list in turn, with its comma.
func (f *finder) elements(kind Kind, of ast.Node, list []ast.Expr) {
	for i, e := range list {
		from, to := e.Pos(), e.End()
		switch {
		case i+1 < len(list):
			to = list[i+1].Pos()
		case i > 0:
			from = list[i-1].End()
		default:
			rest := f.file.Source[f.offset(to):]
			if trimmed := bytes.TrimLeft(rest, " \t\r\n"); bytes.HasPrefix(trimmed, []byte(",")) {
				to += token.Pos(len(rest) - len(trimmed) + 1)
			}
		}
		m := len(f.found)
		f.add(kind, from, to, "", of)
		f.found[m].Line = f.fset.Position(e.Pos()).Line
		f.found[m].Old, f.found[m].New = oneLine(f.text(e.Pos(), e.End())), nothing
	}
}

// clause leaves out a value of a case, or a case that has only one.
func (f *finder) clause(n *ast.CaseClause) {
	switch {
	case len(n.List) > 1:
		f.elements(Element, n, n.List)
	case len(n.List) == 1:
		f.add(Element, n.Pos(), n.End(), "", n)
		last := f.found[len(f.found)-1]
		last.Old, last.New = oneLine(f.text(n.Pos(), n.Colon))+": ...", nothing
	}
}

package lint

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/source"
)

// orderFaults reports iterations over maps that let the order of the map reach
// a result. An iteration is free of it if every turn does only what can be done
// in any order:
//
//   - add to an integer, or take the minimum, the maximum, the disjunction or
//     the conjunction (`least = min(least, v)`), and read it nowhere else;
//   - write or delete the element of a map at the loop's own key, or a field of
//     the loop's own value;
//   - set a variable to one constant, and in such a loop alone break off or
//     return constants;
//   - append to one slice that is sorted before anything else uses it.
//
// Whatever else a turn calls must be quiet. The sequences of package maps are
// iterations too; they may also be sorted or made a map at once. That the order
// of a sort is total cannot be seen here.
func orderFaults(fset *token.FileSet, p *source.Package, q *quiet) []fault {
	var faults []fault
	for _, file := range p.Files {
		if file.IsTest() {
			continue
		}
		var above []ast.Node // from the file down to the node
		ast.Inspect(file.Syntax, func(n ast.Node) bool {
			if n == nil {
				above = above[:len(above)-1]
				return true
			}
			above = append(above, n)
			c := iteration{info: p.Info, quiet: q, above: above}
			c.fault = func(at ast.Node, format string, args ...any) {
				faults = append(faults, faultAt(fset, p, at.Pos(), enclosing(above), "the order of a map matters: "+format, args...))
			}
			switch n := n.(type) {
			case *ast.RangeStmt:
				c.statement(n)
			case *ast.CallExpr:
				c.sequence(n)
			}
			return true
		})
	}
	return faults
}

// enclosing names the innermost function declaration around a node.
func enclosing(above []ast.Node) string {
	for _, n := range slices.Backward(above) {
		if fn, ok := n.(*ast.FuncDecl); ok {
			return functionName(fn)
		}
	}
	return "a variable"
}

// iteration is the check of one iteration over a map.
type iteration struct {
	info  *types.Info
	quiet *quiet
	above []ast.Node
	fault func(at ast.Node, format string, args ...any)

	loop       *ast.RangeStmt
	key, value types.Object // the loop's own; nil if it has none
	sums       []sum
}

// sum is a place that turns of the loop change in ways that commute.
type sum struct {
	target string
	root   types.Object
	by     ast.Node       // the one statement that may read it
	fixed  constant.Value // if it is set to a constant
	list   bool           // if it is a slice that grows
	keyed  bool           // if it is a map that changes at the loop's own key
}

// sequences are the functions of package maps that iterate.
var sequences = []string{"All", "Keys", "Values"}

// sequenceOf returns the name of the function of package maps that an
// expression calls to iterate, and "".
func sequenceOf(info *types.Info, e ast.Expr) string {
	if call, ok := ast.Unparen(e).(*ast.CallExpr); ok {
		if f, ok := callee(info, call).(*types.Func); ok && f.Pkg() != nil && f.Pkg().Path() == "maps" && slices.Contains(sequences, f.Name()) {
			return f.Name()
		}
	}
	return ""
}

// isMap tells whether a value is a map, or of a type parameter that may be one.
func isMap(t types.Type) bool {
	if p, ok := types.Unalias(t).(*types.TypeParam); ok {
		constraint := p.Constraint().Underlying().(*types.Interface)
		for embedded := range constraint.EmbeddedTypes() {
			union, ok := embedded.(*types.Union)
			if !ok {
				if isMap(embedded) {
					return true
				}
				continue
			}
			for term := range union.Terms() {
				if isMap(term.Type()) {
					return true
				}
			}
		}
		return false
	}
	_, ok := t.Underlying().(*types.Map)
	return ok
}

// sequence checks a call that iterates over a map by package maps.
func (c *iteration) sequence(call *ast.CallExpr) {
	name := sequenceOf(c.info, call)
	if name == "" {
		return
	}
	switch parent := c.above[len(c.above)-2].(type) {
	case *ast.RangeStmt:
		return // the statement is checked
	case *ast.CallExpr:
		f, ok := callee(c.info, parent).(*types.Func)
		if !ok || f.Pkg() == nil {
			break
		}
		switch f.Pkg().Path() + "." + f.Name() {
		case "slices.Sorted", "slices.SortedFunc", "maps.Collect", "maps.Insert":
			return
		case "slices.Collect", "slices.AppendSeq":
			if assign, ok := c.above[len(c.above)-3].(*ast.AssignStmt); ok && len(assign.Lhs) == 1 {
				c.sorted(assign.Lhs[0], assign)
				return
			}
		}
	}
	c.fault(call, "maps.%s is neither sorted nor ranged over", name)
}

// statement checks a range statement if it is over a map.
func (c *iteration) statement(loop *ast.RangeStmt) {
	of := sequenceOf(c.info, loop.X)
	if of == "" && !isMap(c.info.TypeOf(loop.X)) {
		return
	}
	c.loop = loop
	if loop.Tok == token.ASSIGN {
		c.fault(loop, "the loop's variables outlive it")
		return
	}
	c.key, c.value = c.declared(loop.Key), c.declared(loop.Value)
	if of == "Values" {
		c.key, c.value = nil, c.key
	}
	own := ownedBy(c.info, loop.Body)
	ast.Inspect(loop.Body, func(n ast.Node) bool {
		if n == nil {
			return false
		}
		if !c.quiet.quietly(c.info, n, loop.Body) {
			c.fault(n, "the loop calls %s, which may write", nodeName(n))
			return false
		}
		if assign, ok := n.(*ast.AssignStmt); ok && c.grows(assign) {
			return true // the append in it is no write of its own
		}
		for _, w := range writes(c.info, n) {
			if !w.address() && !own(w) && !c.appended(w) {
				c.write(w)
			}
		}
		return true
	})
	c.readings()
	c.exits()
	for _, s := range c.sums {
		if s.list {
			c.sorted(s.by.(*ast.AssignStmt).Lhs[0], loop)
		}
	}
}

func (c *iteration) declared(e ast.Expr) types.Object {
	if id, ok := e.(*ast.Ident); ok {
		return c.info.Defs[id]
	}
	return nil
}

func nodeName(n ast.Node) string {
	if id, ok := n.(*ast.Ident); ok {
		return id.Name
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", n), "*ast.")
}

// grows notes `s = append(s, ...)` of a slice that is not the loop's own.
func (c *iteration) grows(assign *ast.AssignStmt) bool {
	if len(assign.Lhs) != 1 || assign.Tok != token.ASSIGN {
		return false
	}
	call, ok := ast.Unparen(assign.Rhs[0]).(*ast.CallExpr)
	if !ok {
		return false
	}
	f, ok := callee(c.info, call).(*types.Builtin)
	target := types.ExprString(assign.Lhs[0])
	p := placeOf(c.info, assign.Lhs[0])
	if !ok || f.Name() != "append" || types.ExprString(call.Args[0]) != target || p.root == nil ||
		within(c.loop.Body, p.root.Pos()) || c.perElement(assign.Lhs[0]) || c.keyed(assign.Lhs[0]) {
		return false
	}
	c.sums = append(c.sums, sum{target: target, root: p.root, by: assign, list: true})
	return true
}

// appended tells whether a write is the append that a growing slice is made
// with, or one at the loop's own key.
func (c *iteration) appended(w write) bool {
	f, ok := w.by.(*ast.CallExpr)
	if !ok {
		return false
	}
	b, ok := callee(c.info, f).(*types.Builtin)
	return ok && b.Name() == "append" && (c.keyed(w.target) || slices.ContainsFunc(c.sums, func(s sum) bool { return s.list && within(s.by, f.Pos()) }))
}

// keyed tells whether an expression is the element of a map at the loop's key.
func (c *iteration) keyed(e ast.Expr) bool {
	at, ok := ast.Unparen(e).(*ast.IndexExpr)
	return ok && isMap(c.info.TypeOf(at.X)) && c.isKey(at.Index)
}

func (c *iteration) isKey(e ast.Expr) bool {
	id, ok := ast.Unparen(e).(*ast.Ident)
	return ok && c.key != nil && c.info.Uses[id] == c.key
}

// perElement tells whether a place is within the loop's own value, or what it
// points to.
func (c *iteration) perElement(e ast.Expr) bool {
	p := placeOf(c.info, e)
	return p.root != nil && p.root == c.value
}

// write checks a write to what is not the loop's own.
func (c *iteration) write(w write) {
	if c.perElement(w.target) {
		c.byKey(w, c.loop.X)
		return
	}
	if c.keyed(w.target) {
		c.byKey(w, ast.Unparen(w.target).(*ast.IndexExpr).X)
		return
	}
	if call, ok := w.by.(*ast.CallExpr); ok {
		f := callee(c.info, call)
		if f.Name() == "delete" && c.isKey(call.Args[1]) {
			c.byKey(w, w.target)
			return
		}
		c.fault(w.by, "%s changes %s", f.Name(), types.ExprString(w.target))
		return
	}
	basic, ok := c.info.TypeOf(w.target).Underlying().(*types.Basic)
	switch w.op {
	case token.INC, token.DEC, token.ADD_ASSIGN, token.SUB_ASSIGN, token.MUL_ASSIGN, token.OR_ASSIGN, token.AND_ASSIGN, token.XOR_ASSIGN:
		if ok && basic.Info()&types.IsInteger != 0 {
			c.note(w.target, w, nil)
			return
		}
	case token.ASSIGN:
		if w.value == nil {
			break
		}
		if fixed := c.info.Types[w.value].Value; fixed != nil {
			c.note(w.target, w, fixed)
			return
		}
		if c.folds(w) {
			c.note(w.target, w, nil)
			return
		}
	}
	c.fault(w.by, "the loop writes %s", types.ExprString(w.target))
}

// folds tells whether a write is x = min(x, ...), x = max(x, ...), x = x || ...
// or x = x && ....
func (c *iteration) folds(w write) bool {
	target := types.ExprString(w.target)
	switch value := ast.Unparen(w.value).(type) {
	case *ast.CallExpr:
		f, ok := callee(c.info, value).(*types.Builtin)
		return ok && (f.Name() == "min" || f.Name() == "max") &&
			slices.ContainsFunc(value.Args, func(a ast.Expr) bool { return types.ExprString(a) == target })
	case *ast.BinaryExpr:
		return (value.Op == token.LOR || value.Op == token.LAND) && types.ExprString(value.X) == target
	}
	return false
}

// byKey remembers a map whose element at the loop's own key changes in each turn.
func (c *iteration) byKey(w write, of ast.Expr) {
	c.sums = append(c.sums, sum{target: types.ExprString(of), root: placeOf(c.info, of).root, by: w.by, keyed: true})
}

// note remembers a place that several turns may change.
func (c *iteration) note(target ast.Expr, w write, fixed constant.Value) {
	s := sum{target: types.ExprString(target), by: w.by, fixed: fixed}
	if p := placeOf(c.info, target); p.root != nil {
		s.root = p.root
	}
	for _, other := range c.sums {
		if other.root == s.root && other.target == s.target && !same(other, s) {
			c.fault(w.by, "the loop changes %s in two ways", s.target)
		}
	}
	c.sums = append(c.sums, s)
	if define := c.alias(s.root); define != nil { // the statement that takes the address is the one that may read it
		to := ast.Unparen(define.Rhs[0]).(*ast.UnaryExpr).X
		c.sums = append(c.sums, sum{target: types.ExprString(to), root: placeOf(c.info, to).root, by: define})
	}
}

// alias returns the statement that declares a variable of the loop as the
// address of something else, and nil if there is none.
func (c *iteration) alias(v types.Object) (define *ast.AssignStmt) {
	ast.Inspect(c.loop.Body, func(n ast.Node) bool {
		if assign, ok := n.(*ast.AssignStmt); ok && assign.Tok == token.DEFINE && len(assign.Lhs) == 1 {
			unary, address := ast.Unparen(assign.Rhs[0]).(*ast.UnaryExpr)
			if id, ok := assign.Lhs[0].(*ast.Ident); ok && c.info.Defs[id] == v && address && unary.Op == token.AND {
				define = assign
			}
		}
		return true
	})
	return define
}

// same tells whether two changes of one place commute.
func same(a, b sum) bool {
	if a.fixed != nil || b.fixed != nil {
		return a.fixed != nil && b.fixed != nil && constant.Compare(a.fixed, token.EQL, b.fixed)
	}
	return operation(a.by) != "" && operation(a.by) == operation(b.by)
}

// operation names what a statement does to its left side, the same for all that
// commute with one another.
func operation(n ast.Node) string {
	switch n := n.(type) {
	case *ast.IncDecStmt:
		return "+"
	case *ast.AssignStmt:
		switch n.Tok {
		case token.ADD_ASSIGN, token.SUB_ASSIGN:
			return "+"
		case token.ASSIGN:
			switch value := ast.Unparen(n.Rhs[0]).(type) {
			case *ast.CallExpr:
				return types.ExprString(value.Fun)
			case *ast.BinaryExpr:
				return value.Op.String()
			}
		default:
			return n.Tok.String()
		}
	}
	return ""
}

// readings reports places that one turn changes and another reads.
func (c *iteration) readings() {
	chains(c.info, c.loop.Body, func(e ast.Expr, p place) bool {
		if id, ok := e.(*ast.Ident); ok && c.info.Defs[id] != nil {
			return true
		}
		text := types.ExprString(e)
		for _, s := range c.sums {
			if s.root == p.root && overlap(s.target, text) && (!s.keyed || !c.keyed(e)) &&
				!slices.ContainsFunc(c.sums, func(o sum) bool { return o.root == s.root && o.target == s.target && c.change(o, e) }) {
				c.fault(e, "the loop reads %s, which another turn has changed", text)
				break
			}
		}
		return true
	})
}

// chains calls visit for every longest chain of selectors and indexes within a
// node that begins with a variable, in the order of the source, until visit
// returns false.
func chains(info *types.Info, n ast.Node, visit func(ast.Expr, place) bool) {
	on := true
	ast.Inspect(n, func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		if !on || n == nil || !ok {
			return on
		}
		if unary, ok := e.(*ast.UnaryExpr); ok && unary.Op == token.AND {
			return true
		}
		p := placeOf(info, e)
		if p.root == nil {
			return true
		}
		on = visit(ast.Unparen(e), p)
		for on { // down the chain, for what is within its brackets
			switch link := ast.Unparen(e).(type) {
			case *ast.SelectorExpr:
				e = link.X
				continue
			case *ast.StarExpr:
				e = link.X
				continue
			case *ast.IndexExpr:
				chains(info, link.Index, func(e ast.Expr, p place) bool { on = visit(e, p); return on })
				e = link.X
				continue
			case *ast.SliceExpr:
				for _, bound := range []ast.Expr{link.Low, link.High, link.Max} {
					if bound != nil && on {
						chains(info, bound, func(e ast.Expr, p place) bool { on = visit(e, p); return on })
					}
				}
				e = link.X
				continue
			}
			break
		}
		return false
	})
}

// change tells whether an expression is the place itself in the statement that
// changes it: on the left, or as the operand that it is folded with.
func (c *iteration) change(s sum, e ast.Expr) bool {
	if !within(s.by, e.Pos()) || types.ExprString(e) != s.target {
		return false
	}
	assign, ok := s.by.(*ast.AssignStmt)
	if !ok || e == assign.Lhs[0] {
		return true
	}
	switch value := ast.Unparen(assign.Rhs[0]).(type) {
	case *ast.CallExpr:
		return (s.list || c.folds(write{target: assign.Lhs[0], value: value})) && slices.Contains(value.Args, e)
	case *ast.BinaryExpr:
		return value.X == e
	case *ast.UnaryExpr:
		return value.Op == token.AND && value.X == e
	}
	return false
}

// overlap tells whether of two chains of selectors one leads on from the other.
func overlap(a, b string) bool {
	longer, shorter := a, b
	if len(a) < len(b) {
		longer, shorter = b, a
	}
	rest, ok := strings.CutPrefix(longer, shorter)
	return ok && (rest == "" || strings.ContainsAny(rest[:1], ".[("))
}

// exits reports ways out of the loop that leave some elements unseen, unless
// all that the loop has done till then is to set constants.
func (c *iteration) exits() {
	only := true
	for _, s := range c.sums {
		only = only && s.fixed != nil
	}
	returned := ""
	var visit func(n ast.Node, breaks bool)
	visit = func(n ast.Node, breaks bool) {
		ast.Inspect(n, func(inner ast.Node) bool {
			switch inner := inner.(type) {
			case *ast.FuncLit:
				return false
			case *ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt:
				if inner != n {
					visit(inner, false)
					return false
				}
			case *ast.BranchStmt:
				leaves := inner.Tok == token.GOTO || inner.Label != nil || inner.Tok == token.BREAK && breaks
				if leaves && !only {
					c.fault(inner, "the loop ends early, after a part of its turns")
				}
			case *ast.ReturnStmt:
				if text := c.constants(inner); text == "" || !only || returned != "" && returned != text {
					c.fault(inner, "the loop returns from one of its turns")
				} else {
					returned = text
				}
			}
			return true
		})
	}
	visit(c.loop.Body, true)
}

// constants writes the results of a return, if all are constants or nil.
func (c *iteration) constants(r *ast.ReturnStmt) string {
	text := "return"
	for _, result := range r.Results {
		if tv := c.info.Types[result]; tv.Value == nil && !tv.IsNil() {
			return ""
		}
		text += " " + types.ExprString(result)
	}
	return text
}

// sortFunctions are the functions after which a slice has one order.
var sortFunctions = []string{"slices.Sort", "slices.SortFunc", "sort.Float64s", "sort.Ints", "sort.Slice", "sort.Sort", "sort.Strings"}

// sorted reports a slice of elements of a map that is used before it is sorted,
// or never sorted, in the rest of the function after a node.
func (c *iteration) sorted(target ast.Expr, after ast.Node) {
	p, text := placeOf(c.info, target), types.ExprString(target)
	passed := map[ast.Expr]bool{} // uses that leave the order as it is
	sorts := map[ast.Expr]bool{}
	ast.Inspect(c.function(), func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && len(call.Args) > 0 {
			switch f := callee(c.info, call).(type) {
			case *types.Builtin:
				passed[ast.Unparen(call.Args[0])] = f.Name() == "len" || f.Name() == "cap"
			case *types.Func:
				sorts[ast.Unparen(call.Args[0])] = f.Pkg() != nil && slices.Contains(sortFunctions, f.Pkg().Path()+"."+f.Name())
			}
		}
		return true
	})
	sorted := false
	chains(c.info, c.function(), func(e ast.Expr, q place) bool {
		if e.Pos() < after.End() || q.root != p.root || !overlap(text, types.ExprString(e)) || passed[e] {
			return true
		}
		sorted = sorts[e] && types.ExprString(e) == text
		return false
	})
	if !sorted {
		c.fault(after, "%s is not sorted before it is used", text)
	}
}

// function returns the body of the innermost function around the iteration.
func (c *iteration) function() ast.Node {
	for _, n := range slices.Backward(c.above) {
		switch n.(type) {
		case *ast.FuncDecl, *ast.FuncLit:
			return n
		}
	}
	return c.above[0]
}

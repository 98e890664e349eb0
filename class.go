package berth

import (
	"iter"
	"slices"
	"strings"
)

// Class is PEs of a pool that are made alike, such as the nodes of one generation in a
// partition of three. A request uses any of them unless it requires what only some have.
type Class struct {
	Name string `json:"name"`
	PEs  PESet  `json:"pes"`
	Node Node   `json:"node,omitzero"`
	// Features are what a constraint may ask for beside the name of the class.
	Features []string `json:"features,omitempty"`
}

// Has reports whether the class has a feature; its own name is one.
func (c *Class) Has(feature string) bool {
	return c.Name == feature || slices.Contains(c.Features, feature)
}

// Constraint is an expression over features: names, & for and, | for or, and
// parentheses, without which & and | are not mixed. As a whole it may be a list of
// alternatives in brackets, [a|b|c]: all PEs meet the same one.
type Constraint struct {
	alternatives []features
}

// features is a name, or all or any of some expressions.
type features struct {
	name string
	any  bool // else all
	of   []features
}

// maxConstraint bounds the length of a constraint in bytes.
const maxConstraint = 4096

// WantConstraint says what a constraint is, for messages.
const WantConstraint = "names of features with & and |, and parentheses where both stand, such as intel&(ib|opa), or alternatives such as [rack1|rack2]"

// ParseConstraint reads a constraint. Errors are of code Invalid and name the field.
// Cost: its length.
func ParseConstraint(text string) (Constraint, error) {
	p := constraintParser{rest: text}
	var c Constraint
	ok := len(text) <= maxConstraint
	if inner, bracketed := strings.CutPrefix(text, "["); bracketed {
		if inner, bracketed = strings.CutSuffix(inner, "]"); !bracketed {
			ok = false
		}
		p.rest = inner
		e, more := p.expression(0)
		ok = ok && more && p.rest == ""
		if c.alternatives = []features{e}; e.any {
			c.alternatives = e.of
		}
	} else {
		e, more := p.expression(0)
		ok = ok && more && p.rest == ""
		c.alternatives = []features{e}
	}
	if !ok {
		return Constraint{}, Errorf(Invalid, "constraint", "%.80q; want %s", text, WantConstraint)
	}
	return c, nil
}

// Alternatives returns how many ways there are to meet the constraint; one of them has
// to be kept to: 1 unless it has brackets.
func (c *Constraint) Alternatives() int { return max(1, len(c.alternatives)) }

// Met reports whether what has these features meets an alternative. Everything meets the
// zero constraint.
func (c *Constraint) Met(alternative int, has func(feature string) bool) bool {
	return len(c.alternatives) == 0 || c.alternatives[alternative].met(has)
}

func (e *features) met(has func(string) bool) bool {
	if e.name != "" {
		return has(e.name)
	}
	for i := range e.of {
		if e.of[i].met(has) == e.any {
			return e.any
		}
	}
	return !e.any
}

type constraintParser struct{ rest string }

// deepest bounds how deep parentheses stand in each other.
const deepest = 32

// expression reads terms with one kind of operator between them.
func (p *constraintParser) expression(depth int) (features, bool) {
	first, ok := p.term(depth)
	if !ok || p.rest == "" || p.rest[0] != '&' && p.rest[0] != '|' {
		return first, ok
	}
	operator := p.rest[0]
	e := features{any: operator == '|', of: []features{first}}
	for p.rest != "" && p.rest[0] == operator {
		p.rest = p.rest[1:]
		next, ok := p.term(depth)
		if !ok {
			return e, false
		}
		e.of = append(e.of, next)
	}
	return e, true
}

// term reads a name, or an expression in parentheses.
func (p *constraintParser) term(depth int) (features, bool) {
	if inner, opened := strings.CutPrefix(p.rest, "("); opened {
		if depth == deepest {
			return features{}, false
		}
		p.rest = inner
		e, ok := p.expression(depth + 1)
		rest, closed := strings.CutPrefix(p.rest, ")")
		p.rest = rest
		return e, ok && closed
	}
	n := 0
	for n < len(p.rest) && featureByte(p.rest[n]) {
		n++
	}
	e := features{name: p.rest[:n]}
	p.rest = p.rest[n:]
	return e, n > 0
}

func featureByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._-:=+@%/", c) >= 0 || c >= 0x80
}

// meets reports whether a PE of what has this node and these features has what a request
// requires of hardware and, by an alternative, of features. What is unknown of a node is
// not checked, except accelerators: a node without the entry has 0.
func (n *Node) meets(r *Requirements) bool {
	return (n.MemoryMB == 0 || r.MemoryMB <= n.MemoryMB) && r.Accelerators <= n.Accelerators
}

// Suits reports whether a PE of the class has the hardware that is required.
func (c *Class) Suits(r *Requirements) bool { return c.Node.meets(r) }

// Nodes returns what PEs of the pool are made of, for each class.
func (p *Pool) Nodes() iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		if len(p.Classes) == 0 {
			yield(&p.Node)
		}
		for i := range p.Classes {
			if !yield(&p.Classes[i].Node) {
				return
			}
		}
	}
}

// Suits reports whether some PE of the pool has the hardware that is required.
func (p *Pool) Suits(r *Requirements) bool {
	if len(p.Classes) == 0 {
		return p.Node.meets(r)
	}
	return slices.ContainsFunc(p.Classes, func(c Class) bool { return c.Suits(r) })
}

// Has reports whether all PEs of a pool without classes have a feature; its own name is
// one.
func (p *Pool) Has(feature string) bool {
	return p.Name == feature || slices.Contains(p.Features, feature)
}

// CheckClasses reports what cannot be right with the classes of a pool, as an error of
// code Invalid: each PE is of exactly one, and they have names of their own. Cost: their
// PE sets.
func (p *Pool) CheckClasses() *Error {
	if len(p.Classes) == 0 {
		return nil
	}
	if p.Binding == Late {
		return Errorf(Invalid, "classes", "%d of pool %q, which binds late; PEs of several classes need early binding, or a pool for each class", len(p.Classes), p.Name)
	}
	var all PESet
	names := map[string]bool{}
	for i := range p.Classes {
		c := &p.Classes[i]
		switch {
		case c.Name == "" || names[c.Name]:
			return Errorf(Invalid, "classes", "%q of pool %q; each class needs a name of its own", c.Name, p.Name)
		case c.PEs.Empty() || c.PEs.Max() >= PE(p.PEs):
			return Errorf(Invalid, "classes", "%q has PEs %v; pool %q has PEs 0 to %d", c.Name, c.PEs, p.Name, p.PEs-1)
		case all.Overlap(c.PEs) > 0:
			return Errorf(Invalid, "classes", "%q has PEs %v, which are of another class too; want each PE of pool %q in one", c.Name, all.And(c.PEs), p.Name)
		case p.Node.AcceleratorSpeed == 0 && c.Node.AcceleratorSpeed != 0:
			return Errorf(Invalid, "accelerator_speed", "%d of class %q of pool %q; what runs in a pool is equally fast everywhere, so give it for the pool", c.Node.AcceleratorSpeed, c.Name, p.Name)
		}
		names[c.Name], all = true, all.Or(c.PEs)
	}
	if all.Count() != p.PEs {
		return Errorf(Invalid, "classes", "%d of the %d PEs of pool %q; want each PE in one class", all.Count(), p.PEs, p.Name)
	}
	return nil
}

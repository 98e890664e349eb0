package browser

import (
	"fmt"
	"slices"
	"strings"
)

// spoken is a node of the accessibility tree, which is what screen readers read.
type spoken struct {
	NodeID   string
	Ignored  bool
	Role     struct{ Value string }
	Name     struct{ Value string }
	Value    struct{ Value any }
	ChildIDs []string
	ParentID string

	Description struct{ Value string }
	Properties  []struct {
		Name  string
		Value struct{ Value any }
	}
}

func (p *Page) spoken() []spoken {
	p.t.Helper()
	p.must("Accessibility.enable", nil, nil)
	var tree struct{ Nodes []spoken }
	p.must("Accessibility.getFullAXTree", nil, &tree)
	return tree.Nodes
}

func (n *spoken) is(property string) bool {
	for _, q := range n.Properties {
		if q.Name == property {
			return q.Value.Value == true || q.Value.Value == "true"
		}
	}
	return false
}

// String is what is said about the node: role, name, value, description, state.
func (n *spoken) String() string {
	var text strings.Builder
	text.WriteString(n.Role.Value)
	if n.Name.Value != "" {
		fmt.Fprintf(&text, " %q", n.Name.Value)
	}
	if n.Value.Value != nil && n.Value.Value != "" {
		fmt.Fprintf(&text, " = %q", fmt.Sprint(n.Value.Value))
	}
	if n.Description.Value != "" {
		fmt.Fprintf(&text, " (%s)", n.Description.Value)
	}
	for _, state := range []string{"invalid", "disabled", "busy", "checked", "expanded", "pressed"} {
		if n.is(state) {
			text.WriteString(", " + state)
		}
	}
	return text.String()
}

// Focused returns what a screen reader says of what has the focus.
func (p *Page) Focused() string {
	p.t.Helper()
	found := "nothing"
	nodes := p.spoken()
	for i := range nodes {
		if nodes[i].is("focused") && nodes[i].Role.Value != "RootWebArea" {
			found = nodes[i].String()
		}
	}
	return found
}

// silent are roles that are read over; what is in them is not.
var silent = []string{"none", "generic", "InlineTextBox", "paragraph", "LineBreak", "ListMarker", "strong", "code", "presentation", "SvgRoot", "LabelText"}

// silent reports whether a node is read over. A form without a name is no landmark; what role it has differs between
// versions of the browser.
func (n *spoken) silent() bool {
	return slices.Contains(silent, n.Role.Value) || n.Role.Value == "form" && n.Name.Value == ""
}

// Tree returns the accessibility tree below the nodes of a role, a line for each node,
// indented.
func (p *Page) Tree(role string) []string {
	p.t.Helper()
	nodes := map[string]*spoken{}
	list := p.spoken()
	for i := range list {
		nodes[list[i].NodeID] = &list[i]
	}
	var lines []string
	said := "" // whose text is in the last line
	var walk func(n *spoken, depth int, above string)
	walk = func(n *spoken, depth int, above string) {
		name := n.Name.Value
		known := n.Role.Value == "StaticText" && strings.Contains(above, strings.TrimSpace(name)) // as the name of what it is in
		if !n.Ignored && !known && !n.silent() {
			indent := strings.Repeat("  ", depth)
			if n.Role.Value != "StaticText" {
				lines = append(lines, indent+n.String())
				depth, above = depth+1, fmt.Sprint(name, " ", n.Value.Value)
				said = ""
			} else if n.ParentID == said {
				last := len(lines) - 1
				lines[last] = strings.TrimSuffix(lines[last], `"`) + name + `"` // one text in several pieces
			} else {
				lines = append(lines, indent+`"`+name+`"`)
				said = n.ParentID
			}
		}
		for _, id := range n.ChildIDs {
			if child := nodes[id]; child != nil {
				walk(child, depth, above)
			}
		}
	}
	for i := range list {
		if n := &list[i]; n.Role.Value == role && !n.Ignored {
			walk(n, 0, "")
		}
	}
	return lines
}

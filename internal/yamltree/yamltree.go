// Package yamltree reads files of YAML that people write into values that know
// their places. It refuses what such files have no use for: anchors and tags,
// several documents, deep nesting. It knows no keys.
package yamltree

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/berth-hpc/berth"
)

// Document says what a file is, for messages.
type Document struct {
	Name  string // of the file
	Field string // of complaints about the file as a whole
	What  string // such as "sites file"
	Empty string // what an empty one lacks
	// Numbers allows numbers as keys.
	Numbers bool
}

// Place is a place in the file, counted from 1.
type Place struct{ Line, Column int }

// Kind is what a value of the file is.
type Kind uint8

// The kinds.
const (
	Null Kind = iota
	Text
	Number
	Bool
	List
	Map
)

var kindNames = [...]string{
	Null: "nothing", Text: "a text", Number: "a number", Bool: "true or false", List: "a list", Map: "a group of keys",
}

// String returns the kind as messages name it.
func (k Kind) String() string { return kindNames[k] }

// Value is a value of the file: what of YAML such a file may use, and nothing
// else.
type Value struct {
	Place
	Kind    Kind
	Text    string   // of a text its content, of a number or bool as written
	Items   []*Value // of a list
	Members []Member // of a map, in the order of the file
}

// Member is a key with its value.
type Member struct {
	Place
	Key   string
	Value *Value
}

// Shown returns a value as messages repeat it, quoted and shortened and with a
// colon behind, or "".
func (v *Value) Shown() string {
	const most = 60
	switch v.Kind {
	case Text, Number, Bool:
		text := v.Text
		if len(text) > most {
			text = strings.ToValidUTF8(text[:most], "") + "…"
		}
		return fmt.Sprintf("%q: ", text)
	}
	return ""
}

// maxDepth bounds how deep values may nest. A sites file, the deepest, needs six
// levels.
const maxDepth = 20

// maxEntries bounds how many keys and list entries one line may hold.
const maxEntries = 1000

// Parse returns the only document of a YAML file, which may begin with a byte order mark.
// Errors are *berth.Error of code
// Invalid that name file, line and column.
func (d Document) Parse(text []byte) (*Value, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if at := bytes.IndexFunc(text, isForbidden); at >= 0 || !utf8.Valid(text) {
		return nil, d.fault(placeOf(text, at), "not printable UTF-8 text")
	}
	tokens := lexer.Tokenize(string(text))
	if t := tooDeep(tokens); t != nil {
		return nil, d.tooDeep(placeOfToken(t))
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		if syntax, is := errors.AsType[*yaml.SyntaxError](err); is && syntax.Token != nil {
			return nil, d.fault(placeOfToken(syntax.Token), "not valid YAML: %s", syntax.Message)
		}
		return nil, d.fault(Place{1, 1}, "not valid YAML: %s", firstLine(err.Error()))
	}
	var body ast.Node
	for _, doc := range file.Docs {
		if doc == nil || doc.Body == nil {
			continue
		}
		if body != nil {
			return nil, d.fault(placeOfToken(doc.Body.GetToken()), "a second document; a %s is one", d.What)
		}
		body = doc.Body
	}
	if body == nil || body.Type() == ast.CommentType {
		return nil, d.fault(Place{1, 1}, "empty; %s", d.Empty)
	}
	return d.convert(body, 0)
}

// fault is a mistake in the file.
func (d Document) fault(at Place, format string, args ...any) error {
	return berth.Errorf(berth.Invalid, d.Field, "%s:%d:%d: %s", d.Name, at.Line, at.Column, fmt.Sprintf(format, args...))
}

func (d Document) tooDeep(at Place) error {
	return d.fault(at, "nested deeper than any %s needs", d.What)
}

// tooDeep returns the first token at which values nest too deep in a way that
// costs no indentation, by brackets or by dashes and question marks in one line.
// The parser recurses, and a stack that overflows ends the process.
func tooDeep(tokens token.Tokens) *token.Token {
	depth, entries, line := 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			entries, line = 0, t.Position.Line
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth = max(depth-1, 0)
		case token.SequenceEntryType, token.MappingKeyType, token.MappingValueType, token.AnchorType, token.TagType:
			entries++
		}
		if depth > maxDepth || entries > maxEntries {
			return t
		}
	}
	return nil
}

// isForbidden finds what YAML forbids in a file.
func isForbidden(c rune) bool {
	return c == utf8.RuneError || c == 0x7f || (c < ' ' && c != '\n' && c != '\r' && c != '\t')
}

// placeOf returns the place of a byte, the beginning if there is none.
func placeOf(text []byte, at int) Place {
	before := text[:max(at, 0)]
	return Place{Line: 1 + bytes.Count(before, []byte{'\n'}), Column: len(before) - bytes.LastIndexByte(before, '\n')}
}

func placeOfToken(t *token.Token) Place {
	if t == nil || t.Position == nil {
		return Place{1, 1}
	}
	return Place{Line: max(t.Position.Line, 1), Column: max(t.Position.Column, 1)}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// convert turns what the YAML parser made into a value.
func (d Document) convert(node ast.Node, depth int) (*Value, error) {
	v := &Value{Place: placeOfToken(node.GetToken())}
	if depth > maxDepth {
		return nil, d.tooDeep(v.Place)
	}
	switch n := node.(type) {
	case *ast.NullNode:
	case *ast.StringNode:
		v.Kind, v.Text = Text, n.Value
	case *ast.LiteralNode:
		v.Kind, v.Text = Text, n.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		v.Kind, v.Text = Number, strings.TrimSpace(n.GetToken().Value)
	case *ast.BoolNode:
		v.Kind, v.Text = Bool, n.GetToken().Value
	case *ast.SequenceNode:
		v.Kind = List
		for _, item := range n.Values {
			converted, err := d.convert(item, depth+1)
			if err != nil {
				return nil, err
			}
			v.Items = append(v.Items, converted)
		}
	case *ast.MappingNode:
		v.Kind = Map
		for _, pair := range n.Values {
			key, is := d.key(pair.Key)
			at := placeOfToken(pair.Key.GetToken())
			if !is {
				return nil, d.fault(at, "%q is no key; keys are plain words", firstLine(pair.Key.String()))
			}
			converted, err := d.convert(pair.Value, depth+1)
			if err != nil {
				return nil, err
			}
			if converted.Kind == Null {
				converted.Place = at // nothing has no place of its own
			}
			v.Members = append(v.Members, Member{Place: at, Key: key, Value: converted})
		}
		if len(v.Members) > 0 && !n.IsFlowStyle {
			v.Place = v.Members[0].Place
		}
	default:
		return nil, d.fault(v.Place, "anchors, aliases, tags and merge keys (&, *, !, <<) are not read; write the value out")
	}
	return v, nil
}

// key returns a key's text, and false if the file may have no such key.
func (d Document) key(node ast.MapKeyNode) (string, bool) {
	switch n := node.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.IntegerNode:
		return strings.TrimSpace(n.GetToken().Value), d.Numbers
	default:
		return "", false
	}
}

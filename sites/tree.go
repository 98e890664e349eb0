package sites

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

// place is a place in the file, counted from 1.
type place struct{ line, column int }

// kind is what a value of the file is.
type kind uint8

const (
	isNull kind = iota
	isText
	isNumber
	isBool
	isList
	isMap
)

var kindNames = [...]string{
	isNull: "nothing", isText: "a text", isNumber: "a number", isBool: "true or false", isList: "a list", isMap: "a group of keys",
}

// value is a value of the file: what of YAML a sites file may use, and nothing
// else.
type value struct {
	place
	kind    kind
	text    string   // of a text its content, of a number or bool as written
	items   []*value // of a list
	members []member // of a map, in the order of the file
}

// member is a key with its value.
type member struct {
	place
	key   string
	value *value
}

// shown returns a value as messages repeat it, quoted and shortened, or "".
func (v *value) shown() string {
	const most = 60
	switch v.kind {
	case isText, isNumber, isBool:
		text := v.text
		if len(text) > most {
			text = strings.ToValidUTF8(text[:most], "") + "…"
		}
		return fmt.Sprintf("%q: ", text)
	}
	return ""
}

// maxDepth bounds how deep values may nest. A sites file needs six levels.
const maxDepth = 20

// maxEntries bounds how many keys and list entries one line may hold.
const maxEntries = 1000

// parse returns the only document of a YAML file.
func parse(text []byte, name string) (tree *value, err error) {
	fault := func(at place, format string, args ...any) error {
		return berth.Errorf(berth.Invalid, "sites", "%s:%d:%d: %s", name, at.line, at.column, fmt.Sprintf(format, args...))
	}
	if at := bytes.IndexFunc(text, isForbidden); at >= 0 || !utf8.Valid(text) {
		return nil, fault(placeOf(text, at), "not printable UTF-8 text")
	}
	tokens := lexer.Tokenize(string(text))
	if t := tooDeep(tokens); t != nil {
		return nil, fault(placeOfToken(t), "nested deeper than any sites file needs")
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		var syntax *yaml.SyntaxError
		if errors.As(err, &syntax) && syntax.Token != nil {
			return nil, fault(placeOfToken(syntax.Token), "not valid YAML: %s", syntax.Message)
		}
		return nil, fault(place{1, 1}, "not valid YAML: %s", firstLine(err.Error()))
	}
	var body ast.Node
	for _, doc := range file.Docs {
		if doc == nil || doc.Body == nil {
			continue
		}
		if body != nil {
			return nil, fault(placeOfToken(doc.Body.GetToken()), "a second document; a sites file is one")
		}
		body = doc.Body
	}
	if body == nil || body.Type() == ast.CommentType {
		return nil, fault(place{1, 1}, "empty; a sites file needs the key sites")
	}
	return convert(body, fault, 0)
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
func placeOf(text []byte, at int) place {
	before := text[:max(at, 0)]
	return place{line: 1 + bytes.Count(before, []byte{'\n'}), column: len(before) - bytes.LastIndexByte(before, '\n')}
}

func placeOfToken(t *token.Token) place {
	if t == nil || t.Position == nil {
		return place{1, 1}
	}
	return place{line: max(t.Position.Line, 1), column: max(t.Position.Column, 1)}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// convert turns what the YAML parser made into a value.
func convert(node ast.Node, fault func(at place, format string, args ...any) error, depth int) (*value, error) {
	v := &value{place: placeOfToken(node.GetToken())}
	if depth > maxDepth {
		return nil, fault(v.place, "nested deeper than any sites file needs")
	}
	switch n := node.(type) {
	case *ast.NullNode:
	case *ast.StringNode:
		v.kind, v.text = isText, n.Value
	case *ast.LiteralNode:
		v.kind, v.text = isText, n.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		v.kind, v.text = isNumber, strings.TrimSpace(n.GetToken().Value)
	case *ast.BoolNode:
		v.kind, v.text = isBool, n.GetToken().Value
	case *ast.SequenceNode:
		v.kind = isList
		for _, item := range n.Values {
			converted, err := convert(item, fault, depth+1)
			if err != nil {
				return nil, err
			}
			v.items = append(v.items, converted)
		}
	case *ast.MappingNode:
		v.kind = isMap
		for _, pair := range n.Values {
			key, is := pair.Key.(*ast.StringNode)
			at := placeOfToken(pair.Key.GetToken())
			if !is {
				return nil, fault(at, "%q is no key; keys are plain words", firstLine(pair.Key.String()))
			}
			converted, err := convert(pair.Value, fault, depth+1)
			if err != nil {
				return nil, err
			}
			if converted.kind == isNull {
				converted.place = at // nothing has no place of its own
			}
			v.members = append(v.members, member{place: at, key: key.Value, value: converted})
		}
		if len(v.members) > 0 && !n.IsFlowStyle {
			v.place = v.members[0].place
		}
	default:
		return nil, fault(v.place, "anchors, aliases, tags and merge keys (&, *, !, <<) are not read; write the value out")
	}
	return v, nil
}

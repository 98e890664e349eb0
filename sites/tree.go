package sites

import (
	"fmt"
	"strings"

	"github.com/berth-hpc/berth/internal/yamltree"
)

// place is a place in the file, counted from 1.
type place struct{ line, column int }

// kind is what a value of the file is.
type kind = yamltree.Kind

const (
	isNull   = yamltree.Null
	isText   = yamltree.Text
	isNumber = yamltree.Number
	isBool   = yamltree.Bool
	isList   = yamltree.List
	isMap    = yamltree.Map
)

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

// parse returns the only document of a YAML file.
func parse(text []byte, name string) (*value, error) {
	tree, err := yamltree.Document{Name: name, Field: "sites", What: "sites file", Empty: "a sites file needs the key sites"}.Parse(text)
	if err != nil {
		return nil, err
	}
	return valueOf(tree), nil
}

// valueOf copies a value of the tree.
func valueOf(v *yamltree.Value) *value {
	copied := &value{place: place{v.Line, v.Column}, kind: v.Kind, text: v.Text}
	for _, item := range v.Items {
		copied.items = append(copied.items, valueOf(item))
	}
	for _, m := range v.Members {
		copied.members = append(copied.members, member{place: place{m.Line, m.Column}, key: m.Key, value: valueOf(m.Value)})
	}
	return copied
}

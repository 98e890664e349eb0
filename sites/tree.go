package sites

import "github.com/berth-hpc/berth/internal/yamltree"

// What of YAML a sites file may use.
type (
	place  = yamltree.Place
	kind   = yamltree.Kind
	value  = yamltree.Value
	member = yamltree.Member
)

const (
	isNull   = yamltree.Null
	isText   = yamltree.Text
	isNumber = yamltree.Number
	isBool   = yamltree.Bool
	isList   = yamltree.List
	isMap    = yamltree.Map
)

// parse returns the only document of a YAML file.
func parse(text []byte, name string) (*value, error) {
	return yamltree.Document{Name: name, Field: "sites", What: "sites file", Empty: "a sites file needs the key sites"}.Parse(text)
}

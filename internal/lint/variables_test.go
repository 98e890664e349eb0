package lint

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/berth-hpc/berth/internal/source"
)

// variableFaults reports writes of a package to variables of the given
// packages, its own or those of others. Every way to write counts: an
// assignment to the variable, to a field or to an element, ++, append, delete,
// a sort in place, an address taken, a method with a pointer receiver. A table
// that is only declared and read passes.
func variableFaults(fset *token.FileSet, p *source.Package, constants []*types.Package) []fault {
	var faults []fault
	for _, file := range p.Files {
		ast.Inspect(file.Syntax, func(n ast.Node) bool {
			if n == nil {
				return false
			}
			for _, w := range writes(p.Info, n) {
				v := placeOf(p.Info, w.target).root
				if v != nil && slices.Contains(constants, v.Pkg()) && v.Parent() == v.Pkg().Scope() {
					faults = append(faults, faultAt(fset, p, w.at(), v.Name(), "writes the package variable %s of a pure room", v.Name()))
				}
			}
			return true
		})
	}
	return faults
}

package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/source"
)

const module = "github.com/berth-hpc/berth"

// pkg is one package as the rules see it: its non-test files, parsed with
// comments, under their slash-separated paths below the module's root.
type pkg struct {
	path  string
	files map[string]*ast.File
}

// sorted returns the paths of the package's files in order.
func (p *pkg) sorted() []string {
	names := make([]string, 0, len(p.files))
	for name := range p.files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// tableFaults reports rows of the table that are wrong in themselves: named
// twice, importing a row that is not above them, or a pure room importing one
// that is not.
func tableFaults(table []room) []string {
	var faults []string
	above := map[string]room{}
	for _, r := range table {
		for _, i := range r.imports {
			below, ok := above[i]
			switch {
			case !ok:
				faults = append(faults, fmt.Sprintf("table: %s may import %s, which is not above it in the table", r.path, i))
			case r.pure && !below.pure:
				faults = append(faults, fmt.Sprintf("table: %s is pure and may import %s, which is not", r.path, i))
			}
		}
		if _, twice := above[r.path]; twice {
			faults = append(faults, fmt.Sprintf("table: %s is named twice", r.path))
		}
		above[r.path] = r
	}
	return faults
}

// presenceFaults reports packages without a row and rows without a package.
func presenceFaults(table []room, pkgs []*pkg) []string {
	var faults []string
	for _, p := range pkgs {
		if !slices.ContainsFunc(table, func(r room) bool { return r.path == p.path }) {
			faults = append(faults, fmt.Sprintf("%s: the package has no row in the import table", p.path))
		}
	}
	for _, r := range table {
		if !slices.ContainsFunc(pkgs, func(p *pkg) bool { return p.path == r.path }) {
			faults = append(faults, fmt.Sprintf("table: %s has a row but no package", r.path))
		}
	}
	return faults
}

// importFaults reports imports of the module that the package's row does not allow.
func importFaults(r room, p *pkg) []string {
	var faults []string
	for _, name := range p.sorted() {
		for _, spec := range p.files[name].Imports {
			imported := source.Imported(spec)
			inner, ok := strings.CutPrefix(imported+"/", module+"/")
			if !ok {
				continue
			}
			if inner = path.Clean(inner); !slices.Contains(r.imports, inner) {
				faults = append(faults, fmt.Sprintf("%s: %s must not import %s", name, p.path, imported))
			}
		}
	}
	return faults
}

// wholeRooms are the rooms whose files must be whole after a loss of power: what they write
// goes through internal/wholefile, which is tested on a file system that loses.
var wholeRooms = []string{"service", "api", "api/courier", "api/token", "sites/adapters"}

// partWriters are what package os has to write a file otherwise.
var partWriters = []string{"WriteFile", "Create", "CreateTemp", "OpenFile", "Rename", "Truncate"}

// wholeFaults reports files that are written otherwise.
func wholeFaults(p *pkg) []string {
	var faults []string
	for _, name := range p.sorted() {
		ast.Inspect(p.files[name], func(n ast.Node) bool {
			if call, is := n.(*ast.SelectorExpr); is {
				if of, is := call.X.(*ast.Ident); is && of.Name == "os" && slices.Contains(partWriters, call.Sel.Name) {
					faults = append(faults, fmt.Sprintf("%s: os.%s; want wholefile.Write, which leaves a file whole after a loss of power", name, call.Sel.Name))
				}
			}
			return true
		})
	}
	return faults
}

// purityFaults reports what a pure room must not contain: impure imports,
// draws from a global random source, prints, go statements, and selects among
// several channels, where the runtime takes any one that is ready.
func purityFaults(p *pkg) []string {
	var faults []string
	for _, name := range p.sorted() {
		file := p.files[name]
		fault := func(format string, args ...any) {
			faults = append(faults, name+": "+fmt.Sprintf(format, args...)+" in a pure room")
		}
		random := map[string]bool{} // names under which this file knows math/rand
		prints := map[string]bool{} // the same for fmt
		for _, spec := range file.Imports {
			imported := source.Imported(spec)
			for _, root := range impure {
				if imported == root || strings.HasPrefix(imported, root+"/") {
					fault("import of %s", imported)
				}
			}
			names, name := random, "rand"
			switch imported {
			case "math/rand", "math/rand/v2":
			case "fmt":
				names, name = prints, "fmt"
			default:
				continue
			}
			if spec.Name != nil {
				name = spec.Name.Name
			}
			if name == "." {
				fault("dot import of %s", imported)
			}
			names[name] = true
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				fault("go statement")
			case *ast.SelectorExpr:
				// An identifier that the parser resolved is a variable of this
				// file, such as a parameter called rand, and not the package.
				x, ok := n.X.(*ast.Ident)
				if ok && x.Obj == nil && random[x.Name] && !slices.Contains(seeded, n.Sel.Name) {
					fault("global random source %s.%s", x.Name, n.Sel.Name)
				}
				if ok && x.Obj == nil && prints[x.Name] && strings.HasPrefix(n.Sel.Name, "Print") {
					fault("output by %s.%s", x.Name, n.Sel.Name)
				}
			case *ast.CallExpr:
				if x, ok := n.Fun.(*ast.Ident); ok && x.Obj == nil && (x.Name == "print" || x.Name == "println") {
					fault("output by %s", x.Name)
				}
			case *ast.SelectStmt:
				cases := 0
				for _, clause := range n.Body.List {
					if clause.(*ast.CommClause).Comm != nil {
						cases++
					}
				}
				if cases > 1 {
					fault("select among %d channels", cases)
				}
			}
			return true
		})
	}
	return faults
}

// commentFaults reports a package whose duty is said nowhere, or in two places.
func commentFaults(p *pkg) []string {
	var said []string
	for _, name := range p.sorted() {
		if doc := p.files[name].Doc; doc != nil && strings.TrimSpace(doc.Text()) != "" {
			said = append(said, name)
		}
	}
	switch len(said) {
	case 0:
		return []string{p.path + ": no package comment"}
	case 1:
		return nil
	}
	return []string{p.path + ": package comments in " + strings.Join(said, " and ")}
}

// maxLines is the house's limit for a file written by hand: beyond it there
// are usually two concepts in one file.
const maxLines = 700

// lengthFaults reports a Go file that is too long. Tests and generated files
// are free.
func lengthFaults(name string, file *ast.File, fset *token.FileSet) []string {
	if strings.HasSuffix(name, "_test.go") || ast.IsGenerated(file) {
		return nil
	}
	if n := fset.File(file.FileStart).LineCount(); n > maxLines {
		return []string{fmt.Sprintf("%s: %d lines, more than %d", name, n, maxLines)}
	}
	return nil
}

// foreign matches what ties a file to the machine it was written on: absolute
// paths of a checkout or a scratch folder, and hosts of package registries.
var foreign = regexp.MustCompile(`(?:^|[^[:alnum:]_.])/(?:work|farm|root)/|/tmp/[a-z]+/|` +
	`(?:proxy|sum)\.golang\.|registry\.(?:npmjs|yarnpkg)\.|deb\.debian\.`)

// foreignFaults reports lines of a text file that match foreign. A file with
// a zero byte is not text.
func foreignFaults(name string, content []byte) []string {
	if slices.Contains(content, 0) {
		return nil
	}
	var faults []string
	for i, line := range strings.Split(string(content), "\n") {
		if found := foreign.FindString(line); found != "" {
			faults = append(faults, fmt.Sprintf("%s:%d: names %q", name, i+1, strings.TrimSpace(found)))
		}
	}
	return faults
}

var (
	markdownCode = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	markdownLink = regexp.MustCompile(`\]\(([^()\s]+)\)`)
)

// linkFaults reports links of a Markdown file to files that do not exist.
// Links to other hosts and within the page are not followed.
func linkFaults(name, content string, exists func(string) bool) []string {
	var faults []string
	for _, m := range markdownLink.FindAllStringSubmatch(markdownCode.ReplaceAllString(content, ""), -1) {
		target, _, _ := strings.Cut(m[1], "#")
		if target == "" || strings.Contains(target, ":") {
			continue
		}
		if !exists(path.Join(path.Dir(name), target)) {
			faults = append(faults, fmt.Sprintf("%s: link to %s leads nowhere", name, m[1]))
		}
	}
	return faults
}

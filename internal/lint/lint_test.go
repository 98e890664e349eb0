package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the module's folder as seen from this package.
const root = "../.."

func TestImportTableIsItselfInOrder(t *testing.T) {
	report(t, tableFaults(table))
}

func TestEveryPackageHasARow(t *testing.T) {
	pkgs, _ := tree(t)
	report(t, presenceFaults(table, pkgs))
}

func TestPackagesImportWhatTheTableAllows(t *testing.T) {
	pkgs, _ := tree(t)
	for _, p := range pkgs {
		if i := slices.IndexFunc(table, func(r room) bool { return r.path == p.path }); i >= 0 {
			report(t, importFaults(table[i], p))
		}
	}
}

func TestPureRoomsArePure(t *testing.T) {
	pkgs, _ := tree(t)
	for _, p := range pkgs {
		if slices.ContainsFunc(table, func(r room) bool { return r.pure && r.path == p.path }) {
			report(t, purityFaults(p))
		}
	}
}

func TestFilesOfTheServiceAreWrittenWhole(t *testing.T) {
	pkgs, _ := tree(t)
	for _, p := range pkgs {
		if slices.Contains(wholeRooms, p.path) {
			report(t, wholeFaults(p))
		}
	}
}

func TestEveryPackageSaysItsDutyOnce(t *testing.T) {
	pkgs, _ := tree(t)
	for _, p := range pkgs {
		report(t, commentFaults(p))
	}
}

func TestFilesAreShort(t *testing.T) {
	pkgs, fset := tree(t)
	for _, p := range pkgs {
		for _, name := range p.sorted() {
			report(t, lengthFaults(name, p.files[name], fset))
		}
	}
}

func TestFilesNameNoMachineAndNoRegistry(t *testing.T) {
	for _, name := range tracked(t) {
		report(t, foreignFaults(name, read(t, name)))
	}
}

func TestLinksInDocumentsLeadSomewhere(t *testing.T) {
	for _, name := range tracked(t) {
		if path.Ext(name) == ".md" {
			report(t, linkFaults(name, string(read(t, name)), func(target string) bool {
				_, err := os.Stat(filepath.Join(root, filepath.FromSlash(target)))
				return err == nil
			}))
		}
	}
}

// TestTestsInDocumentsExist holds documents to the names that tests have; decisions and the changelog are as they were written.
func TestTestsInDocumentsExist(t *testing.T) {
	declared := map[string]bool{}
	for _, name := range tracked(t) {
		if strings.HasSuffix(name, "_test.go") {
			for _, m := range testDeclared.FindAllSubmatch(read(t, name), -1) {
				declared[string(m[1])] = true
			}
		}
	}
	for _, name := range tracked(t) {
		if path.Ext(name) == ".md" && !strings.HasPrefix(name, "docs/adr/") && name != "CHANGELOG.md" {
			report(t, testNameFaults(name, string(read(t, name)), declared))
		}
	}
}

var (
	testDeclared = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)[A-Z]\w*)\(`)
	testNamed    = regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z]\\w*)`")
)

// testNameFaults reports the tests that a document names and that are not declared.
func testNameFaults(name, text string, declared map[string]bool) []string {
	var faults []string
	for _, m := range testNamed.FindAllStringSubmatch(text, -1) {
		if !declared[m[1]] {
			faults = append(faults, fmt.Sprintf("%s: no test is called %s", name, m[1]))
		}
	}
	return faults
}

// modulePath is a module that go.mod requires.
var modulePath = regexp.MustCompile(`(?m)^\t(\S+) v\d`)

func TestNoticeNamesEveryModule(t *testing.T) {
	required := modulePath.FindAllSubmatch(read(t, "go.mod"), -1)
	if len(required) < 10 {
		t.Fatalf("%d modules in go.mod", len(required))
	}
	named := regexp.MustCompile(`[\s,]+`).Split(string(read(t, "NOTICE")), -1)
	for _, m := range required {
		if !slices.Contains(named, string(m[1])) {
			t.Errorf("NOTICE does not name %s and its licence", m[1])
		}
	}
}

func report(t *testing.T, faults []string) {
	t.Helper()
	for _, fault := range faults {
		t.Error(fault)
	}
}

// tree parses every package of the module, whatever its build constraints.
// Like the go command it passes over testdata and folders that begin with a
// dot or an underscore. Packages made of tests alone are not rooms.
func tree(t *testing.T) ([]*pkg, *token.FileSet) {
	t.Helper()
	fset := token.NewFileSet()
	byPath := map[string]*pkg{}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if file != root && (name == "testdata" || name == "node_modules" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")) {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		below, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		below = filepath.ToSlash(below)
		parsed, err := parser.ParseFile(fset, file, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		folder := path.Dir(below)
		if byPath[folder] == nil {
			byPath[folder] = &pkg{path: folder, files: map[string]*ast.File{}}
		}
		byPath[folder].files[below] = parsed
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	pkgs := make([]*pkg, 0, len(byPath))
	for _, p := range byPath {
		pkgs = append(pkgs, p)
	}
	slices.SortFunc(pkgs, func(a, b *pkg) int { return strings.Compare(a.path, b.path) })
	return pkgs, fset
}

// tracked lists the files that git holds or would be asked to hold.
func tracked(t *testing.T) []string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Skipf("needs git and a checkout: git ls-files: %v", err)
	}
	names := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	return slices.DeleteFunc(names, func(name string) bool {
		info, err := os.Lstat(filepath.Join(root, filepath.FromSlash(name)))
		return err != nil || !info.Mode().IsRegular() // deleted but not yet committed, or a link
	})
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

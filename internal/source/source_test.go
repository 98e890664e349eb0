package source

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// open writes a module of the given files and opens it.
func open(t *testing.T, tests bool, files map[string]string) *Module {
	t.Helper()
	root := t.TempDir()
	files["go.mod"] = "module example.org/m\n\ngo 1.26\n"
	for name, content := range files {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m, err := Open(t.Context(), root, Options{Tests: tests})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func names(p *Package) string {
	var all []string
	for _, f := range p.Files {
		all = append(all, f.Name)
	}
	return strings.Join(all, " ")
}

func TestPackagesHaveTheFilesThatTheCompilerSees(t *testing.T) {
	files := map[string]string{
		"root.go": "package m", "low/b.go": "package low", "low/a.go": "package low", "low/never.go": "//go:build never\n\npackage low",
		"low/a_test.go": "package low", "low/x_test.go": "package low_test", "low/testdata/t.go": "package broken {", "_old/o.go": "package old", ".tools/t.go": "package tools",
	}
	for tests, want := range map[bool]string{false: "low/a.go low/b.go", true: "low/a.go low/a_test.go low/b.go"} {
		m := open(t, tests, files)
		if got := m.Folders(); !slices.Equal(got, []string{".", "low"}) {
			t.Errorf("folders %q", got)
		}
		low, err := m.Package("low")
		if err != nil || names(low) != want {
			t.Errorf("tests %v: files %s, error %v; want %s", tests, names(low), err, want)
		}
		external, err := m.External("low")
		if err != nil || (external != nil) != tests || tests && names(external) != "low/x_test.go" {
			t.Errorf("tests %v: external tests %v, error %v", tests, external, err)
		}
	}
}

func TestTypesAreTheSameEverywhere(t *testing.T) {
	m := open(t, true, map[string]string{
		"low/a.go":      "package low\n\nimport \"strings\"\n\ntype T struct{ strings.Builder }\n",
		"low/a_test.go": "package low\n\nfunc Hidden(T) {}\n",
		"low/x_test.go": "package low_test\n\nimport (\"example.org/m/low\"; \"example.org/m/high\")\n\nfunc f() { low.Hidden(high.V) }\n",
		"high/a.go":     "package high\n\nimport \"example.org/m/low\"\n\nvar V low.T\n",
	})
	high, err := m.Package("high")
	if err != nil {
		t.Fatal(err)
	}
	low, err := m.Package("low")
	if err != nil {
		t.Fatal(err)
	}
	if got := high.Types.Scope().Lookup("V").Type(); got != low.Types.Scope().Lookup("T").Type() {
		t.Errorf("V is of type %v of another package low", got)
	}
	if _, err := m.External("low"); err != nil {
		t.Errorf("the external tests see another package low than high does: %v", err)
	}
	if again, _ := m.Package("low"); again != low {
		t.Error("the package is checked twice")
	}
}

func TestFaultsOfTheSourceAreErrors(t *testing.T) {
	m := open(t, true, map[string]string{
		"bad/a.go":      "package bad\n\nvar a int = \"\"\n\nvar b int = \"\"\n",
		"one/a.go":      "package one",
		"one/a_test.go": "package one\n\nimport _ \"example.org/m/two\"\n",
		"two/a.go":      "package two",
		"two/a_test.go": "package two\n\nimport _ \"example.org/m/one\"\n",
	})
	for range 2 {
		if _, err := m.Package("bad"); err == nil || strings.Count(err.Error(), "cannot use") != 2 {
			t.Errorf("two faults give %v", err)
		}
	}
	if _, err := m.Package("none"); err == nil || !strings.Contains(err.Error(), "no package in none") {
		t.Errorf("an absent package gives %v", err)
	}
	if _, err := m.Package("one"); err == nil || !strings.Contains(err.Error(), "import one another") {
		t.Errorf("a cycle gives %v", err)
	}
}

func TestCheckLeavesTheModuleAsItIs(t *testing.T) {
	m := open(t, false, map[string]string{"low/a.go": "package low\n\nconst C = 1\n"})
	low, err := m.Package("low")
	if err != nil {
		t.Fatal(err)
	}
	changed, err := m.Check("low", low.Files)
	if err != nil || changed == low || changed.Types == low.Types {
		t.Errorf("the check returned the module's own package, error %v", err)
	}
	if again, _ := m.Package("low"); again != low {
		t.Error("the check replaced the module's package")
	}
}

func TestOpenTellsWhatCannotBeRead(t *testing.T) {
	if _, err := Open(t.Context(), t.TempDir(), Options{}); err == nil {
		t.Error("a folder without go.mod was opened")
	}
	root := t.TempDir()
	for name, content := range map[string]string{"go.mod": "module m\n", "a.go": "package a\n\nimport _ \"no/such/package\"\n"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(t.Context(), root, Options{}); err == nil || !strings.Contains(err.Error(), "no/such/package") {
		t.Errorf("an import that is not there gives %v", err)
	}
}

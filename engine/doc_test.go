package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The program in docs/library.md is the example of the package, with its output, and
// has at most thirty lines.
func TestLibraryDocumentIsTrue(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "docs", "library.md"))
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	program, output, ok := strings.Cut(string(example), "\t// Output:\n")
	if !ok {
		t.Fatal("the example has no output")
	}
	program = strings.NewReplacer("package engine_test\n", "package main\n", "func Example() {", "func main() {").Replace(program) + "}\n"
	output = strings.ReplaceAll(strings.TrimSuffix(output, "}\n"), "\t// ", "")
	if want := "```go\n" + program + "```\n\n```\n" + output + "```\n"; !strings.Contains(string(text), want) {
		t.Errorf("the document does not have this:\n%s", want)
	}
	if n := strings.Count(program, "\n"); n > 30 {
		t.Errorf("the program has %d lines", n)
	}
}

package workload

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// docs/jdl.md names every attribute, and its example reads.
func TestJDLDocumentIsTrue(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "docs", "jdl.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range jdlNames {
		if !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("%s is not in the document", name)
		}
	}
	_, example, _ := strings.Cut(string(text), "<<'END'\n")
	example, _, _ = strings.Cut(example, "\nEND\n")
	w, err := ReadJDL(strings.NewReader(example), "jdl.md", Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	if r := w.Requests[0]; r.ID != "wind-17" || r.Deadline != 6*3600+9000 || r.Parts[0].Variants[0].NPE != 64 || r.MemoryMB != 2148 {
		t.Errorf("the example is %+v", r)
	}
}

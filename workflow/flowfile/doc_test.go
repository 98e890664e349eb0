package flowfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/yamltree"
)

// Every key that is read is in the document, and every key of its tables is read.
func TestKeysAreDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "workflow-files.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, part, found := strings.Cut(string(text), "## Workflows in YAML\n")
	part, _, end := strings.Cut(part, "\n## ")
	if !found || !end {
		t.Fatal("the document has no part about YAML")
	}
	told := map[string]bool{}
	for line := range strings.Lines(part) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		for i, word := range strings.Split(strings.Split(line, "|")[1], "`") {
			if i%2 == 1 {
				told[word] = true
			}
		}
	}
	r := &reader{}
	known := map[string]bool{"workflow": true, "defaults": true, "tasks": true, "account": true, "qos": true, "name": true, "command": true, "script": true, "after": true, "inputs": true, "outputs": true}
	for _, k := range r.settings(&draft{}, "") {
		known[k.name] = true
	}
	for name := range known {
		if !told[name] {
			t.Errorf("%s is read, but not in the document", name)
		}
	}
	for name := range told {
		if !known[name] {
			t.Errorf("%s is in the document, but not read", name)
		}
	}
	// The keys that are listed here by hand are those of the groups.
	for name := range known {
		c := &reader{complaints: complaints{name: "w"}, byName: map[string]*draft{}, file: &File{}}
		tree, err := yamltree.Document{Name: "w", Numbers: true}.Parse([]byte("tasks: [{" + name + ": []}]\n" + name + ": []\n"))
		if err != nil {
			t.Fatal(err)
		}
		c.document(tree)
		want := 1
		if name == "account" || name == "qos" { // of the workflow, and of a task
			want = 0
		}
		if n := strings.Count(c.err().Error(), "unknown key"); n != want && name != "tasks" {
			t.Errorf("%s is unknown at %d of two places, want %d", name, n, want)
		}
	}
}

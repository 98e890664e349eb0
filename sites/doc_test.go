package sites_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/sites"
)

// docs/sites-file.md names every key of the schema, and its example reads.
func TestDocumentIsTrue(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "docs", "sites-file.md"))
	if err != nil {
		t.Fatal(err)
	}
	var schema any
	if err := json.Unmarshal(sites.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	keys := make(map[string]bool)
	collectKeys(schema, keys)
	if len(keys) < 40 {
		t.Errorf("only %d keys in the schema", len(keys))
	}
	for key := range keys {
		if !strings.Contains(string(text), "`"+key+"`") {
			t.Errorf("%s is not in the document", key)
		}
	}
	_, example, _ := strings.Cut(string(text), "```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	if f, err := read(example); err != nil || f.Sites[0].Name != "here" {
		t.Errorf("the example: %v", err)
	}
}

// collectKeys gathers the properties that a schema names.
func collectKeys(schema any, keys map[string]bool) {
	switch s := schema.(type) {
	case map[string]any:
		for name, inner := range s {
			if named, is := inner.(map[string]any); is && name == "properties" {
				for key := range named {
					keys[key] = true
				}
			}
			collectKeys(inner, keys)
		}
	case []any:
		for _, inner := range s {
			collectKeys(inner, keys)
		}
	}
}

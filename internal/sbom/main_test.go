package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"os"
	"runtime/debug"
	"strings"
	"testing"
)

// The bill of this test's own program names Go and a module with its hash, once each, and is the same twice.
func TestTheBillOfAProgram(t *testing.T) {
	info, err := buildinfo.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	info.Deps = append(info.Deps, &debug.Module{Path: "example.org/a/v2", Version: "v2.0.0+incompatible", Sum: "h1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="})
	var out, again bytes.Buffer
	for _, w := range []*bytes.Buffer{&out, &again} {
		if err := write(w, info); err != nil {
			t.Fatal(err)
		}
	}
	if out.String() != again.String() {
		t.Error("the bill is another the second time")
	}
	var b bom
	if err := json.Unmarshal(out.Bytes(), &b); err != nil {
		t.Fatal(err)
	}
	last := b.Components[len(b.Components)-1]
	if b.Format != "CycloneDX" || !strings.Contains(b.Metadata.Component.Name, "berth") || b.Components[0].Name != "std" || b.Components[0].Version == "" {
		t.Errorf("%+v", b)
	}
	if last.PURL != "pkg:golang/example.org/a/v2@v2.0.0%2Bincompatible" || last.Hashes[0].Content != "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f" {
		t.Errorf("%+v", last)
	}
}

package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// What is generated under a name that ends in .gz is compressed, and is the same inside.
func TestGeneratedFilesAreCompressedByTheirNames(t *testing.T) {
	folder := t.TempDir()
	for name, args := range map[string][]string{
		"log.swf":        {"generate", "swf", "--model", "lublin:typeless", "--jobs", "20"},
		"flow.json":      {"generate", "dag", "--tasks", "5"},
		"bookings.jsonl": {"generate", "bookings", "--workload", firstLight, "--now", "40000"},
	} {
		plain, packed := filepath.Join(folder, name), filepath.Join(folder, name+".gz")
		command(t, append(args, "--out", plain)...)
		command(t, append(args, "--out", packed)...)
		want, err := os.ReadFile(plain)
		if err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(packed)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		zip, err := gzip.NewReader(file)
		if err != nil {
			t.Errorf("%s.gz: %v", name, err)
			continue
		}
		if got, err := io.ReadAll(zip); err != nil || len(want) == 0 || !bytes.Equal(got, want) {
			t.Errorf("%s.gz holds %q (%v), want %q", name, got, err, want)
		}
	}
}

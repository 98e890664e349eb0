package wholefile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/berth-hpc/berth/internal/wholefile"
)

func TestWriteReplacesTheWholeFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "name")
	for _, content := range []string{"a longer first content\n", "short\n"} {
		if err := wholefile.Write(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != content {
			t.Errorf("%q %v, want %q", got, err, content)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v %v, want 0600", info.Mode(), err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v %v, want the file alone", entries, err)
	}
}

func TestFailedWriteLeavesTheFolderAsItWas(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "name")
	if err := os.Mkdir(path, 0o700); err != nil { // a folder cannot be replaced by a file
		t.Fatal(err)
	}
	if err := wholefile.Write(path, []byte("x")); err == nil {
		t.Error("no error, want that a folder is there")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 || !entries[0].IsDir() {
		t.Errorf("%v %v, want the folder alone", entries, err)
	}
	if err := wholefile.Write(filepath.Join(dir, "nowhere", "name"), nil); err == nil {
		t.Error("no error, want that there is no folder")
	}
}

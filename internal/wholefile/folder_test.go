package wholefile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/wholefile"
)

// Files appear together, and only with Keep.
func TestOutputFolder(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "a", "b")
	names := func(at string) (found []string) {
		entries, _ := os.ReadDir(at) // a folder that is gone holds nothing
		for _, e := range entries {
			found = append(found, e.Name())
		}
		return found
	}
	write := func(f *wholefile.Folder) {
		for _, name := range []string{"one", "two"} {
			if err := f.Write(name, []byte(name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	f, err := wholefile.OpenFolder("out", path)
	if err != nil {
		t.Fatal(err)
	}
	write(f)
	for _, name := range names(path) {
		if name[0] != '.' {
			t.Errorf("%s is there before it is kept", name)
		}
	}
	f.Drop()
	if left := names(root); len(left) > 0 {
		t.Errorf("dropped, and %q is left", left)
	}

	if f, err = wholefile.OpenFolder("out", path); err != nil {
		t.Fatal(err)
	}
	write(f)
	if err := f.Keep(); err != nil {
		t.Fatal(err)
	}
	f.Drop()
	if found := names(path); len(found) != 2 || found[0] != "one" || found[1] != "two" {
		t.Errorf("kept, and %q is there", found)
	}
	if data, err := os.ReadFile(filepath.Join(path, "two")); err != nil || string(data) != "two" {
		t.Errorf("two holds %q, %v", data, err)
	}

	// A folder that was there stays when nothing is kept, and so does what is
	// in it.
	if f, err = wholefile.OpenFolder("out", path); err != nil {
		t.Fatal(err)
	}
	write(f)
	f.Drop()
	if found := names(path); len(found) != 2 {
		t.Errorf("dropped, and %q is there", found)
	}
}

// An output replaces what a link leads to, keeps its permissions, and is nothing until it
// is kept.
func TestOutputAppearsWhole(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("file", link); err != nil {
		t.Fatal(err)
	}
	for _, kept := range []bool{false, true} {
		out, err := wholefile.Create("out", link)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := out.Write([]byte("new")); err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(file); err != nil || string(data) != "old" {
			t.Errorf("%q %v before it is kept, want what was there", data, err)
		}
		if kept {
			if err := out.Keep(); err != nil {
				t.Fatal(err)
			}
		}
		out.Drop()
	}
	data, err := os.ReadFile(file)
	info, statErr := os.Lstat(link)
	if err != nil || statErr != nil || string(data) != "new" || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("%q %v, the link is %v %v; want the file that it leads to replaced", data, err, info, statErr)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v %v, want mode 0640 as before", info, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("%v %v, want nothing beside them", entries, err)
	}
}

func TestWhatCannotBeWrittenIsToldBefore(t *testing.T) {
	dir := t.TempDir()
	readOnly, circle := filepath.Join(dir, "ro"), filepath.Join(dir, "circle")
	if err := os.WriteFile(readOnly, nil, 0o400); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("circle", circle); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"": "empty", dir: "it is a folder", filepath.Join(dir, "no", "x"): "there is no folder", readOnly: "it is read-only (mode 0400)", circle: "links",
	} {
		err := wholefile.Writable("plot", path)
		if mistake, is := errors.AsType[*berth.Error](err); !is || mistake.Code != berth.Invalid || mistake.Field != "plot" || !strings.Contains(mistake.Msg, want) {
			t.Errorf("%s: %v, want plot: %s", path, err, want)
		}
	}
	if err := errors.Join(wholefile.Writable("plot", wholefile.Stream), wholefile.Writable("plot", filepath.Join(dir, "new"))); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("%v %v, want nothing new", entries, err)
	}
}

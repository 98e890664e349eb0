// Package realdata finds the measurements of other people that some tests
// read: workload logs, workflow traces, bandwidth series. They are not part of
// this repository. It parses nothing, and only tests may import it.
package realdata

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/berth-hpc/berth/internal/debiantest"
)

// File returns the path of a real data file, such as
// File(t, "swf", "HPC2N-2002-2.2-cln.swf.gz"). The data folder is $BERTH_DATA,
// or ../shared/data beside the checkout where that is unset.
//
// Where there is no data folder the test is skipped with the missing file's
// name, or fails if $BERTH_REQUIRE, a list separated by commas, has "data". A
// folder that is there and lacks the file fails the test: a mistyped name must
// not pass as absent data.
func File(t testing.TB, parts ...string) string {
	t.Helper()
	folder, named := os.Getenv("BERTH_DATA"), true
	if folder == "" {
		folder, named = filepath.Join(root(t), "..", "shared", "data"), false
	}
	file := filepath.Join(append([]string{folder}, parts...)...)
	_, err := os.Stat(file)
	if err == nil {
		return file
	}
	if !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("real data: %v", err)
	}
	if _, err := os.Stat(folder); named || err == nil {
		t.Fatalf("real data: no %s in the data folder %s", filepath.Join(parts...), folder)
	}
	missing := fmt.Sprintf("real data: no %s: BERTH_DATA is unset and there is no ../shared/data", filepath.Join(parts...))
	debiantest.Absent(t, "data", missing)
	return ""
}

// root returns the folder of go.mod, at or above the test's own.
func root(t testing.TB) string {
	t.Helper()
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder
		}
		above := filepath.Dir(folder)
		if above == folder {
			t.Fatal("real data: no go.mod at or above the test's folder")
		}
		folder = above
	}
}

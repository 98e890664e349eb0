//go:build linux

package local

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A shepherd whose cores or CPUs cannot be read runs nothing: the task would run on CPUs that
// others were promised.
func TestAShepherdThatCannotReadItsCoresRunsNothing(t *testing.T) {
	for name, c := range map[string]struct{ cores, cpus, want string }{
		"cores": {"0-", "0", `"0-"`},
		"CPUs":  {"0", "zero", `"zero"`},
	} {
		dir := t.TempDir()
		ran := filepath.Join(dir, "ran")
		spec := `{"id":"1","no_cgroup":true,"task":{"Command":["touch","` + ran + `"],"Dir":"` + dir + `"}}`
		if err := os.WriteFile(filepath.Join(dir, "spec.json"), []byte(spec), 0o600); err != nil {
			t.Fatal(err)
		}
		err := keep(dir, c.cores, c.cpus)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error is %v, want one about %s", name, err, c.want)
		}
		for _, file := range []string{startedFile, "ran"} {
			if _, err := os.Stat(filepath.Join(dir, file)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s: there is a file %s, %v", name, file, err)
			}
		}
	}
}

package realdata

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// recorder notes how a test that calls File would end.
type recorder struct {
	testing.TB
	outcome string
}

func (r *recorder) Helper()           {}
func (r *recorder) Skip(args ...any)  { r.end("skip: " + fmt.Sprint(args...)) }
func (r *recorder) Fatal(args ...any) { r.end("fail: " + fmt.Sprint(args...)) }
func (r *recorder) Fatalf(format string, args ...any) {
	r.end("fail: " + fmt.Sprintf(format, args...))
}

func (r *recorder) end(outcome string) {
	r.outcome = outcome
	runtime.Goexit()
}

// outcome calls File as a test would and says how it ended.
func outcome(t *testing.T, parts ...string) string {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.outcome = "found: " + File(r, parts...)
	}()
	<-done
	return r.outcome
}

func TestFile(t *testing.T) {
	checkout := t.TempDir()
	inner := filepath.Join(checkout, "main", "a", "b")
	other := filepath.Join(checkout, "other")
	for _, folder := range []string{inner, other} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(checkout, "main", "go.mod"))
	write(t, filepath.Join(other, "log"))
	t.Chdir(inner)

	for _, c := range []struct{ name, data, require, file, want string }{
		{name: "absent", file: "log", want: "skip: real data: no log"},
		{name: "absent but required", require: "race,data", file: "log", want: "fail: real data: no log"},
		{name: "absent, something else required", require: "database", file: "log", want: "skip: "},
		{name: "named", data: other, file: "log", want: "found: " + filepath.Join(other, "log")},
		{name: "named, file missing", data: other, file: "mistyped", want: "fail: real data: no mistyped in"},
		{name: "named, folder missing", data: filepath.Join(other, "gone"), file: "log", want: "fail: real data: no log in"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("BERTH_DATA", c.data)
			t.Setenv("BERTH_REQUIRE", c.require)
			if got := outcome(t, c.file); !strings.HasPrefix(got, c.want) {
				t.Errorf("got %q, want %q…", got, c.want)
			}
		})
	}

	t.Run("beside the checkout", func(t *testing.T) {
		t.Setenv("BERTH_DATA", "")
		beside := filepath.Join(checkout, "shared", "data")
		if err := os.MkdirAll(filepath.Join(beside, "swf"), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(beside, "swf", "log"))
		if got := outcome(t, "swf", "log"); !strings.HasSuffix(got, filepath.Join("shared", "data", "swf", "log")) || !strings.HasPrefix(got, "found: ") {
			t.Errorf("got %q", got)
		}
		if got := outcome(t, "swf", "mistyped"); !strings.HasPrefix(got, "fail: ") {
			t.Errorf("a mistyped name: got %q", got)
		}
	})
}

func write(t *testing.T, file string) {
	t.Helper()
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

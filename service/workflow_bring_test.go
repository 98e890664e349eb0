package service_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
)

// runShell runs a task as a site would, and returns its exit code and its output.
func runShell(t *testing.T, task site.Task, dir string) (code int, out string) {
	t.Helper()
	args := task.Command
	if task.Script != "" {
		args = []string{"/bin/sh", "-c", task.Script}
	}
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir = dir
	text, err := cmd.CombinedOutput()
	if exit, is := errors.AsType[*exec.ExitError](err); is {
		return exit.ExitCode(), string(text)
	} else if err != nil {
		t.Fatal(err)
	}
	return 0, string(text)
}

// A task brings what another site has written before it begins, and begins with nothing else:
// whatever a link, a command or a disk does, and whatever files are called.
func TestTasksBringTheirFiles(t *testing.T) {
	for _, program := range []string{"/bin/sh", "/usr/bin/sha256sum", "/usr/bin/timeout"} {
		if _, err := os.Stat(program); err != nil {
			t.Skipf("there is no %s", program)
		}
	}
	// Each call is a line in the file calls, at the site that gets the file.
	const calls = `echo call >> ../calls; `
	command := func(script string) []string {
		return []string{"sh", "-c", calls + script, "sh", "{from}", "{to}"}
	}
	const once = `n=$(wc -l < ../calls); `
	for name, c := range map[string]struct {
		file    string // "raw.txt" unless it says otherwise
		command []string
		timeout berth.Duration
		before  func(t *testing.T, left, right string)
		code    int
		says    string
		calls   int
	}{
		"as it was written":      {command: command(`cp "$1" "$2"`), calls: 2},
		"placeholders in words":  {command: []string{"sh", "-c", calls + `cp "${1#at:}" "${2#to=}"`, "sh", "at:{from}", "to={to}"}, calls: 2},
		"odd names":              {file: `a b'c $(touch hacked) "`, command: command(`cp "$1" "$2"`), calls: 2},
		"a folder of its own":    {file: "deep/er/raw.txt", command: command(`cp "$1" "$2"`), calls: 2},
		"a byte wrong, once":     {command: command(once + `cp "$1" "$2"; [ $n -ne 2 ] || printf x >> "$2"`), says: "came with sha256 ", calls: 4},
		"a byte wrong each time": {command: command(`cp "$1" "$2"; case $1 in *sha256) ;; *) printf x >> "$2" ;; esac`), code: 120, says: ", and was written with ", calls: 6},
		"the checksum is wrong":  {command: command(`cp "$1" "$2"; case $1 in *sha256) printf x > "$2" ;; esac`), code: 120, says: "came from left as 'x", calls: 3},
		"cut off, then whole":    {command: command(once + `[ $n -ne 2 ] || { head -c 3 "$1" > "$2"; exit 11; }; cp "$1" "$2"`), says: "ended with exit code 11", calls: 4},
		"no such command":        {command: []string{"no-such-mover", "{from}", "{to}"}, code: 123, says: "the command that brings"},
		"it hangs":               {command: command(`exec sleep 60`), timeout: 1, code: 123, says: "did not end in time", calls: 3},
		"it reads what is typed": {command: command(`cat > "$2"; cp "$1" "$2"`), calls: 2},
		"the disk is full": {
			command: command(`case $1 in *sha256) cp "$1" "$2" ;; *) cat "$1" > /dev/full ;; esac`), code: 123, says: "No space left on device", calls: 6,
		},
		"it writes nothing": {command: command(`true`), code: 123, says: "raw.txt.berth-part\n", calls: 3},
		"it was there already": {
			command: command(`cp "$1" "$2"`), calls: 1,
			before: func(t *testing.T, left, right string) { copyFile(t, left, right) },
		},
		"another one was there": {
			command: command(`cp "$1" "$2"`), calls: 2,
			before: func(t *testing.T, _, right string) { writeFile(t, right, "of yesterday") },
		},
		"it was cut off there": {
			command: command(`cp "$1" "$2"`), calls: 2,
			before: func(t *testing.T, _, right string) { writeFile(t, right+".berth-part", "ha") },
		},
		"a folder": {
			command: command(`cp "$1" "$2"`), code: 123, says: "is a folder at left; only files are brought", calls: 1,
			before: func(t *testing.T, left, _ string) { writeFile(t, left+".berth-sha256", "directory\n") },
		},
		"it was lost meanwhile": {
			command: command(`cp "$1" "$2"`), code: 123, says: "No such file", calls: 6,
			before: func(t *testing.T, left, _ string) {
				if err := os.Remove(left); err != nil {
					t.Fatal(err)
				}
			},
		},
	} {
		for form, script := range map[string]bool{"command": false, "script": true} {
			t.Run(name+"/"+form, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				left, right := filepath.Join(dir, "left"), filepath.Join(dir, "right")
				for _, folder := range []string{left, right} {
					if err := os.Mkdir(folder, 0o700); err != nil {
						t.Fatal(err)
					}
				}
				file := c.file
				if file == "" {
					file = "raw.txt"
				}
				task := func(run string, args ...string) site.Task {
					if script {
						return site.Task{Script: "#!/bin/sh\nset -- '" + strings.ReplaceAll(strings.Join(args, "' '"), "'c", `'\''c`) + "'\n" + run}
					}
					return site.Task{Command: append([]string{"sh", "-c", run, "sh"}, args...)}
				}
				writer := service.WithBrought(task(`mkdir -p "$(dirname "$1")"; echo harbour > "$1"`, file), nil, []string{file}, nil, []string{file})
				if code, out := runShell(t, writer, left); code != 0 {
					t.Fatalf("the task that writes ended with %d: %s", code, out)
				}
				if c.before != nil {
					c.before(t, filepath.Join(left, file), filepath.Join(right, file))
				}
				bring := service.Bring{
					By:   service.Transfer{From: "left", To: "right", Command: c.command, Timeout: c.timeout},
					From: filepath.Join(left, file), To: filepath.Join(right, file),
				}
				reader := service.WithBrought(task(`echo ran >> ../ran; cat "$1"`, file), []string{file}, nil, []service.Bring{bring}, nil)
				code, out := runShell(t, reader, right)
				if code != c.code || !strings.Contains(out, c.says) {
					t.Errorf("exit %d: %s\nwant %d and %q", code, out, c.code, c.says)
				}
				_, err := os.Stat(filepath.Join(dir, "ran"))
				if ran := err == nil; ran != (c.code == 0) || ran && !strings.HasSuffix(out, "harbour\n") {
					t.Errorf("it ran: %t, and read %q", ran, out)
				}
				made, _ := os.ReadFile(filepath.Join(dir, "calls")) // there is none if nothing was called
				if got := strings.Count(string(made), "call\n"); got != c.calls {
					t.Errorf("%d calls of the command, want %d: %s", got, c.calls, out)
				}
				if _, err := os.Stat(filepath.Join(right, file) + ".berth-part"); err == nil {
					t.Error("something half done is left")
				}
				if c.code != 0 {
					if got, err := os.ReadFile(filepath.Join(right, file)); err == nil {
						t.Errorf("%q has the name of the file", got)
					}
				}
			})
		}
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, to, string(data))
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A file has one writer, and a task gets the file of the one that it comes after.
func TestAFileHasOneWriter(t *testing.T) {
	task := func(id, site, dir, in, out string, after ...int) berth.WorkflowTask {
		k := berth.WorkflowTask{ID: id, Site: site, Seconds: 1, After: after, Work: berth.Work{Command: []string{"x"}, Dir: dir}}
		if in != "" {
			k.Work.Inputs = []string{in}
		}
		if out != "" {
			k.Work.Outputs = []string{out}
		}
		return k
	}
	for name, c := range map[string]struct {
		tasks []berth.WorkflowTask
		says  string
	}{
		"one":                        {[]berth.WorkflowTask{task("a", "", "/d", "", "f"), task("b", "", "/d", "f", "g", 0)}, ""},
		"two":                        {[]berth.WorkflowTask{task("a", "", "/d", "", "f"), task("b", "", "/d", "", "f")}, `outputs: "f" of task "b" is written by task "a" too`},
		"two ways to say it":         {[]berth.WorkflowTask{task("a", "", "/d", "", "e/../f"), task("b", "", "/", "", "/d/f")}, `outputs: "/d/f" of task "b" is written by task "a" too`},
		"two folders":                {[]berth.WorkflowTask{task("a", "", "/d", "", "f"), task("b", "", "/e", "", "f"), task("c", "", "/e", "f", "", 0, 1)}, ""},
		"two sites, and no reader":   {[]berth.WorkflowTask{task("a", "x", "/d", "", "f"), task("b", "y", "/d", "", "f")}, ""},
		"two sites, a reader of one": {[]berth.WorkflowTask{task("a", "x", "/d", "", "f"), task("b", "y", "/d", "", "f"), task("c", "y", "/d", "f", "", 0)}, ""},
		"two sites, which of them": {
			[]berth.WorkflowTask{task("a", "x", "/d", "", "f"), task("b", "y", "/d", "", "f"), task("c", "y", "/d", "", "", 0), task("d", "y", "/d", "f", "", 1, 2)},
			`inputs: "f" of task "d" is written by task "a" and by task "b", before it`,
		},
	} {
		err := service.CheckWriters(&berth.Workflow{Tasks: c.tasks})
		if text := ""; err != nil {
			if text = err.Error(); c.says == "" || !strings.Contains(text, c.says) {
				t.Errorf("%s: %v, want %q", name, err, c.says)
			}
		} else if c.says != "" {
			t.Errorf("%s: no error, want %q", name, c.says)
		}
	}
	w := &berth.Workflow{Tasks: []berth.WorkflowTask{task("a", "x", "/d", "", "f"), task("b", "y", "/d", "", "f"), task("c", "y", "/d", "", "", 0), task("d", "y", "/d", "f", "", 2)}}
	if got := service.WritersOf(w, 3, "f"); len(got) != 1 || got[0] != 0 {
		t.Errorf("task d gets the file of %v, want that of the first", got)
	}
}

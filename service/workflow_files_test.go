package service_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
)

// A task does not begin without its inputs, and has not succeeded without its outputs, whatever
// they are called and whether it is a command or a script.
func TestTasksLookForTheirFiles(t *testing.T) {
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("there is no /bin/sh")
	}
	odd := []string{"a b'c", "-n", `$(touch hacked) "`, "berth: x"}
	for name, c := range map[string]struct {
		run             string // by a shell
		there           []string
		inputs, outputs []string
		code            int
		says            string
		ran             bool
	}{
		"all is there":        {run: "echo x > out", there: []string{"in"}, inputs: []string{"in"}, outputs: []string{"out"}, ran: true},
		"no input":            {run: "echo x > out", inputs: []string{"in"}, code: 121, says: "berth: input ./in is not there"},
		"no output":           {run: "true", outputs: []string{"out"}, code: 122, says: "berth: output ./out is not there", ran: true},
		"it fails by itself":  {run: "exit 7", outputs: []string{"out"}, code: 7, ran: true},
		"odd names":           {run: "true", there: odd, inputs: odd, outputs: odd, ran: true},
		"odd names not there": {run: "true", inputs: odd[2:], code: 121, says: "hacked"},
		"the second input":    {run: "true", there: []string{"a"}, inputs: []string{"a", "b"}, code: 121, says: "./b"},
	} {
		for _, script := range []bool{false, true} {
			dir := t.TempDir()
			for _, file := range c.there {
				if err := os.WriteFile(filepath.Join(dir, file), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			task := site.Task{Command: []string{"sh", "-c", "echo ran > ran; " + c.run}}
			if script {
				task = site.Task{Script: "#!/bin/sh\n#SBATCH --mem=7\n# it's $mine\necho ran > ran\n" + c.run}
			}
			task = service.WithFiles(task, c.inputs, c.outputs, nil, nil)
			args := task.Command
			if script {
				if !strings.HasPrefix(task.Script, "#!/bin/sh\n#SBATCH --mem=7\n") {
					t.Errorf("%s: what Slurm reads is not at the head:\n%s", name, task.Script)
				}
				args = []string{"/bin/sh", "-c", task.Script}
			}
			cmd := exec.Command(args[0], args[1:]...)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			code := 0
			if exit, is := errors.AsType[*exec.ExitError](err); is {
				code = exit.ExitCode()
			} else if err != nil {
				t.Fatal(err)
			}
			_, missing := os.Stat(filepath.Join(dir, "ran"))
			if code != c.code || !strings.Contains(string(out), c.says) || (missing == nil) != c.ran {
				t.Errorf("%s, script %t: exit %d, %q, ran %t; want %d, %q, %t", name, script, code, out, missing == nil, c.code, c.says, c.ran)
			}
			if _, err := os.Stat(filepath.Join(dir, "hacked")); err == nil {
				t.Errorf("%s: a name was run", name)
			}
		}
	}
}

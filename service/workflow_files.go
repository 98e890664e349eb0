package service

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/site"
)

// A task that names its files is run by a shell that looks for them: before it, whether all
// inputs are there, and after it has succeeded, whether all outputs are. It looks where the task
// runs, which alone is known to see them, and says in the task's output which file is missing.

// The exit codes of a task with a missing file, between those that shells use and those
// that programs do.
const (
	noInput  = 121
	noOutput = 122
)

// lookAround is that shell. Its arguments are how many inputs there are, these, how many
// outputs, these, and the command.
const lookAround = `n=$1; shift
while [ "$n" -gt 0 ]; do
	[ -e "$1" ] || { echo "berth: input $1 is not there" >&2; exit 121; }
	shift; n=$((n - 1))
done
n=$1; shift
(shift "$n"; exec "$@") || exit
while [ "$n" -gt 0 ]; do
	[ -e "$1" ] || { echo "berth: output $1 is not there" >&2; exit 122; }
	shift; n=$((n - 1))
done
`

// withFiles has a task look for its files, and bring those that are at other sites before. It
// stays as it is if it names none. Of outputs that are noted it leaves the checksums.
func withFiles(task site.Task, inputs, outputs []string, bring []brought, note []string) site.Task {
	if len(inputs)+len(outputs) == 0 {
		return task
	}
	around := before(bring) + lookAround + after(note)
	files := append([]string{strconv.Itoa(len(inputs))}, here(inputs)...)
	files = append(append(files, strconv.Itoa(len(outputs))), here(outputs)...)
	if task.Script == "" {
		command := append([]string{"/bin/sh", "-c", around, "berth"}, files...)
		task.Command = append(command, task.Command...)
		return task
	}
	// What a resource manager reads of a script stands at its head, and no line of it ends what
	// is between two lines that cannot be known before the script is written.
	sum := sha256.Sum256([]byte(task.Script))
	mark := "berth_" + hex.EncodeToString(sum[:])
	var b strings.Builder
	b.WriteString("#!/bin/sh\n")
	for line := range strings.Lines(task.Script) {
		if strings.HasPrefix(line, "#SBATCH") {
			b.WriteString(strings.TrimRight(line, "\n") + "\n")
		} else if text := strings.TrimSpace(line); text != "" && !strings.HasPrefix(text, "#") {
			break
		}
	}
	b.WriteString("script=$(mktemp) || exit 126\ntrap 'rm -f \"$script\"' EXIT\ncat > \"$script\" <<'" + mark + "'\n" + strings.TrimRight(task.Script, "\n") + "\n" + mark + "\nchmod 700 \"$script\"\nset --")
	for _, file := range files {
		b.WriteString(" " + quoted(file))
	}
	b.WriteString(" \"$script\"\n" + around)
	task.Script = b.String()
	return task
}

// here returns paths that a shell takes for nothing else.
func here(files []string) []string {
	list := make([]string, len(files))
	for i, file := range files {
		if list[i] = file; !strings.HasPrefix(file, "/") {
			list[i] = "./" + file
		}
	}
	return list
}

package service

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
)

// Files that a task needs of one at another site are brought by the task itself, before it begins:
// where it runs, as its owner, in its reservation (docs/adr/0024). So a service that is killed
// disturbs nothing, and what ends a task ends that too. A task whose files may be brought
// elsewhere leaves their checksums beside them when it has succeeded.

// Transfer says how files of tasks of workflows are brought from one site to another.
type Transfer struct {
	From, To string
	// Command is a program with its arguments, which is run at To. In its words {from} is the path
	// of the file at From, and {to} that where it is to be written.
	Command []string
	// Timeout is how long it may take for one file; 0 is no bound but the task's own.
	Timeout berth.Duration
}

// The exit codes of a task that could not bring a file, and of one that brought another file than
// was written, beside those of files that are missing.
const (
	notBrought = 123
	notSame    = 120
)

// bringTries is how often a file is brought before the task fails: what is lost on a link is
// mostly there the second time, and a task that failed may be tried again besides.
const bringTries = 3

// brought is an input that another site has.
type brought struct {
	by       *Transfer
	from, to string // absolute paths
}

// within returns an absolute path; ok is false if the folder of a relative one is not known.
func within(dir, file string) (at string, ok bool) {
	if !strings.HasPrefix(file, "/") {
		file = path.Join(dir, file)
	}
	return file, strings.HasPrefix(file, "/")
}

// bringing returns which inputs of a task that runs at a site are brought from other sites, and
// which of its outputs may be brought elsewhere. It is of the loop.
func (h *Host) bringing(f *flowCard, at int, here string) (inputs []brought, outputs []string) {
	if len(h.options.Transfers) == 0 || !f.w.IsSpread() {
		return nil, nil
	}
	work := &f.w.Tasks[at].Work
	for _, file := range work.Inputs {
		for _, i := range writersOf(f.w, at, file) {
			writer := &f.w.Tasks[i].Work
			by := h.transfer(h.core.siteOfTask(f, i), here)
			from, known := within(writer.Dir, file)
			to, here := within(work.Dir, file)
			if by != nil && known && here {
				inputs = append(inputs, brought{by, from, to})
			}
		}
	}
	if !slices.ContainsFunc(h.options.Transfers, func(t Transfer) bool { return t.From == here }) {
		return inputs, nil
	}
	for _, file := range work.Outputs {
		if slices.ContainsFunc(f.w.Tasks, func(t berth.WorkflowTask) bool { return slices.Contains(t.Work.Inputs, file) }) {
			outputs = append(outputs, file)
		}
	}
	return inputs, outputs
}

// writersOf returns the tasks that write what a task reads under a name: all that write one of that
// name, or, of several, those that it comes after.
func writersOf(w *berth.Workflow, at int, file string) (writers []int) {
	for i := range w.Tasks {
		if i != at && slices.Contains(w.Tasks[i].Work.Outputs, file) {
			writers = append(writers, i)
		}
	}
	if len(writers) < 2 {
		return writers
	}
	before, pile := make([]bool, len(w.Tasks)), []int{at}
	for len(pile) > 0 {
		i := pile[len(pile)-1]
		pile = pile[:len(pile)-1]
		for _, parent := range w.Tasks[i].After {
			if !before[parent] {
				before[parent] = true
				pile = append(pile, parent)
			}
		}
	}
	return slices.DeleteFunc(writers, func(i int) bool { return !before[i] })
}

// checkWriters returns an error about a file that two tasks write, or one that a task could get of
// two at other sites.
func checkWriters(w *berth.Workflow) error {
	written, names := map[string]int{}, map[string]int{} // by path, and how many write one of a name
	for i := range w.Tasks {
		t := &w.Tasks[i]
		for k, file := range t.Work.Outputs {
			if slices.Contains(t.Work.Outputs[:k], file) {
				continue // it says so twice
			}
			names[file]++
			at, _ := within(t.Work.Dir, file)
			if other, is := written[at]; is && (t.Site == w.Tasks[other].Site) {
				return berth.Errorf(berth.Invalid, "outputs", "%q of task %q is written by task %q too; only one task may write a file", file, t.ID, w.Tasks[other].ID)
			}
			written[at] = i
		}
	}
	if !w.IsSpread() {
		return nil
	}
	for i := range w.Tasks {
		for _, file := range w.Tasks[i].Work.Inputs {
			if names[file] < 2 {
				continue
			}
			if from := writersOf(w, i, file); len(from) > 1 {
				return berth.Errorf(berth.Invalid, "inputs", "%q of task %q is written by task %q and by task %q, before it; give one of them another name", file, w.Tasks[i].ID, w.Tasks[from[0]].ID, w.Tasks[from[1]].ID)
			}
		}
	}
	return nil
}

// route notes between which sites files of a workflow are moved, which is part of its plan where
// the sizes are known.
func (h *Host) route(w *berth.Workflow) {
	w.Routes = nil
	if !w.IsSpread() || !slices.ContainsFunc(w.Tasks, func(t berth.WorkflowTask) bool { return len(t.Reads) > 0 }) {
		return
	}
	for i := range h.options.Transfers {
		t := &h.options.Transfers[i]
		w.Routes = append(w.Routes, berth.Route{From: t.From, To: t.To})
	}
}

// transfer returns how files get from one site to another, nil if that is not said.
func (h *Host) transfer(from, to string) *Transfer {
	for i := range h.options.Transfers {
		if t := &h.options.Transfers[i]; t.From == from && t.To == to {
			return t
		}
	}
	return nil
}

// siteOfTask returns the site at which a task runs or has run, empty if that is no longer known.
func (c *Core) siteOfTask(f *flowCard, i int) string {
	k := c.card(f.tasks[i].reservation)
	if k == nil || k.promise == nil {
		return ""
	}
	return k.promise.Allotments[0].Resource.Site
}

// bringScript is what a shell runs before a task that brings files. Messages name the file as the
// task does. A file gets its name when it is whole and the right one; one that is there already
// is not brought again.
const bringScript = `berth_sum() { berth_got=$(sha256sum <"$1") || return; berth_got=${berth_got%% *}; }
berth_run() {
	berth_move "$1" "$2" </dev/null
	berth_code=$?
	case $berth_code in
	0)
		[ -e "$2" ] && return 0
		echo "berth: the command that brings $1 from $berth_site wrote no $2" >&2
		;;
	124) echo "berth: bringing $1 from $berth_site did not end in time" >&2 ;;
	126 | 127) echo "berth: the command that brings $1 from $berth_site cannot be run" >&2; exit 123 ;;
	*) echo "berth: the command that brings $1 from $berth_site ended with exit code $berth_code" >&2 ;;
	esac
	return 123
}
berth_once() {
	mkdir -p "$(dirname "$2")" || return 123
	berth_part=$2.berth-part
	berth_run "$1.berth-sha256" "$berth_part" || return
	berth_want=$(head -c 100 "$berth_part")
	rm -f "$berth_part"
	if [ "$berth_want" = directory ]; then
		echo "berth: input $1 is a folder at $berth_site; only files are brought, so have the task write an archive" >&2
		exit 123
	fi
	if [ "${#berth_want}" -ne 64 ]; then
		echo "berth: the checksum of input $1 came from $berth_site as '$berth_want'" >&2
		return 120
	fi
	[ -f "$2" ] && berth_sum "$2" && [ "$berth_got" = "$berth_want" ] && return 0
	berth_run "$1" "$berth_part" || return
	berth_sum "$berth_part" || return 123
	if [ "$berth_got" != "$berth_want" ]; then
		rm -f "$berth_part"
		echo "berth: input $1 of $berth_site came with sha256 $berth_got, and was written with $berth_want" >&2
		return 120
	fi
	mv -f "$berth_part" "$2" || return 123
}
berth_bring() {
	berth_try=1
	until berth_once "$@"; do
		berth_code=$?
		if [ "$berth_try" -ge TRIES ]; then
			rm -f "$2.berth-part"
			exit "$berth_code"
		fi
		sleep "$berth_try"
		berth_try=$((berth_try + 1))
	done
}
`

// noteScript is what it runs after a task that has succeeded, to leave checksums.
const noteScript = `berth_note() {
	if [ -d "$1" ]; then
		berth_got=directory
	else
		berth_got=$(sha256sum <"$1") || exit 123
	fi
	if ! { echo "${berth_got%% *}" >"$1.berth-part" && mv -f "$1.berth-part" "$1.berth-sha256"; }; then
		echo "berth: the checksum of output $1 cannot be written" >&2
		exit 123
	fi
}
`

// quoted returns a text as a word of a shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// before returns what a shell runs before a task, to bring its inputs.
func before(inputs []brought) string {
	if len(inputs) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(strings.ReplaceAll(bringScript, "TRIES", strconv.Itoa(bringTries)))
	for i := range inputs {
		in := &inputs[i]
		b.WriteString("berth_move() {")
		if in.by.Timeout > 0 {
			fmt.Fprintf(&b, " timeout -k 5 %d", in.by.Timeout)
		}
		for _, word := range in.by.Command {
			word = strings.NewReplacer("{from}", `'"$1"'`, "{to}", `'"$2"'`).Replace(strings.ReplaceAll(word, "'", `'\''`))
			b.WriteString(" '" + word + "'")
		}
		fmt.Fprintf(&b, "; }\nberth_site=%s\nberth_bring %s %s\n", quoted(in.by.From), quoted(in.from), quoted(in.to))
	}
	return b.String()
}

// after returns what a shell runs after a task that has succeeded, to leave the checksums of
// outputs.
func after(outputs []string) string {
	if len(outputs) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(noteScript)
	for _, file := range here(outputs) {
		b.WriteString("berth_note " + quoted(file) + "\n")
	}
	return b.String()
}

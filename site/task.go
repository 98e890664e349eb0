package site

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
)

// Task is work to run in a reservation.
type Task struct {
	// Key names the task among those of its user in its reservation: of two with
	// the same key only one is run, where the site remembers keys. Letters, digits,
	// dashes, underscores and points.
	Key         string         `json:"key"`
	Name        string         `json:"name,omitempty"` // for people; default the key
	Reservation Name           `json:"reservation"`
	User        string         `json:"user,omitempty"`
	Account     string         `json:"account,omitempty"`
	QOS         string         `json:"qos,omitempty"`
	Partition   string         `json:"partition,omitempty"`
	Command     []string       `json:"command,omitempty"`  // program and arguments; no shell reads them
	Script      string         `json:"script,omitempty"`   // or a batch script, which begins with #!
	Args        []string       `json:"args,omitempty"`     // of the script
	Dir         string         `json:"dir"`                // absolute
	Env         []string       `json:"env,omitempty"`      // NAME=value
	Variables   Variables      `json:"variables,omitzero"` // set after Env, which they override
	Output      string         `json:"output,omitempty"`   // path for stdout; the site's default if empty
	ErrorOutput string         `json:"error_output,omitempty"`
	Array       berth.PESet    `json:"array,omitzero"`  // indices; empty is a single job
	Limit       berth.Duration `json:"limit,omitempty"` // 0 is until the end of the reservation
	Nodes       berth.Count    `json:"nodes,omitempty"` // whole ones, unless Cores says how much; 0 is the site's default
	Cores       berth.Count    `json:"cores,omitempty"` // for each task process; 0 is the site's default
	MemoryMB    int64          `json:"memory_mb,omitempty"`
}

// MaxArray bounds the indices of one array, as Slurm's default does
// (MaxArraySize 1001).
const MaxArray = 1000

// Check returns an *berth.Error of code Invalid if the task contradicts itself,
// and nil otherwise.
func (t *Task) Check() error {
	switch {
	case !ValidWord(t.Key):
		return berth.Errorf(berth.Invalid, "key", "%q; want 1 to %d letters, digits, dashes, underscores and points", t.Key, maxWord)
	case !ValidWord(string(t.Reservation)):
		return berth.Errorf(berth.Invalid, "reservation", "%q is no reservation's name", t.Reservation)
	case (len(t.Command) == 0) == (t.Script == ""):
		return berth.Errorf(berth.Invalid, "command", "want either a command or a script")
	case t.Script != "" && !strings.HasPrefix(t.Script, "#!"):
		return berth.Errorf(berth.Invalid, "script", "begins with %.20q; want a first line such as #!/bin/sh", t.Script)
	case len(t.Command) > 0 && len(t.Args) > 0:
		return berth.Errorf(berth.Invalid, "args", "are for scripts; a command has its own")
	case !strings.HasPrefix(t.Dir, "/"):
		return berth.Errorf(berth.Invalid, "dir", "%q; want an absolute path", t.Dir)
	case t.Array.Count() > MaxArray || t.Array.Max() > MaxArray:
		return berth.Errorf(berth.Invalid, "array", "%s; want at most %d indices, up to %d", t.Array, MaxArray, MaxArray)
	case t.Limit < 0 || t.Limit >= berth.TimeLimit || t.Nodes < 0 || t.Cores < 0 || t.MemoryMB < 0:
		return berth.Errorf(berth.Invalid, "limit", "limit, nodes, cores and memory want 0 or more")
	}
	if t.User != "" && !ValidUser(t.User) {
		return berth.Errorf(berth.Invalid, "user", "%q; %s", t.User, UserForm)
	}
	for _, word := range []struct{ field, text string }{{"account", t.Account}, {"qos", t.QOS}, {"partition", t.Partition}} {
		if word.text != "" && !ValidWord(word.text) {
			return berth.Errorf(berth.Invalid, word.field, "%q; want a name of letters, digits, dashes, underscores and points", word.text)
		}
	}
	return t.checkText()
}

// TaskKey identifies a task at a site: the same key of another user or in another
// reservation is another task.
type TaskKey struct {
	User    string
	Promise string // the reservation without its generation
	Key     string
}

// KeyAt returns what identifies a task of a user at a site.
func (t *Task) KeyAt(siteName, user string) TaskKey {
	promise, _, ours := t.Reservation.Promise(siteName)
	if !ours {
		promise = string(t.Reservation)
	}
	return TaskKey{User: user, Promise: promise, Key: t.Key}
}

// Digest returns 128 bits of a SHA-256 over what the task does, as 32 hexadecimal
// digits: every field but the key, the user, the reservation and the variables. A
// task that is submitted again has the same digest, also after its reservation was
// changed. Cost: O(size of the task).
func (t *Task) Digest() string {
	work := *t
	work.Key, work.User, work.Reservation, work.Variables = "", "", "", Variables{}
	text, err := json.Marshal(&work)
	if err != nil {
		panic("site: a task cannot be written: " + err.Error())
	}
	const bits128 = 16
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:bits128])
}

// ErrKeyTaken returns the error about a key under which another task was
// submitted: an *berth.Error of code Conflict and field key.
func ErrKeyTaken(key string) error {
	return berth.Errorf(berth.Conflict, "key", "%q was used for another task in this reservation; use a new key", key)
}

// Environment returns Env followed by the variables. The slice is new.
func (t *Task) Environment() []string {
	return append(slices.Clone(t.Env), t.Variables.Env()...)
}

// checkText refuses what cannot be handed to a program at all.
func (t *Task) checkText() error {
	for _, text := range slices.Concat(t.Command, t.Args, t.Env, []string{t.Dir, t.Output, t.ErrorOutput, t.Name}) {
		if strings.ContainsRune(text, 0) {
			return berth.Errorf(berth.Invalid, "command", "%q holds a zero byte", text)
		}
	}
	if strings.ContainsAny(t.Name, "\n\r") {
		return berth.Errorf(berth.Invalid, "name", "%q; want one line", t.Name)
	}
	for _, e := range t.Env {
		if name, _, ok := strings.Cut(e, "="); !ok || name == "" {
			return berth.Errorf(berth.Invalid, "env", "%q; want NAME=value", e)
		}
	}
	return nil
}

// Variables is what a task learns about its reservation from its environment,
// beside what the resource manager sets. Empty fields are left out.
type Variables struct {
	ID          string     `json:"id,omitempty"` // of the promise, as the user knows it
	Site        string     `json:"site,omitempty"`
	Reservation Name       `json:"reservation,omitempty"`
	Start       berth.Time `json:"start,omitempty"`
	End         berth.Time `json:"end,omitempty"`
	Deadline    berth.Time `json:"deadline,omitempty"`
	Workflow    string     `json:"workflow,omitempty"`
	Task        string     `json:"task,omitempty"`
	Nodes       string     `json:"nodes,omitempty"` // as a node list
}

// Env returns the variables as NAME=value in a fixed order. Times are Unix
// seconds.
func (v *Variables) Env() []string {
	var env []string
	add := func(name, value string) {
		if value != "" {
			env = append(env, "BERTH_"+name+"="+value)
		}
	}
	seconds := func(name string, t berth.Time) {
		if t != 0 {
			add(name, strconv.FormatInt(int64(t), 10))
		}
	}
	add("RESERVATION_ID", v.ID)
	add("RESERVATION", string(v.Reservation))
	add("SITE", v.Site)
	seconds("START", v.Start)
	seconds("END", v.End)
	seconds("DEADLINE", v.Deadline)
	add("WORKFLOW_ID", v.Workflow)
	add("TASK_ID", v.Task)
	add("NODELIST", v.Nodes)
	return env
}

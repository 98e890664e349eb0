//go:build linux

package local

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

// Shepherd is the whole of the hidden command that keeps a task; args are those
// behind the command's name. It returns the exit code. Only this package
// calls the command.
func Shepherd(args []string) int {
	var err error
	switch {
	case len(args) == 4 && args[0] == "keep":
		err = keep(args[1], args[2], args[3])
	case len(args) == 1 && args[0] == "become":
		err = become()
	default:
		err = fmt.Errorf("%q; this command is for Berth itself", args)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "berth shepherd:", err)
		return 1
	}
	return 0
}

// shepherd keeps one task from its start to its end.
type shepherd struct {
	dir     string
	spec    spec
	started started
	limit   berth.Time
	told    time.Time   // by the site
	heard   time.Time   // when that was, by a clock that only goes on
	cause   site.Ending // why it is being ended; empty if it is not
}

// keep runs the task of a job's folder on the cores, which are the CPUs given.
// That it keeps the job shows in the lock, for as long as it lives.
func keep(dir, coresText, cpusText string) error {
	lock, err := lockFile(filepath.Join(dir, lockName))
	if errors.Is(err, errLocked) {
		sayReady() // another shepherd keeps it, which is as well
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = unlockFile(lock) }()
	for _, file := range []string{startedFile, endedFile} {
		if _, err := os.Stat(filepath.Join(dir, file)); !errors.Is(err, os.ErrNotExist) {
			sayReady() // it was kept before, and is not run twice
			return nil
		}
	}
	s := &shepherd{dir: dir}
	if err := readJSON(filepath.Join(dir, "spec.json"), &s.spec); err != nil {
		return err
	}
	if s.spec.Apart {
		script, err := os.ReadFile(filepath.Join(dir, scriptFile))
		if err != nil {
			return err
		}
		s.spec.Task.Script = string(script)
	}
	cores, err := berth.ParsePESet(coresText)
	if err != nil {
		return err
	}
	cpus, err := parseCPUs(cpusText)
	if err != nil {
		return err
	}
	// What the task leaves behind becomes a child of this process.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become subreaper: %w", err)
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, signalCancel, signalLimit)
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT)

	me, err := identify(os.Getpid())
	if err != nil {
		return err
	}
	// The name of a group must be one of its own on this machine, not just at this site.
	group := fmt.Sprintf("%s-%d-%d", s.spec.ID, me.PID, me.Start)
	s.readLimit()
	s.started = started{At: s.now(), Shepherd: me, Cores: cores}
	if !s.spec.NoCgroup {
		s.started.Cgroup = findCgroups().make(group, s.spec.Task.MemoryMB)
	}
	if err := writeJSON(filepath.Join(dir, startedFile), &s.started); err != nil {
		return err
	}
	sayReady()
	result, reason := s.run(cpus, signals)
	s.clear()
	return writeEnd(dir, &ended{At: s.now(), Result: result, Reason: reason})
}

// rewriteEvery is how long a shepherd waits before it tries again to write down how its task ended.
const rewriteEvery = time.Second

// writeEnd writes down how a task ended. No one else knows: while the disk is full the shepherd stays.
func writeEnd(dir string, end *ended) error {
	for {
		err := writeJSON(filepath.Join(dir, endedFile), end)
		if _, gone := os.Stat(dir); err == nil || gone != nil {
			return err
		}
		time.Sleep(rewriteEvery) // no signal says that there is room again
	}
}

// sayReady tells the site that the job is kept. The site may be gone.
func sayReady() {
	const readyFD = 3
	ready := os.NewFile(readyFD, "ready")
	_, _ = ready.Write([]byte{1})
	_ = ready.Close()
}

func parseCPUs(text string) ([]int, error) {
	var cpus []int
	for field := range strings.SplitSeq(text, ",") {
		cpu, err := strconv.Atoi(field)
		if err != nil {
			return nil, err
		}
		cpus = append(cpus, cpu)
	}
	return cpus, nil
}

// orders is what the second stage needs; it is read by the user's process, so it
// holds nothing that is not the user's.
type orders struct {
	Argv   []string `json:"argv"`
	Script string   `json:"script,omitempty"` // argv[0] is then its name
	Env    []string `json:"env"`
	Dir    string   `json:"dir"`
	Stdout string   `json:"stdout"`
	Stderr string   `json:"stderr"`
	CPUs   []int    `json:"cpus"`
	Umask  int      `json:"umask"`
}

func (s *shepherd) orders(cpus []int) orders {
	t := &s.spec.Task
	o := orders{Argv: t.Command, Script: t.Script, Env: t.Environment(), Dir: t.Dir, Stdout: s.spec.output(), Stderr: s.spec.errorOutput(), CPUs: cpus, Umask: cmp.Or(s.spec.Umask, defaultUmask)}
	if o.Script != "" {
		name := t.Name
		if name == "" {
			name = t.Key
		}
		o.Argv = append([]string{name}, t.Args...)
	}
	o.Env = append(o.Env, "BERTH_JOB_ID="+string(s.spec.ID), "BERTH_CORES="+s.started.Cores.String())
	if s.spec.Index >= 0 {
		o.Env = append(o.Env, "BERTH_ARRAY_JOB_ID="+string(s.spec.Array), "BERTH_ARRAY_TASK_ID="+strconv.Itoa(s.spec.Index))
	}
	return o
}

// expand puts the job's id for %j, that of its array for %A and its index for
// %a, as sbatch does.
func (s *spec) expand(path string) string {
	array, index := s.ID, ""
	if s.Index >= 0 {
		array, index = s.Array, strconv.Itoa(s.Index)
	}
	return strings.NewReplacer("%%", "%", "%j", string(s.ID), "%A", string(array), "%a", index).Replace(path)
}

// output returns the absolute path of the job's standard output.
func (s *spec) output() string { return s.inDir(cmp.Or(s.Task.Output, "berth-%j.out")) }

// errorOutput returns that of its standard error, empty if both are one.
func (s *spec) errorOutput() string {
	if s.Task.ErrorOutput == "" {
		return ""
	}
	return s.inDir(s.Task.ErrorOutput)
}

func (s *spec) inDir(path string) string {
	if path = s.expand(path); filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(s.Task.Dir, path)
}

// run runs the task to its end and returns how it ended.
func (s *shepherd) run(cpus []int, signals <-chan os.Signal) (site.Result, string) {
	cmd, failed, err := s.begin(cpus)
	if err != nil {
		return site.Result{Ending: site.Failed, Code: 126}, err.Error()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // how it ended is in its state
	}()
	timer := time.NewTimer(s.left())
	defer timer.Stop()
	for {
		select {
		case <-done:
			return s.result(cmd.ProcessState, failed)
		case sig := <-signals:
			if sig == signalLimit {
				s.readLimit()
			} else if s.cause == "" {
				s.end(cmd.Process.Pid, site.Cancelled)
			}
			if s.cause == "" {
				timer.Reset(s.left())
			} else if sig != signalLimit {
				timer.Reset(s.grace())
			}
		case <-timer.C:
			if s.cause == "" {
				s.end(cmd.Process.Pid, site.TimedOut)
				timer.Reset(s.grace())
				continue
			}
			_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) // it may have ended meanwhile
		}
	}
}

func (s *shepherd) grace() time.Duration { return time.Duration(s.spec.Grace) * time.Millisecond }

func (s *shepherd) readLimit() {
	j := job{dir: s.dir, limit: berth.Forever}
	s.told, s.heard = j.readLimit(), time.Now()
	s.limit = j.limit
}

// time is that of the site: a jump of the machine's clock ends nothing.
func (s *shepherd) time() time.Time { return s.told.Add(time.Since(s.heard)) }

func (s *shepherd) now() berth.Time { return berth.Time(s.time().Unix()) }

// left is the time until the limit.
func (s *shepherd) left() time.Duration {
	if !s.limit.Valid() {
		return 1<<63 - 1
	}
	return max(0, time.Unix(int64(s.limit), 0).Sub(s.time()))
}

// end asks the task to end.
func (s *shepherd) end(pid int, cause site.Ending) {
	s.cause = cause
	_ = unix.Kill(-pid, unix.SIGTERM) // it may have ended meanwhile
}

// begin starts the second stage as the user, in a session and group of its own,
// and returns once the task itself runs or could not be started. What failed
// is in the text.
func (s *shepherd) begin(cpus []int) (*exec.Cmd, string, error) {
	text, err := json.Marshal(s.orders(cpus))
	if err != nil {
		return nil, "", err
	}
	tell, hear, err := pipes()
	if err != nil {
		return nil, "", err
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = append(shepherdArgs(), "become")
	cmd.Env, cmd.Dir = []string{}, "/"
	cmd.ExtraFiles = []*os.File{tell.read, hear.write}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if a := s.spec.Account; a != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: a.UID, Gid: a.GID, Groups: a.Groups}
	}
	if s.started.Cgroup != "" {
		if folder, err := os.Open(s.started.Cgroup); err == nil {
			defer func() { _ = folder.Close() }() // only needed for the start
			cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(folder.Fd())
		}
	}
	err = cmd.Start()
	_ = tell.read.Close() // they are the child's now
	_ = hear.write.Close()
	if err != nil {
		return nil, "", err
	}
	if s.started.Child, err = identify(cmd.Process.Pid); err == nil {
		err = writeJSON(filepath.Join(s.dir, startedFile), &s.started)
	}
	if err == nil {
		_, err = tell.write.Write(text)
	}
	_ = tell.write.Close()
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil, "", err
	}
	failed, _ := io.ReadAll(io.LimitReader(hear.read, 4096)) // it ends when the task begins
	return cmd, strings.TrimSpace(string(failed)), nil
}

// pipe is both ends of one.
type pipe struct{ read, write *os.File }

func pipes() (tell, hear pipe, err error) {
	if tell.read, tell.write, err = os.Pipe(); err == nil {
		hear.read, hear.write, err = os.Pipe()
	}
	return tell, hear, err
}

// shepherdArgs are the arguments with which this process was called, up to the
// name of the stage.
func shepherdArgs() []string {
	const behind = 4 // keep, folder, cores, CPUs
	return append([]string{}, os.Args[:len(os.Args)-behind]...)
}

// result reads how the task ended.
func (s *shepherd) result(state *os.ProcessState, failed string) (site.Result, string) {
	status, _ := state.Sys().(syscall.WaitStatus) // always, on this system
	result := site.Result{Ending: site.Completed}
	if status.Signaled() {
		result.Signal = int(status.Signal())
	} else {
		result.Code = status.ExitStatus()
	}
	switch {
	case s.cause != "":
		result.Ending = s.cause
		failed = cmp.Or(failed, s.whyEnded())
	case result.Code != 0 || result.Signal != 0:
		result.Ending = site.Failed
	}
	return result, failed
}

// whyEnded says for people why the task was ended.
func (s *shepherd) whyEnded() string {
	switch own := s.spec.Task.Limit; {
	case s.cause == site.Cancelled:
		return "cancelled while it ran"
	case own > 0 && s.started.At.Add(own) <= s.limit:
		return fmt.Sprintf("its limit of %d s was over", own)
	}
	return "its reservation was over"
}

// strike kills everything of the task, in its cgroup and by descent, and returns
// how many processes it found.
func (s *shepherd) strike() int {
	if s.started.Cgroup != "" {
		killCgroup(s.started.Cgroup)
	}
	left := descendants(os.Getpid())
	for _, pid := range left {
		kill(pid)
	}
	return len(left)
}

// clear ends whatever the task left behind once its first process has ended:
// orphans become children of this process.
func (s *shepherd) clear() {
	for s.strike() > 0 {
		for _, pid := range children(os.Getpid()) {
			var status unix.WaitStatus
			_, _ = unix.Wait4(pid, &status, 0, nil) // it was killed, so it ends
		}
	}
	if s.started.Cgroup != "" {
		_ = os.Remove(s.started.Cgroup) // an empty folder is no harm
	}
}

func kill(pid int) { _ = unix.Kill(pid, unix.SIGKILL) } // it may have ended meanwhile

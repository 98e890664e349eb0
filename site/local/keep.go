//go:build linux

package local

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

// This file is the site's end of a shepherd: to start it, to find it again, to
// signal it, and to notice its end.

// Signals to a shepherd.
const (
	signalCancel = unix.SIGTERM
	signalLimit  = unix.SIGUSR1
)

// process names a process for good: numbers are used again, but not with the
// same start.
type process struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // in ticks since boot
	Boot  string `json:"boot"`
}

// started is who keeps a job.
type started struct {
	At       berth.Time  `json:"at"`
	Shepherd process     `json:"shepherd"`
	Child    process     `json:"child,omitzero"` // the first process of the task, and its group
	Cgroup   string      `json:"cgroup,omitempty"`
	Cores    berth.PESet `json:"cores"`
}

// ended is how a job ended.
type ended struct {
	At     berth.Time  `json:"at"`
	Result site.Result `json:"result"`
	Reason string      `json:"reason,omitempty"`
}

const (
	startedFile = "started.json"
	endedFile   = "ended.json"
	lockName    = "lock"
)

// startWithin is how long a shepherd may take to say that it has begun.
const startWithin = 20 * time.Second

// start starts the shepherd of a job and waits until it keeps it. A job that
// cannot be started has failed; where that cannot be written down either, on a full disk, it waits.
func (s *Site) start(j *job, b *booking, cores berth.PESet) {
	j.start, j.cores = s.now(), cores
	j.limit = j.limitOf(b)
	err := j.tellPlace(b)
	if err == nil {
		err = s.startShepherd(j)
	}
	if err != nil {
		if s.tryEnd(j, site.Result{Ending: site.Failed, Code: 126}, err.Error()) != nil {
			j.start, j.limit, j.cores, j.ended = 0, 0, berth.PESet{}, ended{}
			s.held = true // it is tried again when the site is asked next
		}
		return
	}
	j.stage = site.Running
	s.announce()
	s.watch(j)
}

// tellPlace has a task learn when its reservation really begins and ends: that may have
// moved since the task was handed in.
func (j *job) tellPlace(b *booking) error {
	v := &j.spec.Task.Variables
	if v.Start == 0 || v.Start == b.Start && v.End == b.End {
		return nil
	}
	v.Start, v.End = b.Start, b.End
	return writeJSON(filepath.Join(j.dir, "spec.json"), &j.spec)
}

func (s *Site) startShepherd(j *job) error {
	if err := j.writeLimit(s.clock); err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(j.dir, "shepherd.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the shepherd has its own
	ready, tell, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = ready.Close() }() // only read from
	cpus := make([]string, 0, j.cores.Count())
	for _, r := range j.cores.Runs() {
		for core := r.Lo; core < r.Hi; core++ {
			cpus = append(cpus, strconv.Itoa(s.cpus[core]))
		}
	}
	args := append(append([]string{}, s.options.Shepherd[1:]...), "keep", j.dir, j.cores.String(), strings.Join(cpus, ","))
	cmd := exec.Command(s.options.Shepherd[0], args...)
	cmd.Env, cmd.Dir = []string{}, "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{tell}
	// A session of its own: what the service's terminal does is none of its business.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	_ = tell.Close() // it is the shepherd's now
	if err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // so that it leaves no zombie; how it ended is in its files
	_ = ready.SetReadDeadline(time.Now().Add(startWithin))
	if _, err := io.ReadFull(ready, make([]byte, 1)); err != nil {
		_ = cmd.Process.Kill()
		return fmt.Errorf("the shepherd did not begin, see %s: %w", filepath.Join(j.dir, "shepherd.log"), err)
	}
	return nil
}

// recover finds out from its folder how far a job is.
func (s *Site) recover(j *job) {
	if readJSON(filepath.Join(j.dir, endedFile), &j.ended) == nil {
		var st started
		if readJSON(filepath.Join(j.dir, startedFile), &st) == nil {
			j.start, j.cores = st.At, st.Cores
		}
		s.finish(j)
		return
	}
	var st started
	if readJSON(filepath.Join(j.dir, startedFile), &st) != nil {
		return // it has not begun
	}
	j.start, j.cores = st.At, st.Cores
	j.readLimit()
	j.stage = site.Running
	s.watch(j)
}

// readLimit reads what writeLimit wrote. It returns the time of writing, the machine's if
// it was written by a program of before that was told.
func (j *job) readLimit() (written time.Time) {
	text, err := os.ReadFile(filepath.Join(j.dir, "limit"))
	if err != nil {
		return time.Now()
	}
	var limit berth.Time
	told := time.Now().UnixMilli()
	if n, _ := fmt.Sscan(string(text), &limit, &told); n > 0 {
		j.limit = limit
	}
	return time.UnixMilli(told)
}

// watch waits for the end of a job's shepherd and takes note of how the job
// ended. The caller holds the lock of the site. A panic is raised in all who ask the
// site from then on, with a *site.Panic.
func (s *Site) watch(j *job) {
	s.watchers.Go(func() {
		if p := site.Caught(func() { s.awaitEnd(j) }); p != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.panicked = p
		}
	})
}

// awaitEnd waits for the end of a job's shepherd, takes note of how the job ended and
// starts what can start then.
func (s *Site) awaitEnd(j *job) {
	if !s.awaitShepherd(j) {
		return // the site is closed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := readJSON(filepath.Join(j.dir, endedFile), &j.ended); err == nil {
		s.finish(j)
	} else {
		s.bury(j)
	}
	s.dispatch()
}

// awaitShepherd returns true when no shepherd keeps the job any more, and false
// when the site is closed.
func (s *Site) awaitShepherd(j *job) bool {
	for {
		lock, err := lockFile(filepath.Join(j.dir, lockName))
		if err == nil {
			_ = unlockFile(lock)
			return true
		}
		if !errors.Is(err, errLocked) {
			return true
		}
		var st started
		err = readJSON(filepath.Join(j.dir, startedFile), &st)
		handle := -1
		if err == nil {
			handle, err = st.Shepherd.open()
		}
		if err != nil {
			// Its lock is held, so it is about to begin or about to go.
			if !s.pause() {
				return false
			}
			continue
		}
		stopped := waitReadable(handle, s.stop)
		_ = unix.Close(handle)
		if stopped {
			return false
		}
	}
}

// pause waits a moment, and returns false if the site is closed.
func (s *Site) pause() bool {
	select {
	case <-s.closing:
		return false
	case <-time.After(10 * time.Millisecond):
		return true
	}
}

// bury ends what a shepherd that died left running.
func (s *Site) bury(j *job) {
	var st started
	if readJSON(filepath.Join(j.dir, startedFile), &st) == nil {
		if st.Cgroup != "" {
			killCgroup(st.Cgroup)
		}
		if handle, err := st.Child.open(); err == nil {
			_ = unix.Kill(-st.Child.PID, unix.SIGKILL) // its group; it may have ended meanwhile
			_ = unix.Close(handle)
		}
	}
	s.end(j, site.Result{Ending: site.NodeLost}, "its shepherd is gone")
}

// signal signals a job's shepherd, if it lives.
func (j *job) signal(sig unix.Signal) {
	var st started
	if readJSON(filepath.Join(j.dir, startedFile), &st) != nil {
		return
	}
	handle, err := st.Shepherd.open()
	if err != nil {
		return
	}
	_ = unix.PidfdSendSignal(handle, sig, nil, 0) // it may have ended meanwhile
	_ = unix.Close(handle)
}

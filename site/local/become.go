//go:build linux

package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// The files that the second stage inherits.
const (
	ordersFD = 3
	failedFD = 4
)

// Exit codes of a task that could not be started, as shells have them.
const (
	exitNotFound = 127
	exitCannot   = 126
)

// become turns this process, which is the user's, into the task. It returns only
// if that fails.
func become() error {
	// exec keeps the affinity of the thread that calls it.
	runtime.LockOSThread()
	unix.CloseOnExec(ordersFD)
	unix.CloseOnExec(failedFD)
	failed := os.NewFile(failedFD, "failed")
	text, err := io.ReadAll(os.NewFile(ordersFD, "orders"))
	var o orders
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	if err == nil {
		err = o.become()
	}
	_, _ = fmt.Fprintln(failed, err) // whom to tell that this failed
	code := exitCannot
	if errors.Is(err, fs.ErrNotExist) {
		code = exitNotFound
	}
	os.Exit(code)
	return nil
}

func (o *orders) become() error {
	var set unix.CPUSet
	for _, cpu := range o.CPUs {
		set.Set(cpu)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("bind to CPUs %v: %w", o.CPUs, err)
	}
	unix.Umask(o.Umask)
	if err := os.Chdir(o.Dir); err != nil {
		return err
	}
	if err := o.redirect(); err != nil {
		return err
	}
	path, err := o.program()
	if err != nil {
		return err
	}
	if err := unix.Exec(path, o.Argv, o.Env); err != nil {
		return fmt.Errorf("run %s: %w", o.Argv[0], err)
	}
	return nil
}

// redirect opens the outputs, as the user, in the task's folder.
func (o *orders) redirect() error {
	in, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	out, err := os.OpenFile(o.Stdout, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o666)
	if err != nil {
		return err
	}
	failures := out
	if o.Stderr != "" && o.Stderr != o.Stdout {
		if failures, err = os.OpenFile(o.Stderr, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o666); err != nil {
			return err
		}
	}
	for fd, file := range []*os.File{in, out, failures} {
		if err := unix.Dup3(int(file.Fd()), fd, 0); err != nil {
			return err
		}
	}
	return nil
}

// program returns the path of what is to run: the script, as a file without a
// name, or the command, looked up on the task's own PATH.
func (o *orders) program() (string, error) {
	if o.Script != "" {
		fd, err := unix.MemfdCreate("script", 0) // its interpreter opens it again
		if err != nil {
			return "", fmt.Errorf("make a file for the script: %w", err)
		}
		if _, err := unix.Write(fd, []byte(o.Script)); err != nil {
			return "", fmt.Errorf("write the script: %w", err)
		}
		return fmt.Sprintf("/proc/self/fd/%d", fd), nil
	}
	name := o.Argv[0]
	if strings.Contains(name, "/") {
		return name, nil
	}
	for _, e := range o.Env {
		path, isPath := strings.CutPrefix(e, "PATH=")
		if !isPath {
			continue
		}
		for _, folder := range filepath.SplitList(path) {
			candidate := filepath.Join(folder, name)
			if info, err := os.Stat(candidate); err == nil && !info.IsDir() && unix.Access(candidate, unix.X_OK) == nil {
				return candidate, nil
			}
		}
	}
	return "", fmt.Errorf("%s is not on the PATH: %w", name, fs.ErrNotExist)
}

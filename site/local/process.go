//go:build linux

package local

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// errGone is that a process has ended.
var errGone = errors.New("the process has ended")

// identify names a process that lives.
func identify(pid int) (process, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return process{}, err
	}
	start, err := startOf(pid)
	return process{PID: pid, Start: start, Boot: strings.TrimSpace(string(boot))}, err
}

// startOf returns when a process started.
func startOf(pid int) (uint64, error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, err
	}
	return parseStart(stat)
}

// parseStart reads the start from /proc/PID/stat, field 22. Before it stands the
// program's name in parentheses, which may hold anything.
func parseStart(stat []byte) (uint64, error) {
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const startField = 22 - 3 // the first here is the state, field 3
	if len(fields) <= startField {
		return 0, fmt.Errorf("%.80q has no start", stat)
	}
	return strconv.ParseUint(fields[startField], 10, 64)
}

// open returns a handle of the very process, to be closed by the caller, or
// errGone.
func (p process) open() (int, error) {
	if p.PID <= 1 {
		return -1, errGone
	}
	handle, err := unix.PidfdOpen(p.PID, 0)
	if err != nil {
		return -1, errGone
	}
	// The handle holds whatever process had the number just then.
	if now, err := identify(p.PID); err != nil || now != p {
		_ = unix.Close(handle)
		return -1, errGone
	}
	return handle, nil
}

// newStop returns a file that can be waited for together with processes.
func newStop() (*os.File, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("local site: eventfd: %w", err)
	}
	return os.NewFile(uintptr(fd), "stop"), nil
}

// signalStop makes the file readable for good.
func signalStop(stop *os.File) {
	_, _ = stop.Write([]byte{1, 0, 0, 0, 0, 0, 0, 0}) // it fails only if it is readable already
}

// waitReadable waits until the handle or stop is readable, and reports whether
// stop is.
func waitReadable(handle int, stop *os.File) bool {
	fds := []unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}, {Fd: int32(stop.Fd()), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, -1)
		if err == nil && n > 0 {
			return fds[1].Revents != 0
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return false
		}
	}
}

// children returns the children of a process that live or wait to be reaped.
func children(pid int) []int {
	var found []int
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid)) // a process that is gone has no children
	for _, task := range tasks {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
		for field := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				found = append(found, child)
			}
		}
	}
	return found
}

// descendants returns the children of a process, theirs, and so on.
func descendants(pid int) []int {
	var all []int
	for _, child := range children(pid) {
		all = append(append(all, child), descendants(child)...)
	}
	return all
}

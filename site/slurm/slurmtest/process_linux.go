package slurmtest

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// ofDaemon makes a daemon a session of its own that ends with this process: with the thread that started
// it, to be exact, so no thread may end before the process does (a goroutine that is locked to one and ends
// takes it along, and all that others have started there).
func ofDaemon() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: true}
}

// nobody is a user without rights, on this machine and in Slurm.
const nobody = 65534

// asNobody is ofDaemon without the rights of root, if this is root.
func asNobody() *syscall.SysProcAttr {
	as := ofDaemon()
	if os.Getuid() == 0 {
		as.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	return as
}

// ofNobody gives a folder to that user.
func ofNobody(folder string) error {
	if os.Getuid() != 0 {
		return nil
	}
	return os.Chown(folder, nobody, nobody)
}

// runs reports whether a child has not ended.
func runs(pid int) bool {
	var status syscall.WaitStatus
	done, err := syscall.Wait4(pid, &status, syscall.WNOHANG|syscall.WALL, nil)
	return err == nil && done == 0
}

// suspend stops a process and reports whether it stands still. resume lets it go on.
func suspend(p *os.Process) bool {
	if p.Signal(syscall.SIGSTOP) != nil {
		return false
	}
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid))
		if _, behind, _ := strings.Cut(string(text), ") "); err != nil || strings.HasPrefix(behind, "T") { // behind the name of the program
			return err == nil
		}
	}
	return false
}

func resume(p *os.Process) { _ = p.Signal(syscall.SIGCONT) } // it may be gone

//go:build unix

package slurm

import (
	"os/exec"
	"syscall"
)

// Credential is a user and their groups.
type Credential = syscall.Credential

// runAs makes a command run as another user; nil is that of this process.
func runAs(cmd *exec.Cmd, as *Credential) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	return nil
}

func credential(uid, gid uint32, groups []uint32) *Credential {
	return &Credential{Uid: uid, Gid: gid, Groups: groups}
}

//go:build !unix

package slurm

import (
	"errors"
	"os/exec"
)

// Credential is a user and their groups.
type Credential struct{ Uid, Gid uint32 } //nolint:revive // the names of package syscall

// runAs refuses to run a command as another user than that of this process.
func runAs(_ *exec.Cmd, as *Credential) error {
	if as != nil {
		return errors.New("this system cannot run a command as another user")
	}
	return nil
}

func credential(uid, gid uint32, _ []uint32) *Credential { return &Credential{Uid: uid, Gid: gid} }

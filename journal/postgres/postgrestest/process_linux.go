package postgrestest

import (
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// ordinary returns the user that the server runs as where this is root, which it refuses.
func ordinary() (*account, error) {
	if os.Getuid() != 0 {
		return nil, nil //nolint:nilnil // it runs as who runs the tests
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, &Absent{err.Error()}
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &account{uint32(uid), uint32(gid)}, nil
}

// attributes returns those of a process of the server: its user's, in a session of its
// own, which ends with this process.
func (s *Server) attributes() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if s.user != nil {
		a.Credential = &syscall.Credential{Uid: s.user.uid, Gid: s.user.gid}
	}
	return a
}

package identity

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

const hasPeers = true

// peer returns the user of the process that has connected, as the kernel noted it then.
func peer(conn *net.UnixConn) (uid uint32, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var asked error
	err = raw.Control(func(fd uintptr) {
		cred, asked = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err = errors.Join(err, asked); err != nil {
		return 0, err
	}
	return cred.Uid, nil
}

//go:build !linux

package identity

import (
	"errors"
	"net"
)

const hasPeers = false

func peer(*net.UnixConn) (uint32, error) { return 0, errors.ErrUnsupported }

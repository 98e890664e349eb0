package identity

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"syscall"

	"github.com/berth-hpc/berth"
)

// socketMode lets every user of the machine connect: who they are is asked of the kernel.
const socketMode = 0o666

// maxSocketPath is the longest path that a Unix socket can have.
const maxSocketPath = 107

type peerKey struct{}

// WithPeer returns a context of a connection whose other end is a process of that user.
func WithPeer(ctx context.Context, uid uint32) context.Context {
	return context.WithValue(ctx, peerKey{}, uid)
}

// OverSocket reports whether a request came over a Unix socket, and so from this machine.
func OverSocket(ctx context.Context) bool {
	_, is := peerOf(ctx)
	return is
}

func peerOf(ctx context.Context) (uid uint32, is bool) {
	uid, is = ctx.Value(peerKey{}).(uint32)
	return uid, is
}

// ConnContext notes whose process is at the other end of a connection over a Unix socket, for the field
// of the same name of an http.Server.
func ConnContext(ctx context.Context, conn net.Conn) context.Context {
	if unix, is := conn.(*net.UnixConn); is {
		if uid, err := peer(unix); err == nil {
			return WithPeer(ctx, uid)
		}
	}
	return ctx
}

// Listen listens on a Unix socket to which every user of the machine may connect. What a service that
// was killed has left there is replaced. Errors: Conflict if another process listens there, Invalid if
// nothing can.
func Listen(ctx context.Context, path string) (net.Listener, error) {
	switch {
	case !hasPeers:
		return nil, berth.Errorf(berth.Invalid, "socket", "this system does not tell who is at the other end of a socket; Linux does")
	case len(path) > maxSocketPath:
		return nil, berth.Errorf(berth.Invalid, "socket", "%s: %d bytes; a path of a Unix socket has at most %d", path, len(path), maxSocketPath)
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, berth.Errorf(berth.Invalid, "socket", "%v", err)
	case info.Mode().Type() != fs.ModeSocket:
		return nil, berth.Errorf(berth.Invalid, "socket", "%s: there is something else than a socket; want a path that is free", path)
	default:
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
		if err == nil {
			_ = conn.Close()
			return nil, berth.Errorf(berth.Conflict, "socket", "%s: another process listens there; stop it, or give another path", path)
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return nil, berth.Errorf(berth.Invalid, "socket", "%v", err)
		}
		if err := os.Remove(path); err != nil {
			return nil, berth.Errorf(berth.Invalid, "socket", "%v", err)
		}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, berth.Errorf(berth.Invalid, "socket", "%v", err)
	}
	if err := os.Chmod(path, socketMode); err != nil {
		_ = listener.Close()
		return nil, berth.Errorf(berth.Invalid, "socket", "%v", err)
	}
	return listener, nil
}

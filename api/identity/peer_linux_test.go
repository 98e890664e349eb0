package identity_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/identity"
)

func TestListen(t *testing.T) {
	dir, err := os.MkdirTemp("", "s") // a short path
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "berth.sock")
	listener, err := identity.Listen(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o666 {
		t.Error(info, err)
	}
	code := func(path string) (berth.Code, string) {
		l, err := identity.Listen(t.Context(), path)
		if err == nil {
			_ = l.Close()
		}
		if e, is := errors.AsType[*berth.Error](err); is {
			return e.Code, e.Msg
		}
		return "", ""
	}
	if c, text := code(path); c != berth.Conflict || !strings.Contains(text, "another process listens there") {
		t.Error(c, text)
	}
	server := &http.Server{ConnContext: identity.ConnContext, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if identity.OverSocket(r.Context()) {
			_, _ = io.WriteString(w, "known")
		}
	})}
	go func() { _ = server.Serve(listener) }() // it ends with Close
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}}
	answer, err := client.Get("http://localhost/")
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := io.ReadAll(answer.Body); string(text) != "known" {
		t.Errorf("%q", text)
	}
	_ = answer.Body.Close()
	_ = server.Close()

	// What a killed service leaves is replaced, and nothing else is.
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	_ = dead.Close()
	if c, text := code(path); c != "" {
		t.Error("what is left of a killed service:", c, text)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if c, text := code(file); c != berth.Invalid || !strings.Contains(text, "something else than a socket") {
		t.Error(c, text)
	}
	if c, text := code(filepath.Join(dir, strings.Repeat("x", 100), "s")); c != berth.Invalid || !strings.Contains(text, "at most 107") {
		t.Error(c, text)
	}
	if c, _ := code(filepath.Join(dir, "none", "s")); c != berth.Invalid {
		t.Error(c)
	}
}

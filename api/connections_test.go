package api_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/berth-hpc/berth/api"
)

// serveAt starts a server with a limit on connections and returns its address.
func serveAt(t *testing.T, most int) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := api.Server(newWorld(t, api.Options{}).Handler)
	api.Bound(server, most)
	go func() { _ = server.Serve(listener) }() // it ends with Close
	t.Cleanup(func() { _ = server.Close() })
	return listener.Addr().String()
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	return conn
}

// health asks on a connection and returns the status.
func health(conn net.Conn) (int, error) {
	if _, err := fmt.Fprint(conn, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		return 0, err
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}

func TestIdleConnectionsLockNoOneOut(t *testing.T) {
	address := serveAt(t, 4)
	first := dial(t, address)
	for range 9 { // who connect and ask nothing, as it does
		dial(t, address)
	}
	if status, err := health(dial(t, address)); status != 200 || err != nil {
		t.Errorf("behind 10 idle connections of 4 that are allowed: %d %v, want 200", status, err)
	}
	// The first is quiet for the longest time, so it is gone by now.
	if n, err := first.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection that was quiet longest reads %d bytes, %v; want it closed", n, err)
	}
}

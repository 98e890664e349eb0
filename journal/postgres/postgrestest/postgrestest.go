// Package postgrestest starts real PostgreSQL servers for tests: with data of their own,
// as an ordinary user, on a free port of loopback, and with fsync. Only tests import it.
package postgrestest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Server is a server with its own data.
type Server struct {
	dir     string
	bin     string
	port    int
	user    *account // nil for who runs the tests
	process *exec.Cmd
	ended   chan error
}

// account is a user of this machine.
type account struct{ uid, gid uint32 }

// Superuser and Role are who may do everything, and who may do what a service needs.
const (
	Superuser = "postgres"
	Role      = "berth"
)

// readyWithin is how long a server may take to start; measured are 0.2 s.
const readyWithin = 60 * time.Second

// New makes a server and starts it. Its database berth belongs to the role of that name,
// which may do nothing else. What is absent is an *Absent.
func New() (*Server, error) {
	bin, err := find()
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin}
	if s.user, err = ordinary(); err != nil {
		return nil, err
	}
	// The server's user must reach it, and the path of a socket must be short.
	if s.dir, err = os.MkdirTemp("", "berth-pg"); err != nil {
		return nil, err
	}
	if err := s.make(); err != nil {
		return nil, errors.Join(err, s.Remove())
	}
	return s, nil
}

func (s *Server) make() error {
	if s.user != nil {
		if err := os.Chown(s.dir, int(s.user.uid), int(s.user.gid)); err != nil {
			return err
		}
	}
	if err := s.run("initdb", "-D", s.data(), "-A", "trust", "-U", Superuser, "--no-sync", "--locale=C", "-E", "UTF8"); err != nil {
		return err
	}
	if err := s.Start(); err != nil {
		return err
	}
	for _, text := range []string{
		"CREATE ROLE " + Role + " LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE", "CREATE DATABASE berth OWNER " + Role,
	} {
		if err := s.run("psql", "-h", "127.0.0.1", "-p", strconv.Itoa(s.port), "-U", Superuser, "-v", "ON_ERROR_STOP=1", "-c", text); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// Log returns what the server has said.
func (s *Server) Log() string {
	text, err := os.ReadFile(filepath.Join(s.dir, "log"))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// URL returns the address of a journal in a schema, for the role.
func (s *Server) URL(schema string) string {
	u := url.URL{Scheme: "postgres", User: url.User(Role), Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)), Path: "/berth"}
	q := url.Values{"sslmode": {"disable"}}
	if schema != "" {
		q.Set("search_path", schema)
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// Configure adds a line to the configuration, which counts from the next start on.
func (s *Server) Configure(line string) error {
	f, err := os.OpenFile(filepath.Join(s.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

// Start starts the server, on the port that it had before if it had one, and returns when
// it answers.
func (s *Server) Start() error {
	const attempts = 3 // a port that was free a moment ago may be taken by then
	fixed := s.port != 0
	for attempt := 1; ; attempt++ {
		if !fixed {
			port, err := freePort()
			if err != nil {
				return err
			}
			s.port = port
		}
		err := s.start()
		if err == nil || fixed || attempt == attempts {
			return err
		}
	}
}

func (s *Server) start() error {
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the server has its own
	s.process = exec.Command(filepath.Join(s.bin, "postgres"), "-D", s.data(), "-p", strconv.Itoa(s.port),
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="+s.dir, "-c", "max_connections=50")
	s.process.Dir, s.process.Stdout, s.process.Stderr = s.dir, log, log
	s.process.Env = append(os.Environ(), "LC_ALL=C")
	s.process.SysProcAttr = s.attributes()
	if err := s.process.Start(); err != nil {
		return err
	}
	s.ended = make(chan error, 1)
	go func(p *exec.Cmd, ended chan<- error) { ended <- p.Wait() }(s.process, s.ended)
	return s.answers()
}

// answers waits until the server does, or has ended.
func (s *Server) answers() error {
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	for {
		if s.run("pg_isready", "-q", "-h", "127.0.0.1", "-p", strconv.Itoa(s.port), "-U", Superuser) == nil {
			return nil
		}
		select {
		case err := <-s.ended:
			s.ended <- err
			return fmt.Errorf("the server has ended: %w\n%s", err, s.Log())
		case <-ctx.Done():
			return fmt.Errorf("the server does not answer:\n%s", s.Log())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Stop ends the server with pg_ctl, in a mode of it: smart, fast or immediate.
func (s *Server) Stop(mode string) error {
	if err := s.run("pg_ctl", "-D", s.data(), "-m", mode, "-w", "stop"); err != nil {
		return err
	}
	return s.wait()
}

// Kill ends the server with SIGKILL, as if its machine had gone; its processes end as soon
// as they find out.
func (s *Server) Kill() error {
	if err := s.process.Process.Kill(); err != nil {
		return err
	}
	return s.wait()
}

// wait waits until the server has ended and left nothing that keeps another one from starting.
func (s *Server) wait() error {
	select {
	case <-s.ended: //nolint:errcheck // how it ended was its killer's choice
	case <-time.After(readyWithin):
		return errors.New("the server does not end")
	}
	s.process = nil
	for range 500 { // processes of a server that was killed still hold its memory for a moment
		if !s.held() {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return errors.New("processes of the server do not end")
}

// held reports whether a process of the server lives still.
func (s *Server) held() bool {
	found, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, at := range found {
		if to, err := os.Readlink(at); err == nil && to == s.data() {
			return true
		}
	}
	return false
}

// Remove ends the server and removes its data.
func (s *Server) Remove() error {
	var err error
	if s.process != nil && s.running() {
		err = s.Kill()
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

func (s *Server) running() bool {
	select {
	case err := <-s.ended:
		s.ended <- err
		return false
	default:
		return true
	}
}

// run runs a program of the server as its user.
func (s *Server) run(program string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, program), args...)
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), "LC_ALL=C", "PGDATABASE=postgres")
	cmd.SysProcAttr = s.attributes()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is there at once
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }() // nothing was sent
	return l.Addr().(*net.TCPAddr).Port, nil
}

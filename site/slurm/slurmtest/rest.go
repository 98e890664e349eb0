package slurmtest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// tokenSeconds is how long tokens last: longer than any test.
const tokenSeconds = "86400"

// configureREST makes the key of tokens and returns what slurm.conf says of it.
func (c *Cluster) configureREST() (string, error) {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	if err := os.WriteFile(c.path("etc/jwt.key"), key, 0o600); err != nil {
		return "", err
	}
	ports, err := freePorts(1)
	if err != nil {
		return "", err
	}
	c.rest = ports[0]
	return fmt.Sprintf("AuthAltTypes=auth/jwt\nAuthAltParameters=jwt_key=%s\n", c.path("etc/jwt.key")), nil
}

// startREST starts slurmrestd, which refuses to run as root or SlurmUser, and writes a token of this user.
func (c *Cluster) startREST() error {
	me, err := user.Current()
	if err != nil {
		return err
	}
	if err := c.WriteToken(me.Username); err != nil {
		return err
	}
	return c.StartREST()
}

// WriteToken writes a token of a user to Token.
func (c *Cluster) WriteToken(name string) error {
	out, err := c.Command("scontrol", "token", "username="+name, "lifespan="+tokenSeconds)
	if err != nil || !strings.Contains(out, "SLURM_JWT=") {
		return fmt.Errorf("scontrol token: %w: %s", err, out)
	}
	return os.WriteFile(c.Token(), []byte(out), 0o600)
}

// Token is the path of the file with the token.
func (c *Cluster) Token() string { return c.path("run/token") }

// REST is the address of slurmrestd.
func (c *Cluster) REST() string { return "http://" + c.restAt() }

// Socket is the address of slurmrestd at a Unix socket, at which it wants a token too.
func (c *Cluster) Socket() string { return "unix://" + c.path("rest/socket") }

func (c *Cluster) restAt() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(c.rest)) }

// StartREST starts slurmrestd and waits until it listens.
func (c *Cluster) StartREST() error {
	const name = "slurmrestd"
	// With all that it has it will not start if there is no accounting.
	plugins := "openapi/v0.0.36,openapi/v0.0.37,openapi/v0.0.38"
	if version, err := c.Command("scontrol", "--version"); err != nil || !strings.Contains(version, " 22.") {
		plugins = "slurmctld"
	}
	socket := strings.TrimPrefix(c.Socket(), "unix://")
	if err := errors.Join(os.MkdirAll(filepath.Dir(socket), 0o755), ofNobody(filepath.Dir(socket))); err != nil {
		return err
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) { // of one that was killed
		return err
	}
	args := []string{"-a", "rest_auth/jwt", "-s", plugins, "unix:" + socket}
	// Each question brings its token. Without this slurmrestd would bring munge's.
	if err := c.runAs(asNobody(), []string{"SLURM_JWT=daemon"}, name, name, append(args, c.restAt())...); err != nil {
		return err
	}
	if !c.eventually(func() bool { return answers(c.restAt()) || !c.alive(name) }) || !c.alive(name) {
		return errors.New("slurmrestd does not answer")
	}
	return nil
}

// KillREST kills slurmrestd.
func (c *Cluster) KillREST() { c.kill("slurmrestd", syscall.SIGKILL) }

package slurm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/berth-hpc/berth/site"
)

// Command is a program to run with its whole environment.
type Command struct {
	Argv  []string
	Env   []string
	Stdin []byte
	Extra []byte // what it can read from its file 3, if there is anything
	Dir   string
	// Take is given what the program writes to its output as it comes, by an Exec that can; Result.Stdout is
	// empty then. nil is not given anything.
	Take func(p []byte)
}

// Result is what a program left behind that ran to its end.
type Result struct {
	Stdout, Stderr string
	Exit           int
	CPU            time.Duration // that it has used, where that is known
}

// Exec runs commands, several at once. It returns an error if the program did not run to its
// end, for want of the program, of time, or because it wrote too much.
type Exec interface {
	Run(ctx context.Context, c Command) (Result, error)
}

// Host runs commands on this machine. The zero value runs them as the process's
// own user; As needs root.
type Host struct {
	As *Credential
	// Most is how many bytes a command may write; 0 is 256 MiB.
	Most int
}

// Bounds on what a command may write: a queue of 10,000 jobs is 35 MB of JSON.
const (
	maxStdout = 256 << 20
	maxStderr = 64 << 10
)

// Run runs a command.
func (h Host) Run(ctx context.Context, c Command) (Result, error) {
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Env, cmd.Dir = c.Env, c.Dir
	if len(c.Stdin) > 0 {
		stdin, err := h.file(c.Stdin)
		if err != nil {
			return Result{}, err
		}
		defer func() { _ = stdin.Close() }() // nothing was written to it since
		cmd.Stdin = stdin
	}
	if len(c.Extra) > 0 {
		extra, err := h.file(c.Extra)
		if err != nil {
			return Result{}, err
		}
		defer func() { _ = extra.Close() }() // nothing was written to it since
		cmd.ExtraFiles = []*os.File{extra}
	}
	stdout, stderr := &bounded{room: cmp.Or(h.Most, maxStdout), to: c.Take}, &bounded{room: maxStderr, cut: true}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if err := runAs(cmd, h.As); err != nil {
		return Result{}, err
	}
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	result := Result{Stdout: stdout.String(), Stderr: stderr.String()}
	if cmd.ProcessState != nil {
		result.CPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	var exit *exec.ExitError
	switch {
	case stdout.over: // whatever it did when it was no longer read
		return result, fmt.Errorf("wrote more than %d bytes", stdout.room)
	case ctx.Err() != nil:
		return result, ctx.Err()
	case errors.As(err, &exit) && exit.Exited():
		result.Exit = exit.ExitCode()
		return result, nil
	}
	return result, err
}

// file returns an open file without a name that holds the text and belongs to
// the user that the command runs as, who can so open /dev/stdin.
func (h Host) file(text []byte) (*os.File, error) {
	file, err := os.CreateTemp("", "berth-stdin-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(file.Name()) }() // it stays open
	if h.As != nil {
		err = file.Chown(int(h.As.Uid), int(h.As.Gid))
	}
	if err == nil {
		_, err = file.Write(text)
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = file.Close() // the first failure is the one to tell
		return nil, err
	}
	return file, nil
}

// bounded takes bytes while there is room: more is an error, or is cut off. What comes is kept in pieces, which are put together once, for a
// queue of 50,000 jobs is megabytes.
type bounded struct {
	to     func(p []byte) // is given it instead, if it is not nil
	pieces [][]byte
	size   int // of all
	room   int
	cut    bool
	over   bool // more was written
}

// Bounds on the bytes of a piece.
const (
	leastPiece = 4 << 10
	mostPiece  = 1 << 20
)

func (b *bounded) Write(p []byte) (int, error) {
	fits := b.room - b.size
	if len(p) <= fits {
		b.take(p)
		return len(p), nil
	}
	if !b.cut {
		b.over = true
		return 0, io.ErrShortBuffer
	}
	b.take(p[:fits])
	return len(p), nil
}

func (b *bounded) take(p []byte) {
	b.size += len(p)
	if b.to != nil {
		b.to(p)
		return
	}
	for len(p) > 0 {
		last := len(b.pieces) - 1
		if last < 0 || len(b.pieces[last]) == cap(b.pieces[last]) {
			b.pieces = append(b.pieces, make([]byte, 0, min(max(leastPiece, b.size), mostPiece)))
			last++
		}
		piece := b.pieces[last]
		n := min(len(p), cap(piece)-len(piece))
		b.pieces[last], p = append(piece, p[:n]...), p[n:]
	}
}

// String returns all that was taken.
func (b *bounded) String() string {
	var text strings.Builder
	text.Grow(b.size)
	for _, piece := range b.pieces {
		text.Write(piece)
	}
	return text.String()
}

// commands runs Slurm's commands.
type commands struct {
	exec    Exec
	bin     string
	env     []string
	timeout time.Duration
	spent   *atomic.Int64 // CPU time of all commands so far, in nanoseconds
}

func newCommands(o Options) commands {
	c := commands{exec: o.Exec, bin: o.Bin, timeout: o.Timeout, spent: new(atomic.Int64)}
	if c.exec == nil {
		c.exec = Host{}
	}
	if c.timeout == 0 {
		c.timeout = defaultTimeout
	}
	// Whatever else is set, such as SLURM_TIME_FORMAT or SQUEUE_FORMAT, would
	// change what the commands write.
	c.env = []string{"TZ=UTC", "LC_ALL=C", "PATH=" + os.Getenv("PATH")}
	if o.Conf != "" {
		c.env = append(c.env, "SLURM_CONF="+o.Conf)
	} else if server := os.Getenv(confServer); server != "" {
		c.env = append(c.env, confServer+"="+server)
	}
	return c
}

// confServer is the variable that tells commands without a slurm.conf which slurmctld has one for them, as
// in a configless cluster.
const confServer = "SLURM_CONF_SERVER"

// run runs one command to its end, whatever its exit code.
func (c *commands) run(ctx context.Context, op, name string, args ...string) (Result, error) {
	return c.runWith(ctx, op, Command{Argv: append([]string{name}, args...), Env: c.env})
}

func (c *commands) runWith(ctx context.Context, op string, command Command) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	name := command.Argv[0]
	if c.bin != "" && !slices.Contains([]string{"id", "getent", "sh"}, name) { // which are not Slurm's
		command.Argv[0] = filepath.Join(c.bin, name)
	}
	result, err := c.exec.Run(ctx, command)
	c.spent.Add(int64(result.CPU))
	switch {
	case err == nil:
		return result, nil
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist), errors.Is(err, os.ErrPermission):
		return result, &site.Error{
			Kind: site.Unreachable, Op: op, Msg: "cannot run " + name, Err: err,
			Hint: "install Slurm's client commands here, or say in which folder they are",
		}
	}
	msg := name + " did not end"
	if strings.TrimSpace(result.Stderr) != "" {
		msg += ", and said: " + lastLine(result.Stderr) // which may be what it waits for
	}
	return result, &unfinishedError{&site.Error{Kind: site.Unreachable, Op: op, Msg: msg, Err: err}}
}

// unfinishedError is the failure of a command that may have done what it should.
type unfinishedError struct{ cause *site.Error }

func (e *unfinishedError) Error() string { return e.cause.Error() }

func (e *unfinishedError) Unwrap() error { return e.cause }

// unfinished reports whether an error leaves open what was done.
func unfinished(err error) bool {
	var u *unfinishedError
	return errors.As(err, &u)
}

// read runs a command that only reads, and wants it to succeed.
func (c *commands) read(ctx context.Context, op, name string, args ...string) (string, error) {
	result, err := c.run(ctx, op, name, args...)
	if err != nil {
		return "", err
	}
	if result.Exit != 0 {
		return "", explain(op, name, firstLine(result))
	}
	return result.Stdout, nil
}

// firstLine returns the first line that a command wrote to stderr, else to
// stdout.
func firstLine(r Result) string {
	for _, text := range []string{r.Stderr, r.Stdout} {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" {
				return shortened(line)
			}
		}
	}
	return fmt.Sprintf("exit code %d and nothing said", r.Exit)
}

// lastLine returns the line in which a command says why it gives up: those before it say on what.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return shortened(strings.TrimSpace(lines[len(lines)-1]))
}

// mostWords is more than the longest line in which Slurm says why it refuses something.
const mostWords = 1000

// shortened cuts off a line that is too long to read.
func shortened(line string) string {
	if len(line) <= mostWords {
		return line
	}
	return strings.ToValidUTF8(line[:mostWords], "") + "…"
}

// localZone returns this machine's zone, and nothing if it cannot be told.
func localZone() string {
	if zone := os.Getenv("TZ"); zone != "" {
		return strings.TrimPrefix(zone, ":")
	}
	target, err := os.Readlink("/etc/localtime")
	if _, zone, found := strings.Cut(target, "/zoneinfo/"); err == nil && found {
		return zone
	}
	return ""
}

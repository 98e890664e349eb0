package slurm

import (
	"cmp"
	"context"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

// Client submits tasks as the user who runs it, who must be a user of the reservation.
type Client struct {
	commands
	name string
	now  func() time.Time
	// absent says that it acts for a user who is not there: what it submits is held. login
	// is what a login of theirs would set.
	absent bool
	login  []string
	umask  int
}

var _ site.Runner = (*Client)(nil)

// NewClient returns a client. It asks nothing yet.
func NewClient(o Options) *Client {
	return &Client{commands: newCommands(o), name: o.Site, now: time.Now}
}

// keyPrefix begins the comment of our jobs. The task's key follows, and after a
// colon its digest.
const keyPrefix = "berth:"

// parseComment returns the key and the digest in the comment of a job of ours; ok
// is false for other jobs. Jobs of older programs have no digest.
func parseComment(comment string) (key, digest string, ok bool) {
	rest, ours := strings.CutPrefix(strings.TrimSpace(comment), keyPrefix)
	key, digest, _ = strings.Cut(rest, ":")
	return key, digest, ours && site.ValidWord(key)
}

// wrapper runs a command that has no script of its own.
const wrapper = "#!/bin/sh\nexec \"$@\"\n"

// Submit hands a task to sbatch. Slurm remembers its key as long as the job
// (MinJobAge after its end, 300 s by default); two calls at the same moment can
// both submit it. Script lines with #SBATCH count, but not against the task.
// Slurm counts limits in minutes: a limit is rounded up, the way to the end of
// the reservation down, and is at least a minute. The task's environment is
// handed on whole, with SLURM_CONF if Options names one.
func (c *Client) Submit(ctx context.Context, task site.Task) (site.JobID, error) {
	const op = "submit"
	if err := task.Check(); err != nil {
		return "", err
	}
	if task.User != "" {
		who, err := c.read(ctx, op, "id", "-un")
		if err != nil {
			return "", err
		}
		if me := strings.TrimSpace(who); me != task.User {
			return "", site.Errorf(site.Denied, op, "the task is for user %s, and this is %s", task.User, me)
		}
	}
	if id, err := c.submitted(ctx, &task); id != "" || err != nil {
		return id, err
	}
	bookings, err := c.bookings(ctx, op)
	if err != nil {
		return "", err
	}
	b := find(bookings, string(task.Reservation))
	if b == nil {
		return "", site.Errorf(site.NotFound, op, "no reservation %s", task.Reservation)
	}
	if b.Partition == "" && task.Partition == "" {
		if b.Partition, err = c.partitionFor(ctx, op, b); err != nil {
			return "", err
		}
	}
	size, err := c.size(ctx, op, &task, b)
	if err != nil {
		return "", err
	}
	script, dir := task.Script, task.Dir
	if script == "" {
		script = wrapper
	}
	command := Command{Argv: append([]string{"sbatch"}, c.sbatchArgs(&task, b, size)...), Env: c.jobEnv(task.Environment()), Dir: dir}
	if c.absent {
		// Of an environment in a file sbatch leaves this out, and the node that opens the output needs it for %x.
		command.Env = append(command.Env, "SLURM_JOB_NAME="+cmp.Or(task.Name, task.Key))
		c.apart(&command)
		if task.Script == "" {
			script = inDir
		}
	}
	command.Stdin = []byte(script)
	result, err := c.runWith(ctx, op, command)
	if err != nil {
		return "", err
	}
	if result.Exit != 0 {
		return "", explain(op, "sbatch", firstLine(result))
	}
	return parseJobID(result.Stdout)
}

// saysSize matches a script that says itself on what it runs.
var saysSize = regexp.MustCompile(`(?m)^#SBATCH\s+(-[nNc]|--(nodes|ntasks|ntasks-per-\w+|cpus-per-\w+|exclusive|nodelist|gpus)\b)`)

// size is on what a task runs: cores are Slurm's CPUs for each process.
type size struct{ nodes, processes, cores berth.Count }

// size gives a task that does not say on what it runs all that its reservation has: whole nodes, or parts of
// one node as the processors of one process, else as a process for each core, which has all hardware threads of it.
func (c *Client) size(ctx context.Context, op string, task *site.Task, b *site.Booking) (size, error) {
	as := size{nodes: task.Nodes, cores: task.Cores}
	if task.Cores > 0 || task.Nodes > 0 && task.Nodes != berth.Count(len(b.Shares)) || !task.Array.Empty() || saysSize.MatchString(task.Script) {
		return as, nil
	}
	if b.Cores == 0 {
		as.nodes = wholeNodes(b)
		return as, nil
	}
	out, err := c.read(ctx, op, nodesCommand[0], nodesCommand[1:]...)
	if err != nil {
		return as, err
	}
	nodes, err := parseNodes(out)
	if err != nil {
		return as, odd(op, "scontrol show node", err)
	}
	var all, most berth.Count
	least := berth.Count(berth.MaxPEs)
	for i := range nodes {
		if slices.ContainsFunc(b.Shares, func(s site.Share) bool { return s.Node == nodes[i].Name }) {
			all += nodes[i].cores()
			of := max(1, berth.Count(nodes[i].CPUs)/nodes[i].cores()) // CPUs that are handed out with a core
			least, most = min(least, of), max(most, of)
		}
	}
	switch {
	case b.Cores >= all:
		as.nodes = wholeNodes(b)
	case len(b.Shares) == 1:
		as.nodes, as.cores = 1, b.Cores*max(1, most)
	default:
		as.nodes, as.processes = 0, b.Cores
		if least == most && most > 1 { // where nodes differ no number is right for all
			as.cores = most
		}
	}
	return as, nil
}

// partitionFor returns the partition for jobs of a reservation that is of none: nothing if
// the default one has all of its nodes, else the first that is up and has them. Slurm takes
// a job that names none into the default one, where it would wait for ever for other nodes.
func (c *Client) partitionFor(ctx context.Context, op string, b *site.Booking) (string, error) {
	partitions, err := c.partitions(ctx, op)
	if err != nil {
		return "", err
	}
	first := ""
	for i := range partitions {
		p := &partitions[i]
		if slices.ContainsFunc(b.Shares, func(s site.Share) bool { return !slices.Contains(p.Nodes, s.Node) }) {
			continue
		}
		if p.Default {
			return "", nil
		}
		if first == "" && p.Up {
			first = p.Name
		}
	}
	return first, nil
}

// jobEnv is the environment of sbatch, which it hands on to the job.
func (c *Client) jobEnv(env []string) []string {
	var out []string
	for _, e := range c.login {
		if name, _, _ := strings.Cut(e, "="); !hasName(env, name) {
			out = append(out, e)
		}
	}
	out = append(out, env...)
	for _, e := range c.env {
		if strings.HasPrefix(e, "SLURM_CONF=") || strings.HasPrefix(e, confServer+"=") && !hasName(out, confServer) {
			out = append(out, e)
		}
	}
	if os.Getenv("PATH") != "" && !hasName(out, "PATH") {
		out = append(out, "PATH="+os.Getenv("PATH"))
	}
	return out
}

func hasName(env []string, name string) bool {
	for _, e := range env {
		if strings.HasPrefix(e, name+"=") {
			return true
		}
	}
	return false
}

// submitted returns the job of a task that was submitted before.
func (c *Client) submitted(ctx context.Context, task *site.Task) (site.JobID, error) {
	out, err := c.read(ctx, "submit", "squeue", "--me", "--noheader", "--states=all", "--format=%F %v %k")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(out) {
		id, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		reservation, comment, _ := strings.Cut(rest, " ")
		was := site.Task{Reservation: site.Name(reservation)}
		var digest string
		var ours bool
		was.Key, digest, ours = parseComment(comment)
		switch {
		case !ours || was.KeyAt(c.name, task.User) != task.KeyAt(c.name, task.User):
		case digest != "" && digest != task.Digest():
			return "", site.ErrKeyTaken(task.Key)
		default:
			return parseJobID(id)
		}
	}
	return "", nil
}

// saysLicences matches a script that says itself which licences it takes.
var saysLicences = regexp.MustCompile(`(?m)^#SBATCH\s+(-L|--licenses)\b`)

// sbatchArgs are the arguments of sbatch. The script comes on stdin.
func (c *Client) sbatchArgs(task *site.Task, b *site.Booking, as size) []string {
	args := []string{"--parsable", "--export=ALL", "--reservation=" + string(task.Reservation), "--comment=" + keyPrefix + task.Key + ":" + task.Digest(), "--chdir=" + task.Dir}
	add := func(name, value string) {
		if value != "" {
			args = append(args, "--"+name+"="+value)
		}
	}
	number := func(name string, n int64) {
		if n > 0 {
			add(name, strconv.FormatInt(n, 10))
		}
	}
	add("job-name", cmp.Or(task.Name, task.Key))
	add("account", task.Account)
	add("qos", task.QOS)
	add("partition", task.Partition)
	if task.Partition == "" {
		add("partition", b.Partition)
	}
	add("output", task.Output)
	add("error", task.ErrorOutput)
	add("array", task.Array.String())
	number("nodes", int64(as.nodes))
	if as.nodes > 0 && as.cores == 0 {
		args = append(args, "--exclusive")
	}
	if task.Array.Empty() && !saysLicences.MatchString(task.Script) { // what its reservation holds, for the elements of an array would each take all
		for _, l := range b.Licences {
			add("licenses", l.String())
		}
	}
	number("ntasks", int64(as.processes))
	number("cpus-per-task", int64(as.cores))
	number("mem", (task.MemoryMB*1_000_000+(1<<20)-1)>>20)
	number("time", c.minutes(task.Limit, b))
	if c.absent {
		args = append(args, "--hold", "--no-requeue", "--export-file=3")
	}
	args = append(args, "/dev/stdin")
	if c.absent && task.Script == "" {
		args = append(args, task.Dir)
	}
	return append(append(args, task.Command...), task.Args...)
}

// minutes is the time limit for sbatch.
func (c *Client) minutes(limit berth.Duration, b *site.Booking) int64 {
	if limit > 0 {
		return int64(limit+minute-1) / minute
	}
	return fullMinutes(max(b.Start, berth.Time(c.now().Unix())), b.End)
}

func parseJobID(text string) (site.JobID, error) {
	id, _, _ := strings.Cut(strings.TrimSpace(text), ";") // behind it the cluster
	if n, err := strconv.ParseUint(id, 10, 63); err != nil || n == 0 {
		return "", odd("submit", "sbatch", err)
	}
	return site.JobID(id), nil
}

// Cancel cancels a job. Slurm sends SIGTERM, and SIGKILL after KillWait.
func (c *Client) Cancel(ctx context.Context, job site.JobID) error {
	if strings.Trim(string(job), "0123456789_") != "" || job == "" {
		return berth.Errorf(berth.Invalid, "job", "%q is no job's id", job)
	}
	result, err := c.run(ctx, "cancel", "scancel", string(job))
	if err != nil || result.Exit == 0 {
		return err
	}
	said := firstLine(result)
	if strings.Contains(said, "already completing or completed") {
		return nil
	}
	return explain("cancel", "scancel", said)
}

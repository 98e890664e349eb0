package slurm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

// Deputy is a cluster at which tasks are handed in for their owners, who need not be there:
// this process, which has to be root's, becomes the owner for each command. A task is handed
// in held and released afterwards, so that a service that was stopped in between finds it again
// before it has run. Slurm does not requeue it: whether it is tried again is not for Slurm
// to decide.
type Deputy struct {
	*Site
	options Options
	umask   int
	become  func(ctx context.Context, user string) (*identity, error)
}

var _ site.Deputy = (*Deputy)(nil)

// NewDeputy returns a site at which tasks are handed in for their owners. The error says why
// this process cannot.
// The umask of tasks is not the service's, which keeps its files to itself; 0 is 022.
func NewDeputy(o Options, umask int) (*Deputy, error) {
	if os.Geteuid() != 0 {
		return nil, berth.Errorf(berth.Invalid, "run_as", "owner: only root can become the owner of a task; run the service as root, or leave the key out")
	}
	d := &Deputy{Site: New(o), options: o, umask: cmp.Or(umask, 0o022)}
	d.become = d.switched
	return d, nil
}

// identity is a user as this machine knows them.
type identity struct {
	as  *Credential
	env []string // what a login would set
}

// Represents says whether tasks can be handed in as a user.
func (d *Deputy) Represents(ctx context.Context, user string) error {
	_, err := d.become(ctx, user)
	return err
}

// switched looks a user up in whatever directory this machine has. Root does not run the
// tasks of others.
func (d *Deputy) switched(ctx context.Context, user string) (*identity, error) {
	const op = "submit"
	if !site.ValidUser(user) {
		return nil, site.Errorf(site.Denied, op, "%q is no user's name", user)
	}
	result, err := d.run(ctx, op, "getent", "passwd", user)
	if err != nil {
		return nil, err
	}
	entry := strings.Split(strings.TrimSpace(result.Stdout), ":")
	const fields = 7
	if result.Exit != 0 || len(entry) != fields || entry[0] != user { // a number is looked up as one
		return nil, site.Errorf(site.Denied, op, "this machine knows no user %s", user)
	}
	uid, err := strconv.ParseUint(entry[2], 10, 32)
	gid, wrong := strconv.ParseUint(entry[3], 10, 32)
	switch {
	case err != nil || wrong != nil:
		return nil, odd(op, "getent", errors.Join(err, wrong))
	case uid == 0:
		return nil, site.Errorf(site.Denied, op, "%s is root, as whom no tasks are run", user)
	}
	out, err := d.read(ctx, op, "id", "-G", user)
	if err != nil {
		return nil, err
	}
	var groups []uint32
	for word := range strings.FieldsSeq(out) {
		n, err := strconv.ParseUint(word, 10, 32)
		if err != nil {
			return nil, odd(op, "id", err)
		}
		groups = append(groups, uint32(n))
	}
	shell := entry[6]
	if shell == "" {
		shell = "/bin/sh"
	}
	return &identity{
		as:  credential(uint32(uid), uint32(gid), groups),
		env: []string{"HOME=" + entry[5], "USER=" + user, "LOGNAME=" + user, "SHELL=" + shell},
	}, nil
}

// client returns one that acts for another user.
func (d *Deputy) client(ctx context.Context, user string) (*Client, error) {
	who, err := d.become(ctx, user)
	if err != nil {
		return nil, err
	}
	options := d.options
	options.Exec = Host{As: who.as}
	c := NewClient(options)
	c.absent, c.login, c.umask = true, who.env, d.umask
	c.spent = d.spent // what it costs is of the site
	return c, nil
}

// several matches a script that would be more than one job, none of which could be told to be
// the task, or that sbatch would wait for.
var several = regexp.MustCompile(`(?m)^#SBATCH\s+(-a\b|--array\b|-M\b|--clusters?\b|hetjob\b|packjob\b|-W\b|--wait\b)`)

// Hand hands in a task as its owner, held.
func (d *Deputy) Hand(ctx context.Context, task site.Task) (site.JobID, error) {
	if line := several.FindString(task.Script); line != "" || !task.Array.Empty() {
		return "", berth.Errorf(berth.Invalid, "script", "%q is for jobs that are submitted by hand, one for each task is wanted here; leave it out, and make tasks of the parts of an array", line)
	}
	c, err := d.client(ctx, task.User)
	if err != nil {
		return "", err
	}
	if err := d.overlap(ctx, task.Reservation); err != nil {
		return "", err
	}
	return c.Submit(ctx, task)
}

// overlap lets jobs start in a reservation whose limits end after it. Slurm's limits are whole
// minutes, and of a task that is to end sooner Slurm sees that its nodes are reserved again
// when its limit is over: often for the next task. The job ends with its reservation anyway.
func (d *Deputy) overlap(ctx context.Context, name site.Name) error {
	const op = "submit"
	result, err := d.run(ctx, op, "scontrol", "update", "ReservationName="+string(name), "Flags+=OVERLAP")
	if err != nil || result.Exit == 0 {
		return err
	}
	return explain(op, "scontrol", firstLine(result))
}

// Start releases a task that was handed in.
func (d *Deputy) Start(ctx context.Context, user string, job site.JobID) error {
	const op = "start"
	c, err := d.client(ctx, user)
	if err != nil {
		return err
	}
	if strings.Trim(string(job), "0123456789") != "" || job == "" {
		return berth.Errorf(berth.Invalid, "job", "%q is no job's id", job)
	}
	result, err := c.run(ctx, op, "scontrol", "release", string(job))
	if err != nil || result.Exit == 0 {
		return err
	}
	said := firstLine(result)
	if strings.Contains(said, "already finished") || strings.Contains(said, "already completing or completed") {
		return nil
	}
	return explain(op, "scontrol", said)
}

// apart keeps sbatch on this machine apart from what the job is to be given on its nodes: with
// variables such as LD_PRELOAD or SLURM_CONF a user who may submit a workflow could run here what
// they like. The folder of the task need not be here.
func (c *Client) apart(sbatch *Command) {
	sbatch.Extra = []byte(strings.Join(sbatch.Env, "\x00") + "\x00")
	sbatch.Env = append(slices.Clone(c.env), c.login...)
	sbatch.Dir = "/"
	program := sbatch.Argv[0]
	if c.bin != "" {
		program = filepath.Join(c.bin, program)
	}
	sbatch.Argv = append([]string{"sh", "-c", fmt.Sprintf(`umask %04o; exec "$@"`, c.umask), "sh", program}, sbatch.Argv[1:]...)
}

// inDir runs a command where its task is to run, or not at all: slurmd would run it in /tmp
// where that folder is not there.
const inDir = "#!/bin/sh\ncd -- \"$1\" || exit 125\nshift\nexec \"$@\"\n"

// wholeNodes returns how many nodes a task gets that says nothing of it, in a reservation of
// whole nodes: all of them.
func wholeNodes(b *site.Booking) berth.Count {
	nodes := make([]string, 0, len(b.Shares))
	for _, s := range b.Shares {
		nodes = append(nodes, s.Node)
	}
	slices.Sort(nodes)
	return berth.Count(len(slices.Compact(nodes)))
}

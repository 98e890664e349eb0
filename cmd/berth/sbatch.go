package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/internal/hpctime"
	"github.com/berth-hpc/berth/sites"
)

const (
	// sbatchMargin is how much longer than the time limit of its job a reservation is: the job begins some seconds after it, and
	// Slurm's limits are whole minutes.
	sbatchMargin = 60
	// unusedAfter is after how long a reservation is given back that was made for a command which may fail after that.
	unusedAfter = 600
)

// sbatchCommand returns berth sbatch.
func (a *app) sbatchCommand() *cobra.Command {
	var r *remote
	var only bool
	var held form.Hold
	cmd := &cobra.Command{
		Use:   "sbatch [SBATCH OPTION...] [SCRIPT [ARG...]]",
		Short: "Reserve what a batch job of Slurm needs, and run sbatch with it in the reservation",
		Long: `Takes the command line of sbatch. Berth reserves what the options ask for, and runs your own
sbatch with --reservation and all your options, those of lines #SBATCH included. When the job
has to have ended is what --deadline says; --begin says how early it may begin.

More is said to Berth in the job's comment, --comment=berth:KEY=VALUE,..., or in lines #BERTH of
the script, with the options of berth reserve: --start, --window, --npe, --duration, --no-show, ...
They count more than what sbatch is told, and the comment more than the lines.

From sbatch Berth takes --nodes, --ntasks, --ntasks-per-node, --cpus-per-task, --time, --partition,
--account, --qos, --constraint, --nodelist, --exclude, --mem, --gres=gpu:N, --gpus-per-node,
--licenses, --begin and --deadline. All other options are handed on. The reservation is a minute longer than --time.

If sbatch refuses the job, the reservation is given back. Options of Berth itself (--server,
--token-file, --timeout, --reserve-only, --held-for) come first. --reserve-only prints the
reservation instead of running sbatch, and has it given back if it is unused 10 minutes after its
start. With --held-for it is given back after so long too, unless berth confirm is told its id.`,
		Example: `  berth sbatch --deadline="tomorrow 08:00" -N 4 -t 2:00:00 job.sh
  berth sbatch --comment=berth:start=now+1h -N 1 -t 30 --wrap hostname`,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, words []string) error {
			own, words := ownWords(cmd.Flags(), words)
			if err := cmd.Flags().Parse(own); err != nil {
				return usagef(cmd, "%v", err)
			}
			if len(words) > 0 && (words[0] == "-h" || words[0] == "--help") {
				return cmd.Help()
			}
			if held != 0 && !only {
				return usagef(cmd, "--held-for: given without --reserve-only")
			}
			return a.sbatch(cmd, r, only, held, words)
		},
	}
	r = serviceFlags(cmd)
	cmd.Flags().BoolVar(&only, "reserve-only", false, "print the reservation instead of running sbatch, for a filter of Slurm's commands")
	cmd.Flags().Var(&holdTime{&held}, "held-for", "with --reserve-only: only hold it for so long, until it is confirmed")
	return cmd
}

// ownWords divides words before the first that is no flag of the command.
func ownWords(flags *pflag.FlagSet, words []string) (own, rest []string) {
	for n := 0; n < len(words); {
		name, long := strings.CutPrefix(words[n], "--")
		name, _, hasValue := strings.Cut(name, "=")
		flag := flags.Lookup(name)
		if !long || flag == nil || name == "help" {
			return words[:n], words[n:]
		}
		n++
		if flag.NoOptDefVal == "" && !hasValue {
			n = min(n+1, len(words))
		}
	}
	return words, nil
}

// batchJob is a job for sbatch, and what Berth is to promise for it.
type batchJob struct {
	line    *sbatchLine
	options map[string]string // of the command line, the environment and the script
	stdin   io.Reader
	ask     *ask
}

// sbatch runs the command.
func (a *app) sbatch(cmd *cobra.Command, r *remote, only bool, held form.Hold, words []string) error {
	line, err := takeApart(words, "begin", "deadline")
	if err != nil {
		return usagef(cmd, "%v", err)
	}
	for _, name := range []string{"help", "usage", "version", "test-only"} { // promises nothing
		if _, is := line.options[name]; is && !only {
			_, err := a.runSbatch(cmd, words, a.stdin)
			return err
		}
	}
	job, err := a.readJob(cmd, line, only)
	if err != nil {
		return err
	}
	if err := a.settle(cmd, job.ask); err != nil {
		return err
	}
	ctx, stop, c, err := r.connect(cmd)
	if err != nil {
		return err
	}
	defer stop()
	if err := job.count(ctx, c); err != nil {
		return err
	}
	if err := job.ask.missing(cmd); err != nil {
		return err
	}
	if only && job.ask.NoShow == 0 {
		job.ask.NoShow = unusedAfter
	}
	job.ask.Hold = held
	answer, err := a.request(ctx, c, r, &job.ask.Request)
	if err != nil {
		return err
	}
	r.format = "table"
	if answer.Decision == form.Refused {
		said := *a
		if only {
			said.stdout = a.stderr // for people
		}
		return said.answered(r, &answer)
	}
	reservation := *answer.Reservation
	name, err := a.atSite(ctx, c, &reservation, false)
	if err != nil {
		return a.withoutJob(cmd, c, reservation.ID, err)
	}
	condition := ""
	if held != 0 {
		condition = ", if Slurm takes the job"
	}
	a.say("reservation %s is promised from %s to %s%s", reservation.ID, localTime(reservation.Start), localTime(reservation.End), condition)
	partition := ""
	if _, given := job.options["partition"]; !given {
		partition = reservation.Partition
	}
	if only {
		return a.show(fmt.Sprintf("id=%s\nreservation=%s\npartition=%s\n", reservation.ID, name, partition))
	}
	args := []string{"--reservation=" + string(name)}
	if partition != "" {
		args = append(args, "--partition="+partition)
	}
	args = append(args, line.args...)
	if len(line.script) > 0 && strings.HasPrefix(line.script[0], "-") {
		args = append(args, "--")
	}
	args = append(args, line.script...)
	handedIn, err := a.runSbatch(cmd, args, job.stdin)
	if !handedIn {
		return a.withoutJob(cmd, c, reservation.ID, err)
	}
	return err
}

// withoutJob gives back a reservation in which nothing will run, whether or not the command's time is over.
func (a *app) withoutJob(cmd *cobra.Command, c *client.Client, id string, why error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), time.Duration(patience)*time.Second)
	defer cancel()
	if _, err := c.Release(ctx, id, client.Action{}); err != nil {
		a.say("reservation %s stays: %v", id, err)
		return why
	}
	a.say("no job was handed in, and reservation %s is given back", id)
	return why
}

// runSbatch runs sbatch, as the user who runs this program, and reports whether it has handed in a job: with --wait it fails
// as its job does.
func (a *app) runSbatch(cmd *cobra.Command, args []string, stdin io.Reader) (handedIn bool, err error) {
	ctx, stop := untilInterrupt(cmd.Context())
	defer stop()
	said := &noted{to: a.stdout}
	sbatch := exec.CommandContext(ctx, "sbatch", args...)
	sbatch.Stdin, sbatch.Stdout, sbatch.Stderr = stdin, said, a.stderr
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, tokenVar+"=") {
			sbatch.Env = append(sbatch.Env, variable)
		}
	}
	err = sbatch.Run()
	ended, is := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return true, nil
	case is && ended.ExitCode() > 0:
		return said.any, &exitError{ended.ExitCode()}
	case is && ctx.Err() != nil:
		return said.any, &interrupted{"what sbatch has handed in stays"}
	}
	return said.any, fmt.Errorf("sbatch: %w", err)
}

// noted knows whether anything was written.
type noted struct {
	to  io.Writer
	any bool
}

func (c *noted) Write(text []byte) (int, error) {
	c.any = c.any || len(text) > 0
	return c.to.Write(text)
}

// readJob reads what a job says to sbatch and to Berth.
func (a *app) readJob(cmd *cobra.Command, line *sbatchLine, only bool) (*batchJob, error) {
	job := &batchJob{line: line, options: map[string]string{}, stdin: a.stdin}
	head, err := job.head(only)
	if err != nil {
		return nil, err
	}
	inScript, err := takeApart(head.sbatch)
	if err != nil {
		return nil, usagef(cmd, "the script: %v", err)
	}
	maps.Copy(job.options, inScript.options)
	for name, variable := range sbatchVariables {
		if value, is := os.LookupEnv(variable); is && !only { // a filter has them from Slurm
			job.options[name] = value
		}
	}
	maps.Copy(job.options, line.options)
	for _, name := range []string{"reservation", "clusters", "cluster"} {
		if value := job.options[name]; value != "" {
			return nil, usagef(cmd, "--%s=%s: a job that names its %[1]s needs no promise; use sbatch, or leave it out", name, value)
		}
	}
	comment, _, err := ofComment(job.options["comment"])
	if err != nil {
		return nil, usagef(cmd, "%v", err)
	}
	words := &cobra.Command{Use: cmd.CommandPath(), SilenceErrors: true}
	job.ask = askFlags(words)
	nameFlag(words, &job.ask.Name)
	if err := words.Flags().Parse(append(slices.Clone(head.berth), comment...)); err != nil {
		return nil, usagef(cmd, "what the job says to Berth: %v", err)
	}
	if words.Flags().NArg() > 0 {
		return nil, usagef(cmd, "what the job says to Berth: %q is no option; want options of berth reserve, such as --deadline=now+2h", words.Flags().Arg(0))
	}
	if err := job.fill(); err != nil {
		return nil, usagef(cmd, "%v", err)
	}
	return job, nil
}

// head reads the lines of the script. A script on stdin is kept for sbatch; a filter of Slurm's commands has none there.
func (j *batchJob) head(only bool) (scriptLines, error) {
	if _, wrapped := j.options["wrap"]; wrapped || j.line.options["wrap"] != "" {
		return scriptLines{}, nil
	}
	if len(j.line.script) == 0 {
		if only || j.stdin == nil {
			return scriptLines{}, nil
		}
		var kept bytes.Buffer
		head, err := readHead(io.TeeReader(j.stdin, &kept))
		j.stdin = io.MultiReader(&kept, j.stdin)
		return head, err
	}
	name := j.line.script[0]
	file, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) && !strings.Contains(name, "/") {
		if path, lost := exec.LookPath(name); lost == nil {
			file, err = os.Open(path)
		}
	}
	if err != nil {
		return scriptLines{}, cannotRead(name, err)
	}
	defer func() { _ = file.Close() }() // it was only read
	return readHead(file)
}

// sbatchVariables are the variables of the environment that sbatch reads for options which Berth reads.
var sbatchVariables = map[string]string{
	"account": "SBATCH_ACCOUNT", "array": "SBATCH_ARRAY_INX", "clusters": "SBATCH_CLUSTERS", "constraint": "SBATCH_CONSTRAINT", "gres": "SBATCH_GRES",
	"gpus-per-node": "SBATCH_GPUS_PER_NODE", "mem": "SBATCH_MEM_PER_NODE", "partition": "SBATCH_PARTITION", "qos": "SBATCH_QOS",
	"reservation": "SBATCH_RESERVATION", "time": "SBATCH_TIMELIMIT",
}

// fill takes from the options of sbatch what is not said to Berth.
func (j *batchJob) fill() error {
	q, o := j.ask, j.options
	if o["array"] != "" && (q.NPE == 0 || q.Duration == 0) && q.Variants == nil {
		return errors.New("--array: say what to promise for all of its jobs together, such as --comment=berth:npe=4,duration=2h")
	}
	if q.Duration == 0 && q.Variants == nil && o["time"] != "" {
		limit, err := hpctime.ParseSlurm(o["time"])
		if err != nil || limit == 0 {
			return fmt.Errorf("--time=%s: a promise needs a limit; want minutes such as 120, or [days-]hours:minutes:seconds", o["time"])
		}
		q.Duration = (limit+59)/60*60 + sbatchMargin
	}
	for option, into := range map[string]*moment{"begin": &q.ready, "deadline": &q.deadline} {
		if o[option] == "" || into.given() || q.start.given() || q.window.text != "" {
			continue
		}
		into.text, into.read = o[option], hpctime.ParseSlurmInstant
	}
	fill(&q.Partition, o["partition"])
	fill(&q.Account, o["account"])
	fill(&q.QOS, o["qos"])
	for option, into := range map[string]pflag.Value{"constraint": &constraint{&q.Constraint}, "nodelist": &nodelist{&q.Nodelist}, "exclude": &nodelist{&q.Exclude}} {
		if into.String() != "" || o[option] == "" {
			continue
		}
		if err := into.Set(o[option]); err != nil {
			return fmt.Errorf("--%s: %w", option, err)
		}
	}
	if name, count, one := oneOf(o["licenses"], ":="); one && q.Software == "" {
		q.Software, q.Licences = name, berth.Count(count)
	}
	return nil
}

// oneOf reads NAME or NAME:COUNT, and reports whether it is one of these.
func oneOf(text, separators string) (name string, count int, one bool) {
	name, count = text, 1
	if at := strings.LastIndexAny(text, separators); at >= 0 {
		n, err := strconv.ParseUint(text[at+1:], 10, 31)
		if err != nil || n == 0 {
			return "", 0, false
		}
		name, count = text[:at], int(n)
	}
	return name, count, name != "" && !strings.ContainsAny(name, ",;|:=@")
}

// count says on how many PEs a job runs, where Berth is not told: as many nodes as it names, or as its tasks fill; under a site
// of cores its processors.
func (j *batchJob) count(ctx context.Context, c *client.Client) error {
	q := j.ask
	if q.Variants != nil {
		return nil
	}
	all, err := c.Sites(ctx)
	if err != nil {
		return err
	}
	least, most := 0, 0
	for i := range all {
		s := &all[i]
		if s.Adapter != sites.Slurm || s.Shadow || q.Site != "" && q.Site != s.Name {
			continue
		}
		for k := range s.Pools {
			nodes := []berth.Node{s.Pools[k].Node}
			for _, class := range s.Pools[k].Classes {
				nodes = append(nodes, class.Node)
			}
			for _, n := range nodes {
				if cores := max(1, n.Sockets) * n.Cores; cores > 0 {
					least, most = min(cmp.Or(least, cores), cores), max(most, cores)
				}
			}
		}
	}
	if most == 0 {
		return berth.Errorf(berth.Conflict, "", "no site under Slurm can be promised by this service; use berth submit")
	}
	byCore := most == 1
	if q.NPE == 0 {
		if q.NPE, err = j.processors(byCore, least, most); err != nil {
			return err
		}
	}
	if byCore {
		return nil
	}
	if memory, err := megabytesOf(j.options["mem"]); err != nil {
		return err
	} else if q.MemoryMB == 0 {
		q.MemoryMB = memory
	}
	gpus := j.options["gpus-per-node"]
	if gpus == "" {
		gpus, _ = strings.CutPrefix(j.options["gres"], "gpu")
		gpus = strings.TrimPrefix(gpus, ":")
		if !strings.HasPrefix(j.options["gres"], "gpu") || strings.Contains(gpus, ",") {
			return nil
		}
	}
	_, behind, typed := strings.Cut(gpus, ":")
	if !typed {
		behind = gpus
	}
	n, err := strconv.ParseUint(cmp.Or(behind, "1"), 10, 31)
	if err != nil { // a type without a number
		n = 1
	}
	if q.Accelerators == 0 {
		q.Accelerators = int(n)
	}
	return nil
}

// processors returns the number of PEs for the nodes and tasks of a job.
func (j *batchJob) processors(byCore bool, least, most int) (berth.Count, error) {
	number := func(name string) (int64, error) {
		text := j.options[name]
		if name == "nodes" {
			text, _, _ = strings.Cut(text, "-")
		}
		if text == "" {
			return 0, nil
		}
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil || n == 0 || n > berth.MaxPEs {
			return 0, berth.Errorf(berth.Invalid, "", "--%s=%s; want a number from 1 to %d for a promise", name, j.options[name], berth.MaxPEs)
		}
		return int64(n), nil
	}
	var nodes, tasks, perNode, each int64
	for name, into := range map[string]*int64{"nodes": &nodes, "ntasks": &tasks, "ntasks-per-node": &perNode, "cpus-per-task": &each} {
		n, err := number(name)
		if err != nil {
			return 0, err
		}
		*into = n
	}
	each = max(1, each)
	switch {
	case byCore:
		return berth.Count(max(tasks, nodes*max(1, perNode), 1) * each), nil
	case nodes > 0:
		return berth.Count(nodes), nil
	case tasks > 0 && perNode > 0:
		return berth.Count((tasks + perNode - 1) / perNode), nil
	case tasks <= 1 && each <= int64(least):
		return 1, nil
	case least != most:
		return 0, berth.Errorf(berth.Invalid, "", "--nodes: missing, and nodes have %d to %d cores; give the number of nodes", least, most)
	case each > int64(most):
		return 0, berth.Errorf(berth.Invalid, "", "--cpus-per-task=%d; nodes have %d cores", each, most)
	}
	fits := int64(most) / each
	return berth.Count((max(1, tasks) + fits - 1) / fits), nil
}

// megabytesOf returns memory as sbatch has it, in 2^20 bytes or with a unit, in 10^6 bytes; that of a whole node is not looked at.
func megabytesOf(text string) (int64, error) {
	if text == "" || text == "0" {
		return 0, nil
	}
	digits, unit := strings.TrimRight(text, "KMGTkmgt"), int64(1<<20)
	switch strings.ToUpper(text[len(digits):]) {
	case "", "M":
	case "K":
		unit = 1 << 10
	case "G":
		unit = 1 << 30
	case "T":
		unit = 1 << 40
	default:
		digits = ""
	}
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil || int64(n) > berth.MaxMegabytes*1_000_000/unit {
		return 0, berth.Errorf(berth.Invalid, "", "--mem=%s; want a number with K, M, G or T, such as 4G", text)
	}
	return (int64(n)*unit + 999_999) / 1_000_000, nil
}

package main

import (
	"io"
	"math"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/workload"
)

// generateBookingsFlags is what the command line of generate bookings says.
type generateBookingsFlags struct {
	workload  string
	share     float64
	method    string
	now       uint64
	pes       berth.Count
	partition int
	strict    bool
	seed      uint64
	out       string
}

func (a *app) generateBookingsCommand() *cobra.Command {
	flags := generateBookingsFlags{share: .2, method: string(workload.Expo), seed: 1}
	cmd := &cobra.Command{
		Use:   "bookings --workload LOG.swf --now T --out FILE.jsonl",
		Short: "Write bookings of others, drawn from a log",
		Long: `Tags a share of the jobs of a log as bookings, each from its actual start to its
actual end, and writes the schedule as it stands at --now: what was booked
during the thirty days before, whose average of free PEs is taken, and
what lies ahead. How that gets less:

    linear   starts per day fall along a line, to none after seven days
    expo     they fall exponentially, to one in a hundred on the seventh day
    real     jobs that had not been submitted by then are left out

linear and expo remove random bookings, or add copies of some, to get there.
What became of the jobs, and the average, are told on stderr.`,
		Example: `  berth generate bookings --workload LOG.swf.gz --share .2 --method expo --now 40000000 --seed 7 --out bookings.jsonl`,
		Args:    noArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.generateBookings(cmd, &flags) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&flags.workload, "workload", "", "log to take the jobs from: `LOG`.swf, compressed or not")
	f.Var(&portion{&flags.share}, "share", "share of the jobs that are bookings")
	f.Var(&choice{&flags.method, "method", methodNames()}, "method", "how bookings get fewer ahead: linear, expo or real")
	f.Var(&whole[uint64]{&flags.now, 0, berth.TimeLimit - 1}, "now", "time of planning, in seconds of the log's clock")
	f.Var(&whole[berth.Count]{&flags.pes, 1, berth.MaxPEs}, "pes", "size of the machine (default: MaxProcs of the log's header)")
	f.Var(&whole[int]{&flags.partition, 1, math.MaxInt32}, "partition", "take only the jobs of this partition, column 16 of the log")
	f.BoolVar(&flags.strict, "strict", false, "stop at the first bad line of the log")
	f.Var(&whole[uint64]{&flags.seed, 0, math.MaxUint64}, "seed", "seed of the draws")
	f.StringVar(&flags.out, "out", "", "`FILE`.jsonl to write (.gz compresses); - is stdout")
	complete(cmd, "method", methodNames())
	_ = cmd.MarkFlagFilename("workload", "swf", "gz") // fails for unknown flags only
	return cmd
}

func methodNames() []string {
	var names []string
	for _, method := range workload.Thinnings() {
		names = append(names, string(method))
	}
	return names
}

func (a *app) generateBookings(cmd *cobra.Command, flags *generateBookingsFlags) error {
	if flags.workload == "" {
		return usagef(cmd, "--workload: missing; want LOG.swf")
	}
	if flags.share == 0 {
		return usagef(cmd, "--share: 0; want a number above 0, at most 1")
	}
	if err := wantOut(cmd, flags.out, "FILE.jsonl"); err != nil {
		return err
	}
	files := claims{cmd: cmd}
	files.reads("--workload", flags.workload)
	files.writes("--out", flags.out)
	if err := files.apart(); err != nil {
		return err
	}
	options := workload.Options{PEs: flags.pes, Strict: flags.strict}
	if flags.partition > 0 {
		options.Keep = func(r *workload.Record) bool { return int(r.Partition) == flags.partition }
	}
	log, err := a.readWorkload(flags.workload, options)
	switch {
	case err != nil:
		return err
	case !log.Form.IsLog():
		return berth.Errorf(berth.Invalid, "workload", "%s: requests, not a log; want a file in the Standard Workload Format or an export of Slurm", flags.workload)
	}
	tagging := workload.Tagging{
		Share: flags.share, Thinning: workload.Thinning(flags.method), Now: berth.Time(flags.now), PEs: flags.pes, Seed: flags.seed,
	}
	if tagging.PEs == 0 {
		tagging.PEs = log.PEs()
	}
	if tagging.PEs == 0 && log.Form == workload.Sacct {
		return usagef(cmd, "--pes: missing; %s, an export of Slurm, does not tell the size of the machine", flags.workload)
	}
	if tagging.PEs == 0 && log.Form == workload.GWF {
		return usagef(cmd, "--pes: missing; %s, a log of the Grid Workloads Archive, does not tell the size of the machine", flags.workload)
	}
	if tagging.PEs == 0 {
		return usagef(cmd, "--pes: missing; the header of %s has no MaxProcs", flags.workload)
	}
	a.tell(&log.Report)
	tagged, err := tagging.Bookings(log.Records)
	switch {
	case err != nil:
		return err
	case len(tagged.Bookings) == 0:
		return berth.Errorf(berth.Invalid, "share", "nothing to write: %s", tagged)
	}
	if err := a.generated(cmd, flags.out, func(w io.Writer) error {
		return workload.WriteBookings(w, tagged.Bookings)
	}); err != nil {
		return err
	}
	a.say("berth: %s", tagged)
	return nil
}

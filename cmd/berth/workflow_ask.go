package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/workflow/flowfile"
)

// flowAsk is what is asked for with a workflow file.
type flowAsk struct {
	form.WorkflowRequest
	deadline moment
	held     span
	alpha    float64
	env      []string
}

func (q *flowAsk) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.Var(&q.deadline, "deadline", "by when it must have ended (default: as early as possible)")
	f.StringVar(&q.Algorithm, "algorithm", "best", "`NAME` of the planner, as berth plan --help lists them, or best: several are tried, and part of the time until the deadline is left; best-N leaves N percent")
	f.Var(&choice{&q.Repair, "repair", []string{"both", "late", "hold"}}, "repair", "when tasks end early or late: both (move what follows forward or back), late (back only), hold (neither)")
	f.StringVar(&q.Site, "site", "", "only at this `SITE`")
	f.BoolVar(&q.Spread, "spread", false, "tasks may be at several sites; their files have to be at all of them, unless the sites file has transfers")
	f.StringVar(&q.Pool, "pool", "", "only in this `POOL`")
	f.StringVar(&q.Account, "account", "", "an `ACCOUNT` of the site, for tasks that name none; only jobs in it may run (default: that of the file)")
	f.StringVar(&q.QOS, "qos", "", "a `QOS` of the site, for tasks that name none, with which they run (default: that of the file)")
	f.StringVar(&q.User, "user", "", "in the name of this `USER`, which operators may")
	f.Float64Var(&q.alpha, "alpha", defaultAlpha, "serial fraction `X` of tasks that may run on several numbers of PEs and say none")
	complete(cmd, "repair", []string{"both", "late", "hold"})
}

// offer offers accounts and QOS that have been used.
func (q *flowAsk) offer(cmd *cobra.Command, r *remote) {
	r.offerUsed(cmd, "account", func(one *form.Reservation) string { return one.Account })
	r.offerUsed(cmd, "qos", func(one *form.Reservation) string { return one.QOS })
}

// read reads a workflow file into what is asked for.
func (q *flowAsk) read(a *app, cmd *cobra.Command, path string) error {
	if !(0 <= q.alpha && q.alpha <= 1) {
		return usagef(cmd, "--alpha: %g; want a number from 0 to 1", q.alpha)
	}
	var file *flowfile.File
	var err error
	if path == "-" {
		file, err = flowfile.Read(a.stdin, "stdin", flowfile.Options{Alpha: q.alpha})
	} else {
		file, err = flowfile.Open(path, flowfile.Options{Alpha: q.alpha})
	}
	if err != nil {
		return err
	}
	for _, note := range file.Report.Notes() {
		a.say("berth: %s", note)
	}
	if n := file.Flow.Len(); n > berth.MaxWorkflowTasks {
		return berth.Errorf(berth.Invalid, "workflow", "%s: %d tasks; the service takes at most %d, so divide it", path, n, berth.MaxWorkflowTasks)
	}
	env, err := environment(os.Environ(), q.env)
	if err != nil {
		return err
	}
	here, err := filepath.Abs(".")
	if err != nil {
		return fmt.Errorf("this folder: %w", err)
	}
	if q.Deadline, q.DeadlineIn, err = q.deadline.deadline(cmd); err != nil {
		return err
	}
	q.Name, q.Account, q.QOS = file.Name, firstOf(q.Account, file.Account), firstOf(q.QOS, file.QOS)
	idle, stored := 0, 0
	reads := file.Reads()
	for i := range file.Flow.Len() {
		t, w := file.Flow.Task(i), &file.Tasks[i]
		task := form.TaskToRun{
			ID: t.ID, Seconds: t.Sequential, Alpha: t.Alpha, Few: t.Few, Most: t.Most, Retries: w.Retries, Command: w.Command, Script: w.Script,
			Software: w.Needs.Software, Version: w.Needs.Version, Licences: w.Needs.Licences, MemoryMB: w.Needs.MemoryMB, Accelerators: w.Needs.Accelerators, Partition: w.Needs.Partition, Constraint: w.Needs.Constraint, Site: w.Site,
			Account: w.Account, QOS: w.QOS,
		}
		for _, m := range t.Measured {
			task.Measured = append(task.Measured, form.Measurement{NPE: m.NPE, Seconds: m.Seconds})
		}
		for _, parent := range file.Flow.Parents(i) {
			task.After = append(task.After, file.Flow.Task(int(parent)).ID)
		}
		task.ReadBytes = reads[i]
		if w.Runs() {
			if task.Dir = w.Dir; task.Dir == "" {
				task.Dir = here
			}
			task.Env = slices.Concat(env, w.Env)
			if file.Form == flowfile.YAML { // files of traces are names that need not be paths
				task.Inputs, task.Outputs = w.Inputs, w.Outputs
			}
		} else {
			idle++
		}
		if w.Needs.StorageMB > 0 {
			stored++
		}
		q.Tasks = append(q.Tasks, task)
	}
	if idle > 0 {
		a.say("berth: %s: %d of %d tasks have no command; what runs there is handed in to their reservations", file.Source, idle, len(q.Tasks))
	}
	if stored > 0 {
		a.say("berth: %s: the storage of %d tasks is not booked; they share the files of their site", file.Source, stored)
	}
	return nil
}

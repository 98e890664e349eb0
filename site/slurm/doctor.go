package slurm

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/hpctime"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/hostlist"
)

// Doctor looks for what keeps Berth from working well with this cluster. What
// follows from not reaching it is not looked for.
func (s *Site) Doctor(ctx context.Context) []site.Finding {
	var found []site.Finding
	add := func(check string, level site.Level, hint, text string, args ...any) {
		found = append(found, site.Finding{Check: check, Level: level, Text: fmt.Sprintf(text, args...), Hint: hint})
	}
	pinged, why, hint := s.silence(ctx)
	if why != "" {
		add("reach", site.Bad, hint, "%s", why)
		return found
	}
	settings, err := s.settings(ctx)
	if err != nil {
		add("reach", site.Bad, hintOf(err, "see that slurmctld runs and that slurm.conf here is the cluster's"), "%v", err)
		return found
	}
	add("reach", site.Good, "", "cluster %s answers", settings["ClusterName"])
	switch up, down := controllers(pinged); {
	case len(down) > 0:
		add("controllers", site.Warning, "start it again; until then there is none left to take over", "%s is DOWN; %s serves, and has all promises", strings.Join(down, ", "), strings.Join(up, ", "))
	case len(up) > 1:
		add("controllers", site.Good, "", "%s answer: one takes over from the other", strings.Join(up, ", "))
	}
	found = append(found, versionFinding(settings["SLURM_VERSION"]))
	found = append(found, s.rightsFinding(ctx, settings["SlurmUser"]))
	found = append(found, s.clockFinding(ctx))
	if s.zone == "" {
		add("zone", site.Warning, "set the site's zone in the configuration", "this machine does not say its time zone")
	} else {
		add("zone", site.Good, "", "people here see %s; commands run in UTC", s.zone)
	}
	found = append(found, settingFindings(settings)...)
	found = append(found, s.threadFindings(ctx)...)
	found = append(found, s.federationFindings(ctx)...)
	found = append(found, s.limitFindings(ctx)...)
	if _, err := s.Observe(ctx); err != nil {
		add("state", site.Bad, hintOf(err, ""), "%v", err)
	} else {
		add("state", site.Good, "", "nodes, jobs and reservations can be read")
	}
	return found
}

// silence returns what scontrol says of the controllers and, if none answers, why, and what to do. A command that says so itself knows better than
// that there was no answer: there may be no slurm.conf, or no token.
func (s *Site) silence(ctx context.Context) (said, why, hint string) {
	result, err := s.run(ctx, "doctor", "scontrol", "ping")
	const otherwise = "see that slurmctld runs, and that slurm.conf here is the cluster's"
	switch {
	case err != nil:
		return "", err.Error(), hintOf(err, otherwise)
	case strings.Contains(result.Stdout, " is UP"):
		return result.Stdout, "", ""
	case strings.TrimSpace(result.Stderr) != "":
		said := lastLine(result.Stderr)
		return "", said, hintOf(explain("doctor", "scontrol", said), otherwise)
	}
	return "", "no controller answers scontrol ping", otherwise
}

func hintOf(err error, otherwise string) string {
	var e *site.Error
	if errors.As(err, &e) && e.Hint != "" {
		return e.Hint
	}
	return otherwise
}

// testedVersions are those this adapter is tested with.
var testedVersions = []string{"22.05", "24.11", "26.05"}

func versionFinding(version string) site.Finding {
	f := site.Finding{Check: "version", Level: site.Good, Text: "Slurm " + version}
	if !slices.ContainsFunc(testedVersions, func(v string) bool { return strings.HasPrefix(version, v+".") }) {
		f.Level, f.Hint = site.Warning, "this adapter is tested with Slurm "+strings.Join(testedVersions, ", ")+"; try it on a test cluster first"
	}
	return f
}

func (s *Site) rightsFinding(ctx context.Context, slurmUser string) site.Finding {
	f := site.Finding{Check: "rights"}
	rights, err := s.rights(ctx)
	switch {
	case err != nil:
		f.Level, f.Text = site.Bad, err.Error()
	case !rights.Reserve:
		f.Level = site.Bad
		f.Text = "user " + rights.As + " may not make reservations"
		f.Hint = "run Berth as SlurmUser, " + slurmUser + ", or make it an operator: sacctmgr add user " + rights.As + " account=ACCOUNT adminlevel=operator, or, if sacctmgr knows it, sacctmgr modify user " + rights.As + " set adminlevel=operator. Without the right only shadow mode works"
	case !rights.Drain:
		f.Level, f.Text = site.Warning, "user "+rights.As+" may make reservations, but not drain nodes"
	default:
		f.Level, f.Text = site.Good, "user "+rights.As+" may make reservations and drain nodes"
	}
	return f
}

// sdiagTime is the controller's clock in what sdiag writes.
var sdiagTime = regexp.MustCompile(`(?m)^sdiag output at .*\(([0-9]{1,12})\)$`)

// maxSkew is from when on a clock is worth a word: promises are kept to the
// second, and Slurm's own slack is about that.
const maxSkew = 2

func (s *Site) clockFinding(ctx context.Context) site.Finding {
	f := site.Finding{Check: "clock", Level: site.Good}
	before := s.unix()
	out, err := s.read(ctx, "doctor", "sdiag")
	if err != nil {
		return site.Finding{Check: "clock", Level: site.Warning, Text: err.Error(), Hint: hintOf(err, "")}
	}
	match := sdiagTime.FindStringSubmatch(out)
	if match == nil {
		return site.Finding{Check: "clock", Level: site.Warning, Text: "sdiag does not say the controller's time"}
	}
	seconds, _ := strconv.ParseInt(match[1], 10, 64) // at most twelve digits
	skew := berth.Time(seconds) - before
	if after := s.unix(); skew > 0 && berth.Time(seconds) <= after {
		skew = 0
	}
	f.Text = fmt.Sprintf("the controller's clock is %d s ahead of this one", skew)
	if skew < -maxSkew || skew > maxSkew {
		f.Level, f.Hint = site.Warning, "let both keep time with the same server"
	}
	return f
}

// settingFindings looks at settings that have surprised people.
func settingFindings(settings map[string]string) []site.Finding {
	var found []site.Finding
	add := func(check string, level site.Level, hint, text string, args ...any) {
		found = append(found, site.Finding{Check: check, Level: level, Text: fmt.Sprintf(text, args...), Hint: hint})
	}
	unset := func(key string) bool {
		v := settings[key]
		return null(v) || v == "UNLIMITED" || v == "0" || v == "none"
	}
	if unset("DefMemPerCPU") && unset("DefMemPerNode") && strings.Contains(strings.ToUpper(settings["SelectTypeParameters"]), "MEMORY") {
		add("memory", site.Warning, "set DefMemPerCPU in slurm.conf", "memory is handed out and has no default: a job that does not say takes all of its node, so one job runs there at a time")
	}
	// cloud shows nodes that are powered down, and hides nothing.
	if hidden := slices.DeleteFunc(wordList(settings["PrivateData"]), func(w string) bool { return w == "cloud" || w == "none" }); len(hidden) > 0 {
		add("private", site.Warning, "let Berth's user be an operator, who sees everything", "PrivateData is %s: Berth may not see all that holds nodes", strings.Join(hidden, ","))
	}
	if !unset("ResvOverRun") && settings["ResvOverRun"] != "0 min" {
		add("overrun", site.Warning, "set ResvOverRun=0", "jobs may run on for %s after their reservation's end, into the next one", settings["ResvOverRun"])
	}
	if !unset("OverTimeLimit") && settings["OverTimeLimit"] != "0 min" {
		add("overrun", site.Warning, "set OverTimeLimit=0, or a larger margin in Berth", "jobs may run on for %s after their limit", settings["OverTimeLimit"])
	}
	if settings["SchedulerType"] != "sched/backfill" {
		add("scheduler", site.Warning, "set SchedulerType=sched/backfill", "%s lets nodes idle before a reservation that smaller jobs could use", settings["SchedulerType"])
	}
	if age, err := strconv.Atoi(strings.TrimSuffix(settings["MinJobAge"], " sec")); err != nil || age < leastJobAge {
		add("memory-of-jobs", site.Warning, "set MinJobAge=300", "Slurm forgets ended jobs after %s: Berth may miss how one ended", settings["MinJobAge"])
	}
	if kind := settings["PreemptType"]; !null(kind) && kind != "preempt/none" {
		add("preemption", site.Good, "", "%s: jobs in Berth's reservations are preempted only by jobs in the same reservation", kind)
	}
	if kind := settings["BurstBufferType"]; !null(kind) {
		add("burst-buffers", site.Warning, "let such jobs ask for their buffers ahead of their promises", "Berth promises no burst buffers (%s): a job with #BB or #DW waits for its own beside its promise", kind)
	}
	if enforce := settings["AccountingStorageEnforce"]; strings.Contains(enforce, "associations") {
		add("accounts", site.Good, "", "users and accounts of reservations must be known to the accounting database")
	} else {
		add("accounts", site.Good, "", "Slurm takes any account name in a reservation; it checks none")
	}
	return found
}

// threadFindings tells which nodes have hardware threads, and how many PEs they are all the same. Nodes that cannot
// be read are told of with the state.
func (s *Site) threadFindings(ctx context.Context) []site.Finding {
	nodes, err := s.nodes(ctx)
	if err != nil {
		return nil
	}
	type kind struct{ cores, threads, cpus int }
	var order []kind
	names := map[kind][]string{}
	for i := range nodes {
		n := &nodes[i]
		if n.Threads < 2 {
			continue
		}
		k := kind{int(n.cores()), n.Threads, n.CPUs}
		if names[k] == nil {
			order = append(order, k)
		}
		names[k] = append(names[k], n.Name)
	}
	found := make([]site.Finding, len(order))
	for i, k := range order {
		found[i] = site.Finding{Check: "threads", Level: site.Good, Text: fmt.Sprintf(
			"%s: %d cores of %d hardware threads, which are %d CPUs to Slurm; with unit: core a PE is a core with all of its threads", hostlist.Fold(names[k]), k.cores, k.threads, k.cpus)}
	}
	return found
}

// federation is the name of one that the cluster is in, in what scontrol says of it.
var federation = regexp.MustCompile(`(?m)^Federation: *(\S+) *$`)

// federationFindings tells that the cluster is in a federation, which Berth takes no part in. What cannot be asked is
// no finding: it is so with most clusters.
func (s *Site) federationFindings(ctx context.Context) []site.Finding {
	out, err := s.read(ctx, "doctor", "scontrol", "show", "federation")
	in := federation.FindStringSubmatch(out)
	if err != nil || in == nil {
		return nil
	}
	return []site.Finding{{
		Check: "federation", Level: site.Warning, Hint: "let users submit to promises with sbatch --clusters=CLUSTER, and make each cluster a site of its own",
		Text: fmt.Sprintf("the cluster is in the federation %s, which Berth does not support: it promises nodes of this cluster alone, and jobs that are submitted to the federation may run in another", in[1]),
	}}
}

// leastJobAge is a few of Berth's polls.
const leastJobAge = 60

func (s *Site) limitFindings(ctx context.Context) []site.Finding {
	partitions, err := s.partitions(ctx, "doctor")
	if err != nil {
		return []site.Finding{{Check: "limits", Level: site.Bad, Text: err.Error(), Hint: hintOf(err, "")}}
	}
	return []site.Finding{limitFinding(partitions, s.taken)}
}

// limitFinding tells which partitions have no time limit, and what that means if jobs in them are taken to last so long, 0 for ever.
func limitFinding(partitions []site.Partition, taken berth.Duration) site.Finding {
	var endless []string
	for _, p := range partitions {
		if p.MaxTime == 0 {
			endless = append(endless, p.Name)
		}
	}
	if len(endless) == 0 {
		return site.Finding{Check: "limits", Level: site.Good, Text: "every partition has a time limit"}
	}
	f := site.Finding{
		Check: "limits", Level: site.Warning, Text: "no time limit in partition " + strings.Join(endless, ", ") + ": every promise there must be made real at once, and a running job may stand in its way for ever",
		Hint: "set MaxTime for the partitions in which Berth reserves",
	}
	if taken > 0 {
		f.Text = fmt.Sprintf("no time limit in partition %s: jobs there are taken to last %s (no_limit), and one that runs longer may stand in the way of a promise", strings.Join(endless, ", "), hpctime.Format(taken))
	}
	return f
}

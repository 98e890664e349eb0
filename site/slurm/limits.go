package slurm

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/hpctime"
	"github.com/berth-hpc/berth/site"
)

// amounts are numbers of what Slurm counts, such as cpu, node and gres/gpu.
type amounts map[string]int64

// bounds are the limits of one association or QOS; what is not there is no limit.
type bounds struct {
	of string // in words
	// wall, by its name, such as MaxWall, and so the rest. Group holds for everybody in it together.
	wall                      berth.Duration
	job, group, user, account amounts
	jobs, submits             map[string]int64 // how many at a time, by the name of the limit
	parent                    string           // of an association
	overrules                 bool             // a QOS whose limits count before those of its partition
}

// inLimits looks for each shape of an entry whether one job of it could ever run under one of
// the associations, if nothing else ran. Of what limits the same thing the partition's QOS
// counts before the job's, and both before associations (https://slurm.schedmd.com/resource_limits.html).
// Limits of minutes times TRES, of memory and of billing are not looked at.
func (s *Site) inLimits(ctx context.Context, partition *site.Partition, e *site.Entry, own []association) (site.Admission, error) {
	out, err := s.recall(ctx, "scontrol", "--oneliner", "show", "assoc_mgr", "flags=assoc", "users="+e.User)
	if err != nil {
		return site.Admission{}, err
	}
	known := parseAssociations(out)
	if out, err = s.recall(ctx, "sacctmgr", "--noheader", "--parsable2", "--readonly", "show", "qos", "format="+strings.Join(qosFields, ",")); err != nil {
		return site.Admission{}, err
	}
	qualities := parseQualities(out)
	cpus, err := s.leastCPUs(ctx, partition)
	if err != nil {
		return site.Admission{}, err
	}
	admission := site.Admission{TooMuch: make([]string, len(e.Shapes))}
	for i := range e.Shapes {
		wants := cpus.of(&e.Shapes[i])
		var first string
		for _, a := range own {
			for _, qos := range orNone(a.qos) {
				why := exceeds(&e.Shapes[i], wants, ruling(qualities[partition.LimitsQOS], qualities[qos]), chain(known, e.User, a.account))
				if why == "" {
					first = ""
					break
				}
				if first == "" {
					first = why
				}
			}
			if first == "" {
				break
			}
		}
		admission.TooMuch[i] = first
	}
	return admission, nil
}

func orNone(qos []string) []string {
	if len(qos) == 0 {
		return []string{""}
	}
	return qos
}

// ruling returns the QOS that limit a job, the one that counts first before the other.
func ruling(partition, job *bounds) []*bounds {
	list := []*bounds{partition, job}
	if job != nil && job.overrules {
		list = []*bounds{job, partition}
	}
	return slices.DeleteFunc(list, func(b *bounds) bool { return b == nil })
}

// chain returns the association of a user with an account, and those of the accounts above.
func chain(known map[[2]string]*bounds, user, account string) []*bounds {
	var list []*bounds
	if own := known[[2]string{account, user}]; own != nil {
		list = append(list, own)
	}
	for above := known[[2]string{account}]; above != nil && len(list) <= len(known); above = known[[2]string{above.parent}] {
		list = append(list, above)
	}
	return list
}

// exceeds returns which limit a job would exceed, by how much; nothing if it exceeds none.
func exceeds(shape *site.Shape, wants amounts, qos, associations []*bounds) string {
	own := associations[:min(1, len(associations))] // what an account says of single jobs it has too
	for _, b := range slices.Concat(qos, own) {
		if b.wall > 0 {
			if shape.Duration > b.wall {
				return fmt.Sprintf("MaxWall of %s is %s, and this would be %s", b.of, hpctime.Format(b.wall), hpctime.Format(shape.Duration))
			}
			break
		}
	}
	for _, what := range []string{"node", "cpu", "gres/gpu"} {
		n := wants[what]
		for _, kind := range []struct {
			name string
			list []*bounds
			of   func(*bounds) amounts
			each bool // all of them count, not the first that says something
		}{
			{"MaxTRES", slices.Concat(qos, own), func(b *bounds) amounts { return b.job }, false},
			{"MaxTRESPerUser", qos, func(b *bounds) amounts { return b.user }, false},
			{"MaxTRESPerAccount", qos, func(b *bounds) amounts { return b.account }, false},
			{"GrpTRES", groupsOf(qos, associations, what), func(b *bounds) amounts { return b.group }, true},
		} {
			for _, b := range kind.list {
				most, limited := kind.of(b)[what]
				if limited && n > most {
					return fmt.Sprintf("%s of %s is %s=%d, and this would be %d", kind.name, b.of, what, most, n)
				}
				if limited && !kind.each {
					break
				}
			}
		}
	}
	for _, b := range slices.Concat(qos, associations) {
		for _, counts := range []map[string]int64{b.jobs, b.submits} {
			for _, name := range []string{"MaxJobs", "MaxJobsPerUser", "GrpJobs", "MaxSubmitJobs", "MaxSubmitJobsPerUser", "GrpSubmitJobs"} {
				if most, limited := counts[name]; limited && most == 0 {
					return fmt.Sprintf("%s of %s is 0, and this would be 1", name, b.of)
				}
			}
		}
	}
	return ""
}

// groupsOf returns whose limits for all together count: the first QOS that has one, else all
// associations.
func groupsOf(qos, associations []*bounds, what string) []*bounds {
	for _, b := range qos {
		if _, limited := b.group[what]; limited {
			return []*bounds{b}
		}
	}
	return associations
}

// parseAssociations reads what scontrol shows of associations, by account and user, empty for
// that of the account itself.
func parseAssociations(text string) map[[2]string]*bounds {
	known := map[[2]string]*bounds{}
	for line := range strings.Lines(text) {
		all := fields(line)
		if len(all) == 0 || all[0].key != "ClusterName" {
			continue
		}
		plain := func(key string) string {
			value, _, _ := strings.Cut(get(all, key), "(")
			return value
		}
		account, user := get(all, "Account"), plain("UserName")
		b := &bounds{
			of: "the account " + account, parent: plain("ParentAccount"), job: parseAmounts(get(all, "MaxTRESPJ")), group: parseAmounts(get(all, "GrpTRES")),
			jobs: map[string]int64{}, submits: map[string]int64{},
		}
		if user != "" {
			b.of = "user " + user + " in the account " + account
		}
		if minutes, err := strconv.ParseInt(get(all, "MaxWallPJ"), 10, 32); err == nil {
			b.wall = berth.Duration(minutes * minute)
		}
		count(b.jobs, "MaxJobs", plain("MaxJobs"))
		count(b.jobs, "GrpJobs", plain("GrpJobs"))
		count(b.submits, "MaxSubmitJobs", plain("MaxSubmitJobs"))
		count(b.submits, "GrpSubmitJobs", plain("GrpSubmitJobs"))
		known[[2]string{account, user}] = b
	}
	return known
}

// qosFields are what sacctmgr is asked for of each QOS.
var qosFields = []string{"Name", "Flags", "MaxWall", "MaxTRES", "MaxTRESPU", "MaxTRESPA", "GrpTRES", "MaxJobsPU", "MaxSubmitPU", "GrpJobs", "GrpSubmit"}

// parseQualities reads QOS, by their names.
func parseQualities(text string) map[string]*bounds {
	known := map[string]*bounds{}
	for line := range strings.Lines(text) {
		row := strings.Split(strings.TrimSpace(line), "|")
		if len(row) != len(qosFields) {
			continue
		}
		value := func(name string) string { return row[slices.Index(qosFields, name)] }
		b := &bounds{
			of: "the QOS " + value("Name"), overrules: slices.Contains(wordList(value("Flags")), "OverPartQOS"),
			job: parseAmounts(value("MaxTRES")), user: parseAmounts(value("MaxTRESPU")), account: parseAmounts(value("MaxTRESPA")), group: parseAmounts(value("GrpTRES")),
			jobs: map[string]int64{}, submits: map[string]int64{},
		}
		b.wall, _ = parseLimit(value("MaxWall")) // what cannot be read is no limit: Slurm decides in the end
		count(b.jobs, "MaxJobsPerUser", value("MaxJobsPU"))
		count(b.jobs, "GrpJobs", value("GrpJobs"))
		count(b.submits, "MaxSubmitJobsPerUser", value("MaxSubmitPU"))
		count(b.submits, "GrpSubmitJobs", value("GrpSubmit"))
		known[value("Name")] = b
	}
	return known
}

// count notes a limit, if there is one.
func count(into map[string]int64, name, text string) {
	if n, err := strconv.ParseInt(text, 10, 63); err == nil {
		into[name] = n
	}
}

// parseAmounts reads limits such as cpu=12(4),node=N(0): N is none, and in brackets is what is
// used.
func parseAmounts(text string) amounts {
	all := amounts{}
	for word := range strings.SplitSeq(text, ",") {
		at := strings.LastIndexByte(word, '=')
		if at < 0 {
			continue
		}
		value, _, _ := strings.Cut(word[at+1:], "(")
		count(all, word[:at], value)
	}
	return all
}

// perNode is what the smallest nodes have.
type perNode struct{ cpus, threads int64 }

// leastCPUs returns how many CPUs each node of a partition has, and each core, as last heard.
func (s *Site) leastCPUs(ctx context.Context, partition *site.Partition) (perNode, error) {
	s.coresMu.Lock()
	known := s.cpus != nil
	s.coresMu.Unlock()
	if !known {
		if _, err := s.nodes(ctx); err != nil {
			return perNode{}, err
		}
	}
	s.coresMu.Lock()
	defer s.coresMu.Unlock()
	least := perNode{}
	take := func(name string) {
		cpus, cores := int64(s.cpus[name]), int64(s.cores[name])
		if cpus == 0 || cores == 0 {
			return // it is not there any more
		}
		if least.cpus == 0 || cpus < least.cpus {
			least.cpus = cpus
		}
		if threads := max(1, cpus/cores); least.threads == 0 || threads < least.threads {
			least.threads = threads
		}
	}
	if len(partition.Nodes) > 0 {
		for _, name := range partition.Nodes {
			take(name)
		}
		return least, nil
	}
	for name := range s.cpus {
		take(name)
	}
	return least, nil
}

// of returns what a job of a shape has at least.
func (p perNode) of(shape *site.Shape) amounts {
	all := amounts{"node": max(1, int64(shape.Nodes)), "cpu": int64(shape.Cores) * p.threads, "gres/gpu": int64(shape.Accelerators)}
	if shape.Nodes > 0 {
		all["cpu"] = int64(shape.Nodes) * p.cpus
	}
	return all
}

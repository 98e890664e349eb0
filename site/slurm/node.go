package slurm

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

// nodeRecord is a node as scontrol shows it.
type nodeRecord struct {
	Name           string
	State          string // the base state, such as idle
	StateFlags     []string
	Reason         string
	ReasonAt       berth.Time
	Sockets        int
	CoresPerSocket int
	Threads        int // of a core
	CPUs           int // hardware threads
	AllocCPUs      int
	RealMemory     int64 // MiB
	Features       string
	GRES           string
}

// nodesCommand lists nodes, those of hidden partitions too, in a form that is the same in
// Slurm 22.05, 24.11 and 26.05, which that of sinfo --json is not.
var nodesCommand = []string{"scontrol", "--all", "--oneliner", "show", "node"}

// reason matches why a node is not up, who said so and when.
var reason = regexp.MustCompile(` Reason=(.*) \[[^\]@]*@([0-9T:-]{19})\]`)

// parseNodes reads what nodesCommand writes.
func parseNodes(text string) ([]nodeRecord, error) {
	var nodes []nodeRecord
	seen := map[string]bool{}
	var all []field // of one line
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "No nodes in the system") {
			continue
		}
		all = appendFields(all[:0], line)
		n := nodeRecord{Features: get(all, "AvailableFeatures"), GRES: get(all, "Gres")}
		if len(all) > 0 && all[0].key == "NodeName" {
			n.Name = all[0].value
		}
		flags := strings.Split(get(all, "State"), "+")
		n.State, n.StateFlags = strings.ToLower(strings.TrimRight(flags[0], "*~#!%$@^-")), flags[1:]
		for _, number := range []struct {
			key string
			to  *int
		}{{"Sockets", &n.Sockets}, {"CoresPerSocket", &n.CoresPerSocket}, {"ThreadsPerCore", &n.Threads}, {"CPUTot", &n.CPUs}, {"CPUAlloc", &n.AllocCPUs}} {
			value, err := strconv.ParseInt(get(all, number.key), 10, 32)
			if err != nil {
				return nil, fmt.Errorf("node %.40q: %s is %.40q", n.Name, number.key, get(all, number.key))
			}
			*number.to = int(value)
		}
		n.RealMemory, _ = strconv.ParseInt(get(all, "RealMemory"), 10, 64) // 0 is unknown
		if why := reason.FindStringSubmatch(line); why != nil {
			n.Reason = why[1]
			n.ReasonAt, _ = parseTime(why[2]) // 0 is unknown
		}
		if !site.ValidWord(n.Name) || seen[n.Name] || n.Sockets < 1 || n.CoresPerSocket < 1 || n.Sockets > berth.MaxPEs || n.CoresPerSocket > berth.MaxPEs || n.Threads < 1 || n.AllocCPUs < 0 {
			return nil, fmt.Errorf("node %.40q with %d sockets of %d cores", n.Name, n.Sockets, n.CoresPerSocket)
		}
		seen[n.Name] = true
		nodes = append(nodes, n)
	}
	return nodes, nil
}

func (n *nodeRecord) describe() (site.Node, error) {
	gres, err := parseGRES(n.GRES)
	if err != nil {
		return site.Node{}, fmt.Errorf("node %s: %w", n.Name, err)
	}
	const mebibyte, megabyte = 1 << 20, 1_000_000
	node := site.Node{
		Name: n.Name, Sockets: n.Sockets, Cores: n.cores(), GRES: gres,
		Features: wordList(n.Features),
	}
	if n.RealMemory > 0 && n.RealMemory < berth.MaxMegabytes/2 {
		node.MemoryMB = n.RealMemory * mebibyte / megabyte
	}
	return node, nil
}

func (n *nodeRecord) cores() berth.Count {
	return berth.Count(min(n.Sockets*n.CoresPerSocket, berth.MaxPEs))
}

// state reads a node's state: a base state and flags. A node that does not
// answer is up until Slurm itself says that it is down. Powered down nodes are
// powered up when needed.
func (n *nodeRecord) state() site.NodeState {
	out := site.NodeState{Name: n.Name, Condition: site.Up, Busy: berth.Count(n.AllocCPUs)}
	has := func(flag string) bool { return slices.Contains(n.StateFlags, flag) }
	switch {
	case n.State == "down", n.State == "error", n.State == "future", has("FAIL"), has("INVALID_REG"):
		out.Condition = site.Down
	case has("DRAIN"):
		out.Condition = site.Drained
	case n.State == "unknown", n.State == "invalid", n.State == "":
		out.Condition = site.Unknown
	}
	if out.Condition != site.Up {
		out.Reason, out.Since = n.Reason, n.ReasonAt
	}
	return out
}

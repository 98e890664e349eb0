package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/berth-hpc/berth/site/hostlist"
)

// amount is a number that may be absent or endless.
type amount struct {
	Set      bool  `json:"set"`
	Infinite bool  `json:"infinite"`
	Number   int64 `json:"number"`
}

// is is how a number is said.
func is(n int64) *amount { return &amount{Set: true, Number: n} }

func (n *amount) text() string {
	switch {
	case n.Infinite:
		return "UNLIMITED"
	case !n.Set:
		return none
	}
	return strconv.FormatInt(n.Number, 10)
}

// none is what Slurm's commands write where there is nothing.
const none = "(null)"

func orNone(text string) string {
	if text == "" {
		return none
	}
	return oneLine(text)
}

// oneLine keeps the lines of an answer apart, whatever people have written.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

const timeForm = "2006-01-02T15:04:05"

// at writes a time as the commands do in UTC; 0 is none.
func at(seconds int64) string {
	if seconds == 0 {
		return "N/A"
	}
	return time.Unix(seconds, 0).UTC().Format(timeForm)
}

// minutes writes a limit as the commands do.
func (n *amount) minutes() string {
	if n.Infinite || !n.Set {
		return "UNLIMITED"
	}
	return fmt.Sprintf("%d-%02d:%02d:00", n.Number/(24*60), n.Number/60%24, n.Number%60)
}

func (a *API) get(ctx context.Context, path string, want parts) error {
	return a.wire.ask(ctx, a.now(), http.MethodGet, path, nil, want)
}

// ping says of each controller whether it is up.
func (a *API) ping(ctx context.Context) (string, error) {
	type controller struct {
		Hostname   string `json:"hostname"`
		Responding bool   `json:"responding"`
		Primary    bool   `json:"primary"`
		Status     string `json:"status"`
	}
	var out strings.Builder
	down := ""
	err := a.get(ctx, "ping/", parts{"pings": each(func(c *controller) {
		role, state := "backup", "DOWN"
		if c.Primary {
			role = "primary"
		}
		if c.Responding {
			state = "UP"
		} else if down == "" {
			down = c.Status
		}
		fmt.Fprintf(&out, "Slurmctld(%s) at %s is %s\n", role, oneLine(c.Hostname), state)
	})})
	if err == nil && !strings.Contains(out.String(), " is UP") && down != "" {
		err = refuse("%s", oneLine(down))
	}
	return out.String(), err
}

// clock says what time slurmctld has.
func (a *API) clock(ctx context.Context) (string, error) {
	var statistics struct {
		Time amount `json:"req_time"`
	}
	err := a.get(ctx, "diag/", parts{"statistics": whole(&statistics)})
	return fmt.Sprintf("sdiag output at %s (%d)\n", at(statistics.Time.Number), statistics.Time.Number), err
}

// periods are settings of minutes, which scontrol writes with their unit.
var periods = []string{"ResvOverRun", "OverTimeLimit"}

// config writes the configuration in the order of its names.
func (a *API) config(ctx context.Context) (string, error) {
	settings, about := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if err := a.get(ctx, "conf", parts{"slurm_conf": whole(&settings), "slurm_conf_meta": whole(&about)}); err != nil {
		return "", err
	}
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(string(about[name]), 10, 64) // 0 is unknown
		return n
	}
	if about["SLURM_VERSION"] == nil || number("BOOT_TIME") == 0 || settings["ClusterName"] == nil {
		return "", fmt.Errorf("cannot read what slurmrestd says of the configuration: want SLURM_VERSION, BOOT_TIME and ClusterName")
	}
	var out strings.Builder
	fmt.Fprintf(&out, "Configuration data as of %s\nBOOT_TIME = %s\nSLURM_VERSION = %s\n", at(number("LastUpdate")), at(number("BOOT_TIME")), setting(about["SLURM_VERSION"]))
	names := make([]string, 0, len(settings))
	for name := range settings {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		value := setting(settings[name])
		if slices.Contains(periods, name) {
			value += " min"
		}
		fmt.Fprintf(&out, "%s = %s\n", oneLine(name), value)
	}
	return out.String(), nil
}

// setting writes a text, a number or a list as scontrol would, and all else as it came.
func setting(text json.RawMessage) string {
	var s string
	var list []string
	var n amount
	switch {
	case json.Unmarshal(text, &s) == nil:
		return orNone(s)
	case json.Unmarshal(text, &list) == nil:
		return orNone(strings.Join(list, ","))
	case json.Unmarshal(text, &n) == nil:
		return n.text()
	}
	return oneLine(string(text))
}

// node is a node as slurmrestd tells it.
type node struct {
	Name     string   `json:"name"`
	State    []string `json:"state"`
	Sockets  int      `json:"sockets"`
	Cores    int      `json:"cores"` // of a socket
	Threads  int      `json:"threads"`
	CPUs     int      `json:"cpus"`
	Alloc    int      `json:"alloc_cpus"`
	Memory   int64    `json:"real_memory"`
	Features []string `json:"features"`
	GRES     string   `json:"gres"`
	Reason   string   `json:"reason"`
	By       string   `json:"reason_set_by_user"`
	Since    amount   `json:"reason_changed_at"`
}

// baseStates are those that a node has one of, besides flags.
var baseStates = []string{"UNKNOWN", "DOWN", "IDLE", "ALLOCATED", "ERROR", "MIXED", "FUTURE"}

func (a *API) nodes(ctx context.Context) (string, error) {
	var out strings.Builder
	threads := map[string]int{}
	err := a.get(ctx, "nodes/", parts{"nodes": each(func(n *node) {
		threads[n.Name] = n.Threads
		slices.SortStableFunc(n.State, func(x, y string) int { // the base state first
			return boolean(slices.Contains(baseStates, y)) - boolean(slices.Contains(baseStates, x))
		})
		fmt.Fprintf(&out, "NodeName=%s CoresPerSocket=%d CPUAlloc=%d CPUTot=%d AvailableFeatures=%s Gres=%s RealMemory=%d Sockets=%d State=%s ThreadsPerCore=%d",
			oneLine(n.Name), n.Cores, n.Alloc, n.CPUs, orNone(strings.Join(n.Features, ",")), orNone(n.GRES), n.Memory, n.Sockets, strings.Join(n.State, "+"), n.Threads)
		if n.Reason != "" {
			fmt.Fprintf(&out, " Reason=%s [%s@%s]", oneLine(n.Reason), n.By, at(n.Since.Number))
		}
		out.WriteByte('\n')
	})})
	if err == nil {
		a.mu.Lock()
		a.threads = threads
		a.mu.Unlock()
	}
	return out.String(), err
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// partition is a partition as slurmrestd tells it.
type partition struct {
	Name  string `json:"name"`
	Nodes struct {
		Configured string `json:"configured"`
	} `json:"nodes"`
	Accounts struct {
		Allowed string `json:"allowed"`
		Deny    string `json:"deny"`
	} `json:"accounts"`
	Groups struct {
		Allowed string `json:"allowed"`
	} `json:"groups"`
	QOS struct {
		Allowed  string `json:"allowed"`
		Deny     string `json:"deny"`
		Assigned string `json:"assigned"`
	} `json:"qos"`
	Flags   []string `json:"flags"`
	Maximum struct {
		Nodes amount `json:"nodes"`
		Time  amount `json:"time"`
	} `json:"maximums"`
	Partition struct {
		State []string `json:"state"`
	} `json:"partition"`
}

func (a *API) partitions(ctx context.Context) (string, error) {
	var out strings.Builder
	all := func(list string) string {
		if list == "" {
			return "ALL"
		}
		return oneLine(list)
	}
	err := a.get(ctx, "partitions/", parts{"partitions": each(func(p *partition) {
		byDefault, state := "NO", "UNKNOWN"
		if slices.Contains(p.Flags, "DEFAULT") {
			byDefault = "YES"
		}
		if len(p.Partition.State) == 1 {
			state = oneLine(p.Partition.State[0])
		}
		fmt.Fprintf(&out, "PartitionName=%s AllowGroups=%s AllowAccounts=%s AllowQos=%s Default=%s QoS=%s MaxNodes=%s MaxTime=%s Nodes=%s State=%s",
			oneLine(p.Name), all(p.Groups.Allowed), all(p.Accounts.Allowed), all(p.QOS.Allowed), byDefault, orNone(p.QOS.Assigned), p.Maximum.Nodes.text(),
			p.Maximum.Time.minutes(), orNone(p.Nodes.Configured), state)
		if p.Accounts.Deny != "" {
			fmt.Fprintf(&out, " DenyAccounts=%s", oneLine(p.Accounts.Deny))
		}
		if p.QOS.Deny != "" {
			fmt.Fprintf(&out, " DenyQos=%s", oneLine(p.QOS.Deny))
		}
		out.WriteByte('\n')
	})})
	return out.String(), err
}

// reservation is a reservation as slurmrestd tells it.
type reservation struct {
	Name      string   `json:"name"`
	Start     amount   `json:"start_time"`
	End       amount   `json:"end_time"`
	Nodes     string   `json:"node_list"`
	NodeCount int64    `json:"node_count"`
	Cores     int64    `json:"core_count"`
	Partition string   `json:"partition"`
	Flags     []string `json:"flags"`
	Users     string   `json:"users"`
	Accounts  string   `json:"accounts"`
	Groups    string   `json:"groups"`
	Licences  string   `json:"licenses"`
	Parts     []struct {
		Node string `json:"node"`
		Core string `json:"core"`
	} `json:"core_specializations"`
}

// reservations writes those that there are. Whether one is active scontrol tells by its own clock
// too.
func (a *API) reservations(ctx context.Context) (string, error) {
	var out strings.Builder
	now := a.now().Unix()
	err := a.get(ctx, "reservations/", parts{"reservations": each(func(r *reservation) {
		state := "INACTIVE"
		if r.Start.Number <= now && now <= r.End.Number {
			state = "ACTIVE"
		}
		fmt.Fprintf(&out, "ReservationName=%s StartTime=%s EndTime=%s Nodes=%s NodeCnt=%d CoreCnt=%d PartitionName=%s Flags=%s",
			oneLine(r.Name), at(r.Start.Number), at(r.End.Number), orNone(r.Nodes), r.NodeCount, r.Cores, orNone(r.Partition), orNone(strings.Join(r.Flags, ",")))
		for _, part := range r.Parts {
			fmt.Fprintf(&out, " NodeName=%s CoreIDs=%s", oneLine(part.Node), oneLine(part.Core))
		}
		fmt.Fprintf(&out, " Users=%s Groups=%s Accounts=%s Licenses=%s State=%s\n", orNone(r.Users), orNone(r.Groups), orNone(r.Accounts), orNone(r.Licences), state)
	})})
	return out.String(), err
}

// exists reports whether there is a reservation of a name.
func (a *API) exists(ctx context.Context, name string) (bool, error) {
	found := false
	err := a.get(ctx, "reservations/", parts{"reservations": each(func(r *reservation) { found = found || r.Name == name })})
	return found, err
}

// escaped is a name as a part of an address.
func escaped(name string) string { return url.PathEscape(name) }

// nodesOf are the names of a list of nodes.
func nodesOf(list string) ([]string, error) {
	names, err := hostlist.Expand(list)
	if err != nil {
		return nil, refuse("Invalid node name specified: %v", err)
	}
	return names, nil
}

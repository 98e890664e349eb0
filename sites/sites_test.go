package sites_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/sites"
)

func read(text string) (*sites.File, error) { return sites.Read(strings.NewReader(text), "s.yaml") }

// What the example says, in full.
func TestExample(t *testing.T) {
	f, err := sites.Open(filepath.Join("..", "examples", "sites.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	want := []berth.Site{
		{
			Name: "north",
			Pools: []berth.Pool{
				{Name: "cpu", PEs: 128, Binding: berth.Early, Speed: 1465, Node: berth.Node{Sockets: 2, Cores: 6, MHz: 2930, MemoryMB: 51539}},
				{Name: "gpu", PEs: 16, Binding: berth.Early, Speed: 2200, Node: berth.Node{Sockets: 2, Cores: 12, MHz: 2200, MemoryMB: 137438, Accelerators: 4}},
			},
			Partitions: []berth.Partition{
				{Name: "batch", Pool: "cpu", MaxDuration: 86400},
				{Name: "debug", Pool: "cpu", PEs: berth.PEsOf(0, 1, 2, 3, 127), MaxNPE: 2, MaxDuration: 1800},
				{Name: "visual", Pool: "gpu", PEs: berth.PEsOf(0, 1, 2, 3), MaxNPE: 4},
			},
			Software:  []berth.Software{{Name: "NAMD", Version: "2.12"}, {Name: "CP2K", Version: "2.6.1", Licences: 32}},
			StorageMB: 1_470_000,
			Link:      berth.Link{DelayMS: 20, KilobytesPerSecond: 1_250_000},
		},
		{
			Name: "wide",
			Pools: []berth.Pool{{
				Name: "pool", PEs: 1024, Binding: berth.Late, Speed: 800,
				Node: berth.Node{Sockets: 4, Cores: 8, MHz: 2400, MemoryMB: 137438},
			}},
			Software:  []berth.Software{{Name: "NAMD", Version: "2.9"}},
			StorageMB: 20_000_000,
			Link:      berth.Link{DelayMS: 150, KilobytesPerSecond: 125_000},
		},
		{Name: "small", Pools: []berth.Pool{{Name: "pool", PEs: 32, Binding: berth.Early}}},
	}
	if diff := cmp.Diff(want, f.Sites); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]berth.User{{ID: "ada", Priority: 9}, {ID: "grace", Priority: 3}}, f.Users); diff != "" {
		t.Error(diff)
	}
	policies := sites.Policies{
		Order: "fcfs", Match: "earliest-finish", Place: "first-fit",
		Eager: &sites.Eager{K1: 500, K2: 600, Scope: "site"},
	}
	if diff := cmp.Diff(policies, f.Policies); diff != "" {
		t.Error(diff)
	}
	limits := policy.Limits{
		{Scope: policy.Scope{Role: "user"}, Name: policy.LimitActive, Value: 200},
		{Scope: policy.Scope{Role: "user"}, Name: policy.LimitPESeconds, Value: 3_600_000_000},
	}
	if diff := cmp.Diff(limits, f.Limits); diff != "" {
		t.Error(diff)
	}
}

func TestEveryLimit(t *testing.T) {
	f, err := read(`
sites: [{name: a, pes: 4}, {name: b, pes: 4}]
limits:
- role: user
  lead: 30d
  length: none
  hold: 1h
  active: 0
  no_show: 4
  delay: 30m
  idle: 0
  share: 0.5
  reservations: 3
  pe_hours: 2
  budget: 5
  month_budget: 3
  rate: 0.5
  burst: 7
  streams: 8
  request_bytes: 1MiB
  remembered_bytes: 2MB
  sites: [b, a]
- {role: operator, user: alice, active: none}
`)
	if err != nil {
		t.Fatal(err)
	}
	values := map[policy.LimitName]int64{
		policy.LimitLead: 30 * 86400, policy.LimitLength: policy.NoLimit, policy.LimitHold: 3600, policy.LimitActive: 0, policy.LimitShare: 500,
		policy.LimitReservations: 3, policy.LimitNoShow: 4, policy.LimitDelay: 1800, policy.LimitIdle: 0, policy.LimitPESeconds: 7200, policy.LimitBudget: 18_000, policy.LimitMonthBudget: 10_800, policy.LimitRate: 500, policy.LimitBurst: 7, policy.LimitStreams: 8,
		policy.LimitRequest: 1 << 20, policy.LimitRemembered: 2_000_000,
	}
	want := policy.EachUser(values)
	if len(want) != len(policy.LimitKinds) {
		t.Fatalf("%d limits are read, there are %d", len(want), len(policy.LimitKinds))
	}
	for i := range want {
		want[i].Role = "user"
	}
	want = append(want, policy.Limit{Scope: policy.Scope{Role: "operator", User: "alice"}, Name: policy.LimitActive, Value: policy.NoLimit})
	if diff := cmp.Diff(want, f.Limits); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]sites.Access{{Scope: policy.Scope{Role: "user"}, Sites: []string{"b", "a"}}}, f.Access); diff != "" {
		t.Error(diff)
	}
}

func TestEveryPolicyKey(t *testing.T) {
	f, err := read(`
sites: [{name: a, pes: 4}]
policies:
  preset: wms-eager
  trigger: every
  every: 4m
  order: dpsar
  match: smallest-fit
  admit: [requirements, eager]
  place: pe-worst
  choice: least-area
  horizon: unbounded
  seed: 7
  eager: {k1: 0, k2: 1, scope: grid, refuse_all: true}
  ahead: [{beyond: 1d, share: 0.8}, {beyond: 90m, share: 0.25, below: -3}]
  dpsar: {sd: 4.5, n: 3, n_ujp: 4, overflow: discard, chain: true, length_classes: 5, in_user: ljf, aging: 1h}
  jobs: conservative
  compress: true
  preempt: true
  immediate: queue
  overrun: extend
  extension: 90s
`)
	if err != nil {
		t.Fatal(err)
	}
	sd := sites.Thousandths(4500)
	want := sites.Policies{
		Preset: "wms-eager", Trigger: "every", Every: 240, Order: "dpsar", Match: "smallest-fit",
		Admit: []string{"requirements", "eager"}, Place: "pe-worst", Choice: "least-area", Horizon: "unbounded", Seed: 7,
		Eager: &sites.Eager{K2: 1000, Scope: "grid", RefuseAll: true},
		Ahead: policy.Ahead{{Beyond: 86400, Share: 800}, {Beyond: 5400, Share: 250, Below: new(-3)}},
		DPSAR: &sites.DPSAR{
			SD: &sd, N: 3, NUJP: 4, Overflow: "discard", Chain: true, LengthClasses: 5, InUser: "ljf", Aging: 3600,
		},
		Jobs: "conservative", Compress: new(true), Preempt: true, Immediate: "queue", Overrun: "extend", Extension: 90,
	}
	if diff := cmp.Diff(want, f.Policies); diff != "" {
		t.Error(diff)
	}
	for key, want := range map[string]string{
		"policies.order": "s.yaml:7:3", "policies.eager.k2": "s.yaml:14:18", "sites[0].pes": "s.yaml:2:19", "policies.nonsense": "s.yaml",
	} {
		if got := f.Where(key); got != want {
			t.Errorf("%s is at %s, want %s", key, got, want)
		}
	}
}

func TestSize(t *testing.T) {
	several, err := sites.Open(filepath.Join("..", "examples", "sites.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	one, err := read("sites: [{name: a, pes: 4}]")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file       *sites.File
		site, pool string
		size       berth.Count // 0: there is none
	}{
		{several, "north", "cpu", 128},
		{several, "north", "gpu", 16},
		{several, "north", "", 0},
		{several, "north", "pool", 0},
		{several, "wide", "", 1024},
		{several, "wide", "pool", 1024},
		{several, "", "", 0},
		{several, "", "cpu", 0},
		{several, "west", "", 0},
		{one, "", "", 4},
		{one, "a", "pool", 4},
		{one, "b", "", 0},
		{one, "", "cpu", 0},
	} {
		if size, ok := c.file.Size(c.site, c.pool); size != c.size || ok != (c.size > 0) {
			t.Errorf("%q %q has %d %v, want %d", c.site, c.pool, size, ok, c.size)
		}
	}
}

// site is a file of one site with the keys given.
func site(keys string) string { return "sites:\n- name: a\n  " + keys + "\n" }

// good is what must read, and what the schema must accept.
var good = map[string]string{
	"least":                "sites: [{name: a, pes: 1}]",
	"JSON":                 `{"sites": [{"name": "a", "pes": 4, "speed": 1.5}], "users": [{"id": "u", "priority": -3}]}`,
	"comments and a start": "---\n# c\nsites: # d\n- name: a # e\n  pes: 4\n# f\n",
	"largest pool":         site("pes: 1048576"),
	"names of all letters": "sites: [{name: A-1_b.c, pes: 1}]",
	"quoted number name":   `sites: [{name: "1", pes: 1}]`,
	"node names":           site("nodes: rack[1-2]n[08-10],login"),
	"nodes and pes":        site("nodes: n[1-4]\n  pes: 4"),
	"late":                 site("pes: 4\n  binding: late"),
	"fastest":              site("pes: 4\n  speed: 1000"),
	"slowest":              site("pes: 4\n  speed: 0.001"),
	"speed derived":        site("pes: 4\n  speed: derived\n  node: {sockets: 1, cores: 12, ghz: 3.0}"),
	"pools":                site("pools: [{name: x, pes: 4}, {name: y, nodes: \"n[1-2]\"}]"),
	"partition of the one": site("pes: 4\n  partitions: [{name: p}]"),
	"partition durations": site("pes: 4\n  partitions: [{name: p, max_duration: 02:30:00}, {name: q, max_duration: 1-12}, {name: r, max_duration: PT2H30M}, " +
		"{name: s, max_duration: 90s}, {name: t, max_duration: 1d12h}, {name: u, max_duration: P1DT2H}, {name: v, max_duration: P2W}, {name: w, max_duration: 1-02:03:04}]"),
	"partition PEs":      site("pes: 4\n  partitions: [{name: p, pes: \"0-1,3\"}, {name: q, pes: 2-2}]"),
	"same name anywhere": "sites: [{name: a, pools: [{name: a, pes: 1}], partitions: [{name: a}]}, {name: b, pools: [{name: a, pes: 1}]}]",
	"software":           site("pes: 4\n  software: [{name: NAMD}, {name: NAMD, version: \"2.12\", licences: 3}, {name: Quantum ESPRESSO, version: v7.2-rc1}, {name: MATLAB, version: R2023b}]"),
	"no accelerator":     site("pes: 4\n  node: {accelerators: 0}"),
	"sizes":              site("pes: 4\n  storage: 1.5 PB\n  node: {memory: 0.5TiB}"),
	"links":              site("pes: 4\n  link: {delay: 0ms, bandwidth: 1kB/s}"),
	"uplink":             "uplink: 10 GB/s\n" + site("pes: 4"),
	"transfers": "transfers:\n- {from: a, to: b, command: [rsync, -a, \"host:{from}\", \"{to}\"], timeout: 10m}\n- {from: b, to: a, command: [cp, \"{from}\", \"{to}\"]}\n" +
		"sites: [{name: a, pes: 1}, {name: b, pes: 1}]",
	"delay in seconds":   site("pes: 4\n  link: {delay: 2s}"),
	"managed":            site("pes: 4\n  managed: true"),
	"edges of shares":    "sites: [{name: a, pes: 1}]\npolicies: {eager: {k1: 0, k2: 1.000}}",
	"exact share":        "sites: [{name: a, pes: 1}]\npolicies: {eager: {k1: 0.333, k2: 0.001}}",
	"user of many words": "sites: [{name: a, pes: 1}]\nusers: [{id: /O=Grid/CN=Ada Lovelace, priority: 1}]",
	"adapters":           "sites:\n- {name: a, adapter: {kind: slurm}}\n- {name: b, adapter: {kind: local}, storage: 1TB, link: {delay: 2s}, software: [{name: x}]}",
	"limits": "sites: [{name: a, pes: 1}]\nlimits: [{role: user, lead: 30d, length: none, hold: 1h, active: 0, no_show: 0, share: 0.5, reservations: 3, pe_hours: 1, budget: 2, month_budget: 1, rate: 0.5, burst: 2, " +
		"streams: 3, request_bytes: 1MiB, remembered_bytes: 2 GB}, {user: alice, share: 1.000, sites: [a]}, {role: operator, user: alice, active: none}]",
	"limits of accounts and partitions": "sites: [{name: a, pes: 4, partitions: [{name: gpu}]}]\nlimits: [{partition: gpu, share: 0.25, lead: 7d, length: 24h, hold: 1h, active: 9, pe_hours: 7, month_budget: 8}, " +
		"{account: phys, active: 20, reservations: 30, pe_hours: 10000, budget: 50000}, {account: phys, role: operator, active: none}]",
	"limits of QOS and of each": "sites: [{name: a, pes: 4, partitions: [{name: gpu}]}]\nlimits: [{qos: high, share: 0.25, no_show: none, reservations: 3}, " +
		"{account: \"*\", active: 3}, {qos: \"*\", role: user, no_show: 2, delay: 1h, idle: 0}, {partition: \"*\", lead: 7d, delay: none, idle: 500}]",
	"limits of a partition that a site describes": "sites: [{name: a, adapter: {kind: slurm}}]\nlimits: [{partition: gpu, share: 0.25}]",
	"policies": "sites: [{name: a, pes: 1}]\npolicies: {order: fcfs, admit: [all], every: 4m, seed: 0, dpsar: {sd: 0}}",
}

// bad is what must not read: where the complaint is, about which key, and what it
// says. The schema must refuse it too, unless it cannot tell.
var bad = []struct {
	name, text   string
	place, field string
	want         string
	untold       bool // the schema cannot tell
}{
	{name: "empty", text: "", place: "1:1", field: "sites", want: "empty", untold: true},
	{name: "comment alone", text: "# nothing\n", place: "1:1", field: "sites", want: "empty", untold: true},
	{name: "no sites", text: "users: [{id: a, priority: 1}]", place: "1:1", field: "sites", want: "missing; a sites file needs at least one site"},
	{name: "no site", text: "sites: []", place: "1:8", field: "sites", want: "an empty list"},
	{name: "sites without value", text: "sites:\n", place: "1:1", field: "sites", want: "no value"},
	{name: "a list", text: "- a", place: "1:1", field: "", want: "a list; want a sites file with its keys", untold: false},
	{name: "not YAML", text: "sites: [", place: "1:8", field: "sites", want: "not valid YAML", untold: true},
	{name: "tab", text: "sites:\n\t- name: a\n", place: "2:1", field: "sites", want: "not valid YAML", untold: true},
	{name: "control character", text: "sites: \x01", place: "1:8", field: "sites", want: "not printable UTF-8", untold: true},
	{name: "not UTF-8", text: "sites: \xff", place: "1:8", field: "sites", want: "not printable UTF-8", untold: true},
	{name: "second document", text: "sites: [{name: a, pes: 1}]\n---\nsites: []\n", place: "3:6", field: "sites", want: "a second document", untold: true},
	{name: "anchor", text: "sites: &x [{name: a, pes: 1}]", place: "1:8", field: "sites", want: "anchors, aliases", untold: true},
	{name: "tag", text: "sites: !!seq [{name: a, pes: 1}]", place: "1:8", field: "sites", want: "anchors, aliases", untold: true},
	{name: "deep", text: "sites: " + strings.Repeat("[", 30) + strings.Repeat("]", 30), place: "1:28", field: "sites", want: "nested deeper", untold: true},
	{name: "number as key", text: "sites: [{name: a, pes: 1}]\n1: 2\n", place: "2:1", field: "sites", want: "no key", untold: true},

	{name: "unknown key", text: site("pes: 4\n  softwar: []"), place: "4:3", field: "sites[0].softwar", want: "unknown key (did you mean software?); a site has"},
	{name: "unknown key far from all", text: site("pes: 4\n  qqqqqq: 1"), place: "4:3", field: "sites[0].qqqqqq", want: "unknown key; a site has"},
	{name: "unknown key above", text: "sites: [{name: a, pes: 1}]\npolices: {}", place: "2:1", field: "polices", want: "did you mean policies?"},
	{name: "key twice", text: site("pes: 4\n  pes: 5"), place: "4:3", field: "sites[0].pes", want: "given twice, first in line 3", untold: true},
	{name: "no name", text: "sites: [{pes: 4}]", place: "1:9", field: "sites[0].name", want: "missing; a site needs a name"},
	{name: "number name", text: "sites: [{name: 1, pes: 4}]", place: "1:16", field: "sites[0].name", want: `"1": a number; want a name, in quotes`},
	{name: "true name", text: "sites: [{name: true, pes: 4}]", place: "1:16", field: "sites[0].name", want: "in quotes"},
	{name: "name with blank", text: "sites: [{name: a b, pes: 4}]", place: "1:16", field: "sites[0].name", want: `"a b": want a name of letters`},
	{name: "empty name", text: `sites: [{name: "", pes: 4}]`, place: "1:16", field: "sites[0].name", want: "want a name of letters"},
	{name: "name with dash first", text: `sites: [{name: -a, pes: 4}]`, place: "1:16", field: "sites[0].name", want: "begins with"},
	{name: "duplicate site", text: "sites:\n- {name: a, pes: 1}\n- {name: a, pes: 1}\n", place: "3:10", field: "sites[1].name", want: `"a": a second site of this name, the first is in line 2`, untold: true},
	{name: "duplicate pool", text: site("pools:\n  - {name: x, pes: 1}\n  - {name: x, pes: 2}"), place: "5:12", field: "sites[0].pools[1].name", want: "a second pool of this name, the first is in line 4", untold: true},
	{name: "duplicate partition", text: site("pes: 1\n  partitions: [{name: p}, {name: p}]"), place: "4:34", field: "sites[0].partitions[1].name", want: "a second partition", untold: true},
	{name: "duplicate software", text: site("pes: 1\n  software: [{name: x}, {name: x}]"), place: "4:25", field: "sites[0].software[1]", want: "has it already, in line 4", untold: true},
	{name: "duplicate user", text: "sites: [{name: a, pes: 1}]\nusers: [{id: u, priority: 1}, {id: u, priority: 2}]", place: "2:36", field: "users[1].id", want: "a second user", untold: true},

	{name: "zero PEs", text: site("pes: 0"), place: "3:8", field: "sites[0].pes", want: `"0": want a whole number from 1 to 1048576`},
	{name: "negative PEs", text: site("pes: -4"), place: "3:8", field: "sites[0].pes", want: `"-4": want a whole number`},
	{name: "too many PEs", text: site("pes: 1048577"), place: "3:8", field: "sites[0].pes", want: "1048576"},
	{name: "quoted PEs", text: site(`pes: "4"`), place: "3:8", field: "sites[0].pes", want: "a text; want a whole number from 1 to 1048576, without quotes"},
	{name: "half a PE", text: site("pes: 4.5"), place: "3:8", field: "sites[0].pes", want: "whole number"},
	{name: "octal PEs", text: site("pes: 010"), place: "3:8", field: "sites[0].pes", want: "plain digits", untold: true},
	{name: "no PEs", text: site("binding: late"), place: "2:3", field: "sites[0].pes", want: "missing; a site needs its number of PEs"},
	{name: "pool without PEs", text: site("pools: [{name: x}]"), place: "3:11", field: "sites[0].pools[0].pes", want: "missing; a pool needs"},
	{name: "pes beside pools", text: site("pools: [{name: x, pes: 4}]\n  pes: 4"), place: "4:8", field: "sites[0].pes", want: "belongs to a pool"},
	{name: "pes as list", text: site("pes: [4]"), place: "3:8", field: "sites[0].pes", want: "a list; want a whole number"},
	{name: "names do not agree", text: site("nodes: n[1-3]\n  pes: 4"), place: "3:3", field: "sites[0].nodes", want: "3 names for 4 PEs", untold: true},
	{name: "bad node list", text: site("nodes: n[3-1]"), place: "3:10", field: "sites[0].nodes", want: "want a node list", untold: true},
	{name: "node twice", text: site("nodes: n[1-3],n2"), place: "3:10", field: "sites[0].nodes", want: "node n2 twice", untold: true},
	{name: "binding", text: site("pes: 4\n  binding: lazy"), place: "4:12", field: "sites[0].binding", want: `"lazy": want early or late`},
	{name: "zero speed", text: site("pes: 4\n  speed: 0"), place: "4:10", field: "sites[0].speed", want: `"0": want a number from 0.001 to 1000`},
	{name: "fine speed", text: site("pes: 4\n  speed: 1.3333"), place: "4:10", field: "sites[0].speed", want: "at most three behind the point"},
	{name: "speed by word", text: site("pes: 4\n  speed: fast"), place: "4:10", field: "sites[0].speed", want: "or derived"},
	{name: "speed derived of nothing", text: site("pes: 4\n  speed: derived"), place: "4:10", field: "sites[0].speed", want: "needs sockets, cores and ghz"},
	{name: "speed derived of much", text: site("pes: 4\n  speed: derived\n  node: {sockets: 65536, cores: 65536, ghz: 100}"), place: "4:10", field: "sites[0].speed", want: "faster than 1000", untold: true},
	{name: "memory without unit", text: site("pes: 4\n  node: {memory: 64}"), place: "4:18", field: "sites[0].node.memory", want: "want a size with its unit"},
	{name: "memory in bytes", text: site("pes: 4\n  node: {memory: 64 G}"), place: "4:18", field: "sites[0].node.memory", want: "units are MB, GB"},
	{name: "no memory", text: site("pes: 4\n  node: {memory: 0GB}"), place: "4:18", field: "sites[0].node.memory", want: "at least 1MB", untold: true},
	{name: "endless storage", text: site("pes: 4\n  storage: 99999999999PB"), place: "4:12", field: "sites[0].storage", want: "less than 2^42", untold: true},
	{name: "ghz as text", text: site("pes: 4\n  node: {ghz: 2.4GHz}"), place: "4:15", field: "sites[0].node.ghz", want: "a text; want a number from 0.001 to 100"},
	{name: "no sockets", text: site("pes: 4\n  node: {sockets: 0}"), place: "4:19", field: "sites[0].node.sockets", want: "from 1"},
	{name: "negative accelerators", text: site("pes: 4\n  node: {accelerators: -1}"), place: "4:24", field: "sites[0].node.accelerators", want: "from 0"},
	{name: "node of nothing", text: site("pes: 4\n  node:"), place: "4:3", field: "sites[0].node", want: "no value"},
	{name: "no licence", text: site("pes: 4\n  software: [{name: x, licences: 0}]"), place: "4:34", field: "sites[0].software[0].licences", want: "from 1"},
	{name: "version as number", text: site("pes: 4\n  software: [{name: x, version: 2.10}]"), place: "4:33", field: "sites[0].software[0].version", want: `"2.10": a number; want a version such as "2.12", in quotes`},
	{name: "version as name", text: site("pes: 4\n  software: [{name: x, version: latest}]"), place: "4:33", field: "sites[0].software[0].version", want: `"latest": want a version such as 2.12`},
	{name: "version as range", text: site("pes: 4\n  software: [{name: x, version: 2.x}]"), place: "4:33", field: "sites[0].software[0].version", want: `"2.x": want a version`},
	{name: "version with a hole", text: site("pes: 4\n  software: [{name: x, version: 2..1}]"), place: "4:33", field: "sites[0].software[0].version", want: `"2..1": want a version`},
	{name: "version of two words", text: site("pes: 4\n  software: [{name: x, version: 2.12 beta}]"), place: "4:33", field: "sites[0].software[0].version", want: `"2.12 beta": want a version`},
	{name: "bandwidth without unit", text: site("pes: 4\n  link: {bandwidth: 10}"), place: "4:21", field: "sites[0].link.bandwidth", want: "want a speed with its unit"},
	{name: "bandwidth of another unit", text: site("pes: 4\n  link: {bandwidth: 10Gb}"), place: "4:21", field: "sites[0].link.bandwidth", want: "units are kB/s"},
	{name: "no bandwidth", text: site("pes: 4\n  link: {bandwidth: 1kbit/s}"), place: "4:21", field: "sites[0].link.bandwidth", want: "at least 1kB/s", untold: true},
	{name: "transfers, none", text: "sites: [{name: a, pes: 1}]\ntransfers: []", place: "2:12", field: "transfers", want: "an empty list"},
	{name: "transfer of no site", text: "sites: [{name: a, pes: 1}, {name: b, pes: 1}]\ntransfers:\n- {from: a, to: c, command: [cp, \"{from}\", \"{to}\"]}", place: "3:17", field: "transfers[0].to", want: "no site of this file has this name", untold: true},
	{name: "transfer to itself", text: "sites: [{name: a, pes: 1}, {name: b, pes: 1}]\ntransfers:\n- {from: a, to: a, command: [cp, \"{from}\", \"{to}\"]}", place: "3:3", field: "transfers[0]", want: "from a to itself", untold: true},
	{name: "transfer without command", text: "sites: [{name: a, pes: 1}, {name: b, pes: 1}]\ntransfers:\n- {from: a, to: b}", place: "3:3", field: "transfers[0].command", want: "a transfer needs the command"},
	{name: "transfer of no words", text: "sites: [{name: a, pes: 1}, {name: b, pes: 1}]\ntransfers:\n- {from: a, to: b, command: []}", place: "3:29", field: "transfers[0].command", want: "0 words; want 1 to 100"},
	{name: "transfer as a line", text: "sites: [{name: a, pes: 1}, {name: b, pes: 1}]\ntransfers:\n- {from: a, to: b, command: cp}", place: "3:29", field: "transfers[0].command", want: "want a list of a program and its arguments"},
	{name: "transfer without target", text: "sites: [{name: a, pes: 1}, {name: b, pes: 1}]\ntransfers:\n- {from: a, to: b, command: [cp, \"{from}\"]}", place: "3:29", field: "transfers[0].command", want: "no argument has {to}", untold: true},
	{name: "transfer twice", text: "sites: [{name: a, pes: 1}, {name: b, pes: 1}]\ntransfers:\n- {from: a, to: b, command: [cp, \"{from}\", \"{to}\"]}\n- {from: a, to: b, command: [mv, \"{from}\", \"{to}\"]}", place: "4:3", field: "transfers[1]", want: "a second transfer from a to b, the first is in line 3", untold: true},
	{name: "transfer in no time", text: "sites: [{name: a, pes: 1}, {name: b, pes: 1}]\ntransfers:\n- {from: a, to: b, command: [cp, \"{from}\", \"{to}\"], timeout: 5}", place: "3:62", field: "transfers[0].timeout", want: "5 of what"},
	{name: "uplink without unit", text: "uplink: 10\n" + site("pes: 4"), place: "1:9", field: "uplink", want: "want a speed with its unit"},
	{name: "uplink of another unit", text: "uplink: 10Gb\n" + site("pes: 4"), place: "1:9", field: "uplink", want: "units are kB/s"},
	{name: "delay without unit", text: site("pes: 4\n  link: {delay: 20}"), place: "4:17", field: "sites[0].link.delay", want: "want a delay with its unit"},
	{name: "negative delay", text: site("pes: 4\n  link: {delay: -1ms}"), place: "4:17", field: "sites[0].link.delay", want: "want a delay"},
	{name: "managed by whom", text: site("pes: 4\n  managed: slurm"), place: "4:12", field: "sites[0].managed", want: "want true or false"},

	{name: "classes that lack a PE", text: site("pes: 4\n  classes: [{name: a, pes: 0-2}]"), place: "4:12", field: "sites[0].classes", want: "3 of the 4 PEs", untold: true},
	{name: "classes of one PE", text: site("pes: 4\n  classes: [{name: a, pes: 0-3}, {name: b, pes: 3-3}]"), place: "4:12", field: "sites[0].classes", want: "of another class too", untold: true},
	{name: "classes of a late pool", text: site("pes: 4\n  binding: late\n  classes: [{name: a, pes: 0-3}]"), place: "5:12", field: "sites[0].classes", want: "binds late", untold: true},
	{name: "class without PEs", text: site("pes: 4\n  classes: [{name: a}]"), place: "4:13", field: "sites[0].classes[0].pes", want: "by pes or by nodes"},
	{name: "class of unknown nodes", text: site("nodes: n[1-2]\n  classes: [{name: a, nodes: \"n[1-3]\"}]"), place: "4:23", field: "sites[0].classes[0].nodes", want: `"n3": no such node`, untold: true},
	{name: "class twice", text: site("pes: 4\n  classes: [{name: a, pes: 0-1}, {name: a, pes: 2-3}]"), place: "4:41", field: "sites[0].classes[1].name", want: "a second class", untold: true},
	{name: "feature of two words", text: site("pes: 4\n  features: [a&b]"), place: "4:14", field: "sites[0].features[0]", want: "a word"},
	{name: "partition of unknown pool", text: site("pes: 4\n  partitions: [{name: p, pool: gpu}]"), place: "4:26", field: "sites[0].partitions[0].pool", want: `"gpu": no such pool; the site has pool`, untold: true},
	{name: "partition without a pool", text: site("pools: [{name: x, pes: 4}, {name: y, pes: 4}]\n  partitions: [{name: p}]"), place: "4:16", field: "sites[0].partitions[0].pool", want: "several pools", untold: true},
	{name: "partition of unknown PEs", text: site("pes: 4\n  partitions: [{name: p, pes: 2-4}]"), place: "4:26", field: "sites[0].partitions[0].pes", want: `"2-4": pool pool has no PE 4; it has 0-3`, untold: true},
	{name: "partition of unknown nodes", text: site("nodes: n[01-04]\n  partitions: [{name: p, nodes: \"n[04-05]\"}]"), place: "4:26", field: "sites[0].partitions[0].nodes", want: `"n05": no such node in pool pool`, untold: true},
	{name: "partition of nameless nodes", text: site("pes: 4\n  partitions: [{name: p, nodes: n1}]"), place: "4:26", field: "sites[0].partitions[0].nodes", want: "have no names", untold: true},
	{name: "partition by both", text: site("nodes: n[1-4]\n  partitions: [{name: p, nodes: n1, pes: 0-0}]"), place: "4:26", field: "sites[0].partitions[0].nodes", want: "one way"},
	{name: "partition by count", text: site("pes: 4\n  partitions: [{name: p, pes: 2}]"), place: "4:31", field: "sites[0].partitions[0].pes", want: "could be a count or a PE; write 0-1 for the first 2 PEs or 2-2 for PE 2"},
	{name: "partition of PEs twice", text: site("pes: 4\n  partitions: [{name: p, pes: \"0-1,1\"}]"), place: "4:31", field: "sites[0].partitions[0].pes", want: "a PE named twice", untold: true},
	{name: "partition of a late pool", text: site("pes: 4\n  binding: late\n  partitions: [{name: p, pes: 0-1}]"), place: "5:26", field: "sites[0].partitions[0].pes", want: "binds late", untold: true},
	{name: "bare limit", text: site("pes: 4\n  partitions: [{name: p, max_duration: 90}]"), place: "4:40", field: "sites[0].partitions[0].max_duration", want: "90m (minutes, as in Slurm)"},
	{name: "quoted bare limit", text: site("pes: 4\n  partitions: [{name: p, max_duration: \"90\"}]"), place: "4:40", field: "sites[0].partitions[0].max_duration", want: "90m (minutes, as in Slurm)"},
	{name: "limit of nothing", text: site("pes: 4\n  partitions: [{name: p, max_duration: 0s}]"), place: "4:40", field: "sites[0].partitions[0].max_duration", want: "at least 1 s", untold: true},
	{name: "no PE at most", text: site("pes: 4\n  partitions: [{name: p, max_npe: 0}]"), place: "4:35", field: "sites[0].partitions[0].max_npe", want: "from 1"},

	{name: "ahead of nothing", text: "sites: [{name: a, pes: 1}]\npolicies: {ahead: []}", place: "2:19", field: "policies.ahead", want: "an empty list"},
	{name: "ahead without share", text: "sites: [{name: a, pes: 1}]\npolicies: {ahead: [{beyond: 7d}]}", place: "2:20", field: "policies.ahead[0].share", want: "missing; say which share of the PEs may be promised, such as 0.5"},
	{name: "ahead by a bare number", text: "sites: [{name: a, pes: 1}]\npolicies: {ahead: [{beyond: 7, share: 0.5}]}", place: "2:29", field: "policies.ahead[0].beyond", want: "7"},
	{name: "share ahead as percent", text: "sites: [{name: a, pes: 1}]\npolicies: {ahead: [{beyond: 7d, share: 50%}]}", place: "2:40", field: "policies.ahead[0].share", want: "a text"},
	{name: "K1 above", text: "sites: [{name: a, pes: 1}]\npolicies: {eager: {k1: 1.1, k2: 0}}", place: "2:24", field: "policies.eager.k1", want: `"1.1": want a number from 0 to 1`},
	{name: "K2 below", text: "sites: [{name: a, pes: 1}]\npolicies: {eager: {k1: 1, k2: -0.5}}", place: "2:31", field: "policies.eager.k2", want: `"-0.5": want a number from 0 to 1`},
	{name: "K2 just above", text: "sites: [{name: a, pes: 1}]\npolicies: {eager: {k1: 1, k2: 1.001}}", place: "2:31", field: "policies.eager.k2", want: `"1.001": want a number from 0 to 1`},
	{name: "K2 missing", text: "sites: [{name: a, pes: 1}]\npolicies: {eager: {k1: 1}}", place: "2:19", field: "policies.eager.k2", want: "missing; the filter needs k1 and k2"},
	{name: "K1 too fine", text: "sites: [{name: a, pes: 1}]\npolicies: {eager: {k1: 0.0001, k2: 0}}", place: "2:24", field: "policies.eager.k1", want: "at most three"},
	{name: "K1 as exponent", text: "sites: [{name: a, pes: 1}]\npolicies: {eager: {k1: 5e-1, k2: 0}}", place: "2:24", field: "policies.eager.k1", want: "a text"},
	{name: "K1 as percent", text: "sites: [{name: a, pes: 1}]\npolicies: {eager: {k1: 50%, k2: 0}}", place: "2:24", field: "policies.eager.k1", want: "a text"},
	{name: "scope", text: "sites: [{name: a, pes: 1}]\npolicies: {eager: {k1: 1, k2: 0, scope: world}}", place: "2:41", field: "policies.eager.scope", want: "site or grid"},
	{name: "policy name", text: "sites: [{name: a, pes: 1}]\npolicies: {order: First Come}", place: "2:19", field: "policies.order", want: "want a name of small letters"},
	{name: "policy nearly", text: "sites: [{name: a, pes: 1}]\npolicies: {oder: fcfs}", place: "2:12", field: "policies.oder", want: "did you mean order?"},
	{name: "period", text: "sites: [{name: a, pes: 1}]\npolicies: {every: 240}", place: "2:19", field: "policies.every", want: "240s (seconds"},
	{name: "negative SD", text: "sites: [{name: a, pes: 1}]\npolicies: {dpsar: {sd: -1}}", place: "2:24", field: "policies.dpsar.sd", want: "from 0"},
	{name: "an unknown option of the order", text: "sites: [{name: a, pes: 1}]\npolicies: {dpsar: {chains: true}}", place: "2:20", field: "policies.dpsar.chains", want: "chain"},
	{name: "a priority beyond all scales", text: "sites: [{name: a, pes: 1}]\nusers: [{id: u, priority: 1048577}]", place: "2:27", field: "users[0].priority", want: "1048576"},
	{name: "quota of before the table", text: "sites: [{name: a, pes: 1}]\npolicies: {quota: {reservations: 3}}", place: "2:12", field: "policies.quota", want: "such as limits: [{role: user, active: 20"},
	{name: "no limits", text: "sites: [{name: a, pes: 1}]\nlimits: []", place: "2:9", field: "limits", want: "an empty list"},
	{name: "limit of no one", text: "sites: [{name: a, pes: 1}]\nlimits: [{active: 3}]", place: "2:10", field: "limits[0]", want: "name a role"},
	{name: "limits of one scope in two rows", text: "sites: [{name: a, pes: 1}]\nlimits: [{role: user, active: 3}, {role: user, length: 2d}]", place: "2:35", field: "limits[1]", want: "the row in line 2", untold: true},
	{name: "limit of a role that is none", text: "sites: [{name: a, pes: 1}]\nlimits: [{role: admin, active: 3}]", place: "2:17", field: "limits[0].role", want: "want viewer or user or operator"},
	{name: "unknown limit", text: "sites: [{name: a, pes: 1}]\nlimits: [{role: user, actve: 3}]", place: "2:23", field: "limits[0].actve", want: "did you mean active?"},
	{name: "limit in bare seconds", text: "sites: [{name: a, pes: 1}]\nlimits: [{role: user, length: 240}]", place: "2:31", field: "limits[0].length", want: "240s (seconds"},
	{name: "limit of an unknown scope", text: "sites: [{name: a, pes: 1}]\nlimits: [{acount: phys, active: 3}]", place: "2:11", field: "limits[0].acount", want: "did you mean account?"},
	{name: "limit of a QOS without a name", text: "sites: [{name: a, pes: 1}]\nlimits: [{qos: \"\", active: 3}]", place: "2:16", field: "limits[0].qos", want: "\"\""},
	{name: "limit of a QOS and an account", text: "sites: [{name: a, pes: 1}]\nlimits: [{account: phys, qos: high, active: 3}]", place: "2:10", field: "limits[0]", want: "for account and qos at once"},
	{name: "rate of a QOS", text: "sites: [{name: a, pes: 1}]\nlimits: [{qos: high, rate: 3}]", place: "2:22", field: "limits[0].rate", want: "of qos; it is about how the service is asked"},
	{name: "limit of each user", text: "sites: [{name: a, pes: 1}]\nlimits: [{user: \"*\", active: 3}]", place: "2:11", field: "limits[0].user", want: "without a user is for each user by themselves"},
	{name: "limit of each partition where there are none", text: "sites: [{name: a, pes: 1}]\nlimits: [{partition: \"*\", active: 3}]", place: "2:22", field: "limits[0].partition", want: "no site of this file has partitions", untold: true},
	{name: "no-shows of a partition", text: "sites: [{name: a, pes: 1, partitions: [{name: gpu}]}]\nlimits: [{partition: gpu, no_show: 3}]", place: "2:27", field: "limits[0].no_show", want: "it is about who asks"},
	{name: "limit of an account without a name", text: "sites: [{name: a, pes: 1}]\nlimits: [{account: \"\", active: 3}]", place: "2:20", field: "limits[0].account", want: "\"\""},
	{name: "limit of a partition without a name", text: "sites: [{name: a, pes: 1, partitions: [{name: p}]}]\nlimits: [{partition: \"\", active: 3}]", place: "2:22", field: "limits[0].partition", want: "\"\""},
	{name: "limit of a partition that no site has", text: "sites: [{name: a, pes: 1, partitions: [{name: gpu}, {name: cpu}]}]\nlimits: [{partition: gpus, active: 3}]", place: "2:22", field: "limits[0].partition", want: `"gpus": no site of this file has this partition; they have gpu, cpu`, untold: true},
	{name: "limit of a partition where there are none", text: "sites: [{name: a, pes: 1}]\nlimits: [{partition: gpu, active: 3}]", place: "2:22", field: "limits[0].partition", want: `"gpu": no site of this file has partitions`, untold: true},
	{name: "share of a partition above all", text: "sites: [{name: a, pes: 1, partitions: [{name: gpu}]}]\nlimits: [{partition: gpu, share: 25}]", place: "2:34", field: "limits[0].share", want: "from 0.001 to 1"},
	{name: "limit of an account and a user", text: "sites: [{name: a, pes: 1}]\nlimits: [{account: phys, user: ann, active: 3}]", place: "2:10", field: "limits[0]", want: "for user and account at once"},
	{name: "limit of an account and a partition", text: "sites: [{name: a, pes: 1, partitions: [{name: gpu}]}]\nlimits: [{account: phys, partition: gpu, active: 3}]", place: "2:10", field: "limits[0]", want: "for account and partition at once"},
	{name: "rate of an account", text: "sites: [{name: a, pes: 1}]\nlimits: [{account: phys, rate: 3}]", place: "2:26", field: "limits[0].rate", want: "limit it for a role or a user"},
	{name: "reservations of a partition", text: "sites: [{name: a, pes: 1, partitions: [{name: gpu}]}]\nlimits: [{partition: gpu, reservations: 3}]", place: "2:27", field: "limits[0].reservations", want: "limit active there"},
	{name: "sites of an account", text: "sites: [{name: a, pes: 1}]\nlimits: [{account: phys, sites: [a]}]", place: "2:26", field: "limits[0].sites", want: "sites are for a role or a user"},
	{name: "share above all", text: "sites: [{name: a, pes: 1}]\nlimits: [{role: user, share: 1.5}]", place: "2:30", field: "limits[0].share", want: "from 0.001 to 1"},
	{name: "access to no site of the file", text: "sites: [{name: a, pes: 1}]\nlimits: [{role: viewer, sites: [b]}]", place: "2:33", field: "limits[0].sites[0]", want: "it has a", untold: true},
	{name: "user without priority", text: "sites: [{name: a, pes: 1}]\nusers: [{id: u}]", place: "2:9", field: "users[0].priority", want: "missing"},
	{name: "adapter beside PEs", text: "sites: [{name: a, adapter: {kind: slurm}, pes: 4}]", place: "1:48", field: "sites[0].pes", want: "the site's adapter tells it"},
	{name: "adapter beside partitions", text: "sites: [{name: a, adapter: {kind: slurm}, partitions: [{name: p}]}]", place: "1:55", field: "sites[0].partitions", want: "the site's adapter tells it"},
	{name: "adapter mistyped", text: "sites: [{name: a, pes: 4, adaptor: {kind: slurm}}]", place: "1:27", field: "sites[0].adaptor", want: "did you mean adapter?"},
	{name: "adapter without kind", text: "sites: [{name: a, adapter: {conf: /x}}]", place: "1:28", field: "sites[0].adapter.kind", want: "missing; an adapter needs its kind"},
	{name: "adapter of another kind", text: "sites: [{name: a, adapter: {kind: pbs}}]", place: "1:35", field: "sites[0].adapter.kind", want: `"pbs": want local or slurm`},
	{name: "key of another kind", text: "sites: [{name: a, adapter: {kind: slurm, cores: 2}}]", place: "1:49", field: "sites[0].adapter.cores", want: "for adapters of kind local; this one is slurm"},
	{name: "unknown key of an adapter", text: "sites: [{name: a, adapter: {kind: slurm, config: /x}}]", place: "1:42", field: "sites[0].adapter.config", want: "unknown key (did you mean conf?)"},
	{name: "bare timeout", text: "sites: [{name: a, adapter: {kind: slurm, timeout: 30}}]", place: "1:51", field: "sites[0].adapter.timeout", want: "30s (seconds"},
	{name: "unit", text: "sites: [{name: a, adapter: {kind: slurm, unit: socket}}]", place: "1:48", field: "sites[0].adapter.unit", want: `"socket": want node or core`},
	{name: "binding of an adapter", text: "sites: [{name: a, adapter: {kind: slurm, binding: lazy}}]", place: "1:51", field: "sites[0].adapter.binding", want: `"lazy": want early or late`},
	{name: "names of early binding", text: "sites: [{name: a, adapter: {kind: slurm, name_ahead: 1h}}]", place: "1:42", field: "sites[0].adapter.name_ahead", want: "add binding: late", untold: true},
	{name: "cores bound late", text: "sites: [{name: a, adapter: {kind: slurm, unit: core, binding: late}}]", place: "1:54", field: "sites[0].adapter.binding", want: "names whole nodes", untold: true},
	{name: "watched and bound late", text: "sites: [{name: a, adapter: {kind: slurm, watch: true, binding: late}}]", place: "1:55", field: "sites[0].adapter.binding", want: "only watched", untold: true},
	{name: "binding of this machine", text: "sites: [{name: a, adapter: {kind: local, binding: late}}]", place: "1:51", field: "sites[0].adapter.binding", want: "for adapters of kind slurm; this one is local"},
	{name: "no users", text: "sites: [{name: a, adapter: {kind: local, users: {}}}]", place: "1:49", field: "sites[0].adapter.users", want: "0 users; want 1"},
	{name: "odd account", text: "sites: [{name: a, adapter: {kind: local, users: {ann: a b}}}]", place: "1:55", field: "sites[0].adapter.users.ann", want: "want a name of letters"},
	{name: "unknown key of the service", text: "sites: [{name: a, pes: 1}]\nservice: {listn: x}", place: "2:11", field: "service.listn", want: "did you mean listen?"},
	{name: "form of the log", text: "sites: [{name: a, pes: 1}]\nservice: {log: xml}", place: "2:16", field: "service.log", want: "want text or json"},
	{name: "rates of before the table", text: "sites: [{name: a, pes: 1}]\nservice: {rates: {user: {per_second: 1, burst: 5}}}", place: "2:11", field: "service.rates", want: "such as limits: [{role: user, rate: 500"},
	{name: "rate of nothing", text: "sites: [{name: a, pes: 1}]\nlimits: [{role: user, rate: 0}]", place: "2:29", field: "limits[0].rate", want: "a number from 0.001"},
	{name: "no history", text: "sites: [{name: a, pes: 1}]\nservice: {keep_history: 59m}", place: "2:25", field: "service.keep_history", want: "at least 1h", untold: true},
	{name: "nothing kept", text: "sites: [{name: a, pes: 1}]\nservice: {keep: 0}", place: "2:17", field: "service.keep", want: "from 1"},
	{name: "empty path", text: "sites: [{name: a, pes: 1}]\nservice: {data: \"\"}", place: "2:17", field: "service.data", want: "want a path"},
	{name: "user of two lines", text: "sites: [{name: a, pes: 1}]\nusers: [{id: \"u\\nv\", priority: 1}]", place: "2:14", field: "users[0].id", want: "on one line"},
}

func TestGood(t *testing.T) {
	schema := compiled(t)
	for name, text := range good {
		t.Run(name, func(t *testing.T) {
			if _, err := read(text); err != nil {
				t.Errorf("the reader: %v", err)
			}
			if err := schema.Validate(decoded(t, text)); err != nil {
				t.Errorf("the schema: %v", err)
			}
		})
	}
}

// Editors of some systems put a byte order mark before the text and end lines in two
// characters.
func TestFilesOfOtherEditors(t *testing.T) {
	want, err := read("sites:\n  - {name: a, pes: 1}\n")
	if err != nil {
		t.Fatal(err)
	}
	got, err := read("\ufeffsites:\r\n  - {name: a, pes: 1}\r\n")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Sites, got.Sites); diff != "" {
		t.Error(diff)
	}
}

func TestBad(t *testing.T) {
	schema := compiled(t)
	for _, c := range bad {
		t.Run(c.name, func(t *testing.T) {
			_, err := read(c.text)
			if err == nil {
				t.Fatal("no complaint")
			}
			found := mistakes(t, err)
			if len(found) != 1 {
				t.Errorf("%d complaints, want one: %v", len(found), err)
			}
			first := found[0]
			if first.Field != c.field || !strings.HasPrefix(first.Msg, "s.yaml:"+c.place+": ") || !strings.Contains(first.Msg, c.want) {
				t.Errorf("complaint %q: %s\nwant    %q: s.yaml:%s: …%s…", first.Field, first.Msg, c.field, c.place, c.want)
			}
			if c.untold {
				return
			}
			if err := schema.Validate(decoded(t, c.text)); err == nil {
				t.Error("the schema accepts it")
			}
		})
	}
}

// mistakes returns what is joined in the error of Read.
func mistakes(t *testing.T, err error) []*berth.Error {
	t.Helper()
	all := []error{err}
	if joined, is := err.(interface{ Unwrap() []error }); is {
		all = joined.Unwrap()
	}
	var found []*berth.Error
	for _, one := range all {
		var mistake *berth.Error
		if !errors.As(one, &mistake) || mistake.Code != berth.Invalid {
			t.Fatalf("error %#v", one)
		}
		found = append(found, mistake)
	}
	return found
}

func compiled(t testing.TB) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(sites.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("sites.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("sites.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// decoded returns what a schema sees of a YAML file.
func decoded(t testing.TB, text string) any {
	t.Helper()
	asJSON, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var v any
	decoder := json.NewDecoder(bytes.NewReader(asJSON))
	decoder.UseNumber()
	if err := decoder.Decode(&v); err != nil {
		t.Fatalf("%v of %s", err, asJSON)
	}
	return v
}

func TestSeveralMistakesAtOnce(t *testing.T) {
	_, err := read("sites:\n- {name: a, pes: 0, bindnig: late}\n- {name: a, pes: 4, speed: -1}\npolicies: {eager: {k1: 2, k2: 0}}\n")
	var fields []string
	for _, m := range mistakes(t, err) {
		fields = append(fields, m.Field)
	}
	want := []string{"sites[0].pes", "sites[0].bindnig", "sites[1].speed", "sites[1].name", "policies.eager.k1"}
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Errorf("%s\n%v", diff, err)
	}
	_, err = read("sites:\n" + strings.Repeat("- {name: a, pes: 0}\n", 40))
	found := mistakes(t, err)
	if len(found) != sites.MaxErrors+1 || !strings.Contains(found[sites.MaxErrors].Msg, "and 69 more mistakes") {
		t.Errorf("%d complaints: %v", len(found), err)
	}
}

func TestOpenTellsWhatIsNoFile(t *testing.T) {
	for path, want := range map[string]string{"nowhere.yaml": "no such file", ".": "a directory"} {
		_, err := sites.Open(path)
		var mistake *berth.Error
		if !errors.As(err, &mistake) || mistake.Code != berth.Invalid || mistake.Field != "sites" || !strings.Contains(mistake.Msg, want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	large := strings.Repeat("#", sites.MaxBytes+1)
	if _, err := read(large); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("%v", err)
	}
}

// The example is what the schema describes, too.
func TestExampleMatchesSchema(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "examples", "sites.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := compiled(t).Validate(decoded(t, string(text))); err != nil {
		t.Error(err)
	}
}

func TestFailingReaderIsNoMistakeOfTheFile(t *testing.T) {
	_, err := sites.Read(broken{}, "s.yaml")
	var mistake *berth.Error
	if !errors.Is(err, errRead) || errors.As(err, &mistake) {
		t.Errorf("%v", err)
	}
}

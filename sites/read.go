package sites

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/bytesize"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/site/hostlist"
)

const (
	// maxPriority bounds the size of priorities: what an order with aging can
	// compare in whole numbers.
	maxPriority = 1 << 20
	// nodesExample is what a list of nodes looks like.
	nodesExample = "a node list such as node[01-16,20]"
	// nameLetters are those of the names of sites and pools, as nodes have them.
	nameLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"
	// maxName bounds the length of a name in bytes.
	maxName = 256
	// maxParts bounds the sockets of a node and the cores of a socket.
	maxParts = 1 << 16
	// maxMHz bounds the clock of a core.
	maxMHz = 100_000
)

// DefaultPool is the name of a pool that the file does not name.
const DefaultPool = "pool"

func (r *reader) file(v *value) {
	var transfers func() // read last, since they name sites
	r.group(v, "", "a sites file",
		key{"sites", "a sites file needs at least one site", r.sites},
		key{"uplink", "", measured(r, &r.Uplink, rateExample, bandwidth)},
		key{"transfers", "", func(v *value, path string) { transfers = func() { r.transfers(v, path) } }},
		key{"users", "", r.users},
		key{"policies", "", r.policies},
		key{"limits", "", r.limits},
		key{"prices", "", r.prices},
		key{"projects", "", r.projects},
		key{"service", "", r.service},
	)
	if transfers != nil {
		transfers()
	}
}

func (r *reader) sites(v *value, path string) {
	names := make(unique)
	r.list(v, path, "sites", func(v *value, path string) {
		r.Sites = append(r.Sites, berth.Site{})
		r.site(v, path, &r.Sites[len(r.Sites)-1], names)
	})
}

// pools of a site under way, with what only the reader needs of them.
type pools struct {
	site  *berth.Site
	nodes map[string]map[string]berth.PE // by pool and node name
	bad   map[string]bool                // pools with mistakes, about which nothing further is said
	names unique
}

func (r *reader) site(v *value, path string, site *berth.Site, names unique) {
	if has(v, "adapter") {
		r.describedSite(v, path, site, names)
		return
	}
	p := pools{site: site, nodes: make(map[string]map[string]berth.PE), bad: make(map[string]bool), names: make(unique)}
	keys := []key{
		{"name", "a site needs a name", r.named(&site.Name, "site", names)},
		{"pools", "", func(v *value, path string) {
			r.list(v, path, "pools", func(v *value, path string) { r.pool(v, path, "a pool", &p) })
		}},
	}
	if has(v, "pools") {
		for _, name := range poolKeys {
			keys = append(keys, key{name, "", func(v *value, path string) {
				r.fail(v.Place, path, "belongs to a pool; where pools are listed, write it there")
			}})
		}
	} else {
		// The site is its only pool: the pool reads the same group, in which
		// the keys of the site are none of its business.
		keys = append(keys, key{"pes", "", ignore}, key{"nodes", "", ignore}, key{"binding", "", ignore}, key{"speed", "", ignore}, key{"node", "", ignore}, key{"classes", "", ignore}, key{"features", "", ignore})
	}
	keys = append(keys,
		key{"partitions", "", func(v *value, path string) { r.partitions(v, path, &p) }},
		key{"managed", "", r.switched(&site.Managed)},
		key{"adapter", "", ignore}, // it is not there: for those who mistype it
	)
	keys = append(keys, r.offered(site)...)
	if v.Kind == isMap && !has(v, "pools") {
		r.pool(only(v, poolKeys), path, "a site", &p)
	}
	r.group(v, path, "a site", keys...)
}

// offered are the keys of what a site offers beside its PEs.
func (r *reader) offered(site *berth.Site) []key {
	return []key{
		{"software", "", func(v *value, path string) { r.software(v, path, site) }},
		{"storage", "", measured(r, &site.StorageMB, sizeExample, bytesize.Offered)},
		{"link", "", func(v *value, path string) {
			r.group(v, path, "a link",
				key{"delay", "", measured(r, &site.Link.DelayMS, delayExample, delay)},
				key{"bandwidth", "", measured(r, &site.Link.KilobytesPerSecond, rateExample, bandwidth)},
			)
		}},
	}
}

func ignore(*value, string) {}

// poolKeys are the keys that a site has in place of a list of pools.
var poolKeys = []string{"pes", "nodes", "binding", "speed", "node", "classes", "features"}

// has reports whether a group has the key.
func has(v *value, name string) bool {
	return slices.ContainsFunc(v.Members, func(m member) bool { return m.Key == name })
}

// only returns a group with only the keys of these names, each once: of keys
// given twice the whole group tells.
func only(v *value, names []string) *value {
	part := *v
	part.Members = nil
	for _, m := range v.Members {
		if slices.Contains(names, m.Key) && !has(&part, m.Key) {
			part.Members = append(part.Members, m)
		}
	}
	return &part
}

func (r *reader) pool(v *value, path, what string, p *pools) {
	before := len(r.errs) + r.more
	pool := berth.Pool{Binding: berth.Early}
	var names []string
	var classes *value
	keys := []key{
		{"nodes", "", scanned(r, &names, nodesExample, hostlist.Expand)},
		{"pes", "", whole(r, &pool.PEs, 1, berth.MaxPEs)},
		{"binding", "", r.binding(&pool.Binding)},
		{"node", "", func(v *value, path string) { r.node(v, path, &pool.Node) }},
		{"speed", "", func(v *value, path string) { r.speed(v, path, &pool) }},
		{"features", "", func(v *value, path string) { r.features(v, path, &pool.Features) }},
		{"classes", "", func(v *value, path string) { classes = v }},
	}
	if what == "a pool" {
		keys = append([]key{{"name", "a pool needs a name", r.named(&pool.Name, "pool", p.names)}}, keys...)
	} else {
		pool.Name = DefaultPool
	}
	r.group(v, path, what, keys...)
	if v.Kind == isMap && !has(v, "pes") && !has(v, "nodes") {
		r.fail(v.Place, path+".pes", "missing; %s needs its number of PEs, pes, or their names, nodes%s", what, orPools(what))
	}
	if names != nil {
		switch {
		case !has(v, "pes"):
			pool.PEs = berth.Count(len(names)) // at most maxNodes
		case pool.PEs > 0 && int(pool.PEs) != len(names):
			r.fail(r.places[path+".nodes"], path+".nodes", "%d names for %d PEs; leave pes out, or make them agree", len(names), pool.PEs)
		}
		p.nodes[pool.Name] = make(map[string]berth.PE, len(names))
		for i, name := range names {
			p.nodes[pool.Name][name] = berth.PE(i)
		}
	}
	if classes != nil {
		r.classes(classes, path+".classes", &pool, p.nodes[pool.Name])
	}
	p.bad[pool.Name] = len(r.errs)+r.more > before
	p.site.Pools = append(p.site.Pools, pool)
}

func orPools(what string) string {
	if what == "a pool" {
		return ""
	}
	return ", or a list of pools"
}

func (r *reader) node(v *value, path string, n *berth.Node) {
	var mhz Thousandths
	r.group(v, path, "a node",
		key{"sockets", "", whole(r, &n.Sockets, 1, maxParts)},
		key{"cores", "", whole(r, &n.Cores, 1, maxParts)},
		key{"ghz", "", decimal(r, &mhz, 1, maxMHz)},
		key{"memory", "", measured(r, &n.MemoryMB, sizeExample, bytesize.Offered)},
		key{"accelerators", "", whole(r, &n.Accelerators, 0, berth.MaxAccelerators)},
		key{"accelerator_speed", "", decimal(r, &n.AcceleratorSpeed, 1, maxSpeed)},
	)
	n.MHz = int(mhz) // thousandths of a GHz
}

func (r *reader) speed(v *value, path string, pool *berth.Pool) {
	if v.Kind != isText || v.Text != "derived" {
		if v.Kind == isText {
			r.wrong(v, path, "want a number such as 1.33, or derived")
			return
		}
		decimal(r, &pool.Speed, 1, maxSpeed)(v, path)
		return
	}
	if pool.Node.Sockets == 0 || pool.Node.Cores == 0 || pool.Node.MHz == 0 {
		r.wrong(v, path, "deriving the speed needs sockets, cores and ghz of the node")
		return
	}
	var ok bool
	if pool.Speed, ok = derivedSpeed(pool.Node); !ok {
		r.wrong(v, path, "the node comes out slower than 0.001 or faster than 1000 standard ones")
	}
}

func (r *reader) binding(to *berth.Binding) func(v *value, path string) {
	return scanned(r, to, "early or late", func(text string) (berth.Binding, error) {
		if b := berth.Binding(text); b == berth.Early || b == berth.Late {
			return b, nil
		}
		return "", berth.Errorf(berth.Invalid, "", "want early or late")
	})
}

// features reads what a constraint may ask for.
func (r *reader) features(v *value, path string, to *[]string) {
	r.list(v, path, "features", func(v *value, path string) {
		var feature string
		scanned(r, &feature, "a word such as ib", featureName)(v, path)
		*to = append(*to, feature)
	})
}

// featureName reads a name that can stand in a constraint.
func featureName(text string) (string, error) {
	if text == "" || len(text) > maxName || strings.Trim(text, nameLetters+":=+@%/") != "" {
		return "", berth.Errorf(berth.Invalid, "", "want a word of letters, digits and . _ - : = + @ %% /")
	}
	return text, nil
}

// classes reads the classes of a pool whose nodes may have names.
func (r *reader) classes(v *value, path string, pool *berth.Pool, known map[string]berth.PE) {
	before := len(r.errs) + r.more
	names := make(unique)
	r.list(v, path, "classes", func(v *value, path string) {
		var c berth.Class
		var listed []string
		r.group(v, path, "a class",
			key{"name", "a class needs a name", r.named(&c.Name, "class", names)},
			key{"pes", "", func(v *value, path string) { r.peList(v, path, &c.PEs) }},
			key{"nodes", "", scanned(r, &listed, nodesExample, hostlist.Expand)},
			key{"node", "", func(v *value, path string) { r.node(v, path, &c.Node) }},
			key{"features", "", func(v *value, path string) { r.features(v, path, &c.Features) }},
		)
		if v.Kind == isMap && has(v, "pes") == has(v, "nodes") {
			r.fail(v.Place, path+".pes", "a class names its PEs by pes or by nodes, one of both")
		}
		if listed != nil {
			c.PEs = r.nodesIn(path+".nodes", listed, pool.Name, known)
		}
		pool.Classes = append(pool.Classes, c)
	})
	if len(r.errs)+r.more > before || pool.PEs == 0 {
		return
	}
	if err := pool.CheckClasses(); err != nil {
		r.fail(v.Place, path, "%s", err.Msg)
	}
}

// nodesIn turns the names of nodes of a pool into PE numbers.
func (r *reader) nodesIn(at string, listed []string, pool string, known map[string]berth.PE) berth.PESet {
	if known == nil {
		r.fail(r.places[at], at, "the nodes of pool %s have no names; give the pool nodes, or name PEs by pes", pool)
		return berth.PESet{}
	}
	pes := make([]berth.PE, 0, len(listed))
	for _, name := range listed {
		pe, is := known[name]
		if !is {
			r.fail(r.places[at], at, "%q: no such node in pool %s", name, pool)
			return berth.PESet{}
		}
		pes = append(pes, pe)
	}
	return berth.PEsOf(pes...)
}

// named reads a name that is unique among its kind.
func (r *reader) named(to *string, what string, names unique) func(v *value, path string) {
	return func(v *value, path string) {
		scanned(r, to, "a name", name)(v, path)
		if *to != "" {
			names.add(r, v, path, what, *to)
		}
	}
}

// name reads a name that can stand in file names, columns and commands.
func name(text string) (string, error) {
	if text == "" || len(text) > maxName || strings.Trim(text, nameLetters) != "" || strings.ContainsAny(text[:1], ".-_") {
		return "", berth.Errorf(berth.Invalid, "", "want a name of letters, digits, points, dashes and underscores, that begins with a letter or digit")
	}
	return text, nil
}

// label reads a name; it must print on one line.
func label(text string) (string, error) {
	if text == "" || len(text) > maxName || strings.TrimSpace(text) != text || strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return "", berth.Errorf(berth.Invalid, "", "want 1 to %d bytes on one line, without blanks around", maxName)
	}
	return text, nil
}

func (r *reader) partitions(v *value, path string, p *pools) {
	names := make(unique)
	r.list(v, path, "partitions", func(v *value, path string) {
		var partition berth.Partition
		required := ""
		if len(p.site.Pools) > 1 {
			required = "the site has several pools; say which it is a part of"
		} else if len(p.site.Pools) == 1 {
			partition.Pool = p.site.Pools[0].Name
		}
		var listed []string
		r.group(v, path, "a partition",
			key{"name", "a partition needs a name", r.named(&partition.Name, "partition", names)},
			key{"pool", required, scanned(r, &partition.Pool, "the name of a pool", name)},
			key{"pes", "", func(v *value, path string) { r.peList(v, path, &partition.PEs) }},
			key{"nodes", "", scanned(r, &listed, nodesExample, hostlist.Expand)},
			key{"max_npe", "", whole(r, &partition.MaxNPE, 1, berth.MaxPEs)},
			key{"max_duration", "", measured(r, &partition.MaxDuration, durationExample, duration)},
		)
		if v.Kind == isMap && has(v, "pes") && has(v, "nodes") {
			r.fail(r.places[path+".nodes"], path+".nodes", "pes and nodes both; name the PEs one way")
		} else {
			r.placePartition(v, path, &partition, listed, p)
		}
		p.site.Partitions = append(p.site.Partitions, partition)
	})
}

// peList reads a list of PE numbers.
func (r *reader) peList(v *value, path string, to *berth.PESet) {
	const example = "a list of PE numbers such as 0-31,64-95"
	if v.Kind == isNumber {
		if n, ok := integer(v.Text); ok && n > 0 && n < berth.MaxPEs {
			r.wrong(v, path, "could be a count or a PE; write 0-%d for the first %d PEs or %d-%d for PE %d", n-1, n, n, n, n)
			return
		}
	}
	scanned(r, to, example, func(text string) (berth.PESet, error) {
		set, err := berth.ParsePESet(text)
		if err == nil && set.Empty() {
			return set, berth.Errorf(berth.Invalid, "", "want %s", example)
		}
		return set, err
	})(v, path)
}

// placePartition checks a partition against its pool, and turns node names into
// PE numbers.
func (r *reader) placePartition(v *value, path string, partition *berth.Partition, listed []string, p *pools) {
	var pool *berth.Pool
	names := make([]string, len(p.site.Pools))
	for i := range p.site.Pools {
		names[i] = p.site.Pools[i].Name
		if pool == nil && names[i] == partition.Pool {
			pool = &p.site.Pools[i]
		}
	}
	switch at := path + ".pool"; {
	case partition.Pool == "" || (pool != nil && p.bad[pool.Name]):
		return // told already
	case pool == nil:
		r.fail(r.places[at], at, "%q: no such pool; the site has %s", partition.Pool, strings.Join(names, ", "))
		return
	}
	nodesAt, pesAt := path+".nodes", path+".pes"
	known := p.nodes[pool.Name]
	switch {
	case pool.Binding == berth.Late && v.Kind == isMap && (has(v, "pes") || has(v, "nodes")):
		at := pesAt
		if has(v, "nodes") {
			at = nodesAt
		}
		r.fail(r.places[at], at, "pool %s binds late, so its PEs cannot be named; limit the partition by max_npe, or bind the pool early", pool.Name)
	case listed != nil:
		partition.PEs = r.nodesIn(nodesAt, listed, pool.Name, known)
	case partition.PEs.Max() >= berth.PE(pool.PEs):
		r.fail(r.places[pesAt], pesAt, "%q: pool %s has no PE %d; it has 0-%d", partition.PEs, pool.Name, partition.PEs.Max(), pool.PEs-1)
	}
}

func (r *reader) software(v *value, path string, site *berth.Site) {
	versions := make(unique)
	r.list(v, path, "software", func(v *value, path string) {
		var s berth.Software
		r.group(v, path, "a software",
			key{"name", "a software needs a name", scanned(r, &s.Name, "a name", label)},
			key{"version", "", scanned(r, &s.Version, `a version such as "2.12"`, version)},
			key{"licences", "", whole(r, &s.Licences, 1, berth.MaxLicences)},
		)
		if s.Name != "" {
			text := fmt.Sprintf("%q, version %q", s.Name, s.Version)
			if first, taken := versions[text]; taken {
				r.fail(v.Place, path, "%s: the site has it already, in line %d", text, first)
			} else {
				versions[text] = v.Line
			}
		}
		site.Software = append(site.Software, s)
	})
}

// version reads a version that can be compared with another.
func version(text string) (string, error) {
	if len(text) > maxName || !berth.ValidVersion(text) {
		return "", berth.Errorf(berth.Invalid, "", "want %s", berth.WantVersion)
	}
	return text, nil
}

func (r *reader) users(v *value, path string) {
	ids := make(unique)
	r.list(v, path, "users", func(v *value, path string) {
		var u berth.User
		r.group(v, path, "a user",
			key{"id", "a user needs an id", func(v *value, path string) {
				scanned(r, &u.ID, "an id", label)(v, path)
				if u.ID != "" {
					ids.add(r, v, path, "user", u.ID)
				}
			}},
			key{"priority", "a user needs a priority", whole(r, &u.Priority, -maxPriority, maxPriority)},
		)
		r.Users = append(r.Users, u)
	})
}

func (r *reader) policies(v *value, path string) {
	p := &r.Policies
	word := func(to *string) func(v *value, path string) { return scanned(r, to, "a name", policyName) }
	v = r.moved(v, path, "quota", "{role: user, active: 20, pe_hours: 10000}")
	r.group(v, path, "policies",
		key{"preset", "", word(&p.Preset)},
		key{"trigger", "", word(&p.Trigger)},
		key{"every", "", measured(r, &p.Every, durationExample, duration)},
		key{"order", "", word(&p.Order)},
		key{"match", "", word(&p.Match)},
		key{"admit", "", func(v *value, path string) {
			r.list(v, path, "names", func(v *value, path string) {
				var name string
				word(&name)(v, path)
				p.Admit = append(p.Admit, name)
			})
		}},
		key{"place", "", word(&p.Place)},
		key{"choice", "", word(&p.Choice)},
		key{"horizon", "", word(&p.Horizon)},
		key{"seed", "", whole(r, &p.Seed, 0, 1<<53-1)},
		key{"eager", "", r.eager},
		key{"ahead", "", r.ahead},
		key{"dpsar", "", func(v *value, path string) {
			p.DPSAR = new(DPSAR)
			r.dpsar(v, path, p.DPSAR)
		}},
		key{"jobs", "", word(&p.Jobs)},
		key{"compress", "", func(v *value, path string) {
			p.Compress = new(bool)
			r.switched(p.Compress)(v, path)
		}},
		key{"preempt", "", r.switched(&p.Preempt)},
		key{"staging", "", word(&p.Staging)},
		key{"unaware", "", r.switched(&p.Unaware)},
		key{"immediate", "", word(&p.Immediate)},
		key{"overrun", "", word(&p.Overrun)},
		key{"extension", "", measured(r, &p.Extension, durationExample, duration)},
	)
}

func (r *reader) dpsar(v *value, path string, d *DPSAR) {
	r.group(v, path, "dpsar",
		key{"sd", "", func(v *value, path string) {
			d.SD = new(Thousandths)
			decimal(r, d.SD, 0, 1_000_000_000)(v, path)
		}},
		key{"n", "", whole(r, &d.N, 1, 1<<31-1)},
		key{"n_ujp", "", whole(r, &d.NUJP, 1, 1<<31-1)},
		key{"overflow", "", scanned(r, &d.Overflow, "a name", policyName)},
		key{"chain", "", r.switched(&d.Chain)},
		key{"length_classes", "", whole(r, &d.LengthClasses, 1, 1<<20)},
		key{"in_user", "", scanned(r, &d.InUser, "a name", policyName)},
		key{"aging", "", measured(r, &d.Aging, durationExample, duration)},
	)
}

func (r *reader) eager(v *value, path string) {
	e := &Eager{Scope: ScopeSite}
	r.Policies.Eager = e
	r.group(v, path, "eager",
		key{"k1", "the filter needs k1 and k2", decimal(r, &e.K1, 0, 1000)},
		key{"k2", "the filter needs k1 and k2", decimal(r, &e.K2, 0, 1000)},
		key{"scope", "", scanned(r, &e.Scope, "site or grid", func(text string) (string, error) {
			if text != ScopeSite && text != ScopeGrid {
				return "", berth.Errorf(berth.Invalid, "", "want site or grid")
			}
			return text, nil
		})},
		key{"refuse_all", "", r.switched(&e.RefuseAll)},
	)
}

// ahead reads which share may be promised how far ahead.
func (r *reader) ahead(v *value, path string) {
	r.list(v, path, "rows", func(v *value, path string) {
		var row policy.AheadRow
		var below int
		r.group(v, path, "a row",
			key{"beyond", "say how far ahead, such as 7d", measured(r, &row.Beyond, durationExample, duration)},
			key{"share", "say which share of the PEs may be promised, such as 0.5", decimal(r, &row.Share, 0, 1000)},
			key{"below", "", whole(r, &below, -maxPriority, maxPriority)},
		)
		if has(v, "below") {
			row.Below = &below
		}
		r.Policies.Ahead = append(r.Policies.Ahead, row)
	})
}

// policyName reads a name as the tables of policies have them.
func policyName(text string) (string, error) {
	if text == "" || len(text) > maxName || strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || text[0] < 'a' {
		return "", berth.Errorf(berth.Invalid, "", "want a name of small letters, digits and dashes, such as first-fit")
	}
	return text, nil
}

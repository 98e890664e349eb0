package lint

// room is one package of the module: what of the module it may import, and
// whether it is pure. Paths are relative to the module; "." is the root.
type room struct {
	path    string
	pure    bool // reads no clock, no files, no global randomness; no locks, no goroutines
	imports []string
}

// table is the plan of the house. A room stands below everything it may
// import, so the order of the rows alone rules out cycles and upward imports.
var table = []room{
	{path: ".", pure: true},
	{path: "internal/stream", pure: true},
	{path: "internal/source"},
	{path: "internal/lint", imports: []string{"internal/source"}},
	{path: "internal/sbom"},
	{path: "internal/image"},
	{path: "internal/mutants", imports: []string{"internal/source"}},
	{path: "internal/nearest", pure: true},
	{path: "internal/wholefile", imports: []string{"."}},
	{path: "internal/hpctime", imports: []string{"."}},
	{path: "internal/recurrence", imports: []string{"."}},
	{path: "internal/bytesize", pure: true, imports: []string{"."}},
	{path: "internal/yamltree", imports: []string{"."}},
	{path: "internal/effort"},                                             // imported by tests only
	{path: "internal/debiantest"},                                         // imported by tests only
	{path: "internal/realdata", imports: []string{"internal/debiantest"}}, // imported by tests only
	{path: "internal/nodetest", imports: []string{"internal/debiantest"}}, // imported by tests only
	{path: "internal/withparent"},                                         // imported by tests only
	{path: "internal/heardlog"},                                           // imported by tests only
	{path: "internal/pen"},
	{path: "internal/plot", imports: []string{".", "internal/pen"}},
	{path: "internal/bitset", pure: true, imports: []string{"."}},
	{path: "internal/icalendar", imports: []string{"."}},
	{path: "internal/icalendar/icalendartest", imports: []string{"internal/debiantest"}}, // imported by tests only
	{path: "internal/wire", pure: true, imports: []string{"."}},
	{path: "calendar", pure: true, imports: []string{".", "internal/bitset"}},
	{path: "policy", pure: true, imports: []string{".", "calendar"}},
	{path: "workflow", pure: true, imports: []string{".", "calendar"}},
	{path: "calendar/calendartest", imports: []string{".", "calendar", "policy"}}, // imported by tests only
	{path: "engine/change", pure: true, imports: []string{"."}},
	{path: "notice", pure: true, imports: []string{".", "engine/change"}},
	{path: "engine/internal/state", pure: true, imports: []string{".", "internal/bitset", "internal/wire", "calendar", "policy", "engine/change"}},
	{path: "engine/internal/place", pure: true, imports: []string{".", "internal/stream", "calendar", "policy", "workflow", "engine/internal/state"}},
	{path: "engine/internal/jobs", pure: true, imports: []string{".", "engine/change", "engine/internal/state", "engine/internal/place"}},
	{path: "engine", pure: true, imports: []string{
		".", "internal/nearest", "internal/stream", "calendar", "policy", "workflow", "engine/change", "engine/internal/state", "engine/internal/place", "engine/internal/jobs",
	}},
	{path: "journal", imports: []string{"."}},
	{path: "journal/record", imports: []string{".", "engine", "engine/change", "journal", "internal/wire"}},
	{path: "examples/embed", imports: []string{".", "engine", "engine/change", "journal/record"}},
	{path: "journal/journaltest", imports: []string{".", "internal/effort", "journal"}}, // imported by tests only
	{path: "journal/sqlite", imports: []string{".", "journal"}},
	{path: "journal/sqlite/lossy"}, // imported by tests only
	{path: "journal/postgres", imports: []string{".", "journal"}},
	{path: "journal/postgres/postgrestest", imports: []string{"internal/debiantest"}}, // imported by tests only
	{path: "forecast", pure: true, imports: []string{"."}},
	{path: "measure", pure: true, imports: []string{"."}},
	{path: "chance", pure: true, imports: []string{"."}},
	{path: "check", pure: true, imports: []string{"."}}, // shares no code with calendar or engine
	{path: "workload", imports: []string{".", "workflow", "forecast", "internal/stream", "internal/nearest", "internal/hpctime", "internal/bytesize"}},
	{path: "workflow/flowfile", imports: []string{".", "workflow", "workload", "internal/nearest", "internal/hpctime", "internal/bytesize", "internal/yamltree"}},
	{path: "workflow/foreign", imports: []string{".", "workflow/flowfile", "internal/hpctime"}},
	{path: "site/hostlist", pure: true, imports: []string{"."}},
	{path: "sites", imports: []string{".", "policy", "site/hostlist", "internal/nearest", "internal/hpctime", "internal/bytesize", "internal/yamltree"}},
	{path: "site", imports: []string{".", "site/hostlist"}},
	{path: "site/sitetest", imports: []string{".", "site"}}, // imported by tests only
	{path: "site/fake", imports: []string{".", "site"}},
	{path: "site/local", imports: []string{".", "internal/wholefile", "site", "site/hostlist"}},
	{path: "site/slurm", imports: []string{".", "internal/hpctime", "internal/nearest", "site", "site/hostlist"}},
	{path: "site/slurm/accounting", imports: []string{"."}},
	{path: "site/slurm/rest", imports: []string{".", "site/hostlist", "site/slurm"}},
	{path: "site/slurm/slurmtest", imports: []string{"internal/debiantest"}}, // imported by tests only
	{path: "service", imports: []string{".", "chance", "check", "policy", "engine", "engine/change", "internal/wholefile", "internal/wire", "journal", "journal/record", "journal/postgres", "journal/sqlite", "notice", "site", "site/hostlist"}},
	{path: "sites/adapters", imports: []string{".", "engine", "internal/wholefile", "service", "site", "site/local", "site/slurm", "site/slurm/rest", "sites"}},
	{path: "api/form", imports: []string{"."}},
	{path: "api/token", imports: []string{".", "internal/wholefile", "service", "site"}},
	{path: "api/token/tokentest", imports: []string{"."}}, // imported by tests only
	{path: "api/courier", imports: []string{".", "internal/wholefile"}},
	{path: "api/identity", imports: []string{".", "service", "site"}},
	{path: "api/identity/openidtest"}, // imported by tests only
	{path: "web"},
	{path: "internal/browser", imports: []string{"internal/debiantest", "internal/heardlog"}}, // imported by tests only
	{path: "internal/cputime"},
	{path: "internal/hugepages"},
	{path: "internal/performance", imports: []string{"."}},
	{path: "internal/performance/page", imports: []string{"internal/performance"}},
	{path: "internal/simbench", imports: []string{"internal/cputime", "internal/performance"}},
	{path: "internal/calendarbench", imports: []string{".", "calendar", "calendar/calendartest", "policy", "internal/cputime", "internal/hugepages", "internal/performance"}},
	{path: "internal/workflowbench", imports: []string{".", "calendar", "workload", "workflow", "internal/cputime", "internal/hugepages", "internal/performance"}},
	{path: "sim", imports: []string{".", "internal/stream", "calendar", "policy", "workflow", "engine", "engine/change", "workload", "measure"}},
	{path: "internal/offline", pure: true, imports: []string{"."}},
	{path: "internal/federation", pure: true, imports: []string{".", "engine", "engine/change"}},
	{path: "planning", imports: []string{".", "calendar", "workflow", "workload", "sim"}},
	{path: "internal/sweep", imports: []string{"."}},
	{path: "internal/chart", imports: []string{".", "internal/pen"}},
	{path: "lab", imports: []string{".", "engine", "measure", "sim", "internal/sweep", "internal/chart"}},
	{path: "advise", imports: []string{".", "policy", "engine", "measure", "sim", "internal/stream", "internal/sweep"}},
	{path: "api/laboratory", imports: []string{"."}},
	{path: "api", imports: []string{".", "policy", "engine", "internal/hpctime", "internal/nearest", "site", "site/hostlist", "service", "workflow", "workload", "planning", "sites", "lab", "internal/icalendar", "notice", "api/courier", "internal/recurrence", "api/form", "api/identity", "api/laboratory", "api/token"}},
	{path: "api/client", imports: []string{".", "api/form"}},
	{path: "internal/demo", imports: []string{".", "policy", "engine", "workload", "journal/sqlite", "site", "site/fake", "service", "api", "api/laboratory", "api/token", "web"}},
	{path: "internal/demo/demo", imports: []string{"internal/demo"}},
	{path: "scenario", imports: []string{".", "calendar", "policy", "workflow", "workflow/flowfile", "engine", "workload", "measure", "sim", "sites", "internal/nearest"}},
	{path: "reproduce", imports: []string{
		".", "internal/cputime", "internal/offline", "internal/stream", "internal/sweep", "calendar", "policy", "engine", "workload", "workflow", "forecast", "measure", "sim", "internal/chart",
	}},
	{path: "cmd/berth", imports: []string{
		".", "calendar", "policy", "engine", "workload", "workflow", "forecast", "measure", "chance", "check", "sim", "planning", "workflow/flowfile", "workflow/foreign", "scenario", "sites", "sites/adapters", "reproduce", "lab", "advise", "journal", "journal/postgres", "journal/sqlite",
		"site", "site/hostlist", "site/slurm", "site/slurm/accounting", "notice", "service", "api", "api/courier", "api/identity", "api/laboratory", "api/token", "api/form", "api/client", "web", "internal/nearest",
		"internal/hugepages", "internal/plot", "internal/stream", "internal/hpctime", "internal/bytesize", "internal/wholefile",
	}},
}

// impure lists what a pure room must not import: the world (files, network,
// processes), clocks, locks and goroutines' tools, logs, randomness that no
// seed governs, and addresses as numbers. Packages below a listed one are meant
// too.
var impure = []string{
	"context", "crypto/rand", "embed", "hash/maphash", "io/fs", "io/ioutil", "log", "net", "os",
	"path/filepath", "runtime", "sync", "syscall", "testing", "time", "unsafe",
}

// seeded lists what a pure room may use of math/rand and math/rand/v2: types
// and constructors. Everything else there draws from the global source.
var seeded = []string{
	"ChaCha8", "New", "NewChaCha8", "NewPCG", "NewSource", "NewZipf", "PCG", "Rand", "Source", "Source64", "Zipf",
}

// repeatable lists rooms that are not pure, but whose output is a function of
// their input, so the order of no map may matter.
var repeatable = []string{"workload", "sim", "planning", "scenario", "reproduce", "lab", "advise", "internal/plot", "internal/chart"}

// unordered lists functions that iterate over a map in the order of the map.
var unordered = []exception{
	{"check/groups.go newGroups", "each turn sums up one group, and groups know nothing of one another"},
	{"check/loads.go (*loads).judge", "each turn judges one pool, and pools know nothing of one another"},
	{"engine/internal/state/ledger.go (*State).Select", "what is wanted is a function of the entry, and the list is sorted"},
	{"engine/internal/state/ledger.go (*State).Visit", "its contract says so: what is done must not depend on the order"},
}

// variables lists package variables of pure rooms that are written.
var variables = []exception{}

// owned lists the states that only some functions write. In the state of the engine,
// the writers are the functions that the doors need, by files where all of a file are;
// nothing outside the package and its doors reaches them.
var owned = []owner{{
	room: "engine/internal/state",
	types: []string{
		"State", "pool", "stock", "ledger", "Entry", "rare", "multipart", "queue", "users", "Backlog", "Block", "Job", "outage", "timers", "timer", "timerSlot",
		"promisesOnly", "layered", "flat", "Profile", "step", "touch", "Trial", "undoable",
		"workflows", "Flow", "flowTask", "Open", "spent",
	},
	writers: []string{
		"fold.go", "life.go", "naming.go", "open.go", "outages.go", "snapshot.go", "trial.go", "planned.go", "profile.go", "New", "(*State).newStock",
		"(*ledger)", "(*timers)", "(*queue)", "(*users)", "(*Backlog)", "(*Block)", "(*spent)",
		"(*Entry).timer", "(*Entry).several", "(*Entry).addition", "(*Entry).allot", "(*Entry).write", "(*Entry).copy", "(*Entry).spare",
		"(*Entry).Promise", // says that others have it from then on
		"(*State).queueJob", "(*State).addJob", "(*State).dropJob", "(*State).plan", "(*State).pending", "(*State).describe", "(*State).schedule", "(*State).waitFor",
		"(*State).touch", "(*State).touchNew", "(*State).Unsettled",
		"(*State).takeStocks", "(*State).giveStocks", "(*State).eachStock", "(*State).takeUplink", "(*State).giveUplink", "(*State).eachShare",
		// Looks that make the calendars complete and forget what is over.
		"(*State).View", "(*State).prune", "Stock.View", "Stock.prune", "(*State).Check", "(*State).Hash",
		"(*State).Promised", // counts once what is kept from then on
		"(*State).foldWorkflow", "(*State).taskOver", "(*State).acceptTask", "(*State).followTask", "(*State).restoreWorkflows", "(*State).noteUnused", "(*State).restoreUnused", "(*State).settle", "(*State).restoreCharges", "(*State).Disturbed", "(*Flow).TakeFreed", "(*workflows)",
		// A workflow that is in no state yet.
		"NewFlow", "(*Flow).Expect",
	},
	doors: []string{
		"New", "NewFlow", "(*Flow).Expect", "Restore", "(*State).Fold",
		"(*State).Try", "(*State).TryPlans", "(*Trial).Book", "(*Trial).Promise", "(*Trial).Give", "(*Trial).Shorten", "(*Trial).Release", "(*Trial).Vacate", "(*Trial).Unplan",
		"(*Trial).View", "(*Trial).Undo", "(*Trial).Close",
		"(*State).Unsettled", "(*State).Disturbed", "(*Flow).TakeFreed", // ask once for what has changed since they were asked last
		// Looks, as above, or with a memory of where they looked last.
		"(*State).View", "Stock.View", "(*State).Check", "(*State).Hash", "(*State).FitsBesidePlans", "(*State).Profile", "(*State).Promised", "(*Entry).Promise",
		"(*Profile).Index", "(*Profile).Earliest", "(*Profile).Earlier", "(*Profile).Most", "(*Profile).Fits",
		"(*Profile).BeginCompression", "(*Profile).EndCompression",
	},
	readers: []string{
		"Clone", "Lowest", // of a reservation, of a set
		"Round", "Discards", // of an order: what is kept there is what it was given
	},
}}

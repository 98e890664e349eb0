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
	{path: "internal/mutants", imports: []string{"internal/source"}},
	{path: "internal/nearest", pure: true},
	{path: "internal/hpctime", imports: []string{"."}},
	{path: "internal/bytesize", pure: true, imports: []string{"."}},
	{path: "internal/realdata"}, // imported by tests only
	{path: "internal/pen"},
	{path: "internal/plot", imports: []string{".", "internal/pen"}},
	{path: "internal/bitset", pure: true, imports: []string{"."}},
	{path: "internal/wire", pure: true, imports: []string{"."}},
	{path: "calendar", pure: true, imports: []string{".", "internal/bitset"}},
	{path: "policy", pure: true, imports: []string{".", "calendar"}},
	{path: "workflow", pure: true, imports: []string{".", "calendar"}},
	{path: "calendar/calendartest", imports: []string{".", "calendar", "policy"}}, // imported by tests only
	{path: "engine/change", pure: true, imports: []string{"."}},
	{path: "engine/internal/state", pure: true, imports: []string{".", "internal/bitset", "internal/wire", "calendar", "policy", "engine/change"}},
	{path: "engine/internal/place", pure: true, imports: []string{".", "internal/stream", "calendar", "policy", "engine/internal/state"}},
	{path: "engine/internal/jobs", pure: true, imports: []string{".", "engine/change", "engine/internal/state", "engine/internal/place"}},
	{path: "engine", pure: true, imports: []string{
		".", "internal/stream", "calendar", "policy", "engine/change", "engine/internal/state", "engine/internal/place", "engine/internal/jobs",
	}},
	{path: "journal", imports: []string{"."}},
	{path: "journal/record", imports: []string{".", "engine", "engine/change", "journal", "internal/wire"}},
	{path: "examples/embed", imports: []string{".", "engine", "engine/change", "journal/record"}},
	{path: "journal/journaltest", imports: []string{".", "journal"}}, // imported by tests only
	{path: "journal/sqlite", imports: []string{".", "journal"}},
	{path: "journal/sqlite/lossy"}, // imported by tests only
	{path: "forecast", pure: true, imports: []string{"."}},
	{path: "measure", pure: true, imports: []string{"."}},
	{path: "check", pure: true, imports: []string{"."}}, // shares no code with calendar or engine
	{path: "workload", imports: []string{".", "workflow", "internal/stream", "internal/nearest", "internal/hpctime", "internal/bytesize"}},
	{path: "site/hostlist", pure: true, imports: []string{"."}},
	{path: "sites", imports: []string{".", "site/hostlist", "internal/nearest", "internal/hpctime", "internal/bytesize"}},
	{path: "site", imports: []string{".", "site/hostlist"}},
	{path: "site/sitetest", imports: []string{".", "site"}}, // imported by tests only
	{path: "site/fake", imports: []string{".", "site"}},
	{path: "site/local", imports: []string{".", "site", "site/hostlist"}},
	{path: "site/slurm", imports: []string{".", "internal/hpctime", "site", "site/hostlist"}},
	{path: "site/slurm/slurmtest"}, // imported by tests only
	{path: "service", imports: []string{".", "check", "engine", "engine/change", "internal/wire", "journal", "journal/record", "journal/sqlite", "site"}},
	{path: "api/form", imports: []string{"."}},
	{path: "api/token", imports: []string{".", "service", "site"}},
	{path: "api", imports: []string{".", "internal/hpctime", "internal/nearest", "site", "service", "api/form", "api/token"}},
	{path: "api/client", imports: []string{".", "api/form"}},
	{path: "internal/cputime"},
	{path: "internal/calendarbench", imports: []string{".", "calendar", "calendar/calendartest", "policy", "internal/cputime"}},
	{path: "internal/workflowbench", imports: []string{".", "calendar", "workload", "workflow", "internal/cputime"}},
	{path: "sim", imports: []string{".", "calendar", "policy", "engine", "engine/change", "workload", "measure"}},
	{path: "internal/sweep", imports: []string{"."}},
	{path: "internal/chart", imports: []string{".", "internal/pen"}},
	{path: "reproduce", imports: []string{
		".", "internal/cputime", "internal/stream", "internal/sweep", "calendar", "policy", "engine", "workload", "workflow", "forecast", "measure", "sim", "internal/chart",
	}},
	{path: "lab", imports: []string{".", "engine", "measure", "sim", "internal/sweep", "internal/chart"}},
	{path: "cmd/berth", imports: []string{
		".", "calendar", "policy", "engine", "workload", "workflow", "forecast", "measure", "check", "sim", "sites", "reproduce", "lab", "journal", "journal/sqlite",
		"site", "site/hostlist", "site/local", "site/slurm", "service", "api", "api/token", "api/form", "api/client", "internal/nearest",
		"internal/plot", "internal/stream", "internal/hpctime", "internal/bytesize",
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
var repeatable = []string{"workload", "sim", "reproduce", "lab", "internal/plot", "internal/chart"}

// unordered lists functions that iterate over a map in the order of the map.
var unordered = []exception{
	{"check/groups.go newGroups", "each turn sums up one group, and groups know nothing of one another"},
	{"check/loads.go (*loads).judge", "each turn judges one pool, and pools know nothing of one another"},
	{"engine/internal/state/ledger.go (*State).Select", "what is wanted is a function of the entry, and the list is sorted"},
	{"engine/internal/state/ledger.go (*State).Visit", "its contract says so: what is done must not depend on the order"},
}

// variables lists package variables of pure rooms that are written.
var variables = []exception{}

// owned lists the states that only some functions write. From outside the room all
// changes come through its doors, of which Fold and a Trial are those that change
// what the state says.
var owned = []owner{
	{ // the last doors are questions: they forget what is over, or write what they have made themselves
		room:  "engine/internal/state",
		types: []string{"State", "Entry", "Job", "pool", "Stock"},
		writers: []string{
			"(*Backlog).add", "(*Entry).Reservation", "(*Entry).allot", "(*Entry).capHold", "(*Entry).several", "(*Entry).timer", "New",
			"Restore", "(*State).Check", "(*State).Discards", "(*State).FitsBesidePlans", "(*State).Fold", "(*State).Hash", "(*State).Idle",
			"(*State).Round", "(*State).Try", "(*State).TryPlans", "(*State).Unsettled", "(*State).View", "(*State).accept",
			"(*State).addJob", "(*State).addOutage", "(*State).awaitCheckIn", "(*State).beginOutage", "(*State).book", "(*State).cancel",
			"(*State).complement", "(*State).confirm", "(*State).describe", "(*State).dropJob", "(*State).dropNoShow", "(*State).end",
			"(*State).endOutage", "(*State).extend", "(*State).foldLive", "(*State).free", "(*State).gone", "(*State).modify",
			"(*State).move", "(*State).newStock", "(*State).openTrial", "(*State).pending", "(*State).plan", "(*State).prune",
			"(*State).queueJob", "(*State).reclaim", "(*State).resize", "(*State).restore", "(*State).restoreHeld",
			"(*State).restoreReservations", "(*State).schedule", "(*State).setMissing", "(*State).shorten", "(*State).stage",
			"(*State).start", "(*State).stay", "(*State).takeForecast", "(*State).timeOutage", "(*State).touch", "(*State).touchNew",
			"(*State).unbook", "(*State).unqueue", "(*State).vacate", "(*State).waitFor", "Stock.View", "Stock.prune", "(*Trial).Book",
			"(*Trial).Close", "(*Trial).Give", "(*Trial).Release", "(*Trial).Undo", "(*Trial).Unplan", "(*Trial).View", "(*Trial).calendar",
			"(*Trial).of", "(*flat).complete", "(*flat).expectJobs", "(*flat).run", "(*flat).stop", "(*layered).run", "(*ledger).add",
			"(*ledger).dropPart", "promisesOnly.run",
		},
		doors: []string{
			"New", "Restore", "(*State).Fold", "(*State).Try", "(*State).TryPlans", "(*State).Check", "(*State).Hash", "(*State).Unsettled",
			"(*State).View", "Stock.View", "(*State).Idle", "(*State).Discards", "(*State).Round", "(*State).FitsBesidePlans",
			"(*Entry).Reservation", "(*Trial).Close", "(*Trial).View", "(*Trial).Undo", "(*Trial).Book", "(*Trial).Give", "(*Trial).Release",
			"(*Trial).Unplan",
		},
	},
}

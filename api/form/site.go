package form

import "github.com/berth-hpc/berth"

// Site is a cluster as clients see it.
type Site struct {
	Name       string            `json:"name"`
	Adapter    string            `json:"adapter,omitempty"` // "slurm", "local", or none
	Shadow     bool              `json:"shadow,omitempty"`  // only watched; loads are what would have been promised
	Reachable  bool              `json:"reachable"`
	Starting   bool              `json:"starting,omitempty"` // not reachable, because the first look at it is not over
	Trouble    string            `json:"trouble,omitempty"`
	Seen       Time              `json:"seen,omitzero"`
	Pools      []Pool            `json:"pools"`
	Partitions []berth.Partition `json:"partitions,omitempty"`
	Software   []berth.Software  `json:"software,omitempty"`
	StorageMB  int64             `json:"storage_mb,omitempty"`
	Link       berth.Link        `json:"link,omitzero"`
	Nodes      []Node            `json:"nodes,omitempty"`
	Drift      []Drift           `json:"drift,omitempty"` // for operators
}

// Pool is a pool and its load.
type Pool struct {
	berth.Pool
	Free    berth.Count `json:"free"`    // neither running nor out of use now
	Running int         `json:"running"` // parts that run
	Waiting int         `json:"waiting"` // parts promised for later
}

// Node is the state of a node.
type Node struct {
	Name      string      `json:"name"`
	Condition string      `json:"condition"`
	Reason    string      `json:"reason,omitempty"`
	Since     Time        `json:"since,omitzero"`
	Busy      berth.Count `json:"busy"`
}

// Drift is a difference between what was promised and what the site has.
type Drift struct {
	Kind string   `json:"kind"`
	Name string   `json:"name"`
	What []string `json:"what,omitempty"`
}

// Finding is one thing that a doctor found: what was looked at, how bad it is
// ("ok", "warning", "error"), what is so, and what the operator can do about it.
type Finding struct {
	Check string `json:"check"`
	Level string `json:"level"`
	Text  string `json:"text"`
	Hint  string `json:"hint,omitempty"`
}

// Findings is what a doctor found at a site.
type Findings struct {
	Findings []Finding `json:"findings"`
}

// Sites is a list of sites.
type Sites struct {
	Sites []Site `json:"sites"`
}

// Span is what holds PEs of a pool for some time. ID and User are there for
// those only who own it.
type Span struct {
	Kind  berth.Kind  `json:"kind"` // request, job or outage
	Pool  string      `json:"pool"`
	Start Time        `json:"start,omitzero"` // none of an outage that had begun when it was first seen
	End   Time        `json:"end,omitzero"`   // missing where the end is not known
	NPE   berth.Count `json:"npe"`
	PEs   berth.PESet `json:"pes,omitzero"` // empty until they are known
	State string      `json:"state,omitempty"`
	ID    string      `json:"id,omitempty"`
	User  string      `json:"user,omitempty"`
	Name  string      `json:"name,omitempty"`
	Seen  Time        `json:"seen,omitzero"` // of an outage without a start: when it was first seen
	// Number is that of its bars in pictures of the pool.
	Number uint32 `json:"number,omitempty"`
}

// Occupation is one page of what holds PEs of a site, by start. Next is the
// cursor of the page behind it.
type Occupation struct {
	Spans []Span `json:"spans"`
	Next  string `json:"next,omitempty"`
}

// Outbox is what sites have not done yet, the oldest first.
type Outbox struct {
	Errands []Errand `json:"errands"`
}

// Errand is something that a site has not done yet about a promise.
type Errand struct {
	Number      uint64 `json:"number"`
	Site        string `json:"site"`
	Reservation string `json:"reservation"`
	What        string `json:"what" enum:"make,remove"` // at the site
	State       string `json:"state,omitempty"`         // of the reservation
	Since       Time   `json:"since,omitzero"`          // when the reservation last changed
	Trouble     string `json:"trouble,omitempty"`       // why it could not be done when last tried, in the site's words
}

// Outages is what is out of use, and what is announced to be.
type Outages struct {
	Outages []Outage `json:"outages"`
}

// MaintenanceRequest asks for maintenance.
type MaintenanceRequest struct {
	Name     string         `json:"name"`
	Site     string         `json:"site"`
	Nodes    []string       `json:"nodes,omitempty"` // all of the site if there are none
	Start    Time           `json:"start,omitzero"`  // now by default; if it repeats, from when on
	End      Time           `json:"end,omitzero"`    // or Duration
	Duration berth.Duration `json:"duration,omitempty"`
	Reason   string         `json:"reason,omitempty"`
	Repeat   string         `json:"repeat,omitempty"`    // as for a series, with the next five
	TimeZone string         `json:"time_zone,omitempty"` // UTC by default
	Until    Time           `json:"until,omitzero"`
	Times    int            `json:"times,omitempty"`
	Except   []string       `json:"except,omitempty"`
	Add      []string       `json:"add,omitempty"`
	DryRun   bool           `json:"dry_run,omitempty"`
}

// MaintenanceAnswer is maintenance, and the ids of the reservations in its way when it was added.
type MaintenanceAnswer struct {
	Maintenance Maintenance `json:"maintenance"`
	InTheWay    []string    `json:"in_the_way"`
}

// MaintenanceList is maintenance that is not over.
type MaintenanceList struct {
	Maintenance []Maintenance `json:"maintenance"`
}

// Maintenance is nodes that are out of use at times that are known before.
type Maintenance struct {
	Name     string   `json:"name"`
	Site     string   `json:"site"`
	Nodes    []string `json:"nodes,omitempty"` // all of the site if there are none
	Reason   string   `json:"reason,omitempty"`
	Repeat   string   `json:"repeat,omitempty"`
	TimeZone string   `json:"time_zone,omitempty"`
	By       string   `json:"by"`
	Created  Time     `json:"created"`
	// Times are those that are not over, by start.
	Times []MaintenanceTime `json:"times"`
}

// MaintenanceTime is one time of maintenance.
type MaintenanceTime struct {
	Start Time   `json:"start"`
	End   Time   `json:"end"`
	Note  string `json:"note,omitempty"` // what a change of the clock has made of it
}

// Outage is PEs of a pool that cannot be used.
type Outage struct {
	Number uint32      `json:"number"`         // as in pictures
	Name   string      `json:"name,omitempty"` // at the site, for operators
	Site   string      `json:"site"`
	Pool   string      `json:"pool"`
	PEs    berth.PESet `json:"pes"`
	NPE    berth.Count `json:"npe"`
	Nodes  []string    `json:"nodes,omitempty"`
	From   Time        `json:"from,omitzero"`  // of one that has not begun
	Until  Time        `json:"until,omitzero"` // missing where the end is not known
}

// Me is who asks.
type Me struct {
	User string `json:"user"`
	Role string `json:"role"`
	// Way is how it is known without a token of the service: socket, munge, slurm-jwt or oidc.
	Way string `json:"way,omitempty"`
	// Sites are the only ones that this token lets see and use; all if there are none.
	Sites []string `json:"sites,omitempty"`
	// Scopes are what this token is good for within its role; all if there are none.
	Scopes  []string `json:"scopes,omitempty"`
	Expires Time     `json:"expires,omitzero"` // from when on the token is worthless
	// Accounts are the only ones that requests of the user may name, where the service has projects; DefaultAccount is that of requests that name none.
	Accounts       []string `json:"accounts,omitempty"`
	DefaultAccount string   `json:"default_account,omitempty"`
}

// Quotas is the limits of some users.
type Quotas struct {
	Quotas []Quota `json:"quotas"`
	// Shared is the limits of accounts, QOS and partitions that have any, for operators of all
	// sites who ask about no user; for others who ask about themselves, those of the accounts that they use.
	Shared []SharedQuota `json:"shared,omitempty"`
}

// SharedQuota is the limits of an account, a QOS or a partition, and what is used of them by all
// that is promised in it.
type SharedQuota struct {
	Account   string  `json:"account,omitempty"`
	QOS       string  `json:"qos,omitempty"`
	Partition string  `json:"partition,omitempty"`
	Limits    []Limit `json:"limits"`
}

// Usage is what reservations came to.
type Usage struct {
	Used []Used `json:"used"` // by user, account and month
	// Since is when the records begin where older ones were dropped; what was over before does not count.
	Since Time `json:"since,omitzero"`
}

// Used is what the reservations of a user come to that name an account, or none, and start in a month.
type Used struct {
	User         string  `json:"user"`
	Account      string  `json:"account"`
	Month        string  `json:"month"` // in UTC, such as 2027-01
	Reservations int     `json:"reservations"`
	NoShows      int     `json:"no_shows"` // of those, given up unused
	Charged      float64 `json:"charged"`  // PE-hours for those that are over, by the rule of budgets
	Held         float64 `json:"held"`     // PE-hours of those that are live, as promised
	// What became of them up to now, in PE-seconds: what was promised for times that have come, what of that the sites had, and
	// what jobs in the reservations held.
	Promised  int64 `json:"promised_pe_seconds"`
	Delivered int64 `json:"delivered_pe_seconds"`
	Ran       int64 `json:"used_pe_seconds"`
	Moved     int   `json:"moved"`  // how often one was given another place without being asked
	Late      int   `json:"late"`   // those that began without all of their PEs
	Broken    int   `json:"broken"` // those that were lost, failed or were rejected by their site
}

// Quota is the limits of a user, and what is used of them.
type Quota struct {
	User   string  `json:"user"`
	Role   string  `json:"role"` // by which they are chosen
	Limits []Limit `json:"limits"`
	// Sites are those at which is counted what is used, of others whom an operator limited to sites asks about; all
	// if it is missing.
	Sites []string `json:"sites,omitempty"`
}

// Limit is a limit of a user. A share has one of each pool, in PEs.
type Limit struct {
	Limit   string   `json:"limit"`
	Unit    string   `json:"unit"`
	Site    string   `json:"site,omitempty"`
	Pool    string   `json:"pool,omitempty"`
	Allowed *float64 `json:"allowed,omitempty"` // missing if there is no limit
	Used    *float64 `json:"used,omitempty"`    // missing if nothing of it is used up, or while it is not counted, since the journal cannot be written
	Held    *float64 `json:"held,omitempty"`    // of a budget, the part of used that reservations have which are not over
	Frees   Time     `json:"frees,omitzero"`    // when something of it is free again, if that is known
	About   string   `json:"about"`
}

// Exceeded is a limit that a request would exceed.
type Exceeded struct {
	Limit string `json:"limit"`
	// Owner, Account, QOS or Partition is that which is limited; without them it is the user. Owner is the owner of the service account
	// that the user is, with what both have together.
	Owner     string  `json:"owner,omitempty"`
	Account   string  `json:"account,omitempty"`
	QOS       string  `json:"qos,omitempty"`
	Partition string  `json:"partition,omitempty"`
	Unit      string  `json:"unit"`
	Allowed   float64 `json:"allowed"`
	Asked     float64 `json:"asked"` // with what the user, account, QOS or partition has already
	Frees     Time    `json:"frees,omitzero"`
}

// Token is what is known of a bearer token. Secret is there only in the answer
// to making it.
type Token struct {
	ID      string `json:"id"`
	User    string `json:"user"`
	Role    string `json:"role"`
	Note    string `json:"note,omitempty"`
	Created Time   `json:"created"`
	// Expires is from when on it is worthless; never if it is missing.
	Expires Time     `json:"expires,omitzero"`
	Sites   []string `json:"sites,omitempty"`  // the only ones that it lets see and use
	Scopes  []string `json:"scopes,omitempty"` // what it is good for within its role; all if there are none
	Secret  string   `json:"secret,omitempty"`
}

// Tokens is a list of tokens.
type Tokens struct {
	Tokens []Token `json:"tokens"`
}

// ServiceAccount is a principal for programs, as which no person logs in. It may do no more than Role, Sites and its owner.
type ServiceAccount struct {
	Name    string   `json:"name"`
	Owner   string   `json:"owner"`
	Role    string   `json:"role"`
	Note    string   `json:"note,omitempty"`
	Created Time     `json:"created"`
	Sites   []string `json:"sites,omitempty"` // the only ones that it sees and uses
	Tokens  []Token  `json:"tokens"`          // without their secrets
}

// ServiceAccounts is a list of service accounts by name.
type ServiceAccounts struct {
	Accounts []ServiceAccount `json:"service_accounts"`
}

// Session is a browser's session.
type Session struct {
	ID   string `json:"id"`
	User string `json:"user"`
	// Way is by what it was opened: token, whose id is Token, machine or oidc.
	Way     string   `json:"way"`
	Token   string   `json:"token,omitempty"`
	Created Time     `json:"created"`
	Used    Time     `json:"used"` // last, to about a minute
	Expires Time     `json:"expires"`
	Address string   `json:"address,omitempty"` // from where it was opened
	Agent   string   `json:"agent,omitempty"`   // what the browser calls itself
	Scopes  []string `json:"scopes,omitempty"`  // what it is good for; all if there are none
	Current bool     `json:"current,omitempty"` // it is that of the call
}

// Sessions is a list of sessions, the one used last first.
type Sessions struct {
	Sessions []Session `json:"sessions"`
}

// EndedSessions is how many sessions were ended.
type EndedSessions struct {
	Ended int `json:"ended"`
}

// Feed is what is known of a calendar feed. Secret, Path and URL are there only in the answer to making it.
type Feed struct {
	ID      string `json:"id"`
	User    string `json:"user"`
	Role    string `json:"role"`           // of what it shows at most
	Site    string `json:"site,omitempty"` // that it shows; missing if it shows what the user has
	Note    string `json:"note,omitempty"`
	Created Time   `json:"created"`
	Used    Time   `json:"used,omitzero"` // when it was read last
	Secret  string `json:"secret,omitempty"`
	Path    string `json:"path,omitempty"` // at the service
	URL     string `json:"url,omitempty"`  // missing if the service does not know its own address
}

// Feeds is a list of calendar feeds.
type Feeds struct {
	Feeds []Feed `json:"feeds"`
}

// Health is whether the service takes requests.
type Health struct {
	Status string `json:"status"`
	Time   Time   `json:"time"`
	// Leading is who leads and who stands by; missing if the service has its journal to itself.
	Leading *Leading `json:"leading,omitempty"`
	// OIDC says whether the OpenID provider answered when it was asked last: reachable or unreachable. Missing if
	// there is none. The service is ready in either case.
	OIDC string `json:"oidc,omitempty"`
}

// Logins is how users can log in, beside tokens of the service.
type Logins struct {
	OIDC *OIDC `json:"oidc,omitempty"` // missing if there is no OpenID provider
}

// OIDC is an OpenID provider by which users are known.
type OIDC struct {
	Name   string `json:"name"` // for people
	Issuer string `json:"issuer"`
	// Client is the id with which a program without a browser asks the provider for a code for its user.
	Client string `json:"client"`
	// Audiences are those of tokens that the service takes.
	Audiences []string `json:"audiences"`
	Scopes    []string `json:"scopes"`
}

// Leading is who leads of the services that share a journal, and who stands by.
type Leading struct {
	Leader   string    `json:"leader"` // where it is reached; empty if none leads or it did not say
	Record   uint64    `json:"record"` // the last one that the service that was asked has
	Standbys []Standby `json:"standbys"`
}

// Standby is a service that follows the journal.
type Standby struct {
	Address string  `json:"address"`
	Record  uint64  `json:"record"`         // the last one that it has followed
	Behind  float64 `json:"behind_seconds"` // since it had followed all that there was
	// ClockSkew is by how many seconds its clock is at least ahead of the database's, negative behind it.
	ClockSkew float64 `json:"clock_skew_seconds"`
}

// Led is who leads after a hand-over.
type Led struct {
	Leader string `json:"leader"`
}

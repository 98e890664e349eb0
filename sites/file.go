package sites

import (
	_ "embed" // the schema
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/policy"
)

// File is a sites file as read: complete, checked, and with defaults filled in.
type File struct {
	Name     string       // of the file, for messages
	Sites    []berth.Site // at least one, in the order of the file
	Uplink   int64        // in kB/s, of the centre that all data leave; 0 is no limit
	Users    []berth.User // in the order of the file
	Policies Policies
	Limits   policy.Limits // in the order of the file
	Prices   policy.Prices // likewise
	Projects Projects
	Access   []Access // likewise; who is in none of them may use every site
	// Adapters says how sites are reached that describe themselves, by name. Such
	// a site has no pools here.
	Adapters map[string]Adapter
	// Transfers says how files of workflows get from site to site, in the order of the file.
	Transfers []Transfer
	Service   Service

	places map[string]place // of keys, by their path
}

// Policies are the choices that the file makes for the engine. Names are as
// written; an empty name or a zero leaves the choice to the reader.
type Policies struct {
	Preset  string         `json:"preset,omitempty"`
	Trigger string         `json:"trigger,omitempty"`
	Every   berth.Duration `json:"every,omitempty"` // the period of a trigger that has one
	Order   string         `json:"order,omitempty"`
	Match   string         `json:"match,omitempty"`
	Admit   []string       `json:"admit,omitempty"`
	Place   string         `json:"place,omitempty"`
	Choice  string         `json:"choice,omitempty"`
	Horizon string         `json:"horizon,omitempty"`
	Seed    uint64         `json:"seed,omitempty"`
	Eager   *Eager         `json:"eager,omitempty"` // nil if the file has none
	DPSAR   *DPSAR         `json:"dpsar,omitempty"` // nil if the file has none
	Ahead   policy.Ahead   `json:"ahead,omitempty"`
	// What becomes of ordinary jobs, and of what does not end in time.
	Jobs      string         `json:"jobs,omitempty"`
	Compress  *bool          `json:"compress,omitempty"` // nil is not said
	Preempt   bool           `json:"preempt,omitempty"`
	Staging   string         `json:"staging,omitempty"` // of data
	Unaware   bool           `json:"unaware,omitempty"`
	Immediate string         `json:"immediate,omitempty"`
	Overrun   string         `json:"overrun,omitempty"`
	Extension berth.Duration `json:"extension,omitempty"`
}

// Thousandths is a decimal number of at most three digits behind the point,
// times 1000: exact, so that no floating point decides anything.
type Thousandths int64

// Eager holds the coefficients of the admission filter of the waiting-time
// paper, section 6.
type Eager struct {
	K1        Thousandths `json:"k1"`              // from 0 to 1000
	K2        Thousandths `json:"k2"`              // from 0 to 1000
	Scope     string      `json:"scope,omitempty"` // whose load counts: "site", the default, or "grid"
	RefuseAll bool        `json:"refuse_all,omitempty"`
}

// DPSAR holds the parameters of the order of the dynamic-priority paper, of
// which the order by priority takes InUser and Aging.
type DPSAR struct {
	SD            *Thousandths   `json:"sd,omitempty"`    // the step between priorities that counts as large; nil is half the scale
	N             int            `json:"n,omitempty"`     // requests of a user served alone in a round; 0 is no limit
	NUJP          int            `json:"n_ujp,omitempty"` // of users served together
	Overflow      string         `json:"overflow,omitempty"`
	Chain         bool           `json:"chain,omitempty"`
	LengthClasses int            `json:"length_classes,omitempty"`
	InUser        string         `json:"in_user,omitempty"`
	Aging         berth.Duration `json:"aging,omitempty"` // a wait worth one step of priority
}

// Scopes of Eager.
const (
	ScopeSite = "site"
	ScopeGrid = "grid"
)

//go:embed schema.json
var schema []byte

// Schema returns the JSON Schema (draft 2020-12) of sites files. Whatever Open
// reads, it accepts; it cannot tell that names are unique, that names and PEs
// are known where they are used, and how numbers were written. The slice is the
// caller's.
func Schema() []byte { return append([]byte(nil), schema...) }

// Open reads a sites file. One that is missing or may not be read, or that is a
// directory, is an *berth.Error with code Invalid and field "sites"; so are the
// mistakes in its content, as Read has them. Other failures of the system are
// wrapped.
func Open(path string) (*File, error) {
	file, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, berth.Errorf(berth.Invalid, "sites", "%s: no such file", path)
	case errors.Is(err, fs.ErrPermission):
		return nil, berth.Errorf(berth.Invalid, "sites", "%s: no permission to read it", path)
	case err != nil:
		return nil, fmt.Errorf("open sites file: %w", err)
	}
	defer func() { _ = file.Close() }() // only read from: nothing can be lost
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return nil, berth.Errorf(berth.Invalid, "sites", "%s: a directory, not a file", path)
	}
	return Read(file, path)
}

// MaxBytes bounds the size of a sites file: thousands of sites fit.
const MaxBytes = 1 << 20

// MaxErrors is how many mistakes of a file are told at once.
const MaxErrors = 10

// Read is Open for content that comes from elsewhere; name stands in messages.
//
// The error of a file with mistakes joins an *berth.Error with code Invalid for
// each, in the order of their detection, at most MaxErrors. Field is the path
// of the key, such as sites[1].pools[0].pes, counted from 0; Msg names file,
// line, column and value, and what would be right. A mistake of the YAML itself
// is the only one reported. Cost: O(size of the file and of the node lists).
func Read(r io.Reader, name string) (*File, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(text) > MaxBytes {
		return nil, berth.Errorf(berth.Invalid, "sites", "%s: larger than %d bytes, so no sites file", name, MaxBytes)
	}
	tree, err := parse(text, name)
	if err != nil {
		return nil, err
	}
	read := reader{File: &File{Name: name, Adapters: map[string]Adapter{}, places: make(map[string]place)}}
	read.file(tree)
	if err := read.err(); err != nil {
		return nil, err
	}
	return read.File, nil
}

// Described returns an error of code Invalid about the first site that only its
// adapter can describe, for those who reach no site; nil if there is none.
func (f *File) Described() error {
	for i := range f.Sites {
		if name := f.Sites[i].Name; f.Adapters[name].Kind != "" {
			key := fmt.Sprintf("sites[%d].adapter", i)
			return berth.Errorf(berth.Invalid, key, "%s: site %s describes itself to berth serve; here its pes or pools are needed", f.Where(key), name)
		}
	}
	return nil
}

// Size returns how many PEs a pool has, and false if the file has no such pool.
// An empty pool name means the only pool of the site, an empty site name the
// only site.
func (f *File) Size(site, pool string) (berth.Count, bool) {
	return berth.PoolSize(f.Sites, site, pool)
}

// Where returns the place of a key, such as "policies.order", as
// file:line:column; just the file if the key is not in it. It is for those who
// find a mistake in a value that Read had to take as it is.
func (f *File) Where(key string) string {
	at, found := f.places[key]
	if !found {
		return f.Name
	}
	return fmt.Sprintf("%s:%d:%d", f.Name, at.Line, at.Column)
}

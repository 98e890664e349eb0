package sites

import (
	"slices"
	"strings"

	"github.com/berth-hpc/berth"
)

// Transfer says how files of tasks of workflows are brought from one site to another.
type Transfer struct {
	From, To string   // names of sites
	Command  []string // a program and its arguments, with {from} and {to} for the paths
	Timeout  berth.Duration
}

// The bounds of a command.
const (
	maxWords     = 100
	maxTransfers = 10_000
)

// transfers reads how files are brought between sites, once all sites are known.
func (r *reader) transfers(v *value, path string) {
	if v.Kind == isList && len(v.Items) > maxTransfers {
		r.fail(v.Place, path, "%d transfers; want at most %d", len(v.Items), maxTransfers)
		return
	}
	pairs := map[[2]string]int{}
	r.list(v, path, "transfers", func(v *value, path string) {
		var t Transfer
		site := func(to *string) func(v *value, path string) {
			return func(v *value, path string) {
				scanned(r, to, "the name of a site", name)(v, path)
				if *to != "" && !slices.ContainsFunc(r.Sites, func(s berth.Site) bool { return s.Name == *to }) {
					r.wrong(v, path, "no site of this file has this name")
				}
			}
		}
		before := len(r.errs) + r.more
		r.group(v, path, "a transfer",
			key{"from", "a transfer needs the site that has the files", site(&t.From)},
			key{"to", "a transfer needs the site that gets them", site(&t.To)},
			key{"command", "a transfer needs the command that brings a file", func(v *value, path string) { r.transferCommand(v, path, &t.Command) }},
			key{"timeout", "", measured(r, &t.Timeout, secondsExample, duration)},
		)
		if len(r.errs)+r.more > before {
			return
		}
		pair := [2]string{t.From, t.To}
		switch first, twice := pairs[pair]; {
		case t.From == t.To:
			r.fail(v.Place, path, "from %s to itself; tasks at one site share its files, so leave it out", t.From)
		case twice:
			r.fail(v.Place, path, "a second transfer from %s to %s, the first is in line %d", t.From, t.To, first)
		}
		pairs[pair] = v.Line
		r.Transfers = append(r.Transfers, t)
	})
}

// transferCommand reads the words of a command.
func (r *reader) transferCommand(v *value, path string, to *[]string) {
	const example = "a list of a program and its arguments, such as [rsync, -a, \"host:{from}\", \"{to}\"]"
	if !r.is(v, path, isList, example) {
		return
	}
	if len(v.Items) == 0 || len(v.Items) > maxWords {
		r.fail(v.Place, path, "%d words; want 1 to %d: %s", len(v.Items), maxWords, example)
		return
	}
	var words []string
	before := len(r.errs) + r.more
	for _, item := range v.Items {
		word := ""
		scanned(r, &word, "a word", filePath)(item, path)
		words = append(words, word)
	}
	if len(r.errs)+r.more > before {
		return
	}
	for _, place := range []string{"{from}", "{to}"} {
		if !strings.Contains(strings.Join(words[1:], " "), place) {
			r.fail(v.Place, path, "no argument has %s, which stands for a path; want %s", place, example)
		}
	}
	*to = words
}

package lint

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"testing"
)

// unplain matches words that make a reader read a sentence twice, see
// CONTRIBUTING.md. A quantifier before "of which" makes it plain.
var unplain = regexp.MustCompile(`(?i)\b(somebody|anybody|nobody|whoever|in the place of|as far as|so many|of which)\b`)

// plainOf are quantifiers after which "of which" is plain, and plainNobody is the account of that name.
var (
	plainOf     = regexp.MustCompile(`(?i)\b(one|each|some|none|both|all|two|any|many|most) of which\b`)
	plainNobody = regexp.MustCompile(`"[^" ]*nobody[^" ]*"|(?i)\b(user|called|account) nobody\b|http\.NoBody|\bnobody\.|\bnobody[:,]? ?:?=`)
)

// worded tells the files whose prose the rule reads: documents, and the comments and texts of
// production code. History is as it was written.
func worded(name string) bool {
	if strings.HasPrefix(name, "docs/adr/") || name == "CHANGELOG.md" || strings.HasSuffix(name, "_test.go") || strings.Contains(name, "slurmtest/") {
		return false
	}
	return path.Ext(name) == ".go" || path.Ext(name) == ".md"
}

// wordFaults reports the lines of a file with words that are not plain.
func wordFaults(name, text string) []string {
	var faults []string
	for i, line := range strings.Split(text, "\n") {
		line = plainNobody.ReplaceAllString(plainOf.ReplaceAllString(line, ""), "")
		for _, word := range unplain.FindAllString(line, -1) {
			faults = append(faults, fmt.Sprintf("%s:%d: %q; say it plainly, see House rules in CONTRIBUTING.md", name, i+1, word))
		}
	}
	return faults
}

func TestProseIsPlain(t *testing.T) {
	for _, name := range tracked(t) {
		if worded(name) {
			report(t, wordFaults(name, string(read(t, name))))
		}
	}
}

func TestWordRuleSeesPlantedFaults(t *testing.T) {
	expect(t, wordFaults("x.go", "// find returns what somebody asked for, in the place of a default.\n// One file, of which the rest is empty."),
		`x.go:1: "somebody"; say it plainly, see House rules in CONTRIBUTING.md`,
		`x.go:1: "in the place of"; say it plainly, see House rules in CONTRIBUTING.md`,
		`x.go:2: "of which"; say it plainly, see House rules in CONTRIBUTING.md`)
	expect(t, wordFaults("x.go", "// Two tasks, each of which waits; they run as user nobody.\nbody = http.NoBody"))
	for name, want := range map[string]bool{"README.md": true, "engine/event.go": true, "CHANGELOG.md": false, "docs/adr/0001-x.md": false, "engine/x_test.go": false} {
		if worded(name) != want {
			t.Errorf("worded(%q) is %v", name, !want)
		}
	}
}

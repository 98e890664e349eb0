package main

import (
	"os"
	"regexp"
	"testing"

	"github.com/berth-hpc/berth/policy"
)

// TestPagesNameEveryLimit wants words for each limit that operators see: the names of a file of sites are not for people.
func TestPagesNameEveryLimit(t *testing.T) {
	source, err := os.ReadFile("../../web/ui/src/words.ts")
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`(?s)limitNames: \{(.*?)\}`).FindSubmatch(source)
	if list == nil {
		t.Fatal("words.ts has no limitNames")
	}
	has := map[string]bool{}
	for _, m := range regexp.MustCompile(`(\w+): '[A-Z][^']*'`).FindAllSubmatch(list[1], -1) {
		has[string(m[1])] = true
	}
	for _, k := range policy.LimitKinds {
		if !has[string(k.Name)] {
			t.Errorf("limit %s has no words", k.Name)
		}
	}
	if len(has) != len(policy.LimitKinds) {
		t.Errorf("words for %d limits, want %d", len(has), len(policy.LimitKinds))
	}
}

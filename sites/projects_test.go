package sites_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/sites"
)

const pricedSites = "sites:\n  - {name: a, pes: 4, partitions: [{name: gpu, pool: pool}]}\n  - {name: hpc, adapter: {kind: slurm}}\n"

func TestPricesAndProjectsAreRead(t *testing.T) {
	f, err := read(pricedSites + `prices:
  - {site: a, factor: 0.5}
  - {site: a, partition: gpu, factor: 4}
  - {qos: urgent, factor: 2.125}
projects:
  accounts:
    - {account: phys, users: [ann, bob], groups: [hep]}
    - {account: chem, users: [ann], default_for: [ann]}
  from: [hpc]
  others: allowed
`)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(policy.Prices{{Site: "a", Factor: 500}, {Site: "a", Partition: "gpu", Factor: 4000}, {QOS: "urgent", Factor: 2125}}, f.Prices); diff != "" {
		t.Error(diff)
	}
	want := sites.Projects{From: []string{"hpc"}, Open: true, Accounts: []sites.Project{
		{Account: "phys", Users: []string{"ann", "bob"}, Groups: []string{"hep"}},
		{Account: "chem", Users: []string{"ann"}, DefaultFor: []string{"ann"}},
	}}
	if diff := cmp.Diff(want, f.Projects); diff != "" {
		t.Error(diff)
	}
}

func TestPricesAndProjectsThatCannotBeRight(t *testing.T) {
	for text, want := range map[string]string{
		"prices: [{factor: 2}]":                                                      "of nothing; name a site",
		"prices: [{site: a}]":                                                        "a price needs its factor",
		"prices: [{site: b, factor: 2}]":                                             "no site of this file",
		"prices: [{site: a, factor: 1.2345}]":                                        "at most three behind the point",
		"prices: [{site: a, factor: 1001}]":                                          "want a number from 0 to 1000",
		"prices: [{qos: q, site: a, factor: 1}]":                                     "write a row for each",
		"prices: [{site: a, factor: 1}, {site: a, factor: 2}]":                       "for the same as the row in line 4",
		`prices: [{partition: "*", factor: 1}]`:                                      "want the name of one partition",
		"projects: {others: allowed}":                                                "without accounts",
		"projects: {from: [a]}":                                                      "a site without accounting",
		"projects: {from: [b]}":                                                      "no site of this file",
		"projects: {accounts: [{account: phys}]}":                                    "for no one; name users or groups",
		"projects: {accounts: [{users: [ann]}]}":                                     "a project needs its account",
		`projects: {accounts: [{account: "*", users: [ann]}]}`:                       "want the name of one account",
		"projects: {accounts: [{account: p, users: [a]}, {account: p, users: [b]}]}": "a second project of this name",
		"projects: {accounts: [{account: p, users: [ann], default_for: [bob]}]}":     `"bob" is not among the users of the project`,
		"projects: {accounts: [{account: p, groups: [g], default_for: [ann]}, {account: q, groups: [g], default_for: [ann]}]}": `"ann" has a default account already`,
	} {
		if _, err := read(pricedSites + text + "\n"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

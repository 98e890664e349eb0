package adapters

import (
	"errors"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/sites"
)

func TestCheck(t *testing.T) {
	for name, c := range map[string]struct{ file, field string }{
		"right":                {"sites:\n- {name: a, adapter: {kind: local}}\n- {name: b, adapter: {kind: slurm, zone: Europe/Berlin, conf: /etc/slurm/slurm.conf}}\n", ""},
		"no zone":              {"sites: [{name: a, adapter: {kind: slurm, zone: Europe/Atlantis}}]\n", "sites[0].adapter.zone"},
		"zone of this machine": {"sites: [{name: a, adapter: {kind: slurm, zone: Local}}]\n", "sites[0].adapter.zone"},
		"path from here":       {"sites: [{name: a, adapter: {kind: slurm, conf: slurm.conf}}]\n", "sites[0].adapter.conf"},
		"commands from here":   {"sites: [{name: a, adapter: {kind: slurm, bin: bin}}]\n", "sites[0].adapter.bin"},
		"slurmrestd":           {"sites: [{name: a, adapter: {kind: slurm, rest: 'https://head:6820', jwt: /etc/berth/slurm.jwt}}]\n", ""},
		"slurmrestd, local":    {"sites: [{name: a, adapter: {kind: slurm, rest: 'unix:///run/slurmrestd.socket'}}]\n", ""},
		"no token":             {"sites: [{name: a, adapter: {kind: slurm, rest: 'https://head:6820'}}]\n", "sites[0].adapter.jwt"},
		"token from here":      {"sites: [{name: a, adapter: {kind: slurm, rest: 'https://head:6820', jwt: slurm.jwt}}]\n", "sites[0].adapter.jwt"},
		"token in the clear":   {"sites: [{name: a, adapter: {kind: slurm, rest: 'http://head:6820', jwt: /etc/berth/slurm.jwt}}]\n", "sites[0].adapter.rest"},
		"token for nothing":    {"sites: [{name: a, adapter: {kind: slurm, jwt: /etc/berth/slurm.jwt}}]\n", "sites[0].adapter.jwt"},
		"authority":            {"sites: [{name: a, adapter: {kind: slurm, rest: 'https://head:6820', jwt: /etc/berth/slurm.jwt, ca: /etc/berth/ca.pem}}]\n", ""},
		"authority from here":  {"sites: [{name: a, adapter: {kind: slurm, rest: 'https://head:6820', jwt: /etc/berth/slurm.jwt, ca: ca.pem}}]\n", "sites[0].adapter.ca"},
		"authority of http":    {"sites: [{name: a, adapter: {kind: slurm, rest: 'http://localhost:6820', jwt: /etc/berth/slurm.jwt, ca: /etc/berth/ca.pem}}]\n", "sites[0].adapter.ca"},
		"authority of nothing": {"sites: [{name: a, adapter: {kind: slurm, ca: /etc/berth/ca.pem}}]\n", "sites[0].adapter.ca"},
		"rest and run_as":      {"sites: [{name: a, adapter: {kind: slurm, rest: 'unix:///run/x', run_as: owner}}]\n", "sites[0].adapter.run_as"},
		"rest and commands":    {"sites: [{name: a, adapter: {kind: slurm, rest: 'unix:///run/x', bin: /opt/slurm/bin}}]\n", "sites[0].adapter.bin"},
		"rest and slurm.conf":  {"sites: [{name: a, adapter: {kind: slurm, rest: 'unix:///run/x', conf: /etc/slurm/slurm.conf}}]\n", "sites[0].adapter.conf"},
		"this machine twice":   {"sites:\n- {name: a, adapter: {kind: local}}\n- {name: b, adapter: {kind: local}}\n", "sites[1].adapter.kind"},
	} {
		file, err := sites.Read(strings.NewReader(c.file), "f.yaml")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		field := ""
		if e, ok := errors.AsType[*berth.Error](Check(file)); ok {
			field = e.Field
		}
		if field != c.field {
			t.Errorf("%s: the error is about %q, want %q", name, field, c.field)
		}
	}
}

// A site that is to describe itself has no pools yet, which is no mistake of the rest.
func TestCheckEngine(t *testing.T) {
	config := engine.Config{Sites: []berth.Site{{Name: "a", Managed: true}}, Place: "first-fit"}
	if err := CheckEngine(config); err != nil {
		t.Error(err)
	}
	if len(config.Sites[0].Pools) > 0 {
		t.Error("the site has got a pool by being checked")
	}
	if config.Place = "firstfit"; CheckEngine(config) == nil {
		t.Error("no error for a placement that there is not")
	}
}

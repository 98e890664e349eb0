package main

import (
	"bytes"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/identity"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/sites"
)

// What the service runs on is what the flags say, then the file, then the
// defaults.
func TestFlagsFileAndDefaults(t *testing.T) {
	path := filepath.Join(t.TempDir(), "berth.yaml")
	if err := os.WriteFile(path, []byte(`
service: {data: d, listen: "127.0.0.1:1", public: "https://hpc.example.org/berth/", log: json, keep: 17}
sites:
- {name: here, adapter: {kind: local, cores: 5}, storage: 1TB}
- {name: plain, pes: 4}
policies: {place: pe-worst}
limits: [{role: user, active: 3, sites: [plain]}]
`), 0o600); err != nil {
		t.Fatal(err)
	}
	load := func(args ...string) *setup {
		t.Helper()
		cmd := (&app{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}}).serveCommand()
		if err := cmd.ParseFlags(args); err != nil {
			t.Fatal(err)
		}
		text := func(name string) string { return cmd.Flags().Lookup(name).Value.String() }
		flags := &serveFlags{data: text("data"), listen: text("listen"), log: text("log"), config: text("config"), slurm: text("slurm"), public: text("public")}
		if text("cores") == "2" {
			flags.cores = 2
		}
		set, err := flags.load(cmd)
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	want := &setup{
		data: "d", listen: "127.0.0.1:1", log: "json", keep: 17, public: &url.URL{Scheme: "https", Host: "hpc.example.org", Path: "/berth/"},
		access:   []service.Access{{Scope: policy.Scope{Role: "user"}, Sites: service.NewSiteSet([]string{"plain"})}},
		adapters: map[string]sites.Adapter{"here": {Kind: sites.Local, Cores: 5}},
		known:    known{roles: identity.Roles{Self: uint32(max(os.Geteuid(), 0))}}, // no default role: here tasks run as the service
		config: engine.Config{Place: "pe-worst", Sites: []berth.Site{
			{Name: "here", Managed: true, StorageMB: 1_000_000},
			{Name: "plain", Pools: []berth.Pool{{Name: "pool", PEs: 4, Binding: berth.Early}}},
		}},
	}
	compare := func(got *setup) {
		t.Helper()
		if a := got.config.Limits.Of("user", "alice"); a.Exceeds(policy.ByActive, 4) == nil || a.Exceeds(policy.ByLength, 1<<40) == nil {
			t.Error("the limits are not those of the file, then the defaults:", a)
		}
		got.config = engine.Config{Place: got.config.Place, Sites: got.config.Sites} // the rest is the preset's
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(setup{}, tlsFiles{}, known{})); diff != "" {
			t.Error(diff)
		}
	}
	compare(load("--config", path))
	want.data, want.listen, want.log = "e", "127.0.0.1:2", "text"
	want.public = &url.URL{Scheme: "http", Host: "elsewhere"}
	want.adapters = map[string]sites.Adapter{"here": {Kind: sites.Local, Cores: 2}, "far": {Kind: sites.Slurm}}
	want.config.Sites = append(want.config.Sites, berth.Site{Name: "far", Managed: true})
	compare(load("--config", path, "--data", "e", "--listen", "127.0.0.1:2", "--log", "text", "--public", "http://elsewhere", "--cores", "2", "--slurm", "far"))
}

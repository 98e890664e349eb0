package sites_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/sites"
)

// What is written is read back, without what Write leaves out.
func TestWrittenSitesAreReadBack(t *testing.T) {
	f, err := sites.Open(filepath.Join("..", "examples", "sites.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := sites.Write(&out, f.Sites); err != nil {
		t.Fatal(err)
	}
	again, err := read(out.String())
	if err != nil {
		t.Fatalf("%v: %s", err, &out)
	}
	for i := range f.Sites {
		f.Sites[i].Link = berth.Link{}
		for k := range f.Sites[i].Pools {
			f.Sites[i].Pools[k].Node = berth.Node{}
		}
	}
	if diff := cmp.Diff(f.Sites, again.Sites); diff != "" {
		t.Error(diff)
	}
}

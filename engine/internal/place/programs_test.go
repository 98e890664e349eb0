package place

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
)

// What is remembered of programs is what a search of the site's list finds, in
// whatever order is asked.
func TestProgramsAgreeWithSearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"a", "b", "c"})
		version := rapid.SampledFrom([]string{"", "1", "1.9", "1.10", "2"})
		licences := rapid.IntRange(0, 3)
		var list []berth.Site
		for i := range rapid.IntRange(1, 3).Draw(t, "sites") {
			site := berth.Site{Name: fmt.Sprint(i), Pools: []berth.Pool{{Name: "pool", PEs: 1, Binding: berth.Late}}}
			for range rapid.IntRange(0, 6).Draw(t, "programs") {
				site.Software = append(site.Software, berth.Software{
					Name: name.Draw(t, "name"), Version: version.Draw(t, "version"), Licences: berth.Count(licences.Draw(t, "licences")),
				})
			}
			list = append(list, site)
		}
		known := newPrograms(list)
		for range rapid.IntRange(1, 12).Draw(t, "questions") {
			r := berth.Rigid("r", 0, 0, 1, 1, 1)
			r.Software, r.Version = name.Draw(t, "wanted"), version.Draw(t, "least")
			r.Licences = berth.Count(licences.Draw(t, "takes"))
			for i := range list {
				want := -1
				for row, s := range list[i].Software {
					if s.Name != r.Software || compareVersions(s.Version, r.Version) < 0 {
						continue
					}
					if s.Licences == 0 || s.Licences >= r.Licences {
						want = row
						break
					}
					want = -2
				}
				if got := int(known.of(&r)[i]); got != want {
					t.Fatalf("program %d of site %d, want %d, for %+v of %+v", got, i, want, r.Requirements, list[i].Software)
				}
			}
		}
	})
}

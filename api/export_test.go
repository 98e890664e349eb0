package api

import (
	"net/url"

	"github.com/berth-hpc/berth/service"
)

// Gallery keeps answers of pictures.
type Gallery struct{ gallery }

// Answer returns the answer to a query about a picture.
func (g *Gallery) Answer(t interface{ Fatal(...any) }, query string, p *service.Picture, packed bool) []byte {
	u, err := url.Parse(query)
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string]string{}
	for name, values := range u.Query() {
		asked[name] = values[0]
	}
	about := subject{}
	plan, err := readPlan(asked, 0)
	if err == nil {
		about.most, about.filter = plan.most, plan.filter
		about.canvas, err = newCanvas(&plan, p.PEs)
	}
	if err != nil {
		t.Fatal(err)
	}
	through := newSieve(plan.filter, plan.id, nil)
	data, _, err := g.answer(&about, &through, p, packed)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// KeptBytes returns how much a gallery counts, and of how many answers.
func (g *Gallery) KeptBytes() (size, answers int) { return g.size, len(g.of) }

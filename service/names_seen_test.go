package service_test

import (
	"fmt"
	"testing"

	"github.com/berth-hpc/berth/site"
)

// Names that promises had at a site are forgotten with these, however many there were, and those of promises that are remembered are known.
func TestNamesAreForgottenWithTheirPromises(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		if err := w.host.Close(); err != nil {
			t.Fatal(err)
		}
		w.options.Keep = 8
		w.open()
		w.pass(10)
		w.reserve("long", 1, 300, 50_000)
		most := 0
		for round := range 60 {
			for i := range 3 {
				w.reserve(fmt.Sprintf("r%d.%d", round, i), 1, 100, 60)
			}
			w.pass(200)
			n, err := w.host.NamesSeen(t.Context(), "harbour")
			if err != nil {
				t.Fatal(err)
			}
			most = max(most, n)
		}
		// Of 181 promises 12 are live or remembered at a time, with two entries each.
		if most < 2*4 || most > 2*2*12+64+2*3 {
			t.Errorf("%d entries of names are kept", most)
		}
		if state := w.state(); len(state.Ours) != 1 {
			t.Errorf("the site has %v", state.Ours)
		}
	})
}

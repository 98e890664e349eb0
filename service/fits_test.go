package service_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
)

// What a start with another configuration would refuse is found without one: with a snapshot and without, and while
// the service runs.
func TestPromisesAreComparedWithAConfiguration(t *testing.T) {
	dir := t.TempDir()
	fits := func(config engine.Config) error {
		t.Helper()
		store, err := sqlite.Open(dir, sqlite.Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		return errors.Join(service.Fits(t.Context(), store, config), store.Close())
	}
	elsewhere := onePool(8)
	elsewhere.Sites[0].Name = "elsewhere"
	only := engine.Config{Sites: []berth.Site{{Name: "new"}}}
	untold := engine.Config{Sites: []berth.Site{{Name: "site"}, {Name: "new"}}}
	c := &clock{}
	c.seconds.Store(1000)
	h, _ := startOn(t, dir, onePool(8), c)
	if err := errors.Join(fits(elsewhere), fits(onePool(1)), fits(untold), fits(only)); err != nil {
		t.Errorf("while nothing is promised: %v", err)
	}
	for i := range 10 { // there is a snapshot after seven records
		promised := submit(t, h, ann, berth.Rigid("", 1000, 2000, 90_000, 4, 600))
		if err := errors.Join(fits(onePool(8)), fits(untold)); err != nil {
			t.Errorf("with %d: %v", i+1, err)
		}
		err := fits(elsewhere)
		wantCode(t, err, berth.Invalid)
		if id := promised.Reservation.ID; i == 0 && (err == nil || !strings.Contains(err.Error(), id)) {
			t.Errorf("%v; want it to name %s", err, id)
		}
	}
	wantCode(t, fits(onePool(3)), berth.Invalid) // of 4 PEs
	wantCode(t, fits(only), berth.Invalid)
}

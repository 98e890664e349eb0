package service_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/service"
)

// What is asked again under a key is charged in the answer as it was charged in the first one, whatever prices there are by then; what
// is looked at is charged as it would be by now.
func TestAnswersKeepTheirChargeWhenPricesChange(t *testing.T) {
	dir, c := t.TempDir(), &clock{}
	c.seconds.Store(1000)
	priced := func(factor int64) (h *service.Host, stop func()) {
		config := onePool(8)
		if factor > 0 {
			config.Prices = policy.Prices{{Site: config.Sites[0].Name, Factor: factor}}
		}
		h, store := startOn(t, dir, config, c)
		return h, func() {
			t.Helper()
			if err := errors.Join(h.Close(), store.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
	under := func(key string) service.Ask {
		by := ann
		by.Key = key
		return by
	}
	r := berth.Rigid("", 0, 1000, 1100, 2, 100)
	wide := r
	wide.Parts = berth.Rigid("", 0, 1000, 1100, 8, 100).Parts
	var id, changed, freed string // what is promised first
	asked := []func(h *service.Host) (any, error){
		func(h *service.Host) (any, error) { return h.Submit(t.Context(), under("promised"), r) },
		func(h *service.Host) (any, error) { return h.Submit(t.Context(), under("refused with offers"), wide) },
		func(h *service.Host) (any, error) { return h.SubmitArray(t.Context(), under("array"), r, 2) },
		func(h *service.Host) (any, error) {
			return h.SubmitSeries(t.Context(), under("series"), weekly(3, 3, 2))
		},
		func(h *service.Host) (any, error) {
			longer := berth.Rigid(changed, 0, 5000, 5200, 2, 200)
			return h.Modify(t.Context(), under("longer"), changed, longer)
		},
		func(h *service.Host) (any, error) { return h.Release(t.Context(), under("given back"), freed) },
	}
	h, stop := priced(1500)
	for i, list := range []*string{&id, &changed, &freed} {
		a := submit(t, h, under(string(rune('a'+i))), berth.Rigid("", 0, 5000, 5100, 2, 100))
		if *list = a.Reservation.ID; a.Refusal != nil || a.Reservation.Charge == nil || *a.Reservation.Charge != 300 {
			t.Fatalf("%+v, want it promised for a charge of 300 PE-seconds", a)
		}
	}
	first := make([]any, len(asked))
	for i, ask := range asked {
		var err error
		if first[i], err = ask(h); err != nil {
			t.Fatal(err)
		}
	}
	if a := first[1].(service.Answer); len(a.Offers) == 0 || a.Offers[0].Charge == nil {
		t.Fatalf("%+v, want offers with what they are charged", a)
	}
	for _, factor := range []int64{1500, 3000, 0} {
		for range 2 { // of the second a snapshot is read
			stop()
			h, stop = priced(factor)
			for i, ask := range asked {
				if again, err := ask(h); err != nil || !reflect.DeepEqual(again, first[i]) {
					t.Errorf("at %d thousandths, asked again:\n%+v, %v, first\n%+v", factor, again, err, first[i])
				}
			}
			got, err := h.Get(t.Context(), ann.By, id)
			if err != nil || (got.Charge == nil) != (factor == 0) || got.Charge != nil && *got.Charge != factor/5 {
				t.Errorf("at %d thousandths it is shown with a charge of %v, %v", factor, got.Charge, err)
			}
		}
	}
	stop()
}

package dst

import (
	"testing"

	"github.com/berth-hpc/berth/service"
)

// The model of histories takes what can have happened, and nothing else.
func TestHistoriesAreJudged(t *testing.T) {
	op := func(d deed, asked, heard int64, state service.State, version uint64) operation {
		return operation{id: "r", deed: d, seen: sight{"r", state, version}, asked: asked, heard: heard, why: "a call"}
	}
	made := op(makes, 1, 2, "", 0)
	held, confirmed, cancelled := service.Held, service.Confirmed, service.Cancelled
	for _, c := range []struct {
		about string
		then  []operation
		ok    bool
	}{
		{"what is held is confirmed and given back", []operation{op(sees, 1, 2, held, 2), op(confirmedAs, 3, 4, confirmed, 3), op(sees, 5, 6, confirmed, 3), op(releasedAs, 7, 8, cancelled, 4), op(sees, 9, 10, cancelled, 4)}, true},
		{"a read beside a confirmation sees it held or confirmed", []operation{op(sees, 1, 2, held, 2), op(confirmedAs, 3, 9, confirmed, 3), op(sees, 4, 5, confirmed, 3), op(sees, 4, 8, held, 2)}, true},
		{"a read behind a confirmation sees it held", []operation{op(sees, 1, 2, held, 2), op(confirmedAs, 3, 4, confirmed, 3), op(sees, 5, 6, held, 2)}, false},
		{"a read goes back behind another, beside the confirmation", []operation{op(sees, 1, 2, held, 2), op(confirmedAs, 3, 9, confirmed, 3), op(sees, 4, 5, confirmed, 3), op(sees, 6, 7, held, 2)}, false},
		{"what no client has confirmed is confirmed", []operation{op(sees, 1, 2, held, 2), op(sees, 3, 4, confirmed, 3)}, false},
		{"what was asked to be confirmed and never answered is confirmed later", []operation{op(sees, 1, 2, held, 2), op(mayConfirm, 3, never, "", 0), op(sees, 4, 5, held, 2), op(sees, 6, 7, confirmed, 3)}, true},
		{"what was asked for later is seen before", []operation{op(sees, 1, 2, held, 2), op(sees, 3, 4, confirmed, 3), op(mayConfirm, 5, never, "", 0)}, false},
		{"a hold expires by itself", []operation{op(sees, 1, 2, held, 2), op(sees, 3, 4, service.Expired, 3)}, true},
		{"what was given back lives", []operation{op(sees, 1, 2, confirmed, 2), op(releases, 3, 4, "", 0), op(sees, 5, 6, confirmed, 2)}, false},
		{"an answer without a record: it was said to be given back, and ends as a no-show", []operation{op(sees, 1, 2, confirmed, 2), op(releasedAs, 3, 4, cancelled, 3), op(sees, 5, 6, service.NoShow, 4)}, false},
		{"a version has two states", []operation{op(sees, 1, 2, confirmed, 2), op(sees, 3, 4, service.Active, 2)}, false},
		{"a version goes back", []operation{op(sees, 1, 2, confirmed, 3), op(sees, 3, 4, confirmed, 2)}, false},
		{"it is cancelled, which no client asked for", []operation{op(sees, 1, 2, confirmed, 2), op(sees, 3, 4, cancelled, 3)}, false},
		{"it is not there after it was promised", []operation{op(misses, 3, 4, "", 0)}, false},
		{"it is not there before it was promised", []operation{op(misses, 0, 1, "", 0)}, true},
	} {
		if err := linearizable(append([]operation{made}, c.then...)); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.about, err)
		}
	}
	unheard := op(makes, 1, never, "", 0)
	if err := linearizable([]operation{unheard, op(misses, 2, 3, "", 0), op(sees, 4, 5, confirmed, 2)}); err != nil {
		t.Errorf("what was never answered is promised late: %v", err)
	}
	if err := linearizable([]operation{unheard, op(sees, 2, 3, confirmed, 2), op(misses, 4, 5, "", 0)}); err == nil {
		t.Error("what was seen is not there any more, and nothing is said")
	}
}

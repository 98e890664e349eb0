package service

import (
	"testing"

	"github.com/berth-hpc/berth"
)

// What a site lacks of a promise is added up once for each second, from the start on, however
// often it is looked at, and no longer once the site has it.
func TestWhatASiteLacksIsAddedUpOnce(t *testing.T) {
	managed := func(string) bool { return true }
	y := &tally{managed: managed, id: "r", there: map[string]bool{}}
	y.promise([]berth.Allotment{{Resource: berth.PoolID("s", "p"), Start: 100, End: 200, NPE: 4}})
	for _, look := range []struct {
		at   berth.Time
		want int64
	}{{90, 0}, {120, 80}, {150, 200}, {150, 200}, {160, 240}} {
		if y.advance(look.at); y.delivered.Short != look.want {
			t.Errorf("up to %d it lacked %d PE-seconds, want %d", look.at, y.delivered.Short, look.want)
		}
	}
	y.there["s"] = true
	if y.advance(300); y.delivered.Short != 240 || y.delivered.Whole != 160 {
		t.Errorf("it lacked %d PE-seconds and was whole at %d, want 240 and 160", y.delivered.Short, y.delivered.Whole)
	}
}

package measure_test

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/measure"
)

// TestHashOfText: the hash is that of a text written down here by hand.
func TestHashOfText(t *testing.T) {
	early := accepted("17", 0, 10, 35, 300, 20)
	early.Site = "cm5"
	early.PEs = berth.NewPESet(berth.Run{Lo: 0, Hi: 32}, berth.Run{Lo: 64, Hi: 66}, berth.Run{Lo: 70, Hi: 71})
	late := accepted("19", 0, -10, 1, 5, -7)
	kindless := refused("20", 0, 0, 1, 5, berth.TooLarge)
	kindless.Kind = ""
	lines := []berth.Line{
		early,
		refused("18", 0, 0, 64, 5, berth.NoCapacity),
		{ID: "b", Kind: berth.KindBooking, NPE: 10, Start: at(0), End: at(900)},
		part(late, 1),
		part(late, 2),
		kindless,
		{ID: "s", Kind: berth.KindStaging},
		{ID: "o", Kind: berth.KindOutage},
		{ID: "j", Kind: berth.KindJob},
		{ID: "w.1", Kind: berth.KindRequest, Workflow: "w", Task: "t", ReplannedFrom: []berth.FormerPlace{{Start: 5, End: 9, NPE: 1}}}, // given up before it began
	}
	const text = "17\t1\t-\tcm5\t20\t320\t0-31,64-65,70\n" +
		"18\t0\tno_capacity\t-\t-\t-\t-\n" +
		"19\t1\t-\t-\t-7\t-2\t-\n" +
		"19\t1\t-\t-\t-7\t-2\t-\n" +
		"20\t0\ttoo_large\t-\t-\t-\t-\n"
	want := fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
	if got := measure.Hash(lines); got != want {
		t.Errorf("got %s, want %s", got, want)
	}

	hasher := measure.NewHasher()
	for i := range lines {
		if i == 3 {
			hasher.Sum() // changes nothing
		}
		hasher.Add(&lines[i])
	}
	if got := hasher.Sum(); got != want {
		t.Errorf("line by line: got %s, want %s", got, want)
	}
}

func TestHashOfNothing(t *testing.T) {
	const want = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	if got := measure.Hash(nil); got != want {
		t.Errorf("got %s", got)
	}
}

package engine_test

import (
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
)

// Bytes that are no snapshot make no engine and do not end the process.
func FuzzRestore(f *testing.F) {
	config := engine.Config{Sites: []berth.Site{{Name: "s", Pools: []berth.Pool{{Name: "p", PEs: 4, Binding: berth.Late}}}}}
	e, err := engine.New(config)
	if err != nil {
		f.Fatal(err)
	}
	for i, r := range []berth.Request{berth.Rigid("a", 0, 0, 20, 2, 10), berth.Rigid("b", 0, 5, 30, 4, 10), berth.Job("j", 0, 3, 7)} {
		if _, _, err := e.Apply(berth.Time(i), submission(&r)); err != nil {
			f.Fatal(err)
		}
		f.Add(e.Snapshot())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		restored, err := engine.Restore(config, data)
		if err != nil {
			return
		}
		if _, _, err := restored.Apply(restored.Now()+1, engine.Event{Kind: engine.Wake}); err != nil {
			t.Skip(err) // at the end of time
		}
	})
}

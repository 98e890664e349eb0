package engine_test

import (
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
)

// What has no place in another configuration is told as people write places and times.
func TestRestoreTellsWhatHasNoPlace(t *testing.T) {
	config := func(pool string, pes berth.Count, binding berth.Binding) engine.Config {
		return engine.Config{Sites: []berth.Site{{Name: "mixed", Pools: []berth.Pool{{Name: pool, PEs: pes, Binding: binding}}}}}
	}
	const when = " from 2026-12-01T10:00:00Z to 2026-12-01T11:00:00Z"
	for _, c := range []struct {
		was  berth.Binding
		is   engine.Config
		want string
	}{
		{berth.Early, config("slow", 4, berth.Early), `is on pool fast of mixed, which the configuration does not have`},
		{berth.Early, config("fast", 3, berth.Early), `has 4 PEs of mixed/fast (0-3)` + when + `, and the configuration has 3 PEs there`},
		{berth.Early, config("fast", 4, berth.Late), `has 4 PEs of mixed/fast (0-3)` + when + `, and the configuration binds late there, so that it would have no PEs by their numbers before its start`},
		{berth.Late, config("fast", 3, berth.Late), `has 4 PEs of mixed/fast` + when + `, and the configuration has 3 PEs there`},
		{berth.Late, config("fast", 4, berth.Early), `has 4 PEs of mixed/fast` + when + `, and the configuration binds early there, so that it would have to have PEs by their numbers`},
	} {
		e, err := engine.New(config("fast", 4, c.was))
		if err != nil {
			t.Fatal(err)
		}
		r := berth.Rigid("a", 0, 1_796_119_200, 1_796_122_800, 4, 3600)
		if _, _, err := e.Apply(1_796_000_000, engine.Submit(&r)); err != nil {
			t.Fatal(err)
		}
		if _, err := engine.Restore(c.is, e.Snapshot()); err == nil || err.Error() != `snapshot: reservation "a" `+c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// Bytes that are no snapshot make no engine and do not end the process.
func FuzzRestore(f *testing.F) {
	config := engine.Config{Sites: []berth.Site{{Name: "s", Pools: []berth.Pool{{Name: "p", PEs: 4, Binding: berth.Late}}}}}
	e, err := engine.New(config)
	if err != nil {
		f.Fatal(err)
	}
	for i, r := range []berth.Request{berth.Rigid("a", 0, 0, 20, 2, 10), berth.Rigid("b", 0, 5, 30, 4, 10), berth.Job("j", 0, 3, 7)} {
		if _, _, err := e.Apply(berth.Time(i), engine.Submit(&r)); err != nil {
			f.Fatal(err)
		}
		f.Add(e.Snapshot())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		restored, err := engine.Restore(config, data)
		if err != nil {
			return
		}
		if _, _, err := restored.Apply(restored.Now()+1, engine.Wake()); err != nil {
			t.Skip(err) // at the end of time
		}
	})
}

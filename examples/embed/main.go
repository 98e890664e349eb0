// Command embed drives the engine as a service does: what the engine decides is
// stored before it is told, sites are brought in line with it, and after a crash
// the stored changes give the same state again. It stores in memory and has a
// clock that its script moves; it is the shape of a service, not one.
package main

import (
	"fmt"
	"log"
	"os"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/journal/record"
)

// disk is what survives a crash.
type disk struct {
	records  [][]byte // changes, one entry for each event that changed something
	snapshot []byte   // the state after the first `covered` records
	covered  int
}

// cluster is what a site really has: the PEs of each reservation by id. It
// survives a crash too.
type cluster map[string]string

// service is an engine with a disk and a cluster.
type service struct {
	log     *log.Logger
	engine  *engine.Engine
	disk    *disk
	cluster cluster
	changes []change.Change // reused from one event to the next
	effects []change.Effect
}

func config() engine.Config {
	return engine.Config{Sites: []berth.Site{{
		Name: "here", Pools: []berth.Pool{{Name: "batch", PEs: 8, Binding: berth.Early}}, Managed: true,
	}}}
}

// start returns a service in the state that the disk holds. It decides nothing.
func start(out *log.Logger, d *disk, c cluster) (*service, error) {
	s := &service{log: out, disk: d, cluster: c}
	var err error
	if d.snapshot == nil {
		s.engine, err = engine.New(config())
	} else {
		s.engine, err = engine.Restore(config(), d.snapshot)
	}
	if err != nil {
		return nil, err
	}
	var decoder record.Decoder
	for _, payload := range d.records[d.covered:] {
		changes, err := decoder.Changes(payload)
		if err != nil {
			return nil, err
		}
		if err := s.engine.Fold(changes); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// apply lets the engine decide, stores what it did, and only then tells of it. An
// error concerns the event alone: what happened before it has to be stored too.
func (s *service) apply(now berth.Time, event engine.Event) error {
	changes, effects, wrong := s.engine.AppendApply(s.changes[:0], s.effects[:0], now, &event)
	s.changes, s.effects = changes, effects
	if len(changes) > 0 {
		s.disk.records = append(s.disk.records, record.AppendChanges(nil, changes))
	}
	for i := range changes {
		s.tell(now, &changes[i])
	}
	return wrong
}

// tell prints what clients want to hear.
func (s *service) tell(now berth.Time, c *change.Change) {
	switch c.Kind {
	case change.Accepted:
		s.log.Printf("%d: %s is promised PEs %s from %d", now, c.ID, c.Reservation.Allotments[0].PEs, c.Reservation.Start())
	case change.Moved:
		s.log.Printf("%d: %s moves to PEs %s from %d", now, c.ID, c.Moved[0].PEs, c.Moved[0].Start)
	case change.Refused, change.ChangeRefused, change.Lost:
		s.log.Printf("%d: %s: %s", now, c.ID, c.Refusal.Reason)
	}
}

// bringInLine makes the cluster what the engine says, for each effect that is not
// settled. An effect names a reservation; what the cluster must have is what the
// engine has now, so that an effect may be carried out late, twice, or after a
// later one.
func (s *service) bringInLine() error {
	for _, effect := range s.engine.Outbox() {
		if r, live := s.engine.Reservation(effect.Reservation); live {
			s.cluster[effect.Reservation] = fmt.Sprintf("%s:%s in [%d,%d)", r.Allotments[0].Resource.Name, r.Allotments[0].PEs, r.Start(), r.End())
		} else {
			delete(s.cluster, effect.Reservation)
		}
		if err := s.apply(s.engine.Now(), engine.Settle(effect.Number)); err != nil {
			return err
		}
	}
	return nil
}

// save stores a snapshot. The records that it covers need not be read any more.
func (s *service) save() {
	s.disk.snapshot, s.disk.covered = s.engine.Snapshot(), len(s.disk.records)
}

func run(out *log.Logger) error {
	d, c := &disk{}, cluster{}
	s, err := start(out, d, c)
	if err != nil {
		return err
	}
	wind, rain := berth.Rigid("wind", 0, 10, 100, 6, 20), berth.Rigid("rain", 0, 10, 100, 6, 20)
	for _, r := range []*berth.Request{&wind, &rain} {
		if err := s.apply(0, engine.Submit(r)); err != nil {
			return err
		}
	}
	if err := s.bringInLine(); err != nil {
		return err
	}
	s.save()
	if err := s.apply(1, engine.Down(berth.Outage{Resource: berth.PoolID("here", "batch"), PEs: berth.PEsOf(0)})); err != nil {
		return err
	}
	out.Println("the cluster has", c, "and", len(s.engine.Outbox()), "effects wait")

	before := s.engine.Hash() // here the process ends; the disk and the cluster stay
	if s, err = start(out, d, c); err != nil {
		return err
	}
	out.Println("after the crash the state is the same:", s.engine.Hash() == before)
	if err := s.bringInLine(); err != nil {
		return err
	}
	out.Println("the cluster has", c, "and", len(s.engine.Outbox()), "effects wait")

	if err := s.apply(2, engine.Confirm("wind")); err != nil {
		out.Println(err) // it is confirmed already
	}
	for at, due := s.engine.Next(); due; at, due = s.engine.Next() { // a service sleeps until then
		if err := s.apply(at, engine.Wake()); err != nil {
			return err
		}
		if err := s.bringInLine(); err != nil {
			return err
		}
	}
	out.Println("at", s.engine.Now(), "the cluster has", c)
	return nil
}

func main() {
	if err := run(log.New(os.Stdout, "", 0)); err != nil {
		log.Fatal(err)
	}
}

package service

import (
	"cmp"
	"encoding/json"
	"sync"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/journal"
)

// saved is a core in its written form.
type saved struct {
	Config []byte // in JSON
	Engine []byte
	Cards  []savedCard // live ones by id, then those that are over in their order
	Keys   []savedKey

	Shadows []savedShadow // by site
	Tasks   []savedTasks  // by site

	Delivered []delivery // by site

	Workflows []savedFlow // live ones by id, then those that are over in their order

	Outages []outageNote

	Series []savedSeries // in the order in which they are to be forgotten
	Hooks  []savedHook   // by id

	Maintenance []Maintenance // by name
}

type savedCard struct {
	ID      string
	Request *berth.Request     // of one that is over
	Promise *berth.Reservation // of one that is over
	End     State
	Refusal *berth.Refusal
	Version uint64
	Created berth.Time
	Changed berth.Time
	Asking  bool       // of a live one
	Until   berth.Time // of one that is over, if it ended before Changed
}

// coreFormat begins every snapshot of a core.
const coreFormat = 1

// code writes or reads a saved core. The numbers of fields are the form of
// snapshots that exist.
func (s *saved) code(c *wire.Coder) {
	wire.Raw(c, 1, &s.Config)
	wire.Raw(c, 2, &s.Engine)
	wire.List(c, 3, &s.Cards, func(c *wire.Coder, k *savedCard) { k.code(c) })
	wire.List(c, 4, &s.Keys, func(c *wire.Coder, k *savedKey) { k.code(c) })
	wire.List(c, 5, &s.Shadows, codeShadow)
	wire.List(c, 6, &s.Tasks, func(c *wire.Coder, t *savedTasks) { t.code(c) })
	wire.List(c, 7, &s.Delivered, func(c *wire.Coder, d *delivery) { d.code(c) })
	wire.List(c, 8, &s.Workflows, func(c *wire.Coder, f *savedFlow) { f.code(c) })
	wire.List(c, 9, &s.Outages, func(c *wire.Coder, n *outageNote) { n.code(c) })
	wire.List(c, 10, &s.Series, func(c *wire.Coder, s *savedSeries) { s.code(c) })
	wire.List(c, 11, &s.Hooks, func(c *wire.Coder, h *savedHook) { h.code(c) })
	wire.List(c, 13, &s.Maintenance, func(c *wire.Coder, m *Maintenance) { m.code(c) })
	c.End()
}

func (k *savedCard) code(c *wire.Coder) {
	wire.String(c, 1, &k.ID)
	wire.Pointer(c, 2, &k.Request, wire.Request)
	wire.Pointer(c, 3, &k.Promise, wire.Reservation)
	wire.Name(c, 4, &k.End)
	wire.Pointer(c, 5, &k.Refusal, wire.Refusal)
	wire.Uint(c, 6, &k.Version)
	wire.Int(c, 7, &k.Created)
	wire.Int(c, 8, &k.Changed)
	wire.Bool(c, 9, &k.Asking)
	wire.Int(c, 10, &k.Until)
	c.End()
}

// Snapshot writes everything down.
func (c *Core) Snapshot() ([]byte, error) {
	config, err := json.Marshal(&c.config)
	if err != nil {
		return nil, err
	}
	shadows, err := c.savedShadows()
	if err != nil {
		return nil, err
	}
	s := saved{Config: config, Engine: c.engine.Snapshot(), Keys: c.keys.saved(), Shadows: shadows, Tasks: c.savedTasks(), Delivered: c.savedDelivered(), Workflows: c.savedFlows(), Outages: c.notes.list, Series: c.savedSeries(), Hooks: c.savedHooks(), Maintenance: c.savedMaintenance()}
	s.Cards = make([]savedCard, 0, c.cards.Len())
	c.cards.Scan(func(k *card) bool {
		if k.end == "" {
			s.Cards = append(s.Cards, savedCard{ID: k.id, Version: k.version, Created: k.created, Changed: k.changed, Asking: k.asking})
		}
		return true
	})
	for _, id := range c.over {
		k, _ := c.cards.Get(&card{id: id})
		over := savedCard{
			ID: k.id, Request: k.request, Promise: k.promise, End: k.end, Refusal: k.refusal,
			Version: k.version, Created: k.created, Changed: k.changed,
		}
		if k.until < k.changed {
			over.Until = k.until
		}
		s.Cards = append(s.Cards, over)
	}
	w := wire.Writer(append(make([]byte, 0, len(s.Engine)+64*len(s.Cards)), coreFormat))
	s.code(w)
	return w.Bytes(), nil
}

// configIn reads the configuration alone of what Snapshot wrote.
func configIn(data []byte) (config engine.Config, err error) {
	if len(data) == 0 || data[0] != coreFormat {
		return config, errOtherFormat
	}
	var text []byte
	in := wire.Reader(data[1:])
	if wire.Raw(in, 1, &text); in.Err() != nil {
		return config, in.Err()
	}
	if config, err = readConfig(text); err != nil {
		err = berth.Errorf(berth.Invalid, "snapshot", "its configuration: %v", err)
	}
	return config, err
}

var errOtherFormat = berth.Errorf(berth.Invalid, "snapshot", "of another format; a newer program may read it")

// restoreCore reads what Snapshot wrote.
func restoreCore(data []byte, at journal.Position, version string, keep int) (*Core, error) {
	var s saved
	if len(data) == 0 || data[0] != coreFormat {
		return nil, errOtherFormat
	}
	in := wire.Reader(data[1:])
	s.code(in)
	if err := in.Done(); err != nil {
		return nil, err
	}
	config, err := readConfig(s.Config)
	if err != nil {
		return nil, berth.Errorf(berth.Invalid, "snapshot", "its configuration: %v", err)
	}
	c := &Core{
		config: config, position: at, version: version, cards: newCards(), keep: keep, keys: newKeys(),
		shadows: map[string]*shadow{}, tasks: map[string]*siteTasks{}, taskEnds: map[string]berth.Time{}, delivered: map[string]map[string]uint64{}, flows: newFlows(), series: newSeriesBook(),
	}
	var failed error
	var restoring sync.WaitGroup
	restoring.Go(func() {
		failed = caught(at.Number, following, func() (err error) {
			c.engine, err = engine.Restore(config, s.Engine)
			return err
		})
	})
	live := make([]*card, 0, len(s.Cards))
	for i := range s.Cards {
		in := &s.Cards[i]
		k := &card{
			id: in.ID, request: in.Request, promise: in.Promise, end: in.End, refusal: in.Refusal,
			version: in.Version, created: in.Created, changed: in.Changed, asking: in.Asking,
		}
		if k.end != "" {
			k.until = cmp.Or(in.Until, in.Changed)
		}
		if k.end == "" {
			live = append(live, k)
		} else {
			c.over = append(c.over, k.id)
		}
		c.cards.Load(k)
	}
	c.keys.restore(s.Keys)
	if restoring.Wait(); failed != nil {
		return nil, failed
	}
	for _, k := range live {
		if !k.take(c.engine) {
			return nil, berth.Errorf(berth.Invalid, "snapshot", "%q is neither live nor over", k.id)
		}
	}
	c.notes.list = s.Outages
	c.notes.complete(c)
	c.restoreHooks(s.Hooks)
	c.restoreMaintenance(s.Maintenance)
	c.restoreTasks(s.Tasks) // of reservations that are there
	for i := range s.Delivered {
		c.noteDelivered(&s.Delivered[i])
	}
	return c, cmp.Or(c.restoreFlows(s.Workflows), c.restoreSeries(s.Series), c.restoreShadows(s.Shadows))
}

// take fills a card of what is live from the engine; false if it is not.
func (k *card) take(e *engine.Engine) bool {
	if r := e.Promise(k.id); r != nil {
		k.request, k.promise = r.Request, r
		k.id = r.Request.ID // whose memory is there anyhow
		return true
	}
	status, live := e.Status(k.id)
	if live {
		r := status.Request
		k.request = &r
	}
	return live
}

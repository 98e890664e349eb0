package record

import (
	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/wire"
)

// The numbers of fields and the order of words are the form of journals that
// exist: they are only ever added to.

var (
	eventKinds = []engine.EventKind{
		engine.Wake, engine.Submit, engine.Cancel, engine.Finish, engine.Down, engine.Up, engine.Settle,
		engine.Confirm, engine.Modify, engine.Prolong, engine.Show, engine.Avoid, engine.Foresee,
	}
	changeKinds = []engine.ChangeKind{
		engine.Advanced, engine.Queued, engine.Planned, engine.Accepted, engine.Refused, engine.Withdrawn,
		engine.Started, engine.WentDown, engine.CameUp, engine.Failed, engine.Requeued, engine.Lost,
		engine.Extended, engine.Moved, engine.Ended, engine.Cancelled, engine.Emitted, engine.Settled,
		engine.Scheduled, engine.Waits, engine.Confirmed, engine.Expired,
		engine.Shortened, engine.Preempted, engine.Resized, engine.Modified, engine.Kept, engine.Shown, engine.NoShow,
		engine.Forecasted, engine.Staged,
	}
	effectKinds = []engine.EffectKind{engine.EffectReserve, engine.EffectLaunch, engine.EffectRelease}
)

func event(c *wire.Coder, e *engine.Event) {
	wire.Enum(c, 1, &e.Kind, eventKinds)
	wire.Pointer(c, 2, &e.Request, wire.Request)
	wire.String(c, 3, &e.ID)
	wire.Uint(c, 4, &e.Effect)
	wire.Struct(c, 5, &e.Resource, e.Resource == berth.ResourceID{}, wire.ResourceID)
	wire.PESet(c, 6, &e.PEs)
	wire.Int(c, 7, &e.Until)
	wire.Int(c, 8, &e.From)
	wire.Pointer(c, 9, &e.Forecast, engine.CodeForecast)
	c.End()
}

func change(c *wire.Coder, x *engine.Change) {
	wire.Enum(c, 1, &x.Kind, changeKinds)
	wire.Int(c, 2, &x.Now)
	wire.String(c, 3, &x.ID)
	wire.Int(c, 4, &x.Part)
	wire.Pointer(c, 5, &x.Request, wire.Request)
	wire.Pointer(c, 6, &x.Plan, wire.Allotment)
	wire.Pointer(c, 7, &x.Reservation, wire.Reservation)
	wire.Pointer(c, 8, &x.Refusal, wire.Refusal)
	wire.Pointer(c, 9, &x.Outage, outage)
	wire.Int(c, 10, &x.Until)
	wire.List(c, 11, &x.Moved, wire.Allotment)
	wire.List(c, 12, &x.PEs, wire.BarePESet)
	wire.Pointer(c, 13, &x.Effect, effect)
	wire.Uint(c, 14, &x.EffectID)
	wire.Int(c, 15, &x.Pass)
	wire.List(c, 16, &x.Held, wire.Allotment)
	wire.Pointer(c, 17, &x.Staging, wire.Staging)
	wire.Pointer(c, 18, &x.Forecast, engine.CodeForecast)
	c.End()
}

func effect(c *wire.Coder, e *engine.Effect) {
	wire.Uint(c, 1, &e.Number)
	wire.Enum(c, 2, &e.Kind, effectKinds)
	wire.Name(c, 3, &e.Site)
	wire.String(c, 4, &e.Reservation)
	wire.Uint(c, 5, &e.Generation)
	c.End()
}

func outage(c *wire.Coder, o *engine.Outage) {
	wire.Uint(c, 1, &o.Number)
	wire.Struct(c, 2, &o.Resource, o.Resource == berth.ResourceID{}, wire.ResourceID)
	wire.PESet(c, 3, &o.PEs)
	wire.Int(c, 4, &o.Until)
	wire.Int(c, 5, &o.From)
	c.End()
}

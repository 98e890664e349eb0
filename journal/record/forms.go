package record

import (
	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/internal/wire"
)

// The numbers of fields and the order of words are the form of journals that
// exist: they are only ever added to.

var (
	eventKinds = []engine.EventKind{
		engine.EventWake, engine.EventSubmit, engine.EventCancel, engine.EventFinish, engine.EventDown, engine.EventUp, engine.EventSettle,
		engine.EventConfirm, engine.EventModify, engine.EventExtend, engine.EventCheckIn, engine.EventRelocate, engine.EventUpdateForecast,
		engine.EventReject, engine.EventSubmitWorkflow, engine.EventConfirmWorkflow, engine.EventCancelWorkflow, engine.EventReport,
		engine.EventSubmitSeries, engine.EventCancelSeries, engine.EventModifySeries,
	}
	changeKinds = []change.Kind{
		change.Advanced, change.Queued, change.Planned, change.Accepted, change.Refused, change.Withdrawn,
		change.Started, change.WentDown, change.CameUp, change.Failed, change.Requeued, change.Lost,
		change.Extended, change.Moved, change.Ended, change.Cancelled, change.Emitted, change.Settled,
		change.Scheduled, change.QueuedAsJob, change.Confirmed, change.Expired,
		change.Shortened, change.Preempted, change.Resized, change.Modified, change.ChangeRefused, change.CheckedIn, change.NoShow,
		change.Forecasted, change.Staged, change.Vacated, change.OutageBegan, change.Rejected,
		change.WorkflowPromised, change.WorkflowRefused, change.TaskOver, change.WorkflowReplanned, change.WorkflowOver,
		change.Named, change.SeriesPromised, change.SeriesRefused, change.SeriesProlonged,
	}
	outcomes = berth.Outcomes()
	repairs  = berth.Repairs()
	causes   = change.Causes()
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
	wire.Pointer(c, 9, &e.Forecast, wire.Forecast)
	wire.Name(c, 10, &e.Name)
	wire.Name(c, 11, &e.Role)
	wire.Pointer(c, 12, &e.Refusal, wire.Refusal)
	wire.Pointer(c, 13, &e.Workflow, wire.Workflow)
	wire.Enum(c, 14, &e.Outcome, outcomes)
	wire.Name(c, 15, &e.Why)
	wire.Pointer(c, 16, &e.Plan, plan)
	wire.Pointer(c, 17, &e.Series, wire.Series)
	wire.List(c, 18, &e.Of, wire.BareText[string])
	wire.Int(c, 19, &e.First)
	wire.Int(c, 20, &e.Last)
	wire.List(c, 21, &e.Requests, wire.Request)
	wire.Pointer(c, 22, &e.Foreseen, foreseen)
	c.End()
}

func foreseen(c *wire.Coder, f *engine.Foreseen) {
	wire.List(c, 1, &f.Places, wire.Allotment)
	wire.Int(c, 2, &f.Cost.Delayed)
	wire.Int(c, 3, &f.Cost.Sum)
	wire.Int(c, 4, &f.Cost.Largest)
	wire.Int(c, 5, &f.Cost.Idle)
	wire.Int(c, 6, &f.Cost.Followed)
	wire.Bool(c, 7, &f.Cost.Complete)
	wire.Uint(c, 8, &f.Record)
	wire.Bool(c, 9, &f.Admitted)
	c.End()
}

func plan(c *wire.Coder, p *engine.WorkflowPlan) {
	wire.Name(c, 1, &p.Planner)
	wire.List(c, 2, &p.Places, wire.Allotment)
	wire.Pointer(c, 3, &p.Refusal, wire.Refusal)
	wire.Bool(c, 4, &p.Last)
	wire.List(c, 5, &p.Order, wire.BareInt[int])
	c.End()
}

func step(c *wire.Coder, x *change.Change) {
	wire.Enum(c, 1, &x.Kind, changeKinds)
	wire.Int(c, 2, &x.Now)
	wire.String(c, 3, &x.ID)
	wire.Int(c, 4, &x.Part)
	wire.Pointer(c, 5, &x.Request, wire.Request)
	wire.Pointer(c, 6, &x.Plan, wire.Allotment)
	wire.Pointer(c, 7, &x.Reservation, wire.Reservation)
	wire.Pointer(c, 8, &x.Refusal, wire.Refusal)
	wire.Pointer(c, 9, &x.Outage, wire.Outage)
	wire.Int(c, 10, &x.Until)
	wire.List(c, 11, &x.Moved, wire.Allotment)
	wire.List(c, 12, &x.PEs, wire.BarePESet)
	wire.Pointer(c, 13, &x.Effect, effect)
	wire.Uint(c, 14, &x.EffectID)
	wire.Int(c, 15, &x.Pass)
	wire.List(c, 16, &x.Stocks, wire.Allotment)
	wire.Earlier(c, 17, x.Moved, &x.Stocks, &x.Transfers)
	wire.Pointer(c, 18, &x.Forecast, wire.Forecast)
	wire.Pointer(c, 19, &x.Terms, wire.Terms)
	wire.List(c, 20, &x.Transfers, wire.Transfer)
	wire.Pointer(c, 21, &x.Workflow, wire.Workflow)
	wire.Pointer(c, 22, &x.Flow, flow)
	wire.Pointer(c, 23, &x.Series, wire.Series)
	wire.List(c, 24, &x.Unfit, wire.RefusedOccurrence)
	wire.Pointer(c, 25, &x.Progress, wire.Progress)
	c.End()
	if c.Reading() && x.Kind == change.Moved && len(x.Moved) == 0 {
		x.Kind = change.Vacated // which format 1 wrote as a move to no place
	}
}

func effect(c *wire.Coder, e *change.Effect) {
	wire.Uint(c, 1, &e.Number)
	var kind string // of format 1
	wire.Enum(c, 2, &kind, []string{"reserve", "launch", "release"})
	wire.Name(c, 3, &e.Site)
	wire.String(c, 4, &e.Reservation)
	wire.Uint(c, 5, &e.Generation)
	c.End()
}

func flow(c *wire.Coder, f *change.Flow) {
	wire.Name(c, 1, &f.Workflow)
	wire.Int(c, 2, &f.Task)
	wire.Enum(c, 3, &f.Outcome, outcomes)
	wire.Name(c, 4, &f.Why)
	wire.Enum(c, 5, &f.Cause, causes)
	wire.Enum(c, 6, &f.Repair, repairs)
	wire.Int(c, 7, &f.Moved)
	wire.Int(c, 8, &f.End)
	wire.Int(c, 9, &f.Before)
	c.End()
}

package engine

import (
	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/engine/internal/place"
)

// IsReady reports whether a plan is followed beside the engine that decides.
func (p *WorkflowPlan) IsReady() bool { return p.ready != nil }

// ChangedApart is the plain form of what ModifySeries finds: in a copy of the engine all leave their places, and then each is
// placed by itself. It returns a refusal or a new place of each.
func ChangedApart(e *Engine, requests []berth.Request) ([]change.Change, error) {
	apart, err := Restore(e.config, e.Snapshot())
	if err != nil {
		return nil, err
	}
	for i := range requests {
		apart.emitOf(apart.state.Entry(requests[i].ID), change.Change{Kind: change.Vacated})
	}
	list := make([]change.Change, len(requests))
	for i := range requests {
		own := requests[i].Clone()
		d := apart.state.Entry(own.ID)
		own.Series = d.Request().Series
		found, refusal := apart.finder.Place(place.Want{Request: own, Again: d, Admit: true})
		if refusal != nil {
			list[i] = change.Change{Kind: change.ChangeRefused, ID: own.ID, Refusal: refusal}
			continue
		}
		found.Terms.Expires = d.Terms().Expires
		list[i] = change.Change{
			Kind: change.Modified, ID: own.ID, Request: own, Moved: found.Allotments, Terms: &found.Terms, Stocks: found.Stocks, Transfers: found.Transfers,
		}
		apart.makeRoom(found.Allotments)
		apart.emitOf(d, list[i])
	}
	return list, nil
}

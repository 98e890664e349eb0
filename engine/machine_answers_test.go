package engine_test

import (
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
)

// mistaken reports whether an event must be an error because what it says cannot
// be right as things stand; perhaps where that is left open.
func (m *model) mistaken(event *engine.Event, e *engine.Engine) answer {
	p := m.byID[event.ID]
	pending := m.pending[event.ID] != nil
	promised := p != nil && !p.job
	wrong := false
	switch event.Kind {
	case engine.EventWake:
	case engine.EventSubmit:
		return m.mistakenRequest(event.Request, true)
	case engine.EventModify:
		r := event.Request
		if !promised || p.state == berth.Active || p.start() < m.now || r.ID != p.id || r.IsJob() || r.User != p.request.User {
			return yes
		}
		return m.mistakenRequest(r, false)
	case engine.EventReject:
		wrong = p == nil
	case engine.EventCancel:
		wrong = p == nil && !pending
	case engine.EventConfirm:
		wrong = p == nil || p.state != berth.Held || p.firstEnd() <= m.now
	case engine.EventExtend:
		wrong = !promised || !p.single() || event.Until <= p.lastEnd() || !event.Until.Valid()
	case engine.EventCheckIn, engine.EventFinish:
		wrong = p == nil || p.state != berth.Active
	case engine.EventRelocate:
		pool := m.poolNamed(event.Resource)
		wrong = !promised || p.state == berth.Active && (p.shown || !m.outlives(p)) || pool < 0 || m.unknownPEs(event, pool) || !m.pools[pool].foreseen() && p.state != berth.Active
	case engine.EventDown, engine.EventUp:
		pool := m.poolNamed(event.Resource)
		wrong = pool < 0 || m.unknownPEs(event, pool) || event.Kind == engine.EventDown && event.Until != 0 && event.Until <= max(event.From, m.now)
	case engine.EventUpdateForecast:
		wrong = event.Forecast == nil || !slices.ContainsFunc(m.config.Sites, func(s berth.Site) bool { return s.Name == event.Forecast.Site })
	case engine.EventSettle:
		wrong = !slices.ContainsFunc(e.Outbox(), func(x change.Effect) bool { return x.Number == event.Effect })
	default:
		wrong = true
	}
	if wrong {
		return yes
	}
	return no
}

func (m *model) unknownPEs(event *engine.Event, pool int) bool {
	if event.Kind == engine.EventUp && event.Name != "" {
		return false
	}
	return event.PEs.Empty() || event.PEs.Max() >= berth.PE(m.pools[pool].pool.PEs)
}

// mistakenRequest reports whether a request cannot be submitted, or be what a
// promise is modified to. A window that is too short at the standard speed is a
// mistake only if no pool is fast enough, and then it may be refused instead.
func (m *model) mistakenRequest(r *berth.Request, submitted bool) answer {
	if r == nil || r.Arrival > m.now || submitted && m.requestOf(r.ID) != nil {
		return yes
	}
	if submitted && r.IsJob() && (r.Licences > 0 || r.StorageMB > 0) && m.counted(r) {
		return yes
	}
	if m.short(r) && !m.possible(r, r.Deadline) {
		return perhaps
	}
	return no
}

// short reports whether a window is shorter than the request lasts at the standard
// speed.
func (m *model) short(r *berth.Request) bool {
	return slices.ContainsFunc(r.Parts, func(part berth.Part) bool {
		shortest := part.Variants[0].Duration
		for _, v := range part.Variants {
			shortest = min(shortest, v.Duration)
		}
		return r.Deadline < r.Ready.Add(shortest)
	})
}

// counted reports whether a job wants what is counted wherever else it could run.
func (m *model) counted(job *berth.Request) bool {
	promised := *job
	promised.Kind = berth.KindRequest
	served := false
	for pool := range m.pools {
		if m.meets(job, pool) {
			return false
		}
		served = served || m.meets(&promised, pool)
	}
	return served
}

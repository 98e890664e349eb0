package service

import (
	"cmp"

	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/site"
)

// causeOf says for people why a reservation is as a change has made it: the change, and the
// event that it follows from. Changes that leave it as it is have the cause before.
func causeOf(kind change.Kind, event *engine.Event, before string) string {
	var words string
	switch kind {
	case change.Accepted, change.Confirmed:
		return "promised"
	case change.Moved:
		words = "moved"
	case change.Resized:
		words = "other PEs"
	case change.Named:
		words = "its nodes are named"
	case change.Modified:
		if event != nil && event.Kind != engine.EventModify {
			return "moved with its workflow"
		}
		return "modified by its owner"
	case change.Extended:
		if event != nil && event.Kind != engine.EventExtend {
			return "extended, because it is late"
		}
		return "extended by its owner"
	default:
		return before
	}
	if event == nil {
		return words
	}
	switch event.Kind {
	case engine.EventDown:
		return words + ", because " + cmp.Or(event.Name, "something") + " takes PEs"
	case engine.EventUp:
		return words + ", because " + cmp.Or(event.Name, "something") + " gave PEs back"
	case engine.EventRelocate:
		return words + ", because its site refuses it where it was"
	case engine.EventWake:
		return words + ", because its time has come"
	case engine.EventUpdateForecast:
		return words + ", because its data come at another time"
	}
	return words + ", because of a " + string(event.Kind) + " of another one"
}

// causeAt returns why a promise is as it is, if that is known.
func (h *Host) causeAt(id string) string {
	if k := h.core.card(id); k != nil {
		return cmp.Or(k.cause, "as promised before the service started")
	}
	return "as promised"
}

// over returns the promises for which the site has a reservation that is not wanted, and why.
func (h *Host) over(k *keeper, state *site.State, w *wanted) map[promise]unwanted {
	over := map[promise]unwanted{}
	for i := range state.Ours {
		name := site.Name(state.Ours[i].Name)
		if w.names[name] {
			continue
		}
		p := k.promiseOf(name)
		u := unwanted{id: k.ids[p]}
		c := h.core.card(u.id)
		switch id, moved := w.moved[p]; {
		case moved:
			u = unwanted{id: id, cause: "its promise is elsewhere"}
		case c == nil:
			u.cause = "nothing is promised under its name"
		case c.end == "":
			u.cause, u.lives = "its promise is not at this site", true
		default:
			u.cause = "its promise is " + string(c.end)
		}
		over[p] = u
	}
	return over
}

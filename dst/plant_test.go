package dst

import (
	"net/http"

	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
)

// plant is a planted fault: what stands between the service and its world, and is wrong. The zero value
// is none.
type plant struct {
	less  less   // what of the seed is left out
	from  string // the journal of an earlier version that it begins with, whatever the seed says
	whole bool   // the trace has every record
	// shaken has goroutines make way for one another by chance, wherever something takes its time.
	shaken bool
	wrap   func(journal.Store) journal.Store
	serve  func(h http.Handler, life int) http.Handler
	// hears is what the service hears of a booking, and sees what it sees of a site.
	hears func(p *port, want *site.Reservation, o site.Outcome, err error) (site.Outcome, error)
	sees  func(p *port, s *site.State) *site.State
	skips func(p *port, name site.Name) bool
	// swallows is what the service hears of a change that the site never does.
	swallows func(p *port, want *site.Reservation) (site.Outcome, bool)
	// config is what the service is configured as instead.
	config func(c engine.Config) engine.Config
	// members are those of projects instead.
	members func(p service.Projects, life int) service.Projects
	// blind has a server that is cut off from the journal go on as if it led.
	blind bool
	// told is what sends notices.
	told func(m service.Messenger, life int) service.Messenger
}

func (f *plant) journal(s journal.Store) journal.Store {
	if f.wrap == nil {
		return s
	}
	return f.wrap(s)
}

func (f *plant) answers(h http.Handler, life int) http.Handler {
	if f.serve == nil {
		return h
	}
	return f.serve(h, life)
}

func (f *plant) booked(p *port, want *site.Reservation, o site.Outcome, err error) (site.Outcome, error) {
	if f.hears == nil {
		return o, err
	}
	return f.hears(p, want, o, err)
}

func (f *plant) observed(p *port, s *site.State) *site.State {
	if f.sees == nil || s == nil {
		return s
	}
	return f.sees(p, s)
}

func (f *plant) forgoes(p *port, name site.Name) bool { return f.skips != nil && f.skips(p, name) }

func (f *plant) changed(p *port, want *site.Reservation) (site.Outcome, bool) {
	if f.swallows == nil {
		return site.Outcome{}, false
	}
	return f.swallows(p, want)
}

func (f *plant) configured(c engine.Config) engine.Config {
	if f.config == nil {
		return c
	}
	return f.config(c)
}

func (f *plant) projects(p service.Projects, life int) service.Projects {
	if f.members == nil {
		return p
	}
	return f.members(p, life)
}

func (f *plant) leads(of func() error) func() error {
	if f.blind {
		return nil
	}
	return of
}

func (f *plant) messages(m service.Messenger, life int) service.Messenger {
	if f.told == nil {
		return m
	}
	return f.told(m, life)
}

package api_test

import (
	"context"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
)

func (f *fake) FeedGeneration(by service.Principal, site string) (service.FeedGeneration, error) {
	defer f.lock()()
	switch {
	case f.fails != nil:
		return service.FeedGeneration{}, f.fails
	case site == "" && !by.Can(service.User):
		return service.FeedGeneration{}, berth.Errorf(berth.Denied, "role", "a %s has none", by.Role)
	case site != "" && (site != "cm5" || !by.Sites.Has(site)):
		return service.FeedGeneration{}, berth.Errorf(berth.NotFound, "site", "no site %q", site)
	}
	return service.FeedGeneration{Record: uint64(len(f.notices))}, nil
}

func (f *fake) Feed(_ context.Context, by service.Principal, site string) (service.Feed, int, error) {
	generation, err := f.FeedGeneration(by, site)
	if err != nil {
		return service.Feed{}, 0, err
	}
	defer f.lock()()
	feed := service.Feed{Generation: generation, Now: f.now, Until: berth.Forever, Site: site}
	for i, r := range f.made {
		if len(r.Allotments) == 0 || site == "" && r.Request.User != by.User {
			continue
		}
		p := service.FeedPromise{Reservation: *r, Yours: by.Owns(r.Request.User), Number: uint32(i + 1), Start: r.Allotments[0].Start, End: r.Allotments[0].End, Kinds: []string{"slurm"}}
		if !p.Yours {
			p.Reservation = service.Reservation{State: r.State, Version: r.Version, Allotments: r.Allotments, Created: r.Created, Changed: r.Changed}
		}
		feed.Promises = append(feed.Promises, p)
	}
	if site != "" {
		feed.Outages = f.feedOutages
	}
	return feed, len(f.made), nil
}

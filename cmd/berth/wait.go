package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/api/form"
)

func started(r *form.Reservation) bool { return r.State == "active" }

func over(r *form.Reservation) bool { return slices.Contains(overStates, r.State) }

// await waits until something is true of a reservation. If that is over before,
// and the thing not true, it is a conflict. What ctx says ends it: a timeout, or
// Ctrl-C, after which the reservation is as it is.
func (a *app) await(ctx context.Context, c *client.Client, id string, until func(*form.Reservation) bool) (form.Reservation, error) {
	for {
		r, missed, err := a.follow(ctx, c, id, until)
		switch {
		case missed: // look at it anew, and listen from there
		case errors.Is(err, context.Canceled):
			return r, &interrupted{"reservation " + id + " is as it is"}
		case err != nil:
			return r, err
		case !until(&r):
			return r, berth.Errorf(berth.Conflict, "", "reservation %s is %s", id, r.State)
		default:
			return r, nil
		}
	}
}

// follow listens to what happens to a reservation, beginning with how it is once
// everything that follows is heard. missed says that it was not.
func (a *app) follow(ctx context.Context, c *client.Client, id string, until func(*form.Reservation) bool) (r form.Reservation, missed bool, err error) {
	for event, err := range c.Events(ctx, 0) {
		coded, is := errors.AsType[*berth.Error](err)
		switch {
		case is && coded.Code == berth.NotFound:
			return r, true, nil
		case err != nil:
			return r, false, err
		case event.ID != 0 && (event.Reservation.ID != id || event.Task != nil):
			continue // what becomes of a task changes no reservation
		}
		if r, err = c.Get(ctx, id); err != nil {
			return r, false, err
		}
		if until(&r) || over(&r) {
			return r, false, nil
		}
	}
	return r, false, fmt.Errorf("waiting for %s: %w", id, ctx.Err())
}

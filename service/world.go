package service

import (
	"cmp"
	"context"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/site"
)

// Sites returns every site as it is.
func (h *Host) Sites(ctx context.Context, by Principal) ([]SiteView, error) {
	if !by.Can(Viewer) {
		return nil, berth.Errorf(berth.Denied, "role", "%q is no role; want viewer, user or operator", by.Role)
	}
	return call(ctx, h, by.User, func(answer func([]SiteView, error)) {
		loads := h.core.engine.Loads()
		views := make([]SiteView, 0, len(h.core.config.Sites))
		for _, s := range h.core.config.Sites {
			if !by.Sites.Has(s.Name) {
				continue
			}
			view := SiteView{Reachable: true}
			if k := h.sites[s.Name]; k != nil {
				view = k.look()
			}
			view.Site = s
			for _, l := range loads {
				if l.Resource.Site == s.Name {
					view.Loads = append(view.Loads, l)
				}
			}
			views = append(views, view)
		}
		h.whenDurable(func(err error) { answer(views, err) })
	})
}

// Run hands a task to a site that runs things by itself, to run in a reservation
// from its start on. The site makes the reservation first if it does not have it
// yet, as Prepare does. The task's reservation, user and key are set here, and what it learns
// of its reservation from its environment. Under one key of its owner and reservation
// a task runs once; another task under that key is site.ErrKeyTaken.
func (h *Host) Run(ctx context.Context, ask Ask, id string, task site.Task) (site.JobID, error) {
	return h.runAs(ctx, ask, id, task, site.Variables{})
}

// runAs is Run of a task that learns of its workflow too.
func (h *Host) runAs(ctx context.Context, ask Ask, id string, task site.Task, of site.Variables) (site.JobID, error) {
	type place struct {
		keeper    *keeper
		submit    func(context.Context, site.Task) (site.JobID, error)
		name      site.Name
		made      bool
		user      string
		variables site.Variables
	}
	find := func(answer func(place, error)) {
		c, err := h.may(&ask, id)
		if err != nil {
			answer(place{}, err)
			return
		}
		r, live := h.core.engine.Reservation(id)
		if !live && c.promise == nil {
			answer(place{}, gone(c))
			return
		}
		if !live {
			r = *c.promise
		}
		if key := cmp.Or(task.Key, ask.Key); key == flowKey && of.Workflow == "" && r.Request.Task != nil {
			answer(place{}, berth.Errorf(berth.Conflict, "key", "%q is the key of the task of workflow %q itself; use another", key, r.Request.Task.Workflow))
			return
		}
		k := h.sites[r.Allotments[0].Resource.Site]
		if k == nil {
			answer(place{}, berth.Errorf(berth.Conflict, "site", "%q has no adapter, so no task can be handed in there; use the site's own commands", r.Allotments[0].Resource.Site))
			return
		}
		var submit func(context.Context, site.Task) (site.JobID, error)
		switch a := k.manager.Adapter.(type) {
		case site.Runner:
			submit = a.Submit
		case site.Deputy:
			if of.Workflow != "" { // a user who hands in a task alone does so themselves
				submit = a.Hand
			}
		}
		if !live { // what was handed in before it was over is told again
			over := gone(c)
			recaller, can := k.manager.Adapter.(site.Recaller)
			if !can || task.Key == "" && ask.Key == "" {
				answer(place{}, over)
				return
			}
			submit = func(ctx context.Context, task site.Task) (site.JobID, error) {
				job, err := recaller.Recall(ctx, task)
				if err == nil && job == "" {
					err = over
				}
				return job, err
			}
		}
		if submit == nil {
			answer(place{}, berth.Errorf(berth.Conflict, "site", "%q runs what its users submit themselves: sbatch --reservation, or berth submit", k.name))
			return
		}
		is := k.at(id, r.Generation)
		if !live {
			is.Name, is.Made = site.NameOf(k.name, id, r.Generation), true
		}
		answer(place{k, submit, is.Name, is.Made, r.Request.User, site.Variables{
			ID: id, Site: k.name, Reservation: is.Name, Start: r.Start(), End: r.End(), Deadline: r.Request.Deadline, Workflow: of.Workflow, Task: of.Task,
		}}, nil)
	}
	at, err := call(ctx, h, ask.By.User, find)
	if err == nil && !at.made {
		if _, err = h.Prepare(ctx, ask, id); err == nil {
			at, err = call(ctx, h, ask.By.User, find)
		}
	}
	if err != nil {
		return "", err
	}
	task.Reservation, task.User, task.Variables = at.name, at.user, at.variables
	if task.Key == "" {
		if task.Key = ask.Key; task.Key == "" {
			task.Key = h.newID()
		}
	}
	if err := task.Check(); err != nil {
		return "", err
	}
	if err := h.leads(); err != nil {
		return "", err
	}
	job, err := at.submit(ctx, task)
	at.keeper.agent.Forget() // who asks for the tasks now finds this one among them
	return job, err
}

// Tasks returns what became of the tasks of a reservation, also of one that is over:
// at a site that is a site.Reporter as they are now, at others as they were at the
// last look. Sites remember ended tasks for a time only. Errors: NotFound, and those
// of the sites: one that does not answer fails the whole. Cost: O(jobs of
// its sites).
func (h *Host) Tasks(ctx context.Context, by Principal, id string) (Tasks, error) {
	type place struct {
		site string
		name site.Name
	}
	places, err := call(ctx, h, by.User, func(answer func([]place, error)) {
		c, err := h.may(&Ask{By: by}, id)
		if err != nil {
			answer(nil, err)
			return
		}
		var places []place
		if c.promise != nil {
			for i := range c.promise.Allotments {
				name := c.promise.Allotments[i].Resource.Site
				if !slices.ContainsFunc(places, func(p place) bool { return p.site == name }) {
					places = append(places, place{name, site.NameOf(name, id, c.promise.Generation)})
				}
			}
		}
		h.whenDurable(func(err error) { answer(places, err) })
	})
	if err != nil {
		return Tasks{}, err
	}
	var tasks Tasks
	for _, p := range places {
		k := h.sites[p.site]
		if k == nil {
			tasks.Untold = append(tasks.Untold, p.site)
			continue
		}
		reports, err := k.report(ctx, p.name)
		if err != nil {
			return Tasks{}, err
		}
		slices.SortFunc(reports, func(a, b site.Report) int { return site.CompareJobs(a.ID, b.ID) })
		for i := range reports {
			tasks.List = append(tasks.List, Task{Site: p.site, Report: reports[i]})
		}
	}
	return tasks, nil
}

// report returns the jobs of a reservation at the site.
func (k *keeper) report(ctx context.Context, name site.Name) ([]site.Report, error) {
	if r, can := k.manager.Adapter.(site.Reporter); can {
		return r.Report(ctx, name)
	}
	state, err := k.agent.Observe(ctx)
	if err != nil {
		return nil, err
	}
	return state.Reports(k.name, name), nil
}

// Drain lets what runs on a node end and has nothing more started there.
func (h *Host) Drain(ctx context.Context, ask Ask, siteName, node, reason string) error {
	return h.drainer(ask, siteName, func(d site.Drainer) error { return d.Drain(ctx, node, reason) })
}

// Resume puts a node back into use.
func (h *Host) Resume(ctx context.Context, ask Ask, siteName, node string) error {
	return h.drainer(ask, siteName, func(d site.Drainer) error { return d.Resume(ctx, node) })
}

// UpdateForecast takes in a forecast of how fast data can be moved to a site: promises
// whose data come at another time are placed anew if they have to be.
func (h *Host) UpdateForecast(ctx context.Context, ask Ask, f Forecast) error {
	if !ask.By.Can(Operator) {
		return berth.Errorf(berth.Denied, "role", "only an operator updates the forecast of a site; ask with an operator's token")
	}
	if !ask.By.Sites.Has(f.Site) {
		return noSite(f.Site)
	}
	_, err := call(ctx, h, ask.By.User, func(answer func(struct{}, error)) {
		if f.From == 0 {
			f.From = h.clock()
		}
		err := h.step(engine.UpdateForecast(&f), ask.asked(), nil)
		h.whenDurable(func(failed error) { answer(struct{}{}, cmp.Or(failed, err)) })
	})
	return err
}

func (h *Host) drainer(ask Ask, siteName string, do func(site.Drainer) error) error {
	if err := ask.By.mayTakeNodes(); err != nil {
		return err
	}
	k := h.sites[siteName]
	if k == nil || !ask.By.Sites.Has(siteName) {
		return noManagedSite(siteName)
	}
	d, can := k.manager.Adapter.(site.Drainer)
	if !can {
		return berth.Errorf(berth.Conflict, "site", "the nodes of %q cannot be drained from here; use the site's own commands", siteName)
	}
	err := do(d)
	if err == nil {
		k.agent.Forget()
		k.poke()
	}
	return err
}

// Doctor examines a managed site.
func (h *Host) Doctor(ctx context.Context, by Principal, siteName string) ([]site.Finding, error) {
	if !by.Can(Operator) {
		return nil, berth.Errorf(berth.Denied, "role", "only an operator examines sites; ask with an operator's token")
	}
	k := h.sites[siteName]
	if k == nil || !by.Sites.Has(siteName) {
		return nil, noManagedSite(siteName)
	}
	d, can := k.manager.Adapter.(site.Doctor)
	if !can {
		return nil, berth.Errorf(berth.Conflict, "site", "%q cannot be examined from here; only sites of kind slurm and local can", siteName)
	}
	return d.Doctor(ctx), nil
}

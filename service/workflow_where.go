package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

// unable returns why tasks of a user cannot be run at sites that run tasks as users, by site.
// Where the service hands them in as their owner, commands that another user wrote are not theirs
// to run.
func (h *Host) unable(ctx context.Context, asker, user string) map[string]string {
	why := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(h.sites)) {
		k := h.sites[name]
		r, is := k.manager.Adapter.(site.Representative)
		if !is {
			continue
		}
		if _, deputy := r.(site.Deputy); deputy && asker != user {
			why[name] = fmt.Sprintf("tasks run there as %s, who has to submit them", user)
		} else if err := r.Represents(ctx, user); err != nil {
			why[name] = err.Error()
		}
	}
	return why
}

// sharingAdmitted keeps a workflow at sites that let its user run tasks in the accounts and QOS that they name, and has tasks that name
// no account be in the default one of the user. It runs beside the loop, since it may ask sites. The error is that of admit, and names
// the task, if it is about one that names an account.
func (h *Host) sharingAdmitted(ctx context.Context, w *berth.Workflow) error {
	type asked struct{ account, qos, partition, site string }
	seen := map[asked]bool{}
	if w.Account != "" { // also where every task names another one
		if err := h.inProject(ctx, w.User, &w.Account); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(w.Tasks, func(t berth.WorkflowTask) bool { return !t.Done && cmp.Or(t.Account, w.Account) == "" }) {
		if err := h.inProject(ctx, w.User, &w.Account); err != nil {
			return err
		}
	}
	for i := range w.Tasks {
		t, sharing := &w.Tasks[i], w.SharingOf(i)
		a := asked{sharing.Account, sharing.QOS, t.Partition, t.Site}
		if t.Done || sharing.Alone() || seen[a] {
			continue
		}
		seen[a] = true
		r := berth.Request{User: w.User, Site: cmp.Or(t.Site, w.Site), Pool: w.Pool, Sites: w.Sites, Requirements: t.Requirements, Sharing: sharing}
		err := h.admit(ctx, &r)
		if coded, is := errors.AsType[*berth.Error](err); is {
			return berth.Errorf(coded.Code, coded.Field, "task %q: %s", t.ID, coded.Msg)
		}
		if err != nil {
			return err
		}
		if t.Site == "" {
			w.Sites = r.Sites
		}
	}
	return nil
}

// withinRunners keeps a workflow that has something to run at the sites that run tasks by
// themselves, or as its owner. The error is of code Conflict: there is none where it may be.
func (h *Host) withinRunners(w *berth.Workflow, unable map[string]string) error {
	known := func(s berth.Site) bool { return s.Name == w.Site }
	if !slices.ContainsFunc(w.Tasks, func(t berth.WorkflowTask) bool { return !t.Done && !t.Work.Empty() }) || w.Site != "" && !slices.ContainsFunc(h.core.config.Sites, known) {
		return nil // a site that is not there is refused like one of a request
	}
	var names, reasons []string
	for i := range h.core.config.Sites {
		name := h.core.config.Sites[i].Name
		if len(w.Sites) > 0 && !slices.Contains(w.Sites, name) || w.Site != "" && w.Site != name {
			continue
		}
		k := h.sites[name]
		if k == nil || k.manager.Shadow {
			continue
		}
		_, runs := k.manager.Adapter.(site.Runner)
		_, represents := k.manager.Adapter.(site.Deputy)
		switch why := unable[name]; {
		case (runs || represents) && why == "":
			names = append(names, name)
		case why != "":
			reasons = append(reasons, name+": "+why)
		case k.manager.Kind == "slurm":
			reasons = append(reasons, name+": its adapter does not say run_as, so that the service may not run tasks as their owners")
		}
	}
	if len(names) == 0 {
		why := ""
		if len(reasons) > 0 {
			why = " (" + strings.Join(reasons, "; ") + ")"
		}
		return berth.Errorf(berth.Conflict, "site", "no site that it may use runs tasks by itself%s; leave the commands out, and hand the tasks in to their reservations with berth submit --reservation", why)
	}
	for i := range w.Tasks {
		t := &w.Tasks[i]
		known := func(s berth.Site) bool { return s.Name == t.Site }
		if t.Done || slices.Contains(names, t.Site) || len(w.Sites) > 0 && !slices.Contains(w.Sites, t.Site) || !slices.ContainsFunc(h.core.config.Sites, known) {
			continue // at no site of its own, or at one that is refused like that of a request
		}
		return berth.Errorf(berth.Conflict, "site", "task %q: site %s runs no tasks of workflows by itself, and a workflow with commands is at sites that do (%s); leave out the commands of all tasks, and hand them in to their reservations with berth submit --reservation", t.ID, t.Site, strings.Join(names, ", "))
	}
	w.Sites = names
	return nil
}

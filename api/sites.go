package api

import (
	"fmt"
	"net/http"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/site"
)

func (c *call) sites() error {
	list, err := c.Sites(c.r.Context(), c.by)
	if err != nil {
		return err
	}
	f := form.Sites{Sites: make([]form.Site, len(list))}
	for i := range list {
		f.Sites[i] = siteView(c.by, &list[i])
	}
	return c.answer(http.StatusOK, &f)
}

func (c *call) site() error {
	list, err := c.Sites(c.r.Context(), c.by)
	if err != nil {
		return err
	}
	for i := range list {
		if list[i].Name == c.r.PathValue("name") {
			f := siteView(c.by, &list[i])
			return c.answer(http.StatusOK, &f)
		}
	}
	return berth.Errorf(berth.NotFound, "name", "no site %q", c.r.PathValue("name"))
}

func (c *call) doctor() error {
	found, err := c.Doctor(c.r.Context(), c.by, c.r.PathValue("name"))
	if err != nil {
		return err
	}
	f := form.Findings{Findings: make([]form.Finding, len(found))}
	for i := range found {
		f.Findings[i] = form.Finding{Check: found[i].Check, Level: string(found[i].Level), Text: found[i].Text, Hint: found[i].Hint}
	}
	return c.answer(http.StatusOK, &f)
}

var drainBody = body[string]{
	{"reason", "Why, for those who wonder.", text("disk full"), func(reason *string, v value) (err error) {
		*reason, err = v.word()
		return err
	}},
}

func (c *call) drain() error {
	reason := "drained by " + c.by.User
	ask, err := read(c, drainBody, &reason)
	if err != nil {
		return err
	}
	if err := c.Drain(c.r.Context(), ask, c.r.PathValue("name"), c.r.PathValue("node"), reason); err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

func (c *call) resume() error {
	ask, err := c.ask()
	if err != nil {
		return err
	}
	if err := c.Resume(c.r.Context(), ask, c.r.PathValue("name"), c.r.PathValue("node")); err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// taskBody is what can be run. What is right beyond its form, site.Task.Check
// knows.
var taskBody = body[site.Task]{
	{"key", "Of two tasks with the same key only one is run.", text("step-1"), func(t *site.Task, v value) (err error) {
		t.Key, err = v.word()
		return err
	}},
	{"name", "For people.", text("solver"), func(t *site.Task, v value) (err error) {
		t.Name, err = v.word()
		return err
	}},
	{"command", "The program and its arguments; no shell reads them.", listOf(text("hostname")), func(t *site.Task, v value) (err error) {
		t.Command, err = v.texts()
		return err
	}},
	{"script", "Or a batch script, which begins with #!.", text("#!/bin/sh\nhostname\n"), func(t *site.Task, v value) (err error) {
		t.Script, err = v.text()
		return err
	}},
	{"args", "Arguments of the script.", listOf(text("")), func(t *site.Task, v value) (err error) {
		t.Args, err = v.texts()
		return err
	}},
	{"dir", "The folder to run it in.", text("/home/alice"), func(t *site.Task, v value) (err error) {
		t.Dir, err = v.text()
		return err
	}},
	{"env", "Its environment, NAME=value.", listOf(text("LANG=C")), func(t *site.Task, v value) (err error) {
		t.Env, err = v.texts()
		return err
	}},
	{"output", "A file for its output.", text("out.txt"), func(t *site.Task, v value) (err error) {
		t.Output, err = v.text()
		return err
	}},
	{"error_output", "A file for its messages.", text("err.txt"), func(t *site.Task, v value) (err error) {
		t.ErrorOutput, err = v.text()
		return err
	}},
	{"array", "Indices, if it is to be run once for each.", text("1-10"), func(t *site.Task, v value) (err error) {
		t.Array, err = v.peSet()
		return err
	}},
	{"limit", "How long it may take; until the end of the reservation if it is not given.", duration(), func(t *site.Task, v value) (err error) {
		t.Limit, err = v.length(0)
		return err
	}},
	{"nodes", "On how many nodes.", whole(0, berth.MaxPEs), func(t *site.Task, v value) error {
		n, err := v.whole(0, berth.MaxPEs)
		t.Nodes = berth.Count(n)
		return err
	}},
	{"cores", "Cores of each of its processes.", whole(0, berth.MaxPEs), func(t *site.Task, v value) error {
		n, err := v.whole(0, berth.MaxPEs)
		t.Cores = berth.Count(n)
		return err
	}},
	{"memory_mb", "Memory in 10^6 bytes.", whole(0, berth.MaxMegabytes-1), func(t *site.Task, v value) (err error) {
		t.MemoryMB, err = v.whole(0, berth.MaxMegabytes-1)
		return err
	}},
}

func (c *call) run() error {
	var task site.Task
	ask, err := read(c, taskBody, &task)
	if err != nil {
		return err
	}
	if n := int(task.Array.Count()); n > 1 {
		c.rates.charge(c.asker(), n-1) // each index is a task
	}
	job, err := c.Run(c.r.Context(), ask, c.r.PathValue("id"), task)
	if err != nil {
		return err
	}
	return c.answer(http.StatusCreated, form.Job{Job: string(job)})
}

func (c *call) acceptClock() error {
	ask, err := c.ask()
	if err == nil {
		err = c.AcceptClock(c.r.Context(), ask)
	}
	if err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

func (c *call) health() error {
	return c.answer(http.StatusOK, form.Health{Status: "ok", Time: form.TimeOf(c.Now())})
}

func (c *call) describe() error {
	h := c.w.Header()
	h.Set("Content-Type", "application/json")
	text := c.openapi()
	h.Set("Content-Length", fmt.Sprint(len(text)))
	_, _ = c.w.Write(text) // who has gone need not be told
	return nil
}

package slurmtest

import (
	"os"
	"regexp"
	"time"
)

// KillControllerSaved kills slurmctld when it has saved a job of that name and every start of a job. One that is saved as waiting and
// has started is started again, which nothing but the log of slurmctld tells.
func (c *Cluster) KillControllerSaved(job string) {
	c.t.Helper()
	if !c.eventuallyWithin(time.Minute, func() bool {
		if !c.SavedJob(job) {
			return false
		}
		p := c.daemons["slurmctld"].Process
		if !suspend(p) {
			return false
		}
		if !c.savedStarts() {
			resume(p)
			return false
		}
		c.KillController()
		return true
	}) {
		c.t.Fatalf("slurm: in a minute slurmctld did not save %s and all starts", job)
	}
}

// startLogged is a line of slurmctld's log that tells of a start.
var startLogged = regexp.MustCompile(`(?m)^\[(\S+)\] .*(?:Allocate|Started) JobId=`)

// savedStarts reports whether what slurmctld has on its disk of jobs was written well after the last start.
func (c *Cluster) savedStarts() bool {
	const well = 250 * time.Millisecond // it takes what it writes before that
	starts := startLogged.FindAllStringSubmatch(c.Log(), -1)
	if len(starts) == 0 {
		return true
	}
	at, err := time.ParseInLocation("2006-01-02T15:04:05.999", starts[len(starts)-1][1], time.Local)
	saved, statErr := os.Stat(c.path("state/job_state"))
	return err == nil && statErr == nil && saved.ModTime().Sub(at) > well
}

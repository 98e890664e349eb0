package sim

import (
	"cmp"
	"slices"
	"strings"

	"github.com/berth-hpc/berth"
)

// poolsOf returns pools by site and pool; a site of one pool is there without the
// pool's name too.
func poolsOf(sites []berth.Site) map[[2]string]*berth.Pool {
	all := map[[2]string]*berth.Pool{}
	for _, site := range sites {
		for i := range site.Pools {
			pool := &site.Pools[i]
			all[[2]string{site.Name, ""}], all[[2]string{site.Name, pool.Name}] = pool, pool
		}
	}
	return all
}

// failing reports whether there is any outage.
func failing(work *Workload) bool {
	for range outagesOf(work) {
		return true
	}
	return false
}

// parts returns how many parts request i has.
func (w *Workload) parts(i int) int {
	if w.Plain != nil {
		return 1
	}
	return len(w.Requests[i].Parts)
}

// WantedRuns returns for each line of a schedule how long what it is about
// would have held its PEs had nothing cut it short, 0 if as long as it was given;
// nil if nothing could come between at all. What it waits there for its data
// counts. Of a job that was stopped it is the last piece; the others are bookings
// behind the requests. The lines are those that Replay returned for the workload
// on these sites. Cost: O(n) for n lines.
func WantedRuns(work *Workload, sites []berth.Site, lines []berth.Line) []berth.Duration {
	if work.Runs == nil && !failing(work) {
		return nil
	}
	wanted := make([]berth.Duration, len(lines))
	if work.Runs == nil {
		return wanted
	}
	pools := poolsOf(sites)
	at := func(line *berth.Line) berth.Speed {
		if pool := pools[[2]string{line.Site, line.Pool}]; pool != nil {
			return pool.SpeedFor(&line.Wants().Requirements)
		}
		return berth.StandardSpeed
	}
	first, done := 0, map[string]berth.Duration{}
	data := map[string]berth.Time{} // by request: when they are there
	waits := func(line *berth.Line) berth.Duration {
		if arrival, has := data[line.ID]; has && line.Start != nil {
			return max(0, arrival.Sub(*line.Start))
		}
		return 0
	}
	for i := range lines {
		line := &lines[i]
		if line.Kind == berth.KindStaging {
			arrival, several := data[line.ID]
			if data[line.ID] = *line.End; several {
				data[line.ID] = max(arrival, *line.End)
			}
		}
		if cut := strings.LastIndexByte(line.ID, '/'); cut >= 0 && line.Kind == berth.KindBooking {
			done[line.ID[:cut]] += at(line).Work(cmp.Or(line.ActualEnd, line.End).Sub(*line.Start))
		}
	}
	for i := range work.Runs {
		parts := lines[first : first+work.parts(i)]
		if work.Runs[i] == 0 {
			first += len(parts)
			continue
		}
		if len(parts) == 1 {
			wanted[first] = at(&parts[0]).Scale(work.Runs[i]-done[parts[0].ID]) + waits(&parts[0])
			first++
			continue
		}
		longest := slices.MaxFunc(parts, func(a, b berth.Line) int { return cmp.Compare(a.Duration, b.Duration) }).Duration
		for p := range parts {
			wanted[first+p] = at(&parts[p]).Scale(work.Runs[i]) + waits(&parts[p])
			if wanted[first+p] <= longest { // a shorter part is done when its own time is over
				wanted[first+p] = min(wanted[first+p], parts[p].Duration)
			}
		}
		first += len(parts)
	}
	return wanted
}

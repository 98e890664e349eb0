package sim

import (
	"cmp"
	"iter"
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
// behind the requests. The lines are those of the workload on these sites, which are gone
// through twice. Cost: O(n) for n lines.
func WantedRuns(work *Workload, sites []berth.Site, lines iter.Seq[*berth.Line]) []berth.Duration {
	if work.Runs == nil && !failing(work) {
		return nil
	}
	w := wants{pools: poolsOf(sites), done: map[string]berth.Duration{}, data: map[string]berth.Time{}}
	for line := range lines {
		w.n++
		w.note(line)
	}
	wanted := make([]berth.Duration, w.n)
	if work.Runs == nil {
		return wanted
	}
	request, i := 0, 0
	var given []berth.Duration // of the parts of that request so far
	for line := range lines {
		if request == len(work.Runs) {
			break
		}
		given = append(given, line.Duration)
		switch run, parts := work.Runs[request], work.parts(request); {
		case run == 0:
		case parts == 1:
			wanted[i] = w.speed(line).Scale(run-w.done[line.ID]) + w.waits(line)
		default:
			wanted[i] = w.speed(line).Scale(run) + w.waits(line)
			if len(given) == parts {
				cutShorter(wanted[i+1-parts:i+1], given)
			}
		}
		if i++; len(given) == work.parts(request) {
			request, given = request+1, given[:0]
		}
	}
	return wanted
}

// cutShorter lets the parts of a request that are shorter than the longest one be done
// when their own time is over.
func cutShorter(wanted, given []berth.Duration) {
	longest := slices.Max(given)
	for p := range wanted {
		if wanted[p] <= longest {
			wanted[p] = min(wanted[p], given[p])
		}
	}
}

// wants is what WantedRuns has to know of all lines.
type wants struct {
	n     int // lines
	pools map[[2]string]*berth.Pool
	done  map[string]berth.Duration // by job: what it ran before it was stopped, in standard seconds
	data  map[string]berth.Time     // by request: when its data are there
}

// note takes in a line.
func (w *wants) note(line *berth.Line) {
	switch line.Kind {
	case berth.KindStaging:
		if arrival, several := w.data[line.ID]; !several || *line.End > arrival {
			w.data[line.ID] = *line.End
		}
	case berth.KindBooking:
		if cut := strings.LastIndexByte(line.ID, '/'); cut >= 0 {
			w.done[line.ID[:cut]] += w.speed(line).Work(cmp.Or(line.ActualEnd, line.End).Sub(*line.Start))
		}
	}
}

// speed returns the speed at which the pool of a line serves it.
func (w *wants) speed(line *berth.Line) berth.Speed {
	if pool := w.pools[[2]string{line.Site, line.Pool}]; pool != nil {
		return pool.SpeedFor(&line.Wants().Requirements)
	}
	return berth.StandardSpeed
}

// waits returns how long the PEs of a line are held before its data are there.
func (w *wants) waits(line *berth.Line) berth.Duration {
	if arrival, has := w.data[line.ID]; has && line.Start != nil {
		return max(0, arrival.Sub(*line.Start))
	}
	return 0
}

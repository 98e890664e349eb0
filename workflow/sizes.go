package workflow

import (
	"math"
	"sort"

	"github.com/berth-hpc/berth"
)

// sizes bounds the numbers of PEs that a task runs on. On more than it can use
// a task takes as long as on the most of its numbers that are not more; fewer
// than the fewest are never given to it.
type sizes struct {
	few, most berth.Count
	measured  []Measurement // the first has few PEs and the last has most
}

// sizes returns the bounds of a task, nil if it has none.
func (t *Task) sizes() *sizes {
	switch {
	case len(t.Measured) > 0:
		return &sizes{t.Measured[0].NPE, t.Measured[len(t.Measured)-1].NPE, t.Measured}
	case t.Few > 1 || t.Most > 0:
		s := &sizes{few: max(t.Few, 1), most: t.Most}
		if s.most == 0 {
			s.most = berth.MaxPEs
		}
		return s
	default:
		return nil
	}
}

// Fewest returns the fewest PEs that the task runs on, at least 1.
func (t Task) Fewest() berth.Count {
	c := t.curve()
	return c.few()
}

// checkSizes finds contradictions in bounds and measurements.
func (t *Task) checkSizes() error {
	if t.Few < 0 || t.Few > berth.MaxPEs || t.Most < 0 || t.Most > berth.MaxPEs || t.Most > 0 && t.Most < t.Few {
		return berth.Errorf(berth.Invalid, "pes", "task %q runs on %d to %d PEs; want 1 to %d, the fewest first", t.ID, t.Few, t.Most, berth.MaxPEs)
	}
	for k, m := range t.Measured {
		switch {
		case m.NPE < 1 || m.NPE > berth.MaxPEs:
			return berth.Errorf(berth.Invalid, "measured", "task %q was measured on %d PEs; want 1 to %d", t.ID, m.NPE, berth.MaxPEs)
		case !(m.Seconds >= 0) || m.Seconds >= berth.TimeLimit:
			return berth.Errorf(berth.Invalid, "measured", "task %q took %v s on %d PEs; want 0 or more, and less than 2^42", t.ID, m.Seconds, m.NPE)
		case k > 0 && (m.NPE <= t.Measured[k-1].NPE || m.Seconds >= t.Measured[k-1].Seconds):
			return berth.Errorf(berth.Invalid, "measured", "task %q took %v s on %d PEs after %v s on %d; want more PEs and less time in each measurement",
				t.ID, m.Seconds, m.NPE, t.Measured[k-1].Seconds, t.Measured[k-1].NPE)
		}
	}
	return nil
}

// few returns the fewest PEs that the task runs on.
func (c *curve) few() berth.Count {
	if c.sizes == nil {
		return 1
	}
	return c.sizes.few
}

// most returns the most PEs that the task can use.
func (c *curve) most() berth.Count {
	if c.sizes == nil {
		return berth.MaxPEs
	}
	return c.sizes.most
}

// next returns the next number of PEs above m that may be faster.
func (c *curve) next(m berth.Count) berth.Count {
	if c.sizes == nil || c.sizes.measured == nil {
		return m + 1
	}
	if k := c.sizes.at(m) + 1; k < len(c.sizes.measured) {
		return c.sizes.measured[k].NPE
	}
	return m + 1
}

// at returns the index of the last measurement on at most m PEs, or 0.
func (s *sizes) at(m berth.Count) int {
	return max(0, sort.Search(len(s.measured), func(k int) bool { return s.measured[k].NPE > m })-1)
}

// time is curve.time within the bounds.
func (s *sizes) time(c *curve, m berth.Count) float64 {
	if s.measured != nil {
		return s.measured[s.at(m)].Seconds
	}
	return c.amdahl(min(max(m, s.few), s.most))
}

// least is curve.least within the bounds, where limit PEs are known to be
// enough.
func (s *sizes) least(c *curve, d berth.Duration, limit berth.Count) berth.Count {
	if s.measured != nil {
		k := sort.Search(s.at(limit), func(k int) bool { return c.duration(s.measured[k].NPE) <= d })
		return s.measured[k].NPE
	}
	free := curve{total: c.total, serial: c.serial, parallel: c.parallel}
	n, _ := free.least(d, min(limit, s.most))
	return max(n, s.few)
}

// thrift is curve.thrift within the bounds: the fall of the time over the
// PE-seconds that the task takes more, with the same twentieth of its time on
// top. Where more PEs even save PE-seconds, which measurements may say, the
// twentieth alone counts.
func (s *sizes) thrift(c *curve, m, more berth.Count) float64 {
	fall := s.time(c, m) - s.time(c, more)
	if !(fall > 0) {
		return 0
	}
	area := float64(float64(more)*s.time(c, more)) - float64(float64(m)*s.time(c, m))
	one := float64(float64(s.few) * s.time(c, s.few)) // about its time on one PE
	return fall / (math.Max(0, area) + float64(float64(one/20)*float64(more-m)))
}

package api

import (
	"net/http"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/service"
)

const (
	defaultLatest = 20
	maxLatest     = 1000
)

var shadowParams = []param{{"latest", "How many of the latest jobs at most; 20 by default.", whole(0, maxLatest)}}

// shadow tells how a site that is only watched compares.
func (c *call) shadow() error {
	query, err := c.query(shadowParams)
	if err != nil {
		return err
	}
	most := int64(defaultLatest)
	if text, given := query["latest"]; given {
		if most, err = value(text).whole(0, maxLatest); err != nil {
			return berth.Errorf(berth.Invalid, "latest", "%v", err)
		}
	}
	s, err := c.Score(c.r.Context(), c.by, c.r.PathValue("name"), int(most))
	if err != nil {
		return err
	}
	f := shadowView(&s)
	return c.answer(http.StatusOK, &f)
}

func shadowView(s *service.Score) form.Shadow {
	f := form.Shadow{
		Site: s.Site, Since: form.TimeOf(s.Since), Reachable: s.Reachable, Trouble: s.Trouble, Seen: form.TimeOf(s.Looked), Tolerance: s.Tolerance,
		Jobs: form.ShadowCounts{
			Seen: s.Seen, LeftOut: byName(s.LeftOut), Asked: s.Asked, Partial: s.Partial, Promised: s.Promised, Refused: byName(s.Refused),
			Moved: s.Moved, Broken: s.Broken, Open: s.Open, Overdue: s.Overdue, Cancelled: s.Cancelled, Vanished: s.Vanished,
			Ended: s.Ended, BeforeLimit: s.BeforeLimit, Compared: s.Compared, Earlier: s.Earlier, Same: s.Same, Later: s.Later,
		},
		PromisedWait: form.Spread(s.PromisedWaits), ActualWait: form.Spread(s.ActualWaits),
	}
	for i := range s.Jobs {
		j := &s.Jobs[i]
		f.Latest = append(f.Latest, form.ShadowJob{
			Job: string(j.Job), User: j.User, Partition: j.Partition, NPE: j.NPE, Limit: j.Limit, Phase: string(j.Phase), LeftOut: string(j.Left),
			Asked: form.TimeOf(j.Asked), Ready: form.TimeOf(j.Ready), Promised: form.TimeOf(j.Promised), Refusal: string(j.Refusal),
			Start: form.TimeOf(j.Start), End: form.TimeOf(j.End), Ending: string(j.Ending), Moved: j.Moved, Broken: j.Broken,
		})
	}
	return f
}

// byName counts by names that are plain texts.
func byName[T ~string](counts map[T]int) map[string]int {
	names := make(map[string]int, len(counts))
	for name, n := range counts {
		names[string(name)] = n
	}
	return names
}

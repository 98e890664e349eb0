package api

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/service"
)

const (
	defaultSpans = 1000
	maxSpans     = 10_000
	// defaultSight is how far ahead one looks who does not say: a week.
	defaultSight berth.Duration = 7 * 86_400
)

var occupationParams = []param{
	{"from", "The beginning of what is looked at; now if it is not given.", instant()},
	{"to", "Its end; a week later if it is not given.", instant()},
	{"limit", "How many at most; 1,000 by default.", whole(1, maxSpans)},
	{"cursor", "The next of the page before.", text("")},
}

// view is what of a site's occupation is looked at.
type view struct {
	from, to berth.Time
	after    service.Mark
	limit    int
}

func readView(query map[string]string, now berth.Time) (view, error) {
	var wrong faults
	v := view{from: now, limit: defaultSpans, after: service.Mark{Start: -1}}
	var err error
	if text, given := query["from"]; given {
		v.from, err = parseInstant(text, down)
		wrong.add("from", err)
	}
	v.to = v.from.Add(defaultSight)
	if text, given := query["to"]; given {
		v.to, err = parseInstant(text, down)
		wrong.add("to", err)
	}
	if len(wrong) == 0 && v.from >= v.to {
		wrong.add("to", errors.New("not after from; want a later time"))
	}
	if text, given := query["limit"]; given {
		if v.limit, err = strconv.Atoi(text); err != nil || v.limit < 1 || v.limit > maxSpans {
			wrong.add("limit", fmt.Errorf("%.40q; want 1 to %d", text, maxSpans))
		}
	}
	if text, given := query["cursor"]; given {
		data, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil || json.Unmarshal(data, &v.after) != nil {
			wrong.add("cursor", fmt.Errorf("%.40q; want the next of the page before", text))
		}
	}
	return v, wrong.err()
}

func (c *call) occupation() error {
	query, err := c.query(occupationParams)
	if err != nil {
		return err
	}
	v, err := readView(query, c.Now())
	if err != nil {
		return err
	}
	list, err := c.Occupation(c.r.Context(), c.by, c.r.PathValue("name"), v.from, v.to, v.after, v.limit+1)
	if err != nil {
		return err
	}
	f := form.Occupation{Spans: make([]form.Span, 0, min(len(list), v.limit))}
	if len(list) > v.limit {
		list = list[:v.limit]
		mark, err := json.Marshal(list[v.limit-1].Mark)
		if err != nil {
			return err
		}
		f.Next = base64.RawURLEncoding.EncodeToString(mark)
	}
	for i := range list {
		f.Spans = append(f.Spans, spanForm(&list[i]))
	}
	return c.answer(http.StatusOK, &f)
}

// spanForm is the form of what holds PEs.
func spanForm(s *service.Span) form.Span {
	f := form.Span{
		Kind: s.Kind, Pool: s.Resource.Name, Start: form.TimeOf(s.Start), NPE: s.NPE, PEs: s.PEs,
		State: string(s.State), ID: s.ID, User: s.User, Name: s.Name, Seen: form.TimeOf(s.Seen), Number: s.Mark.InPictures(),
	}
	if s.End < berth.Forever {
		f.End = form.TimeOf(s.End)
	}
	return f
}

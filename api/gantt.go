package api

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/service"
)

const (
	// maxBars is how many bars an answer has; of more there are cells.
	maxBars = 50_000
	// maxWidth and maxHeight are how many buckets of time and groups of PEs there are: more
	// than a screen has pixels.
	maxWidth, maxHeight = 2048, 1024
	// maxSight is the longest window. A start has 32 bits.
	maxSight berth.Duration = 10 * 366 * 86_400
)

var poolParams = []param{
	{"site", "The site.", text("cm5")},
	{"pool", "The pool; needed only if the site has several.", text("batch")},
}

var ganttParams = append(append(poolParams[:2:2], filterParams...), []param{
	{"from", "The beginning of the window; two hours ago if it is not given.", instant()},
	{"to", "Its end; a day after the beginning if it is not given.", instant()},
	{"most", "How many bars at most; of more there are cells. 50,000 by default.", whole(0, maxBars)},
	{"lo", "The first PE; 0 by default.", whole(0, berth.MaxPEs-1)},
	{"hi", "The PE behind the last; the size of the pool by default.", whole(1, berth.MaxPEs)},
}...)

// plan selects a part of a picture.
type plan struct {
	id       berth.ResourceID
	from, to berth.Time
	most     int
	lo, hi   int64 // hi is 0 for the size of the pool
	filter   barFilter
}

// poolOf returns the pool that a query names. Where a site has one it need not be named.
func (c *call) poolOf(query map[string]string) (berth.ResourceID, error) {
	id := berth.PoolID(query["site"], query["pool"])
	if id.Site == "" {
		return id, berth.Errorf(berth.Invalid, "site", "not given; want the name of a site, as /v1/sites has it")
	}
	if _, named := query["pool"]; named {
		return id, nil
	}
	views, err := c.Sites(c.r.Context(), c.by)
	if err != nil {
		return id, err
	}
	for i := range views {
		if views[i].Name != id.Site {
			continue
		}
		if len(views[i].Pools) == 1 {
			return berth.PoolID(id.Site, views[i].Pools[0].Name), nil
		}
		names := make([]string, len(views[i].Pools))
		for j := range names {
			names[j] = views[i].Pools[j].Name
		}
		return id, berth.Errorf(berth.Invalid, "pool", "not given; %s has %s", id.Site, strings.Join(names, ", "))
	}
	return id, berth.Errorf(berth.NotFound, "site", "no site %q", id.Site)
}

func readPlan(query map[string]string, now berth.Time) (plan, error) {
	var wrong faults
	p := plan{from: now.Add(-2 * 3600), most: maxBars}
	var err error
	if text, given := query["from"]; given {
		p.from, err = parseInstant(text, down)
		wrong.add("from", err)
	}
	p.to = p.from.Add(86_400)
	if text, given := query["to"]; given {
		p.to, err = parseInstant(text, up)
		wrong.add("to", err)
	}
	switch {
	case len(wrong) > 0:
	case p.from >= p.to:
		wrong.add("to", errors.New("not after from; want a later time"))
	case p.to.Sub(p.from) > maxSight:
		wrong.add("to", errors.New("more than ten years after from; want an earlier time"))
	}
	number := func(name string, least, most int64, to *int64) {
		text, given := query[name]
		if !given {
			return
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < least || n > most {
			wrong.add(name, fmt.Errorf("%.40q; want %d to %d", text, least, most))
			return
		}
		*to = n
	}
	most := int64(p.most)
	number("most", 0, maxBars, &most)
	number("lo", 0, berth.MaxPEs-1, &p.lo)
	number("hi", 1, berth.MaxPEs, &p.hi)
	p.most = int(most)
	p.filter = readBarFilter(query, &wrong)
	if p.hi != 0 && p.lo >= p.hi {
		wrong.add("hi", fmt.Errorf("%d is not behind lo, %d; want a larger number", p.hi, p.lo))
	}
	return p, wrong.err()
}

// gantt answers with the picture of a pool in its written form.
func (c *call) gantt() error {
	query, err := c.query(ganttParams)
	if err != nil {
		return err
	}
	if c.r.URL.Query().Get("from") == "" {
		c.w.Header().Set("Cache-Control", "no-store") // the window moves with the time
	}
	p, err := readPlan(query, c.Now())
	if err != nil {
		return err
	}
	if p.id, err = c.poolOf(query); err != nil {
		return err
	}
	generation, err := c.GanttGeneration(c.by, p.id)
	if err != nil {
		return err
	}
	var rows service.PoolRows
	if p.filter.name != "" {
		if rows, err = c.Rows(c.r.Context(), c.by, p.id); err != nil {
			return err
		}
	}
	sieve := newSieve(p.filter, p.id, rows.Rows)
	if sieve.named {
		if sieve.numbers, err = c.Named(c.r.Context(), c.by, p.id, p.filter.name); err != nil {
			return err
		}
	}
	if _, fixed := query["from"]; fixed {
		tag := c.ganttTag(&p, &sieve, generation)
		h := c.w.Header()
		h.Set("Cache-Control", "private, no-cache")
		h.Set("Vary", "Authorization, Cookie, Accept-Encoding")
		h.Set("ETag", tag)
		if c.r.Header.Get("If-None-Match") == tag {
			c.w.WriteHeader(http.StatusNotModified)
			return nil
		}
	}
	picture, err := c.Gantt(c.r.Context(), c.by, p.id)
	if err != nil {
		return err
	}
	if picture.Generation != generation {
		c.w.Header().Del("ETag") // it changed meanwhile
	}
	about := subject{id: p.id, most: p.most, filter: p.filter}
	if about.canvas, err = newCanvas(&p, picture.PEs); err != nil {
		return err
	}
	if picture.Yours || len(sieve.numbers) > 0 { // which others may not see by name
		about.user = c.by.User
	}
	data, packed, err := c.gallery.answer(&about, &sieve, &picture, takesGzip(c.r))
	if err != nil {
		return err
	}
	return c.sendAs(http.StatusOK, form.GanttType, data, packed)
}

// ganttTag names one answer: principal, window, generation and start
// of the program, since a start may have another configuration.
func (c *call) ganttTag(p *plan, s *sieve, generation uint64) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%s\x00%d\x00%d %d %d %d %d\x00%s\x00%d\x00%q\x00%s\x00%d",
		c.boot, c.by.User, p.id.Site, p.id.Name, generation, p.from, p.to, p.most, p.lo, p.hi, s.owner, s.states, s.name, s.stripes, s.numbers))
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
}

// rows answers with what the rows of a picture stand for.
func (c *call) rows() error {
	query, err := c.query(poolParams)
	if err != nil {
		return err
	}
	id, err := c.poolOf(query)
	if err != nil {
		return err
	}
	r, err := c.Rows(c.r.Context(), c.by, id)
	if err != nil {
		return err
	}
	f := form.Rows{Site: id.Site, Pool: id.Name, PEs: r.PEs, Binding: string(r.Binding), Rows: make([]form.Row, len(r.Rows))}
	for i, row := range r.Rows {
		f.Rows[i] = form.Row{Name: row.Name, First: row.First, PEs: row.PEs}
	}
	return c.answer(http.StatusOK, &f)
}

var namedParams = append(poolParams[:2:2], param{"name", "A part of the name of a user or of a reservation, or of an id.", text("alice")})

// named answers with the numbers of bars whose owner or name has a text.
func (c *call) named() error {
	query, err := c.query(namedParams)
	if err != nil {
		return err
	}
	name := strings.TrimSpace(query["name"])
	if name == "" || len(name) > maxFilterName {
		return berth.Errorf(berth.Invalid, "name", "%d bytes; want 1 to %d", len(name), maxFilterName)
	}
	id, err := c.poolOf(query)
	if err != nil {
		return err
	}
	numbers, err := c.Named(c.r.Context(), c.by, id, name)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, &form.Named{Numbers: numbers})
}

// spans answers with what a number of a picture stands for.
func (c *call) spans() error {
	text := c.r.PathValue("number")
	number, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return berth.Errorf(berth.Invalid, "number", "%.40q; want the number of a bar of /v1/gantt", text)
	}
	list, err := c.Spans(c.r.Context(), c.by, c.r.PathValue("name"), uint32(number))
	if err != nil {
		return err
	}
	f := form.Occupation{Spans: make([]form.Span, len(list))}
	for i := range list {
		f.Spans[i] = spanForm(&list[i])
	}
	return c.answer(http.StatusOK, &f)
}

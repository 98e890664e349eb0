package workload

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/berth-hpc/berth"
)

// requestLine is a line of a schedule file without the decision.
type requestLine struct {
	ID       string          `json:"id"`
	Kind     berth.Kind      `json:"kind"`
	User     string          `json:"user,omitempty"`
	Part     int             `json:"part,omitempty"`
	Arrival  berth.Time      `json:"arrival"`
	Ready    berth.Time      `json:"ready"`
	Deadline *berth.Time     `json:"deadline,omitempty"` // nil for a job without one
	Duration berth.Duration  `json:"duration,omitempty"`
	NPE      berth.Count     `json:"npe,omitempty"`
	Variants []berth.Variant `json:"variants,omitempty"`
	*berth.Wanted
}

// WriteJSONL writes requests and jobs as JSON Lines, one line per part, in the
// form that ReadJSONL reads back equal if the ids are unique and the arrivals in
// order.
//
// A request that is not valid, a text in it that is not printable UTF-8, or a job
// whose deadline is 0, which would read as none, is an *berth.Error with code
// Invalid; what was written until then stays written. Failures of w are wrapped.
// Cost: O(parts).
func WriteJSONL(w io.Writer, requests []berth.Request) error {
	out := bufio.NewWriterSize(w, bufferSize)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for i := range requests {
		r := &requests[i]
		if err := writable(r); err != nil {
			return err
		}
		for p := range r.Parts {
			line := requestLine{
				ID: r.ID, Kind: berth.KindRequest, User: r.User,
				Arrival: r.Arrival, Ready: r.Ready, Deadline: &r.Deadline,
				Wanted: berth.WantedOf(r, p),
			}
			if r.IsJob() {
				line.Kind = berth.KindJob
				if r.Deadline == berth.Forever {
					line.Deadline = nil
				}
			}
			if len(r.Parts) > 1 {
				line.Part = p + 1
			}
			if variants := r.Parts[p].Variants; len(variants) > 1 {
				line.Variants = variants
			} else {
				line.Duration, line.NPE = variants[0].Duration, variants[0].NPE
			}
			if err := enc.Encode(&line); err != nil {
				return fmt.Errorf("write workload: %w", err)
			}
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write workload: %w", err)
	}
	return nil
}

func writable(r *berth.Request) error {
	if err := r.Validate(); err != nil {
		bad := badRequest(err)
		return berth.Errorf(berth.Invalid, bad.Field, "request %s: %s", strconv.Quote(r.ID), bad.Want)
	}
	for _, name := range namesOf(r) {
		if err := writableText(name.field, name.text); err != nil {
			return err
		}
	}
	for _, site := range r.Sites {
		if err := writableText("want_sites", site); err != nil {
			return err
		}
	}
	for i := range r.Parts {
		for _, pools := range [][]berth.PoolPEs{r.Parts[i].Only, r.Parts[i].Never} {
			for k := range pools {
				id := &pools[k].Resource
				if err := cmp.Or(writableText("site", id.Site), writableText("pool", id.Name)); err != nil {
					return err
				}
			}
		}
	}
	if r.IsJob() && r.Deadline == 0 {
		return berth.Errorf(berth.Invalid, "deadline", "job %s: 0 would read as none", strconv.Quote(r.ID))
	}
	return nil
}

// writableText returns an error for a text that would not be read back.
func writableText(field, text string) error {
	if hasControl(text) || !utf8.ValidString(text) {
		return berth.Errorf(berth.Invalid, field, "%s: not printable UTF-8", strconv.Quote(text))
	}
	return nil
}

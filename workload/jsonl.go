package workload

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
)

// jsonlReader collects requests and ordinary jobs. A line is an object of the
// fields of berth.Line, and of run: how many seconds it really runs, and of array:
// a number of equal requests, independent of each other, whose ids are that of the
// line, an underscore and a number from 1 (Tang and Liao's bag of tasks). A job's
// line may do without ready, which is its arrival, and without deadline; 0 is
// none there. What is bad about a line:
//
//   - it is no JSON object in UTF-8, names a field twice or one that berth.Line
//     does not have (a misspelt field would lose data), or gives a field a value
//     of another type; numbers are integers without point or exponent; null
//     stands for an absent field;
//   - its kind is none of berth's kinds; those other than request and job are
//     skipped;
//   - id, arrival, ready or deadline is missing, or there are neither variants
//     nor both duration and npe (where there are variants, duration and npe
//     belong to the decision);
//   - an array below 1 or above 100,000, or of a part, or one with which the
//     arrays of a file come to more than a million parts;
//   - a run below 1, or one of a moldable request, whose variants would each run
//     for another time;
//   - berth.Request.Validate says no, or a text among its fields holds a control
//     character;
//   - its id is taken: lines may share an id only as parts, numbered by part
//     from 1, with the same arrival, ready time, deadline, run, user
//     and requirements (software to partition, want_site, want_pool, want_sites). A request
//     that lacks a part, or has a bad line, is bad as a whole, for
//     it would be another request without it.
//
// The decision (site, pool, accepted, reason, start, end, pes, and what came of
// it: promised_start, promised_end, actual_end, limit, transfer, extended,
// moved_from, replanned_from, stretches, kilobytes) and the labels workflow and task are read
// over.
type jsonlReader struct {
	*Workload
	strict  bool
	byID    map[string]int         // index in Requests
	lineOf  []int                  // of each request's first line
	parts   map[int][]numberedPart // by index in Requests; of lines that give a part
	damaged map[string]int         // id to a bad line that gave a part of it
	runs    map[string]berth.Duration
	arrays  int64 // parts of arrays so far
}

// numberedPart is a part of a request and where it came from.
type numberedPart struct {
	number int
	line   int
	part   berth.Part
}

// readJSONL reads requests and jobs. Bad lines are skipped, counted and the first few
// kept, or in strict mode the first one is the error; the requests are sorted
// stably by arrival. A file without a usable request is an error. Reports count
// lines, so a request of two parts counts twice. Cost: O(bytes + r log r) for r
// requests.
func readJSONL(l *lines, opt Options) (*Workload, error) {
	r := &jsonlReader{
		Workload: &Workload{Form: JSONL, Report: Report{Name: l.name}},
		strict:   opt.Strict,
		byID:     make(map[string]int),
		parts:    make(map[int][]numberedPart),
		damaged:  make(map[string]int),
		runs:     make(map[string]berth.Duration),
	}
	if err := l.each(&r.Report, opt.Strict, "request", func(line []byte) (Cause, BadLine) { return r.line(line, l.number) }); err != nil {
		return nil, err
	}
	if err := r.assemble(); err != nil {
		return nil, err
	}
	r.Report.Usable = r.Report.Records - r.Report.SkippedTotal() - r.Report.Bad
	if len(r.Requests) == 0 {
		return nil, r.Report.noneUsable()
	}
	slices.SortStableFunc(r.Requests, func(a, b berth.Request) int { return cmp.Compare(a.Arrival, b.Arrival) })
	if opt.Jobs > 0 && opt.Jobs < len(r.Requests) {
		r.Requests = r.Requests[:opt.Jobs:opt.Jobs]
	}
	if len(r.runs) > 0 {
		r.Runs = make([]berth.Duration, len(r.Requests))
		for i := range r.Requests {
			r.Runs[i] = r.runs[r.Requests[i].ID]
		}
	}
	return r.Workload, nil
}

// line takes in one line.
func (r *jsonlReader) line(text []byte, number int) (Cause, BadLine) {
	var got jsonLine
	bad := got.parse(text)
	if bad.Want == "" {
		if got.kind != berth.KindRequest && got.kind != berth.KindJob {
			return NotARequest, BadLine{}
		}
		bad = r.add(&got, number)
	}
	switch {
	case bad.Want == "" && got.precedence:
		r.Report.PrecedenceDropped++
	case bad.Want != "" && got.part > 0 && got.id != "":
		r.damaged[got.id] = number
	}
	return "", bad
}

// add makes a request of a well-formed line, or a further part of one.
func (r *jsonlReader) add(got *jsonLine, number int) BadLine {
	request, bad := got.request()
	if bad.Want != "" {
		return bad
	}
	if got.array > 0 {
		return r.addArray(&request, got, number)
	}
	at, taken := r.byID[request.ID]
	if !taken {
		at = len(r.Requests)
		r.byID[request.ID] = at
		r.Requests = append(r.Requests, request)
		r.lineOf = append(r.lineOf, number)
		if got.part > 0 {
			r.parts[at] = []numberedPart{{got.part, number, request.Parts[0]}}
		}
		if got.run > 0 {
			r.runs[request.ID] = berth.Duration(got.run)
		}
		return BadLine{}
	}
	first, siblings := &r.Requests[at], r.parts[at]
	if got.part == 0 || len(siblings) == 0 || request.IsJob() || first.IsJob() {
		return BadLine{
			Field: "id", Value: request.ID,
			Want: "line " + strconv.Itoa(r.lineOf[at]) + " has it already; only the parts of one request share an id, each with its part number",
		}
	}
	for _, s := range siblings {
		if s.number == got.part {
			return BadLine{
				Field: "part", Value: strconv.Itoa(got.part),
				Want: "line " + strconv.Itoa(s.line) + " is this part of " + strconv.Quote(request.ID) + " already",
			}
		}
	}
	for _, same := range []struct {
		field     string
		had, have string
	}{
		{"arrival", timeText(first.Arrival), timeText(request.Arrival)},
		{"ready", timeText(first.Ready), timeText(request.Ready)},
		{"deadline", timeText(first.Deadline), timeText(request.Deadline)},
		{"run", countText(r.runs[request.ID]), countText(got.run)},
		{"user", first.User, request.User},
		{"software", first.Software, request.Software},
		{"version", first.Version, request.Version},
		{"licences", countText(first.Licences), countText(request.Licences)},
		{"memory_mb", countText(first.MemoryMB), countText(request.MemoryMB)},
		{"storage_mb", countText(first.StorageMB), countText(request.StorageMB)},
		{"accelerators", countText(first.Accelerators), countText(request.Accelerators)},
		{"partition", first.Partition, request.Partition},
		{"constraint", first.Constraint, request.Constraint},
		{"want_site", first.Site, request.Site},
		{"want_pool", first.Pool, request.Pool},
		{"want_sites", strings.Join(first.Sites, ", "), strings.Join(request.Sites, ", ")},
	} {
		if same.had != same.have {
			return BadLine{
				Field: same.field, Value: same.have,
				Want: "differs from " + strconv.Quote(same.had) + " at line " + strconv.Itoa(siblings[0].line) + ", another part of the same request",
			}
		}
	}
	r.parts[at] = append(siblings, numberedPart{got.part, number, request.Parts[0]})
	return BadLine{}
}

// addArray makes a request of each of the equal, independent parts of an array,
// named after it and their number.
func (r *jsonlReader) addArray(request *berth.Request, got *jsonLine, number int) BadLine {
	if r.arrays+got.array > maxArrays {
		return BadLine{Field: "array", Value: countText(got.array), Want: "with " + countText(r.arrays) + " parts of arrays before it; want at most " + strconv.Itoa(maxArrays) + " in a file"}
	}
	ids := make([]string, got.array)
	for i := range ids {
		ids[i] = request.ID + "_" + strconv.Itoa(i+1)
		if at, taken := r.byID[ids[i]]; taken {
			return BadLine{Field: "array", Value: ids[i], Want: "line " + strconv.Itoa(r.lineOf[at]) + " has a request of this id already"}
		}
	}
	r.arrays += got.array
	for _, id := range ids {
		one := *request
		one.ID = id
		r.byID[id] = len(r.Requests)
		r.Requests, r.lineOf = append(r.Requests, one), append(r.lineOf, number)
		if got.run > 0 {
			r.runs[id] = berth.Duration(got.run)
		}
	}
	return BadLine{}
}

func timeText(t berth.Time) string { return strconv.FormatInt(int64(t), 10) }

func countText[T ~int | ~int32 | ~int64](n T) string { return strconv.FormatInt(int64(n), 10) }

// assemble puts the parts of requests in the order of their numbers, and drops
// requests that are not whole.
func (r *jsonlReader) assemble() error {
	if len(r.parts) == 0 {
		return nil
	}
	whole := r.Requests[:0]
	for at := range r.Requests {
		request := r.Requests[at]
		parts := r.parts[at]
		slices.SortFunc(parts, func(a, b numberedPart) int { return cmp.Compare(a.number, b.number) })
		want := r.incomplete(request.ID, parts)
		if want == "" && len(parts) > 0 {
			request.Parts = make([]berth.Part, len(parts))
			for i := range parts {
				request.Parts[i] = parts[i].part
			}
		}
		if want == "" {
			whole = append(whole, request)
			continue
		}
		for _, p := range parts {
			bad := BadLine{Line: p.line, Field: "part", Value: strconv.Itoa(p.number), Want: want}
			if err := r.Report.bad(&bad, r.strict); err != nil {
				return err
			}
		}
	}
	clear(r.Requests[len(whole):])
	r.Requests = whole
	return nil
}

// incomplete says what a request of numbered parts lacks, or "".
func (r *jsonlReader) incomplete(id string, parts []numberedPart) string {
	if len(parts) == 0 {
		return ""
	}
	if line, is := r.damaged[id]; is {
		return "line " + strconv.Itoa(line) + ", another part of " + strconv.Quote(id) + ", is bad"
	}
	for i, p := range parts {
		if p.number != i+1 {
			return "part " + strconv.Itoa(i+1) + " of " + strconv.Quote(id) + " is missing; parts count from 1"
		}
	}
	return ""
}

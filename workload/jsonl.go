package workload

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/berth-hpc/berth"
)

// jsonlReader collects requests and ordinary jobs. A line is an object of the
// fields of berth.Line, and of run: how many seconds it really runs, and of array:
// so many equal requests, independent of each other, whose ids are that of the
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
//     and requirements (software to partition). A request
//     that lacks a part, or of which a part's line is bad, is bad as a whole, for
//     it would be another request without it.
//
// The decision (site, pool, accepted, reason, start, end, pes, promised_start,
// actual_end) and the labels workflow and task are read over.
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
	for {
		line, tooLong, err := l.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		line = bytes.Trim(line, " \t")
		if len(line) == 0 {
			continue
		}
		r.Report.Records++
		if err := r.line(line, tooLong, l.number); err != nil {
			return nil, err
		}
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

// line takes in one line; its error is the strict mode's.
func (r *jsonlReader) line(text []byte, tooLong bool, number int) error {
	var got jsonLine
	bad := BadLine{Want: "longer than any request can be"}
	if !tooLong {
		bad = got.parse(text)
	}
	if bad.Want == "" {
		if got.kind != berth.KindRequest && got.kind != berth.KindJob {
			r.Report.skip(NotARequest)
			return nil
		}
		bad = r.add(&got, number)
	}
	if bad.Want == "" {
		if got.precedence {
			r.Report.PrecedenceDropped++
		}
		return nil
	}
	if got.part > 0 && got.id != "" {
		r.damaged[got.id] = number
	}
	bad.Line = number
	return r.Report.bad(&bad, r.strict)
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

// jsonLine is what matters of one line.
type jsonLine struct {
	id, user   string
	kind       berth.Kind
	part       int // 0 if not given
	arrival    int64
	ready      int64
	deadline   int64
	duration   int64
	npe        int64
	run        int64 // 0 if not given
	array      int64 // 0 if not given
	variants   []berth.Variant
	needs      berth.Requirements
	precedence bool // "after" names somebody
	given      fieldSet
}

// maxArray bounds the parts of an array, and maxArrays those of all arrays of a
// file: a line is short, and what it stands for is not.
const (
	maxArray  = 100_000
	maxArrays = 1_000_000
)

var (
	requiredFields    = [...]field{fieldID, fieldArrival, fieldReady, fieldDeadline, fieldDuration, fieldNPE}
	requiredJobFields = [...]field{fieldID, fieldArrival, fieldDuration, fieldNPE}
)

// request returns the line as a request of one part.
func (j *jsonLine) request() (berth.Request, BadLine) {
	if bad := j.missing(); bad.Want != "" {
		return berth.Request{}, bad
	}
	variants := j.variants
	if len(variants) == 0 {
		if bad := checkCount(j.npe); bad.Want != "" {
			return berth.Request{}, bad
		}
		variants = []berth.Variant{{NPE: berth.Count(j.npe), Duration: berth.Duration(j.duration)}}
	}
	request := berth.Request{
		ID: j.id, User: j.user,
		Arrival: berth.Time(j.arrival), Ready: berth.Time(j.ready), Deadline: berth.Time(j.deadline),
		Parts: []berth.Part{{Variants: variants}}, Requirements: j.needs,
	}
	if j.kind == berth.KindJob {
		request.Kind = berth.KindJob
		if !j.given.has(fieldReady) {
			request.Ready = request.Arrival
		}
		if j.deadline == 0 {
			request.Deadline = berth.Forever
		}
	}
	for _, name := range namesOf(&request) {
		if hasControl(name.text) {
			return berth.Request{}, BadLine{Field: name.field, Value: shown([]byte(name.text)), Want: "holds a control character"}
		}
	}
	if err := request.Validate(); err != nil {
		return berth.Request{}, badRequest(err)
	}
	return request, BadLine{}
}

// missing names the first needed field that is not there.
func (j *jsonLine) missing() BadLine {
	required, want := requiredFields[:], "missing; a request needs id, arrival, ready, deadline, and duration and npe or variants"
	if j.kind == berth.KindJob {
		required, want = requiredJobFields[:], "missing; a job needs id, arrival, duration and npe"
	}
	if len(j.variants) > 0 {
		required = required[:len(required)-2] // duration and npe
	}
	for _, f := range required {
		if !j.given.has(f) {
			return BadLine{Field: jsonFields[f].name, Want: want}
		}
	}
	if j.array > 0 && j.part > 0 {
		return BadLine{Field: "array", Value: countText(j.array), Want: "of a part; the parts of an array are independent, those of a request start together"}
	}
	if j.given.has(fieldRun) && len(j.variants) > 1 {
		return BadLine{Field: "run", Value: countText(j.run), Want: "of a moldable request; each of its variants would run for another time"}
	}
	return BadLine{}
}

// namesOf returns the texts of a request by field.
func namesOf(r *berth.Request) [5]struct{ field, text string } {
	return [...]struct{ field, text string }{
		{"id", r.ID}, {"user", r.User}, {"software", r.Software}, {"version", r.Version}, {"partition", r.Partition},
	}
}

// checkCount refuses what a berth.Count cannot hold; what it can is left to
// Request.Validate.
func checkCount(n int64) BadLine {
	if n > berth.MaxPEs {
		return BadLine{
			Field: "npe", Value: strconv.FormatInt(n, 10),
			Want: "more than the limit of " + strconv.Itoa(berth.MaxPEs),
		}
	}
	if n < 1 {
		return BadLine{Field: "npe", Value: strconv.FormatInt(n, 10), Want: "a request needs at least 1 PE"}
	}
	return BadLine{}
}

// badRequest turns an error of Request.Validate into a bad line.
func badRequest(err error) BadLine {
	if mistake, is := errors.AsType[*berth.Error](err); is {
		return BadLine{Field: mistake.Field, Want: mistake.Msg}
	}
	return BadLine{Want: err.Error()}
}

// hasControl reports whether the text holds a character that would break the
// lines and columns of what is printed about it.
func hasControl(text string) bool {
	for _, c := range text {
		if c < ' ' || c == 0x7f {
			return true
		}
	}
	return false
}

// parse reads the object; Want of the BadLine is empty if it is well-formed.
func (j *jsonLine) parse(text []byte) BadLine {
	j.kind = berth.KindRequest
	switch {
	case !utf8.Valid(text):
		return BadLine{Value: shown(text), Want: "not UTF-8"}
	case text[0] != '{':
		return BadLine{Value: shown(text), Want: "not a JSON object; a line is one request in braces"}
	case !json.Valid(text):
		return BadLine{Value: shown(text), Want: "not valid JSON on one line"}
	}
	// A bad field does not end the reading: which request the line was about
	// matters to its other parts.
	var first BadLine
	eachMember(text, func(key, value []byte) bool {
		if bad := j.member(key, value); bad.Want != "" && first.Want == "" {
			first = bad
		}
		return true
	})
	return first
}

// member takes in one field of the object.
func (j *jsonLine) member(key, value []byte) BadLine {
	f, known := fieldOf(key)
	if !known {
		return BadLine{Field: shown([]byte(unquote(key))), Want: "no such field; a line has those of the schedule file"}
	}
	name := jsonFields[f].name
	switch {
	case j.given.has(f):
		return BadLine{Field: name, Value: shown(value), Want: "given twice"}
	case string(value) == "null":
		return BadLine{}
	}
	j.given.add(f)
	if want := jsonFields[f].is.check(value); want != "" {
		return BadLine{Field: name, Value: shown(value), Want: want}
	}
	switch f {
	case fieldID:
		j.id = unquote(value)
	case fieldUser:
		j.user = unquote(value)
	case fieldKind:
		return j.setKind(value)
	case fieldPart:
		part := integer(value)
		if part < 0 || part > berth.MaxPEs {
			return BadLine{Field: name, Value: shown(value), Want: "parts count from 1"}
		}
		j.part = int(part)
	case fieldArrival:
		j.arrival = integer(value)
	case fieldReady:
		j.ready = integer(value)
	case fieldDeadline:
		j.deadline = integer(value)
	case fieldDuration:
		j.duration = integer(value)
	case fieldNPE:
		j.npe = integer(value)
	case fieldArray:
		if j.array = integer(value); j.array < 1 || j.array > maxArray {
			return BadLine{Field: name, Value: shown(value), Want: "want 1 to " + strconv.Itoa(maxArray) + " parts"}
		}
	case fieldRun:
		if j.run = integer(value); j.run < 1 || j.run >= timeLimit {
			return BadLine{Field: name, Value: shown(value), Want: "want seconds, from 1 to below 2^42"}
		}
	case fieldAfter:
		return j.setAfter(value)
	case fieldVariants:
		return j.setVariants(value)
	default:
		return j.setNeed(f, value)
	}
	return BadLine{}
}

// setNeed takes in a requirement, and reads over what is none.
func (j *jsonLine) setNeed(f field, value []byte) BadLine {
	switch f {
	case fieldSoftware:
		j.needs.Software = unquote(value)
	case fieldVersion:
		j.needs.Version = unquote(value)
	case fieldPartition:
		j.needs.Partition = unquote(value)
	case fieldMemoryMB:
		j.needs.MemoryMB = integer(value)
	case fieldStorageMB:
		j.needs.StorageMB = integer(value)
	case fieldLicences, fieldAccelerators:
		n, most := integer(value), int64(berth.MaxLicences)
		if f == fieldAccelerators {
			most = berth.MaxAccelerators
		}
		if n < 0 || n > most {
			return BadLine{Field: jsonFields[f].name, Value: shown(value), Want: "want 0 to " + countText(most)}
		}
		if f == fieldLicences {
			j.needs.Licences = berth.Count(n)
		} else {
			j.needs.Accelerators = int(n)
		}
	}
	return BadLine{}
}

func (j *jsonLine) setKind(value []byte) BadLine {
	j.kind = berth.Kind(unquote(value))
	switch j.kind {
	case berth.KindRequest, berth.KindBooking, berth.KindOutage, berth.KindStaging, berth.KindJob:
		return BadLine{}
	}
	return BadLine{Field: "kind", Value: shown(value), Want: "unknown; want request, booking, outage, staging or job"}
}

func (j *jsonLine) setAfter(value []byte) BadLine {
	var bad BadLine
	eachElement(value, func(id []byte) bool {
		j.precedence = true
		if want := isString.check(id); want != "" {
			bad = BadLine{Field: "after", Value: shown(id), Want: want}
		}
		return bad.Want == ""
	})
	return bad
}

// setVariants reads the list of objects that have npe and duration, and nothing
// else.
func (j *jsonLine) setVariants(value []byte) BadLine {
	var bad BadLine
	eachElement(value, func(object []byte) bool {
		if object[0] != '{' {
			bad = BadLine{Field: "variants", Value: shown(object), Want: `want objects such as {"npe":8,"duration":600}`}
			return false
		}
		var v berth.Variant
		v, bad = parseVariant(object)
		j.variants = append(j.variants, v)
		return bad.Want == ""
	})
	return bad
}

func parseVariant(object []byte) (berth.Variant, BadLine) {
	var bad BadLine
	var npe, duration int64
	var given fieldSet
	eachMember(object, func(key, value []byte) bool {
		f, known := fieldOf(key)
		switch want := isInteger.check(value); {
		case !known || f != fieldNPE && f != fieldDuration:
			bad = BadLine{Field: "variants", Value: shown(key), Want: "no such field; a variant has npe and duration"}
		case given.has(f):
			bad = BadLine{Field: "variants", Value: shown(key), Want: "given twice in one variant"}
		case want != "":
			bad = BadLine{Field: jsonFields[f].name, Value: shown(value), Want: want}
		case f == fieldNPE:
			npe = integer(value)
			bad = checkCount(npe)
		default:
			duration = integer(value)
		}
		given.add(f)
		return bad.Want == ""
	})
	if bad.Want == "" && (!given.has(fieldNPE) || !given.has(fieldDuration)) {
		bad = BadLine{Field: "variants", Value: shown(object), Want: "a variant needs npe and duration"}
	}
	return berth.Variant{NPE: berth.Count(npe), Duration: berth.Duration(duration)}, bad
}

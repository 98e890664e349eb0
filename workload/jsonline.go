package workload

import (
	"errors"
	"strconv"

	"github.com/berth-hpc/berth"
)

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
	site, pool string // the only ones that will do
	sites      []string
	eligible   berth.PESet
	only       []berth.PoolPEs
	never      []berth.PoolPEs
	constraint string // of this part
	precedence bool   // "after" names an id
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
		ID: j.id, User: j.user, Site: j.site, Pool: j.pool, Sites: j.sites,
		Arrival: berth.Time(j.arrival), Ready: berth.Time(j.ready), Deadline: berth.Time(j.deadline),
		Parts: []berth.Part{{Variants: variants, Eligible: j.eligible, Only: j.only, Never: j.never, Constraint: j.constraint}}, Requirements: j.needs,
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
func namesOf(r *berth.Request) [9]struct{ field, text string } {
	return [...]struct{ field, text string }{
		{"id", r.ID},
		{"user", r.User},
		{"software", r.Software},
		{"version", r.Version},
		{"partition", r.Partition},
		{"constraint", r.Constraint},
		{"part_constraint", r.Parts[0].Constraint},
		{"want_site", r.Site},
		{"want_pool", r.Pool},
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
	if bad := checkLine(text, "a line is one request in braces"); bad.Want != "" {
		return bad
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
	f, taken, bad := j.given.take(key, value)
	if !taken {
		return bad
	}
	name := jsonFields[f].name
	switch f {
	case fieldID:
		j.id = unquote(value)
	case fieldUser:
		j.user = unquote(value)
	case fieldKind:
		j.kind, bad = parseKind(value)
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
	return bad
}

// setNeed takes in a requirement, and reads over what is none.
func (j *jsonLine) setNeed(f field, value []byte) (bad BadLine) {
	switch f {
	case fieldSoftware:
		j.needs.Software = unquote(value)
	case fieldVersion:
		j.needs.Version = unquote(value)
	case fieldPartition:
		j.needs.Partition = unquote(value)
	case fieldConstraint:
		j.needs.Constraint = unquote(value)
	case fieldPartConstraint:
		j.constraint = unquote(value)
	case fieldWantSite:
		j.site = unquote(value)
	case fieldWantPool:
		j.pool = unquote(value)
	case fieldEligible:
		j.eligible, bad = parsePEs(f, value)
	case fieldWantSites:
		return j.setSites(value)
	case fieldOnly:
		j.only, bad = parsePlaces(f, value)
	case fieldNever:
		j.never, bad = parsePlaces(f, value)
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
	return bad
}

func (j *jsonLine) setSites(value []byte) (bad BadLine) {
	eachElement(value, func(site []byte) bool {
		switch want := isString.check(site); {
		case want != "":
			bad = BadLine{Field: "want_sites", Value: shown(site), Want: want}
		case hasControl(unquote(site)):
			bad = BadLine{Field: "want_sites", Value: shown(site), Want: "holds a control character"}
		default:
			j.sites = append(j.sites, unquote(site))
		}
		return bad.Want == ""
	})
	return bad
}

// parsePlaces reads a list of objects that have site, pool and pes, and nothing else.
func parsePlaces(f field, value []byte) (list []berth.PoolPEs, bad BadLine) {
	name := jsonFields[f].name
	eachElement(value, func(object []byte) bool {
		if object[0] != '{' {
			bad = BadLine{Field: name, Value: shown(object), Want: `want objects such as {"site":"s","pool":"p","pes":"0-3"}`}
			return false
		}
		one := berth.PoolPEs{Resource: berth.PoolID("", "")}
		var given fieldSet
		eachMember(object, func(key, value []byte) bool {
			inner, known := fieldOf(key)
			switch want := isString.check(value); {
			case !known || inner != fieldSite && inner != fieldPool && inner != fieldPEs:
				bad = BadLine{Field: name, Value: shown(key), Want: "no such field; PEs of a pool have site, pool and pes"}
			case given.has(inner):
				bad = BadLine{Field: name, Value: shown(key), Want: "given twice in one list"}
			case want != "":
				bad = BadLine{Field: name, Value: shown(value), Want: want}
			case inner == fieldPEs:
				if one.PEs, bad = parsePEs(f, value); bad.Want != "" {
					return false
				}
			case hasControl(unquote(value)):
				bad = BadLine{Field: name, Value: shown(value), Want: "holds a control character"}
			case inner == fieldSite:
				one.Resource.Site = unquote(value)
			default:
				one.Resource.Name = unquote(value)
			}
			given.add(inner)
			return bad.Want == ""
		})
		if bad.Want == "" && (!given.has(fieldSite) || !given.has(fieldPool) || !given.has(fieldPEs)) {
			bad = BadLine{Field: name, Value: shown(object), Want: "PEs of a pool need site, pool and pes"}
		}
		list = append(list, one)
		return bad.Want == ""
	})
	return list, bad
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

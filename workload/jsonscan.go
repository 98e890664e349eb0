package workload

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"github.com/berth-hpc/berth"
)

// field is a field of berth.Line, or run.
type field uint8

const (
	fieldID field = iota
	fieldKind
	fieldSite
	fieldPool
	fieldUser
	fieldWorkflow
	fieldTask
	fieldAfter
	fieldPart
	fieldArrival
	fieldReady
	fieldDeadline
	fieldDuration
	fieldNPE
	fieldVariants
	fieldAccepted
	fieldReason
	fieldStart
	fieldEnd
	fieldPEs
	fieldPromisedStart
	fieldActualEnd
	fieldSoftware
	fieldVersion
	fieldLicences
	fieldMemoryMB
	fieldStorageMB
	fieldAccelerators
	fieldPartition
	fieldConstraint
	fieldPartConstraint
	fieldWantSite
	fieldWantPool
	fieldEligible
	fieldWantSites
	fieldOnly
	fieldNever
	fieldPromisedEnd
	fieldLimit
	fieldTransfer
	fieldExtended
	fieldMovedFrom
	fieldReplannedFrom
	fieldStretches
	fieldKilobytes
	fieldPoolPEs
	fieldRun
	fieldArray
	fields
)

var jsonFields = [fields]struct {
	name string
	is   jsonType
}{
	fieldID:             {"id", isString},
	fieldKind:           {"kind", isString},
	fieldSite:           {"site", isString},
	fieldPool:           {"pool", isString},
	fieldUser:           {"user", isString},
	fieldWorkflow:       {"workflow", isString},
	fieldTask:           {"task", isString},
	fieldAfter:          {"after", isArray},
	fieldPart:           {"part", isInteger},
	fieldArrival:        {"arrival", isInteger},
	fieldReady:          {"ready", isInteger},
	fieldDeadline:       {"deadline", isInteger},
	fieldDuration:       {"duration", isInteger},
	fieldNPE:            {"npe", isInteger},
	fieldVariants:       {"variants", isArray},
	fieldAccepted:       {"accepted", isBool},
	fieldReason:         {"reason", isString},
	fieldStart:          {"start", isInteger},
	fieldEnd:            {"end", isInteger},
	fieldPEs:            {"pes", isString},
	fieldPromisedStart:  {"promised_start", isInteger},
	fieldActualEnd:      {"actual_end", isInteger},
	fieldSoftware:       {"software", isString},
	fieldVersion:        {"version", isString},
	fieldLicences:       {"licences", isInteger},
	fieldMemoryMB:       {"memory_mb", isInteger},
	fieldStorageMB:      {"storage_mb", isInteger},
	fieldAccelerators:   {"accelerators", isInteger},
	fieldPartition:      {"partition", isString},
	fieldConstraint:     {"constraint", isString},
	fieldPartConstraint: {"part_constraint", isString},
	fieldWantSite:       {"want_site", isString},
	fieldWantPool:       {"want_pool", isString},
	fieldEligible:       {"eligible", isString},
	fieldWantSites:      {"want_sites", isArray},
	fieldOnly:           {"only", isArray},
	fieldNever:          {"never", isArray},
	fieldPromisedEnd:    {"promised_end", isInteger},
	fieldLimit:          {"limit", isInteger},
	fieldTransfer:       {"transfer", isInteger},
	fieldExtended:       {"extended", isInteger},
	fieldMovedFrom:      {"moved_from", isArray},
	fieldReplannedFrom:  {"replanned_from", isArray},
	fieldStretches:      {"stretches", isArray},
	fieldKilobytes:      {"kilobytes", isInteger},
	fieldPoolPEs:        {"pool_pes", isInteger},
	fieldRun:            {"run", isInteger},
	fieldArray:          {"array", isInteger},
}

var fieldByName = func() map[string]field {
	byName := make(map[string]field, fields)
	for f := range fields {
		byName[jsonFields[f].name] = f
	}
	return byName
}()

// fieldOf returns the field of a quoted key; it allocates nothing unless the key
// has escapes.
func fieldOf(key []byte) (field, bool) {
	if bytes.IndexByte(key, '\\') < 0 {
		f, known := fieldByName[string(key[1:len(key)-1])]
		return f, known
	}
	f, known := fieldByName[unquote(key)]
	return f, known
}

// fieldSet is a set of fields.
type fieldSet uint64

func (s fieldSet) has(f field) bool { return s&(1<<f) != 0 }
func (s *fieldSet) add(f field)     { *s |= 1 << f }

// take adds the field of a member that is given and right: known, not there yet, and
// of its type. taken is false if it is null, which is as if it were absent, or bad.
func (s *fieldSet) take(key, value []byte) (f field, taken bool, bad BadLine) {
	f, known := fieldOf(key)
	if !known {
		return f, false, BadLine{Field: shown([]byte(unquote(key))), Want: "no such field; a line has those of the schedule file"}
	}
	switch {
	case s.has(f):
		return f, false, BadLine{Field: jsonFields[f].name, Value: shown(value), Want: "given twice"}
	case string(value) == "null":
		return f, false, BadLine{}
	}
	s.add(f)
	if want := jsonFields[f].is.check(value); want != "" {
		return f, false, BadLine{Field: jsonFields[f].name, Value: shown(value), Want: want}
	}
	return f, true, BadLine{}
}

// checkLine refuses a line that is not a JSON object; want says what lines are like.
func checkLine(text []byte, want string) BadLine {
	switch {
	case !utf8.Valid(text):
		return BadLine{Value: shown(text), Want: "not UTF-8"}
	case text[0] != '{':
		return BadLine{Value: shown(text), Want: "not a JSON object; " + want}
	case !json.Valid(text):
		return BadLine{Value: shown(text), Want: "not valid JSON on one line; " + want}
	}
	return BadLine{}
}

// parseKind returns the kind of a line.
func parseKind(value []byte) (berth.Kind, BadLine) {
	switch kind := berth.Kind(unquote(value)); kind {
	case berth.KindRequest, berth.KindBooking, berth.KindOutage, berth.KindStaging, berth.KindJob:
		return kind, BadLine{}
	}
	return "", BadLine{Field: "kind", Value: shown(value), Want: "unknown; want request, booking, outage, staging or job"}
}

// parsePEs returns the PEs that a field names.
func parsePEs(f field, value []byte) (berth.PESet, BadLine) {
	pes, err := berth.ParsePESet(unquote(value))
	if err != nil {
		bad := badRequest(err)
		bad.Field, bad.Value = jsonFields[f].name, shown(value)
		return pes, bad
	}
	return pes, BadLine{}
}

// jsonType is what a field's value must be.
type jsonType uint8

const (
	isString jsonType = iota
	isInteger
	isBool
	isArray
)

// check returns what is wrong with a valid JSON value as one of the type, or "".
func (t jsonType) check(value []byte) string {
	switch c := value[0]; t {
	case isString:
		if c != '"' {
			return "not a string; want it in quotes"
		}
	case isInteger:
		if c != '-' && !isDigit(c) {
			return "not a number; want an integer without quotes"
		}
		if bytes.ContainsAny(value, ".eE") {
			return "not an integer; want digits without point or exponent"
		}
		// 2^53 in size is 16 digits; one more, and a sign, always parse.
		if len(value) > 18 || !within(integer(value), maxNumber) {
			return "beyond the limit; no number may reach 2^53 in size"
		}
	case isBool:
		if c != 't' && c != 'f' {
			return "want true or false"
		}
	case isArray:
		if c != '[' {
			return "not a list; want it in brackets"
		}
	}
	return ""
}

// integer returns the value of a number that isInteger.check has passed, or
// is about to judge.
func integer(value []byte) int64 {
	n, _ := strconv.ParseInt(string(value), 10, 64) // at most 18 characters: in range
	return n
}

// unquote returns the text of a valid JSON string. Halves of surrogate pairs
// become U+FFFD.
func unquote(quoted []byte) string {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	var text string
	_ = json.Unmarshal(quoted, &text) // the line has been found valid
	return text
}

// eachMember calls visit with the quoted key and the value of every member of
// a valid JSON object, in order, until visit returns false.
func eachMember(object []byte, visit func(key, value []byte) bool) {
	at := skipBlank(object, 1)
	for object[at] != '}' {
		keyEnd := valueEnd(object, at)
		key := object[at:keyEnd]
		at = skipBlank(object, skipBlank(object, keyEnd)+1) // over the colon
		end := valueEnd(object, at)
		if !visit(key, object[at:end]) {
			return
		}
		if at = skipBlank(object, end); object[at] == ',' {
			at = skipBlank(object, at+1)
		}
	}
}

// eachElement calls visit with every element of a valid JSON array, in order,
// until visit returns false.
func eachElement(array []byte, visit func(value []byte) bool) {
	at := skipBlank(array, 1)
	for array[at] != ']' {
		end := valueEnd(array, at)
		if !visit(array[at:end]) {
			return
		}
		if at = skipBlank(array, end); array[at] == ',' {
			at = skipBlank(array, at+1)
		}
	}
}

// valueEnd returns the index behind the value that starts at index at of valid
// JSON.
func valueEnd(text []byte, at int) int {
	depth := 0
	for {
		switch text[at] {
		case '"':
			for at++; text[at] != '"'; at++ {
				if text[at] == '\\' {
					at++
				}
			}
			at++
		case '{', '[':
			depth++
			at++
		case '}', ']':
			depth--
			at++
		case ',', ':', ' ', '\t', '\r', '\n':
			at++
		default: // a number or a word
			for at < len(text) && !isDelimiter(text[at]) {
				at++
			}
		}
		if depth == 0 {
			return at
		}
	}
}

func isDelimiter(c byte) bool {
	switch c {
	case ',', ':', ']', '}', ' ', '\t', '\r', '\n':
		return true
	}
	return false
}

func skipBlank(text []byte, at int) int {
	for text[at] == ' ' || text[at] == '\t' || text[at] == '\r' || text[at] == '\n' {
		at++
	}
	return at
}

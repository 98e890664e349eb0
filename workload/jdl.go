package workload

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
)

// jdlReader collects requests from a file of the Job Description Language: job
// ads, each a list of attributes in brackets,
//
//	[ JobName = "a"; CpuNumber = 8; RunTime = "2h30m"; MaxWaitingTime = 600; ]
//
// or a single ad without brackets. Names of attributes are free in case. The
// semicolon behind the last attribute may be missing. What the attributes mean
// stands in the table jdlAttributes; what is bad about an ad:
//
//   - its form: brackets, strings or comments that do not end, operands without
//     an operator between them, which is what a missing semicolon looks like;
//   - an attribute that is given twice, or under two of its names, is not in the
//     table (a misspelt one would lose data), has a value of another type, or
//     asks for what a booking cannot honour;
//   - the run time is missing, or every limit on waiting;
//   - berth.Request.Validate says no, or a text holds a control character;
//   - its id is taken. An ad without a name is named by its number in the file.
//
// Behind an ad of bad form, reading goes on at the next opening bracket that is
// the first on its line.
//
// The language is that of the DataGrid (DataGrid-01-TEN-0142) and gLite,
// restricted: only literals count as values, and expressions are merely skipped
// where an attribute does not matter. It has no names for the run time, the
// waiting limit and the arrival of Sahakyan and Petrosyan's jobs; those are ours.
type jdlReader struct {
	*Workload
	lexer  *jdlLexer
	token  jdlToken // the next one
	strict bool
	lineOf map[string]int // of each request's ad, by id
}

// readJDL reads job ads. Bad ones are skipped, counted and the first few kept,
// or in strict mode the first one is the error; the requests are sorted stably
// by arrival. A file without a usable ad is an error. Cost: O(bytes + r log r)
// for r requests.
func readJDL(l *lines, opt Options) (*Workload, error) {
	r := &jdlReader{
		Workload: &Workload{Form: JDL, Report: Report{Name: l.name}},
		lexer:    newJDLLexer(l),
		strict:   opt.Strict,
		lineOf:   make(map[string]int),
	}
	for r.advance(); r.token.kind != jdlEnd; {
		r.Report.Records++
		if bad := r.record(); bad.Want != "" && r.lexer.err == nil {
			if err := r.Report.bad(&bad, r.strict); err != nil {
				return nil, err
			}
		}
	}
	if r.lexer.err != nil {
		return nil, r.lexer.err
	}
	r.Report.Usable = r.Report.Records - r.Report.Bad
	if len(r.Requests) == 0 {
		return nil, r.Report.noneUsable()
	}
	slices.SortStableFunc(r.Requests, func(a, b berth.Request) int { return cmp.Compare(a.Arrival, b.Arrival) })
	if opt.Jobs > 0 && opt.Jobs < len(r.Requests) {
		r.Requests = r.Requests[:opt.Jobs:opt.Jobs]
	}
	return r.Workload, nil
}

func (r *jdlReader) advance() { r.token = r.lexer.next() }

// record reads one ad and keeps its request; Want of the BadLine is empty if it
// is good.
func (r *jdlReader) record() BadLine {
	ad := jdlAd{line: r.token.line, npe: 1, given: make(map[jdlMeaning]jdlGiven)}
	bad, formed := r.ad(&ad)
	if !formed {
		for r.token.kind != jdlEnd && (!r.token.is('[') || !r.token.first) {
			r.advance()
		}
		return bad
	}
	if bad.Want != "" {
		return bad
	}
	if ad.id == "" {
		ad.id = strconv.Itoa(r.Report.Records)
	}
	request, bad := ad.request()
	if bad.Want != "" {
		return bad
	}
	if first, taken := r.lineOf[request.ID]; taken {
		return ad.fault(jdlID, request.ID, "the ad at line "+strconv.Itoa(first)+" has this name already")
	}
	r.lineOf[request.ID] = ad.line
	r.Requests = append(r.Requests, request)
	return BadLine{}
}

// ad reads the attributes of an ad. formed is false if its form broke, so that
// its end is not known; otherwise the BadLine is about the first bad attribute.
func (r *jdlReader) ad(ad *jdlAd) (first BadLine, formed bool) {
	bracketed := r.token.is('[')
	if !bracketed && (r.token.kind != jdlName || r.Report.Records > 1) {
		return r.unexpected("want [, with which an ad begins"), false
	}
	if bracketed {
		r.advance()
	}
	for {
		switch {
		case bracketed && r.token.is(']'):
			r.advance()
			return first, true
		case !bracketed && r.token.kind == jdlEnd:
			return first, true
		case r.token.kind != jdlName:
			return r.unexpected("want an attribute, or ] at the end of the ad"), false
		}
		name, line := r.token.text, r.token.line
		r.advance()
		if !r.token.is('=') {
			return r.unexpected("want = behind the name " + shown([]byte(name))), false
		}
		r.advance()
		value, bad := r.value(bracketed)
		if bad.Want != "" {
			bad.Field = shown([]byte(name))
			return bad, false
		}
		if bad := ad.set(name, value, line); bad.Want != "" && first.Want == "" {
			first = bad
		}
		if r.token.is(';') {
			r.advance()
		}
	}
}

// unexpected is the complaint about the next token.
func (r *jdlReader) unexpected(want string) BadLine {
	bad := BadLine{Line: r.token.line, Want: want}
	switch r.token.kind {
	case jdlEnd:
		bad.Want = "the file ends; " + want
	case jdlBad:
		bad.Want = r.token.text
	case jdlMark:
		bad.Value = string(r.token.mark)
	default:
		bad.Value = shown([]byte(r.token.text))
	}
	return bad
}

// jdlValue is a value: a literal, or a list of strings, or something else.
type jdlValue struct {
	kind  jdlKind  // jdlString, jdlNumber, jdlName for a word, else jdlMark
	text  string   // as written or, of a string, its content
	items []string // of a list of strings
}

const (
	// maxValueTokens bounds the memory of one value.
	maxValueTokens = 1 << 16
	// maxValueDepth bounds how deep brackets nest in a value.
	maxValueDepth = 100
)

var jdlClosing = map[byte]byte{'{': '}', '[': ']', '(': ')'}

// value reads up to the semicolon, or the end of the ad, which stays the next
// token.
func (r *jdlReader) value(bracketed bool) (jdlValue, BadLine) {
	var tokens []jdlToken
	var open []byte  // the closing brackets still to come
	operand := false // the last token may end an operand
	for {
		t := r.token
		if len(open) == 0 && (t.is(';') || (bracketed && t.is(']')) || (!bracketed && t.kind == jdlEnd)) {
			break
		}
		switch {
		case t.kind == jdlEnd:
			return jdlValue{}, r.unexpected("want the end of the value and of the ad")
		case t.kind == jdlBad:
			return jdlValue{}, r.unexpected("")
		case t.kind != jdlMark:
			if operand {
				return jdlValue{}, r.unexpected("want a ; before it")
			}
			operand = true
		case jdlClosing[t.mark] != 0:
			if operand && t.mark == '{' || len(open) == maxValueDepth {
				return jdlValue{}, r.unexpected("a bracket out of place")
			}
			open = append(open, jdlClosing[t.mark])
			operand = false
		case t.is('}') || t.is(']') || t.is(')'):
			if len(open) == 0 || open[len(open)-1] != t.mark {
				return jdlValue{}, r.unexpected("a bracket that was not opened")
			}
			open = open[:len(open)-1]
			operand = true
		default: // operators, and ; and = within brackets
			operand = false
		}
		if len(tokens) == maxValueTokens {
			return jdlValue{}, BadLine{Line: t.line, Want: "a value longer than any can be"}
		}
		tokens = append(tokens, t)
		r.advance()
	}
	if !operand {
		return jdlValue{}, r.unexpected("want a value before it")
	}
	return valueOf(tokens), BadLine{}
}

// valueOf tells what the tokens of a value, at least one, are.
func valueOf(tokens []jdlToken) jdlValue {
	if t := tokens[0]; len(tokens) == 1 {
		return jdlValue{kind: t.kind, text: t.text}
	}
	if t := tokens[1]; len(tokens) == 2 && tokens[0].is('-') && t.kind == jdlNumber {
		return jdlValue{kind: jdlNumber, text: "-" + t.text}
	}
	v := jdlValue{kind: jdlMark}
	var text strings.Builder
	for i := 0; i < len(tokens) && text.Len() <= maxShown; i++ {
		switch t := tokens[i]; t.kind {
		case jdlMark:
			text.WriteByte(t.mark)
		case jdlString:
			text.WriteString(strconv.Quote(t.text))
		default:
			text.WriteString(t.text)
		}
	}
	v.text = text.String()
	for i, t := range tokens[1 : len(tokens)-1] {
		switch {
		case i%2 == 0 && t.kind == jdlString:
			v.items = append(v.items, t.text)
		case i%2 == 0 || !t.is(','):
			v.items = nil
			return v
		}
	}
	if !tokens[0].is('{') {
		v.items = nil
	}
	return v
}

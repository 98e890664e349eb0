package check

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/berth-hpc/berth"
)

// maxLine bounds one line in bytes. The longest list of PEs that makes sense,
// every second one of 2^20, takes 4 MB.
const maxLine = 16 << 20

// forever stands for the end of an outage that has none. It is later than
// every time that can be read.
const forever = int64(berth.Forever)

// kind is what a line is about.
type kind uint8

const (
	request kind = iota
	booking
	outage
	staging
	job
)

var kindNames = [...]string{request: "request", booking: "booking", outage: "outage", staging: "staging", job: "job"}

// field is a known field of a line.
type field uint8

const (
	fID field = iota
	fKind
	fSite
	fPool
	fUser
	fWorkflow
	fTask
	fAfter
	fPart
	fArrival
	fReady
	fDeadline
	fDuration
	fNPE
	fVariants
	fAccepted
	fReason
	fStart
	fEnd
	fPEs
	fPromisedStart
	fActualEnd
	fKilobytes
	// What came of a promise.
	fLimit
	fPromisedEnd
	fTransfer
	fExtended
	fMovedFrom
	fReplannedFrom
	fStretches
	fPoolPEs
	// What is asked for beside PEs.
	fSoftware
	fVersion
	fLicences
	fAccelerators
	fMemory
	fStorage
	fPartition
	fConstraint
	fPartConstraint
	fWantSite
	fWantPool
	fEligible
	fWantSites
	fOnly
	fNever
)

var fieldNames = [...]string{
	fID: "id", fKind: "kind", fSite: "site", fPool: "pool", fUser: "user", fWorkflow: "workflow", fTask: "task",
	fAfter: "after", fPart: "part", fArrival: "arrival", fReady: "ready", fDeadline: "deadline", fDuration: "duration",
	fNPE: "npe", fVariants: "variants", fAccepted: "accepted", fReason: "reason", fStart: "start", fEnd: "end",
	fPEs: "pes", fPromisedStart: "promised_start", fActualEnd: "actual_end", fKilobytes: "kilobytes",
	fLimit: "limit", fPromisedEnd: "promised_end", fTransfer: "transfer", fExtended: "extended", fMovedFrom: "moved_from", fReplannedFrom: "replanned_from",
	fStretches: "stretches", fPoolPEs: "pool_pes",
	fSoftware: "software", fVersion: "version", fLicences: "licences", fAccelerators: "accelerators", fMemory: "memory_mb",
	fStorage: "storage_mb", fPartition: "partition", fConstraint: "constraint", fPartConstraint: "part_constraint", fWantSite: "want_site", fWantPool: "want_pool", fEligible: "eligible",
	fWantSites: "want_sites", fOnly: "only", fNever: "never",
}

var fieldsByName = func() map[string]field {
	m := make(map[string]field, len(fieldNames))
	for f, name := range fieldNames {
		m[name] = field(f)
	}
	return m
}()

// needed lists the fields that a line of each kind cannot do without.
var needed = [...][]field{
	request: {fID, fArrival, fReady, fDeadline, fDuration, fNPE, fAccepted},
	booking: {fID, fNPE, fStart, fEnd},
	outage:  {fID, fNPE, fStart},
	staging: {fID, fStart, fEnd},
	job:     {fID, fNPE},
}

// variant is one size and duration a request would take.
type variant struct{ npe, duration int64 }

// needs is what a line asks for beside PEs.
type needs struct {
	software, version  string
	licences           int64
	accelerators       int64 // of one PE
	memory, storage    int64 // in 10^6 bytes, memory of one PE
	partition          string
	constraint, ofPart string // as berth.ParseConstraint reads them
	site, pool         string // no other ones
	eligible           []run  // no other PEs, if there are some
	sites              []string
	only, never        []placePEs // no other PEs than these, if there are some, and none of those
}

// placePEs are PEs of a pool as a line names it; what it does not name is any.
type placePEs struct {
	site, pool string
	runs       []run
}

// record is one line of the file.
type record struct {
	id, part         string
	site, pool       string
	reason           string
	after            []string
	variants         []variant
	line             int
	arrival, ready   int64
	deadline         int64
	duration, npe    int64
	start, end       int64
	promised, actual int64
	kilobytes        int64  // moved by a staging
	needs            *needs // nil for nothing, as on most lines
	past             *past  // likewise
	runs             []run  // the PEs named, if has(fPEs)
	present          uint64 // a bit for each field
	place            int32  // index into checker.places, -1 if it does not matter where
	kind             kind
	accepted         bool // as read; see granted
}

func (r *record) has(f field) bool { return r.present>>f&1 != 0 }

// granted reports whether the line stands for something that was granted.
func (r *record) granted() bool { return r.kind != request || r.accepted }

// wants returns what the line asks for beside PEs, and false if that is nothing
// or of no account.
func (r *record) wants() (*needs, bool) {
	return r.needs, r.needs != nil && r.kind != outage && r.kind != staging
}

// interval returns the time [from, to) throughout which the line takes its
// PEs, and false if that is never.
func (r *record) interval() (from, to int64, ok bool) {
	from, to, ok = r.span()
	return from, to, ok && from < to
}

// span returns the start and the end of the line, which may be no time, and
// false if it has none.
func (r *record) span() (from, to int64, ok bool) {
	if !r.granted() || !r.has(fStart) {
		return 0, 0, false
	}
	switch {
	case r.has(fActualEnd):
		to = r.actual
	case r.has(fEnd):
		to = r.end
	case r.kind == outage:
		to = forever
	default:
		return 0, 0, false
	}
	return r.start, to, true
}

// file is a schedule file as read.
type file struct {
	name    string
	records []record
	lines   int  // records that are lines; behind them are stretches of lines
	needy   bool // a line asks for something beside PEs
	bad     []badLine
	more    int // bad lines beyond those
}

// badLine is a line that could not be read.
type badLine struct {
	line int
	id   string // empty if that could not be read either
	err  error
}

// mostBad is how many bad lines are told one by one.
const mostBad = 1000

// skip passes over a line that cannot be read; in strict mode it is the error.
func (f *file) skip(line int, id string, err error, strict bool) error {
	switch {
	case strict:
		return f.errorAt(line, err)
	case len(f.bad) < mostBad:
		f.bad = append(f.bad, badLine{line, id, err})
	default:
		f.more++
	}
	return nil
}

// errorAt says where a mistake in the input stands.
func (f *file) errorAt(line int, err error) error { return fmt.Errorf("%s:%d: %w", f.name, line, err) }

// readFile reads the lines of a file. A file without a readable line is no schedule:
// the error is that of the first.
func readFile(r io.Reader, name string, strict bool) (*file, error) {
	f := &file{name: name}
	in := bufio.NewReaderSize(r, 1<<16)
	p := parser{names: map[string]string{}}
	var long []byte // a line that does not fit the reader's buffer
	for line := 1; ; line++ {
		text, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			long = long[:0]
			for errors.Is(err, bufio.ErrBufferFull) && len(long) <= maxLine {
				long = append(long, text...)
				text, err = in.ReadSlice('\n')
			}
			tooLong := len(long)+len(text) > maxLine
			for errors.Is(err, bufio.ErrBufferFull) { // the rest of it
				_, err = in.ReadSlice('\n')
			}
			if text = append(long, text...); tooLong {
				if err := f.skip(line, "", berth.Errorf(berth.Invalid, "", "longer than %d bytes", maxLine), strict); err != nil {
					return nil, err
				}
				text = nil
			}
			long = text[:0]
		}
		atEnd := errors.Is(err, io.EOF)
		if err != nil && !atEnd {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		if text = bytes.Trim(text, " \t\r\n"); len(text) > 0 {
			rec, bad := p.parse(text)
			if bad != nil {
				if err := f.skip(line, rec.id, bad, strict); err != nil {
					return nil, err
				}
			} else {
				rec.line = line
				f.needy = f.needy || rec.needs != nil
				f.records = append(f.records, rec)
			}
		}
		if !atEnd {
			continue
		}
		if f.lines = len(f.records); f.lines == 0 && len(f.bad) > 0 {
			return nil, f.errorAt(f.bad[0].line, f.bad[0].err)
		}
		return f, nil
	}
}

// parser reads lines and shares what they have in common.
type parser struct {
	names map[string]string // one copy of each site, pool, reason and part
	runs  []run             // room for the runs of many lines
}

func (p *parser) parse(text []byte) (record, error) {
	rec := record{place: -1}
	if !utf8.Valid(text) {
		return rec, berth.Errorf(berth.Invalid, "", "not UTF-8")
	}
	if !json.Valid(text) {
		return rec, berth.Errorf(berth.Invalid, "", "not JSON: %s", whyInvalid(text))
	}
	if text[0] != '{' {
		return rec, berth.Errorf(berth.Invalid, "", "%s is not an object in braces", shorten(text))
	}
	err := eachMember(text, func(name string, value []byte) error {
		f, known := fieldsByName[name]
		if !known {
			return nil
		}
		if rec.has(f) {
			return berth.Errorf(berth.Invalid, name, "given twice")
		}
		if string(value) == "null" {
			return nil
		}
		rec.present |= 1 << f
		return p.member(&rec, f, name, value)
	})
	if err != nil {
		return rec, err
	}
	for _, f := range needed[rec.kind] {
		if !rec.has(f) {
			return rec, berth.Errorf(berth.Invalid, fieldNames[f], "missing; a %s line needs it", kindNames[rec.kind])
		}
	}
	return rec, nil
}

// member takes one field into the record.
func (p *parser) member(rec *record, f field, name string, value []byte) (err error) {
	switch f {
	case fID:
		if rec.id, err = textOf(name, value); err == nil && rec.id == "" {
			err = berth.Errorf(berth.Invalid, name, "empty; every line needs a name")
		}
	case fKind:
		rec.kind, err = kindOf(name, value)
	case fSite:
		rec.site, err = p.shared(name, value)
	case fPool:
		rec.pool, err = p.shared(name, value)
	case fReason:
		rec.reason, err = p.shared(name, value)
	case fUser, fWorkflow, fTask:
		_, err = textOf(name, value)
	case fAfter:
		err = elementsOf(name, value, func(element []byte) error {
			id, err := textOf(name, element)
			rec.after = append(rec.after, id)
			return err
		})
	case fPart:
		rec.part, err = p.partOf(name, value)
	case fArrival:
		rec.arrival, err = wholeOf(name, value, berth.TimeLimit)
	case fReady:
		rec.ready, err = wholeOf(name, value, berth.TimeLimit)
	case fDeadline:
		rec.deadline, err = wholeOf(name, value, berth.TimeLimit)
	case fDuration:
		rec.duration, err = wholeOf(name, value, berth.TimeLimit)
	case fNPE:
		rec.npe, err = wholeOf(name, value, berth.MaxPEs+1)
	case fVariants:
		err = elementsOf(name, value, func(element []byte) error {
			v, err := variantOf(name, element)
			rec.variants = append(rec.variants, v)
			return err
		})
	case fAccepted:
		rec.accepted, err = boolOf(name, value)
	case fStart:
		rec.start, err = wholeOf(name, value, berth.TimeLimit)
	case fEnd:
		rec.end, err = wholeOf(name, value, berth.TimeLimit)
	case fPromisedStart:
		rec.promised, err = wholeOf(name, value, berth.TimeLimit)
	case fActualEnd:
		rec.actual, err = wholeOf(name, value, berth.TimeLimit)
	case fKilobytes:
		rec.kilobytes, err = wholeOf(name, value, 1000*berth.MaxMegabytes)
	case fPEs:
		rec.runs, err = p.runsOf(name, value)
	case fLimit, fPromisedEnd, fTransfer, fExtended, fMovedFrom, fReplannedFrom, fStretches, fPoolPEs:
		err = p.pastField(rec, f, name, value)
	default:
		err = p.need(rec, f, name, value)
	}
	return err
}

func kindOf(name string, value []byte) (kind, error) {
	text, err := textOf(name, value)
	if err != nil {
		return 0, err
	}
	for k, known := range kindNames {
		if text == known {
			return kind(k), nil
		}
	}
	return 0, berth.Errorf(berth.Invalid, name, "%s is none of %s", printable(text), strings.Join(kindNames[:], ", "))
}

func (p *parser) shared(name string, value []byte) (string, error) {
	text, err := textOf(name, value)
	if err != nil {
		return "", err
	}
	if one, seen := p.names[text]; seen {
		return one, nil
	}
	p.names[text] = text
	return text, nil
}

// partOf reads a part, which may be a number or a text. "0" is no part.
func (p *parser) partOf(name string, value []byte) (string, error) {
	if value[0] != '"' {
		if _, err := wholeOf(name, value, berth.TimeLimit); err != nil {
			return "", err
		}
		value = []byte(`"` + string(value) + `"`)
	}
	part, err := p.shared(name, value)
	if part == "0" || part == "-0" {
		part = ""
	}
	return part, err
}

func (p *parser) runsOf(name string, value []byte) ([]run, error) {
	text, err := textOf(name, value)
	if err != nil {
		return nil, err
	}
	if cap(p.runs)-len(p.runs) < 64 {
		p.runs = make([]run, 0, 1<<14)
	}
	first := len(p.runs)
	all, err := appendRuns(p.runs, name, text)
	if err != nil {
		return nil, err
	}
	p.runs = all
	return all[first:len(all):len(all)], nil
}

func variantOf(name string, value []byte) (variant, error) {
	var v variant
	if value[0] != '{' {
		return v, berth.Errorf(berth.Invalid, name, "%s is not an object in braces", shorten(value))
	}
	var npe, duration bool
	err := eachMember(value, func(inner string, value []byte) (err error) {
		switch inner {
		case "npe":
			npe = true
			v.npe, err = wholeOf(name+".npe", value, berth.MaxPEs+1)
		case "duration":
			duration = true
			v.duration, err = wholeOf(name+".duration", value, berth.TimeLimit)
		}
		return err
	})
	if err == nil && (!npe || !duration) {
		err = berth.Errorf(berth.Invalid, name, "a variant needs npe and duration")
	}
	return v, err
}

// whyInvalid says what is wrong with text that is not JSON.
func whyInvalid(text []byte) string {
	var raw json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		return err.Error()
	}
	return shorten(text)
}

// printable returns a name for a message: quoted if it would be confusing
// otherwise, and cut to a readable length.
func printable(name string) string {
	plain := name != ""
	for _, c := range cut(name, 80) {
		if !unicode.IsPrint(c) || strings.ContainsRune(` "',()`, c) {
			plain = false
			break
		}
	}
	if plain {
		return cut(name, 80)
	}
	return fmt.Sprintf("%q", cut(name, 80))
}

// cut returns text, or its first n bytes or so with dots behind.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "..."
}

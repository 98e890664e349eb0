package workload

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"slices"
	"strconv"

	"github.com/berth-hpc/berth"
)

// Columns of the Standard Workload Format, from 0.
const (
	colJob = iota
	colSubmit
	colWait
	colRun
	colProcs
	colCPU
	colMemory
	colReqProcs
	colReqTime
	colReqMemory
	colStatus
	colUser
	colGroup
	colApp
	colQueue
	colPartition
	colPreceding
	colThink
	columns
)

// rounding says what happens to a fraction in a column.
type rounding uint8

const (
	exact rounding = iota // a fraction is a mistake
	down
	up
)

// sign says which negative numbers a column may hold.
type sign uint8

const (
	orUnknown sign = iota // only -1
	required              // none: without it the record has no name or place
	orAny                 // all: the record is skipped, not bad
)

// column is what the reader and the writer know of one column.
type column struct {
	name  string
	round rounding
	sign  sign
	limit int64 // exclusive bound of the size
}

var swfColumns = [columns]column{
	colJob:       {"job number", exact, required, maxNumber},
	colSubmit:    {"submit time", down, required, timeLimit},
	colWait:      {"wait time", up, orUnknown, timeLimit},
	colRun:       {"run time", up, orAny, timeLimit},
	colProcs:     {"allocated processors", exact, orUnknown, berth.MaxPEs + 1},
	colCPU:       {"average CPU time", down, orUnknown, timeLimit},
	colMemory:    {"used memory", up, orUnknown, maxNumber},
	colReqProcs:  {"requested processors", exact, orUnknown, berth.MaxPEs + 1},
	colReqTime:   {"requested time", up, orUnknown, timeLimit},
	colReqMemory: {"requested memory", up, orUnknown, maxNumber},
	colStatus:    {"status", exact, orUnknown, maxCode},
	colUser:      {"user", exact, orUnknown, maxCode},
	colGroup:     {"group", exact, orUnknown, maxCode},
	colApp:       {"executable", exact, orUnknown, maxCode},
	colQueue:     {"queue", exact, orUnknown, maxCode},
	colPartition: {"partition", exact, orUnknown, maxCode},
	colPreceding: {"preceding job", exact, orUnknown, maxNumber},
	colThink:     {"think time", up, orUnknown, timeLimit},
}

// maxCode bounds the columns that number users, queues and the like.
const maxCode = 1 << 31

// judge returns what is wrong with a column's value, or "". negative is apart
// from value because -0.5 may round to 0.
func (c *column) judge(value int64, negative, unknown bool) string {
	switch {
	case negative && c.sign == required:
		return "negative; it must be known, from 0 up"
	case negative && !unknown && c.sign == orUnknown:
		return "negative; the only negative number allowed is -1 for unknown"
	case !within(value, c.limit):
		return "beyond the limit; it must be below " + strconv.FormatInt(c.limit, 10) + " in size"
	}
	return ""
}

// swfReader collects a log.
//
// Which record is bad, which one skipped, and in which order that is tested:
//
//  1. bad: not 18 columns; a column that is no decimal number; -1 or less as
//     job number or submit time, for nothing can be scheduled without them;
//     any number but -1 below 0 elsewhere, the run time excepted; a fraction in
//     a column that counts or names; a value beyond its limit (times 2^42 s,
//     processors 2^20);
//  2. skipped: Options.Keep says no;
//  3. bad: a size above the machine;
//  4. skipped: a run time of 0 or below; no positive number of processors;
//  5. a job number that an earlier usable record of the file has: skipped if the
//     status says that the line is one burst of a job that has its own line (2
//     to 4), else bad.
type swfReader struct {
	*Workload
	opt     Options
	machine berth.Count
	lineOf  []int32         // of each usable record; Records may hold one more, being judged
	seen    map[int64]int32 // job number to line; nil while numbers only grow
}

// readSWF reads a log. Bad lines are skipped, counted and the first few kept,
// or in strict mode the first one is the error; the records are sorted stably
// by submit time. A log without a usable record is an error. Comments below the
// first record are no header. Cost: O(bytes), plus a sort if the log is not in
// order; one allocation per comment line, none per record.
func readSWF(l *lines, opt Options) (*Workload, error) {
	r := &swfReader{Workload: &Workload{Form: SWF, Report: Report{Name: l.name}}, opt: opt}
	for {
		line, tooLong, err := l.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		line = bytes.TrimLeft(line, " \t")
		switch {
		case len(line) == 0:
			continue
		case line[0] == ';':
			if r.Report.Records == 0 {
				r.Header = append(r.Header, string(line[1:]))
			}
			continue
		case r.Report.Records == 0:
			r.start()
		}
		r.Report.Records++
		if err := r.record(line, tooLong, l.number); err != nil {
			return nil, err
		}
	}
	r.Report.Usable = len(r.Records)
	if len(r.Records) == 0 {
		return nil, r.Report.noneUsable()
	}
	r.Records = sortRecords(r.Records)
	if opt.Jobs > 0 && opt.Jobs < len(r.Records) {
		r.Records = r.Records[:opt.Jobs:opt.Jobs]
	}
	return r.Workload, nil
}

// maxPresized bounds the memory taken on the word of a header.
const maxPresized = 1 << 18

// start settles what the header tells, when the first record is at hand.
func (r *swfReader) start() {
	r.machine = r.opt.PEs
	if r.machine <= 0 {
		r.machine = r.Header.PEs()
	}
	expected, _ := r.Header.Int("MaxRecords")
	expected = min(max(expected, 1<<10), maxPresized)
	r.Records = make([]Record, 0, expected)
	r.lineOf = make([]int32, 0, expected)
}

// record takes in one line; its error is the strict mode's.
func (r *swfReader) record(line []byte, tooLong bool, number int) error {
	// The record is made in its place: one on the stack would move to the
	// heap for Options.Keep.
	n := len(r.Records)
	r.Records = append(r.Records, Record{})
	rec := &r.Records[n]
	cause, bad := r.judge(rec, line, tooLong, number)
	if cause == "" && bad.Want == "" {
		r.lineOf = append(r.lineOf, int32(number))
		return nil
	}
	r.Records = r.Records[:n]
	if cause != "" {
		r.Report.skip(cause)
		return nil
	}
	bad.Line = number
	return r.Report.bad(&bad, r.opt.Strict)
}

// judge reads a line into rec, the last of the records. It returns why the
// record is to be skipped, or why it is bad, or neither.
func (r *swfReader) judge(rec *Record, line []byte, tooLong bool, number int) (Cause, BadLine) {
	if tooLong {
		return "", BadLine{Field: "columns", Want: "longer than any record can be"}
	}
	if bad := parseRecord(line, rec); bad.Want != "" {
		return "", bad
	}
	size := rec.Size()
	switch {
	case r.opt.Keep != nil && !r.opt.Keep(rec):
		return Filtered, BadLine{}
	case r.machine > 0 && size > r.machine:
		return "", tooWide(rec, r.machine)
	case rec.Run <= 0:
		return NoRunTime, BadLine{}
	case size <= 0:
		return NoProcessors, BadLine{}
	}
	first := r.claim(rec.Job, number)
	switch {
	case first == 0:
		return "", BadLine{}
	case 2 <= rec.Status && rec.Status <= 4:
		return PartialRun, BadLine{}
	}
	return "", BadLine{
		Field: swfColumns[colJob].name, Value: strconv.FormatInt(rec.Job, 10),
		Want: "the record at line " + strconv.Itoa(first) + " has it already; it must be unique",
	}
}

// claim returns the line of the earlier usable record that has the job number,
// or 0 after noting that the last one has it. Logs nearly always count upwards,
// so the map is only made when one does not.
func (r *swfReader) claim(job int64, number int) int {
	if r.seen == nil {
		earlier := r.Records[:len(r.lineOf)]
		if n := len(earlier); n == 0 || job > earlier[n-1].Job {
			return 0
		}
		r.seen = make(map[int64]int32, 2*len(earlier))
		for i := range earlier {
			r.seen[earlier[i].Job] = r.lineOf[i]
		}
	}
	if first, taken := r.seen[job]; taken {
		return int(first)
	}
	r.seen[job] = int32(number)
	return 0
}

func tooWide(rec *Record, machine berth.Count) BadLine {
	col := colProcs
	if rec.Procs <= 0 {
		col = colReqProcs
	}
	return BadLine{
		Field: swfColumns[col].name,
		Value: strconv.Itoa(int(rec.Size())),
		Want:  "larger than the machine of " + strconv.Itoa(int(machine)) + " PEs",
	}
}

// parseRecord reads the 18 columns of a line. The BadLine's Want is empty if
// the line is well-formed.
func parseRecord(line []byte, rec *Record) BadLine {
	var values [columns]int64
	var cpu float64 // if its value is rounded
	n, rounded := 0, false
	for i := 0; ; {
		for i < len(line) && isBlank(line[i]) {
			i++
		}
		if i == len(line) {
			break
		}
		first := i
		var whole int64 // of the digits
		for ; i < len(line); i++ {
			digit := line[i] - '0'
			if digit > 9 {
				break
			}
			whole = whole*10 + int64(digit)
		}
		plain := i > first && i-first <= maxDigits && (i == len(line) || isBlank(line[i])) // digits alone
		switch {
		case plain && n < columns && whole < swfColumns[n].limit:
			values[n] = whole
		case n < columns && isUnknown(line[first:]) && swfColumns[n].sign != required:
			values[n] = -1
			i += len("-1")
		default:
			for i < len(line) && !isBlank(line[i]) {
				i++
			}
			if n >= columns {
				break
			}
			var bad BadLine
			if values[n], bad = parseColumn(n, line[first:i]); bad.Want != "" {
				return bad
			}
			if n == colCPU {
				cpu, rounded = parseFloat(line[first:i]), true
			}
		}
		n++
	}
	if n != columns {
		return BadLine{Field: "columns", Value: strconv.Itoa(n), Want: "a record has 18"}
	}
	if !rounded {
		cpu = float64(values[colCPU])
	}
	*rec = Record{
		Job:       values[colJob],
		Submit:    berth.Time(values[colSubmit]),
		Wait:      berth.Duration(values[colWait]),
		Run:       berth.Duration(values[colRun]),
		Procs:     berth.Count(values[colProcs]),
		CPU:       cpu,
		Memory:    values[colMemory],
		ReqProcs:  berth.Count(values[colReqProcs]),
		ReqTime:   berth.Duration(values[colReqTime]),
		ReqMemory: values[colReqMemory],
		Status:    int32(values[colStatus]),
		User:      int32(values[colUser]),
		Group:     int32(values[colGroup]),
		App:       int32(values[colApp]),
		Queue:     int32(values[colQueue]),
		Partition: int32(values[colPartition]),
		Preceding: values[colPreceding],
		Think:     berth.Duration(values[colThink]),
	}
	return BadLine{}
}

func parseColumn(i int, text []byte) (int64, BadLine) {
	col := &swfColumns[i]
	if col.sign != required && len(text) == len("-1") && isUnknown(text) {
		return -1, BadLine{}
	}
	n, ok := parseNumber(text)
	if !ok {
		return 0, BadLine{Field: col.name, Value: shown(text), Want: "not a number; want digits, with a point at most"}
	}
	value := n.whole
	switch {
	case !n.fraction:
	case col.round == down:
		// The whole part: no column that rounds down takes negative fractions.
	case col.round == up:
		value = n.ceil()
	default:
		return 0, BadLine{Field: col.name, Value: shown(text), Want: "not a whole number"}
	}
	if want := col.judge(value, n.negative, n.isUnknown()); want != "" {
		return 0, BadLine{Field: col.name, Value: shown(text), Want: want}
	}
	return value, BadLine{}
}

// isUnknown reports whether a text begins with a column -1, as most that is unknown is written.
func isUnknown(text []byte) bool {
	return len(text) >= 2 && text[0] == '-' && text[1] == '1' && (len(text) == 2 || isBlank(text[2]))
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// sortRecords sorts stably by submit time. It moves each record once, for they
// are large.
func sortRecords(records []Record) []Record {
	bySubmit := func(a, b Record) int { return cmp.Compare(a.Submit, b.Submit) }
	if slices.IsSortedFunc(records, bySubmit) {
		return records
	}
	order := make([]int32, len(records))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(i, j int32) int {
		return cmp.Or(cmp.Compare(records[i].Submit, records[j].Submit), cmp.Compare(i, j))
	})
	sorted := make([]Record, len(records))
	for to, from := range order {
		sorted[to] = records[from]
	}
	return sorted
}

package workload

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/hpctime"
)

// SacctCommand writes what ReadSacct reads best.
const SacctCommand = "sacct -aXP -S 2026-01-01 --format=JobID,User,Partition,State,Submit,Start,ElapsedRaw,TimelimitRaw,AllocCPUS"

// sacctColumn is one of the fields of sacct that are read, in lower case.
type sacctColumn int

const (
	sacctID sacctColumn = iota
	sacctUser
	sacctAccount
	sacctPartition
	sacctState
	sacctSubmit
	sacctStart
	sacctEnd
	sacctElapsedRaw
	sacctElapsed
	sacctLimitRaw
	sacctLimit
	sacctAlloc
	sacctAllocTRES
	sacctReq
	sacctReqTRES
	sacctColumns
)

// sacctNames are what the header calls the columns; the first name is that of messages.
var sacctNames = [sacctColumns][]string{
	sacctID: {"JobID", "JobIDRaw"}, sacctUser: {"User", "UID"}, sacctAccount: {"Account", "Group"}, sacctPartition: {"Partition"}, sacctState: {"State"},
	sacctSubmit: {"Submit"}, sacctStart: {"Start"}, sacctEnd: {"End"}, sacctElapsedRaw: {"ElapsedRaw"}, sacctElapsed: {"Elapsed"},
	sacctLimitRaw: {"TimelimitRaw"}, sacctLimit: {"Timelimit"}, sacctAlloc: {"AllocCPUS", "NCPUS"}, sacctAllocTRES: {"AllocTRES"},
	sacctReq: {"ReqCPUS"}, sacctReqTRES: {"ReqTRES"},
}

// ReadSacct reads the accounting of Slurm as sacct -P prints it, whatever the file's name;
// see Read. Its first line names the columns, in any order; others than those of
// SacctCommand and a few of their kind are passed over. Fields stand between bars; what
// sacct -p prints, with a bar at the end, is read too.
//
// PEs are CPUs. A time without a zone is taken as UTC: the export does not tell its zone, and
// only differences count. Seconds are counted from the first submission. Users, accounts and
// partitions are numbered from 1 in the order in which they appear. A job keeps the number
// that Slurm gave it unless it is one of an array, has several parts or an earlier line has the
// number; then it gets one above all others. sacct -D lists a job once for each time that it was
// requeued, which are as many jobs here; two lines of one id, submission and start, where that is told, are one
// job, which stands in two exports.
//
// Steps of jobs are skipped, as are jobs that are not over and those that never ran. Which
// line is bad: another number of fields than the header, as a bar in a job's name makes it; a
// time, length or number that is none; no submission; an end before the start; a size above
// the machine; a job that an earlier line has. Cost: O(bytes), plus a sort if the jobs are not in order.
func ReadSacct(r io.Reader, name string, opt Options) (*Workload, error) {
	lines, err := newLines(r, name)
	if err != nil {
		return nil, err
	}
	return readSacct(lines, opt)
}

// looksLikeSacct reports whether the first line that is not blank has bars between its
// fields, as no other form does.
func (l *lines) looksLikeSacct() bool {
	start, _ := l.buf.Peek(4 << 10) // an error shows again at the first line
	start = bytes.TrimLeft(start, " \t\r\n")
	first, _, _ := bytes.Cut(start, []byte{'\n'})
	return len(first) > 0 && first[0] != ';' && bytes.IndexByte(first, '|') >= 0
}

// sacctReader collects the jobs of an export.
type sacctReader struct {
	dated
	at     [sacctColumns]int // places of the columns, -1 where there is none
	fields int

	users, accounts, partitions numbering

	lines *lines
	seen  map[sacctRun]int // its line
}

// sacctRun is what one run of a job is known by.
type sacctRun struct {
	id     string
	submit berth.Time
	wait   berth.Duration
}

// numbering numbers names from 1 in the order in which they appear.
type numbering map[string]int32

func (n numbering) of(name string) int32 {
	if name == "" {
		return -1
	}
	if n[name] == 0 {
		n[name] = int32(len(n) + 1)
	}
	return n[name]
}

func readSacct(l *lines, opt Options) (*Workload, error) {
	r := &sacctReader{
		dated: newDated(Sacct, l.name, opt),
		users: numbering{}, accounts: numbering{}, partitions: numbering{},
		lines: l, seen: map[sacctRun]int{},
	}
	if err := r.header(l); err != nil {
		return nil, err
	}
	if err := l.each(&r.Report, opt.Strict, "job", r.line); err != nil {
		return nil, err
	}
	if err := r.finish(); err != nil {
		return nil, err
	}
	return r.Workload, nil
}

// header finds out where the columns are.
func (r *sacctReader) header(l *lines) error {
	var line []byte
	for len(line) == 0 {
		var err error
		line, _, err = l.next()
		switch {
		case errors.Is(err, io.EOF):
			return r.Report.noneUsable()
		case err != nil:
			return err
		}
		line = bytes.TrimSpace(line)
	}
	names := strings.Split(strings.TrimSuffix(string(line), "|"), "|")
	r.fields = len(names)
	for c := range r.at {
		r.at[c] = -1
		for _, known := range slices.Backward(sacctNames[c]) { // the first name rules
			if i := slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(strings.TrimSpace(name), known) }); i >= 0 {
				r.at[c] = i
			}
		}
	}
	missing := func(what string) error {
		return berth.Errorf(berth.Invalid, "workload", "%s:%d: %q: no column %s; want the header and the columns of %s", l.name, l.number, shown(line), what, SacctCommand)
	}
	has := func(columns ...sacctColumn) bool {
		return !slices.ContainsFunc(columns, func(c sacctColumn) bool { return r.at[c] < 0 })
	}
	switch {
	case !has(sacctSubmit):
		return missing("Submit")
	case !has(sacctElapsedRaw) && !has(sacctElapsed) && !has(sacctStart, sacctEnd):
		return missing("ElapsedRaw, nor Elapsed, nor Start and End")
	case !has(sacctAlloc) && !has(sacctAllocTRES) && !has(sacctReq) && !has(sacctReqTRES):
		return missing("AllocCPUS, nor AllocTRES, ReqCPUS or ReqTRES")
	}
	return nil
}

// sacctStates are what becomes of jobs, as the Standard Workload Format has it; others are
// not over.
var sacctStates = map[string]int32{
	"COMPLETED": 1, "FAILED": 0, "CANCELLED": 5, "TIMEOUT": 0, "NODE_FAIL": 0, "OUT_OF_MEMORY": 0, "BOOT_FAIL": 0, "DEADLINE": 0, "PREEMPTED": 0, "REVOKED": 5,
	"CD": 1, "F": 0, "CA": 5, "TO": 0, "NF": 0, "OOM": 0, "BF": 0, "DL": 0, "PR": 0, "RV": 5,
}

// line takes in one job.
func (r *sacctReader) line(line []byte) (Cause, BadLine) {
	fields := strings.Split(string(line), "|")
	if len(fields) == r.fields+1 && fields[r.fields] == "" {
		fields = fields[:r.fields]
	}
	if len(fields) != r.fields {
		return "", BadLine{
			Field: "columns", Value: strconv.Itoa(len(fields)),
			Want: "the header has " + strconv.Itoa(r.fields) + "; a bar in a name divides it, so leave JobName and Comment out of --format",
		}
	}
	p := sacctLine{r: r, fields: fields}
	id := p.text(sacctID)
	if strings.Contains(id, ".") {
		return PartialRun, BadLine{} // a step of a job that has its own line
	}
	rec := Record{Wait: -1, CPU: -1, Memory: -1, ReqMemory: -1, Status: 1, App: -1, Queue: -1, Preceding: -1, Think: -1}
	over := p.read(&rec)
	machine := r.opt.PEs
	switch size := rec.Size(); {
	case p.bad.Want != "":
		return "", p.bad
	case r.opt.Keep != nil && !r.opt.Keep(&rec):
		return Filtered, BadLine{}
	case !over:
		return NotOver, BadLine{}
	case machine > 0 && size > machine:
		bad := tooWide(&rec, machine)
		bad.Field = sacctNames[sacctAlloc][0]
		return "", bad
	case rec.Run <= 0:
		return NoRunTime, BadLine{}
	case size <= 0:
		return NoProcessors, BadLine{}
	}
	if id != "" && rec.Wait >= 0 {
		run := sacctRun{id, rec.Submit, rec.Wait}
		if first, twice := r.seen[run]; twice {
			return "", BadLine{Field: sacctNames[sacctID][0], Value: id, Want: "line " + strconv.Itoa(first) + " has it already, with this submission and start"}
		}
		run.id = strings.Clone(id)
		r.seen[run] = r.lines.number
	}
	var err error
	if rec.Job, err = strconv.ParseInt(id, 10, 64); err != nil {
		rec.Job = -1
	}
	r.add(rec)
	return "", BadLine{}
}

// sacctLine is a line that is being read: the first mistake in it counts.
type sacctLine struct {
	r      *sacctReader
	fields []string
	bad    BadLine
}

// read fills a record, and reports whether the job is over.
func (p *sacctLine) read(rec *Record) (over bool) {
	r := p.r
	rec.User, rec.Group, rec.Partition = r.users.of(p.text(sacctUser)), r.accounts.of(p.text(sacctAccount)), r.partitions.of(p.text(sacctPartition))
	over = true
	if state, _, _ := strings.Cut(p.text(sacctState), " "); state != "" { // CANCELLED by 1000
		rec.Status, over = sacctStates[strings.ToUpper(strings.TrimSuffix(state, "+"))]
	}
	submit, known := p.instant(sacctSubmit)
	if !known {
		p.wrong(sacctSubmit, "no time; a job without its submission cannot be replayed")
	}
	start, started := p.instant(sacctStart)
	end, ended := p.instant(sacctEnd)
	rec.Submit = submit
	if started && start >= submit {
		rec.Wait = start.Sub(submit)
	}
	elapsed, measured := p.elapsed()
	switch {
	case measured:
		rec.Run = elapsed
	case started && ended && end < start:
		p.wrong(sacctEnd, "before the start")
	case started && ended:
		rec.Run = end.Sub(start)
	case started:
		over = false
	}
	if r.at[sacctEnd] >= 0 && started && !ended {
		over = false // Elapsed counts up to now
	}
	rec.ReqTime = p.limit()
	rec.Procs = p.count(sacctAlloc, sacctAllocTRES)
	rec.ReqProcs = p.count(sacctReq, sacctReqTRES)
	return over
}

// text returns a field, empty if the export has no such column.
func (p *sacctLine) text(c sacctColumn) string {
	if p.r.at[c] < 0 {
		return ""
	}
	return strings.TrimSpace(p.fields[p.r.at[c]])
}

func (p *sacctLine) wrong(c sacctColumn, want string) {
	if p.bad.Want == "" {
		p.bad = BadLine{Field: sacctNames[c][0], Value: shown([]byte(p.text(c))), Want: want}
	}
}

// sacctTimes are the forms of times: the standard one, and those that SLURM_TIME_FORMAT is
// set to by people who want a zone.
var sacctTimes = []string{"2006-01-02T15:04:05", "2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05-0700"}

// instant reads a time; known is false where Slurm has none.
func (p *sacctLine) instant(c sacctColumn) (t berth.Time, known bool) {
	text := p.text(c)
	switch strings.ToLower(text) {
	case "", "unknown", "none", "n/a":
		return 0, false
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		if n < 0 || n >= timeLimit {
			p.wrong(c, "beyond the limit; want seconds since 1970 below 2^42")
			return 0, true
		}
		return berth.Time(n), n > 0
	}
	for _, form := range sacctTimes {
		at, err := time.Parse(form, text)
		switch {
		case err != nil:
		case at.Unix() < 0 || at.Unix() >= timeLimit:
			p.wrong(c, "beyond the limit; want a time from 1970 on")
			return 0, true
		default:
			return berth.Time(at.Unix()), true
		}
	}
	p.wrong(c, "no time; want 2026-11-21T18:00:00, as sacct prints it unless SLURM_TIME_FORMAT says something else")
	return 0, true
}

// elapsed returns how long a job ran, if a column tells.
func (p *sacctLine) elapsed() (d berth.Duration, known bool) {
	if p.text(sacctElapsedRaw) != "" {
		return berth.Duration(p.whole(sacctElapsedRaw, timeLimit)), true
	}
	text := p.text(sacctElapsed)
	if text == "" {
		return 0, false
	}
	return p.length(sacctElapsed), true
}

// length reads [days-]hours:minutes:seconds, or minutes:seconds as Slurm shortens it.
func (p *sacctLine) length(c sacctColumn) berth.Duration {
	text := p.text(c)
	if strings.Count(text, ":") == 1 && !strings.Contains(text, "-") {
		text = "0:" + text
	}
	d, err := hpctime.Parse(text)
	if err != nil || !strings.Contains(text, ":") || int64(d) >= timeLimit {
		p.wrong(c, "no length of time; want [days-]hours:minutes:seconds")
		return 0
	}
	return d
}

// limit returns what a job asked for, -1 if that is not known or has no bound.
func (p *sacctLine) limit() berth.Duration {
	c := sacctLimitRaw
	text := p.text(c)
	if text == "" {
		c = sacctLimit
		text = p.text(c)
	}
	switch strings.ToLower(text) {
	case "", "unlimited", "partition_limit", "infinite", "n/a", "invalid":
		return -1
	}
	if c == sacctLimitRaw {
		return berth.Duration(60 * p.whole(c, timeLimit/60))
	}
	return p.length(c)
}

// count returns a number of CPUs, of a column that tells it or of one that lists resources.
func (p *sacctLine) count(plain, listed sacctColumn) berth.Count {
	if p.text(plain) != "" {
		return berth.Count(p.whole(plain, berth.MaxPEs+1))
	}
	for resource := range strings.SplitSeq(p.text(listed), ",") {
		number, is := strings.CutPrefix(resource, "cpu=")
		if !is {
			continue
		}
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n < 0 || n > berth.MaxPEs {
			p.wrong(listed, "no number of CPUs; want cpu= with a whole number up to "+countText(berth.MaxPEs))
			return 0
		}
		return berth.Count(n)
	}
	return -1
}

// whole reads a whole number from 0 up, below a limit.
func (p *sacctLine) whole(c sacctColumn, limit int64) int64 {
	n, err := strconv.ParseInt(p.text(c), 10, 64)
	switch {
	case err != nil || n < 0:
		p.wrong(c, "not a whole number from 0 up")
		return 0
	case n >= limit:
		p.wrong(c, "beyond the limit; it must be below "+strconv.FormatInt(limit, 10))
		return 0
	}
	return n
}

package slurm

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/hpctime"
	"github.com/berth-hpc/berth/site"
)

// jobField is a field of a job as squeue shows it.
type jobField int

// The fields. They have kept their names and forms from Slurm 22.05 to 26.05, which those of squeue --json have not.
const (
	fieldID jobField = iota
	fieldArray
	fieldIndex
	fieldState
	fieldNodes
	fieldCPUs
	fieldStart
	fieldEnd
	fieldSubmitted
	fieldEligible
	fieldNodeCount
	fieldSharing
	fieldLimit
	fieldExit
	fieldReason
	fieldUser
	fieldAccount
	fieldPartition
	fieldReservation
	fieldOutput
	fieldComment
	fieldName
	// fieldExclusive says since Slurm 25 what fieldSharing said before: NODE, or TOPO for all nodes of a block. With
	// USER and MCS other jobs may come to the same nodes.
	fieldExclusive
	allFields
)

// jobFields are the names of fields, and which may hold anything: the others are numbers, times, states and the names of
// nodes, which have no bar in them.
var jobFields = [allFields]struct {
	name string
	free bool
}{
	fieldID: {"JobID", false}, fieldArray: {"ArrayJobID", false}, fieldIndex: {"ArrayTaskID", false}, fieldState: {"State", false}, fieldNodes: {"NodeList", false},
	fieldCPUs: {"NumCPUs", false}, fieldStart: {"StartTime", false}, fieldEnd: {"EndTime", false}, fieldSubmitted: {"SubmitTime", false}, fieldEligible: {"EligibleTime", false},
	fieldNodeCount: {"NumNodes", false}, fieldSharing: {"OverSubscribe", false}, fieldLimit: {"TimeLimit", false}, fieldExit: {"exit_code", false}, fieldReason: {"Reason", true},
	fieldUser: {"UserName", true}, fieldAccount: {"Account", true}, fieldPartition: {"Partition", true}, fieldReservation: {"Reservation", true}, fieldOutput: {"STDOUT", true},
	fieldComment: {"Comment", true}, fieldName: {"Name", true}, fieldExclusive: {"Exclusive", false},
}

// lookFields are the fields for a look. Older versions do not know the last one.
var lookFields = func() []jobField {
	list := make([]jobField, allFields)
	for i := range list {
		list[i] = jobField(i)
	}
	return list
}()

// bar stands behind a field that cannot hold it.
const bar = "|"

// newMark returns what stands behind each field that is free. Users choose names and comments, and may
// put anything in them but what they cannot know.
func newMark() string {
	random := make([]byte, 6)
	_, _ = rand.Read(random) // never fails
	return "#" + base64.RawURLEncoding.EncodeToString(random) + "#"
}

// behind returns what stands behind a field.
func (f jobField) behind(mark string) string {
	if jobFields[f].free {
		return mark
	}
	return bar
}

// jobsArgs are the arguments of squeue. A field without a width is written whole.
func jobsArgs(mark string, list []jobField, states string) []string {
	var form strings.Builder
	for i, f := range list {
		if i > 0 {
			form.WriteByte(',')
		}
		form.WriteString(jobFields[f].name + ":" + f.behind(mark))
	}
	return []string{"--noheader", "--all", "--states=" + states, "--Format=" + form.String()}
}

// jobRecord is a job as squeue shows it: where its fields are in what squeue wrote of many. A queue may hold 50,000
// of them.
type jobRecord struct {
	of    string // what squeue wrote
	spans [allFields]span
	newer bool // fieldExclusive was asked for
}

// span is a part of a text, which is shorter than 4 GB.
type span struct{ from, to uint32 }

// at returns a field, and nothing if it was not asked for.
func (j *jobRecord) at(f jobField) string { return j.of[j.spans[f].from:j.spans[f].to] }

// jobReader reads what squeue writes of the fields of a list, as it comes: squeue writes for half a second
// about a long queue.
type jobReader struct {
	mark  string
	list  []jobField
	newer bool // fieldExclusive is in the list
	jobs  []jobRecord
	err   error // that it is not what squeue writes

	text []byte // not read yet
	next int    // how much of it is read at once
}

// readAtOnce is for how many bytes a reader waits, at least.
const readAtOnce = 256 << 10

// newJobReader returns a reader. expected is how many jobs may come, for room.
func newJobReader(mark string, list []jobField, expected int) *jobReader {
	return &jobReader{mark: mark, list: list, newer: slices.Contains(list, fieldExclusive), jobs: make([]jobRecord, 0, expected), next: readAtOnce}
}

// take takes what squeue wrote next.
func (r *jobReader) take(p []byte) {
	if r.err != nil {
		return
	}
	if r.text = append(r.text, p...); len(r.text) < r.next {
		return
	}
	n := r.read(string(r.text), false)
	r.text = append(r.text[:0], r.text[n:]...)
	r.next = max(readAtOnce, 2*len(r.text)) // so that what has no end is not read again and again
}

// all returns all jobs, when squeue has ended.
func (r *jobReader) all() ([]jobRecord, error) {
	if r.err == nil && len(r.text) > 0 {
		r.read(string(r.text), true)
		r.text = nil
	}
	if r.err != nil {
		return nil, r.err
	}
	return r.jobs, nil
}

// read reads the records of a text, which are whole if it is the last, and returns where the first begins that is not.
func (r *jobReader) read(text string, last bool) int {
	if len(text) > math.MaxUint32 {
		r.err = fmt.Errorf("%d bytes of a job", len(text))
		return 0
	}
	at := 0
	for strings.TrimSpace(text[at:]) != "" {
		record, end, whole := r.record(text, at, last)
		if !whole {
			return at
		}
		at = end
		r.jobs = append(r.jobs, record)
	}
	if !last {
		return at // an empty line may be the damaged beginning of a record
	}
	return len(text)
}

// record reads the record from a byte on, and returns where the next one begins. What is not whole is an error in the last text.
func (r *jobReader) record(text string, from int, last bool) (record jobRecord, at int, whole bool) {
	at, record = from, jobRecord{of: text, newer: r.newer}
	for i, f := range r.list {
		end := strings.Index(text[at:], f.behind(r.mark))
		if end < 0 && !last {
			return record, at, false
		}
		if end < 0 || !jobFields[f].free && strings.Contains(text[at:at+end], "\n") {
			r.err = fmt.Errorf("behind job %d no %s in %.40q, the field %d of %d", len(r.jobs), jobFields[f].name, text[at:], i+1, len(r.list))
			return record, at, false
		}
		record.spans[f] = span{uint32(at), uint32(at + end)}
		at += end + len(f.behind(r.mark))
	}
	line, _, ended := strings.Cut(text[at:], "\n")
	if !ended && !last {
		return record, at, false
	}
	if strings.TrimSpace(line) != "" {
		r.err = fmt.Errorf("%.40q behind the %d fields of job %d", line, len(r.list), len(r.jobs)+1)
		return record, at, false
	}
	return record, min(at+len(line)+1, len(text)), true
}

// parseJobs reads all that squeue writes of the fields of a list.
func parseJobs(text, mark string, list []jobField) ([]jobRecord, error) {
	r := newJobReader(mark, list, 0)
	r.read(text, true)
	return r.all()
}

func (j *jobRecord) text(f jobField) string {
	if value := j.at(f); !null(value) {
		return value
	}
	return ""
}

// number returns a number, 0 if there is none.
func (j *jobRecord) number(f jobField) int64 {
	n, _ := strconv.ParseInt(j.at(f), 10, 64)
	return n
}

// time returns a time, 0 if there is none.
func (j *jobRecord) time(f jobField) berth.Time {
	text := j.at(f)
	if null(text) || text == "Unknown" {
		return 0
	}
	t, err := parseTime(text)
	if err != nil {
		return 0
	}
	return t
}

// limit returns the time limit, 0 if there is none.
func (j *jobRecord) limit() berth.Duration {
	text := j.at(fieldLimit)
	if minutes, seconds, both := strings.Cut(text, ":"); both && !strings.Contains(seconds, ":") {
		text = "00:" + strings.Repeat("0", max(0, 2-len(minutes))) + text
	}
	d, err := hpctime.Parse(text)
	if err != nil || d < 0 {
		return 0
	}
	return d
}

// result returns with what a job ended: code:signal or, before Slurm 24, as wait(2) has it.
func (j *jobRecord) result(ending site.Ending) site.Result {
	code, signal, both := strings.Cut(j.at(fieldExit), ":")
	n, _ := strconv.Atoi(code) // none is 0
	if !both {
		return site.Result{Ending: ending, Code: n >> 8 & 0xff, Signal: n & 0x7f}
	}
	by, _ := strconv.Atoi(signal)
	return site.Result{Ending: ending, Code: n, Signal: by}
}

// phase is whether a job holds nodes.
type phase int

const (
	running phase = iota
	pending
	over
)

// endings are the states of jobs that are over.
var endings = map[string]site.Ending{
	"COMPLETED": site.Completed, "CANCELLED": site.Cancelled, "PREEMPTED": site.Cancelled, "REVOKED": site.Cancelled,
	"FAILED": site.Failed, "OUT_OF_MEMORY": site.Failed, "BOOT_FAIL": site.NodeLost, "NODE_FAIL": site.NodeLost,
	"TIMEOUT": site.TimedOut, "DEADLINE": site.TimedOut,
}

// neverBegan is the signal by which Slurm says that a job ended whose output it could not
// open.
const neverBegan = 53

// leftBehind is the state in which Slurm keeps the jobs that wait in a reservation when it takes that down
// at its end. They show no reservation any more, and say in words which it was. What is released has the state, and another reason,
// until it may start.
const leftBehind = "RESV_DEL_HOLD"

// left returns the reservation that has left a job behind, empty if none has.
func (j *jobRecord) left() string {
	if j.at(fieldState) != leftBehind {
		return ""
	}
	name, is := strings.CutPrefix(j.at(fieldReason), "Reservation ")
	name, was := strings.CutSuffix(name, " was deleted")
	if !is || !was {
		return ""
	}
	return name
}

// waiting are the states of jobs that hold nothing yet. In every other state a
// job holds its nodes, while COMPLETING too.
var waiting = []string{"PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", leftBehind, "SPECIAL_EXIT"}

// phase tells it from the state.
func (j *jobRecord) phase() phase {
	state := j.at(fieldState)
	if _, ended := endings[state]; ended {
		return over
	}
	if slices.Contains(waiting, state) {
		return pending
	}
	return running
}

// job reads a record. cores are those that it has of some of its nodes, by node; of the
// others it has all.
func (j *jobRecord) job(cores map[string]berth.PESet) (site.Job, phase, error) {
	id, err := strconv.ParseUint(j.at(fieldID), 10, 63)
	out := site.Job{
		ID: site.JobID(j.at(fieldID)), Name: j.at(fieldName), User: j.text(fieldUser), Account: j.text(fieldAccount), Partition: j.text(fieldPartition),
		Output: j.text(fieldOutput), Reservation: j.text(fieldReservation), Start: j.time(fieldStart), End: j.time(fieldEnd),
		Cores: berth.Count(min(max(j.number(fieldCPUs), 0), berth.MaxPEs)),
	}
	if err != nil || id < 1 || j.at(fieldState) == "" {
		return out, running, fmt.Errorf("job %.40q in state %.40q", j.at(fieldID), j.at(fieldState))
	}
	if key, _, ours := parseComment(j.at(fieldComment)); ours {
		out.Key = key
	}
	if index := j.text(fieldIndex); index != "" {
		out.Array = site.JobID(j.at(fieldArray))
		if _, err := strconv.ParseUint(index, 10, 31); err == nil {
			out.ID = out.Array + "_" + site.JobID(index)
		} else {
			out.ID = out.Array + "_[" + site.JobID(index) + "]"
			out.Elements = elements(index)
		}
	}
	out.Output = expanded(out.Output, j.at(fieldID), &out)
	j.asked(&out)
	switch phase := j.phase(); phase {
	case over:
		out.Result = j.result(endings[j.at(fieldState)])
		if why := j.text(fieldReason); why != "None" {
			out.Reason = why
		}
		if out.Result.Signal == neverBegan {
			out.Reason = "Slurm could not begin it on its node: its folder or its output file is not there, or its user may not write there"
		}
		return out, phase, j.shares(&out, cores)
	case pending:
		out.Reason, out.Left = j.text(fieldReason), j.left()
		out.Held = out.Begin == 0 || out.Left != ""
		return out, phase, nil
	}
	if out.Limit == 0 {
		out.End = berth.Forever
	}
	if out.Start == 0 {
		return out, running, fmt.Errorf("job %s is %.40q since %.40q", out.ID, j.at(fieldState), j.at(fieldStart))
	}
	return out, running, j.shares(&out, cores)
}

// expanded returns the file that a pattern for output stands for, where Slurm shows the pattern instead: number
// is that of the job itself. What only its nodes know stays as it is.
func expanded(path, number string, j *site.Job) string {
	if !strings.Contains(path, "%") {
		return path
	}
	pairs := []string{"%%", "%", "%A", number, "%j", number, "%u", j.User, "%x", j.Name}
	if j.Array != "" {
		pairs = append([]string{"%A", string(j.Array), "%a", strings.TrimPrefix(string(j.ID), string(j.Array)+"_")}, pairs...)
	}
	return strings.NewReplacer(pairs...).Replace(path)
}

// asked reads what a job asks for. What cannot be right is not said.
func (j *jobRecord) asked(out *site.Job) {
	out.Submitted, out.Begin = j.time(fieldSubmitted), j.time(fieldEligible)
	out.Limit = j.limit()
	out.Nodes = berth.Count(min(max(j.number(fieldNodeCount), 0), berth.MaxPEs))
	out.Exclusive = j.at(fieldSharing) == "NO"
	if j.newer {
		says := j.at(fieldExclusive)
		out.Exclusive = says == "NODE" || says == "TOPO"
	}
}

// elements reads the indices of an array as Slurm writes them, such as 0-8:2,11%3,
// where a number behind a percent sign says how many may run at once. Of a long
// list Slurm writes the beginning and three points, before which a number may be
// cut off. It ends at the first thing that it does not know.
func elements(text string) berth.PESet {
	list, most, limited := strings.Cut(text, "%")
	left, err := strconv.ParseUint(most, 10, 31)
	if !limited || err != nil || left == 0 || left > maxElements {
		left = maxElements
	}
	if whole, cut := strings.CutSuffix(list, "..."); cut {
		list = whole[:max(0, strings.LastIndexByte(whole, ','))]
	}
	var runs []berth.Run
	for item := range strings.SplitSeq(list, ",") {
		span, by, _ := strings.Cut(item, ":")
		first, last, ranged := strings.Cut(span, "-")
		lo, err := strconv.ParseUint(first, 10, 31)
		hi, step := lo, uint64(1)
		if ranged && err == nil {
			hi, err = strconv.ParseUint(last, 10, 31)
		}
		if by != "" && err == nil {
			step, err = strconv.ParseUint(by, 10, 31)
		}
		if err != nil || step == 0 || hi >= maxIndex {
			break
		}
		for at := lo; at <= hi && left > 0; at += step {
			runs = append(runs, berth.Run{Lo: berth.PE(at), Hi: berth.PE(at) + 1})
			left--
		}
	}
	return berth.NewPESet(runs...)
}

// maxElements bounds how many elements of an array are told at a time; those
// behind them are when these have started.
const maxElements = 10_000

// maxIndex is more than the largest index that Slurm can be configured for
// (MaxArraySize up to 4,000,001).
const maxIndex = 1 << 22

// shares reads what a job holds: the cores of its nodes where they are known, else the whole
// nodes.
func (j *jobRecord) shares(out *site.Job, cores map[string]berth.PESet) error {
	nodes, err := nodeList(j.at(fieldNodes))
	if err != nil {
		return fmt.Errorf("job %s: %w", out.ID, err)
	}
	for _, node := range nodes {
		out.Shares = append(out.Shares, site.Share{Node: node, Cores: cores[node]})
	}
	return nil
}

// partial reports whether a job that holds nodes has fewer processors than they have.
func (j *jobRecord) partial(nodes map[string]*nodeRecord) bool {
	held, err := nodeList(j.at(fieldNodes))
	all := int64(0)
	for _, name := range held {
		if n := nodes[name]; n != nil {
			all += int64(n.CPUs)
		}
	}
	return err == nil && len(held) > 0 && j.number(fieldCPUs) < all
}

// coresOf reads from what scontrol shows in detail which cores each job has, by its number
// and node. A job that is there twice, for a name may hold the end of a line, is left out.
func coresOf(text string, nodes map[string]*nodeRecord) map[string]map[string]berth.PESet {
	found := map[string]map[string]berth.PESet{}
	var all []field // of one line
	for line := range strings.Lines(text) {
		all = appendFields(all[:0], line)
		if len(all) == 0 || all[0].key != "JobId" {
			continue
		}
		id := all[0].value
		if _, twice := found[id]; twice {
			found[id] = nil
			continue
		}
		found[id] = map[string]berth.PESet{}
		for i := 1; i < len(all); i++ {
			if all[i].key != "CPU_IDs" || all[i-1].key != "Nodes" {
				continue
			}
			held, err := nodeList(all[i-1].value)
			cpus, wrong := berth.ParsePESet(all[i].value)
			for _, name := range held {
				if n := nodes[name]; n != nil && err == nil && wrong == nil {
					found[id][name] = n.coresOf(cpus)
				}
			}
		}
	}
	return found
}

// coresOf returns the cores that hardware threads belong to. Slurm numbers all threads of a node, also those
// that it does not hand out because slurm.conf says fewer CPUs.
func (n *nodeRecord) coresOf(cpus berth.PESet) berth.PESet {
	threads := berth.PE(max(1, n.Threads))
	var runs []berth.Run
	for _, r := range cpus.Runs() {
		runs = append(runs, berth.Run{Lo: r.Lo / threads, Hi: min((r.Hi+threads-1)/threads, berth.PE(n.cores()))})
	}
	return berth.NewPESet(runs...)
}

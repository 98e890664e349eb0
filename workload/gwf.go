package workload

import (
	"bytes"
	"io"
	"strconv"

	"github.com/berth-hpc/berth"
)

// Columns of the Grid Workload Format, from 0. The first eleven are those of the Standard
// Workload Format.
const (
	gwfUser      = 11
	gwfGroup     = 12
	gwfApp       = 13
	gwfQueue     = 14
	gwfPartition = 15
	gwfLastSite  = 17
	gwfColumns   = 29
)

// ReadGWF reads a log of the Grid Workloads Archive in its Grid Workload Format, whatever the
// file's name; see Read. A record has 29 columns; the first eleven are those of the
// Standard Workload Format, and are judged as there; comments begin with #. Users, groups,
// executables, queues and partitions may be words: they are numbered from 1 in the order in which
// they appear. The partition is the site that ran the job where the log has no partitions.
//
// Times may be seconds since 1970: they are counted from the first submission, and the header
// of what is returned tells that one as UnixStartTime. A job keeps its number unless an earlier
// record has it; then it gets one above all others. Jobs with a structure, such as bags of
// tasks, are jobs like others, and what a log says of networks and disks is passed over. The
// format has no header that tells the size of the machine.
//
// Cost: O(bytes), plus a sort if the jobs are not in order.
func ReadGWF(r io.Reader, name string, opt Options) (*Workload, error) {
	lines, err := newLines(r, name)
	if err != nil {
		return nil, err
	}
	return readGWF(lines, opt)
}

// gwfReader collects the jobs of a log.
type gwfReader struct {
	dated
	users, groups, apps, queues, partitions numbering
}

func readGWF(l *lines, opt Options) (*Workload, error) {
	r := &gwfReader{
		dated: newDated(GWF, l.name, opt),
		users: numbering{}, groups: numbering{}, apps: numbering{}, queues: numbering{}, partitions: numbering{},
	}
	l.comment = '#'
	if err := l.each(&r.Report, opt.Strict, "record", r.line); err != nil {
		return nil, err
	}
	if err := r.finish(); err != nil {
		return nil, err
	}
	return r.Workload, nil
}

// line takes in one job.
func (r *gwfReader) line(line []byte) (Cause, BadLine) {
	fields := bytes.Fields(line)
	if len(fields) != gwfColumns {
		return "", BadLine{Field: "columns", Value: strconv.Itoa(len(fields)), Want: "a record of the Grid Workload Format has " + strconv.Itoa(gwfColumns)}
	}
	var values [colStatus + 1]int64
	for i := range values {
		var bad BadLine
		if values[i], bad = parseColumn(i, fields[i]); bad.Want != "" {
			return "", bad
		}
	}
	rec := Record{
		Job: values[colJob], Submit: berth.Time(values[colSubmit]), Wait: berth.Duration(values[colWait]), Run: berth.Duration(values[colRun]),
		Procs: berth.Count(values[colProcs]), CPU: parseFloat(fields[colCPU]), Memory: values[colMemory],
		ReqProcs: berth.Count(values[colReqProcs]), ReqTime: berth.Duration(values[colReqTime]), ReqMemory: values[colReqMemory],
		Status: int32(values[colStatus]), Preceding: -1, Think: -1,
		User: r.users.of(gwfWord(fields[gwfUser])), Group: r.groups.of(gwfWord(fields[gwfGroup])), App: r.apps.of(gwfWord(fields[gwfApp])),
		Queue: r.queues.of(gwfWord(fields[gwfQueue])),
	}
	site := gwfWord(fields[gwfPartition])
	if site == "" {
		site = gwfWord(fields[gwfLastSite])
	}
	rec.Partition = r.partitions.of(site)
	switch size := rec.Size(); {
	case r.opt.Keep != nil && !r.opt.Keep(&rec):
		return Filtered, BadLine{}
	case r.opt.PEs > 0 && size > r.opt.PEs:
		return "", tooWide(&rec, r.opt.PEs)
	case rec.Run <= 0:
		return NoRunTime, BadLine{}
	case size <= 0:
		return NoProcessors, BadLine{}
	}
	r.add(rec)
	return "", BadLine{}
}

// gwfWord returns a column that names something, empty where the log does not know.
func gwfWord(field []byte) string {
	if string(field) == "-1" {
		return ""
	}
	return string(field)
}

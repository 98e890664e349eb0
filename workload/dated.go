package workload

import (
	"slices"
	"strconv"
)

// dated collects the records of a log that tells times of the clock, and brings them into the form that all
// logs have: times since the first submit, a number for each job, the order of submit, and no more jobs than
// are asked for.
type dated struct {
	*Workload
	opt                 Options
	numbers             map[int64]bool // that jobs have in the log
	highest, unnumbered int64
}

func newDated(form Form, name string, opt Options) dated {
	return dated{Workload: &Workload{Form: form, Report: Report{Name: name}}, opt: opt, numbers: map[int64]bool{}}
}

// add takes in a job. One whose number is negative, too large or another job's gets one above the highest of the
// log when all are known. Where only the first jobs are asked for, no more than twice as many are held, which
// costs a sort of them for each that many jobs of the log.
func (d *dated) add(rec Record) {
	if n := rec.Job; n < 0 || n >= maxNumber>>1 || d.numbers[n] {
		d.unnumbered++
		rec.Job = -d.unnumbered
	} else {
		d.numbers[n] = true
		d.highest = max(d.highest, n)
	}
	d.Records = append(d.Records, rec)
	if d.opt.Jobs > 0 && len(d.Records)/2 >= max(d.opt.Jobs, 1<<9) {
		d.first()
	}
}

// first leaves the jobs that are asked for, in the order of submit, and of the log among those of one instant.
func (d *dated) first() {
	d.Records = sortRecords(d.Records)
	if d.opt.Jobs > 0 && d.opt.Jobs < len(d.Records) {
		clear(d.Records[d.opt.Jobs:])
		d.Records = d.Records[:d.opt.Jobs]
	}
}

// finish completes the records. It is an error if there are none.
func (d *dated) finish() error {
	if len(d.Records) == 0 {
		return d.Report.noneUsable()
	}
	d.first()
	d.Records = slices.Clip(d.Records)
	first := d.Records[0].Submit
	for i := range d.Records {
		rec := &d.Records[i]
		rec.Submit -= first
		if rec.Job < 0 {
			rec.Job = d.highest - rec.Job
		}
	}
	d.Header = Header{"UnixStartTime: " + strconv.FormatInt(int64(first), 10)}
	return nil
}

package workload

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
)

// WriteSWF writes a log in the Standard Workload Format, version 2.2: the
// header's lines, then the records as they come, columns parted by one blank.
// ReadSWF reads back equal records if they are usable and sorted by submit time.
//
// A record the reader would call bad, or a header line that holds a line's end,
// is an *berth.Error with code Invalid; what was written until then stays
// written. Failures of w are wrapped. Cost: O(records), no allocation for each.
func WriteSWF(w io.Writer, header Header, records []Record) error {
	out := bufio.NewWriterSize(w, bufferSize)
	for i, line := range header {
		if strings.ContainsAny(line, "\r\n") {
			return berth.Errorf(berth.Invalid, "header", "line %d holds a line's end", i+1)
		}
		_, _ = out.WriteString(";" + line + "\n") // Flush tells
	}
	var line []byte
	for i := range records {
		var err error
		if line, err = records[i].appendSWF(line[:0]); err != nil {
			return err
		}
		_, _ = out.Write(line) // Flush tells
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write workload: %w", err)
	}
	return nil
}

// appendSWF appends the record's line.
func (r *Record) appendSWF(dst []byte) ([]byte, error) {
	values := [columns]int64{
		colJob: r.Job, colSubmit: int64(r.Submit), colWait: int64(r.Wait), colRun: int64(r.Run),
		colProcs: int64(r.Procs), colMemory: r.Memory, colReqProcs: int64(r.ReqProcs),
		colReqTime: int64(r.ReqTime), colReqMemory: r.ReqMemory, colStatus: int64(r.Status),
		colUser: int64(r.User), colGroup: int64(r.Group), colApp: int64(r.App), colQueue: int64(r.Queue),
		colPartition: int64(r.Partition), colPreceding: r.Preceding, colThink: int64(r.Think),
	}
	if !(r.CPU == -1 || 0 <= r.CPU && r.CPU < float64(timeLimit)) {
		return nil, badColumn(r, colCPU, strconv.FormatFloat(r.CPU, 'g', -1, 64), "want -1 or a number from 0 up, below 2^42")
	}
	for i, v := range values {
		if i > 0 {
			dst = append(dst, ' ')
		}
		if i == colCPU {
			dst = strconv.AppendFloat(dst, r.CPU, 'f', -1, 64)
			continue
		}
		if want := swfColumns[i].judge(v, v < 0, v == -1); want != "" {
			return nil, badColumn(r, i, strconv.FormatInt(v, 10), want)
		}
		dst = strconv.AppendInt(dst, v, 10)
	}
	return append(dst, '\n'), nil
}

func badColumn(r *Record, col int, value, want string) error {
	return berth.Errorf(berth.Invalid, swfColumns[col].name, "job %d: %s: %s", r.Job, value, want)
}

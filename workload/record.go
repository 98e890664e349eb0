package workload

import (
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
)

// Record is one job of a log or a model: the 18 columns of the Standard
// Workload Format, version 2.2, in their order. -1 in a field means unknown.
// Times are seconds of the log's own clock, durations are seconds.
type Record struct {
	Job       int64          // 1: job number, unique among the usable records of a log
	Submit    berth.Time     // 2: submit time, fractions rounded down
	Wait      berth.Duration // 3: wait time, fractions rounded up
	Run       berth.Duration // 4: run time, fractions rounded up
	Procs     berth.Count    // 5: allocated processors
	CPU       float64        // 6: average CPU time used per processor
	Memory    int64          // 7: average memory used per processor, KB
	ReqProcs  berth.Count    // 8: requested processors
	ReqTime   berth.Duration // 9: requested time, fractions rounded up
	ReqMemory int64          // 10: requested memory per processor, KB
	Status    int32          // 11: 0 failed, 1 completed, 2 to 4 partial, 5 cancelled
	User      int32          // 12
	Group     int32          // 13
	App       int32          // 14: executable
	Queue     int32          // 15
	Partition int32          // 16
	Preceding int64          // 17: job that had to end before this one was submitted
	Think     berth.Duration // 18: from that job's end to this one's submission
}

// Size returns the number of processors the job is about: the allocated ones,
// or where those are not known or 0 the requested ones. A size that is not
// positive makes the record unusable.
func (r *Record) Size() berth.Count {
	if r.Procs > 0 {
		return r.Procs
	}
	return r.ReqProcs
}

// Header is the comment block above the records of a log, one element per
// line without the leading semicolon and the line's end. It is kept whole,
// because notices in it may have to travel with the data.
type Header []string

// Get returns the trimmed value of the first line "Key: Value" with that key;
// letter case does not matter. It reports false if there is none.
// Cost: O(lines).
func (h Header) Get(key string) (string, bool) {
	for _, line := range h {
		k, value, found := strings.Cut(line, ":")
		if found && strings.EqualFold(strings.TrimSpace(k), key) {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}

// Int returns the leading integer of the key's value, such as 1664 of
// "1664 (72, 1368, 224)". It reports false if the key is missing or its value
// does not start with a number that fits an int64.
func (h Header) Int(key string) (int64, bool) {
	value, _ := h.Get(key)
	end := 0
	for end < len(value) && (isDigit(value[end]) || end == 0 && value[end] == '-') {
		end++
	}
	n, err := strconv.ParseInt(value[:end], 10, 64)
	return n, err == nil
}

// PEs returns the machine's size, the leading integer of MaxProcs, or 0 if the
// header has none between 1 and berth.MaxPEs. MaxNodes is no substitute: a
// node may hold several processors.
func (h Header) PEs() berth.Count {
	n, ok := h.Int("MaxProcs")
	if !ok || n < 1 || n > berth.MaxPEs {
		return 0
	}
	return berth.Count(n)
}

// UnixStart returns the Unix time of the log's second 0, and false if the
// header does not tell.
func (h Header) UnixStart() (int64, bool) { return h.Int("UnixStartTime") }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

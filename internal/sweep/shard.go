package sweep

import (
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
)

// Shard is the I-th of N parts of a plan, I from 1: every N-th cell. The zero
// value is all of it.
type Shard struct{ I, N int }

// maxShards bounds the parts: more than there are machines.
const maxShards = 1 << 20

// ParseShard reads I/N, such as 2/8.
func ParseShard(text string) (Shard, error) {
	first, last, ok := strings.Cut(text, "/")
	i, wrongI := strconv.Atoi(first)
	n, wrongN := strconv.Atoi(last)
	s := Shard{i, n}
	if !ok || wrongI != nil || wrongN != nil || s == (Shard{}) || s.validate() != nil {
		return Shard{}, berth.Errorf(berth.Invalid, "shard", "%q; want I/N, the I-th of N parts, such as 2/8", text)
	}
	return s, nil
}

// String writes the shard as ParseShard reads it.
func (s Shard) String() string { return strconv.Itoa(s.I) + "/" + strconv.Itoa(s.N) }

func (s Shard) validate() error {
	if s != (Shard{}) && (s.N < 1 || s.N > maxShards || s.I < 1 || s.I > s.N) {
		return berth.Errorf(berth.Invalid, "shard", "%s; want I/N, the I-th of N parts, such as 2/8", s)
	}
	return nil
}

// whole reports whether the shard is all of a plan.
func (s Shard) whole() bool { return s.N <= 1 }

// has reports whether cell i, from 0, belongs to the shard.
func (s Shard) has(i int) bool { return s.whole() || i%s.N == s.I-1 }

package measure

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"iter"
	"strconv"

	"github.com/berth-hpc/berth"
)

// Hasher computes a decision hash line by line. Make one with NewHasher.
type Hasher struct {
	sum hash.Hash
	buf []byte // reused
}

// NewHasher returns a Hasher that has seen no line.
func NewHasher() *Hasher { return &Hasher{sum: sha256.New()} }

// Add takes the next line of the schedule into the hash. Lines that are not
// requests change nothing; each part of a request is a line of its own.
func (h *Hasher) Add(line *berth.Line) {
	if !isRequest(line) {
		return
	}
	h.buf = append(appendDecision(h.buf[:0], line), '\n')
	h.sum.Write(h.buf)
}

// appendDecision appends what was decided of a line, without a newline.
func appendDecision(b []byte, line *berth.Line) []byte {
	b = append(b, line.ID...)
	if line.Accepted {
		b = append(b, "\t1"...)
	} else {
		b = append(b, "\t0"...)
	}
	b = appendText(b, string(line.Reason))
	b = appendText(b, line.Site)
	b = appendTime(b, line.Start)
	b = appendTime(b, line.End)
	if line.PEs.Empty() {
		return append(b, "\t-"...)
	}
	b, _ = line.PEs.AppendText(append(b, '\t')) // which never fails
	return b
}

// Sum returns the hash of the lines so far in hexadecimal digits. More lines
// may follow.
func (h *Hasher) Sum() string { return hex.EncodeToString(h.sum.Sum(nil)) }

// Hash returns the decision hash of a schedule: SHA-256, in hexadecimal
// digits, over one line per request in order: id, accepted (1 or 0), reason,
// site, start, end, pes, joined by tabs, absent fields "-", each line ended by
// a newline. Two runs decided alike about their requests exactly if their hashes
// are equal. What was decided about ordinary jobs is in Queue.DecisionHash.
func Hash(lines []berth.Line) string { return HashOf(berth.Each(lines)) }

// HashOf is Hash of lines none of which is needed any more when the next one comes.
func HashOf(lines iter.Seq[*berth.Line]) string {
	h := NewHasher()
	for line := range lines {
		h.Add(line)
	}
	return h.Sum()
}

func appendText(b []byte, text string) []byte {
	b = append(b, '\t')
	if text == "" {
		return append(b, '-')
	}
	return append(b, text...)
}

func appendTime(b []byte, t *berth.Time) []byte {
	b = append(b, '\t')
	if t == nil {
		return append(b, '-')
	}
	return strconv.AppendInt(b, int64(*t), 10)
}

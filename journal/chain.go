package journal

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/berth-hpc/berth"
)

// format begins every body. A program refuses bodies of formats it does not know.
const format = 1

// MaxBody bounds a record in its canonical form, so that a damaged length
// cannot ask for more memory than there is.
const MaxBody = 64 << 20

// errBody says that bytes are no body.
var errBody = errors.New("not a record in canonical form")

// AppendBody appends the canonical form of everything but the hash: the format,
// the number, the time in zigzag, then the version, the event, the changes and
// the effects, each with its length before it, all numbers as the shortest
// varints. Equal records have equal bodies, and the other way round.
func (r *Record) AppendBody(dst []byte) []byte {
	dst = r.appendHead(slices.Grow(dst, r.bodySize()))
	for _, payload := range r.payloads() {
		dst = append(binary.AppendUvarint(dst, uint64(len(payload))), payload...)
	}
	return dst
}

// appendHead appends what is in front of the payloads.
func (r *Record) appendHead(dst []byte) []byte {
	dst = append(dst, format)
	dst = binary.AppendUvarint(dst, r.Number)
	dst = binary.AppendVarint(dst, int64(r.At))
	return append(binary.AppendUvarint(dst, uint64(len(r.Version))), r.Version...)
}

// payloads returns what follows the head, each behind its length.
func (r *Record) payloads() [3][]byte { return [...][]byte{r.Event, r.Changes, r.Effects} }

// bodySize returns the most bytes that the body takes: 45 of format, numbers and lengths
// beside what they are about.
func (r *Record) bodySize() int {
	return 45 + len(r.Version) + len(r.Event) + len(r.Changes) + len(r.Effects)
}

// ParseBody reads what AppendBody wrote. The payloads alias body; what is empty
// is nil. An unknown format is a *berth.Error of code Invalid.
func ParseBody(body []byte) (Record, error) {
	if len(body) == 0 || len(body) > MaxBody {
		return Record{}, errBody
	}
	if body[0] != format {
		return Record{}, berth.Errorf(berth.Invalid, "format",
			"a record of format %d; this program reads format %d, a newer one may read it", body[0], format)
	}
	b := parser{rest: body[1:]}
	r := Record{Number: b.uvarint(), At: berth.Time(b.varint())}
	r.Version, r.Event, r.Changes, r.Effects = string(b.bytes()), b.bytes(), b.bytes(), b.bytes()
	if b.bad || len(b.rest) > 0 {
		return Record{}, errBody
	}
	return r, nil
}

// parser takes values off a body and remembers whether one was wrong.
type parser struct {
	rest []byte
	bad  bool
}

func (b *parser) uvarint() uint64 {
	v, n := binary.Uvarint(b.rest)
	if n <= 0 || (n > 1 && b.rest[n-1] == 0) { // too long, or not the shortest
		b.bad, b.rest = true, nil
		return 0
	}
	b.rest = b.rest[n:]
	return v
}

func (b *parser) varint() int64 {
	u := b.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

func (b *parser) bytes() []byte {
	n := b.uvarint()
	if n > uint64(len(b.rest)) {
		b.bad = true
	}
	if b.bad || n == 0 {
		return nil
	}
	taken := b.rest[:n:n]
	b.rest = b.rest[n:]
	return taken
}

// Seal gives the record its number and hash as the one after a place, and
// returns its own place. The hash is the SHA-256 of the previous hash followed
// by the body.
func (r *Record) Seal(after Position) Position { return new(Sealer).Seal(r, after) }

// Sealer seals records one after the other in the same memory. The zero value works;
// it is not safe for concurrent use.
type Sealer struct{ buffer []byte }

// keptBuffer is the most memory that a Sealer keeps: of more than nearly all records.
const keptBuffer = 1 << 16

// Seal is Record.Seal. It keeps nothing of the record.
func (s *Sealer) Seal(r *Record, after Position) Position {
	r.Number = after.Number + 1
	if r.bodySize() > keptBuffer { // to make memory for a copy takes longer than to hash it
		return s.sealLarge(r, after)
	}
	s.buffer = r.AppendBody(append(s.buffer[:0], after.Hash[:]...))
	r.Hash = sha256.Sum256(s.buffer)
	if cap(s.buffer) > keptBuffer {
		s.buffer = nil
	}
	return r.Position()
}

// sealLarge is Seal piece by piece.
func (s *Sealer) sealLarge(r *Record, after Position) Position {
	hash := sha256.New()
	s.buffer = r.appendHead(append(s.buffer[:0], after.Hash[:]...))
	hash.Write(s.buffer)
	for _, payload := range r.payloads() {
		s.buffer = binary.AppendUvarint(s.buffer[:0], uint64(len(payload)))
		hash.Write(s.buffer)
		hash.Write(payload)
	}
	hash.Sum(r.Hash[:0])
	return r.Position()
}

// hash returns the hash of the body that follows p.
func (p Position) hash(body []byte) Hash {
	h := sha256.New()
	h.Write(p.Hash[:])
	h.Write(body)
	var sum Hash
	h.Sum(sum[:0])
	return sum
}

// Encode checks that records follow one another from a place on and returns
// their bodies, which share memory. The error is of code Conflict if the first does not
// follow, of code Invalid for the others.
func Encode(after Position, records []Record) ([][]byte, error) {
	bodies := make([][]byte, len(records))
	size := 0
	for i := range records {
		size += len(after.Hash) + records[i].bodySize()
	}
	all := make([]byte, 0, size) // each hash with the body that follows it
	for i := range records {
		r := &records[i]
		code := berth.Invalid
		if i == 0 {
			code = berth.Conflict
		}
		if r.Number != after.Number+1 {
			return nil, berth.Errorf(code, "number", "record %d after record %d; it must be %d", r.Number, after.Number, after.Number+1)
		}
		begin := len(all)
		all = r.AppendBody(append(all, after.Hash[:]...))
		bodies[i] = all[begin+len(after.Hash) : len(all) : len(all)]
		if len(bodies[i]) > MaxBody {
			return nil, berth.Errorf(berth.Invalid, "record", "record %d is of %d bytes; the limit is %d", r.Number, len(bodies[i]), MaxBody)
		}
		if sha256.Sum256(all[begin:]) != r.Hash {
			return nil, berth.Errorf(code, "hash", "record %d does not continue the history that ends with record %d (%.8s…)",
				r.Number, after.Number, after.Hash)
		}
		after = r.Position()
	}
	return bodies, nil
}

// Decode reads the body of the record that follows a place and checks it
// against the hash it was stored with. A record that is not the one that was
// written is a *Damage.
func Decode(after Position, stored Hash, body []byte) (Record, error) {
	damage := func(reason string) (Record, error) {
		return Record{}, &Damage{After: after, Offset: -1, Reason: reason}
	}
	if after.hash(body) != stored {
		return damage("its hash is not that of its bytes and of the record before")
	}
	r, err := ParseBody(body)
	var foreign *berth.Error
	switch {
	case errors.As(err, &foreign):
		return Record{}, err
	case err != nil:
		return damage(err.Error())
	case r.Number != after.Number+1:
		return damage("it carries another number")
	}
	r.Hash = stored
	return r, nil
}

// Fresh returns the records that are not yet in a log that ends at last, checked
// to follow it, with their bodies. Records up to last are there already if the
// latest of them has the hash that the log has for its number, which at tells;
// the chain vouches for those before. Errors are those of Log.Append.
func Fresh(last Position, records []Record, at func(number uint64) (Hash, error)) ([]Record, [][]byte, error) {
	if len(records) > 0 && 0 < records[0].Number && records[0].Number <= last.Number {
		known := min(last.Number-records[0].Number, uint64(len(records)-1))
		overlap := &records[known]
		hash, err := at(overlap.Number)
		if err != nil {
			return nil, nil, err
		}
		if overlap.Hash != hash {
			return nil, nil, berth.Errorf(berth.Conflict, "hash", "record %d is there already with another content", overlap.Number)
		}
		records = records[known+1:]
	}
	if len(records) == 0 {
		return nil, nil, nil
	}
	bodies, err := Encode(last, records)
	return records, bodies, err
}

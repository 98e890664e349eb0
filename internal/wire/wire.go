// Package wire writes the module's nouns in a compact binary form and reads them
// back: the payloads of the journal and the snapshots of the engine. It does not
// frame, check or store what it writes, and it knows no engine.
//
// A struct is a list of fields, each a number and a value, in ascending order,
// ended by a zero. Fields that have their zero value are left out. So a field
// that is added later, under a new number, does not change the form of anything
// written before, and an older program meets a field it does not know as an
// error rather than as silence. Integers are varints, in zigzag where they have
// a sign; strings and lists have their length before them. Equal values have
// equal bytes, and any bytes that are not the form of a value are refused.
//
// One function per struct both writes and reads it: it names the fields once.
package wire

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/berth-hpc/berth"
)

// Coder writes values into bytes, or reads them from bytes. The fields of a
// struct must be named in ascending order of their numbers, which must be 1 to
// 127, and End must follow them.
type Coder struct {
	reading bool
	out     []byte
	in      []byte
	err     error

	names map[string]string // strings met while reading, of those that recur
	runs  []berth.Run       // scratch space
}

// Writer returns a coder that appends to dst, which may be nil.
func Writer(dst []byte) *Coder { return &Coder{out: dst} }

// Reader returns a coder that reads from data. What it reads does not alias
// data.
func Reader(data []byte) *Coder { return &Coder{reading: true, in: data, names: map[string]string{}} }

// Reset lets a reader read other data.
func (c *Coder) Reset(data []byte) { c.in, c.err = data, nil }

// Bytes returns what has been written.
func (c *Coder) Bytes() []byte { return c.out }

// Reading reports whether values are being read.
func (c *Coder) Reading() bool { return c.reading }

// Rest returns what has not been read.
func (c *Coder) Rest() []byte { return c.in }

// Fail makes the coder fail if nothing was wrong so far. The error is of code
// Invalid.
func (c *Coder) Fail(format string, args ...any) {
	if c.err == nil {
		c.err = berth.Errorf(berth.Invalid, "bytes", format, args...)
	}
	c.in = nil
}

// Err returns what was wrong with what was read, of code Invalid.
func (c *Coder) Err() error { return c.err }

// Done returns Err, and an error if anything is left to be read.
func (c *Coder) Done() error {
	if c.err == nil && len(c.in) > 0 {
		c.Fail("%d bytes after the end", len(c.in))
	}
	return c.err
}

// Field is true if the field of that number must be written or read now: when
// writing, if it is present, when reading, if it comes next.
func (c *Coder) Field(number byte, present bool) bool {
	if !c.reading {
		if present {
			c.out = append(c.out, number)
		}
		return present
	}
	if len(c.in) == 0 || c.in[0] != number {
		return false
	}
	c.in = c.in[1:]
	return true
}

// End ends a struct.
func (c *Coder) End() {
	switch {
	case !c.reading:
		c.out = append(c.out, 0)
	case c.err != nil:
	case len(c.in) == 0:
		c.Fail("cut off")
	case c.in[0] != 0:
		c.Fail("field %d is unknown here, out of order or there twice; a newer program may have written it", c.in[0])
	default:
		c.in = c.in[1:]
	}
}

// nonzero refuses a field that is there although it need not be.
func (c *Coder) nonzero(zero bool) {
	if zero && c.reading {
		c.Fail("a field with its zero value")
	}
}

// uvarint reads an unsigned number; 0 where there is none.
func (c *Coder) uvarint() uint64 {
	u, n := binary.Uvarint(c.in)
	switch {
	case n == 0:
		c.Fail("cut off")
		return 0
	case n < 0 || (n > 1 && c.in[n-1] == 0):
		c.Fail("a number that is not in its shortest form")
		return 0
	}
	c.in = c.in[n:]
	return u
}

// length writes the length of a list, or reads it: ok is false if there are
// fewer bytes to come, for each element takes one or more. So a wrong length
// cannot ask for memory out of proportion to the input.
func (c *Coder) length(n int) (length int, ok bool) {
	if !c.reading {
		c.out = binary.AppendUvarint(c.out, uint64(n))
		return n, true
	}
	u := c.uvarint()
	if u > uint64(len(c.in)) {
		c.Fail("a length of %d with %d bytes to come", u, len(c.in))
		return 0, false
	}
	return int(u), true
}

// Uint is a field of an unsigned number.
func Uint[T ~uint8 | ~uint32 | ~uint64](c *Coder, number byte, v *T) {
	if !c.Field(number, *v != 0) {
		return
	}
	if !c.reading {
		c.out = binary.AppendUvarint(c.out, uint64(*v))
		return
	}
	u := c.uvarint()
	if *v = T(u); uint64(*v) != u {
		c.Fail("%d is too large for its field", u)
	}
	c.nonzero(*v == 0)
}

// Int is a field of a number with a sign.
func Int[T ~int | ~int32 | ~int64](c *Coder, number byte, v *T) {
	if c.Field(number, *v != 0) {
		BareInt(c, v)
		c.nonzero(*v == 0)
	}
}

// BareInt is an element of a list of numbers with a sign.
func BareInt[T ~int | ~int32 | ~int64](c *Coder, v *T) {
	if !c.reading {
		c.out = binary.AppendVarint(c.out, int64(*v))
		return
	}
	u := c.uvarint()
	i := int64(u>>1) ^ -int64(u&1)
	if *v = T(i); int64(*v) != i {
		c.Fail("%d is too large for its field", i)
	}
}

// Float is a field of a number with a fraction, written as its bits, so that it is the same
// when it is read.
func Float(c *Coder, number byte, v *float64) {
	bits := math.Float64bits(*v)
	if Uint(c, number, &bits); c.Reading() {
		*v = math.Float64frombits(bits)
	}
}

// Bool is a field of a truth value.
func Bool(c *Coder, number byte, v *bool) {
	if c.Field(number, *v) && c.reading {
		*v = true
	}
}

// String is a field of text that seldom recurs.
func String[T ~string](c *Coder, number byte, v *T) {
	if !c.Field(number, *v != "") {
		return
	}
	if !c.reading {
		c.text(string(*v))
		return
	}
	*v = T(c.take())
	c.nonzero(*v == "")
}

// BareText is an element of a list of texts.
func BareText[T ~string](c *Coder, v *T) {
	if !c.reading {
		c.text(string(*v))
		return
	}
	*v = T(c.take())
}

// Name is a field of text that is the same in many places; the reader shares
// its memory.
func Name[T ~string](c *Coder, number byte, v *T) {
	if !c.Field(number, *v != "") {
		return
	}
	if !c.reading {
		c.text(string(*v))
		return
	}
	*v = T(c.shared(c.take()))
	c.nonzero(*v == "")
}

// maxNames bounds the memory of the names a reader shares: beyond it they are
// read like any text.
const maxNames = 1 << 16

func (c *Coder) shared(text []byte) string {
	if name, ok := c.names[string(text)]; ok {
		return name
	}
	name := string(text)
	if len(c.names) < maxNames {
		c.names[name] = name
	}
	return name
}

func (c *Coder) text(s string) {
	c.out = append(binary.AppendUvarint(c.out, uint64(len(s))), s...)
}

// take reads bytes with their length before them. They alias the input.
func (c *Coder) take() []byte {
	n, _ := c.length(0)
	taken := c.in[:n]
	c.in = c.in[n:]
	return taken
}

// Raw is a field of bytes that have a form of their own.
func Raw(c *Coder, number byte, v *[]byte) {
	if !c.Field(number, len(*v) > 0) {
		return
	}
	if !c.reading {
		c.out = append(binary.AppendUvarint(c.out, uint64(len(*v))), *v...)
		return
	}
	*v = append([]byte(nil), c.take()...)
	c.nonzero(len(*v) == 0)
}

// Enum is a field of one of a closed list of words, written as its place in the
// list, from 1, so that words may be added at its end. A word that is not in the
// list is written in full; a reader that has it in its list by then takes both.
func Enum[T ~string](c *Coder, number byte, v *T, words []T) {
	if !c.Field(number, *v != "") {
		return
	}
	if !c.reading {
		for i, word := range words {
			if word == *v {
				c.out = binary.AppendUvarint(c.out, uint64(i)+1)
				return
			}
		}
		c.out = append(c.out, 0)
		c.text(string(*v))
		return
	}
	place := c.uvarint()
	switch {
	case place > uint64(len(words)):
		c.Fail("word %d of a list of %d; a newer program may have written it", place, len(words))
	case place > 0:
		*v = words[place-1]
	default:
		*v = T(c.shared(c.take()))
		c.nonzero(*v == "")
	}
}

// Struct is a field of a struct whose fields code names. It is left out
// if it is empty, which the caller tells.
func Struct[T any](c *Coder, number byte, v *T, empty bool, code func(*Coder, *T)) {
	if c.Field(number, !empty) {
		start := len(c.in)
		code(c, v)
		c.nonzero(start-len(c.in) == 1) // nothing but the end
	}
}

// Pointer is a field of a struct that may be absent.
func Pointer[T any](c *Coder, number byte, v **T, code func(*Coder, *T)) {
	if !c.Field(number, *v != nil) {
		return
	}
	if c.reading {
		*v = new(T)
	}
	code(c, *v)
}

// List is a field of a list. An empty one is read as nil.
func List[T any](c *Coder, number byte, v *[]T, code func(*Coder, *T)) {
	if c.Field(number, len(*v) > 0) {
		BareList(c, v, code)
		c.nonzero(len(*v) == 0)
	}
}

// ListInto is List, and reads a list into the room that its caller has for it, where that is enough.
func ListInto[T any](c *Coder, number byte, v *[]T, code func(*Coder, *T)) {
	room := *v
	if c.reading {
		*v = nil
	}
	if !c.Field(number, len(*v) > 0) {
		return
	}
	n, ok := c.length(len(*v))
	if !ok {
		return
	}
	if c.reading {
		switch {
		case n > 0 && n <= cap(room):
			*v = room[:n]
			clear(*v)
		case n > 0:
			*v = make([]T, n)
		}
	}
	bareItems(c, *v, code)
	c.nonzero(n == 0)
}

// BareList is a list that is no field.
func BareList[T any](c *Coder, v *[]T, code func(*Coder, *T)) {
	n, ok := c.length(len(*v))
	if !ok {
		return
	}
	if c.reading {
		if *v = nil; n > 0 {
			*v = make([]T, n)
		}
	}
	bareItems(c, *v, code)
}

func bareItems[T any](c *Coder, v []T, code func(*Coder, *T)) {
	for i := range v {
		if code(c, &v[i]); c.err != nil {
			return
		}
	}
}

// PESet is a field of a set of PEs: its runs, each as the distance from the
// one before and its length.
func PESet(c *Coder, number byte, v *berth.PESet) {
	if c.Field(number, !v.Empty()) {
		BarePESet(c, v)
		c.nonzero(v.Empty())
	}
}

// manyRuns is from how many runs on room for a set is made at once.
const manyRuns = 64

// BarePESet is an element of a list of sets.
func BarePESet(c *Coder, v *berth.PESet) {
	runs := v.Runs()
	n, ok := c.length(len(runs))
	if !ok {
		return
	}
	at := berth.PE(0)
	if !c.reading {
		if len(runs) > manyRuns {
			c.out = slices.Grow(c.out, 3*len(runs))
		}
		for _, run := range runs {
			c.out = binary.AppendUvarint(c.out, uint64(run.Lo-at))
			c.out = binary.AppendUvarint(c.out, uint64(run.Hi-run.Lo))
			at = run.Hi
		}
		return
	}
	c.runs = c.runs[:0]
	for i := range n {
		gap, length := c.uvarint(), c.uvarint()
		if (gap == 0 && i > 0) || length == 0 || gap > math.MaxInt32 || length > math.MaxInt32 ||
			uint64(at)+gap+length > math.MaxInt32 {
			c.Fail("a set of PEs whose runs touch, are empty or too long")
			return
		}
		lo := at + berth.PE(gap)
		at = lo + berth.PE(length)
		c.runs = append(c.runs, berth.Run{Lo: lo, Hi: at})
	}
	*v = berth.PESet{}
	if n > 0 {
		*v = berth.NewPESet(c.runs...)
	}
}

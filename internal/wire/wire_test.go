package wire_test

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/wire"
)

type sample struct {
	Small  uint8
	Number uint32
	Signed int32
	Wide   int64
	Flag   bool
	Text   string
	Name   string
	Word   berth.State
	Raw    []byte
	PEs    berth.PESet
	List   []int
	Texts  []string
	Inner  *sample
}

var states = []berth.State{berth.Confirmed, berth.Active}

func code(c *wire.Coder, s *sample) {
	wire.Uint(c, 1, &s.Small)
	wire.Uint(c, 2, &s.Number)
	wire.Int(c, 3, &s.Signed)
	wire.Int(c, 4, &s.Wide)
	wire.Bool(c, 5, &s.Flag)
	wire.String(c, 6, &s.Text)
	wire.Name(c, 7, &s.Name)
	wire.Enum(c, 8, &s.Word, states)
	wire.Raw(c, 9, &s.Raw)
	wire.PESet(c, 10, &s.PEs)
	wire.List(c, 11, &s.List, wire.BareInt[int])
	wire.Pointer(c, 12, &s.Inner, code)
	wire.List(c, 13, &s.Texts, wire.BareText[string])
	c.End()
}

func written(s *sample) string {
	c := wire.Writer(nil)
	code(c, s)
	return string(c.Bytes())
}

func read(form string) (sample, error) {
	var s sample
	c := wire.Reader([]byte(form))
	code(c, &s)
	return s, c.Done()
}

func draw(t *rapid.T, depth int) *sample {
	s := &sample{
		Small:  rapid.Uint8().Draw(t, "small"),
		Number: rapid.Uint32().Draw(t, "number"),
		Signed: rapid.Int32().Draw(t, "signed"),
		Wide:   rapid.Int64().Draw(t, "wide"),
		Flag:   rapid.Bool().Draw(t, "flag"),
		Text:   rapid.String().Draw(t, "text"),
		Name:   rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "name"),
		Word:   rapid.SampledFrom([]berth.State{"", berth.Confirmed, berth.Active, "unheard of"}).Draw(t, "word"),
	}
	if raw := rapid.SliceOf(rapid.Byte()).Draw(t, "raw"); len(raw) > 0 {
		s.Raw = raw
	}
	if list := rapid.SliceOf(rapid.Int()).Draw(t, "list"); len(list) > 0 {
		s.List = list
	}
	if texts := rapid.SliceOf(rapid.String()).Draw(t, "texts"); len(texts) > 0 {
		s.Texts = texts
	}
	if pes := rapid.SliceOf(rapid.IntRange(0, math.MaxInt32-1)).Draw(t, "pes"); len(pes) > 0 {
		runs := make([]berth.Run, len(pes))
		for i, pe := range pes {
			runs[i] = berth.Run{Lo: berth.PE(pe), Hi: berth.PE(pe) + 1}
		}
		s.PEs = berth.NewPESet(runs...)
	}
	if depth > 0 && rapid.Bool().Draw(t, "inner") {
		s.Inner = draw(t, depth-1)
	}
	return s
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := draw(t, 2)
		got, err := read(written(s))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(&got, s) {
			t.Fatalf("%+v was read as %+v", s, got)
		}
	})
}

func TestZeroIsOneByte(t *testing.T) {
	if form := written(&sample{}); form != "\x00" {
		t.Errorf("%q", form)
	}
}

func TestOnlyTheFormOfAValueIsRead(t *testing.T) {
	for _, c := range []struct{ name, form, want string }{
		{"nothing", "", "cut off"},
		{"no end", "\x01\x05", "cut off"},
		{"bytes after the end", "\x00\x00", "after the end"},
		{"a field with its zero value", "\x01\x00\x00", "zero value"},
		{"empty text", "\x06\x00\x00", "zero value"},
		{"empty name", "\x07\x00\x00", "zero value"},
		{"empty word", "\x08\x00\x00\x00", "zero value"},
		{"empty bytes", "\x09\x00\x00", "zero value"},
		{"empty set", "\x0a\x00\x00", "zero value"},
		{"empty list", "\x0b\x00\x00", "zero value"},
		{"out of order", "\x02\x01\x01\x01\x00", "out of order"},
		{"twice", "\x02\x01\x02\x01\x00", "twice"},
		{"unknown", "\x7f\x01\x00", "unknown"},
		{"a long form of 1", "\x02\x81\x00\x00", "shortest"},
		{"more than 64 bits", "\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x00", "shortest"},
		{"too large for 8 bits", "\x01\x80\x02\x00", "too large"},
		{"too large for 32 bits", "\x03\x80\x80\x80\x80\x10\x00", "too large"},
		{"text longer than what is there", "\x06\x05abc\x00", "a length of 5"},
		{"a list longer than what is there", "\x0b\xff\xff\xff\xff\x0f\x02\x00", "a length of"},
		{"a word beyond the list", "\x08\x03\x00", "word 3"},
		{"runs that touch", "\x0a\x02\x00\x01\x00\x01\x00", "runs"},
		{"an empty run", "\x0a\x01\x01\x00\x00", "runs"},
		{"a PE beyond 31 bits", "\x0a\x01\xff\xff\xff\xff\x07\x01\x00", "runs"},
	} {
		_, err := read(c.form)
		var e *berth.Error
		if !errors.As(err, &e) || e.Code != berth.Invalid || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// A word that a list lacks is written in full, and read by a program that has
// it in its list by then.
func TestListsOfWordsGrow(t *testing.T) {
	form := written(&sample{Word: "held"})
	states = append(states, "held")
	defer func() { states = states[:2] }()
	if s, err := read(form); err != nil || s.Word != "held" {
		t.Errorf("%q, %v", s.Word, err)
	}
	if short := written(&sample{Word: "held"}); len(short) >= len(form) {
		t.Errorf("%q is as long as %q", short, form)
	}
}

func TestNamesAreShared(t *testing.T) {
	form := []byte(written(&sample{Name: "cluster"}))
	c := wire.Reader(nil)
	var first, second sample
	for _, s := range []*sample{&first, &second} {
		c.Reset(form)
		code(c, s)
		if err := c.Done(); err != nil || s.Name != "cluster" {
			t.Fatal(s.Name, err)
		}
	}
	if n := testing.AllocsPerRun(100, func() {
		c.Reset(form)
		code(c, &first)
	}); n > 0 {
		t.Errorf("%v allocations to read a name met before", n)
	}
}

func FuzzReader(f *testing.F) {
	f.Add(written(&sample{Small: 1, Text: "x", List: []int{1, -2}, PEs: berth.PEsOf(1, 2, 9)}))
	f.Add(written(&sample{Word: "unheard of", Inner: &sample{Wide: math.MinInt64, Flag: true}}))
	f.Fuzz(func(t *testing.T, form string) {
		s, err := read(form)
		if err != nil {
			return
		}
		again, err := read(written(&s))
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Fatalf("%q was read as %+v, and that as %+v, %v", form, s, again, err)
		}
	})
}

// A list is read into the room that is there for it, or into its own where that is too little; one that is left out is nil.
func TestListsAreReadIntoRoom(t *testing.T) {
	for _, c := range []struct {
		written []int64
		room    int
		reused  bool
	}{{nil, 2, false}, {[]int64{7}, 0, false}, {[]int64{7}, 1, true}, {[]int64{7, 8}, 3, true}, {[]int64{7, 8}, 1, false}} {
		w := wire.Writer(nil)
		wire.ListInto(w, 1, &c.written, wire.BareInt[int64])
		w.End()
		room := make([]int64, c.room)
		for i := range room {
			room[i] = -1
		}
		read, in := room[:0], wire.Reader(w.Bytes())
		wire.ListInto(in, 1, &read, wire.BareInt[int64])
		in.End()
		if err := in.Done(); err != nil || !slices.Equal(read, c.written) || (read == nil) != (c.written == nil) {
			t.Errorf("%v is read as %v, %v", c.written, read, err)
		}
		if reused := len(read) > 0 && len(room) > 0 && &read[0] == &room[0]; reused != c.reused {
			t.Errorf("%v is read into room for %d: %t, want %t", c.written, c.room, reused, c.reused)
		}
	}
}

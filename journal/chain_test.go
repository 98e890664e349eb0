package journal

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
)

var sample = Record{
	Number: 300, At: -5, Version: "v1", Event: []byte("ev"), Changes: []byte{0, 1}, Effects: nil,
}

// The bytes of journals that exist: they must be read the same for ever.
func TestTheFormOfABodyStaysAsItIs(t *testing.T) {
	const want = "\x01" + "\xac\x02" + "\x09" + "\x02v1" + "\x02ev" + "\x02\x00\x01" + "\x00"
	if body := sample.AppendBody(nil); string(body) != want {
		t.Errorf("%q, want %q", body, want)
	}
	r := Record{At: 7, Version: "v1", Event: []byte("first")}
	first := r.Seal(Position{})
	const hash = "634b254decab42f6dec614d0f7ab1a60db31ebab4d6ada031203436f82f2edb7"
	if first.Number != 1 || first.Hash.String() != hash {
		t.Errorf("%d %v", first.Number, first.Hash)
	}
}

// Records that are sealed in the same memory, large ones and small ones in turn, are
// those that are sealed each by itself, and their bodies in one batch are theirs.
func TestRecordsSealedInTheSameMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var sealer Sealer
		var after Position
		var list []Record
		for range rapid.IntRange(1, 20).Draw(t, "records") {
			r := records(t)
			if rapid.IntRange(0, 9).Draw(t, "large") == 0 {
				r.Changes = make([]byte, keptBuffer+1)
			}
			alone := r
			if at, want := sealer.Seal(&r, after), alone.Seal(after); at != want || r.Number != alone.Number {
				t.Fatalf("sealed at %v, by itself at %v", at, want)
			}
			list, after = append(list, r), r.Position()
		}
		bodies, err := Encode(Position{}, list)
		if err != nil {
			t.Fatal(err)
		}
		for i := range list {
			if body := list[i].AppendBody(nil); !bytes.Equal(bodies[i], body) || cap(bodies[i]) != len(bodies[i]) {
				t.Fatalf("the body of record %d is %q with room for %d, want %q", i+1, bodies[i], cap(bodies[i]), body)
			}
		}
	})
}

// A body is written into memory that is made once.
func TestTheRoomForABodyIsMadeOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector, under which short tests run, allocates as well")
	}
	long := make([]byte, 5000)
	for name, r := range map[string]Record{
		"version": {Version: string(long)}, "event": {Event: long}, "changes": {Changes: long}, "effects": {Effects: long},
		"numbers": {Number: 1<<64 - 1, At: -1 << 62},
	} {
		if n := testing.AllocsPerRun(10, func() { r.AppendBody(nil) }); n != 1 {
			t.Errorf("a record with a large %s is written in %v allocations, want 1", name, n)
		}
	}
}

func records(t *rapid.T) Record {
	r := Record{
		Number:  rapid.Uint64().Draw(t, "number"),
		At:      berth.Time(rapid.Int64().Draw(t, "at")),
		Version: rapid.String().Draw(t, "version"),
	}
	for _, p := range []*[]byte{&r.Event, &r.Changes, &r.Effects} {
		if payload := rapid.SliceOf(rapid.Byte()).Draw(t, "payload"); len(payload) > 0 {
			*p = payload
		}
	}
	return r
}

func TestABodyIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := records(t)
		got, err := ParseBody(r.AppendBody(nil))
		if err != nil || !reflect.DeepEqual(got, r) {
			t.Fatalf("%+v was read as %+v, %v", r, got, err)
		}
	})
}

func TestMalformedBodiesAreRefused(t *testing.T) {
	body := sample.AppendBody(nil)
	for n := range body {
		if _, err := ParseBody(body[:n]); err == nil {
			t.Errorf("the first %d of %d bytes were read", n, len(body))
		}
	}
	for _, c := range []struct{ name, body string }{
		{"a byte after the end", string(body) + "\x00"},
		{"a number in a long form", "\x01\x81\x00\x00\x00\x00\x00\x00"},
		{"a number beyond 64 bits", "\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x00\x00\x00\x00\x00"},
		{"a length beyond the end", "\x01\x01\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"},
	} {
		if _, err := ParseBody([]byte(c.body)); err == nil {
			t.Errorf("%s was read", c.name)
		}
	}
	var e *berth.Error
	if _, err := ParseBody([]byte("\x02\x01\x00\x00\x00\x00\x00")); !errors.As(err, &e) || e.Code != berth.Invalid {
		t.Errorf("another format: %v", err)
	}
}

func FuzzParseBody(f *testing.F) {
	f.Add(sample.AppendBody(nil))
	f.Add((&Record{Number: 1}).AppendBody(nil))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := ParseBody(body)
		if err == nil && !bytes.Equal(r.AppendBody(nil), body) {
			t.Fatalf("% x is a second form of % x", body, r.AppendBody(nil))
		}
	})
}

// chain returns n sealed records.
func chain(n int) []Record {
	list := make([]Record, n)
	var last Position
	for i := range list {
		list[i].Event = []byte{byte(i)}
		list[i].At = berth.Time(i)
		last = list[i].Seal(last)
	}
	return list
}

func TestEveryBitOfARecordIsInItsHash(t *testing.T) {
	list := chain(3)
	after, body := list[1].Position(), list[2].AppendBody(nil)
	if r, err := Decode(after, list[2].Hash, body); err != nil || !reflect.DeepEqual(r, list[2]) {
		t.Fatal(r, err)
	}
	damaged := func(what string, after Position, hash Hash, body []byte) {
		t.Helper()
		var d *Damage
		if _, err := Decode(after, hash, body); !errors.As(err, &d) || d.After != after || d.Offset != -1 {
			t.Errorf("%s: %v", what, err)
		}
	}
	for bit := range 8 * len(body) {
		flipped := bytes.Clone(body)
		flipped[bit/8] ^= 1 << (bit % 8)
		damaged("a bit of the body", after, list[2].Hash, flipped)
	}
	for bit := range 8 * len(after.Hash) {
		other := after
		other.Hash[bit/8] ^= 1 << (bit % 8)
		damaged("a bit of the hash before", other, list[2].Hash, body)
		hash := list[2].Hash
		hash[bit/8] ^= 1 << (bit % 8)
		damaged("a bit of the hash", after, hash, body)
	}
	// A record with the right hash in the wrong place.
	moved := list[2]
	moved.Number = 9
	damaged("another number", after, after.hash(moved.AppendBody(nil)), moved.AppendBody(nil))
	damaged("a cut body", after, after.hash(body[:5]), body[:5])
}

func TestDamageSaysWhereAndWhatIsLost(t *testing.T) {
	d := &Damage{
		After: Position{Number: 41}, File: "journal.db", Offset: 8192, Acknowledged: 50, Reason: "torn", Cause: errors.New("why"),
	}
	const want = "journal: damaged after record 41, in journal.db at byte 8192: torn: why; record 50 had been acknowledged"
	if d.Error() != want {
		t.Errorf("%s", d)
	}
	if !errors.Is(d, d.Cause) {
		t.Error("the cause is hidden")
	}
}

func TestHashesAreWrittenInHex(t *testing.T) {
	h := chain(1)[0].Hash
	text, err := h.MarshalText()
	if err != nil || string(text) != h.String() || len(text) != 64 {
		t.Fatalf("%s, %v", text, err)
	}
	var back Hash
	if err := back.UnmarshalText(text); err != nil || back != h {
		t.Errorf("%v, %v", back, err)
	}
	for _, bad := range []string{"", string(text[:62]), string(text) + "00", strings.Repeat("z", 64)} {
		if err := back.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

package record

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
)

// fill sets what v is made of, at random; full leaves nothing at its zero
// value. Fields that only their package sees are left alone, but for sets of
// PEs.
func fill(v reflect.Value, rng *rand.Rand, full bool) {
	if !full && rng.IntN(3) == 0 {
		return
	}
	if v.Type() == reflect.TypeFor[berth.PESet]() {
		pes := []berth.Run{{Lo: berth.PE(rng.IntN(5)), Hi: 7}, {Lo: 9, Hi: berth.PE(10 + rng.IntN(1<<19))}}
		v.Set(reflect.ValueOf(berth.NewPESet(pes[:1+rng.IntN(2)]...)))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), rng, full)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), rng, full)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1+rng.IntN(3), 4))
		for i := range v.Len() {
			fill(v.Index(i), rng, full)
		}
	case reflect.String:
		v.SetString(words[rng.IntN(len(words))])
	case reflect.Int, reflect.Int32, reflect.Int64:
		n := rng.Int64() >> rng.IntN(64)
		if v.OverflowInt(n) || n == 0 {
			n = -3
		}
		v.SetInt(n)
	case reflect.Float64:
		v.SetFloat(float64(rng.Int64N(1<<40)+1) / 3)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint64:
		v.SetUint(max(1, rng.Uint64()>>rng.IntN(64)))
	default: // add what is new to this function, and to package wire
		panic("a field of a kind that the test does not know: " + v.Type().String())
	}
}

var words = []string{"accepted", "reserve", "submit", "job", "active", "quota", "x", "späť", "a word that is in no list"}

// subject is one of the things that are written.
type subject struct {
	name string
	new  func() any
	// write and read go through the package's own functions.
	write func(any) []byte
	read  func(*Decoder, []byte) (any, error)
}

var subjects = []subject{
	{
		"event", func() any { return new(engine.Event) },
		func(v any) []byte { return AppendEvent(nil, v.(*engine.Event)) },
		func(d *Decoder, p []byte) (any, error) { e, err := d.Event(p); return &e, err },
	},
	{
		"changes", func() any { return new([]change.Change) },
		func(v any) []byte { return AppendChanges(nil, *v.(*[]change.Change)) },
		func(d *Decoder, p []byte) (any, error) { c, err := d.Changes(p); return &c, err },
	},
	{
		"effects", func() any { return new([]change.Effect) },
		func(v any) []byte { return AppendEffects(nil, *v.(*[]change.Effect)) },
		func(d *Decoder, p []byte) (any, error) { e, err := d.Effects(p); return &e, err },
	},
}

// roundTrip writes and reads a value, and writes it again.
func roundTrip(t interface{ Fatalf(string, ...any) }, s subject, d *Decoder, v any) {
	payload := s.write(v)
	got, err := s.read(d, payload)
	if err != nil {
		t.Fatalf("% x: %v", payload, err)
	}
	if diff := cmp.Diff(v, got, cmpopts.IgnoreUnexported(change.Change{}, engine.Event{}, engine.WorkflowPlan{})); diff != "" {
		t.Fatalf("written (-) is not what was read (+):\n%s", diff)
	}
	if again := s.write(got); !bytes.Equal(again, payload) {
		t.Fatalf("one value in two forms:\n% x\n% x", payload, again)
	}
}

// A field of the engine's types that is not written would be lost by every
// restart: a new field needs a number in forms.go or in wire.
func TestEveryFieldIsWritten(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, s := range subjects {
		var d Decoder
		for range 50 {
			v := s.new()
			fill(reflect.ValueOf(v).Elem(), rng, true)
			roundTrip(t, s, &d, v)
		}
	}
}

// A kind that is not in the lists would be written in full, by one word more in each
// record.
func TestEveryKindHasItsNumber(t *testing.T) {
	for _, kind := range engine.EventKinds() {
		if !slices.Contains(eventKinds, kind) {
			t.Errorf("event %q has no number", kind)
		}
	}
	for _, kind := range change.Kinds() {
		if !slices.Contains(changeKinds, kind) {
			t.Errorf("change %q has no number", kind)
		}
	}
	if len(eventKinds) != len(engine.EventKinds()) || len(changeKinds) != len(change.Kinds()) {
		t.Errorf("%d events and %d changes have numbers, there are %d and %d", len(eventKinds), len(changeKinds), len(engine.EventKinds()), len(change.Kinds()))
	}
}

func TestAnyFieldMayBeAbsent(t *testing.T) {
	for _, s := range subjects {
		t.Run(s.name, func(t *testing.T) {
			var d Decoder
			rapid.Check(t, func(t *rapid.T) {
				v := s.new()
				fill(reflect.ValueOf(v).Elem(), rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)), false)
				roundTrip(t, s, &d, v)
			})
		})
	}
}

func TestNothingIsWrittenAsNothing(t *testing.T) {
	var d Decoder
	if p := AppendChanges(nil, nil); len(p) > 0 {
		t.Errorf("no changes: % x", p)
	}
	if p := AppendEffects(nil, []change.Effect{}); len(p) > 0 {
		t.Errorf("no effects: % x", p)
	}
	if c, err := d.Changes(nil); c != nil || err != nil {
		t.Errorf("no changes: %v, %v", c, err)
	}
	if _, err := d.Event(nil); err == nil {
		t.Error("an empty payload is no event")
	}
}

// The bytes of journals that exist: they must be read the same for ever. Those of
// format 1 are read as changes of today.
func TestFormsStayAsTheyAre(t *testing.T) {
	request := berth.Rigid("r1", 100, 110, 500, 4, 60)
	request.User = "ada"
	allotment := berth.Allotment{
		Resource: berth.PoolID("s", "p"), Start: 110, End: 170, NPE: 4, PEs: berth.NewPESet(berth.Run{Lo: 8, Hi: 12}),
	}
	reservation := &berth.Reservation{
		Request: &request, State: berth.Confirmed, Sequence: 7, Allotments: []berth.Allotment{allotment},
	}
	for _, c := range []struct {
		name  string
		write []byte
		want  string
	}{
		{
			"event", AppendEvent(nil, &engine.Event{Kind: engine.EventSubmit, Request: &request}),
			"\x02" + "\x01\x02" + "\x02" + formOfRequest + "\x00",
		},
		{
			"changes",
			AppendChanges(nil, []change.Change{
				{Kind: change.Advanced, Now: 100},
				{Kind: change.Accepted, ID: "r1", Reservation: reservation},
			}),
			"\x02" + "\x02" + "\x01\x01\x02\xc8\x01\x00" + "\x01\x04\x03\x02r1\x07" +
				"\x01" + formOfRequest + "\x02\x01\x03\x07\x04\x01" +
				"\x01\x01\x01s\x02\x04pool\x03\x01p\x00\x02\xdc\x01\x03\x78\x04\x08\x05\x01\x08\x04\x00" +
				"\x00" + "\x00",
		},
		{
			"effects",
			AppendEffects(nil, []change.Effect{{Number: 3, Site: "s", Reservation: "r1", Generation: 5}}),
			"\x02" + "\x01" + "\x01\x03\x03\x01s\x04\x02r1\x05\x05\x00",
		},
	} {
		if string(c.write) != c.want {
			t.Errorf("%s:\n%q, want\n%q", c.name, c.write, c.want)
		}
	}
	var d Decoder
	effects, err := d.Effects([]byte("\x01" + "\x01" + "\x01\x03\x02\x02\x03\x01s\x04\x02r1\x00"))
	if err != nil || len(effects) != 1 || effects[0] != (change.Effect{Number: 3, Site: "s", Reservation: "r1"}) {
		t.Errorf("an effect of format 1: %+v, %v", effects, err)
	}
	const place = "\x01\x01\x01s\x02\x04pool\x03\x01p\x00\x02\xdc\x01\x03\x78\x04\x08\x00"
	const share = "\x01\x02\x06uplink\x03\x06uplink\x00\x02\x14\x03\x14\x04\x06\x00"
	const staging = "\x01\x14\x02\x28\x03\x14\x04\x0a\x00"
	changes, err := d.Changes([]byte("\x01" + "\x02" + "\x01\x0e\x03\x02r1\x00" +
		"\x01\x0e\x03\x02r1\x0b\x01" + place + "\x10\x01" + share + "\x11" + staging + "\x00"))
	if err != nil || len(changes) != 2 {
		t.Fatalf("moves of format 1: %+v, %v", changes, err)
	}
	want := berth.Transfer{Site: "s", Start: 10, End: 20, Since: 10, Kilobytes: 5, Rate: 3}
	if changes[0].Kind != change.Vacated || len(changes[1].Transfers) != 1 || changes[1].Transfers[0] != want || changes[1].Stocks != nil {
		t.Errorf("moves of format 1: %+v", changes)
	}
}

const formOfRequest = "\x01\x02r1\x03\x03ada\x04\xc8\x01\x05\xdc\x01\x06\xe8\x07\x07\x01\x01\x01\x08\x78\x00\x00"

func TestMalformedPayloadsAreRefused(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, s := range subjects {
		var d Decoder
		v := s.new()
		fill(reflect.ValueOf(v).Elem(), rng, true)
		payload := s.write(v)
		for n := range payload {
			if n == 0 && s.name != "event" {
				continue
			}
			if _, err := s.read(&d, payload[:n]); err == nil {
				t.Errorf("%s: the first %d of %d bytes were read", s.name, n, len(payload))
			}
		}
		if _, err := s.read(&d, append(bytes.Clone(payload), 0)); err == nil {
			t.Errorf("%s: a byte too many was read", s.name)
		}
		newer := bytes.Clone(payload)
		newer[0]++
		if _, err := s.read(&d, newer); err == nil {
			t.Errorf("%s: another format was read", s.name)
		}
		if got, err := s.read(&d, payload); err != nil || !reflect.DeepEqual(got, v) {
			t.Errorf("%s: a decoder is spoilt by an error: %v", s.name, err)
		}
	}
	var d Decoder
	if _, err := d.Event([]byte("\x01\x01\x02\x63\x01\x00")); err == nil {
		t.Error("an unknown field was passed over")
	}
}

func FuzzPayloads(f *testing.F) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, s := range subjects {
		v := s.new()
		fill(reflect.ValueOf(v).Elem(), rng, true)
		f.Add(s.write(v))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		for _, s := range subjects {
			var d Decoder
			v, err := s.read(&d, payload)
			if err != nil {
				continue
			}
			// A word of a list may be written in full by a program that did not
			// have it in its list, so the form may get shorter, once.
			short := s.write(v)
			if len(short) > len(payload) {
				t.Fatalf("%s: % x was read, and written longer: % x", s.name, payload, short)
			}
			roundTrip(t, s, &d, v)
		}
	})
}

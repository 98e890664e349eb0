package berth_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/berth-hpc/berth"
)

func TestValidateNamesTheField(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*berth.Request)
		field  string // empty: valid
	}{
		{"as it is", func(*berth.Request) {}, ""},
		{"immediate deadline", func(r *berth.Request) { r.Deadline = r.Ready + 5 }, ""},
		{"too short for a PE of standard speed", func(r *berth.Request) { r.Deadline = r.Ready + 1 }, ""},
		{"empty window", func(r *berth.Request) { r.Deadline = r.Ready }, "deadline"},
		{"one variant fits", func(r *berth.Request) {
			r.Parts[0].Variants = append(r.Parts[0].Variants, berth.Variant{NPE: 1, Duration: 1000})
		}, ""},
		{"immediate reservation", func(r *berth.Request) { r.Ready = r.Arrival }, ""},
		{"before its arrival", func(r *berth.Request) { r.Ready = r.Arrival - 1 }, "ready"},
		{"no id", func(r *berth.Request) { r.ID = "" }, "id"},
		{"no parts", func(r *berth.Request) { r.Parts = nil }, "parts"},
		{"no variants", func(r *berth.Request) { r.Parts[0].Variants = nil }, "variants"},
		{"no PEs", func(r *berth.Request) { r.Parts[0].Variants[0].NPE = 0 }, "npe"},
		{"largest pool", func(r *berth.Request) { r.Parts[0].Variants[0].NPE = berth.MaxPEs }, ""},
		{"too many PEs", func(r *berth.Request) { r.Parts[0].Variants[0].NPE = berth.MaxPEs + 1 }, "npe"},
		{"no time", func(r *berth.Request) { r.Parts[0].Variants[0].Duration = 0 }, "duration"},
		{"endless", func(r *berth.Request) { r.Parts[0].Variants[0].Duration = berth.TimeLimit }, "duration"},
		{"arrival beyond", func(r *berth.Request) { r.Arrival = -berth.TimeLimit }, "arrival"},
		{"ready beyond", func(r *berth.Request) { r.Ready = berth.TimeLimit }, "ready"},
		{"all requirements", func(r *berth.Request) {
			r.Requirements = berth.Requirements{
				Software: "a", Version: "2", Licences: berth.MaxLicences, MemoryMB: berth.MaxMegabytes - 1,
				StorageMB: berth.MaxMegabytes - 1, Accelerators: berth.MaxAccelerators, Partition: "p",
			}
		}, ""},
		{"version of nothing", func(r *berth.Request) { r.Version = "2" }, "version"},
		{"version that cannot be compared", func(r *berth.Request) { r.Software, r.Version = "a", "2.x" }, "version"},
		{"licences of nothing", func(r *berth.Request) { r.Licences = 2 }, "licences"},
		{"negative licences", func(r *berth.Request) { r.Software, r.Licences = "a", -1 }, "licences"},
		{"too many licences", func(r *berth.Request) { r.Software, r.Licences = "a", berth.MaxLicences+1 }, "licences"},
		{"negative memory", func(r *berth.Request) { r.MemoryMB = -1 }, "memory_mb"},
		{"endless memory", func(r *berth.Request) { r.MemoryMB = berth.MaxMegabytes }, "memory_mb"},
		{"negative storage", func(r *berth.Request) { r.StorageMB = -1 }, "storage_mb"},
		{"endless storage", func(r *berth.Request) { r.StorageMB = berth.MaxMegabytes }, "storage_mb"},
		{"negative accelerators", func(r *berth.Request) { r.Accelerators = -1 }, "accelerators"},
		{"too many accelerators", func(r *berth.Request) { r.Accelerators = berth.MaxAccelerators + 1 }, "accelerators"},
		{"deadline beyond", func(r *berth.Request) { r.Deadline = berth.TimeLimit }, "deadline"},
		{"users", func(r *berth.Request) { r.Sharing = berth.Sharing{Users: []string{"ann", "bob"}} }, ""},
		{"a group", func(r *berth.Request) { r.Sharing = berth.Sharing{Account: "a", Group: "g"} }, ""},
		{"a group beside users", func(r *berth.Request) { r.Sharing = berth.Sharing{Users: []string{"ann"}, Group: "g"} }, "group"},
		{"all users of an account", func(r *berth.Request) { r.Sharing = berth.Sharing{Account: "a", Users: []string{berth.EveryUser}} }, ""},
		{"all users of no account", func(r *berth.Request) { r.Sharing = berth.Sharing{Users: []string{berth.EveryUser}} }, "users"},
		{"all users beside one", func(r *berth.Request) {
			r.Sharing = berth.Sharing{Account: "a", Users: []string{"ann", berth.EveryUser}}
		}, "users"},
		{"many users", func(r *berth.Request) { r.Sharing = berth.Sharing{Users: make([]string, berth.MaxUsers)} }, ""},
		{"too many users", func(r *berth.Request) { r.Sharing = berth.Sharing{Users: make([]string, berth.MaxUsers+1)} }, "users"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := berth.Rigid("a", 10, 20, 90, 3, 5)
			c.change(&r)
			err := r.Validate()
			var e *berth.Error
			switch {
			case c.field == "" && err != nil:
				t.Fatal(err)
			case c.field != "" && (!errors.As(err, &e) || e.Field != c.field || e.Code != berth.Invalid):
				t.Fatalf("error %v, want one about %s", err, c.field)
			}
		})
	}
}

func TestReasonRank(t *testing.T) {
	if len(berth.Reasons()) != 11 {
		t.Errorf("%d reasons, the list is closed at 11", len(berth.Reasons()))
	}
	if berth.NoCapacity.Rank() <= berth.TooLarge.Rank() || berth.Reason("bored").Rank() != -1 {
		t.Errorf("ranks: no_capacity %d, too_large %d, unknown %d", berth.NoCapacity.Rank(), berth.TooLarge.Rank(), berth.Reason("bored").Rank())
	}
}

// Nothing overflows within the limits, and Forever absorbs.
func TestSaturation(t *testing.T) {
	const first, last = berth.Time(-berth.TimeLimit + 1), berth.Time(berth.TimeLimit - 1)
	if d := last.Sub(first); d <= 0 || berth.Area(berth.MaxPEs, d) <= 0 {
		t.Errorf("the longest span %d has the area %d", d, berth.Area(berth.MaxPEs, d))
	}
	if berth.Forever.Add(5) != berth.Forever || berth.Time(7).Add(berth.Endless) != berth.Forever {
		t.Error("Forever plus something is Forever")
	}
	if berth.Forever.Sub(first) != berth.Endless || berth.Area(3, berth.Endless) != int64(berth.Endless) {
		t.Error("an endless span and its area are Endless")
	}
	r := berth.Rectangle{Start: 4, Begin: 2, End: 16, Free: 6}
	if r.Length() != 14 || r.Area() != 84 {
		t.Errorf("length %d and area %d of the paper's first rectangle, want 14 and 84", r.Length(), r.Area())
	}
	if iv := (berth.Interval{Start: 3, End: berth.Forever}); iv.String() != "[3,forever)" || !iv.Contains(3) || iv.Length() != berth.Endless {
		t.Errorf("open interval %s", iv)
	}
	if iv := (berth.Interval{Start: 3, End: 5}); iv.Contains(5) || iv.String() != "[3,5)" {
		t.Errorf("half-open interval %s", iv)
	}
}

func TestReservationSpansItsParts(t *testing.T) {
	r := berth.Reservation{Allotments: []berth.Allotment{{Start: 5, End: 9}, {Start: 5, End: 20}, {Start: 5, End: 7}}}
	if r.Start() != 5 || r.End() != 20 {
		t.Errorf("[%d,%d), want [5,20)", r.Start(), r.End())
	}
	if (&berth.Error{Field: "npe", Msg: "0"}).Error() != "npe: 0" || (&berth.Error{Msg: "x"}).Error() != "x" {
		t.Error("an error tells its field, if it has one")
	}
}

// What a part names of PEs is put together by pool, and what cannot be meant is refused.
func TestAllowedPEsOfAPart(t *testing.T) {
	a, b, c := berth.PoolID("s", "a"), berth.PoolID("s", "b"), berth.PoolID("s", "c")
	pes := func(pool berth.ResourceID, list ...berth.PE) berth.PoolPEs {
		return berth.PoolPEs{Resource: pool, PEs: berth.PEsOf(list...)}
	}
	p := berth.Part{Only: []berth.PoolPEs{pes(a, 1, 2, 3), pes(b, 0)}, Never: []berth.PoolPEs{pes(a, 2), pes(c, 1)}}
	for pool, want := range map[berth.ResourceID]string{a: "1,3", b: "0", c: ""} {
		if set, some := p.Allowed(pool); !some || set.String() != want {
			t.Errorf("of %s it may use %q, %t, want %q", pool.Name, set, some, want)
		}
	}
	p.Eligible = berth.PEsOf(3, 4)
	if set, _ := p.Allowed(a); set.String() != "3" {
		t.Errorf("beside numbers of its own it may use %q", set)
	}
	p = berth.Part{Never: p.Never}
	if set, some := p.Allowed(a); !some || set.Contains(2) || !set.Contains(berth.MaxPEs-1) {
		t.Errorf("all but one is %q", set)
	}
	if _, some := p.Allowed(b); some {
		t.Error("what is excluded elsewhere restricts nothing")
	}
	for want, change := range map[string]func(*berth.Part){
		"only":  func(p *berth.Part) { p.Only = []berth.PoolPEs{pes(a, 1), pes(a, 2)} },
		"never": func(p *berth.Part) { p.Never = []berth.PoolPEs{{Resource: a}} },
	} {
		r := berth.Rigid("r", 0, 0, 100, 1, 10)
		change(&r.Parts[0])
		if wrong, is := errors.AsType[*berth.Error](r.Validate()); !is || wrong.Field != want {
			t.Errorf("%s: %v", want, r.Validate())
		}
	}
}

// RequiresNothing knows every requirement.
func TestNothingIsRequired(t *testing.T) {
	t.Parallel()
	if r := (berth.Requirements{}); !r.RequiresNothing() {
		t.Error("nothing is something")
	}
	kind := reflect.TypeFor[berth.Requirements]()
	for i := range kind.NumField() {
		var r berth.Requirements
		switch field := reflect.ValueOf(&r).Elem().Field(i); field.Kind() {
		case reflect.String:
			field.SetString("x")
		default:
			field.SetInt(1)
		}
		if r.RequiresNothing() {
			t.Errorf("%s is nothing", kind.Field(i).Name)
		}
	}
}

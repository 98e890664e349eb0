package form_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
)

func TestTimesAreWrittenInUTCAndReadInAnyZone(t *testing.T) {
	text, err := json.Marshal(form.Event{ID: 7, At: 1_795_262_400, Reservation: form.Reservation{ID: "r"}})
	if want := `{"id":7,"at":"2026-11-21T12:00:00Z","what":"","reservation":{"id":"r","state":""}}`; err != nil || string(text) != want {
		t.Errorf("%s %v", text, err)
	}
	var at form.Time
	for _, text := range []string{`"2026-11-21T13:00:00+01:00"`, `"2026-11-21T12:00:00.9Z"`} {
		if err := json.Unmarshal([]byte(text), &at); err != nil || at != 1_795_262_400 {
			t.Errorf("%s is %d %v", text, at, err)
		}
	}
	if err := json.Unmarshal([]byte(`"2026-11-21T13:00:00"`), &at); err == nil {
		t.Error("a time without zone is read")
	}
	if form.TimeOf(berth.Forever) != 0 || form.TimeOf(berth.TimeLimit).String() != "9999-12-31T23:59:59Z" || form.TimeOf(5) != 5 {
		t.Error(form.TimeOf(berth.Forever), form.TimeOf(berth.TimeLimit))
	}
}

func TestRequestsSayOnlyWhatIsGiven(t *testing.T) {
	for want, r := range map[string]form.Request{
		`{}`:                        {},
		`{"npe":4,"hold":true}`:     {NPE: 4, Hold: form.DefaultHold},
		`{"hold":600,"no_show":60}`: {Hold: 600, NoShow: 60},
		`{"deadline":"2026-11-21T12:00:00Z","software":"x"}`: {Deadline: 1_795_262_400, Requirements: berth.Requirements{Software: "x"}},
	} {
		if text, err := json.Marshal(r); err != nil || string(text) != want {
			t.Errorf("%s %v, want %s", text, err, want)
		}
	}
}

func TestProblemsBecomeErrors(t *testing.T) {
	var coded *berth.Error
	err := (&form.Problem{Code: berth.NotFound, Detail: "no such"}).Err()
	if !errors.As(err, &coded) || coded.Code != berth.NotFound || err.Error() != "no such" {
		t.Error(err)
	}
	err = (&form.Problem{Code: berth.Invalid, Detail: "all", Errors: []form.Fault{{Field: "a", Detail: "1"}, {Field: "b", Detail: "2"}}}).Err()
	if !errors.As(err, &coded) || coded.Field != "a" || err.Error() != "a: 1\nb: 2" {
		t.Error(err)
	}
}

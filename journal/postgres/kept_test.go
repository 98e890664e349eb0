package postgres_test

import (
	"errors"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal/postgres"
)

func codeOf(err error) berth.Code {
	if e, is := errors.AsType[*berth.Error](err); is {
		return e.Code
	}
	return ""
}

// Who reads a journal sees who writes it and what is kept beside the records; only who has
// the lease changes that.
func TestOthersSeeWhoLeadsAndWhatIsKept(t *testing.T) {
	shared(t)
	place := t.TempDir()
	leads := func(s *postgres.Store) bool { return s.Leads() == nil }
	first, err := postgres.Open(t.Context(), at(place), postgres.Options{Holder: "first", Address: "http://a.example.org:7117"})
	if err != nil {
		t.Fatal(err)
	}
	reader, err := postgres.Open(t.Context(), at(place), postgres.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Kept(t.Context(), "tokens.json"); codeOf(err) != berth.NotFound {
		t.Error(err)
	}
	if v, err := reader.KeptVersion(t.Context()); v != 0 || err != nil {
		t.Error(v, err)
	}
	for i, text := range []string{"one", "two"} {
		if err := first.Keep(t.Context(), "tokens.json", []byte(text)); err != nil {
			t.Fatal(err)
		}
		if data, err := reader.Kept(t.Context(), "tokens.json"); string(data) != text || err != nil {
			t.Errorf("%s, %v; want %s", data, err, text)
		}
		if v, err := reader.KeptVersion(t.Context()); v != uint64(i+1) || err != nil {
			t.Error(v, err)
		}
	}
	if l, err := reader.Leader(t.Context()); err != nil || l != (postgres.Leader{Number: 1, Holder: "first", Address: "http://a.example.org:7117"}) || !leads(first) {
		t.Errorf("%+v, %v", l, err)
	}
	if err := reader.Keep(t.Context(), "tokens.json", nil); codeOf(err) != berth.Denied || leads(reader) {
		t.Error("a reader keeps something: ", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if l, err := reader.Leader(t.Context()); err != nil || !l.Free || leads(first) {
		t.Errorf("%+v, %v", l, err)
	}
	second, err := postgres.Open(t.Context(), at(place), postgres.Options{Holder: "second"})
	if err != nil {
		t.Fatal(err)
	}
	if data, err := second.Kept(t.Context(), "tokens.json"); string(data) != "two" || err != nil {
		t.Errorf("%s, %v", data, err)
	}
	if l, err := reader.Leader(t.Context()); err != nil || l.Number != 2 || l.Free || l.Address != "" {
		t.Errorf("%+v, %v", l, err)
	}
	if err := errors.Join(second.Close(), reader.Close()); err != nil {
		t.Error(err)
	}
}

// What a writer keeps whose lease another one has is not kept.
func TestWhatIsKeptIsFenced(t *testing.T) {
	shared(t)
	place := t.TempDir()
	s, err := postgres.Open(t.Context(), at(place), postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Keep(t.Context(), "a", []byte("mine")); err != nil {
		t.Fatal(err)
	}
	if _, err := exec1(t, place, "UPDATE lease SET number = number + 1"); err != nil {
		t.Fatal(err)
	}
	if err := s.Keep(t.Context(), "a", []byte("still mine")); codeOf(err) != berth.Conflict {
		t.Error(err)
	}
	if data, err := s.Kept(t.Context(), "a"); string(data) != "mine" {
		t.Errorf("%s, %v", data, err)
	}
	if codeOf(s.Leads()) != berth.Conflict {
		t.Error(s.Leads())
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

//go:build linux

package local_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/local"
)

func keyTaken(err error) bool {
	coded, is := errors.AsType[*berth.Error](err)
	return is && coded.Code == berth.Conflict && coded.Field == "key"
}

func TestKeysSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	first := task(t, reserveNow(t, s, 0), "k", "/bin/true")
	id := submit(t, s, first)
	ended(t, s, id)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	if again := submit(t, s, first); again != id {
		t.Errorf("the same task is job %s, want %s", again, id)
	}
	other := first
	other.Command = []string{"/bin/false"}
	if again, err := s.Submit(t.Context(), other); !keyTaken(err) {
		t.Errorf("another task under the key: job %q %v, want a conflict of the field key", again, err)
	}
	longer := first
	longer.Variables.End++
	if again := submit(t, s, longer); again != id {
		t.Errorf("after the reservation was extended the same task is job %s, want %s", again, id)
	}
}

// An older program wrote jobs without a digest.
func TestKeysOfAnOlderProgramAreKnown(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	first := task(t, reserveNow(t, s, 0), "k", "/bin/true")
	id := submit(t, s, first)
	ended(t, s, id)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "jobs", string(id), "spec.json")
	spec := map[string]any{}
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &spec)
	}
	if err != nil {
		t.Fatal(err)
	}
	delete(spec, "digest")
	if text, err = json.Marshal(spec); err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if again := submit(t, open(t, dir), first); again != id {
		t.Errorf("the same task is job %s, want %s", again, id)
	}
}

func TestKeysOfTwoUsersAreTwoTasks(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to run tasks of two users")
	}
	s := openWith(t, local.Options{Dir: t.TempDir(), Users: map[string]string{"ada": "root", "bob": "root"}})
	r := site.Reservation{
		Name: site.NameOf(siteName, t.Name(), 1), Start: now(), End: now() + 60, Users: []string{"ada", "bob"},
		Shares: []site.Share{{Node: "quay"}},
	}
	if got, err := s.Reserve(t.Context(), r); err != nil || got.Verdict != site.Made {
		t.Fatalf("%+v %v", got, err)
	}
	if err := s.Launch(t.Context(), r.Name, nil); err != nil {
		t.Fatal(err)
	}
	of := func(user, code string) (site.JobID, int) {
		task := task(t, r, "step-1", "/bin/sh", "-c", "exit "+code)
		task.User = user
		id := submit(t, s, task)
		return id, ended(t, s, id).Result.Code
	}
	adas, three := of("ada", "3")
	bobs, four := of("bob", "4")
	if adas == bobs || three != 3 || four != 4 {
		t.Errorf("jobs %s with code %d and %s with code %d, want two with 3 and 4", adas, three, bobs, four)
	}
}

// Numbers of jobs go on after a restart, from the highest there is: no job takes the place of
// another one.
func TestNumbersOfJobsGoOnAfterARestart(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	r := reserveNow(t, s, 0)
	var last site.JobID
	for _, key := range []string{"a", "b", "c"} {
		last = submit(t, s, task(t, r, key, "/bin/true"))
		ended(t, s, last)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	if next := submit(t, s, task(t, r, "d", "/bin/true")); last != "3" || next != "4" {
		t.Errorf("the job after %s is %s, want 4 after 3", last, next)
	}
}

// Of an array that the site wrote down in part, before it died, nothing is run: no one was
// told of it, and under its key it is asked for again. What is whole is kept.
func TestAnArrayOfWhichAPartIsWrittenIsForgotten(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	r := reserveNow(t, s, 0)
	array := func(key string) site.Task {
		one := task(t, r, key, "/bin/true")
		one.Array, one.Cores, one.Dir = berth.PEsOf(0, 1, 2), 1, dir
		return one
	}
	whole, part := submit(t, s, array("whole")), submit(t, s, array("part"))
	for _, id := range []site.JobID{whole, part} {
		ended(t, s, id+"_2")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "jobs", string(part)+"_1")); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	if again := submit(t, s, array("whole")); again != whole {
		t.Errorf("the whole one is job %s, want %s", again, whole)
	}
	again := submit(t, s, array("part"))
	if again == part {
		t.Errorf("the other one is job %s still", again)
	}
	for _, index := range []site.JobID{"_0", "_1", "_2"} {
		ended(t, s, again+index)
	}
}

// The site says what it can do.
func TestTheSiteSaysWhatItCanDo(t *testing.T) {
	d, err := open(t, t.TempDir()).Describe(t.Context())
	if want := (site.Rights{As: me(t), Reserve: true, Drain: true, Submit: true}); err != nil || d.Rights != want {
		t.Errorf("%+v %v, want %+v", d.Rights, err, want)
	}
}

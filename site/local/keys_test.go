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

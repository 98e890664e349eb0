package service_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
)

// backedUp makes a copy of a journal and opens it.
func backedUp(t *testing.T, from *sqlite.Store) (*sqlite.Store, journal.Position) {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "copy")
	at, err := from.Backup(t.Context(), folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := sqlite.Open(folder, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, at
}

func idsOf(list []service.Promised) string {
	words := make([]string, len(list))
	for i := range list {
		words[i] = list[i].ID + " " + list[i].User + " " + string(list[i].State)
	}
	return strings.Join(words, ", ")
}

// What was promised, given up and changed after a backup is told, and what a service that is started on it finds at its site is what
// was foretold: what the journal does not know keeps the site from being served, and the rest is put right once that has gone.
func TestWhatABackupLacks(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		w.reserve("stays", 1, 300, 5000)
		w.reserve("given", 1, 300, 5000)
		w.reserve("longer", 1, 300, 5000)
		w.pass(30)
		copied, at := backedUp(t, w.store)
		w.reserve("lost", 1, 400, 2000)
		w.reserve("short", 1, 2600, 10)
		w.reserve("far", 1, 50_000, 100)
		if _, err := w.host.Release(t.Context(), ann, "given"); err != nil {
			t.Fatal(err)
		}
		if _, err := w.host.Extend(t.Context(), ann, "longer", w.get("longer").Allotments[0].End+60); err != nil {
			t.Fatal(err)
		}
		if _, err := w.host.Release(t.Context(), ann, "short"); err != nil {
			t.Fatal(err)
		}
		w.pass(60)
		last, err := w.store.Last(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s, err := service.Compare(t.Context(), w.store, copied)
		if err != nil {
			t.Fatal(err)
		}
		if s.Records != last.Number-at.Number || s.First != at.Number+1 || s.Last != last.Number || s.Other || s.Dropped > 0 || s.Damage != nil || s.From == 0 || s.To < s.From {
			t.Errorf("%+v; the backup ends with record %d, the journal with %d", s, at.Number, last.Number)
		}
		if got := idsOf(s.Missing); got != "far ann confirmed, lost ann confirmed, short ann cancelled" {
			t.Errorf("missing: %s", got)
		}
		if got := idsOf(s.Again); got != "given ann cancelled" {
			t.Errorf("again: %s", got)
		}
		if got := idsOf(s.Otherwise); got != "longer ann confirmed" {
			t.Errorf("otherwise: %s", got)
		}
		if len(s.Sites) != 1 || s.Sites[0].Name != "harbour" || !slices.Equal(s.Sites[0].Unknown, []string{"lost"}) ||
			!slices.Equal(s.Sites[0].Absent, []string{"given"}) || !slices.Equal(s.Sites[0].Otherwise, []string{"longer"}) {
			t.Errorf("sites: %+v", s.Sites)
		}

		if err := w.host.Close(); err != nil {
			t.Fatal(err)
		}
		w.options.Journal = copied
		w.open()
		w.pass(30)
		if trouble := w.view().Trouble; !strings.Contains(trouble, "1 reservations there were made by another service or from other data") {
			t.Errorf("a service on the backup says %q", trouble)
		}
		w.pass(2500) // until what it does not know has ended
		if trouble := w.view().Trouble; trouble != "" {
			t.Errorf("later it says %q", trouble)
		}
		if err := w.inLine(); err != nil {
			t.Error(err)
		}
	})
}

// A journal that is the backup's, is older, was compacted, is of another history or damaged is told as that.
func TestOtherJournalsThanThatOfTheBackup(t *testing.T) {
	var c clock
	c.seconds.Store(1000) // what is reserved starts at 2000: a start would be one more record, sooner or later
	dir := t.TempDir()
	h, store := startOn(t, dir, onePool(4), &c)
	submit(t, h, ann, berth.Rigid("a", 0, 2000, 900_000, 1, 500_000))
	older, before := backedUp(t, store)
	submit(t, h, ann, berth.Rigid("b", 0, 2000, 900_000, 1, 500_000))
	newer, at := backedUp(t, store)
	compare := func(old, copied journal.Store) service.Since {
		t.Helper()
		s, err := service.Compare(t.Context(), old, copied)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, c := range []struct {
		name        string
		old, copied journal.Store
	}{{"the same", store, newer}, {"an older one", older, newer}} {
		if s := compare(c.old, c.copied); s.Records+s.Dropped+uint64(len(s.Missing)+len(s.Again)+len(s.Otherwise)) > 0 || s.Other || s.Damage != nil {
			t.Errorf("%s: %+v", c.name, s)
		}
	}
	c.seconds.Add(10)
	submit(t, h, bob, berth.Rigid("c", 0, 2000, 900_000, 1, 100))
	if s := compare(store, newer); idsOf(s.Missing) != "c bob confirmed" || s.Records != s.Last-at.Number || s.From != 1010 || s.To != 1010 {
		t.Errorf("later: %+v", s)
	}
	if _, err := h.Compact(t.Context(), root, 0); err != nil {
		t.Fatal(err)
	}
	if s := compare(store, older); idsOf(s.Missing) != "b ann confirmed, c bob confirmed" || s.Dropped == 0 || s.Other || s.Records != s.Last-before.Number || s.Dropped > s.Records {
		t.Errorf("compacted: %+v", s)
	}
	other, otherStore := startOn(t, t.TempDir(), onePool(4), &c)
	submit(t, other, bob, berth.Rigid("x", 0, 2000, 900_000, 1, 100))
	if s := compare(otherStore, older); !s.Other || s.Records > 0 || idsOf(s.Missing) != "x bob confirmed" {
		t.Errorf("another history: %+v", s)
	}
	empty, err := sqlite.Open(t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = empty.Close() }() // it has nothing
	if s := compare(empty, older); s.Records > 0 || len(s.Missing) > 0 {
		t.Errorf("an empty one: %+v", s)
	}
	if _, err := service.Compare(t.Context(), store, empty); codeOf(err) != berth.Invalid {
		t.Errorf("an empty backup: %v", err)
	}
}

// Of a damaged journal what comes before the damage is told.
func TestADamagedJournalIsComparedUpToTheDamage(t *testing.T) {
	var c clock
	c.seconds.Store(1000) // what is reserved starts at 2000: a start would be one more record, sooner or later
	dir := t.TempDir()
	h, store := startOn(t, dir, onePool(400), &c)
	submit(t, h, ann, berth.Rigid("a", 0, 2000, 900_000, 1, 500_000))
	copied, at := backedUp(t, store)
	for range 5 {
		submit(t, h, bob, berth.Rigid("", 0, 2000, 900_000, 1, 500_000))
	}
	whole, last := backedUp(t, store)
	folder := filepath.Join(t.TempDir(), "damaged")
	if _, err := whole.Backup(t.Context(), folder, nil); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "journal.db")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	spoilt := last.Hash
	spoilt[0]++
	if !bytes.Contains(content, last.Hash[:]) {
		t.Fatal("the hash of the last record is not in the file")
	}
	content = bytes.ReplaceAll(content, last.Hash[:], spoilt[:])
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	old, damage, err := sqlite.OpenDamaged(folder)
	if err != nil || damage == nil {
		t.Fatal(damage, err)
	}
	defer func() { _ = old.Close() }() // only read from
	s, err := service.Compare(t.Context(), old, copied)
	if err != nil {
		t.Fatal(err)
	}
	if _, is := errors.AsType[*journal.Damage](error(s.Damage)); !is || s.Last != last.Number-1 || s.Records != last.Number-1-at.Number || len(s.Missing) != 4 {
		t.Errorf("%+v; the backup ends with record %d, the journal with %d", s, at.Number, last.Number)
	}
}

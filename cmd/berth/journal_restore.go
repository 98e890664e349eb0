package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/courier"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/postgres"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/sites/adapters"
)

// restoreFlags is what the command line of journal restore says.
type restoreFlags struct {
	data, journal string
	old           string // a place of the journal to compare with
	aside, dry    bool
	format        string
}

// journalRestore returns berth journal restore.
func (a *app) journalRestore() *cobra.Command {
	var flags restoreFlags
	cmd := &cobra.Command{
		Use:   "restore FOLDER [--data DIR] [--journal URL] [--dry-run]",
		Short: "Put a backup in place, and say what was promised since it was made",
		Long: `Restores what berth journal backup has written to FOLDER into a data directory, or
its journal into an empty PostgreSQL database. The backup is checked as a whole
before, as berth journal verify does, and what was restored after. No service may run
there. A journal that is there is not written over: with --aside it is moved, with what
else is replaced, to DIR/before-restore-1. If it can be read, or --old names it, what
it has that the backup does not is told: how many records, which promises, and what
managed sites have that a service started on the backup will not know, or make again.
With --dry-run all this is told and nothing is changed.

A backup has the journal, the tokens, the calendar feeds, the key of receivers of
notices and what is remembered of Slurm sites. It has neither operator.token, clock.json nor tasks of local sites; those
that DIR has stay there.`,
		Example: `  berth journal restore /backup/berth-2026-11-22 --data /var/lib/berth --aside --dry-run
  berth journal restore /backup/berth-2026-11-22 --data /srv/berth --old /var/lib/berth`,
		Args: one("FOLDER that berth journal backup has written"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := untilInterrupt(cmd.Context())
			defer stop()
			r := restore{app: a, restoreFlags: &flags, backup: filepath.Clean(args[0])}
			r.told.Backup = r.backup
			return r.run(ctx)
		},
	}
	cmd.Flags().SortFlags = false
	dataFlag(cmd, &flags.data)
	journalFlag(cmd, &flags.journal)
	cmd.Flags().BoolVar(&flags.dry, "dry-run", false, "say what would be restored and what would be lost, and change nothing")
	cmd.Flags().BoolVar(&flags.aside, "aside", false, "move what is there and would be replaced to DIR/before-restore-N")
	cmd.Flags().StringVar(&flags.old, "old", "", "`PLACE` of the journal to compare with, a directory or the URL of a database (default: the one that is there)")
	cmd.Flags().VarP(&choice{&flags.format, "form", []string{"table", "json"}}, "output", "o", "form of the result: table, json")
	return cmd
}

// restore is one call of berth journal restore.
type restore struct {
	*app
	*restoreFlags
	backup string
	from   *sqlite.Store
	found  service.Verified // in the backup
	told   restored
}

// beside are the files of a data directory that a backup has beside the journal.
var beside = []string{token.File, token.FeedFile, token.MemberFile, token.AccountFile, courier.KeyFile, adapters.Folder}

func (r *restore) run(ctx context.Context) (err error) {
	if err := checkJournal(r.journal); err != nil {
		return err
	}
	if err := r.openBackup(ctx); err != nil {
		return err
	}
	defer func() { _ = r.from.Close() }() // only read from
	there, err := r.destination(ctx)
	if err != nil {
		return err
	}
	if resumed, err := r.resume(ctx); resumed || err != nil {
		return err
	}
	if there != "" && !r.dry && !r.aside {
		return berth.Errorf(berth.Conflict, "data", "%s", there)
	}
	if err := r.compare(ctx); err != nil {
		return err
	}
	if err := r.compareTokens(); err != nil {
		return err
	}
	if r.dry {
		r.next()
		err := r.tell()
		if there != "" && !r.aside && err == nil {
			err = berth.Errorf(berth.Conflict, "data", "%s", there)
		}
		return err
	}
	if err := r.put(ctx); err != nil {
		return err
	}
	r.told.Restored = true
	r.next()
	return r.tell()
}

// resume brings a restore into the directory to its end that was cut short when all was ready. done tells that there was one, and
// that it was of this backup.
func (r *restore) resume(ctx context.Context) (done bool, err error) {
	if r.dry {
		if sqlite.CutShort(r.data) {
			err = berth.Errorf(berth.Conflict, "data", "%s: a restore was cut short there; the same command without --dry-run brings it to its end", r.data)
		}
		return false, err
	}
	aside, was, err := sqlite.Resume(r.data)
	if err != nil || !was {
		return false, err
	}
	r.say("%s: a restore that was cut short is brought to its end", r.data)
	r.told.Aside = aside
	if r.old == r.data {
		r.old = aside
	}
	if r.journal != "" {
		return false, nil // the database says whether it is whole
	}
	s, err := sqlite.Open(r.data, sqlite.Options{ReadOnly: true})
	if err != nil {
		return false, err
	}
	defer func() { _ = s.Close() }() // only read from
	switch last, err := s.Last(ctx); {
	case err != nil:
		return false, err
	case last != r.found.To:
		before := "nothing was there before"
		if aside != "" {
			before = "what was there before is in " + aside
		}
		return false, berth.Errorf(berth.Conflict, "data", "%s: the restore that was cut short was of another backup, up to record %d; that is in place now, and %s. Run this one again with --aside to restore it", r.data, last.Number, before)
	}
	if err := r.compare(ctx); err != nil {
		return false, err
	}
	if err := r.compareTokens(); err != nil {
		return false, err
	}
	r.told.Restored = true
	r.next()
	return true, r.tell()
}

// openBackup opens the backup and checks it as a whole.
func (r *restore) openBackup(ctx context.Context) error {
	info, err := os.Stat(r.backup)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return berth.Errorf(berth.NotFound, "backup", "there is no folder %s; want one that berth journal backup has written", r.backup)
	case err != nil:
		return berth.Errorf(berth.Invalid, "backup", "%v", err)
	case !info.IsDir():
		return berth.Errorf(berth.Invalid, "backup", "%s is a file; want the folder that berth journal backup has written", r.backup)
	case strings.HasSuffix(r.backup, ".partial"):
		return berth.Errorf(berth.Invalid, "backup", "%s is a backup that did not come to its end; want one that did", r.backup)
	}
	if data, err := os.Stat(r.data); err == nil && os.SameFile(data, info) {
		return berth.Errorf(berth.Invalid, "data", "%s is the backup itself; want another directory", r.data)
	}
	if err := sqlite.Holder(r.backup); err != nil {
		return berth.Errorf(berth.Conflict, "backup", "%v: a service runs on it, so it is no backup; make one with berth journal backup", err)
	}
	if r.from, err = sqlite.Open(r.backup, sqlite.Options{ReadOnly: true}); err == nil {
		var otherwise error
		if err = r.from.Sound(); err == nil {
			r.found, otherwise, err = service.Whole(ctx, r.from)
		}
		if otherwise != nil {
			r.say("this version would have decided otherwise than the one that wrote the backup; what is on record counts: %v", otherwise)
		}
		if err == nil && r.found.To.Number == 0 {
			err = berth.Errorf(berth.Invalid, "backup", "%s has a journal without a record: nothing was ever promised there", r.backup)
		}
		if err != nil {
			_ = r.from.Close() // only read from
		}
	}
	if err != nil {
		return badBackup(r.backup, err)
	}
	list, managed, err := service.Live(ctx, r.from)
	if err != nil {
		return badBackup(r.backup, err)
	}
	r.told.Records, r.told.Last, r.told.Chain, r.told.Promises, r.told.managed = r.found.Records, r.found.To.Number, r.found.To.Hash.String(), len(list), managed
	for rec, err := range r.from.Read(ctx, r.found.To.Number) {
		if err != nil {
			return badBackup(r.backup, err)
		}
		r.told.At = form.TimeOf(rec.At)
	}
	for _, name := range beside {
		if _, err := os.Stat(filepath.Join(r.backup, name)); err == nil {
			r.told.Has = append(r.told.Has, name)
		} else {
			r.told.Lacks = append(r.told.Lacks, name)
		}
	}
	return nil
}

// badBackup says that a backup cannot be used.
func badBackup(folder string, err error) error {
	if coded, is := errors.AsType[*berth.Error](err); is {
		if coded.Field == "backup" {
			return err
		}
		return berth.Errorf(coded.Code, "backup", "%s cannot be restored, and nothing was changed: %v", folder, err)
	}
	return fmt.Errorf("backup: %s cannot be restored, and nothing was changed: %w", folder, err)
}

// destination checks that something can be restored there, and says what is there already; empty if nothing is.
func (r *restore) destination(ctx context.Context) (there string, err error) {
	r.told.To = cmp.Or(r.journalName(), r.data)
	info, err := os.Stat(r.data)
	if err == nil && !info.IsDir() {
		return "", berth.Errorf(berth.Invalid, "data", "%s is a file; want a directory, or a name for a new one", r.data)
	}
	if err := checkData(r.data); err != nil {
		return "", err
	}
	if err := sqlite.Holder(r.data); err != nil {
		return "", berth.Errorf(berth.Conflict, "data", "%v: stop the service, and restore then; nothing was changed", err)
	}
	if err := checkKeeps(r.data); err != nil {
		return "", err
	}
	var names []string
	if r.journal != "" {
		if err := r.database(ctx); err != nil {
			return "", err
		}
	} else if names = sqlite.Kept(r.data); len(names) > 0 {
		if r.old == "" {
			r.old = r.data
		}
		return fmt.Sprintf("%s has a journal already (%s), and restore writes over none: add --aside to have it moved to a folder there, or name a new directory", r.data, strings.Join(names, ", ")), nil
	}
	for _, name := range beside {
		_, theirs := os.Stat(filepath.Join(r.backup, name))
		if _, err := os.Lstat(filepath.Join(r.data, name)); err == nil && theirs == nil && !alike(filepath.Join(r.backup, name), filepath.Join(r.data, name)) {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		return fmt.Sprintf("%s has %s already, and restore writes over nothing: add --aside to have that moved to a folder there, or name a new directory", r.data, strings.Join(names, ", ")), nil
	}
	return "", nil
}

func (r *restore) journalName() string {
	if r.journal == "" {
		return ""
	}
	return placeName(r.journal)
}

// database refuses a database that has a journal, unless it is what a restore of this backup has left that was cut short.
func (r *restore) database(ctx context.Context) error {
	s, err := postgres.Open(ctx, r.journal, postgres.Options{ReadOnly: true, Fill: true})
	if coded, is := errors.AsType[*berth.Error](err); is && coded.Code == berth.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }() // only read from
	by, err := s.FilledBy(ctx)
	if err != nil {
		return err
	}
	last, err := s.Last(ctx)
	switch {
	case err != nil:
		return err
	case by == r.filledBy():
		return nil
	case by != "":
		return berth.Errorf(berth.Conflict, "journal", "%s is not whole: %s was cut short; bring that to its end, or empty the database", r.journalName(), by)
	case last == r.found.To:
		return berth.Errorf(berth.Conflict, "journal", "%s has the journal of this backup already, up to record %d", r.journalName(), last.Number)
	case last.Number > 0:
		return berth.Errorf(berth.Conflict, "journal", "%s has a journal up to record %d, and restore writes over none: want an empty database, or another schema of it (search_path=NAME in the URL)", r.journalName(), last.Number)
	}
	return nil
}

// filledBy names this restore in a database that is not whole yet.
func (r *restore) filledBy() string {
	return fmt.Sprintf("berth journal restore of a backup up to record %d (%s)", r.found.To.Number, r.found.To.Hash)
}

// compare says what the old journal has that the backup does not, if there is one.
func (r *restore) compare(ctx context.Context) error {
	if r.old == "" {
		return nil
	}
	r.told.Old = placeName(r.old)
	old, err := openOld(ctx, r.old)
	if err == nil {
		var since service.Since
		since, err = service.Compare(ctx, old, r.from)
		r.told.Since = sinceOf(&since)
		if err := old.Close(); err != nil {
			return err
		}
		if err == nil {
			return nil
		}
	}
	r.told.Since = nil
	if r.old != r.data || ctx.Err() != nil { // it was named, so it matters
		return err
	}
	r.told.Unread = err.Error()
	return nil
}

// openOld opens a journal that may be damaged.
func openOld(ctx context.Context, place string) (store, error) {
	if postgres.IsURL(place) {
		return postgres.Open(ctx, place, postgres.Options{ReadOnly: true})
	}
	s, _, err := sqlite.OpenDamaged(place)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// compareTokens says which tokens the backup has or lacks, compared with those of the old directory.
func (r *restore) compareTokens() error {
	ours, err := token.Read(r.backup)
	if err != nil {
		return badBackup(r.backup, err)
	}
	r.told.Tokens = len(ours)
	if secret, err := readToken(filepath.Join(r.data, token.OperatorFile)); err == nil {
		r.told.operatorFile = true
		for i := range ours {
			r.told.operatorKnown = r.told.operatorKnown || ours[i].Opens(secret)
		}
	}
	if r.old == "" || postgres.IsURL(r.old) {
		return nil
	}
	if _, err := os.Stat(filepath.Join(r.old, token.File)); err != nil {
		return nil //nolint:nilerr // nothing to compare with
	}
	theirs, err := token.Read(r.old)
	if err != nil {
		r.say("what has become of tokens since is not known: %v", err)
		return nil
	}
	lacks := func(list []token.Entry, id string) bool {
		for i := range list {
			if list[i].ID == id {
				return false
			}
		}
		return true
	}
	for i := range ours {
		if lacks(theirs, ours[i].ID) {
			r.told.TokensAgain = append(r.told.TokensAgain, restoredToken{ours[i].ID, ours[i].User})
		}
	}
	for i := range theirs {
		if lacks(ours, theirs[i].ID) {
			r.told.TokensLost = append(r.told.TokensLost, restoredToken{theirs[i].ID, theirs[i].User})
		}
	}
	return nil
}

// put restores.
func (r *restore) put(ctx context.Context) error {
	_, back := r.privately()
	defer back()
	if r.journal != "" {
		return r.putInDatabase(ctx)
	}
	return r.putInDirectory(ctx, r.from)
}

// putInDirectory restores a journal into the data directory, nil for none, and what is beside it.
func (r *restore) putInDirectory(ctx context.Context, from *sqlite.Store) error {
	aside, err := sqlite.Restore(ctx, from, r.data, sqlite.Restoring{
		Aside: r.aside, Beside: func(folder string) error { return r.copyBeside(folder) },
		Check: func(folder string) error {
			if from == nil {
				return nil
			}
			s, err := sqlite.Open(folder, sqlite.Options{ReadOnly: true})
			if err != nil {
				return err
			}
			defer func() { _ = s.Close() }() // only read from
			if err := s.Sound(); err != nil {
				return err
			}
			return r.same(ctx, s)
		},
	})
	r.told.Aside = cmp.Or(aside, r.told.Aside)
	coded, is := errors.AsType[*berth.Error](err)
	switch {
	case err == nil:
		return nil
	case aside != "":
		return fmt.Errorf("what was in %s is in %s, and the restore did not come to its end; the same command goes on: %w", r.data, aside, err)
	case is && coded.Code == berth.Exhausted, errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		size, _ := r.from.Size() // else it says 0
		return berth.Errorf(berth.Unavailable, "data", "%s: no room is left for the backup, whose journal has %d bytes, and nothing there was changed: make room and restore again (%v)", r.data, size, err)
	}
	return err
}

// copyBeside copies what a backup has beside the journal, but for what the directory has already as it is in the backup.
func (r *restore) copyBeside(folder string) error {
	if err := copyBeside(r.backup, folder); err != nil {
		return err
	}
	for _, name := range beside {
		if alike(filepath.Join(folder, name), filepath.Join(r.data, name)) {
			if err := os.RemoveAll(filepath.Join(folder, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// alike reports whether both files are there and have the same bytes, or both folders have such files and no others.
func alike(a, b string) bool {
	inA, errA := os.ReadDir(a)
	inB, errB := os.ReadDir(b)
	if errA != nil || errB != nil {
		ofA, errA := os.ReadFile(a) //nolint:gosec // of the backup
		ofB, errB := os.ReadFile(b) //nolint:gosec // of the data directory
		return errA == nil && errB == nil && bytes.Equal(ofA, ofB)
	}
	return len(inA) == len(inB) && !slices.ContainsFunc(inA, func(e fs.DirEntry) bool {
		return !alike(filepath.Join(a, e.Name()), filepath.Join(b, e.Name()))
	})
}

// putInDatabase copies the journal into an empty database, which is not whole before the rest is in the data directory.
func (r *restore) putInDatabase(ctx context.Context) (err error) {
	to, err := postgres.Open(ctx, r.journal, postgres.Options{Fill: true}) // waits for the lease of one that was killed
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	if err := to.Fill(ctx, r.filledBy()); err != nil {
		return err
	}
	if _, err := journal.Copy(ctx, to, r.from); err != nil {
		return fmt.Errorf("the restore did not come to its end, the same command goes on with it: %w", err)
	}
	if err := r.same(ctx, to); err != nil {
		return err
	}
	if err := r.putInDirectory(ctx, nil); err != nil {
		return err
	}
	return to.Filled(ctx)
}

// same checks what was restored as a whole, and that it is what the backup has.
func (r *restore) same(ctx context.Context, s journal.Store) error {
	v, _, err := service.Whole(ctx, s)
	if err == nil && v != r.found {
		err = berth.Errorf(berth.Internal, "journal", "what was restored ends with record %d (%s), the backup with record %d (%s)", v.To.Number, v.To.Hash, r.found.To.Number, r.found.To.Hash)
	}
	if err != nil {
		return fmt.Errorf("what was restored is not what the backup has: %w", err)
	}
	return nil
}

// Package sqlite keeps a journal in one SQLite database in one directory. It is
// the store inside the binary: one process writes, others may read meanwhile.
//
// What Append returns nil for is synced (write-ahead log, synchronous=FULL).
// Beside the database stand a lock, which names the writing process, and a mark
// of what has been acknowledged, see mark.go.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	lib "modernc.org/sqlite/lib"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal"
)

const (
	fileName = "journal.db"
	// application and format stand in the header of the database file, where
	// other programs look for them too. The application is "Bert" in ASCII.
	application = 0x42657274
	format      = 1
)

const schema = `
CREATE TABLE record (
	number INTEGER PRIMARY KEY,
	hash   BLOB NOT NULL,
	body   BLOB NOT NULL
) STRICT;
-- Where the chain begins: the place before the first record kept.
CREATE TABLE anchor (
	only   INTEGER PRIMARY KEY CHECK (only = 1),
	number INTEGER NOT NULL,
	hash   BLOB NOT NULL
) STRICT;
-- A snapshot is there when its row is; its parts are written before.
CREATE TABLE snapshot (
	number INTEGER PRIMARY KEY,
	hash   BLOB NOT NULL,
	size   INTEGER NOT NULL,
	sum    BLOB NOT NULL
) STRICT;
CREATE TABLE part (
	snapshot INTEGER NOT NULL,
	number   INTEGER NOT NULL,
	data     BLOB NOT NULL,
	PRIMARY KEY (snapshot, number)
) STRICT;
`

// Options of Open. The zero value is right for a server.
type Options struct {
	// ReadOnly opens a journal for reading, whether or not a server writes it.
	// It takes no lock, refuses to write, and refuses the damage that a server
	// would refuse.
	ReadOnly bool
	// VFS is the name of SQLite's file system, for tests; empty is its own.
	VFS string
	// InlineCheckpoints has each checkpoint run in the transaction's turn that made the log
	// grow, rather than beside the writer: operations on the disk have one order then,
	// which simulations and tests repeat. An append in some hundreds waits for it.
	InlineCheckpoints bool
	// synchronous is for tests that plant an answer before the sync.
	synchronous string
	// restPart, if it is not 0, is for tests that are about what a compaction does between its rests.
	restPart int
	// checkpointAfter, if it is not 0, is for tests that want checkpoints more often.
	checkpointAfter int
	salvage         bool // read what can be read of a damaged database
}

// Store is an open journal.
type Store struct {
	dir        string
	options    Options
	lock       *os.File // nil if read-only
	mark       *os.File
	writing    *sql.DB // one connection; nil if read-only
	copying    *sql.DB // one connection, for checkpoints beside the writer; nil if read-only
	reading    *sql.DB
	insert     *sql.Stmt // of one record
	insertMany *sql.Stmt // of rowsAtOnce
	torn       *journal.Damage

	turn    chan struct{} // the holder of its one place may write
	closing chan struct{} // closed by Close

	// Changed by the holder of the turn, under mu.
	mu     sync.Mutex
	closed bool
	last   journal.Position
	opened []*os.File // files of the database that must not be closed before it is

	unsure bool           // a transaction failed: last must be read again; with the turn
	grown  int            // bytes written since the last checkpoint, about; with the turn
	beside *checkpointing // under way; nil if none; with the turn

	appends atomic.Bool // something was appended
}

var _ journal.Store = (*Store)(nil)

func newStore(dir string, options Options) *Store {
	return &Store{dir: dir, options: options, turn: make(chan struct{}, 1), closing: make(chan struct{})}
}

// Open opens the journal in a directory, and makes both if they are not there
// and it may write. A journal that has lost what was acknowledged is a
// *journal.Damage and is left as it is; Repair can cut it. Other errors are of
// code Conflict, another process writes it, which the message names; Invalid,
// it is of another format; or failures of the world.
func Open(dir string, options Options) (*Store, error) {
	s := newStore(dir, options)
	if err := s.open(); err != nil {
		s.release() //nolint:errcheck // the first error is the one to tell
		return nil, err
	}
	return s, nil
}

func (s *Store) open() error {
	if s.options.ReadOnly {
		if err := uncut(s.dir); err != nil {
			return err
		}
		if _, err := os.Stat(s.file()); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return noJournal(s.dir)
			}
			return fmt.Errorf("journal: %w", err)
		}
		if err := s.lookBeside(); err != nil {
			return err
		}
		return s.connect()
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("journal: make the directory: %w", err)
	}
	lock, err := lock(s.dir)
	if err != nil {
		return err
	}
	s.lock = lock
	if err := uncut(s.dir); err != nil {
		return err
	}
	// What is there is looked at first by means that change nothing: SQLite
	// drops what it cannot read of its log as soon as it may write.
	if err := install(s.dir); err != nil { // a repair that did not come to its end
		return err
	}
	if s.torn, err = look(s.dir, s.options); err != nil {
		return err
	}
	// The last process may have been killed between a write and its sync. What
	// is there counts from now on, so it must be durable.
	for _, name := range []string{s.file() + walSuffix, s.file()} {
		if err := syncFile(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return berth.Errorf(berth.Unavailable, "journal", "sync what is there: %v", err)
		}
	}
	if err := private(s.file()); err != nil {
		return err
	}
	if err := s.connect(); err != nil {
		return err
	}
	if s.last, err = s.readLast(); err != nil {
		return err
	}
	s.emptyLog() // a process that is killed often never comes to a checkpoint
	if s.mark, err = os.OpenFile(filepath.Join(s.dir, markName), os.O_WRONLY|os.O_CREATE, 0o600); err != nil {
		return fmt.Errorf("journal: open the mark: %w", err)
	}
	if err := writeMark(s.mark, s.last); err != nil {
		return fmt.Errorf("journal: write the mark: %w", err)
	}
	return syncDir(s.dir)
}

// looks is how often a reader looks at what seems damaged: a server that writes
// meanwhile can begin its log anew while it is read.
const looks = 4

// lookBeside looks at a journal that another process may be writing. A damage is one
// that is found each time.
func (s *Store) lookBeside() (err error) {
	for range looks {
		s.torn, err = look(s.dir, s.options)
		if _, damaged := errors.AsType[*journal.Damage](err); !damaged {
			return err
		}
	}
	return err
}

// private makes a database file of no bytes that other users cannot read, unless there
// is one: SQLite gives its mode to the files beside it.
func private(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		return berth.Errorf(berth.Unavailable, "journal", "%v", err)
	}
	return nil
}

// look opens what is in a directory without changing it. The error is a
// *journal.Damage if acknowledged records are missing or the last record is not
// what was written. torn says that a write was cut short, which loses nothing
// that was acknowledged. What is not there is no error.
func look(dir string, options Options) (torn *journal.Damage, err error) {
	options.ReadOnly = true
	s := newStore(dir, options)
	mark, markErr := readMark(dir)
	if markErr != nil && !errors.Is(markErr, errMark) {
		return nil, markErr
	}
	damage := func(file string, offset int64, reason string) *journal.Damage {
		if file != "" {
			file = filepath.Join(dir, file)
		}
		return &journal.Damage{
			After: s.last, File: file, Offset: offset, Acknowledged: mark.Number, Reason: reason,
		}
	}
	switch info, err := os.Stat(s.file()); {
	case errors.Is(err, fs.ErrNotExist), err == nil && info.Size() == 0:
		if mark.Number > 0 || markErr != nil {
			return nil, damage(fileName, -1, "the database is missing or empty")
		}
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("journal: %w", err)
	}
	log, err := inspect(s.file() + walSuffix)
	if err != nil {
		return nil, err
	}
	defer s.release() //nolint:errcheck // it is only read
	if err = s.connect(); err == nil {
		s.last, err = s.readLast()
	}
	var known *berth.Error
	switch {
	case errors.As(err, &known) && known.Code == berth.NotFound:
		if mark.Number > 0 || markErr != nil {
			return nil, damage(fileName, -1, "the database is empty")
		}
		return nil, nil
	case err != nil:
		return nil, s.sized(err, mark)
	}
	walName := fileName + walSuffix
	switch {
	case log.bad >= 0 && log.after:
		return nil, s.sized(damage(walName, log.bad, "bytes that had been synced have changed"), mark)
	case mark.Number > s.last.Number && log.bad >= 0:
		return nil, s.sized(damage(walName, log.bad, "the journal ends before what was acknowledged"), mark)
	case mark.Number > s.last.Number:
		return nil, s.sized(damage("", -1, "the journal ends before what was acknowledged"), mark)
	case log.bad >= 0:
		torn = damage(walName, log.bad, "a write was cut short, and is dropped")
	case log.size > log.good:
		torn = damage(walName, log.good, "a write was not finished, and is dropped")
	}
	if err := s.checkEnd(mark); err != nil {
		return nil, s.sized(err, mark)
	}
	if markErr != nil {
		return nil, s.sized(damage(markName, 0, markErr.Error()), mark)
	}
	return torn, nil
}

// sized adds to a damage what had been acknowledged, and how far the chain is
// whole from its begin, which takes a walk over it.
func (s *Store) sized(err error, mark journal.Position) error {
	var d *journal.Damage
	if !errors.As(err, &d) {
		return err
	}
	d.Acknowledged = max(d.Acknowledged, mark.Number)
	anchor, err := s.readAnchor()
	if err != nil {
		d.After = journal.Position{}
		return d
	}
	d.After, _ = s.walk(anchor)
	return d
}

// checkEnd reads the last record, and compares the one of the mark with it.
func (s *Store) checkEnd(mark journal.Position) error {
	anchor, err := s.readAnchor()
	if err != nil {
		return err
	}
	if s.last.Number > anchor.Number {
		before, _, err := s.before(s.last.Number)
		if err != nil {
			return err
		}
		if _, err := s.page(context.Background(), before); err != nil {
			return err
		}
	}
	if mark.Number <= anchor.Number {
		return nil
	}
	hash, err := s.hashOf(mark.Number)
	if err == nil && hash != mark.Hash {
		err = &journal.Damage{
			After: anchor, Offset: -1, Acknowledged: mark.Number, Reason: "it is another history than the one acknowledged",
		}
	}
	return err
}

const walSuffix = "-wal"

// Exists reports whether a directory has a journal, or what is left of one.
func Exists(dir string) (bool, error) { return has(dir, fileName, markName) }

// has reports whether a directory has one of some files.
func has(dir string, names ...string) (bool, error) {
	for _, name := range names {
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			return err == nil, err
		}
	}
	return false, nil
}

func noJournal(dir string) error {
	return berth.Errorf(berth.NotFound, "journal", "there is no journal in %s", dir)
}

func (s *Store) file() string { return filepath.Join(s.dir, fileName) }

// connect opens the database, and makes its tables if it has none and may be
// written.
func (s *Store) connect() error {
	var err error
	reader := []string{"mode=ro", "_query_only=1"}
	if s.options.salvage {
		reader = append(reader, "_pragma=writable_schema(1)") // read a file that was cut short, too
	}
	if s.reading, err = s.pool(reader...); err != nil {
		return err
	}
	if !s.options.ReadOnly {
		synchronous := s.options.synchronous
		if synchronous == "" {
			synchronous = "FULL"
		}
		// A checkpoint is ours to begin, so that its failure is not taken for
		// one of the commit before it.
		s.writing, err = s.pool("mode=rwc", "_journal_mode=WAL", "_synchronous="+synchronous, "_txlock=immediate",
			"_auto_vacuum=INCREMENTAL", "_pragma=wal_autocheckpoint(0)", fmt.Sprintf("_pragma=journal_size_limit(%d)", logKept))
		if err != nil {
			return err
		}
		s.writing.SetMaxOpenConns(1)
		if s.copying, err = s.pool("mode=rw", "_synchronous="+synchronous, "_query_only=1", "_pragma=wal_autocheckpoint(0)"); err != nil {
			return err
		}
		s.copying.SetMaxOpenConns(1)
		if err := s.prepare(); err != nil {
			return err
		}
		return nil
	}
	return s.recognise(s.reading)
}

// pool opens a set of connections.
func (s *Store) pool(parameters ...string) (*sql.DB, error) {
	path, err := filepath.Abs(s.file())
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	// Readers and the writer do not wait for one another in this mode; a
	// reader of another process may have to, for a moment, at its beginning.
	query := strings.Join(append(parameters, "_busy_timeout=5000"), "&")
	if s.options.VFS != "" {
		query += "&vfs=" + url.QueryEscape(s.options.VFS)
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: query}).String())
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	return db, nil
}

// prepare makes the tables where there are none.
func (s *Store) prepare() error {
	err := s.recognise(s.writing)
	var known *berth.Error
	if errors.As(err, &known) && known.Code == berth.NotFound {
		err = s.transact(func(tx *sql.Tx) error {
			_, err := tx.ExecContext(context.Background(), schema+fmt.Sprintf(
				"PRAGMA application_id = %d; PRAGMA user_version = %d;", application, format))
			return err
		})
		if err != nil {
			err = s.world("make the tables", err)
		}
	}
	if err != nil {
		return err
	}
	const insert, row = "INSERT INTO record (number, hash, body) VALUES ", "(?, ?, ?)"
	s.insert, err = s.writing.PrepareContext(context.Background(), insert+row)
	if err == nil {
		s.insertMany, err = s.writing.PrepareContext(context.Background(), insert+row+strings.Repeat(", "+row, rowsAtOnce-1))
	}
	if err != nil {
		return s.world("open", err)
	}
	return nil
}

// recognise refuses a database that is not a journal, or of another format. One
// without tables is NotFound: a first start that did not come to its end.
func (s *Store) recognise(db *sql.DB) error {
	var app, version, tables int
	err := db.QueryRowContext(context.Background(), `
		SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version),
			(SELECT count(*) FROM sqlite_schema)`).Scan(&app, &version, &tables)
	switch {
	case coded(err, lib.SQLITE_READONLY_ROLLBACK):
		return berth.Errorf(berth.NotFound, "journal", "%s was being made when its process ended", s.file())
	case err != nil:
		return s.world("open", err)
	case app == 0 && tables == 0:
		return berth.Errorf(berth.NotFound, "journal", "%s is empty", s.file())
	case app != application:
		return berth.Errorf(berth.Invalid, "journal", "%s is a database of another program, no journal", s.file())
	case version != format:
		return berth.Errorf(berth.Invalid, "journal", "%s has format %d; this program reads format %d", s.file(), version, format)
	}
	return nil
}

// Torn says which write the last process had not finished when it ended; nil
// if none. Nothing of it had been acknowledged, and it is gone.
func (s *Store) Torn() *journal.Damage { return s.torn }

// Close waits for what is under way, then writes the log back into the
// database and lets go of the lock.
func (s *Store) Close() error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if closed {
		return nil
	}
	close(s.closing)
	if s.beside != nil {
		<-s.beside.ended
	}
	return s.release()
}

// release closes what is open. The lock is the last to go.
func (s *Store) release() error {
	var errs []error
	if s.reading != nil {
		errs = append(errs, s.reading.Close())
	}
	if s.copying != nil {
		errs = append(errs, s.copying.Close())
	}
	if s.writing != nil {
		errs = append(errs, s.writing.Close())
	}
	for _, f := range append(s.opened, s.mark) {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	if s.lock != nil {
		errs = append(errs, unlock(s.lock))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("journal: close: %w", err)
	}
	return nil
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("journal: sync the directory: %w", err)
	}
	defer d.Close() //nolint:errcheck // it is only read
	if err := d.Sync(); err != nil {
		return fmt.Errorf("journal: sync the directory: %w", err)
	}
	return nil
}

package sqlite

import (
	"cmp"
	"context"
	"database/sql"
)

// A checkpoint copies the log back into the database, after which the next transaction
// begins the log anew. Every append would wait for that, so it runs beside the writer on a
// connection of its own. A log that is written while it is copied is never copied whole, and
// would never begin anew: the few pages that were written meanwhile are copied in the
// writer's turn.
const (
	// checkpointAfter is how many bytes of records and snapshots are written before the
	// log is copied back.
	checkpointAfter = 2 << 20
	// growMeanwhile is how many bytes more may be written while it is copied. Then
	// the writer waits, so that a slow disk does not make the log grow for ever.
	growMeanwhile = 3 << 20
	// logKept is the size to which the log is cut when it begins anew: what it comes to where
	// records are small. A file that grows takes longer to sync than one that is written over.
	logKept = checkpointAfter + growMeanwhile
	// fewPages are copied in the writer's turn, about as fast as none.
	fewPages = 64
	// passes bounds how often what was written meanwhile is copied beside the writer.
	passes = 4
)

// checkpointing is a checkpoint beside the writer.
type checkpointing struct {
	from   int           // how much had been written when it began
	copied chan struct{} // closed once it needs the turn to go on
	ended  chan struct{}
}

func (s *Store) checkpointAfter() int { return cmp.Or(s.options.checkpointAfter, checkpointAfter) }

// checkpoint has the log copied back into the database when it has grown; with the turn. A
// failure loses nothing and is not told: the log stays as it is, the next
// one tries again after a while, and if it cannot grow any more, Append fails.
func (s *Store) checkpoint() {
	switch c := s.beside; {
	case s.grown < s.checkpointAfter():
	case s.options.InlineCheckpoints:
		s.copyRest()
	case c == nil:
		s.beside = &checkpointing{s.grown, make(chan struct{}), make(chan struct{})}
		go s.checkpointBeside(s.beside)
	case s.grown-c.from >= growMeanwhile:
		<-c.copied
		s.copyRest()
	}
}

// checkpointBeside copies the log back until little is left, and the rest with the turn.
func (s *Store) checkpointBeside(c *checkpointing) {
	defer close(c.ended)
	before := 0
	for range passes {
		pages, whole := copyLog(s.copying)
		if !whole || pages-before <= fewPages {
			break
		}
		before = pages
	}
	close(c.copied)
	select {
	case s.turn <- struct{}{}:
		defer s.end()
	case <-s.closing:
		return
	}
	s.beside = nil
	if s.grown >= s.checkpointAfter() {
		s.copyRest()
	}
}

// copyRest copies what is left of the log, so that the next transaction begins it anew; with the turn.
func (s *Store) copyRest() {
	if _, whole := copyLog(s.writing); whole {
		s.grown = 0
	} else {
		s.grown = s.checkpointAfter() / 2 // a reader is in the way, perhaps
	}
}

// copyLog copies of the log what no reader needs there. It returns how many pages the
// log had, and whether all of them were copied.
func copyLog(db *sql.DB) (pages int, whole bool) {
	var busy, copied int
	row := db.QueryRowContext(context.Background(), "PRAGMA wal_checkpoint(PASSIVE)")
	err := row.Scan(&busy, &pages, &copied)
	return pages, err == nil && busy == 0 && copied == pages
}

// emptyLog copies the whole log back into the database and gives its room back; with the turn. A
// failure, such as a reader in the way, loses nothing and is not told.
func (s *Store) emptyLog() {
	if s.beside != nil {
		<-s.beside.copied
	}
	var busy, pages, copied int
	row := s.writing.QueryRowContext(context.Background(), "PRAGMA wal_checkpoint(TRUNCATE)")
	_ = row.Scan(&busy, &pages, &copied)
}

// settle waits for the end of a checkpoint that is under way.
func (s *Store) settle(ctx context.Context) error {
	var c *checkpointing
	if err := s.locked(ctx, func() error { c = s.beside; return nil }); err != nil || c == nil {
		return err
	}
	select {
	case <-c.ended:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

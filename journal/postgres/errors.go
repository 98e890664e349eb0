package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal"
)

// SQLSTATE codes and classes (the first two characters), appendix A of the manual.
const (
	uniqueViolation = "23505"
	diskFull        = "53100"
	dataCorrupted   = "XX001"
	indexCorrupted  = "XX002"
	noPrivilege     = "42501"
	noDatabase      = "3D000"
	readOnly        = "25006" // the server has become a standby
	lockTimeout     = "55P03"
)

// sqlState returns the code of an error that the server has told; empty if it told none.
func sqlState(err error) string {
	if e, is := errors.AsType[*pgconn.PgError](err); is {
		return e.Code
	}
	return ""
}

// world turns a failure of the server, or of the way to it, into one that says what can be done.
func (s *Store) world(doing string, err error) error {
	state := sqlState(err)
	class := state[:min(len(state), 2)]
	switch {
	case state == diskFull:
		return berth.Errorf(berth.Exhausted, "journal", "%s: no room left for %s; nothing is lost, free some and it goes on (%v)", doing, s.name, err)
	case state == dataCorrupted, state == indexCorrupted:
		return &journal.Damage{After: s.lastKnown(), File: s.name, Offset: -1, Reason: "the database is damaged", Cause: err}
	case state == noPrivilege:
		return berth.Errorf(berth.Denied, "journal", "%s: the role may not %s: %v; docs/operating.md lists what it needs", s.name, doing, err)
	case state == noDatabase, class == "28": // authorization
		return berth.Errorf(berth.Invalid, "journal", "%s: %v; want the URL of a database that this role may use", s.name, err)
	case state == readOnly, state == lockTimeout,
		// Connections, roll-backs, resources, an operator's intervention, failures of the system.
		class == "08", class == "40", class == "53", class == "57", class == "58":
		return berth.Errorf(berth.Unavailable, "journal", "%s %s: %v", doing, s.name, err)
	case state != "":
		return fmt.Errorf("journal: %s %s: %w", doing, s.name, err)
	case errors.Is(err, context.Canceled):
		return err
	}
	// Without a word of the server: it was not reached, or did not answer.
	return berth.Errorf(berth.Unavailable, "journal", "%s %s: %v", doing, s.name, err)
}

func errClosed() error { return berth.Errorf(berth.Unavailable, "journal", "it has been closed") }

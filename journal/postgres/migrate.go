package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/berth-hpc/berth"
)

// The tables come about by the files of migrations in the order of their names, each
// once. A file that a release had is never changed: what is new is a new file.
//
//go:embed migrations/*.sql
var migrations embed.FS

// migrationLock is the key of the advisory lock under which tables are made: "Bert" in ASCII.
const migrationLock = 0x42657274

// steps returns the migrations.
func steps() ([]string, error) {
	names, err := fs.Glob(migrations, "migrations/*.sql") // in order
	if err != nil {
		return nil, err
	}
	list := make([]string, len(names))
	for i, name := range names {
		text, err := migrations.ReadFile(name)
		if err != nil {
			return nil, err
		}
		list[i] = string(text)
	}
	return list, nil
}

// migrate makes the schema and the tables that are not there yet, all or nothing.
func (s *Store) migrate(ctx context.Context, conn *pgx.Conn) error {
	list, err := steps()
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	if n, err := s.formatOf(ctx, conn); err != nil || n == len(list) {
		return err
	}
	// The session's lock, not the transaction's: one that begins with the lock held sees
	// what another session has made.
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", migrationLock); err != nil {
		return s.world("make the tables", err)
	}
	defer func() { _, _ = conn.Exec(ctx, "SELECT pg_advisory_unlock($1)", migrationLock) }() // it ends with the session otherwise
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		n, err := s.formatOf(ctx, tx) // another server may have made them meanwhile
		if err != nil || n == len(list) {
			return err
		}
		if n == 0 {
			var there bool
			if err := tx.QueryRow(ctx, "SELECT to_regnamespace($1) IS NOT NULL", s.schema).Scan(&there); err != nil {
				return err
			}
			if !there {
				if _, err := tx.Exec(ctx, "CREATE SCHEMA "+s.schema); err != nil {
					return err
				}
			}
			if _, err := tx.Exec(ctx, "CREATE TABLE journal_format (format integer NOT NULL); INSERT INTO journal_format VALUES (0)"); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, strings.Join(list[n:], "\n")); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "UPDATE journal_format SET format = $1", len(list))
		return err
	})
	if _, ours := errors.AsType[*berth.Error](err); err != nil && !ours {
		return s.world("make the tables", err)
	}
	return err
}

// querier is a connection, a pool or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// formatOf returns how many migrations the tables have had, 0 if there are none. The
// error is of code Invalid if they are of a newer program.
func (s *Store) formatOf(ctx context.Context, q querier) (n int, err error) {
	var there bool
	if err := q.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", s.schema+".journal_format").Scan(&there); err != nil {
		return 0, s.world("open", err)
	}
	if !there {
		return 0, nil
	}
	if err := q.QueryRow(ctx, "SELECT format FROM journal_format").Scan(&n); err != nil {
		return 0, s.world("open", err)
	}
	list, err := steps()
	if err != nil {
		return 0, fmt.Errorf("journal: %w", err)
	}
	if n > len(list) {
		return 0, berth.Errorf(berth.Invalid, "journal", "%s has format %d; this program reads formats up to %d, a newer one may read it", s.name, n, len(list))
	}
	return n, nil
}

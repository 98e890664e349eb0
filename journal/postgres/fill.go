package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/berth-hpc/berth"
)

// fill is the name under which is kept what fills the journal.
const fill = "fill"

// keptSince is the format from which on something is kept beside the records.
const keptSince = 2

// Fill marks a journal as one that is not whole before Filled: nothing but with Options.Fill opens it. by says what
// fills it, such as "berth journal restore of record 7". Errors: as with Append.
func (s *Store) Fill(ctx context.Context, by string) error { return s.Keep(ctx, fill, []byte(by)) }

// Filled says that the journal is whole. Errors: as with Append.
func (s *Store) Filled(ctx context.Context) error {
	return s.write(ctx, "say that it is whole", ", gone AS (DELETE FROM kept WHERE name = $2 AND EXISTS (SELECT FROM fence))", fill)
}

// FilledBy returns what has begun to fill the journal and has not come to its end; empty if it is whole.
func (s *Store) FilledBy(ctx context.Context) (by string, err error) {
	n, err := s.formatOf(ctx, s.pool)
	if err != nil || n < keptSince {
		return "", err
	}
	var data []byte
	err = s.row(ctx, "SELECT data FROM kept WHERE name = $1", []any{fill}, &data)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	return string(data), err
}

// filled refuses a journal that is not whole.
func (s *Store) filled(ctx context.Context) error {
	if s.options.Fill {
		return nil
	}
	by, err := s.FilledBy(ctx)
	if err == nil && by != "" {
		err = berth.Errorf(berth.Conflict, "journal", "%s is not whole: %s was cut short; the same command brings it to its end", s.name, by)
	}
	return err
}

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/postgres"
)

// journalCopy returns berth journal copy.
func (a *app) journalCopy() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "copy FROM TO",
		Short: "Copy a journal into another one, between SQLite and PostgreSQL too",
		Long: `Copies all records of a journal and its newest snapshot behind those that the other
one has, and then reads the copy and compares. FROM and TO are data directories or
URLs of PostgreSQL databases. TO is empty, or an earlier copy of the same journal: a
copy that was cut short goes on where it ended. A service may run on FROM; what it
acknowledges after the end of FROM was reached is not in the copy. To move a service,
stop it, copy, and start it with --journal; its data directory stays what it is.`,
		Example: `  berth journal copy /var/lib/berth 'postgres://berth@db.example.org/berth?sslmode=verify-full'
  berth journal copy postgres://berth@db.example.org/berth /backup/berth-2026-11-25`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usagef(cmd, "want two journals, FROM and TO, got %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			ctx, stop := untilInterrupt(cmd.Context())
			defer stop()
			from, err := a.openReadOnly(ctx, args[0])
			if err != nil {
				return err
			}
			defer func() { _ = from.Close() }() // only read from
			to, err := openToFill(ctx, args[1])
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, to.Close()) }()
			filled, err := beginFilling(ctx, to)
			if err != nil {
				return err
			}
			done, err := journal.Copy(ctx, to, from)
			if err != nil {
				return err
			}
			if last, _, err := journal.Verify(ctx, to, done.Begin.Number+1, nil); err != nil {
				return fmt.Errorf("the copy is not what was copied: %w", err)
			} else if last != done.Last && done.Last != done.Begin {
				return berth.Errorf(berth.Internal, "journal", "the copy ends with record %d, copied was up to %d", last.Number, done.Last.Number)
			}
			if err := filled(ctx); err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.stdout, "copied %d records to %s, up to %d\nchain  %s\n", done.Records, placeName(args[1]), done.Last.Number, done.Last.Hash)
			return err
		},
	}
	return cmd
}

// beginFilling has no service start on an empty database before a copy has come to its end. filled says that it has.
func beginFilling(ctx context.Context, to store) (filled func(context.Context) error, err error) {
	nothing := func(context.Context) error { return nil }
	s, is := to.(*postgres.Store)
	if !is {
		return nothing, nil
	}
	const copying = "berth journal copy"
	by, err := s.FilledBy(ctx)
	if err != nil {
		return nil, err
	}
	last, err := s.Last(ctx)
	switch {
	case err != nil:
		return nil, err
	case by == "" && last.Number > 0:
		return nothing, nil // an earlier copy, which is whole
	case by != "" && by != copying:
		return nil, berth.Errorf(berth.Conflict, "journal", "it is not whole: %s was cut short; bring that to its end, or empty the database", by)
	}
	return s.Filled, s.Fill(ctx, copying)
}

// placeName returns the place of a journal as it may be shown.
func placeName(place string) string {
	if postgres.IsURL(place) {
		return postgres.Name(place)
	}
	return place
}

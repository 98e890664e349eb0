package main

import (
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
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			ctx, stop := untilInterrupt(cmd.Context())
			defer stop()
			from, err := a.openReadOnly(ctx, args[0])
			if err != nil {
				return err
			}
			defer func() { _ = from.Close() }() // only read from
			to, err := openToWrite(ctx, args[1])
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, to.Close()) }()
			done, err := journal.Copy(ctx, to, from)
			if err != nil {
				return err
			}
			if last, _, err := journal.Verify(ctx, to, done.Begin.Number+1, nil); err != nil {
				return fmt.Errorf("the copy is not what was copied: %w", err)
			} else if last != done.Last && done.Last != done.Begin {
				return berth.Errorf(berth.Internal, "journal", "the copy ends with record %d, copied was up to %d", last.Number, done.Last.Number)
			}
			_, err = fmt.Fprintf(a.stdout, "copied %d records to %s, up to %d\nchain  %s\n", done.Records, placeName(args[1]), done.Last.Number, done.Last.Hash)
			return err
		},
	}
	return cmd
}

// placeName returns the place of a journal as it may be shown.
func placeName(place string) string {
	if postgres.IsURL(place) {
		return postgres.Name(place)
	}
	return place
}

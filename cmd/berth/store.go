package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/postgres"
	"github.com/berth-hpc/berth/journal/sqlite"
)

// store is what a journal can do, wherever it is kept.
type store interface {
	journal.Store
	journal.Compactor
	journal.Founder
	Shrink(ctx context.Context) error
}

// journalFlag adds the flag that names a journal outside the service's directory.
func journalFlag(cmd *cobra.Command, at *string) {
	cmd.Flags().StringVar(at, "journal", "", "`URL` of a PostgreSQL database that keeps the journal, such as postgres://berth@db.example.org/berth?sslmode=verify-full (default: in the directory)")
}

// checkJournal refuses a journal on the command line that is none.
func checkJournal(at string) error {
	if at == "" || postgres.IsURL(at) {
		return nil
	}
	return berth.Errorf(berth.Invalid, "journal", "--journal: %q: want the URL of a database, such as postgres://berth@db.example.org/berth, or nothing for a journal in the data directory", at)
}

// openJournal opens the journal of a service for reading: the one of a URL, else that of
// a directory.
func (a *app) openJournal(ctx context.Context, dir, at string) (store, error) {
	if err := checkJournal(at); err != nil {
		return nil, err
	}
	if at != "" {
		dir = at
	}
	return a.openReadOnly(ctx, dir)
}

// openReadOnly opens the journal at a place, which is a directory or a URL, for reading.
func (a *app) openReadOnly(ctx context.Context, place string) (store, error) {
	if postgres.IsURL(place) {
		s, err := postgres.Open(ctx, place, postgres.Options{ReadOnly: true})
		if err != nil {
			return nil, err // not a pointer of nil in an interface
		}
		return s, nil
	}
	s, err := sqlite.Open(place, sqlite.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	if torn := s.Torn(); torn != nil {
		a.say("the last write is not finished; nothing of it was acknowledged, and the next start drops it: %v", torn)
	}
	return s, nil
}

// openToWrite opens the journal at a place, which is a directory or a URL, and makes it if
// there is none. It does not wait for another process that writes it.
func openToWrite(ctx context.Context, place string) (store, error) {
	return openToWriteWith(ctx, place, postgres.Options{Wait: -1})
}

// openToFill is openToWrite also for a journal that is not whole, which a process that was killed may have left a moment ago.
func openToFill(ctx context.Context, place string) (store, error) {
	return openToWriteWith(ctx, place, postgres.Options{Fill: true})
}

func openToWriteWith(ctx context.Context, place string, o postgres.Options) (store, error) {
	if postgres.IsURL(place) {
		s, err := postgres.Open(ctx, place, o)
		if err != nil {
			return nil, err
		}
		return s, nil
	}
	s, err := sqlite.Open(place, sqlite.Options{})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// lost is closed once another server writes the journal; nil, which never is, for one
// that cannot be taken away.
func lost(s store) <-chan struct{} {
	if s, can := s.(*postgres.Store); can {
		return s.Lost()
	}
	return nil
}

// plainJournal says that a journal is reached over the network without TLS.
func plainJournal(at string) bool {
	host, encrypted := postgres.Reached(at)
	return !encrypted && host != "" && !client.Loopback(host)
}

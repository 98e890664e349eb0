package postgres_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/journaltest"
	"github.com/berth-hpc/berth/journal/postgres"
	"github.com/berth-hpc/berth/journal/postgres/postgrestest"
)

// serverVar tells child processes of a test where the server is.
const serverVar = "BERTH_POSTGRESTEST_URL"

var cases = flag.Int("journal.cases", 1, "how many times the random cases")

// server is what the tests share that need no server of their own; nil if there is none.
var (
	server    *postgrestest.Server
	serverErr error
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if os.Getenv(serverVar) == "" {
		if server, serverErr = postgrestest.New(); serverErr == nil {
			defer func() {
				if err := server.Remove(); err != nil {
					fmt.Fprintln(os.Stderr, err)
				}
			}()
			if err := os.Setenv(serverVar, server.URL("")); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
	}
	if place := os.Getenv(ownVar); place != "" {
		fmt.Fprintln(os.Stderr, writeOn(place))
		return 1
	}
	return journaltest.Main(m, open)
}

// shared returns the server that tests share.
func shared(t *testing.T) *postgrestest.Server {
	t.Helper()
	if serverErr != nil {
		postgrestest.Need(t, serverErr)
	}
	return server
}

// at returns the URL of the journal of a place, which is only a name here.
func at(place string) string {
	sum := sha256.Sum256([]byte(place))
	return os.Getenv(serverVar) + "&search_path=j" + hex.EncodeToString(sum[:8])
}

func open(place string) (journal.Store, error) { return opened(place, postgres.Options{}) }

func opened(place string, options postgres.Options) (journal.Store, error) {
	s, err := postgres.Open(context.Background(), at(place), options)
	if err != nil {
		return nil, err
	}
	return s, nil
}

var adapter = journaltest.Adapter{
	Open:   open,
	Reader: func(place string) (journal.Store, error) { return opened(place, postgres.Options{ReadOnly: true}) },
}

func TestConformance(t *testing.T) {
	by, err := newRelay(shared(t).URL(""))
	if err != nil {
		t.Fatal(err)
	}
	defer by.listener.Close()
	long := adapterBy(by)
	long.Cases = *cases
	journaltest.Run(t, long)
}

func TestKilledProcessLosesNothingAcknowledged(t *testing.T) {
	shared(t)
	rounds := 30 * *cases
	if testing.Short() {
		rounds = 3
	}
	journaltest.Crash(t, adapter, rounds)
}

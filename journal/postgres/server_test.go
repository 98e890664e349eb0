package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/journaltest"
	"github.com/berth-hpc/berth/journal/postgres"
	"github.com/berth-hpc/berth/journal/postgres/postgrestest"
)

// exec1 runs a statement in the schema of a place.
func exec1(t *testing.T, place, statement string, args ...any) (pgconn.CommandTag, error) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), at(place))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	return conn.Exec(t.Context(), statement, args...)
}

// The server is killed and stopped in the middle of commits, round after round: whatever
// it answered is there, in order, and what was tried again is there once.
func TestAServerThatEndsLosesNothingAcknowledged(t *testing.T) {
	s := postgrestest.Start(t)
	store, err := postgres.Open(t.Context(), s.URL(""), postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	retried := 0
	w := journal.NewWriter(store, func(err error) bool {
		if !journal.CanRetry(err) {
			t.Errorf("given up: %v", err)
			return false
		}
		retried++
		time.Sleep(5 * time.Millisecond)
		return true
	})
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(7, 7))
	var last journal.Position
	var all []journal.Record
	acked := 0
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for range 16 {
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				answer := make(chan error, 1)
				mu.Lock()
				r := journaltest.Records(last, 1, rng)[0]
				last = r.Position()
				all = append(all, r)
				w.Add(r, func(err error) {
					if err == nil {
						mu.Lock()
						acked = int(r.Number)
						mu.Unlock()
					}
					answer <- err
				})
				mu.Unlock()
				if <-answer != nil {
					return
				}
			}
		})
	}
	rounds := 8 * *cases
	if testing.Short() {
		rounds = 2
	}
	before := 0
	for round := range rounds {
		time.Sleep(time.Duration(50+rand.IntN(200)) * time.Millisecond) // to be met anywhere
		how := s.Kill
		if round%2 == 1 {
			how = func() error { return s.Stop("immediate") }
		}
		if err := errors.Join(how(), s.Start()); err != nil {
			t.Fatal(err)
		}
		// It goes on by itself.
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			mu.Lock()
			n := acked
			mu.Unlock()
			if n > before {
				before = n
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("round %d: nothing is acknowledged any more", round)
			}
		}
	}
	close(stop)
	clients.Wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	i := 0
	for r, err := range store.Read(t.Context(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		if i >= len(all) || r.Hash != all[i].Hash {
			t.Fatalf("record %d is not what was appended", r.Number)
		}
		i++
	}
	if i < acked || retried == 0 {
		t.Errorf("%d of %d acknowledged are there; %d times tried again", i, acked, retried)
	}
	t.Logf("%d records over %d ends of the server, %d times tried again", i, rounds, retried)
}

// What is changed behind the journal's back is told, with the last good place.
func TestDamageIsTold(t *testing.T) {
	shared(t)
	for name, c := range map[string]struct {
		statement string
		after     uint64
	}{
		"a body":            {"UPDATE record SET body = set_byte(body, 3, get_byte(body, 3) # 1) WHERE number = 700", 699},
		"a hash":            {"UPDATE record SET hash = set_byte(hash, 9, get_byte(hash, 9) # 4) WHERE number = 20", 19},
		"a short hash":      {"UPDATE record SET hash = '\\x00' WHERE number = 20", 19},
		"a missing record":  {"DELETE FROM record WHERE number = 513", 512},
		"the last record":   {"UPDATE record SET body = '\\x01' WHERE number = 1000", 999},
		"two that changed":  {"UPDATE record SET number = CASE number WHEN 5 THEN -6 ELSE -5 END WHERE number IN (5, 6)", 4},
		"a record too many": {"INSERT INTO record SELECT 1001, hash, body FROM record WHERE number = 1000", 1000},
	} {
		t.Run(name, func(t *testing.T) {
			place := t.TempDir()
			s, err := open(place)
			if err != nil {
				t.Fatal(err)
			}
			records := journaltest.Records(journal.Position{}, 1000, rand.New(rand.NewPCG(3, 3)))
			if err := errors.Join(s.Append(t.Context(), records...), s.Close()); err != nil {
				t.Fatal(err)
			}
			if tag, err := exec1(t, place, c.statement); err != nil || tag.RowsAffected() == 0 {
				t.Fatal(tag, err)
			}
			r, err := opened(place, postgres.Options{ReadOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			last, _, err := journal.Verify(t.Context(), r, 1, nil)
			var d *journal.Damage
			if !errors.As(err, &d) || last.Number != c.after || d.After.Number != c.after {
				t.Errorf("verified up to %d: %v", last.Number, err)
			}
			if c.after < 999 {
				return
			}
			if w, err := open(place); !errors.As(err, &d) {
				t.Errorf("opened for writing: %v", err)
				w.Close()
			}
		})
	}
}

// A snapshot that is not what was saved is passed over and told.
func TestADamagedSnapshotIsPassedOver(t *testing.T) {
	shared(t)
	place := t.TempDir()
	s, err := open(place)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	records := journaltest.Records(journal.Position{}, 20, rand.New(rand.NewPCG(3, 3)))
	if err := s.Append(t.Context(), records...); err != nil {
		t.Fatal(err)
	}
	data := bytes.Repeat([]byte("state"), 300_000)
	for _, n := range []int{10, 20} {
		if err := s.SaveSnapshot(t.Context(), records[n-1].Position(), data); err != nil {
			t.Fatal(err)
		}
	}
	for _, statement := range []string{
		"UPDATE part SET data = set_byte(data, 100, 0) WHERE snapshot = 20 AND number = 1", "DELETE FROM part WHERE snapshot = 20 AND number = 2",
		"UPDATE snapshot SET size = 7 WHERE number = 20",
	} {
		if _, err := exec1(t, place, statement); err != nil {
			t.Fatal(err)
		}
		got, err := s.Snapshot(t.Context(), ^uint64(0))
		if err != nil || got.Number != 10 || len(got.Damaged) != 1 || got.Damaged[0].After.Number != 20 || !bytes.Equal(got.Data, data) {
			t.Errorf("%s: the snapshot of %d, damaged %v, %v", statement, got.Number, got.Damaged, err)
		}
		if err := s.SaveSnapshot(t.Context(), records[19].Position(), data); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Snapshot(t.Context(), ^uint64(0)); err != nil || got.Number != 20 {
			t.Errorf("saved again: the snapshot of %d, %v", got.Number, err)
		}
	}
}

// A server that would lose what it has committed is refused.
func TestAServerWithoutSyncIsRefused(t *testing.T) {
	s := postgrestest.Start(t)
	for _, setting := range []string{"full_page_writes", "fsync"} {
		if err := errors.Join(s.Stop("fast"), s.Configure(setting+" = off"), s.Start()); err != nil {
			t.Fatal(err)
		}
		_, err := postgres.Open(t.Context(), s.URL(""), postgres.Options{})
		var e *berth.Error
		if !errors.As(err, &e) || e.Code != berth.Invalid || !strings.Contains(err.Error(), setting+" is off") {
			t.Errorf("%s = off: %v", setting, err)
		}
		if err := s.Configure(setting + " = on"); err != nil {
			t.Fatal(err)
		}
	}
	// An answer before the sync is the server's default here, and turned off for a journal.
	if err := errors.Join(s.Stop("fast"), s.Configure("synchronous_commit = off"), s.Start()); err != nil {
		t.Fatal(err)
	}
	store, err := postgres.Open(t.Context(), s.URL(""), postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for range 5 {
		records := journaltest.Records(mustLast(t, store), 3, rand.New(rand.NewPCG(3, 3)))
		if err := errors.Join(store.Append(t.Context(), records...), s.Kill(), s.Start()); err != nil {
			t.Fatal(err)
		}
		r, err := postgres.Open(t.Context(), s.URL(""), postgres.Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		if last := mustLast(t, r); last != records[2].Position() {
			t.Errorf("record %d was acknowledged, the journal ends with %d", records[2].Number, last.Number)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		err = store.Append(t.Context(), records...) // on connections that are gone
		for journal.CanRetry(err) {
			err = store.Append(t.Context(), records...)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func mustLast(t *testing.T, s journal.Log) journal.Position {
	t.Helper()
	last, err := s.Last(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return last
}

func TestWhatIsWrongWithAURLIsTold(t *testing.T) {
	s := shared(t)
	reader := strings.Replace(s.URL(""), "//berth@", "//looker@", 1)
	for _, c := range []struct {
		name, url string
		options   postgres.Options
		code      berth.Code
		want      string
	}{
		{"no URL", "host=localhost", postgres.Options{}, berth.Invalid, "not the URL of a database"},
		{"a port that is none", "postgres://h:x/d", postgres.Options{}, berth.Invalid, "not the URL of a database"},
		{"two schemas", s.URL("a,b"), postgres.Options{}, berth.Invalid, "search_path"},
		{"no database", strings.Replace(s.URL(""), "/berth?", "/other?", 1), postgres.Options{}, berth.Invalid, `database "other" does not exist`},
		{"no role", reader, postgres.Options{}, berth.Invalid, `role "looker" does not exist`},
		{"no server", "postgres://berth@127.0.0.1:1/berth", postgres.Options{}, berth.Unavailable, "refused"},
		{"no journal", s.URL("none"), postgres.Options{ReadOnly: true}, berth.NotFound, "no journal in schema none"},
		{"no right", strings.Replace(s.URL("berth"), "/berth?", "/template1?", 1), postgres.Options{}, berth.Denied, "may not make the tables"},
	} {
		_, err := postgres.Open(t.Context(), c.url, c.options)
		var e *berth.Error
		if !errors.As(err, &e) || e.Code != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want code %s and %q", c.name, err, c.code, c.want)
		}
	}
	if got := postgres.Name("postgres://u:secret@h/d?sslpassword=hidden"); strings.Contains(got, "secret") || strings.Contains(got, "hidden") {
		t.Errorf("%s shows a password", got)
	}
}

// A journal of a newer program is left alone.
func TestANewerFormatIsRefused(t *testing.T) {
	shared(t)
	place := t.TempDir()
	s, err := open(place)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := exec1(t, place, "UPDATE journal_format SET format = 99"); err != nil {
		t.Fatal(err)
	}
	for _, options := range []postgres.Options{{}, {ReadOnly: true}} {
		var e *berth.Error
		if _, err := opened(place, options); !errors.As(err, &e) || e.Code != berth.Invalid || !strings.Contains(err.Error(), "format 99") {
			t.Errorf("%+v: %v", options, err)
		}
	}
}

// Servers that come to an empty database at once make its tables once.
func TestTablesAreMadeOnce(t *testing.T) {
	shared(t)
	place := t.TempDir()
	var all sync.WaitGroup
	var mu sync.Mutex
	var leads []journal.Store
	for range 6 {
		all.Go(func() {
			s, err := opened(place, postgres.Options{Wait: time.Millisecond})
			var e *berth.Error
			switch {
			case err == nil:
				mu.Lock()
				leads = append(leads, s)
				mu.Unlock()
			case !errors.As(err, &e) || e.Code != berth.Conflict && e.Code != berth.Unavailable:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(leads) != 1 {
		t.Errorf("%d servers lead, want 1", len(leads))
	}
	for s := range slices.Values(leads) {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

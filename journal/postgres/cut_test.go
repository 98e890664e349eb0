package postgres_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/journaltest"
	"github.com/berth-hpc/berth/journal/postgres"
)

// relay stands between stores and the server, and loses a connection when a batch is committed, or just before. It follows the
// messages of the protocol (PostgreSQL 15 manual, chapter 55) as far as that needs: a statement is known from when it is parsed,
// the answer to a transaction ends with ReadyForQuery.
type relay struct {
	to       string // the server's address
	listener net.Listener

	mu  sync.Mutex
	cut map[string]journaltest.Connection // by schema, until it has happened
}

func newRelay(to string) (*relay, error) {
	u, err := url.Parse(to)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &relay{to: u.Host, listener: l, cut: map[string]journaltest.Connection{}}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go r.carry(client)
		}
	}()
	return r, nil
}

// through returns the URL of a place by way of the relay.
func (r *relay) through(place string) string {
	u, err := url.Parse(at(place))
	if err != nil {
		return err.Error()
	}
	u.Host = r.listener.Addr().String()
	return u.String()
}

// schemaOf is the schema of a place.
func schemaOf(place string) string {
	u, err := url.Parse(at(place))
	if err != nil {
		return err.Error()
	}
	return u.Query().Get("search_path")
}

// arm has the connection that appends next to the journal of a place be lost.
func (r *relay) arm(place string, when journaltest.Connection) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut[schemaOf(place)] = when
}

// meets reports whether what is to be cut then is cut now.
func (r *relay) meets(schema string, when journaltest.Connection) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cut[schema] != when {
		return false
	}
	delete(r.cut, schema)
	return true
}

// carry carries one connection.
func (r *relay) carry(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", r.to)
	if err != nil {
		return
	}
	defer server.Close()
	from := bufio.NewReader(client)
	startup, err := message(from, 0)
	if err != nil {
		return
	}
	_, schema, _ := bytes.Cut(startup, []byte("search_path\x00"))
	schema, _, _ = bytes.Cut(schema, []byte{0})
	if _, err := server.Write(startup); err != nil {
		return
	}
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		defer client.Close()
		inserted := false
		pass(client, bufio.NewReader(server), func(kind byte, body []byte) bool {
			inserted = inserted || kind == 'C' && bytes.HasPrefix(body, []byte("INSERT 0 "))
			if kind != 'Z' || !inserted {
				return true
			}
			inserted = false
			return !r.meets(string(schema), journaltest.CutAfter)
		}, func(byte) bool { return false })
	}()
	statement, left := []byte("none"), false
	pass(server, from, func(kind byte, body []byte) bool {
		name, rest, _ := bytes.Cut(body, []byte{0})
		switch {
		case kind == 'P' && bytes.Contains(rest, []byte("INSERT INTO record ")):
			statement = bytes.Clone(name)
		case kind == 'B': // the portal, then the statement
			if of, _, _ := bytes.Cut(rest, []byte{0}); bytes.Equal(of, statement) {
				left = r.meets(string(schema), journaltest.CutLate)
				return !r.meets(string(schema), journaltest.CutBefore)
			}
		}
		return true
	}, func(kind byte) bool { return left && kind == 'S' })
	if left {
		_ = client.Close()
		<-answered // the server goes on with it
	}
}

// pass passes messages on until one may not go, or the connection ends. What follows a message that may not go is not sent, and
// neither is what came with it.
func pass(to io.Writer, from *bufio.Reader, may func(kind byte, body []byte) bool, last func(kind byte) bool) {
	out := bufio.NewWriter(to)
	for {
		m, err := message(from, 1)
		if err != nil || !may(m[0], m[5:]) {
			return
		}
		_, err = out.Write(m)
		ends := last(m[0])
		if err == nil && (ends || from.Buffered() == 0) {
			err = out.Flush()
		}
		if err != nil || ends {
			return
		}
	}
}

// message reads a message whose length comes behind some bytes.
func message(from *bufio.Reader, behind int) ([]byte, error) {
	head, err := from.Peek(behind + 4)
	if err != nil {
		return nil, err
	}
	m := make([]byte, behind+int(binary.BigEndian.Uint32(head[behind:])))
	_, err = io.ReadFull(from, m)
	return m, err
}

// lease is how the suite takes a journal from who writes it: its lease ends as if it had not renewed it, and its connection is
// lost by a relay.
func (r *relay) lease() *journaltest.Lease {
	return &journaltest.Lease{
		Expire: func(place string) error { return execute(place, "UPDATE lease SET until = '-infinity'") },
		Cut: func(place string, when journaltest.Connection) error {
			if when == journaltest.CutLate {
				if err := keepsWaiting(place); err != nil {
					return err
				}
			}
			r.arm(place, when)
			return nil
		},
	}
}

// waitsWithin is for how long a batch waits whose connection was lost: the server gives it up after a second
// (client_connection_check_interval).
const waitsWithin = 700 * time.Millisecond

// keepsWaiting has batches of a place wait until two of them do: one whose connection was lost, and another attempt.
func keepsWaiting(place string) error {
	ctx, end := context.WithTimeout(context.Background(), 20*time.Second)
	conn, err := pgx.Connect(ctx, at(place))
	if err != nil {
		end()
		return err
	}
	tx, err := conn.Begin(ctx)
	if err == nil {
		_, err = tx.Exec(ctx, "SELECT FROM lease FOR UPDATE")
	}
	if err != nil {
		end()
		return errors.Join(err, conn.Close(ctx))
	}
	go func() {
		defer end()
		defer conn.Close(context.Background())
		var first time.Time
		for waiting := 0; waiting < 2 && (first.IsZero() || time.Since(first) < waitsWithin) && ctx.Err() == nil; {
			_, err := tx.Exec(ctx, "SELECT pg_stat_clear_snapshot()") // else it shows what it has shown before
			if err == nil {
				err = tx.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE $1 AND query LIKE '%INSERT INTO record %' AND wait_event_type = 'Lock'",
					"berth/"+schemaOf(place)+"/%").Scan(&waiting)
			}
			if err != nil {
				return
			}
			if waiting > 0 && first.IsZero() {
				first = time.Now()
			}
		}
		_ = tx.Rollback(ctx) // the connection ends anyway
	}()
	return nil
}

// adapterBy is the adapter by way of a relay.
func adapterBy(r *relay) journaltest.Adapter {
	a := adapter
	a.Lease = r.lease()
	a.Open = func(place string) (journal.Store, error) {
		s, err := postgres.Open(context.Background(), r.through(place), postgres.Options{})
		if err != nil {
			return nil, err
		}
		return s, nil
	}
	return a
}

// execute runs a statement in the schema of a place.
func execute(place, statement string) error {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, at(place))
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statement)
	return errors.Join(err, conn.Close(ctx))
}

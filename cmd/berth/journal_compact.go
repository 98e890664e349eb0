package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/internal/wholefile"
	"github.com/berth-hpc/berth/service"
)

// journalCompact returns berth journal compact.
func (a *app) journalCompact() *cobra.Command {
	var dir, at, format string
	var keep berth.Duration
	cmd := &cobra.Command{
		Use:   "compact [--data DIR] [--keep-history D]",
		Short: "Drop old records, and give their room back, also while the service runs",
		Long: `Drops the records that are older than D, or all but the newest state, and gives their
room back to the file system. A service that runs does it itself, as berth serve
--keep-history does all the time, and answers everybody meanwhile; without one the
free room must be twice what is left. What is promised stays, and so does what is
remembered of what is over; what happened before can no longer be verified,
exported or told by berth history. Export it first if it matters.`,
		Example: "  berth journal compact --data /var/lib/berth --keep-history 90d",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			done, err := a.compact(cmd, dir, at, keep)
			switch {
			case err != nil:
				return err
			case format == "json":
				return json.NewEncoder(a.stdout).Encode(&done)
			case done.Dropped == 0:
				_, err = fmt.Fprintf(a.stdout, "nothing dropped: the journal begins with record %d%s\n", done.First, ofTime(done.At))
			default:
				_, err = fmt.Fprintf(a.stdout, "dropped %d records: the journal begins with record %d%s\n", done.Dropped, done.First, ofTime(done.At))
			}
			if err == nil {
				_, err = fmt.Fprintf(a.stdout, "%d bytes before, %d bytes after\n", done.Before, done.After)
			}
			return err
		},
	}
	dataFlag(cmd, &dir)
	journalFlag(cmd, &at)
	cmd.Flags().Var(&span{value: &keep, least: 1}, "keep-history", "keep the records of the last `D`, such as 90d (default: none)")
	cmd.Flags().VarP(&choice{&format, "form", []string{"table", "json"}}, "output", "o", "form of the result: table, json")
	return cmd
}

func ofTime(at form.Time) string {
	if at == 0 {
		return ", which is still to come"
	}
	return " of " + localTime(at)
}

// compact compacts a journal, or has the service do it that runs on it.
func (a *app) compact(cmd *cobra.Command, dir, at string, keep berth.Duration) (form.Compacted, error) {
	ctx, stop := untilInterrupt(cmd.Context())
	defer stop()
	if err := checkJournal(at); err != nil {
		return form.Compacted{}, err
	}
	if at == "" { // opened to be written, a directory without a journal would get one
		there, err := a.openReadOnly(ctx, dir)
		if err != nil {
			return form.Compacted{}, err
		}
		_ = there.Close() // nothing was read
	}
	store, err := openToWrite(ctx, cmp.Or(at, dir))
	if coded, is := errors.AsType[*berth.Error](err); is && coded.Code == berth.Conflict {
		c, atErr := servedAt(dir)
		if atErr != nil {
			return form.Compacted{}, errors.Join(err, atErr)
		}
		return c.Compact(ctx, keep)
	}
	if err != nil {
		return form.Compacted{}, err
	}
	defer func() { _ = store.Close() }() // what is dropped is so durably
	done, err := service.Compact(ctx, store, berth.Time(time.Now().Unix()).Add(1-keep), version(), 0)
	if err != nil {
		return form.Compacted{}, err
	}
	if err := store.Shrink(ctx); err != nil {
		return form.Compacted{}, fmt.Errorf("its room is not given back yet, the next compact does it: %w", err)
	}
	after, err := store.Size()
	f := form.Compacted{First: done.First, Dropped: done.Dropped, Before: done.Before, After: after}
	if done.At != 0 {
		f.At = form.TimeOf(done.At)
	}
	return f, err
}

// addressFile is the file in a data directory that says where its service is.
const addressFile = "address"

// publish writes down where the service of a data directory is, for commands that work on
// the directory, and returns the file.
func publish(dir, scheme string, at net.Addr) (path string, err error) {
	host, port, err := net.SplitHostPort(at.String())
	if err != nil {
		return "", fmt.Errorf("where the service is: %w", err)
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if ip.To4() == nil {
			host = "::1"
		}
	}
	path = filepath.Join(dir, addressFile)
	return path, wholefile.Write(path, []byte(scheme+net.JoinHostPort(host, port)+"\n"))
}

// servedAt returns a client of the service that runs on a data directory: with the token
// of the environment or of the login there, else with the operator's first one.
func servedAt(dir string) (*client.Client, error) {
	text, err := os.ReadFile(filepath.Join(dir, addressFile))
	if err != nil {
		return nil, fmt.Errorf("where its service is cannot be read: %w", err)
	}
	server := strings.TrimSpace(string(text))
	known, err := readLogin()
	if err != nil {
		return nil, err
	}
	secret := firstOf(os.Getenv(tokenVar), known.Tokens[trimServer(server)])
	if secret == "" {
		if secret, err = readToken(filepath.Join(dir, token.OperatorFile)); err != nil {
			return nil, fmt.Errorf("no token for %s: log in there as an operator: %w", server, err)
		}
	}
	if !strings.HasPrefix(server, tlsScheme) {
		return client.New(server, secret, nil)
	}
	shown, err := shownBy(dir)
	if err != nil {
		return nil, err
	}
	h, err := overTLS(shown)
	if err != nil {
		return nil, err
	}
	return client.New(server, secret, h)
}

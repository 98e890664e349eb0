// Package laboratory runs comparisons of schedulers for the users of a service: each is
// berth lab, a process of its own at the lowest priority and in bounded memory, so that
// nothing that a log holds can slow down or end the service. It keeps uploaded logs and
// finished reports in a folder for a while, and nothing across a restart. It knows users by
// their names and asks for no rights.
package laboratory

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/berth-hpc/berth"
)

// The bounds, for a service that is not about its laboratory.
const (
	// MaxUpload is the largest log: 64 MiB of gzip are some millions of jobs.
	MaxUpload = 64 << 20
	// MaxMemory is what a comparison may take.
	MaxMemory = 2 << 30
	// MaxTime is how long one may run.
	MaxTime = time.Hour
	// MaxRuns is how many simulations one may be.
	MaxRuns = 2000
	// Keep is how long what was uploaded and what came of a comparison stays.
	Keep = 24 * time.Hour

	// maxUploads and maxJobs bound what is kept for a user; the oldest make room.
	maxUploads = 4
	maxJobs    = 8
	// maxKept bounds the bytes of all uploads together, and maxWaiting the comparisons of
	// all users that wait for their turn.
	maxKept    = 1 << 30
	maxWaiting = 32
)

// Options say where a laboratory works. Folder and Program are needed.
type Options struct {
	// Folder is the laboratory's own; what is in it is removed.
	Folder string
	// Program begins the command line that compares, as berth lab does; flags follow.
	Program []string
	Log     *slog.Logger     // nil is none
	Now     func() time.Time // nil is the machine's clock
}

// Laboratory runs comparisons. It may be used by any number of goroutines.
type Laboratory struct {
	options Options
	boot    string // begins the names of this start
	turns   chan struct{}
	context context.Context
	stop    context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	number  int
	uploads []*Upload       // by age
	jobs    []*job          // by age
	sending map[string]bool // users whose logs are coming in
}

// Upload is a log that a user has sent.
type Upload struct {
	ID      string
	User    string
	Name    string // as users know it; also of the file for the program
	Bytes   int64
	Expires time.Time
}

// Open begins with nothing: what an earlier start has left in the folder is removed.
func Open(o Options) (*Laboratory, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if err := os.RemoveAll(o.Folder); err != nil {
		return nil, fmt.Errorf("empty the laboratory: %w", err)
	}
	if err := os.MkdirAll(o.Folder, 0o700); err != nil {
		return nil, fmt.Errorf("make the laboratory: %w", err)
	}
	l := &Laboratory{options: o, boot: strings.ToLower(rand.Text()[:8]), turns: make(chan struct{}, max(1, runtime.NumCPU()/4)), sending: map[string]bool{}}
	l.context, l.stop = context.WithCancel(context.Background())
	return l, nil
}

// Close ends what runs and removes everything.
func (l *Laboratory) Close() error {
	l.stop()
	l.running.Wait()
	return os.RemoveAll(l.options.Folder)
}

// id returns a new name, which tells the start that it belongs to.
func (l *Laboratory) id() string {
	l.number++
	return fmt.Sprintf("%s-%d", l.boot, l.number)
}

// unknown is the error about an id: what was there before a restart is not there any more.
func (l *Laboratory) unknown(what, id string) error {
	again := "start"
	if what == "log" {
		again = "send"
	}
	if boot, _, is := strings.Cut(id, "-"); is && boot != l.boot {
		return berth.Errorf(berth.NotFound, "id", "no %s %.40q; the service has been restarted since, and its laboratory keeps nothing across that: %s it again", what, id, again)
	}
	return berth.Errorf(berth.NotFound, "id", "no %s %.40q; the laboratory keeps the newest for %s", what, id, hours(Keep))
}

func hours(d time.Duration) string { return fmt.Sprintf("%d hours", int(d.Hours())) }

// Upload keeps a log. Its name decides its form, as it does for berth lab. Errors are of code
// Invalid, Conflict where another one of the user is coming in, Exhausted where no room is left, or of the file system or the sender.
func (l *Laboratory) Upload(user, name string, from io.Reader) (Upload, error) {
	u := &Upload{User: user, Name: fileName(name)}
	l.mu.Lock()
	l.sweep()
	u.ID = l.id()
	kept := int64(0)
	for _, other := range l.uploads {
		if other.User != user {
			kept += other.Bytes
		}
	}
	busy := l.sending[user]
	kept += int64(len(l.sending)) * MaxUpload
	if !busy && kept+MaxUpload <= maxKept {
		l.sending[user] = true
		defer func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			delete(l.sending, user)
		}()
	}
	l.mu.Unlock()
	if busy {
		return Upload{}, berth.Errorf(berth.Conflict, "body", "another log of yours is coming in; send one at a time")
	}
	if kept+MaxUpload > maxKept {
		return Upload{}, berth.Errorf(berth.Exhausted, "body", "the logs of other users take all %d MiB; they are kept for %s", maxKept>>20, hours(Keep))
	}
	path := l.pathOf(u)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return Upload{}, fmt.Errorf("keep a log: %w", err)
	}
	u.Bytes, err = io.Copy(file, io.LimitReader(from, MaxUpload+1))
	err = errors.Join(err, file.Close())
	switch {
	case err != nil:
	case u.Bytes > MaxUpload:
		err = TooLarge()
	case u.Bytes == 0:
		err = berth.Errorf(berth.Invalid, "body", "empty; want a log: SWF, JSON Lines, JDL or what sacct -P prints, packed by gzip or not")
	}
	if err != nil {
		_ = os.Remove(path) // swept at the next start if it cannot be now
		return Upload{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	u.Expires = l.options.Now().Add(Keep)
	l.uploads = append(l.uploads, u)
	own := 0
	for _, other := range slices.Backward(slices.Clone(l.uploads)) {
		if other.User == user {
			if own++; own > maxUploads {
				l.drop(other)
			}
		}
	}
	return *u, nil
}

// TooLarge is the error about a log that is larger than MaxUpload. Its field is bytes, which
// no other error of Upload has.
func TooLarge() *berth.Error {
	return berth.Errorf(berth.Invalid, "bytes", "larger than %d MiB; pack the log by gzip, leave columns out, or use berth lab, which has no bound", MaxUpload>>20)
}

func (l *Laboratory) pathOf(u *Upload) string { return filepath.Join(l.options.Folder, "log-"+u.ID) }

// drop forgets a log. Comparisons that use it have a name of their own for it.
func (l *Laboratory) drop(u *Upload) {
	l.uploads = slices.DeleteFunc(l.uploads, func(o *Upload) bool { return o == u })
	_ = os.Remove(l.pathOf(u)) // swept at the next start if it cannot be now
}

// Uploads lists the logs of a user by age.
func (l *Laboratory) Uploads(user string) []Upload {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweep()
	list := []Upload{}
	for _, u := range l.uploads {
		if u.User == user {
			list = append(list, *u)
		}
	}
	return list
}

// sweep forgets what has expired.
func (l *Laboratory) sweep() {
	now := l.options.Now()
	for _, u := range slices.Clone(l.uploads) {
		if !now.Before(u.Expires) {
			l.drop(u)
		}
	}
	for _, j := range slices.Clone(l.jobs) {
		if j.State.Over() && !now.Before(j.Expires) {
			l.forget(j)
		}
	}
}

// fileName makes a file's name of what a user calls it: one that is no path, no flag and no
// surprise for a shell.
func fileName(name string) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
	name = strings.TrimLeft(name, ".-")
	if len(name) > 80 { // the end says of what form it is
		name = strings.TrimLeft(name[len(name)-80:], ".-")
	}
	if name == "" || isReserved(name) {
		return "log-" + name
	}
	return name
}

// isReserved reports whether a name is one that the laboratory gives itself.
func isReserved(name string) bool {
	return slices.Contains([]string{reportFolder, HistoryFile, SitesFile}, name)
}

// open returns a file of a folder, which must be a plain one.
func open(folder, name string) (*os.File, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // nothing was written
	file, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = file.Close() // nothing was read
		return nil, fs.ErrNotExist
	}
	return file, nil
}

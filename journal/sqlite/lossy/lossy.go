// Package lossy is a file system for SQLite that forgets what was not synced,
// tears what was under way, runs full and fails to read, write and sync, all on command. Only
// tests import it. It wraps SQLite's own file system, so what runs is the code
// that runs in production; it does not simulate locks or shared memory.
package lossy

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// sector is what a disk writes whole or not at all.
const sector = 512

// Disk remembers, for every file opened through it, what a loss of power would
// leave. Its methods are safe for concurrent use.
type Disk struct {
	name    string
	release func() error

	mu     sync.Mutex
	files  map[string]*file // by path
	before func(op int)
	ops    int
	room   int64 // bytes that may still be written; negative is no limit
	syncs  int   // how many to fail
	lies   Lie

	loose map[string][][]byte // by path, what has been in a file that is not synced

	reads  int
	fault  string // how it fails
	at     int    // the operation that fails; a read's number for BadRead
	failed bool
}

// file is one file's durable content and what has happened to it since.
type file struct {
	exists  bool // its name is durable
	durable []byte
	pending []change
}

// change is a write, a truncation or a removal that has not been synced.
type change struct {
	kind   changeKind
	offset int64 // the new length, for a truncation
	data   []byte
}

type changeKind uint8

const (
	write changeKind = iota
	truncate
	remove
)

// New returns a disk registered with SQLite. Close it when all databases on it
// are closed.
func New() (*Disk, error) {
	d := &Disk{files: map[string]*file{}, room: -1}
	if err := d.register(); err != nil {
		return nil, err
	}
	return d, nil
}

// Name is the VFS to name when opening a database.
func (d *Disk) Name() string { return d.name }

// Close takes the disk from SQLite's list.
func (d *Disk) Close() error { return d.release() }

// Before sets what is called before each write, truncation, sync and removal,
// with its number from 0, on the goroutine that does it. It may call Image.
func (d *Disk) Before(f func(op int)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.before = f
}

// Ops returns how many operations there have been.
func (d *Disk) Ops() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ops
}

// Room sets how many bytes may still be written before the disk is full;
// negative is no limit.
func (d *Disk) Room(bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.room = bytes
}

// FailSyncs lets the next n syncs fail. What they should have kept is not
// durable.
func (d *Disk) FailSyncs(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.syncs = n
}

// Lie is what a disk says that it has done when it has not.
type Lie int

// The lies.
const (
	Honest     Lie = iota
	SyncNot        // a sync keeps nothing
	SyncNoName     // a sync keeps the content of a file, and never that there is one
)

// Lie lets the disk lie from now on.
func (d *Disk) Lie(about Lie) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lies = about
}

// The ways in which an operation can fail.
const (
	NoRoom     = "no room"     // for writes, from then on
	ReadOnly   = "read-only"   // no write, truncation, sync or removal, from then on
	BadWrite   = "a bad write" // or truncation, sync or removal, once
	ShortWrite = "short write" // half of the next one, and then there is no room, once
	BadRead    = "a bad read"  // once
)

// Faults lists all of them.
func (d *Disk) Faults() []string { return []string{NoRoom, ReadOnly, BadWrite, ShortWrite, BadRead} }

// Fail lets an operation, counted from now on and from 0, fail; an empty fault is none.
func (d *Disk) Fail(at int, how string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault, d.at = how, d.ops+at
	d.failed = d.failed && how == ""
	if how == BadRead {
		d.at = d.reads + at
	}
}

// Failed reports whether one has failed since the last fault was set.
func (d *Disk) Failed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failed
}

// broken says how an operation that changes something fails; empty if it does not.
func (d *Disk) broken(op int, writes bool) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var hit bool
	switch d.fault {
	case NoRoom:
		hit = writes && op >= d.at
	case ReadOnly:
		hit = op >= d.at
	case BadWrite:
		hit = op == d.at
	case ShortWrite:
		hit = writes && op >= d.at && !d.failed
	}
	if !hit {
		return ""
	}
	d.failed = true
	return d.fault
}

// unreadable counts a read and reports whether it fails.
func (d *Disk) unreadable() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reads++
	if d.fault != BadRead || d.reads-1 != d.at {
		return false
	}
	d.failed = true
	return true
}

// Loose names a file that is written beside the database by other means, and never synced:
// a loss of power leaves any content that it had at an operation, or none. Its name is
// durable.
func (d *Disk) Loose(path string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.loose == nil {
		d.loose = map[string][][]byte{}
	}
	d.loose[path] = append(d.loose[path], nil)
}

// look remembers what is in loose files; with the lock.
func (d *Disk) look() {
	for path, had := range d.loose {
		content, err := os.ReadFile(path)
		if err == nil && string(content) != string(had[len(had)-1]) {
			d.loose[path] = append(had, content)
		}
	}
}

// Image writes into a directory what would be left of the files in another one
// if the power failed now. With a nil rng that is what was synced and nothing
// else; otherwise each sector written since may be there or not, and each
// truncation and removal may have happened or not.
func (d *Disk) Image(from, to string, rng *rand.Rand) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	d.look()
	for _, path := range slices.Sorted(maps.Keys(d.loose)) {
		had := d.loose[path]
		if filepath.Dir(path) != filepath.Clean(from) || len(had) == 1 {
			continue
		}
		var content []byte
		if rng != nil {
			content = had[rng.IntN(len(had))]
			if rng.IntN(2) == 0 {
				content = had[len(had)-1] // the likeliest
			}
		}
		if err := os.WriteFile(filepath.Join(to, filepath.Base(path)), content, 0o600); err != nil {
			return err
		}
	}
	for _, path := range slices.Sorted(maps.Keys(d.files)) {
		if filepath.Dir(path) != filepath.Clean(from) {
			continue
		}
		content, exists := d.files[path].left(rng)
		if !exists {
			continue
		}
		if err := os.WriteFile(filepath.Join(to, filepath.Base(path)), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// left returns what is on the disk without the changes that were lost.
func (f *file) left(rng *rand.Rand) (content []byte, exists bool) {
	content, exists = slices.Clone(f.durable), f.exists
	if rng == nil {
		return content, exists
	}
	for _, c := range f.pending {
		switch c.kind {
		case write:
			for at := 0; at < len(c.data); {
				end := min(len(c.data), at+sector-int((c.offset+int64(at))%sector))
				if rng.IntN(2) == 0 {
					content, exists = put(content, c.offset+int64(at), c.data[at:end]), true
				}
				at = end
			}
		case truncate:
			if rng.IntN(2) == 0 {
				content = resize(content, c.offset)
			}
		case remove:
			if rng.IntN(2) == 0 {
				content, exists = nil, false
			}
		}
	}
	return content, exists
}

func put(content []byte, offset int64, data []byte) []byte {
	if need := offset + int64(len(data)); need > int64(len(content)) {
		content = resize(content, need)
	}
	copy(content[offset:], data)
	return content
}

func resize(content []byte, size int64) []byte {
	if size <= int64(len(content)) {
		return content[:size]
	}
	return append(content, make([]byte, size-int64(len(content)))...)
}

// op counts an operation and announces it.
func (d *Disk) op() (number int) {
	d.mu.Lock()
	before, n := d.before, d.ops
	d.ops++
	d.look()
	d.mu.Unlock()
	if before != nil {
		before(n)
	}
	return n
}

// add remembers a change that is not durable yet. Shared memory, which no loss
// of power leaves behind, does not come here: SQLite maps it.
func (d *Disk) add(path string, c change) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.file(path)
	f.pending = append(f.pending, c)
}

func (d *Disk) file(path string) *file {
	if d.files[path] == nil {
		d.files[path] = &file{}
	}
	return d.files[path]
}

// take reports whether there is room for bytes more, and uses it.
func (d *Disk) take(bytes int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.room < 0 {
		return true
	}
	if bytes > d.room {
		return false
	}
	d.room -= bytes
	return true
}

// synced makes a file's changes durable, and with directory also the names of
// all files beside it. ok is false if this sync is to fail.
func (d *Disk) synced(path string, directory bool) (ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.syncs > 0 {
		d.syncs--
		return false
	}
	if d.lies == SyncNot {
		return true
	}
	d.file(path).sync()
	if directory && d.lies != SyncNoName {
		for other, f := range d.files {
			if filepath.Dir(other) == filepath.Dir(path) {
				f.name()
			}
		}
	}
	return true
}

// sync makes the content durable.
func (f *file) sync() {
	for _, c := range f.pending {
		switch c.kind {
		case write:
			f.durable = put(f.durable, c.offset, c.data)
		case truncate:
			f.durable = resize(f.durable, c.offset)
		case remove:
			f.durable = nil
		}
	}
	f.pending = nil
}

// name makes durable whether the file exists: a removal takes with it what came
// before.
func (f *file) name() {
	f.exists = true
	for i, c := range slices.Backward(f.pending) {
		if c.kind == remove {
			f.pending = f.pending[i+1:]
			f.durable, f.exists = nil, len(f.pending) > 0
			return
		}
	}
}

// removed forgets a file, at once if the directory is synced with it.
func (d *Disk) removed(path string, synced bool) {
	if !synced {
		d.add(path, change{kind: remove})
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.files, path)
}

// adopt takes a file as it is found for durable: it is from before the test.
func (d *Disk) adopt(path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.files[path] != nil || strings.HasSuffix(path, "-shm") {
		return nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("lossy: %w", err)
	}
	d.files[path] = &file{exists: true, durable: content}
	return nil
}

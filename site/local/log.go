//go:build linux

package local

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/berth-hpc/berth/internal/wholefile"
	"github.com/berth-hpc/berth/site"
)

// record is one line of the log of bookings.
type record struct {
	Put *booking `json:"put,omitempty"`
	// Together are bookings that change at once, because each needs the others to.
	Together []*booking `json:"together,omitempty"`
	Drop     string     `json:"drop,omitempty"`
	Drain    *note      `json:"drain,omitempty"`
}

// bookingLog keeps the bookings on disk, a line for each change. It survives the
// process, not the power: what was lost then is found missing by those who made
// the promises, as with any other site.
type bookingLog struct {
	path  string
	file  *os.File
	lines int // since it was written anew
}

// openLog reads the log into the table, leaves out a torn last line, and writes
// it anew with what is still there.
func openLog(path string, t *table, drain *note) (*bookingLog, error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("local site: %w", err)
	}
	lines := bufio.NewReader(bytes.NewReader(text))
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break // a line without an end was being written when the process died
		}
		var r record
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("local site: %s line %d: %w", path, number, err)
		}
		r.apply(t, drain)
	}
	l := &bookingLog{path: path}
	return l, l.rewrite(t, drain)
}

func (r *record) apply(t *table, drain *note) {
	switch {
	case r.Put != nil:
		t.put(r.Put)
	case r.Together != nil:
		t.putAll(r.Together)
	case r.Drop != "":
		t.drop(r.Drop)
	case r.Drain != nil:
		*drain = *r.Drain
	}
}

// rewrite writes the log anew and keeps it open.
func (l *bookingLog) rewrite(t *table, drain *note) error {
	var text bytes.Buffer
	out := json.NewEncoder(&text)
	names := make([]string, 0, len(t.bookings))
	for name := range t.bookings {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := out.Encode(record{Put: t.bookings[name]}); err != nil {
			return fmt.Errorf("local site: %w", err)
		}
	}
	if drain.Reason != "" {
		if err := out.Encode(record{Drain: drain}); err != nil {
			return fmt.Errorf("local site: %w", err)
		}
	}
	if err := wholefile.Write(l.path, text.Bytes()); err != nil {
		return fmt.Errorf("local site: %w", err)
	}
	if l.file != nil {
		_ = l.file.Close() // it was replaced
	}
	file, err := os.OpenFile(l.path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return fmt.Errorf("local site: %w", err)
	}
	l.file, l.lines = file, 0
	return nil
}

// write adds a line. If it fails nothing was booked.
func (l *bookingLog) write(r record) error {
	line, err := json.Marshal(r)
	if err == nil {
		_, err = l.file.Write(append(line, '\n'))
	}
	if err != nil {
		return &site.Error{Kind: site.Unreachable, Op: "write bookings", Msg: "cannot write down what is booked", Err: err, Hint: "is the disk of " + l.path + " full?"}
	}
	l.lines++
	return nil
}

// compact writes the log anew once most of it is out of date.
func (l *bookingLog) compact(t *table, drain *note) error {
	const least = 10_000
	if l.lines < least || l.lines < 2*len(t.bookings) {
		return nil
	}
	return l.rewrite(t, drain)
}

func (l *bookingLog) close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

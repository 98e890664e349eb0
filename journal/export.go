package journal

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"iter"

	"github.com/berth-hpc/berth"
)

// Line is a record as a line of an export.
type Line struct {
	Number  uint64          `json:"number"`
	At      berth.Time      `json:"at"`
	Version string          `json:"version"`
	Event   json.RawMessage `json:"event,omitempty"`
	Changes json.RawMessage `json:"changes,omitempty"`
	Effects json.RawMessage `json:"effects,omitempty"`
	Hash    Hash            `json:"hash"`
}

// Plain shows payloads as what they are, bytes in base64. It is the form of an
// export where the meaning of the payloads is unknown.
func Plain(r *Record) (Line, error) {
	line := Line{Number: r.Number, At: r.At, Version: r.Version, Hash: r.Hash}
	for _, p := range []struct {
		to   *json.RawMessage
		from []byte
	}{{&line.Event, r.Event}, {&line.Changes, r.Changes}, {&line.Effects, r.Effects}} {
		if len(p.from) > 0 {
			*p.to = append(base64.StdEncoding.AppendEncode([]byte{'"'}, p.from), '"')
		}
	}
	return line, nil
}

// Export writes records as JSON Lines, each as line shows it, and returns the
// place of the last one written. What was written before an error stands.
func Export(w io.Writer, records iter.Seq2[Record, error], line func(*Record) (Line, error)) (Position, error) {
	var last Position
	out := bufio.NewWriterSize(w, 1<<16)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for r, err := range records {
		if err != nil {
			return last, flushed(out, err)
		}
		l, err := line(&r)
		if err != nil {
			return last, flushed(out, err)
		}
		if err := encoder.Encode(l); err != nil {
			return last, err
		}
		last = r.Position()
	}
	return last, out.Flush()
}

// flushed writes what is buffered out before an error is returned.
func flushed(out *bufio.Writer, err error) error {
	if e := out.Flush(); e != nil {
		return e
	}
	return err
}

// Reader is the part of a Log that checking needs.
type Reader interface {
	Read(ctx context.Context, from uint64) iter.Seq2[Record, error]
}

// Verify reads the records from a number on, which checks the chain, and lets
// look, which may be nil, see each: it decides again and compares, and its error
// ends the run. It returns the place of the last record that passed, and how
// many did.
func Verify(ctx context.Context, log Reader, from uint64, look func(*Record) error) (last Position, n int, err error) {
	for r, err := range log.Read(ctx, from) {
		if err != nil {
			return last, n, err
		}
		if look != nil {
			if err := look(&r); err != nil {
				return last, n, err
			}
		}
		last = r.Position()
		n++
	}
	return last, n, nil
}

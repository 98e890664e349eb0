package sqlite

import (
	"context"
	"os"

	"github.com/berth-hpc/berth/journal"
)

// Unsynced are options that answer before the sync, for the tests that must
// find it out.
func Unsynced(vfs, synchronous string) Options {
	return Options{VFS: vfs, synchronous: synchronous, InlineCheckpoints: true}
}

// ShortRests are options with which a compaction rests between its slices for as long as they take. On a disk of a test, whose
// operations are counted, one follows the other.
func ShortRests(vfs string) Options {
	return Options{VFS: vfs, InlineCheckpoints: vfs != "", restPart: 1}
}

// Checkpoints returns options that start a checkpoint after a number of bytes, inline or beside the writer.
func Checkpoints(vfs string, inline bool, after int) Options {
	return Options{VFS: vfs, InlineCheckpoints: inline, checkpointAfter: after, restPart: 1}
}

// LogBound returns the largest size of the log, in bytes, for batches of a given size there.
func LogBound(batch int64) int64 { return checkpointAfter + growMeanwhile + 2*batch }

// MarkName is the file with the mark.
const MarkName = markName

// Stepped is a restore that calls a function before each step that changes something on disk.
func (o Restoring) Stepped(step func()) Restoring {
	o.step = step
	return o
}

// MarkFirst is a journal that writes the mark before what it marks.
type MarkFirst struct{ *Store }

// Append writes the mark first.
func (m MarkFirst) Append(ctx context.Context, records ...journal.Record) error {
	if len(records) > 0 {
		if err := writeMark(m.mark, records[len(records)-1].Position()); err != nil {
			return err
		}
	}
	return m.Store.Append(ctx, records...)
}

// WithoutMark answers before the mark is written: it lets a journal write it elsewhere.
func WithoutMark(s *Store, elsewhere *os.File) { s.mark = elsewhere }

// RowFirst is a journal that says that a snapshot is there before its parts are.
type RowFirst struct{ *Store }

// SaveSnapshot writes the row first.
func (r RowFirst) SaveSnapshot(ctx context.Context, at journal.Position, data []byte) error {
	sum := journal.SumSnapshot(at)
	sum.Write(data)
	err := r.write(ctx, "save a snapshot", 0, "INSERT OR REPLACE INTO snapshot (number, hash, size, sum) VALUES (?, ?, ?, ?)",
		int64(at.Number), at.Hash[:], len(data), sum.Sum(nil))
	for part := 0; err == nil && part*partBytes < len(data); part++ {
		piece := data[part*partBytes : min((part+1)*partBytes, len(data))]
		err = r.write(ctx, "save a snapshot", len(piece), "INSERT OR REPLACE INTO part (snapshot, number, data) VALUES (?, ?, ?)",
			int64(at.Number), part, piece)
	}
	return err
}

// Dir is where a journal is.
func Dir(s *Store) string { return s.dir }

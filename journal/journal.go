// Package journal is the contract with durable memory: records in one chain of
// hashes, and snapshots. It also has what every adapter and every user of one
// needs: the canonical form of a record, group commit, checking, export. It does
// not know what the records say (package record does), nor where they are kept
// (the adapters do).
//
// The payloads are bytes here, so that an adapter can be built, tested and
// repaired without the engine, and so that the chain outlives every change of
// the engine's types.
//
// # Several servers
//
// Append takes only the records that follow the last one, so of two servers that
// write the same journal at most one gets each number, and the other one
// learns it by Conflict. An adapter that several servers share grants a lease with
// a fencing number when it opens for writing, and answers Conflict once another
// server has a later one. Nothing of it shows in the interfaces below. The other servers
// may read meanwhile, and follow: Last and Read see what is acknowledged.
package journal

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"iter"

	"github.com/berth-hpc/berth"
)

// Hash is the SHA-256 of everything up to a record.
type Hash [sha256.Size]byte

// String returns the hash in hex.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText writes the form of String.
func (h Hash) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h[:]), nil }

// UnmarshalText reads the form of String.
func (h *Hash) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(h)) {
		return berth.Errorf(berth.Invalid, "hash", "%d characters; a SHA-256 has %d", len(text), hex.EncodedLen(len(h)))
	}
	if _, err := hex.Decode(h[:], text); err != nil {
		return berth.Errorf(berth.Invalid, "hash", "%q is not hexadecimal", text)
	}
	return nil
}

// Position is a place in the chain: a record's number and hash. The zero value
// is the place before the first record.
type Position struct {
	Number uint64 `json:"number"`
	Hash   Hash   `json:"hash"`
}

// Record is one step of history: what came in, what it changed, what is to be
// done in the world. Numbers begin with 1 and have no gaps. The payloads are
// opaque and belong to the holder of the record.
type Record struct {
	Number  uint64
	At      berth.Time
	Version string // of the program that decided
	Event   []byte
	Changes []byte
	Effects []byte
	Hash    Hash // of the previous hash and the rest, see Seal
}

// Position returns the record's place in the chain.
func (r *Record) Position() Position { return Position{Number: r.Number, Hash: r.Hash} }

// Log is a sequence of records. Its methods may be called at the same time;
// what two calls of Append do is as if one came after the other.
type Log interface {
	// Append adds records behind the last one, all or none. When it returns
	// nil they survive the loss of power. Records that are there already, with
	// the same hash, are passed over, so that a batch whose fate is unknown can
	// be appended again. Once a batch is under way, the end of ctx does not
	// stop it. The slice, but not what its records refer to, may be written again
	// afterwards.
	//
	// Errors: Conflict, the records do not follow the last one, which is a gap,
	// another history, or another server that leads; Exhausted, there is no
	// room, and the same call can succeed when there is; Unavailable, likewise,
	// for other failures of the world; Invalid, the records do not follow one
	// another. The context's error if it ended before anything was done.
	Append(ctx context.Context, records ...Record) error
	// Read yields the records from a number on, each checked against the one
	// before, up to the last one that was there when it got to the end. The
	// last pair may carry an error: a *Damage where the chain breaks, NotFound
	// if the first record asked for is no longer kept.
	Read(ctx context.Context, from uint64) iter.Seq2[Record, error]
	// Last returns the place of the last record.
	Last(ctx context.Context) (Position, error)
	// Close lets go of the journal. Append and Read are errors from then on.
	Close() error
}

// Snapshot is a state that stands for all records up to a place.
type Snapshot struct {
	Position
	Data []byte
	// Damaged lists newer snapshots that were passed over, newest first.
	Damaged []Damage
}

// Snapshots keeps snapshots beside the records.
type Snapshots interface {
	// SaveSnapshot keeps the state at a place that is in the log, durably. It
	// may take its time and lets Append go on; what is cut short leaves nothing
	// behind. Errors: as with Append; Conflict if the log has no such place.
	SaveSnapshot(ctx context.Context, at Position, data []byte) error
	// Snapshot returns the newest undamaged snapshot of a number up to the
	// given one. The zero value, without data, if there is none.
	Snapshot(ctx context.Context, upTo uint64) (Snapshot, error)
}

// Compactor drops history.
type Compactor interface {
	// Begin returns the place before the first record kept: the zero value if
	// nothing was dropped.
	Begin(ctx context.Context) (Position, error)
	// Compact drops all records up to a number, and the snapshots before it, and
	// gives their room back. There must be an undamaged snapshot of exactly that
	// number, which from then on is where the chain begins and is kept as long as
	// it is; else it is a Conflict. It may take its time and lets Append go on; what
	// is cut short is done by the next call.
	Compact(ctx context.Context, upTo uint64) error
	// Size returns how many bytes the journal takes.
	Size() (int64, error)
}

// Founder begins a journal where another one does.
type Founder interface {
	// Found has an empty journal begin behind a place, with the snapshot of it, as if
	// what was before had been compacted. Errors: as with Append; Conflict if the journal
	// is not empty.
	Found(ctx context.Context, at Position, data []byte) error
}

// Store is a log with snapshots.
type Store interface {
	Log
	Snapshots
}

// CanRetry reports whether the same call can succeed later: there was no room,
// or something the journal needs did not answer.
func CanRetry(err error) bool {
	var e *berth.Error
	return errors.As(err, &e) && (e.Code == berth.Exhausted || e.Code == berth.Unavailable)
}

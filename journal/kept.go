package journal

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
)

// What stores that keep records and snapshots in tables have in common.

// KeptSnapshot is a row of a store's table of snapshots: where it is, and the size and checksum of its data,
// which are kept in parts.
type KeptSnapshot struct {
	At   Position
	Size int64
	Sum  []byte
}

// maxSnapshot is more bytes than any snapshot has: a damaged size must not ask for all memory.
const maxSnapshot = 1 << 36

// SumSnapshot begins the checksum of a snapshot, with its place.
func SumSnapshot(at Position) hash.Hash {
	h := sha256.New()
	h.Write(binary.LittleEndian.AppendUint64(nil, at.Number))
	h.Write(at.Hash[:])
	return h
}

// DigestSnapshot returns the checksum of a snapshot.
func DigestSnapshot(at Position, data []byte) []byte {
	sum := SumSnapshot(at)
	sum.Write(data)
	return sum.Sum(nil)
}

// Load reads the parts of a snapshot, which each shows in order, into data, which may be nil, and checks
// them. hash is that of the record it is of, nil if that is not known; file is what damage is told of. The
// error is that of each, unless it is a damage: then the snapshot is damaged for that cause.
func (k *KeptSnapshot) Load(hash *Hash, file string, data *[]byte, each func(visit func([]byte)) error) (*Damage, error) {
	damage := &Damage{After: k.At, File: file, Offset: -1, Reason: "the snapshot is not what was saved"}
	if hash != nil && *hash != k.At.Hash || k.Size < 0 || k.Size > maxSnapshot {
		return damage, nil
	}
	if data != nil {
		*data = make([]byte, 0, k.Size)
	}
	sum, size := SumSnapshot(k.At), int64(0)
	err := each(func(piece []byte) {
		sum.Write(piece)
		if size += int64(len(piece)); data != nil && size <= k.Size {
			*data = append(*data, piece...)
		}
	})
	switch corrupt, is := errors.AsType[*Damage](err); {
	case is:
		damage.Cause = corrupt.Cause
		return damage, nil
	case err != nil:
		return nil, err
	case size != k.Size || string(sum.Sum(nil)) != string(k.Sum):
		return damage, nil
	}
	return nil, nil
}

// IsSaved reports whether the first of some snapshots, newest first, is one of a place with this size and checksum
// and loads as that.
func IsSaved(rows []KeptSnapshot, at Position, size int, digest []byte, load func(*KeptSnapshot, *[]byte) (*Damage, error)) (bool, error) {
	if len(rows) == 0 || rows[0].At != at {
		return false, nil
	}
	damage, err := load(&rows[0], nil)
	return damage == nil && rows[0].Size == int64(size) && string(rows[0].Sum) == string(digest), err
}

// NewestSnapshot loads the first of some snapshots, newest first, that is what was saved, and passes over the
// others. Those before begin, where the chain begins, are about to be dropped: what follows them is gone.
func NewestSnapshot(rows []KeptSnapshot, begin uint64, load func(*KeptSnapshot, *[]byte) (*Damage, error)) (found Snapshot, err error) {
	for i := range rows {
		if rows[i].At.Number < begin {
			break
		}
		var data []byte
		damage, err := load(&rows[i], &data)
		if err != nil {
			return found, err
		}
		if damage == nil {
			found.Position, found.Data = rows[i].At, data
			return found, nil
		}
		found.Damaged = append(found.Damaged, *damage)
	}
	return found, nil
}

// Missing says why the record after a place is not in a file: nil if it is still to come, NotFound if it has
// been dropped since, else it is a damage. last and begin return the last place, and the one before the first record.
func Missing(after Position, file string, last, begin func() (Position, error)) error {
	end, err := last()
	if err != nil || after.Number >= end.Number {
		return err
	}
	anchor, err := begin()
	if err != nil {
		return err
	}
	if after.Number < anchor.Number {
		return NotKept(after.Number+1, anchor)
	}
	return &Damage{
		After: after, File: file, Offset: -1, Acknowledged: end.Number,
		Reason: fmt.Sprintf("record %d is missing", after.Number+1),
	}
}

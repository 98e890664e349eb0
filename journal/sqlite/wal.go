package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// wal is what is wrong in a write-ahead log, by what the log itself tells.
// Its form is section 4 of the SQLite file format.
type wal struct {
	good int64 // bytes up to the end of the last commit that SQLite will accept
	size int64 // of all frames of this log, good or not
	// bad is where the first frame lies that is not what was written, -1 if
	// there is none before the log ends.
	bad int64
	// after reports commits behind the bad frame that followed its own. Each
	// commit is synced before the next one begins, so the bad frame was synced
	// and has been damaged since.
	after bool
}

const (
	walHeader   = 32
	frameHeader = 24
)

// inspect reads a write-ahead log as SQLite will, and further. It must not be
// called while this process has the database open: closing any file of a
// database lets go of all locks on it.
func inspect(path string) (wal, error) {
	w := wal{bad: -1}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return w, nil
	}
	if err != nil {
		return w, fmt.Errorf("journal: open the write-ahead log: %w", err)
	}
	defer f.Close() //nolint:errcheck // it is only read
	var head [walHeader]byte
	if _, err := io.ReadFull(f, head[:]); err != nil {
		return w, ignoreEnd(err) // nothing was ever committed to it
	}
	order, page := walOrder(head[:])
	if order == nil {
		info, err := f.Stat()
		if err != nil {
			return w, fmt.Errorf("journal: look at the write-ahead log: %w", err)
		}
		w.bad, w.size = 0, info.Size() // SQLite ignores such a log whole
		return w, nil
	}
	err = w.frames(f, head[:], order, page)
	return w, err
}

// walOrder returns the byte order of the checksums and the size of pages, nil
// if the header is not one.
func walOrder(head []byte) (order binary.ByteOrder, page int) {
	switch binary.BigEndian.Uint32(head) {
	case 0x377f0682:
		order = binary.LittleEndian
	case 0x377f0683:
		order = binary.BigEndian
	default:
		return nil, 0
	}
	page = int(binary.BigEndian.Uint32(head[8:]))
	if page < 512 || page > 65536 || page&(page-1) != 0 {
		return nil, 0
	}
	if (checksum{}).add(order, head[:24]) != sumAt(head[24:]) {
		return nil, 0
	}
	return order, page
}

// frames follows the chain of checksums over the frames.
func (w *wal) frames(f io.Reader, head []byte, order binary.ByteOrder, page int) error {
	salts := [8]byte(head[16:24])
	sum := sumAt(head[24:])
	frame := make([]byte, frameHeader+page)
	committed := false // a good commit behind the bad frame, which may be of the bad frame's transaction
	ended := false     // the bad frame is of an earlier use of the file, or none
	defer func() {
		if ended && !w.after {
			w.bad = -1
		}
	}()
	w.good = walHeader
	for at := int64(walHeader); ; at += int64(len(frame)) {
		n, err := io.ReadFull(f, frame)
		if err != nil {
			if n > 0 && w.bad < 0 && n >= 16 && [8]byte(frame[8:16]) == salts {
				w.bad, w.size = at, at+int64(n)
			}
			return ignoreEnd(err)
		}
		ours := [8]byte(frame[8:16]) == salts
		next := sum.add(order, frame[:8]).add(order, frame[frameHeader:])
		good := ours && next == sumAt(frame[16:])
		if ours {
			w.size = at + int64(len(frame))
		}
		commits := good && binary.BigEndian.Uint32(frame[4:]) != 0
		switch {
		case !good && w.bad < 0:
			w.bad, ended = at, !ours
		case w.bad >= 0 && good && committed:
			w.after = true
			return nil
		case w.bad >= 0 && commits:
			committed = true
		case w.bad < 0 && commits:
			w.good = at + int64(len(frame))
		}
		sum = sumAt(frame[16:]) // of a bad frame too: what follows may still be good
	}
}

func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return fmt.Errorf("journal: read the write-ahead log: %w", err)
}

// checksum is the running checksum of a write-ahead log.
type checksum [2]uint32

func sumAt(b []byte) checksum {
	return checksum{binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])}
}

func (s checksum) add(order binary.ByteOrder, data []byte) checksum {
	for ; len(data) >= 8; data = data[8:] {
		s[0] += order.Uint32(data) + s[1]
		s[1] += order.Uint32(data[4:]) + s[0]
	}
	return s
}

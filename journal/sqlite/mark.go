package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/berth-hpc/berth/journal"
)

// markName is the file that says how far the journal has been acknowledged.
//
// SQLite takes whatever is wrong at the end of its write-ahead log for a write
// that was cut short, and drops it without a word. So the place of the last
// record is also written here, after it is durable and before it is
// acknowledged: a journal that ends before its mark has lost what a caller was
// told. The mark is not synced. After a loss of power an older one may be
// found, which claims less; it never claims too much.
const markName = "mark"

const markSize = 8 + len(journal.Hash{}) + 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errMark is that the mark is not what was written.
var errMark = errors.New("the mark of what was acknowledged cannot be read, so it is unknown whether the journal lost its end")

// readMark returns the zero place if there is no mark, or one that claims nothing:
// a loss of power right after it was made can leave it empty or full of zeros. The
// error is errMark if it is there and not what was written.
func readMark(dir string) (journal.Position, error) {
	f, err := os.Open(filepath.Join(dir, markName))
	if errors.Is(err, fs.ErrNotExist) {
		return journal.Position{}, nil
	}
	if err != nil {
		return journal.Position{}, fmt.Errorf("journal: open the mark: %w", err)
	}
	defer f.Close() //nolint:errcheck // it is only read
	var text [markSize]byte
	n, err := io.ReadFull(f, text[:])
	switch {
	case n == 0 || text == [markSize]byte{}:
		return journal.Position{}, nil
	case err != nil:
		return journal.Position{}, errMark
	}
	sum := binary.LittleEndian.Uint32(text[markSize-4:])
	if crc32.Checksum(text[:markSize-4], castagnoli) != sum {
		return journal.Position{}, errMark
	}
	p := journal.Position{Number: binary.LittleEndian.Uint64(text[:])}
	copy(p.Hash[:], text[8:])
	return p, nil
}

// writeMark overwrites the mark.
func writeMark(f io.WriterAt, p journal.Position) error {
	var text [markSize]byte
	binary.LittleEndian.PutUint64(text[:], p.Number)
	copy(text[8:], p.Hash[:])
	binary.LittleEndian.PutUint32(text[markSize-4:], crc32.Checksum(text[:markSize-4], castagnoli))
	_, err := f.WriteAt(text[:], 0)
	return err
}

package workload

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/berth-hpc/berth"
)

// Form is the notation of a workload file.
type Form string

// The forms.
const (
	SWF   Form = "swf"   // Standard Workload Format: jobs without windows
	GWF   Form = "gwf"   // Grid Workload Format: jobs without windows
	JSONL Form = "jsonl" // JSON Lines: requests with windows, and ordinary jobs
	JDL   Form = "jdl"   // Job Description Language: requests with waiting limits
	Sacct Form = "sacct" // accounting of Slurm as sacct -P prints it: jobs without windows
)

// IsLog reports whether a file of the form holds records of jobs, and no requests.
func (f Form) IsLog() bool { return f == SWF || f == GWF || f == Sacct }

// Workload is what a file held: records if its form is that of a log, requests if it
// is another. The other slice is nil.
type Workload struct {
	Form     Form
	Header   Header          // of a log
	Records  []Record        // sorted stably by submit time
	Requests []berth.Request // sorted stably by arrival; ordinary jobs may be among them
	// Runs is how long each request really runs, 0 where its line does not
	// tell; nil if none does. Only JSON Lines can.
	Runs   []berth.Duration
	Report Report
}

// PEs returns the machine's size as the header tells it, or 0.
func (w *Workload) PEs() berth.Count { return w.Header.PEs() }

// Open reads a workload file of any form, gzip-compressed or not. A name that
// ends in .swf, .gwf, .jsonl, .jdl or .sacct, or in one of them and .gz, decides the form;
// under any other name the first byte that is not blank does, where an opening
// brace means JSON Lines, an opening bracket JDL and a number sign the Grid Workload
// Format, and bars in the first line mean an export of Slurm. Compression is told by the
// content alone.
//
// A file that is missing or may not be read, or that is a directory, is an
// *berth.Error with code Invalid and field "workload"; so are the mistakes in
// its content, as Read has them. Other failures of the system are wrapped.
func Open(path string, opt Options) (*Workload, error) {
	file, err := openFile("workload", path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read from: nothing can be lost
	lines, err := newLines(file, path)
	if err != nil {
		return nil, err
	}
	defer lines.ahead()()
	return lines.read(opt)
}

// openFile opens a file to read from. That it is absent, closed to us or a folder
// is an *berth.Error of code Invalid that names the field and the path.
func openFile(field, path string) (*os.File, error) {
	file, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, berth.Errorf(berth.Invalid, field, "%s: no such file", path)
	case errors.Is(err, fs.ErrPermission):
		return nil, berth.Errorf(berth.Invalid, field, "%s: no permission to read it", path)
	case err != nil:
		return nil, fmt.Errorf("open %s: %w", field, err)
	}
	if info, err := file.Stat(); err == nil && info.IsDir() {
		_ = file.Close() // nothing was read
		return nil, berth.Errorf(berth.Invalid, field, "%s: a directory, not a file", path)
	}
	return file, nil
}

// Read is Open for content that comes from elsewhere; name stands in messages
// and decides the form like a path.
func Read(r io.Reader, name string, opt Options) (*Workload, error) {
	lines, err := newLines(r, name)
	if err != nil {
		return nil, err
	}
	return lines.read(opt)
}

// read reads a workload of the form that the name or the beginning tells.
func (l *lines) read(opt Options) (*Workload, error) {
	form, err := formOf(l, l.name)
	if err != nil {
		return nil, err
	}
	switch form {
	case JSONL:
		return readJSONL(l, opt)
	case JDL:
		return readJDL(l, opt)
	case Sacct:
		return readSacct(l, opt)
	case GWF:
		return readGWF(l, opt)
	}
	return readSWF(l, opt)
}

// ReadSWF reads a log whatever its name and first byte; see Read.
func ReadSWF(r io.Reader, name string, opt Options) (*Workload, error) {
	lines, err := newLines(r, name)
	if err != nil {
		return nil, err
	}
	return readSWF(lines, opt)
}

// ReadJSONL reads requests whatever the file's name and first byte; see Read.
func ReadJSONL(r io.Reader, name string, opt Options) (*Workload, error) {
	lines, err := newLines(r, name)
	if err != nil {
		return nil, err
	}
	return readJSONL(lines, opt)
}

// ReadJDL reads job ads whatever the file's name and first byte; see Read.
func ReadJDL(r io.Reader, name string, opt Options) (*Workload, error) {
	lines, err := newLines(r, name)
	if err != nil {
		return nil, err
	}
	return readJDL(lines, opt)
}

func formOf(l *lines, name string) (Form, error) {
	base := strings.TrimSuffix(strings.ToLower(name), ".gz")
	switch {
	case strings.HasSuffix(base, ".swf"):
		return SWF, nil
	case strings.HasSuffix(base, ".gwf"):
		return GWF, nil
	case strings.HasSuffix(base, ".jsonl"):
		return JSONL, nil
	case strings.HasSuffix(base, ".jdl"):
		return JDL, nil
	case strings.HasSuffix(base, ".sacct"):
		return Sacct, nil
	}
	first, err := l.peekNonBlank()
	if err != nil {
		return "", err
	}
	switch first {
	case '{':
		return JSONL, nil
	case '[':
		return JDL, nil
	case '#':
		if !l.looksLikeSacct() {
			return GWF, nil
		}
	}
	if l.looksLikeSacct() {
		return Sacct, nil
	}
	return SWF, nil
}

const (
	// bufferSize holds every line of a sane file.
	bufferSize = 64 << 10
	// maxLine bounds the memory one line may take; whatever is beyond is a
	// bad line. A megabyte is a thousand times the longest known.
	maxLine = 1 << 20
)

// lines reads a file line by line, decompressed, and knows where it is.
type lines struct {
	name   string
	number int // of the line last returned, from 1
	// comment begins lines that each passes over; 0 for none.
	comment byte
	buf     *bufio.Reader
	zipped  bool
	long    []byte // joins the pieces of a line longer than the buffer
}

var gzipMagic = []byte{0x1f, 0x8b}

// byteOrderMark is what some editors put before UTF-8.
var byteOrderMark = []byte{0xef, 0xbb, 0xbf}

func newLines(r io.Reader, name string) (*lines, error) {
	l := &lines{name: name, buf: bufio.NewReaderSize(r, bufferSize)}
	// A read error shows again at the first line, so it is not told here.
	if magic, _ := l.buf.Peek(len(gzipMagic)); bytes.Equal(magic, gzipMagic) {
		zip, err := gzip.NewReader(l.buf)
		if err != nil {
			return nil, l.failure(err)
		}
		l.buf, l.zipped = bufio.NewReaderSize(zip, bufferSize), true
	}
	SkipMark(l.buf)
	return l, nil
}

// SkipMark passes over a byte order mark. A read error shows again at the first line.
func SkipMark(in *bufio.Reader) {
	if mark, _ := in.Peek(len(byteOrderMark)); bytes.Equal(mark, byteOrderMark) {
		_, _ = in.Discard(len(byteOrderMark)) // peeked: cannot fail
	}
}

// ahead has what is compressed read ahead. What it returns is to be called before the reader is closed.
// It waits for the reader, so it is for files.
func (l *lines) ahead() (stop func()) {
	if !l.zipped {
		return func() {}
	}
	a := readAhead(l.buf)
	l.buf = bufio.NewReaderSize(a, bufferSize)
	return a.stop
}

// peekNonBlank returns the first byte that is not blank without moving, or 0
// if the buffered beginning holds none.
func (l *lines) peekNonBlank() (byte, error) {
	for n := 512; ; n *= 2 {
		start, err := l.buf.Peek(min(n, bufferSize))
		if trimmed := bytes.TrimLeft(start, " \t\r\n"); len(trimmed) > 0 {
			return trimmed[0], nil
		}
		switch {
		case n >= bufferSize, errors.Is(err, io.EOF):
			return 0, nil
		case err != nil:
			return 0, l.failure(err)
		}
	}
}

// next returns the next line without its end (LF or CRLF); it is valid until
// the call after. tooLong means that the line was cut near maxLine. The end of
// the file is io.EOF; other errors are ready to be returned.
func (l *lines) next() (line []byte, tooLong bool, err error) {
	l.long = l.long[:0]
	for {
		piece, err := l.buf.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			if len(l.long) <= maxLine {
				l.long = append(l.long, piece...)
			}
			continue
		}
		if err != nil && !errors.Is(err, io.EOF) {
			l.number++
			return nil, false, l.failure(err)
		}
		if err != nil && len(piece) == 0 && len(l.long) == 0 {
			return nil, false, io.EOF
		}
		l.number++
		if len(l.long) > 0 {
			tooLong = len(l.long)+len(piece) > maxLine
			l.long = append(l.long, piece...)
			piece = l.long
		}
		piece = bytes.TrimSuffix(piece, []byte{'\n'})
		return bytes.TrimSuffix(piece, []byte{'\r'}), tooLong, nil
	}
}

// each shows every line that is not blank, without blanks around it, and counts what
// take makes of it: nothing, a cause to skip it, or what is bad about it. what names a
// record, for messages. Its error is that of the reader below or, in strict mode, the
// first bad line.
func (l *lines) each(r *Report, strict bool, what string, take func(line []byte) (Cause, BadLine)) error {
	for {
		line, tooLong, err := l.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if line = bytes.Trim(line, " \t"); len(line) == 0 || l.comment != 0 && line[0] == l.comment {
			continue
		}
		r.Records++
		cause, bad := Cause(""), BadLine{Want: "longer than any " + what + " can be"}
		if !tooLong {
			cause, bad = take(line)
		}
		switch {
		case bad.Want != "":
			kept := bad // alone on the heap: most lines are good
			kept.Line = l.number
			if err := r.bad(&kept, strict); err != nil {
				return err
			}
		case cause != "":
			r.skip(cause)
		default:
			r.Usable++
		}
	}
}

// failure words an error of the reader below.
func (l *lines) failure(err error) error {
	var corrupt flate.CorruptInputError
	line := max(l.number, 1)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return berth.Errorf(berth.Invalid, "workload", "%s:%d: the gzip data ends early; the file is truncated", l.name, line)
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.As(err, &corrupt):
		return berth.Errorf(berth.Invalid, "workload", "%s:%d: the gzip data is damaged: %v", l.name, line, err)
	}
	return fmt.Errorf("read %s:%d: %w", l.name, line, err)
}

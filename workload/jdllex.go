package workload

import (
	"errors"
	"io"
	"unicode/utf8"
)

// jdlKind is what a token of a JDL file is. Punctuation stands for itself.
type jdlKind uint8

const (
	jdlEnd    jdlKind = iota // of the file
	jdlName                  // of an attribute, or a word such as true
	jdlString                // text holds the content, without quotes and escapes
	jdlNumber                // text holds it as written, without a sign
	jdlMark                  // one of []{}();,= or an operator's character
	jdlBad                   // text tells what is wrong
)

// jdlToken is a token and where it is.
type jdlToken struct {
	kind  jdlKind
	mark  byte // of jdlMark
	text  string
	line  int
	first bool // on its line, blanks aside
}

func (t *jdlToken) is(mark byte) bool { return t.kind == jdlMark && t.mark == mark }

// jdlLexer cuts a JDL file into tokens. Comments run from // or # to the end of
// the line and from /* to */. Once the reader below has failed, every token is
// the end of the file, and err tells why.
type jdlLexer struct {
	*lines
	line  int
	fresh bool // no token on this line yet
	err   error
}

func newJDLLexer(l *lines) *jdlLexer { return &jdlLexer{lines: l, line: 1, fresh: true} }

// byte returns the next byte, and false at the end.
func (x *jdlLexer) byte() (byte, bool) {
	c, err := x.buf.ReadByte()
	if err != nil {
		if !errors.Is(err, io.EOF) && x.err == nil {
			x.number = x.line
			x.err = x.failure(err)
		}
		return 0, false
	}
	if c == '\n' {
		x.line++
		x.fresh = true
	}
	return c, true
}

// back takes a byte back that is no end of line.
func (x *jdlLexer) back() { _ = x.buf.UnreadByte() } // the byte has just been read

// follows takes the next byte if it is this one.
func (x *jdlLexer) follows(want byte) bool {
	next, err := x.buf.Peek(1)
	if err != nil || next[0] != want {
		return false // a failure shows again at the next token
	}
	_, _ = x.byte()
	return true
}

// skipLine goes to the next line.
func (x *jdlLexer) skipLine() {
	for {
		if c, ok := x.byte(); !ok || c == '\n' {
			return
		}
	}
}

// skipComment goes behind */, and reports whether there is one.
func (x *jdlLexer) skipComment() bool {
	for {
		c, ok := x.byte()
		if !ok {
			return false
		}
		if c == '*' && x.follows('/') {
			return true
		}
	}
}

// next returns the next token.
func (x *jdlLexer) next() jdlToken {
	for {
		c, ok := x.byte()
		if !ok {
			return jdlToken{kind: jdlEnd, line: x.line}
		}
		switch {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			continue
		case c == '#' || (c == '/' && x.follows('/')):
			x.skipLine()
			continue
		}
		t := jdlToken{line: x.line, first: x.fresh}
		if c == '/' && x.follows('*') {
			if x.skipComment() {
				continue
			}
			t.kind, t.text = jdlBad, "the comment that begins here does not end"
			return t
		}
		x.fresh = false
		switch {
		case c == '"':
			x.string(&t)
		case isLetter(c):
			t.kind, t.text = jdlName, x.word(c, func(c byte) bool { return isLetter(c) || isDigit(c) })
		case isDigit(c):
			t.kind, t.text = jdlNumber, x.word(c, func(c byte) bool { return isLetter(c) || isDigit(c) || c == '.' })
			if _, ok := parseNumber([]byte(t.text)); !ok {
				t.text = shown([]byte(t.text)) + " is no number; want digits, with a point at most"
				t.kind = jdlBad
			}
		case c > ' ' && c < 0x7f:
			t.kind, t.mark = jdlMark, c
		default:
			t.kind, t.text = jdlBad, "a character that stands only in strings"
		}
		return t
	}
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' }

// maxToken bounds the memory that one token may take.
const maxToken = maxLine

// word reads on while the bytes belong to it.
func (x *jdlLexer) word(c byte, belongs func(c byte) bool) string {
	text := []byte{c}
	for {
		c, ok := x.byte()
		if ok && belongs(c) {
			if len(text) < maxToken {
				text = append(text, c)
			}
			continue
		}
		if ok && c == '\n' {
			return string(text) // a blank like any other; nothing to take back
		}
		if ok {
			x.back()
		}
		return string(text)
	}
}

// string reads a string behind its opening quote, with the escapes of C. It
// ends on its line.
func (x *jdlLexer) string(t *jdlToken) {
	var text []byte
	for {
		c, ok := x.byte()
		switch {
		case !ok || c == '\n':
			t.kind, t.text = jdlBad, "the string that begins here does not end on its line"
			return
		case c == '"':
			if t.kind == jdlBad {
				return
			}
			t.kind, t.text = jdlString, string(text)
			if !utf8.Valid(text) {
				t.kind, t.text = jdlBad, "a string that is not UTF-8"
			}
			if len(text) > maxToken {
				t.kind, t.text = jdlBad, "a string longer than any can be"
			}
			return
		case c == '\\':
			c, ok = x.escaped()
			if !ok {
				t.kind, t.text = jdlBad, `an unknown escape in a string; want \" \\ \' \n \t \r \b \f or an octal \101`
			}
		}
		if len(text) <= maxToken {
			text = append(text, c)
		}
	}
}

// escaped reads what stands behind a backslash.
func (x *jdlLexer) escaped() (byte, bool) {
	c, ok := x.byte()
	if !ok {
		return 0, false
	}
	switch c {
	case '"', '\\', '\'':
		return c, true
	case 'n':
		return '\n', true
	case 't':
		return '\t', true
	case 'r':
		return '\r', true
	case 'b':
		return '\b', true
	case 'f':
		return '\f', true
	}
	value, digits := 0, 0
	for ok && '0' <= c && c <= '7' && digits < 3 {
		value, digits = value*8+int(c-'0'), digits+1
		c, ok = x.byte()
	}
	if ok && c != '\n' {
		x.back()
	}
	if digits == 0 || value < 1 || value > 127 || (ok && c == '\n') {
		return 0, false
	}
	return byte(value), true
}

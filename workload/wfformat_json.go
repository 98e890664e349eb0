package workload

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/berth-hpc/berth"
)

// document is a whole file of JSON in which every value has a place, so that
// messages can name line and column.
type document struct {
	name string
	text []byte

	counted, lines int // the lines that end before a byte, see lineFrom
}

// node is a value of a document: text[at:end].
type node struct{ at, end int }

// given reports whether there is such a value; null counts as none.
func (d *document) given(n node) bool { return n.end > n.at && d.text[n.at] != 'n' }

// MaxWorkflowBytes bounds the memory that a file may take, unpacked.
const MaxWorkflowBytes = 1 << 28

// readDocument reads a file to its end and checks that it is JSON in UTF-8 with
// an object at its root.
func readDocument(l *lines) (*document, node, error) {
	text, err := io.ReadAll(io.LimitReader(l.buf, MaxWorkflowBytes+1))
	if err != nil {
		l.number = 1 + bytes.Count(text, []byte{'\n'})
		return nil, node{}, l.failure(err)
	}
	d := &document{name: l.name, text: text}
	if len(text) > MaxWorkflowBytes {
		return nil, node{}, d.badAt(0, "", "longer than 256 MiB, unpacked")
	}
	if at := invalidUTF8(text); at >= 0 {
		return nil, node{}, d.badAt(at, "", "not UTF-8")
	}
	trimmed := bytes.TrimLeft(text, " \t\r\n")
	switch {
	case len(trimmed) == 0:
		return nil, node{}, berth.Errorf(berth.Invalid, "workflow", "%s: nothing in the file; want a workflow in WfFormat", d.name)
	case trimmed[0] != '{':
		return nil, node{}, d.badAt(len(text)-len(trimmed), "", "not a JSON object; a workflow in WfFormat begins with a brace")
	}
	if !json.Valid(text) {
		return nil, node{}, d.notJSON()
	}
	root := len(text) - len(trimmed)
	return d, node{root, valueEnd(text, root)}, nil
}

// notJSON tells where the text ceases to be JSON.
func (d *document) notJSON() error {
	var whole json.RawMessage
	err := json.Unmarshal(d.text, &whole)
	at := len(d.text)
	if syntax, is := errors.AsType[*json.SyntaxError](err); is {
		at = min(max(0, int(syntax.Offset)-1), at)
	}
	if len(bytes.TrimSpace(d.text[at:])) == 0 || strings.HasSuffix(err.Error(), "end of JSON input") {
		return d.badAt(len(d.text), "", "the JSON ends early; the file is truncated")
	}
	for _, word := range []string{"NaN", "Infinity", "-Infinity"} {
		if from := max(0, at-1); bytes.HasPrefix(d.text[at:], []byte(word)) || bytes.HasPrefix(d.text[from:], []byte(word)) {
			return d.badAt(at, "", "not valid JSON: "+word+" is no number; leave the property out if it is not known")
		}
	}
	return d.badAt(at, "", "not valid JSON: "+err.Error())
}

// invalidUTF8 returns the index of the first byte that is not UTF-8, or -1.
func invalidUTF8(text []byte) int {
	if utf8.Valid(text) {
		return -1
	}
	for at := 0; ; {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
}

// place returns line and column of a byte, both from 1; the column counts
// bytes.
func (d *document) place(at int) (line, column int) {
	before := d.text[:at]
	return 1 + bytes.Count(before, []byte{'\n'}), at - bytes.LastIndexByte(before, '\n')
}

// lineFrom returns the line of a byte, quickly if bytes are asked for in the
// order of the file.
func (d *document) lineFrom(at int) int {
	if at < d.counted {
		d.counted, d.lines = 0, 0
	}
	d.lines += bytes.Count(d.text[d.counted:at], []byte{'\n'})
	d.counted = at
	return 1 + d.lines
}

// badAt is a mistake in the file.
func (d *document) badAt(at int, field, want string) error {
	line, column := d.place(at)
	if field == "" {
		field = "workflow"
	}
	return berth.Errorf(berth.Invalid, field, "%s:%d:%d: %s", d.name, line, column, want)
}

// bad is a mistake about a value.
func (d *document) bad(n node, field, want string) error { return d.badAt(n.at, field, want) }

// shown returns a value as written, shortened.
func (d *document) shown(n node) string { return shown(d.text[n.at:n.end]) }

// members calls visit with the name and the value of every member of an
// object, in order, until it returns an error. A name that comes twice is one.
func (d *document) members(object node, visit func(name string, value node) error) error {
	at := skipBlank(d.text, object.at+1)
	seen := make(map[string]bool, 16)
	for d.text[at] != '}' {
		keyEnd := valueEnd(d.text, at)
		name := unquote(d.text[at:keyEnd])
		if seen[name] {
			return d.badAt(at, name, "given twice in one object")
		}
		seen[name] = true
		at = skipBlank(d.text, skipBlank(d.text, keyEnd)+1) // over the colon
		value := node{at, valueEnd(d.text, at)}
		if err := visit(name, value); err != nil {
			return err
		}
		if at = skipBlank(d.text, value.end); d.text[at] == ',' {
			at = skipBlank(d.text, at+1)
		}
	}
	return nil
}

// elements is members for an array.
func (d *document) elements(array node, visit func(value node) error) error {
	at := skipBlank(d.text, array.at+1)
	for d.text[at] != ']' {
		value := node{at, valueEnd(d.text, at)}
		if err := visit(value); err != nil {
			return err
		}
		if at = skipBlank(d.text, value.end); d.text[at] == ',' {
			at = skipBlank(d.text, at+1)
		}
	}
	return nil
}

// object checks that a value is one.
func (d *document) object(n node, field string) error {
	if d.text[n.at] != '{' {
		return d.bad(n, field, d.shown(n)+": not an object; want it in braces")
	}
	return nil
}

// array checks that a value is one.
func (d *document) array(n node, field string) error {
	if d.text[n.at] != '[' {
		return d.bad(n, field, d.shown(n)+": not a list; want it in brackets")
	}
	return nil
}

// string returns the text of a value.
func (d *document) string(n node, field string) (string, error) {
	if d.text[n.at] != '"' {
		return "", d.bad(n, field, d.shown(n)+": not a text; want it in quotes")
	}
	text := unquote(d.text[n.at:n.end])
	if hasControl(text) {
		return "", d.bad(n, field, strconv.Quote(shown([]byte(text)))+": holds a control character")
	}
	return text, nil
}

// number returns the number of a value that task is about, at least 0 and at
// most limit.
func (d *document) number(n node, field, task string, limit float64) (float64, error) {
	text := d.text[n.at:n.end]
	if text[0] != '-' && !isDigit(text[0]) {
		return 0, d.bad(n, field, "task "+strconv.Quote(task)+" has "+d.shown(n)+"; want a number without quotes")
	}
	x, err := strconv.ParseFloat(string(text), 64)
	if err != nil || math.Signbit(x) && x != 0 || x > limit {
		return 0, d.bad(n, field, "task "+strconv.Quote(task)+" has "+d.shown(n)+"; want a number from 0 to "+strconv.FormatFloat(limit, 'f', -1, 64))
	}
	return math.Abs(x), nil // -0 is 0
}

package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/nearest"
)

// maxFaults bounds how many mistakes of one body are told.
const maxFaults = 20

// faults gathers what is wrong with a body, field by field.
type faults []*berth.Error

// add adds a mistake in a field. An error that names a field itself is below
// that field.
func (f *faults) add(field string, err error) {
	if err == nil || f.full() {
		return
	}
	if several, is := err.(interface{ Unwrap() []error }); is {
		for _, one := range several.Unwrap() {
			f.add(field, one)
		}
		return
	}
	e := &berth.Error{Code: berth.Invalid, Field: field, Msg: err.Error()}
	if coded, is := errors.AsType[*berth.Error](err); is {
		e.Code, e.Msg = coded.Code, coded.Msg
		switch {
		case field == "":
			e.Field = coded.Field
		case strings.HasPrefix(coded.Field, "["):
			e.Field = field + coded.Field
		case coded.Field != "":
			e.Field = field + "." + coded.Field
		}
	}
	*f = append(*f, e)
}

// full reports whether no more mistakes are told, so that nothing more needs to be
// looked at.
func (f *faults) full() bool { return len(*f) >= maxFaults }

// sort orders the mistakes by field, where they were found in no order.
func (f *faults) sort() {
	slices.SortStableFunc(*f, func(a, b *berth.Error) int { return strings.Compare(a.Field, b.Field) })
}

// err returns nil if nothing is wrong.
func (f *faults) err() error {
	if len(*f) == 0 {
		return nil
	}
	errs := make([]error, len(*f))
	for i, e := range *f {
		errs[i] = e
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// value is one value of a valid JSON text.
type value []byte

func (v value) null() bool { return string(v) == "null" }

// short is the value for messages: all of it, or its first 60 bytes.
func (v value) short() string {
	const most = 60
	if len(v) <= most {
		return string(v)
	}
	cut := most
	for !utf8.RuneStart(v[cut]) {
		cut--
	}
	return string(v[:cut]) + "…"
}

// member is a name of an object with its value.
type member struct {
	name  string
	value value
}

// valid returns the mistake in a text that is no JSON.
func valid(data []byte) error {
	var syntax *json.SyntaxError
	var raw json.RawMessage
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		return berth.Errorf(berth.Invalid, "body", "empty; want a JSON object")
	case !utf8.Valid(data):
		return berth.Errorf(berth.Invalid, "body", "not UTF-8; want a JSON object")
	case json.Valid(shortened(data)):
		return nil
	case errors.As(json.Unmarshal(data, &raw), &syntax):
		return berth.Errorf(berth.Invalid, "body", "not JSON at byte %d: %v", syntax.Offset, syntax)
	}
	return berth.Errorf(berth.Invalid, "body", "not JSON")
}

// shortened returns a text that is JSON if and only if another one is: long strings without escapes
// and control characters are empty in it. They are most of a large body, and looked at byte by byte
// elsewhere. The text itself is returned if it has none.
func shortened(data []byte) []byte {
	const long = 64
	var short []byte
	copied := 0 // of data
	for i := 0; ; {
		at := bytes.IndexByte(data[i:], '"')
		if at < 0 {
			break
		}
		begin := i + at + 1
		end, plain := begin, true
		for end < len(data) && data[end] != '"' {
			if data[end] < ' ' {
				plain = false
			} else if data[end] == '\\' {
				plain = false
				end++
			}
			end++
		}
		if i = end + 1; i > len(data) {
			break // it does not end
		}
		if plain && end-begin > long {
			short = append(short, data[copied:begin]...)
			copied = end
		}
	}
	if copied == 0 {
		return data
	}
	return append(short, data[copied:]...)
}

// membersOf returns the members of an object in their order. The value must be
// valid JSON.
func membersOf(v value) ([]member, error) {
	s, err := v.object()
	if err != nil {
		return nil, err
	}
	members := make([]member, 0, 12)
	for name, v, is := s.member(); is; name, v, is = s.member() {
		text, err := name.text()
		if err != nil {
			return nil, err
		}
		members = append(members, member{text, v})
	}
	return members, nil
}

// object returns a scanner before the first member of an object. The value must be valid JSON.
func (v value) object() (scanner, error) {
	s := scanner{rest: v}
	if s.next() != '{' {
		return s, fmt.Errorf("%s; want a JSON object", v.short())
	}
	s.skip()
	return s, nil
}

// member returns the next member of an object, its name as it is written; is is false behind the last.
func (s *scanner) member() (name, v value, is bool) {
	if s.next() == '}' {
		return nil, nil, false
	}
	if s.next() == ',' {
		s.skip()
	}
	name = s.take()
	s.next()
	s.skip() // the colon
	return name, s.take(), true
}

// items returns the items of a list. The value must be valid JSON.
func (v value) items() ([]value, error) {
	s := scanner{rest: v}
	if s.next() != '[' {
		return nil, fmt.Errorf("%s; want a list", v.short())
	}
	var items []value
	for s.skip(); s.next() != ']'; {
		if s.next() == ',' {
			s.skip()
		}
		items = append(items, s.take())
	}
	return items, nil
}

// scanner walks through valid JSON.
type scanner struct{ rest []byte }

// next returns the next byte that is no space.
func (s *scanner) next() byte {
	for s.rest[0] == ' ' || s.rest[0] == '\t' || s.rest[0] == '\r' || s.rest[0] == '\n' {
		s.rest = s.rest[1:]
	}
	return s.rest[0]
}

func (s *scanner) skip() { s.rest = s.rest[1:] }

// take returns the next value.
func (s *scanner) take() value {
	s.next()
	depth := 0
	for i := 0; i < len(s.rest); i++ {
		switch s.rest[i] {
		case '"':
			i = s.quoted(i)
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return s.cut(i)
			}
			depth--
		case ',', ':', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return s.cut(i)
			}
		}
	}
	return s.cut(len(s.rest))
}

// quoted returns where a string ends that begins at a place.
func (s *scanner) quoted(at int) int {
	inner := s.rest[at+1:]
	end := bytes.IndexByte(inner, '"')
	i := bytes.IndexByte(inner[:end], '\\')
	if i < 0 {
		return at + 1 + end
	}
	for ; inner[i] != '"'; i++ {
		if inner[i] == '\\' {
			i++
		}
	}
	return at + 1 + i
}

func (s *scanner) cut(at int) value {
	v := value(s.rest[:at])
	s.rest = s.rest[at:]
	return v
}

// text reads a string.
func (v value) text() (string, error) {
	if v[0] != '"' {
		return "", fmt.Errorf("%s; want a string", v.short())
	}
	if inner := v[1 : len(v)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return string(inner), nil
	}
	var text string
	err := json.Unmarshal(v, &text)
	return text, err
}

// maxText bounds names and other short texts.
const maxText = 255

// word reads a short text of one line.
func (v value) word() (string, error) {
	text, err := v.text()
	switch {
	case err != nil:
		return "", err
	case len(text) > maxText:
		return "", fmt.Errorf("%d bytes; want at most %d", len(text), maxText)
	case strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f }):
		return "", fmt.Errorf("%s; want one line without control characters", v.short())
	}
	return text, nil
}

// whole reads a whole number from least to most.
func (v value) whole(least, most int64) (int64, error) {
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%s; want a whole number from %d to %d", v.short(), least, most)
	}
	return n, nil
}

// texts reads a list of strings.
func (v value) texts() ([]string, error) {
	items, err := v.items()
	if err != nil {
		return nil, err
	}
	list := make([]string, len(items))
	for i, item := range items {
		if list[i], err = item.text(); err != nil {
			return nil, berth.Errorf(berth.Invalid, "["+strconv.Itoa(i)+"]", "%v", err)
		}
	}
	return list, nil
}

// field is one field of a body: what it is for, which values it takes, and how
// it gets into a T.
type field[T any] struct {
	name  string
	about string
	form  *schema
	set   func(into *T, v value) error
}

// body is the fields that a body may have. It is both how bodies are read and
// what the description says of them.
type body[T any] []field[T]

// read reads a body, and adds to wrong whatever is wrong with it, until that is full.
func (b body[T]) read(v value, into *T, wrong *faults) {
	s, err := v.object()
	if err != nil {
		wrong.add("", berth.Errorf(berth.Invalid, "body", "%v", err))
		return
	}
	seen := uint64(0) // no body has more than 64 fields
	for name, v, is := s.member(); is && !wrong.full(); name, v, is = s.member() {
		at, err := b.find(name)
		if err != nil {
			wrong.add("", berth.Errorf(berth.Invalid, "body", "%v", err))
			return
		}
		if at < 0 {
			text, _ := name.text() // find has read it
			wrong.add(value(text).short(), fmt.Errorf("unknown field%s", nearest.Hint(text, b.names())))
			continue
		}
		if seen&(1<<at) != 0 {
			wrong.add(b[at].name, errors.New("given twice"))
			continue
		}
		seen |= 1 << at
		wrong.add(b[at].name, b[at].set(into, v))
	}
}

// find returns which field a name is of, as it is written, and -1 if it is of none.
func (b body[T]) find(name value) (int, error) {
	inner := name[1 : len(name)-1]
	if bytes.IndexByte(inner, '\\') >= 0 {
		text, err := name.text()
		if err != nil {
			return -1, err
		}
		inner = value(text)
	}
	for i := range b {
		if b[i].name == string(inner) {
			return i, nil
		}
	}
	return -1, nil
}

func (b body[T]) names() []string {
	names := make([]string, len(b))
	for i := range b {
		names[i] = b[i].name
	}
	return names
}

package sites

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/nearest"
)

// reader fills a File from a tree and collects the mistakes.
type reader struct {
	*File
	errs []error
	more int // mistakes beyond MaxErrors
}

func (r *reader) err() error {
	if r.more > 0 {
		return errors.Join(append(r.errs, berth.Errorf(berth.Invalid, "sites", "%s: and %d more mistakes", r.Name, r.more))...)
	}
	return errors.Join(r.errs...)
}

// fail tells a mistake.
func (r *reader) fail(at place, path, format string, args ...any) {
	if len(r.errs) == MaxErrors {
		r.more++
		return
	}
	r.errs = append(r.errs, berth.Errorf(berth.Invalid, path, "%s:%d:%d: %s", r.Name, at.Line, at.Column, fmt.Sprintf(format, args...)))
}

// wrong tells what is wrong about a value.
func (r *reader) wrong(v *value, path, format string, args ...any) {
	r.fail(v.Place, path, "%s%s", v.Shown(), fmt.Sprintf(format, args...))
}

// is reports whether the value is of the kind, and complains if it is not.
func (r *reader) is(v *value, path string, want kind, example string) bool {
	switch {
	case v.Kind == want:
		return true
	case v.Kind == isNull:
		r.fail(v.Place, path, "no value; want %s, or leave the key out", example)
	case want == isText && v.Kind == isNumber:
		r.wrong(v, path, "a number; want %s, in quotes if it looks like a number", example)
	case want == isText && v.Kind == isBool:
		r.wrong(v, path, "true or false; want %s, in quotes if it looks like that", example)
	case want == isNumber && v.Kind == isText:
		r.wrong(v, path, "a text; want %s, without quotes", example)
	default:
		r.wrong(v, path, "%s; want %s", v.Kind, example)
	}
	return false
}

// key is a key that a group may have.
type key struct {
	name     string
	required string // why, or "" if it may be left out
	read     func(v *value, path string)
}

// group reads a group of keys, in the order in which they are listed here, so
// that what comes first in keys is known to the rest.
func (r *reader) group(v *value, path, what string, keys ...key) {
	if !r.is(v, path, isMap, what+" with its keys") {
		return
	}
	prefix := path
	if prefix != "" {
		prefix += "."
	}
	names := make([]string, len(keys))
	for i := range keys {
		names[i] = keys[i].name
	}
	lines := make(map[string]int, len(v.Members))
	for _, m := range v.Members {
		if first, twice := lines[m.Key]; twice {
			r.fail(m.Place, prefix+m.Key, "the key is given twice, first in line %d", first)
			continue
		}
		lines[m.Key] = m.Line
		if !slices.Contains(names, m.Key) {
			r.fail(m.Place, prefix+m.Key, "unknown key%s; %s has %s", nearest.Hint(m.Key, names), what, strings.Join(names, ", "))
		}
	}
	for _, k := range keys {
		at := slices.IndexFunc(v.Members, func(m member) bool { return m.Key == k.name })
		switch {
		case at >= 0:
			r.places[prefix+k.name] = v.Members[at].Place
			k.read(v.Members[at].Value, prefix+k.name)
		case k.required != "":
			r.fail(v.Place, prefix+k.name, "missing; %s", k.required)
		}
	}
}

// list reads the elements of a list that may not be empty.
func (r *reader) list(v *value, path, what string, read func(v *value, path string)) {
	if !r.is(v, path, isList, "a list of "+what) {
		return
	}
	if len(v.Items) == 0 {
		r.fail(v.Place, path, "an empty list; name at least one, or leave the key out")
	}
	for i, item := range v.Items {
		read(item, fmt.Sprintf("%s[%d]", path, i))
	}
}

// unique complains about a name that a list has already.
type unique map[string]int // line of the first

func (u unique) add(r *reader, v *value, path, what, name string) {
	if first, taken := u[name]; taken {
		r.wrong(v, path, "a second %s of this name, the first is in line %d", what, first)
		return
	}
	u[name] = v.Line
}

// switched reads true or false.
func (r *reader) switched(to *bool) func(v *value, path string) {
	return func(v *value, path string) {
		if !r.is(v, path, isBool, "true or false") {
			return
		}
		if v.Text != "true" && v.Text != "false" {
			r.wrong(v, path, "want true or false")
			return
		}
		*to = v.Text == "true"
	}
}

// scanned reads a text with a grammar of its own.
func scanned[T any](r *reader, to *T, example string, scan func(text string) (T, error)) func(v *value, path string) {
	return func(v *value, path string) {
		if !r.is(v, path, isText, example) {
			return
		}
		got, err := scan(v.Text)
		if err != nil {
			r.wrong(v, path, "%s", message(err))
			return
		}
		*to = got
	}
}

// measured is scanned for what carries a unit: a bare number is for the grammar
// to refuse, which knows what it could have meant.
func measured[T any](r *reader, to *T, example string, scan func(text string) (T, error)) func(v *value, path string) {
	return func(v *value, path string) {
		if v.Kind == isNumber {
			if _, err := scan(v.Text); err != nil {
				r.wrong(v, path, "%s", message(err))
				return
			}
		}
		scanned(r, to, example, scan)(v, path)
	}
}

// decimal reads a number of at most three digits behind the point, times 1000.
func decimal[T ~int | ~int32 | ~int64](r *reader, to *T, low, high int64) func(v *value, path string) {
	return func(v *value, path string) {
		limits := fmt.Sprintf("a number from %s to %s", thousandthsText(low), thousandthsText(high))
		if !r.is(v, path, isNumber, limits) {
			return
		}
		n, ok := thousandths(v.Text)
		switch {
		case !ok:
			r.wrong(v, path, "want %s in plain digits, with at most three behind the point", limits)
		case n < low || n > high:
			r.wrong(v, path, "want %s", limits)
		default:
			*to = T(n)
		}
	}
}

// whole reads a whole number.
func whole[T ~int | ~int32 | ~int64 | ~uint64](r *reader, to *T, low, high int64) func(v *value, path string) {
	return func(v *value, path string) {
		limits := fmt.Sprintf("a whole number from %d to %d", low, high)
		if !r.is(v, path, isNumber, limits) {
			return
		}
		n, ok := integer(v.Text)
		if !ok || n < low || n > high {
			r.wrong(v, path, "want %s, in plain digits", limits)
			return
		}
		*to = T(n)
	}
}

// message returns what an error says without its field.
func message(err error) string {
	if mistake, is := errors.AsType[*berth.Error](err); is {
		return mistake.Msg
	}
	return err.Error()
}

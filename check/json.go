package check

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/berth-hpc/berth"
)

// The functions below walk JSON text that json.Valid has approved. They see
// what encoding/json would hide: the spelling of names and of numbers, and
// names given twice.

// eachMember calls f with the name and the raw value of every member of an object.
func eachMember(object []byte, f func(name string, value []byte) error) error {
	i := skipSpace(object, 1)
	for object[i] != '}' {
		end := endOfValue(object, i)
		name, err := unquote(object[i:end])
		if err != nil {
			return err
		}
		i = skipSpace(object, end)  // the colon
		i = skipSpace(object, i+1)  // the value
		end = endOfValue(object, i) //
		if err := f(name, object[i:end]); err != nil {
			return err
		}
		if i = skipSpace(object, end); object[i] == ',' {
			i = skipSpace(object, i+1)
		}
	}
	return nil
}

// eachElement calls f with every raw value of an array.
func eachElement(array []byte, f func(value []byte) error) error {
	i := skipSpace(array, 1)
	for array[i] != ']' {
		end := endOfValue(array, i)
		if err := f(array[i:end]); err != nil {
			return err
		}
		if i = skipSpace(array, end); array[i] == ',' {
			i = skipSpace(array, i+1)
		}
	}
	return nil
}

func skipSpace(data []byte, i int) int {
	for data[i] == ' ' || data[i] == '\t' || data[i] == '\r' || data[i] == '\n' {
		i++
	}
	return i
}

// endOfValue returns the index just behind the value that begins at i.
func endOfValue(data []byte, i int) int {
	depth := 0
	for ; i < len(data); i++ {
		switch data[i] {
		case '"':
			for i++; data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i // a number or word ended here
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\t', '\r', '\n', ':':
			if depth == 0 {
				return i
			}
		}
	}
	return i
}

// unquote returns the text of a raw string.
func unquote(raw []byte) (string, error) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), nil
	}
	var text string
	err := json.Unmarshal(raw, &text)
	return text, err
}

// textOf reads a string.
func textOf(field string, raw []byte) (string, error) {
	if raw[0] != '"' {
		return "", berth.Errorf(berth.Invalid, field, "%s is not a text in quotes", shorten(raw))
	}
	return unquote(raw)
}

// boolOf reads true or false.
func boolOf(field string, raw []byte) (bool, error) {
	switch string(raw) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, berth.Errorf(berth.Invalid, field, "%s is neither true nor false", shorten(raw))
}

// wholeOf reads a whole number of size below limit. Only digits will do: 20.0
// and 2e1 are other notations than the one that is fixed.
func wholeOf(field string, raw []byte, limit int64) (int64, error) {
	for i, c := range raw {
		if (c < '0' || c > '9') && (i > 0 || c != '-') {
			return 0, berth.Errorf(berth.Invalid, field, "%s is not a whole number", shorten(raw))
		}
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || n >= limit || n <= -limit {
		return 0, berth.Errorf(berth.Invalid, field, "%s is out of bounds; it must be below %d in size", shorten(raw), limit)
	}
	return n, nil
}

// elementsOf checks that raw is an array and calls f with its elements.
func elementsOf(field string, raw []byte, f func(value []byte) error) error {
	if raw[0] != '[' {
		return berth.Errorf(berth.Invalid, field, "%s is not a list in brackets", shorten(raw))
	}
	return eachElement(raw, f)
}

// shorten returns the beginning of raw for a message.
func shorten(raw []byte) string { return cut(string(raw[:min(len(raw), 100)]), 40) }

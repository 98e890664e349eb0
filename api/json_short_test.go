package api

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
)

// What is looked at of a large body is JSON if and only if the body is, and a value ends where its
// string does, whatever is in it.
func TestShortenedTextsAreJSONIfTheWholeIs(t *testing.T) {
	pieces := []string{
		`"`, `"`, `\`, `\"`, `\\`, "{", "}", "[", "]", ",", ":", " ", "\n", "\x01", `\u00e9`, `\x`, "1", "true", strings.Repeat("x", 70), strings.Repeat("é", 40), `"` + strings.Repeat("y", 90) + `"`,
		`{"a":"` + strings.Repeat("z", 65) + `"}`, `"` + strings.Repeat("q", 64) + `\n` + `"`,
	}
	r := rand.New(rand.NewPCG(1, 5))
	valid, shorter := 0, 0
	for range 200_000 {
		var text strings.Builder
		for range 1 + r.IntN(6) {
			text.WriteString(pieces[r.IntN(len(pieces))])
		}
		data := []byte(text.String())
		short := shortened(data)
		if json.Valid(data) != json.Valid(short) {
			t.Fatalf("%q is JSON: %t, shortened to %q: %t", data, json.Valid(data), short, json.Valid(short))
		}
		if string(data) != text.String() {
			t.Fatalf("%q was written: %q", text.String(), data)
		}
		if len(short) < len(data) {
			shorter++
		}
		if !json.Valid(data) {
			continue
		}
		valid++
		s := scanner{rest: append([]byte("["+text.String()), "]"...)}
		s.skip()
		var want, got any
		v := s.take()
		if json.Unmarshal(data, &want) != nil || json.Unmarshal(v, &got) != nil || string(s.rest[len(s.rest)-1]) != "]" || strings.TrimSpace(string(v)) != strings.TrimSpace(text.String()) {
			t.Fatalf("%q is taken as %q", data, v)
		}
	}
	if valid < 1000 || shorter < 1000 {
		t.Errorf("%d texts are JSON, %d are shortened", valid, shorter)
	}
}

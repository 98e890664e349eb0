package service

import (
	"testing"

	"github.com/berth-hpc/berth/site"
)

// A panic in either of two functions is one where both were asked for, once both have ended.
func TestBothEnd(t *testing.T) {
	for _, c := range []struct{ a, b string }{{}, {a: "a"}, {b: "b"}, {"a", "b"}} {
		ended := make(chan string, 2)
		one := func(name, panics string) func() {
			return func() {
				defer func() { ended <- name }()
				if panics != "" {
					panic(panics)
				}
			}
		}
		p := site.Caught(func() { both(one("a", c.a), one("b", c.b)) })
		if len(ended) != 2 {
			t.Errorf("%+v: %d have ended, want 2", c, len(ended))
		}
		if (p != nil) != (c.a+c.b != "") {
			t.Errorf("%+v: panic %v", c, p)
		}
	}
}

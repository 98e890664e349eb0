package state

import "testing"

// A holder that has nothing any more is not found among those that were looked for lately, and what it gets then is on record.
func TestHolderThatHasNothingIsForgotten(t *testing.T) {
	l := newLedger(&Config{Limited: true})
	for _, h := range []Holder{OfUser("u"), OfAccount("u"), OfUser("v"), OfUser("u")} {
		was := l.tally(h)
		if got := l.has(h); got != was {
			t.Errorf("%s has %p; want %p", h.text(), got, was)
		}
		l.tidy(h, was)
		if got := l.has(h); got != nil {
			t.Errorf("%s has %+v after it was forgotten", h.text(), got)
		}
		if again := l.tally(h); l.of[h.kind][h.name] != again {
			t.Errorf("what %s has is not kept", h.text())
		}
		l.tally(OfUser("w")) // the last of its kind now
		if got := l.has(h); got != l.of[h.kind][h.name] {
			t.Errorf("%s has %p; want %p", h.text(), got, l.of[h.kind][h.name])
		}
		l.tidy(h, l.has(h))
	}
}

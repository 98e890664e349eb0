package service

import (
	"fmt"
	"slices"
	"testing"
)

// Callers that ask much wait behind themselves: each of those who have something in the line
// is served in turn, and what one asks for in its order.
func TestTheLineServesInTurn(t *testing.T) {
	l := newLine(nil)
	var got []string
	put := func(who string, n int) {
		for i := range n {
			l.push(who, func() { got = append(got, fmt.Sprint(who, i)) })
		}
	}
	serve := func(n int) {
		for range n {
			if do, ok := l.pop(); ok {
				do()
			}
		}
	}
	put("a", 100)
	serve(2)
	put("b", 2)
	put("c", 1)
	serve(6)
	want := []string{"a0", "a1", "a2", "b0", "c0", "a3", "b1", "a4"}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	serve(1000)
	if len(got) != 103 || len(l.of) != 0 {
		t.Errorf("%d were served, %d are remembered", len(got), len(l.of))
	}
	if _, ok := l.pop(); ok {
		t.Error("an empty line serves someone")
	}
}

// What is left of a slice of time is known to be there.
func TestTheRestOfTheLineIsKnown(t *testing.T) {
	l := newLine(nil)
	l.push("a", func() {})
	l.push("a", func() {})
	<-l.ready
	_, _ = l.pop()
	l.rest()
	select {
	case <-l.ready:
	default:
		t.Fatal("one waits, and no one is called")
	}
	_, _ = l.pop()
	l.rest()
	select {
	case <-l.ready:
		t.Error("nothing waits, and someone is called")
	default:
	}
}

// Who has much on its way to the journal is not served until some of it is durable, and
// others are; then it is known that they wait. In the end all are served.
func TestTheLinePassesOverWhoWaitsForTheJournal(t *testing.T) {
	l := newLine(nil)
	var got []string
	serve := func() {
		for do, ok := l.pop(); ok; do, ok = l.pop() {
			do()
		}
	}
	for _, who := range []string{"a", "b", "a", "b"} {
		l.push(who, func() { got = append(got, who) })
	}
	<-l.ready
	l.owe("a", maxOwed)
	l.owe("", 10*maxOwed) // which is the service's own
	l.push("", func() { got = append(got, "own") })
	<-l.ready
	if serve(); !slices.Equal(got, []string{"b", "own", "b"}) {
		t.Errorf("%v are served", got)
	}
	l.push("a", func() { got = append(got, "a") })
	got = nil
	if serve(); got != nil {
		t.Errorf("%v are served because they ask again", got)
	}
	for len(l.ready) > 0 {
		<-l.ready
	}
	l.repay("a", 1)
	select {
	case <-l.ready:
	default:
		t.Error("they wait, and no one is called")
	}
	if serve(); !slices.Equal(got, []string{"a", "a", "a"}) {
		t.Errorf("%v are served once some is durable", got)
	}
	if l.repay("a", maxOwed-1); len(l.owed) != 0 {
		t.Errorf("%v is owed", l.owed)
	}

	got = nil
	l.owe("a", maxOwed)
	l.push("a", func() { got = append(got, "a") })
	if serve(); got != nil {
		t.Errorf("%v are served", got)
	}
	l.forgive()
	l.owe("a", maxOwed)
	l.push("a", func() { got = append(got, "a") })
	if serve(); len(got) != 2 {
		t.Errorf("%v are served in the end, want both", got)
	}
}

// A service account is served in the turn of its owner.
func TestTheLineServesOwnersWithTheirAccounts(t *testing.T) {
	l := newLine(func(who string) string {
		if who == "svc-a" {
			return "a"
		}
		return who
	})
	var got []string
	for _, who := range []string{"a", "svc-a", "a", "b", "svc-a", "b"} {
		l.push(who, func() { got = append(got, who) })
	}
	for do, ok := l.pop(); ok; do, ok = l.pop() {
		do()
	}
	if want := []string{"a", "b", "svc-a", "b", "a", "svc-a"}; !slices.Equal(got, want) {
		t.Errorf("served are %v, want %v", got, want)
	}
}

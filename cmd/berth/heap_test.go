package main

import "testing"

// Commands that compute expect a large heap, but for the worker of a comparison, whose memory has a limit.
func TestWhoExpectsALargeHeap(t *testing.T) {
	for _, c := range []struct {
		words []string
		want  int64
	}{
		{[]string{"sim"}, heapOfCommand},
		{[]string{"journal", "verify"}, heapOfCommand},
		{[]string{"lab"}, heapOfCommand},
		{[]string{"lab", "--worker"}, 0},
		{[]string{"serve"}, heapOfService},
		{[]string{"list"}, 0},
		{[]string{"version"}, 0},
	} {
		var expected int64
		a := &app{expectHeap: func(bytes int64) { expected = bytes }}
		cmd, rest, err := a.root().Find(c.words)
		if err == nil {
			err = cmd.ParseFlags(rest)
		}
		if err != nil {
			t.Fatal(c.words, err)
		}
		for p := cmd; p != nil; p = p.Parent() { // as cobra does it
			if p.PersistentPreRun != nil {
				p.PersistentPreRun(cmd, nil)
				break
			}
		}
		if expected != c.want {
			t.Errorf("%v expects a heap of %d, want %d", c.words, expected, c.want)
		}
	}
}

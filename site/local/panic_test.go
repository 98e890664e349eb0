//go:build linux

package local

import (
	"strings"
	"testing"

	"github.com/berth-hpc/berth/site"
)

// A panic in what waits for the end of a task is raised in who asks the site next, and
// the site can be closed.
func TestAPanicOfAWatcherIsRaisedInWhoAsks(t *testing.T) {
	s, err := Open(Options{Site: "s", Dir: t.TempDir(), Cores: 1})
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	s.order = append(s.order, "1") // without a job of that id
	s.jobs["1"] = nil
	s.watch(&job{dir: t.TempDir(), gone: make(chan struct{})})
	s.mu.Unlock()
	s.watchers.Wait()
	p := site.Caught(func() { _, _ = s.Observe(t.Context()) })
	if p == nil {
		t.Fatal("no panic")
	}
	if raised, is := p.Value.(*site.Panic); !is || !strings.Contains(string(raised.Stack), "awaitEnd") {
		t.Errorf("%v", p)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

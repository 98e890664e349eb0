package service_test

import (
	"regexp"
	"strings"
	"testing"
)

// Whatever is made, updated or released at a site is one line of the log, with its cause, and so
// is that a site is back.
func TestWhatIsDoneAtASiteIsLogged(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	l := newLab(t, false)
	l.looked()
	logged := func(words ...string) {
		t.Helper()
		var pattern strings.Builder
		for _, w := range words {
			pattern.WriteString(".*" + regexp.QuoteMeta(w))
		}
		line := regexp.MustCompile("(?m)^.*" + pattern.String())
		l.until("the log has "+strings.Join(words, " … "), func() bool { return line.MatchString(l.log.String()) })
		if found := line.FindAllString(l.log.String(), -1); len(found) != 1 {
			t.Errorf("%d lines of the log have %q:\n%s", len(found), words, strings.Join(found, "\n"))
		}
	}
	l.reserve("a", 2, 400, 60)
	l.made("a")
	logged("a reservation was made", "id=a users=[root]", "nodes=\"[n1 n2]\" cause=promised")
	l.move("a", 2, l.host.Now(), 300, 60)
	logged("a reservation was", "id=a", `cause="modified by its owner"`)
	job := l.sbatch("a")
	l.looked()
	node, _, _ := strings.Cut(l.nodes("a"), ",")
	if err := l.host.Drain(t.Context(), l.by, "lab", node, "tired"); err != nil {
		t.Fatal(err)
	}
	logged("a reservation was", "id=a", "because node "+node+" takes PEs")
	l.waits("a", job)
	if _, err := l.host.Release(t.Context(), l.by, "a"); err != nil {
		t.Fatal(err)
	}
	logged("a reservation was released", "id=a", "jobs ended\"=["+job+"]", `cause="its promise is cancelled"`)

	l.cluster.KillController()
	l.until("the site is away", func() bool {
		views, err := l.host.Sites(t.Context(), l.by.By)
		return err == nil && !views[0].Reachable
	})
	l.cluster.StartController()
	logged("level=INFO msg=\"site is back\" site=lab")
}

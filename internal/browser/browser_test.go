package browser

import "testing"

// A Chromium that falls over is followed by another one, for the next test.
func TestABrowserThatFallsOver(t *testing.T) {
	var was *chromium
	t.Run("it falls over", func(t *testing.T) {
		b := StartAlways(t)
		b.Open(Size{800, 600}).Visit("data:text/html,<p>one")
		was = b.chromium
		if _, err := b.call("", "Browser.crash", nil); err == nil {
			t.Fatal("it answers")
		}
	})
	p := StartAlways(t).Open(Size{800, 600})
	p.Visit("data:text/html,<p>two")
	if p.b.chromium == was || p.Eval("document.body.innerText") != "two" {
		t.Errorf("the page says %q", p.Eval("document.body.innerText"))
	}
}

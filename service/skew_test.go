package service_test

import (
	"strings"
	"testing"

	"github.com/berth-hpc/berth/site"
)

// That a site's clock is off shows for as long as it is so.
func TestSkewOfASiteShows(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		for _, c := range []struct {
			ahead int64
			want  string
		}{{1, ""}, {40, "its clock is 40 s ahead of this one"}, {-40, "its clock is -40 s ahead"}, {0, ""}} {
			w.skew.Store(c.ahead)
			w.pass(20)
			if got := w.view().Trouble; !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
				t.Errorf("%d s: %q, want %q", c.ahead, got, c.want)
			}
		}
	})
}

// That one controller of a pair does not answer shows for as long as it is so.
func TestSilentControllerOfASiteShows(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		for _, c := range []struct {
			silent bool
			want   string
		}{{false, ""}, {true, "controller ctl1 does not answer; another serves"}, {false, ""}} {
			w.silent.Store(c.silent)
			w.pass(20)
			if got := w.view(); got.Trouble != c.want || !got.Reachable {
				t.Errorf("silent %t: %+v, want %q", c.silent, got, c.want)
			}
		}
	})
}

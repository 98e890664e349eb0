package service_test

import (
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
)

// A site whose commands take 10 s each, where a look is five and a booking two, keeps no one else waiting: promises at other
// sites, promises there for later and all that is only read are answered at once. What begins there now is pending until the
// site has it. It does not come and go, nothing of it is cancelled, and its health says that it is slow.
func TestASlowSite(t *testing.T) {
	bindings(t, []string{"west", "east"}, func(t *testing.T, w *quays) {
		for name, m := range w.options.Managers {
			m.Every = 5 * time.Second
			w.options.Managers[name] = m
		}
		w.restart()
		w.pass(10)
		began := w.now()
		w.at("west", began)
		reserve := func(id, at string, npe berth.Count, in, length berth.Duration) service.Reservation {
			t.Helper()
			start := w.now().Add(in)
			r := berth.Rigid(id, 0, start, start.Add(length), npe, length)
			r.Site = at
			return submit(t, w.host, ann, r).Reservation
		}
		reserve("runs", "west", 1, 5, 5000)
		w.pass(10)
		job, err := w.host.Run(t.Context(), ann, "runs", site.Task{Command: []string{"x"}, Dir: "/"})
		if err != nil {
			t.Fatal(err)
		}
		view := func(of string) service.SiteView {
			t.Helper()
			views, err := w.host.Sites(t.Context(), root.By)
			if err != nil || len(views) != 2 {
				t.Fatal(views, err)
			}
			for i := range views {
				if views[i].Name == of {
					return views[i]
				}
			}
			t.Fatal(of)
			return service.SiteView{}
		}
		// atOnce fails the test if what is done takes time.
		atOnce := func(what string, do func()) {
			t.Helper()
			before := time.Now()
			do()
			if took := time.Since(before); took > 0 {
				t.Errorf("%s took %s", what, took)
			}
		}

		w.sites["west"].slow.Store(20)
		w.sites["west"].looks.Store(50)
		w.pass(120) // two looks that are slow are over
		for range 6 {
			atOnce("what is read", func() {
				if v := view("west"); !v.Reachable || !strings.HasPrefix(v.Trouble, "it is slow: a look takes 50 s") {
					t.Errorf("at %d west is %t, %q", w.now()-began, v.Reachable, v.Trouble)
				}
				if v := view("east"); !v.Reachable || v.Trouble != "" {
					t.Errorf("east is %t, %q", v.Reachable, v.Trouble)
				}
				if list, _, err := w.host.List(t.Context(), ann.By, service.Filter{}); err != nil || len(list) != 1 {
					t.Errorf("%v, %v", list, err)
				}
			})
			w.pass(13)
		}
		if text := w.log.String(); strings.Count(text, "a site is slow") != 1 || strings.Contains(text, "quick again") || strings.Count(text, "site is back") > 2 {
			t.Errorf("the log says\n%s", text)
		}
		atOnce("a promise at west for later", func() {
			if r := reserve("later", "west", 2, 900, 600); r.State != service.Confirmed {
				t.Errorf("it is %+v", r)
			}
		})
		atOnce("a promise at east for later", func() {
			if r := reserve("east later", "east", 2, 900, 600); r.State != service.Confirmed {
				t.Errorf("it is %+v", r)
			}
		})
		before := time.Now()
		if r := reserve("east now", "east", 2, 0, 600); r.State != service.Active || time.Since(before) > time.Second {
			t.Errorf("after %s it is %+v", time.Since(before), r)
		}
		before = time.Now()
		if r := reserve("west now", "west", 1, 0, 600); r.State != service.Pending && r.State != service.Active || time.Since(before) > 21*time.Second {
			t.Errorf("after %s it is %+v", time.Since(before), r)
		}
		w.pass(200)
		if is := w.get("west now"); is.State != service.Active || !is.Sites[0].Made {
			t.Errorf("it is %+v", is)
		}
		w.pass(700)
		if is := w.get("later"); is.State != service.Active || !is.Sites[0].Made || !strings.Contains(w.at("west", began), strings.TrimPrefix(w.where("later", began), "west ")) {
			t.Errorf("it is %s, %+v; west has %s", w.where("later", began), is, w.at("west", began))
		}
		state, err := w.sites["west"].Site.Observe(t.Context())
		if err != nil || len(state.Running) != 1 || state.Running[0].ID != job || strings.Contains(strings.Join(w.sites["west"].asked, ";"), "release") {
			t.Errorf("the job does not run, or something was released: %+v, %v; %v", state, err, w.sites["west"].asked)
		}
		w.sites["west"].slow.Store(0)
		w.sites["west"].looks.Store(0)
		w.pass(120)
		if v := view("west"); !v.Reachable || v.Trouble != "" || !strings.Contains(w.log.String(), "a site is quick again") {
			t.Errorf("west is %t, %q", v.Reachable, v.Trouble)
		}
	})
}

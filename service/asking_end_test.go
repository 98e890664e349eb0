package service_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/notice"
	"github.com/berth-hpc/berth/service"
)

// What is refused for good while its site is asked about it is told in a notice; what its site refuses first and gives elsewhere later is told as
// granted alone.
func TestNoticesOfWhatASiteRefuses(t *testing.T) {
	atQuays(t, 0, []string{"north"}, func(t *testing.T, w *quays) {
		told := &post{}
		w.host.SendNotices(told)
		hook := service.Hook{ID: "h", Form: service.WebhookForm, Kinds: []notice.Kind{notice.Granted, notice.Refused, notice.Lost}}
		if _, err := w.host.AddHook(t.Context(), ann, hook); err != nil {
			t.Fatal(err)
		}
		w.taken("north", "n1", "n2")
		elsewhere := submit(t, w.host, ann, berth.Rigid("elsewhere", 0, w.now(), w.now().Add(4000), 2, 600))
		w.pass(30)
		if got := strings.Join(told.take(), ", "); elsewhere.Refusal != nil || got != "h granted elsewhere active" {
			t.Errorf("%+v, told %q", elsewhere, got)
		}
		w.taken("north", "n3", "n4") // as soon as it is over
		w.pass(700)
		told.take()
		w.sites["north"].Advance(w.now())
		nowhere := submit(t, w.host, ann, berth.Rigid("nowhere", 0, w.now(), w.now().Add(700), 4, 600))
		w.pass(800)
		got := told.take()
		if state := w.get("nowhere").State; state != service.Failed && state != service.Refused || len(got) != 1 || !strings.Contains(got[0], " nowhere ") {
			t.Errorf("%+v, it is %s, told %q", nowhere, state, got)
		}
		synctest.Wait()
	})
}

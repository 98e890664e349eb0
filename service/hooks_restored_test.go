package service_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/berth-hpc/berth/notice"
	"github.com/berth-hpc/berth/service"
)

// After a backup was restored the numbers of notices are given again, and their names are not; what the backup owes has the name that it had.
func TestNoticesAfterARestoreHaveOtherNames(t *testing.T) {
	inHooked(t, func(t *testing.T, w *hooked) {
		named := map[string]string{} // by what was promised
		numbers := map[string]uint64{}
		fails := true
		w.post.says = func(_ context.Context, hook *service.Hook, o *service.Owed) (s service.Sent) {
			r, _ := o.Reservation()
			name := fmt.Sprint(o.Number, "-", o.NamedAt(), " ", o.First, "-", o.FirstAt)
			if was := named[r.ID]; was != "" && was != name || !hook.Dated {
				t.Errorf("the notice of %s is named %s, and was %s", r.ID, name, was)
			}
			if named[r.ID], numbers[r.ID] = name, o.Number; fails {
				s.Words = "not now"
			}
			return s
		}
		w.add(ann, service.Hook{ID: "h", Form: service.MailForm}, notice.Granted)
		w.reserve(ann, "owed", 1000)
		w.pass(2 * time.Second)
		w.shut()
		backup := filepath.Join(t.TempDir(), "backup")
		if err := os.CopyFS(backup, os.DirFS(w.dir)); err != nil {
			t.Fatal(err)
		}
		fails = false
		w.open()
		w.pass(10 * time.Second)
		w.reserve(ann, "lost", 1000)
		w.pass(2 * time.Second)
		w.shut()
		w.dir = backup
		w.open()
		w.pass(10 * time.Second)
		w.reserve(ann, "later", 1000)
		w.pass(2 * time.Second)
		if len(named) != 3 || numbers["later"] != numbers["lost"] || named["later"] == named["lost"] {
			t.Errorf("notices are named %v", named)
		}
	})
}

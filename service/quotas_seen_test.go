package service_test

import (
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/service"
)

// While the disk is full quotas are answered, and count what is on record as ever: of users, accounts, QOS and partitions. What was
// promised since does not count, and what only the engine counts is said not to be counted.
func TestQuotasAnswerWhileTheDiskIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := sqlite.Open(t.TempDir(), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		disk := &fullDisk{Store: store}
		config := engine.Config{Sites: []berth.Site{
			{Name: "site", Pools: []berth.Pool{{Name: "p", PEs: 16, Binding: berth.Late}}, Partitions: []berth.Partition{{Name: "main", Pool: "p", Default: true}}},
			{Name: "other", Pools: []berth.Pool{{Name: "q", PEs: 16, Binding: berth.Late}}},
		}}
		for _, scope := range []policy.Scope{{}, {Account: policy.Every}, {QOS: "high"}, {Partition: policy.Every}} {
			for _, name := range []policy.LimitName{policy.LimitActive, policy.LimitReservations, policy.LimitPESeconds, policy.LimitShare, policy.LimitBudget, policy.LimitMonthBudget, policy.LimitNoShow} {
				value := int64(900)
				if kind, _ := policy.LimitNamed(name); kind.Unit == policy.InPESeconds {
					value = 1 << 30
				}
				if scope.Takes(name) {
					config.Limits = append(config.Limits, policy.Limit{Scope: scope, Name: name, Value: value})
				}
			}
		}
		h, err := service.Open(t.Context(), service.Options{Config: config, Journal: disk, Version: "test"})
		if err != nil {
			t.Fatal(err)
		}
		now := h.Now()
		for i, r := range []struct {
			account, qos string
			ready        berth.Time
			npe          berth.Count
		}{{"chem", "high", 1000, 3}, {"chem", "", 1050, 4}, {"phys", "high", 1000, 2}, {"", "", 5000, 5}, {"chem", "low", 1200, 2}} {
			q := berth.Rigid(string(rune('a'+i)), 0, now+r.ready, now+r.ready+100, r.npe, 100)
			q.Account, q.QOS, q.Site = r.account, r.qos, []string{"site", "other"}[i/4]
			if a := submit(t, h, ann, q); a.Reservation.State != service.Confirmed {
				t.Fatalf("%+v", a.Reservation)
			}
		}
		type answers struct {
			users    []service.Quota
			shared   []service.SharedQuota
			accounts []service.SharedQuota
		}
		ask := func() (a answers) {
			t.Helper()
			var errs [3]error
			a.users, errs[0] = h.Quotas(t.Context(), root.By, []service.Principal{ann.By, {User: "bob", Role: service.User}, {User: "nobody", Role: service.User}})
			a.shared, errs[1] = h.SharedQuotas(t.Context(), root.By)
			a.accounts, errs[2] = h.AccountQuotas(t.Context(), ann.By)
			if err := errors.Join(errs[:]...); err != nil {
				t.Fatal(err)
			}
			return a
		}
		before := ask()
		disk.full.Store(true)
		answered := make(chan error, 1)
		go func() {
			_, err := h.Submit(t.Context(), ann, berth.Rigid("meanwhile", 0, now, now+5000, 2, 100))
			answered <- err
		}()
		began := time.Now()
		ask() // perhaps before it is known that the journal cannot be written
		time.Sleep(5 * time.Second)
		meanwhile := ask()
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("the answer took %v", took)
		}
		// What the engine alone counts is not counted, all else is as it was.
		charges := 0
		as := func(list []service.Allowed) (public []service.Allowed) {
			for _, a := range list {
				switch a.Name {
				case policy.LimitBudget, policy.LimitMonthBudget, policy.LimitNoShow, policy.LimitRemembered:
					charges++
					a.Counted, a.Used, a.Held, a.Frees = false, 0, 0, 0
				}
				public = append(public, a)
			}
			return public
		}
		for i := range before.users {
			before.users[i].Limits = as(before.users[i].Limits)
		}
		for _, list := range [][]service.SharedQuota{before.shared, before.accounts} {
			for i := range list {
				list[i].Limits = as(list[i].Limits)
			}
		}
		if charges == 0 || len(before.shared) != 4 || len(before.accounts) != 2 {
			t.Fatalf("%d charges, %d and %d shared quotas", charges, len(before.shared), len(before.accounts))
		}
		if !reflect.DeepEqual(meanwhile, before) {
			t.Errorf("while the disk is full: %+v; want %+v", meanwhile, before)
		}
		disk.full.Store(false)
		if err := <-answered; err != nil {
			t.Error(err)
		}
		if after := ask(); after.users[0].Limits[2].Used != before.users[0].Limits[2].Used+1 {
			t.Errorf("when there is room again %+v counts", after.users[0].Limits[2])
		}
		if err := errors.Join(h.Close(), store.Close()); err != nil {
			t.Error(err)
		}
	})
}

package service_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/service"
)

// people knows groups, and an owner of a service account.
type people struct{ down bool }

func (p *people) Person(user string) string {
	if user == "svc-ci" {
		return "ann"
	}
	return user
}

func (p *people) Groups(_ context.Context, person string) ([]string, error) {
	if p.down {
		return nil, berth.Errorf(berth.Unavailable, "user", "the directory of users does not answer")
	}
	if person == "cid" {
		return []string{"hep"}, nil
	}
	return nil, nil
}

// withProjects is a service of eight PEs where ann is in phys and chem, which is her default, and those in the group hep in phys.
func withProjects(t *testing.T, open bool, limits policy.Limits) (*service.Host, *people) {
	t.Helper()
	store, err := sqlite.Open(t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	config, c, who := onePool(8), &clock{}, &people{}
	c.seconds.Store(1000)
	config.Limits = limits
	h, err := service.Open(t.Context(), service.Options{Config: config, Journal: store, Version: "test", Clock: c.now, Projects: service.Projects{
		Open: open, Directory: who, List: []service.Project{
			{Account: "phys", Users: []string{"ann"}, Groups: []string{"hep"}},
			{Account: "chem", Users: []string{"ann"}, DefaultFor: []string{"ann"}},
			{Account: "bots", Users: []string{"svc-own"}},
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(h.Close(), store.Close()); err != nil {
			t.Error(err)
		}
	})
	return h, who
}

func asUser(name string) service.Ask {
	return service.Ask{By: service.Principal{User: name, Role: service.User}}
}

// projectWay asks for something in an account, and returns the one that is charged.
type projectWay struct {
	name string
	ask  func(h *service.Host, by service.Ask, r berth.Request) (string, error)
}

func projectWays(t *testing.T) []projectWay {
	t.Helper()
	ctx := t.Context()
	held := func(h *service.Host, by service.Ask, r berth.Request) (service.Answer, error) {
		r.ID = ""
		return h.Submit(ctx, by, r)
	}
	series := func(r berth.Request) berth.Series {
		return berth.Series{Rule: "daily", Zone: "UTC", Least: 2, Request: r, Occurrences: []berth.Occurrence{{Ready: r.Ready, Deadline: r.Deadline}, {Ready: r.Ready + 1000, Deadline: r.Deadline + 1000}}}
	}
	return []projectWay{
		{"one part", func(h *service.Host, by service.Ask, r berth.Request) (string, error) {
			a, err := held(h, by, r)
			return a.Reservation.Request.Account, err
		}},
		{"hold", func(h *service.Host, by service.Ask, r berth.Request) (string, error) {
			r.Hold = 10
			a, err := held(h, by, r)
			return a.Reservation.Request.Account, err
		}},
		{"job", func(h *service.Host, by service.Ask, r berth.Request) (string, error) {
			r.Kind = berth.KindJob
			a, err := held(h, by, r)
			return a.Reservation.Request.Account, err
		}},
		{"array", func(h *service.Host, by service.Ask, r berth.Request) (string, error) {
			list, err := h.SubmitArray(ctx, by, r, 2)
			if err != nil {
				return "", err
			}
			return list[1].Reservation.Request.Account, nil
		}},
		{"offer taken", func(h *service.Host, by service.Ask, r berth.Request) (string, error) {
			offers, err := h.Offers(ctx, by, r, 1)
			if err != nil {
				return "", err
			}
			a, err := h.Hold(ctx, by, offers[0].ID, 10)
			return a.Reservation.Request.Account, err
		}},
		{"starts", func(h *service.Host, by service.Ask, r berth.Request) (string, error) {
			_, err := h.Starts(ctx, by, r, service.Window{})
			return "-", err
		}},
		{"modify", func(h *service.Host, by service.Ask, r berth.Request) (string, error) {
			a, err := held(h, by, berth.Rigid("", 0, 2000, 3000, 1, 10))
			if err != nil {
				return "", err
			}
			r.User = by.By.User
			a, err = h.Modify(ctx, by, a.Reservation.ID, r)
			return a.Reservation.Request.Account, err
		}},
		{"series", func(h *service.Host, by service.Ask, r berth.Request) (string, error) {
			a, err := h.SubmitSeries(ctx, by, series(r))
			if err != nil {
				return "", err
			}
			return a.Series.Reservations[1].Request.Account, nil
		}},
		{"by an operator in their name", func(h *service.Host, by service.Ask, r berth.Request) (string, error) {
			r.User = by.By.User
			a, err := held(h, root, r)
			return a.Reservation.Request.Account, err
		}},
	}
}

// Whatever way a request comes in, it is charged to an account of its user: to the default one if it names none. Another one is an error.
func TestProjectsHoldInEveryWay(t *testing.T) {
	for _, c := range []struct {
		user, account string
		open          bool
		want          string // the account that is charged; with a ! words of the error
	}{
		{"ann", "", false, "chem"},
		{"ann", "phys", false, "phys"},
		{"ann", "bio", false, `!"bio" is no project of ann; name chem or phys`},
		{"ann", "bots", true, `!"bots" is no project of ann`},
		{"ann", "bio", true, "bio"},
		{"bob", "", false, "!none given, and bob is in no project"},
		{"bob", "phys", false, "!bob is in no project"},
		{"bob", "phys", true, `!"phys"; bob is in no project`},
		{"bob", "", true, ""},
		{"bob", "bio", true, "bio"},
		{"cid", "", false, "phys"},
		{"cid", "chem", false, `!"chem" is no project of cid; name phys`},
		{"svc-ci", "", false, "chem"},
		{"svc-ci", "phys", false, "phys"},
		{"svc-own", "", false, "bots"},
		{"svc-own", "phys", false, `!"phys" is no project of svc-own`},
	} {
		for _, way := range projectWays(t) {
			h, _ := withProjects(t, c.open, nil)
			r := berth.Rigid("", 0, 2000, 3000, 2, 100)
			r.Account = c.account
			got, err := way.ask(h, asUser(c.user), r)
			name := c.user + " naming " + c.account + ", " + way.name
			words, refused := strings.CutPrefix(c.want, "!")
			coded, is := errors.AsType[*berth.Error](err)
			switch {
			case refused && (!is || coded.Code != berth.Denied || coded.Field != "account" || !strings.Contains(coded.Msg, words)):
				t.Errorf("%s: %q, %v, want the error %q", name, got, err, words)
			case !refused && (err != nil || got != c.want && got != "-"):
				t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
			}
		}
	}
}

// The budget of a project holds for those who name no account, in every way that promises something.
func TestBudgetsOfDefaultProjectsHoldInEveryWay(t *testing.T) {
	limits := policy.Limits{{Scope: policy.Scope{Account: "chem"}, Name: policy.LimitBudget, Value: 199}}
	for _, way := range projectWays(t) {
		if way.name == "starts" || way.name == "job" { // which promise nothing
			continue
		}
		for _, limited := range []bool{false, true} {
			var table policy.Limits
			if limited {
				table = limits
			}
			h, _ := withProjects(t, false, table)
			if way.name == "offer taken" && limited {
				if offers, err := h.Offers(t.Context(), asUser("ann"), berth.Rigid("", 0, 2000, 3000, 2, 100), 1); err != nil || len(offers) > 0 && len(offers[0].Allotments) > 0 && offers[0].Allotments[0].NPE == 2 && offers[0].Allotments[0].End-offers[0].Allotments[0].Start == 100 {
					t.Errorf("offered is %+v, %v, beyond the budget", offers, err)
				}
				continue
			}
			if _, err := way.ask(h, asUser("ann"), berth.Rigid("", 0, 2000, 3000, 2, 100)); err != nil {
				t.Errorf("%s: %v", way.name, err)
			}
			list, _, err := h.List(t.Context(), root.By, service.Filter{})
			if err != nil {
				t.Fatal(err)
			}
			promised := slices.ContainsFunc(list, func(r service.Reservation) bool { return len(r.Allotments) > 0 && r.Allotments[0].NPE == 2 })
			if promised == limited {
				t.Errorf("%s: promised is %t with limits %v", way.name, promised, table)
			}
		}
	}
}

// While it is not known in which groups users are, none is taken for a member.
func TestProjectsWhileTheDirectoryIsSilent(t *testing.T) {
	h, who := withProjects(t, true, nil)
	who.down = true
	_, err := h.Submit(t.Context(), asUser("cid"), berth.Rigid("", 0, 2000, 3000, 2, 100))
	if coded, is := errors.AsType[*berth.Error](err); !is || coded.Code != berth.Unavailable {
		t.Errorf("%v, want it unavailable", err)
	}
	who.down = false
	own, err := h.OwnProjects(t.Context(), "ann")
	if err != nil || own.Default != "chem" || !slices.Equal(own.Accounts, []string{"chem", "phys"}) {
		t.Errorf("%+v, %v", own, err)
	}
}

// Offers and reservations tell what budgets are charged for them, and what was used is told at the prices too.
func TestPricesAreTold(t *testing.T) {
	c := &clock{}
	c.seconds.Store(1000)
	config := onePool(8)
	config.Prices = policy.Prices{{Site: config.Sites[0].Name, Factor: 1500}}
	config.Limits = policy.Limits{{Scope: policy.Scope{Account: "phys"}, Name: policy.LimitBudget, Value: 1000}}
	h, _ := startOn(t, t.TempDir(), config, c)
	r := berth.Rigid("a", 0, 1000, 1100, 2, 100)
	r.Account = "phys"
	offers, err := h.Offers(t.Context(), ann, r, 1)
	if err != nil || len(offers) != 1 || offers[0].Charge == nil || *offers[0].Charge != 300 {
		t.Fatalf("%+v, %v, want a charge of 300 PE-seconds", offers, err)
	}
	submit(t, h, ann, r)
	if got, err := h.Get(t.Context(), ann.By, "a"); err != nil || got.Charge == nil || *got.Charge != 300 {
		t.Errorf("%+v, %v, want a charge of 300 PE-seconds", got, err)
	}
	used := func() service.Used {
		t.Helper()
		u, _, err := h.Usage(t.Context(), ann.By, 0, 1<<30)
		if err != nil || len(u.List) != 1 {
			t.Fatal(u, err)
		}
		return u.List[0]
	}
	if u := used(); u.Held != 300 || u.Charged != 0 {
		t.Errorf("%+v, want 300 held", u)
	}
	c.seconds.Store(1050)
	if _, err := h.Release(t.Context(), ann, "a"); err != nil {
		t.Fatal(err)
	}
	if u := used(); u.Held != 0 || u.Charged != 150 {
		t.Errorf("%+v, want 150 charged", u)
	}
	if got, err := h.Get(t.Context(), ann.By, "a"); err != nil || got.Charge != nil {
		t.Errorf("%+v, %v, want none of what is over", got, err)
	}
}

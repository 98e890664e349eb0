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
type people struct {
	down bool
	left bool // cid is in no group any more
}

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
	if person == "cid" && !p.left {
		return []string{"hep"}, nil
	}
	return nil, nil
}

// withProjects is a service of a thousand PEs where ann is in phys and chem, which is her default, and those in the group hep in phys.
func withProjects(t *testing.T, open bool, limits policy.Limits) (*service.Host, *people) {
	t.Helper()
	who := &people{}
	return inProjects(t, t.TempDir(), limits, service.Projects{
		Open: open, Directory: who, List: []service.Project{
			{Account: "phys", Users: []string{"ann"}, Groups: []string{"hep"}},
			{Account: "chem", Users: []string{"ann"}, DefaultFor: []string{"ann"}},
			{Account: "bots", Users: []string{"svc-own"}},
		},
	}), who
}

// inProjects is a service of a thousand PEs with some projects, on the journal in dir.
func inProjects(t *testing.T, dir string, limits policy.Limits, projects service.Projects) *service.Host {
	t.Helper()
	store, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	config, c := onePool(1000), &clock{}
	c.seconds.Store(1000)
	config.Limits = limits
	h, err := service.Open(t.Context(), service.Options{Config: config, Journal: store, Version: "test", Clock: c.now, Projects: projects})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(h.Close(), store.Close()); err != nil {
			t.Error(err)
		}
	})
	return h
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
	// flow is a workflow of two tasks, the second of them like a request.
	flow := func(by service.Ask, r berth.Request) berth.Workflow {
		return berth.Workflow{
			User: by.By.User, Deadline: r.Deadline, Algorithm: berth.SlackAlgorithm, Repair: berth.RepairBoth,
			Tasks: []berth.WorkflowTask{{ID: "a", Seconds: 10, Few: 1, Most: 1}, {ID: "b", Seconds: 200, Few: 2, Most: 2, After: []int{0}}},
		}
	}
	// last returns the account of the reservation of the second task, in its first try or a later one.
	last := func(h *service.Host, f service.FlowAnswer, err error) (string, error) {
		if err != nil || f.Workflow.Refusal != nil {
			return "refused", err
		}
		got, err := h.Get(ctx, root.By, f.Workflow.Tasks[1].Reservation)
		return got.Request.Account, err
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
		{"workflow", func(h *service.Host, by service.Ask, r berth.Request) (string, error) {
			w := flow(by, r)
			w.Account = r.Account
			f, err := h.SubmitWorkflow(ctx, by, w)
			return last(h, f, err)
		}},
		{"task of its own account", func(h *service.Host, by service.Ask, r berth.Request) (string, error) {
			w := flow(by, r)
			w.Tasks[0].Account, w.Tasks[1].Account = r.Account, r.Account
			f, err := h.SubmitWorkflow(ctx, by, w)
			return last(h, f, err)
		}},
		{"workflow of an operator in their name", func(h *service.Host, by service.Ask, r berth.Request) (string, error) {
			w := flow(by, r)
			w.Account = r.Account
			f, err := h.SubmitWorkflow(ctx, root, w)
			return last(h, f, err)
		}},
		{"workflow offers", func(h *service.Host, by service.Ask, r berth.Request) (string, error) {
			w := flow(by, r)
			w.Account = r.Account
			offers, err := h.WorkflowOffers(ctx, by, w)
			if err != nil || len(offers) == 0 {
				return "no offers", err
			}
			w.Deadline, w.Algorithm = offers[0].Workflow.Deadline, offers[0].Workflow.Algorithm
			f, err := h.SubmitWorkflow(ctx, by, w)
			if account, err := last(h, f, err); err != nil || account != offers[0].Workflow.Account {
				return "offered in " + offers[0].Workflow.Account + ", taken in " + account, err
			}
			return offers[0].Workflow.Account, nil
		}},
		{"workflow retried", func(h *service.Host, by service.Ask, r berth.Request) (string, error) {
			w := flow(by, r)
			w.Account = r.Account
			f, err := h.SubmitWorkflow(ctx, by, w)
			if err != nil || f.Workflow.Refusal != nil {
				return "refused", err
			}
			id := f.Workflow.Workflow.ID
			if _, err := h.CancelWorkflow(ctx, by, id); err != nil {
				return "", err
			}
			f, err = h.RetryWorkflow(ctx, by, id, r.Deadline)
			return last(h, f, err)
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
	hosts := map[bool]*service.Host{}
	for _, open := range []bool{false, true} {
		hosts[open], _ = withProjects(t, open, nil)
	}
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
			r := berth.Rigid("", 0, 2000, 3000, 2, 100)
			r.Account = c.account
			got, err := way.ask(hosts[c.open], asUser(c.user), r)
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
	free, _ := withProjects(t, false, nil)
	promised := func(h *service.Host) (n int) {
		t.Helper()
		list, _, err := h.List(t.Context(), root.By, service.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range list {
			if len(list[i].Allotments) > 0 && list[i].Allotments[0].NPE == 2 {
				n++
			}
		}
		return n
	}
	for _, way := range projectWays(t) {
		if way.name == "starts" || way.name == "job" { // which promise nothing
			continue
		}
		was := promised(free)
		if _, err := way.ask(free, asUser("ann"), berth.Rigid("", 0, 2000, 3000, 2, 100)); err != nil || promised(free) == was {
			t.Errorf("%s: nothing is promised without limits, %v", way.name, err)
		}
		h, _ := withProjects(t, false, limits)
		if way.name == "offer taken" {
			if offers, err := h.Offers(t.Context(), asUser("ann"), berth.Rigid("", 0, 2000, 3000, 2, 100), 1); err != nil || len(offers) > 0 && len(offers[0].Allotments) > 0 && offers[0].Allotments[0].NPE == 2 && offers[0].Allotments[0].End-offers[0].Allotments[0].Start == 100 {
				t.Errorf("offered is %+v, %v, beyond the budget", offers, err)
			}
			continue
		}
		if _, err := way.ask(h, asUser("ann"), berth.Rigid("", 0, 2000, 3000, 2, 100)); err != nil {
			t.Errorf("%s: %v", way.name, err)
		}
		if n := promised(h); n > 0 {
			t.Errorf("%s: %d are promised beyond the budget", way.name, n)
		}
	}
}

// Who may name an account is asked anew when a workflow is retried, also one that is older than the projects; what was answered under
// a key is answered again whatever has become of the membership.
func TestRetriedWorkflowsAreInProjects(t *testing.T) {
	dir := t.TempDir()
	keyed := asUser("ann")
	keyed.Key = "k"
	w := berth.Workflow{ID: "w", Deadline: 3000, Algorithm: berth.SlackAlgorithm, Repair: berth.RepairBoth, Tasks: []berth.WorkflowTask{{ID: "a", Seconds: 10, Most: 1}}}
	ann := []service.Project{{Account: "chem", Users: []string{"ann"}}}
	t.Run("before there are projects", func(t *testing.T) {
		h := inProjects(t, dir, nil, service.Projects{})
		if f, err := h.SubmitWorkflow(t.Context(), asUser("ann"), w); err != nil || f.Workflow.State != service.FlowPromised || f.Workflow.Workflow.Account != "" {
			t.Fatalf("%+v, %v", f, err)
		}
	})
	t.Run("as a member", func(t *testing.T) {
		h := inProjects(t, dir, nil, service.Projects{List: ann})
		again := w
		again.ID = "keyed"
		if f, err := h.SubmitWorkflow(t.Context(), keyed, again); err != nil || f.Workflow.Workflow.Account != "chem" {
			t.Fatalf("%+v, %v", f, err)
		}
		if _, err := h.CancelWorkflow(t.Context(), asUser("ann"), "w"); err != nil {
			t.Fatal(err)
		}
		f, err := h.RetryWorkflow(t.Context(), asUser("ann"), "w", 3000)
		if err != nil || f.Workflow.Workflow.Account != "chem" {
			t.Fatalf("%+v, %v, want it in chem", f, err)
		}
		if got, err := h.Get(t.Context(), root.By, f.Workflow.Tasks[0].Reservation); err != nil || got.Request.Account != "chem" {
			t.Errorf("%+v, %v, want it in chem", got.Request, err)
		}
	})
	t.Run("as a member no more", func(t *testing.T) {
		h := inProjects(t, dir, nil, service.Projects{List: []service.Project{{Account: "chem", Users: []string{"bob"}}}})
		again := w
		again.ID = "keyed"
		if f, err := h.SubmitWorkflow(t.Context(), keyed, again); err != nil || f.Workflow.Workflow.Account != "chem" {
			t.Errorf("%+v, %v, want the answer as it was", f, err)
		}
		if _, err := h.CancelWorkflow(t.Context(), asUser("ann"), "w"); err != nil {
			t.Fatal(err)
		}
		for _, by := range []service.Ask{asUser("ann"), root} {
			_, err := h.RetryWorkflow(t.Context(), by, "w", 3000)
			if coded, is := errors.AsType[*berth.Error](err); !is || coded.Code != berth.Denied || coded.Field != "account" {
				t.Errorf("by %s: %v, want it denied", by.By.User, err)
			}
		}
	})
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
	keyed := ann
	keyed.Key = "k"
	for _, when := range []string{"first", "again"} {
		if got := submit(t, h, keyed, r).Reservation; got.Charge == nil || *got.Charge != 300 {
			t.Errorf("answered %s is a charge of %v, want 300 PE-seconds", when, got.Charge)
		}
	}
	wide := r
	wide.ID, wide.Ready, wide.Deadline = "wide", 2000, 2100
	parts, err := h.SubmitArray(t.Context(), ann, wide, 2)
	if err != nil || len(parts) != 2 || parts[1].Reservation.Charge == nil || *parts[1].Reservation.Charge != 300 {
		t.Errorf("of an array are answered %+v, %v", parts, err)
	}
	longer := wide
	longer.ID, longer.Deadline = parts[0].Reservation.ID, 2120
	longer.Parts = []berth.Part{{Variants: []berth.Variant{{NPE: 2, Duration: 120}}}}
	if a, err := h.Modify(t.Context(), ann, longer.ID, longer); err != nil || a.Reservation.Charge == nil || *a.Reservation.Charge != 360 {
		t.Errorf("once it is longer %+v, %v, want a charge of 360 PE-seconds", a, err)
	}
	for i := range parts {
		if a, err := h.Release(t.Context(), ann, parts[i].Reservation.ID); err != nil || a.Charge != nil {
			t.Errorf("%+v, %v, want no charge of what was given back", a, err)
		}
	}
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

package service_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// accounts is a lab with an accounting database: the users games and daemon in the account
// project, games in the account course below it too, and sys under a QOS alone.
func accounts(t *testing.T) *lab {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	if os.Getuid() != 0 {
		t.Skip("only root can run jobs of others")
	}
	l := newLabOf(t, slurmtest.Start(t, slurmtest.Options{Accounting: true}), site.UnitNode, false)
	for _, line := range []string{
		"add account project GrpTRES=node=3",
		"add account course parent=project MaxWall=60",
		"add user games account=project",
		"add user games account=course MaxSubmitJobs=5",
		"add user daemon account=project",
		"add qos small MaxTRESPerUser=cpu=4 MaxWall=600",
		"add user sys account=project qos=small defaultqos=small",
		"add user bin account=course MaxJobs=0",
	} {
		l.cluster.Account(line)
	}
	l.looked()
	l.until("slurmctld knows them", func() bool {
		users, err := l.cluster.Command("scontrol", "--oneliner", "show", "assoc_mgr", "flags=assoc", "users=bin")
		qos, unread := l.cluster.Command("scontrol", "--oneliner", "show", "assoc_mgr", "flags=qos")
		return err == nil && unread == nil && strings.Contains(users, "MaxJobs=0(") && strings.Contains(qos, "QOS=normal(") && strings.Contains(qos, "QOS=small(")
	})
	return l
}

// askAs asks for nodes for a user from a time from now on.
func (l *lab) askAs(user string, with berth.Sharing, in, length berth.Duration, npe ...berth.Count) (service.Answer, error) {
	start := l.host.Now().Add(in)
	r := berth.Rigid("", 0, start, start.Add(length), npe[0], length)
	for _, n := range npe[1:] {
		r.Parts[0].Variants = append(r.Parts[0].Variants, berth.Variant{NPE: n, Duration: length})
	}
	r.User, r.Sharing = user, with
	return l.host.Submit(l.t.Context(), l.by, r)
}

// as runs a command of Slurm as a user.
func (l *lab) as(user string, command ...string) (string, error) {
	return l.cluster.Command("setpriv", append([]string{"--reuid=" + user, "--clear-groups"}, command...)...)
}

// job submits a job of a user into a reservation.
func (l *lab) job(user, account, name string) error {
	out, err := l.as(user, "sbatch", "--parsable", "--account="+account, "--reservation="+name, "--time=1", "--output=/dev/null", "--chdir=/tmp", "--wrap=sleep 1000")
	if err != nil && !strings.Contains(out, "Access denied to requested reservation") && !strings.Contains(out, "Invalid account") {
		l.t.Fatal(out)
	}
	return err
}

// A promise names an account and others who may run in it, and Slurm lets exactly those in.
func TestPromisesAreSharedInAccountsOfSlurm(t *testing.T) {
	t.Parallel()
	l := accounts(t)
	type try struct {
		user, account string
		may           bool
	}
	for from, c := range []struct {
		with  berth.Sharing
		shown string
		tries []try
	}{
		{berth.Sharing{Account: "project"}, "Users=games Groups=(null) Accounts=project ", []try{{"games", "project", true}, {"games", "course", false}, {"daemon", "project", false}}},
		{berth.Sharing{Account: "project", Users: []string{"daemon"}}, "Users=daemon,games Groups=(null) Accounts=project ", []try{{"games", "project", true}, {"daemon", "project", true}, {"sys", "project", false}}},
		{berth.Sharing{Account: "project", Users: []string{berth.EveryUser}}, "Users=(null) Groups=(null) Accounts=project ", []try{{"daemon", "project", true}, {"bin", "project", false}}},
		{berth.Sharing{Users: []string{"daemon"}}, "Users=daemon,games Groups=(null) Accounts=(null) ", []try{{"games", "course", true}, {"daemon", "project", true}, {"sys", "project", false}}},
		{berth.Sharing{Group: "games"}, "Users=(null) Groups=games Accounts=(null) ", []try{{"games", "project", true}, {"daemon", "project", false}}},
	} {
		a, err := l.askAs("games", c.with, 200+100*berth.Duration(from), 60, 1)
		if err != nil || !isPromised(a.Reservation) {
			t.Fatal(c.with, a, err)
		}
		name := l.made(a.Reservation.ID)
		if text := l.shown("reservation", name); !strings.Contains(text, c.shown) {
			t.Errorf("%+v: want %s\n%s", c.with, c.shown, text)
		}
		for _, try := range c.tries {
			if err := l.job(try.user, try.account, name); (err == nil) != try.may {
				t.Errorf("%+v: %+v: %v", c.with, try, err)
			}
		}
		if from > 0 {
			continue
		}
		r := a.Reservation.Request.Clone()
		r.Users = []string{"sys"}
		if a, err := l.host.Modify(t.Context(), l.by, a.Reservation.ID, *r); err != nil || a.Refusal != nil {
			t.Fatal(a, err)
		}
		l.until("sys may run in it", func() bool {
			return strings.Contains(l.shown("reservation", l.made(a.Reservation.ID)), "Users=games,sys ")
		})
	}
	if err := l.host.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// What an account, its users or the limits of associations and QOS would keep from running is
// not promised, and the answer names what is in its way.
func TestNothingIsPromisedBeyondLimitsOfSlurm(t *testing.T) {
	t.Parallel()
	l := accounts(t)
	for name, c := range map[string]struct {
		user   string
		with   berth.Sharing
		length berth.Duration
		npe    []berth.Count
		want   string // in the error; nothing is a promise
	}{
		"no association":        {"daemon", berth.Sharing{Account: "course"}, 60, []berth.Count{1}, "no association with the account course"},
		"no such account":       {"daemon", berth.Sharing{Account: "curse"}, 60, []berth.Count{1}, "no association with the account curse"},
		"others without it":     {"games", berth.Sharing{Account: "project", Users: []string{"daemon", "nobody"}}, 60, []berth.Count{1}, "user nobody has no association"},
		"others without any":    {"games", berth.Sharing{Users: []string{"nobody"}}, 60, []berth.Count{1}, "user nobody has no account"},
		"no account at all":     {"nobody", berth.Sharing{}, 60, []berth.Count{1}, "they have no account there"},
		"another group":         {"games", berth.Sharing{Group: "daemon"}, 60, []berth.Count{1}, "no member of the group daemon"},
		"all nodes":             {"games", berth.Sharing{Account: "project"}, 60, []berth.Count{4}, "GrpTRES of the account project is node=3, and this would be 4"},
		"the account above":     {"games", berth.Sharing{Account: "course"}, 60, []berth.Count{4}, "GrpTRES of the account project is node=3, and this would be 4"},
		"too long":              {"games", berth.Sharing{Account: "course"}, 3601, []berth.Count{1}, "MaxWall of user games in the account course is 01:00:00, and this would be 01:00:01"},
		"any account will do":   {"games", berth.Sharing{}, 3601, []berth.Count{1}, ""},
		"one shape is small":    {"games", berth.Sharing{}, 60, []berth.Count{4, 2}, ""},
		"beyond the QOS":        {"sys", berth.Sharing{}, 60, []berth.Count{2}, "MaxTRESPerUser of the QOS small is cpu=4, and this would be 8"},
		"within the QOS":        {"sys", berth.Sharing{}, 60, []berth.Count{1}, ""},
		"their QOS":             {"sys", berth.Sharing{QOS: "small"}, 60, []berth.Count{1}, ""},
		"beyond the named QOS":  {"sys", berth.Sharing{Account: "project", QOS: "small"}, 60, []berth.Count{2}, "MaxTRESPerUser of the QOS small is cpu=4, and this would be 8"},
		"not their QOS":         {"games", berth.Sharing{QOS: "small"}, 60, []berth.Count{1}, "they may not use the QOS small"},
		"no such QOS":           {"sys", berth.Sharing{QOS: "smal"}, 60, []berth.Count{1}, "they may not use the QOS smal"},
		"no job may be started": {"bin", berth.Sharing{}, 60, []berth.Count{1}, "MaxJobs of user bin in the account course is 0"},
	} {
		a, err := l.askAs(c.user, c.with, 200, c.length, c.npe...)
		switch {
		case c.want == "" && (err != nil || a.Reservation.State != service.Confirmed):
			t.Errorf("%s: %+v, %v, want a promise", name, a.Reservation, err)
		case c.want == "" && a.Reservation.Allotments[0].NPE != c.npe[len(c.npe)-1]:
			t.Errorf("%s: %d nodes", name, a.Reservation.Allotments[0].NPE)
		case c.want != "":
			if wantCode(t, err, berth.Denied); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
			continue
		}
		if _, err := l.host.Release(t.Context(), l.by, a.Reservation.ID); err != nil {
			t.Fatal(err)
		}
	}
}

// What an administrator changes by hand in a reservation is taken over, if it is who may use
// it, or put back, and its owner is told.
func TestChangesByHandAreTakenOverOrTold(t *testing.T) {
	t.Parallel()
	l := accounts(t)
	told := l.listen(service.SiteChanged)
	a, err := l.askAs("games", berth.Sharing{Account: "project"}, 600, 600, 1)
	if err != nil {
		t.Fatal(err)
	}
	id := a.Reservation.ID
	name := l.made(id)
	shows := func(what string) {
		l.until(what, func() bool {
			text := l.shown("reservation", l.made(id))
			return (strings.Contains(text, "Users=daemon,games ") || strings.Contains(text, "Users=games,daemon ")) && strings.Contains(text, "Nodes="+l.nodes(id)+" ")
		})
	}
	hears := func(want string) {
		if n := l.hear(told); n.Reservation.ID != id || !strings.Contains(n.Trouble, want) {
			t.Errorf("told is %q, want %q", n.Trouble, want)
		}
	}
	l.administer("update", "ReservationName="+name, "Users+=daemon")
	hears("may be used by daemon too, which is taken over")
	l.looked()
	l.looked()
	shows("daemon stays")

	other := "n4"
	if l.nodes(id) == other {
		other = "n1"
	}
	l.administer("update", "ReservationName="+name, "Nodes="+other)
	hears("nodes is " + other)
	shows("it is put back")
	// What is changed while Slurm is asked to put something back is put back with it, and not told again.
	l.until("it is said to be put back", func() bool { return strings.Contains(l.log.String(), "was updated at a site") })
	l.administer("update", "ReservationName="+name, "Duration=60")
	hears("; it is put back")
	shows("it is put back")

	if err := l.host.Close(); err != nil {
		t.Fatal(err)
	}
	l.open()
	l.looked()
	l.looked()
	shows("daemon stays after a restart")
	if err := l.host.Drain(t.Context(), l.by, "lab", l.nodes(id), "tired"); err != nil {
		t.Fatal(err)
	}
	was := l.nodes(id)
	l.until("it has another node", func() bool { return l.nodes(id) != was })
	shows("daemon stays where it is now")
	past, _, err := l.host.History(t.Context(), l.by.By, id)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for i := range past.List {
		if string(past.List[i].What) == service.SiteChanged {
			n++
		}
	}
	if n < 3 {
		t.Errorf("%d changes by hand in its history, want 3 and at most one more after the restart", n)
	}
	if err := l.host.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// hear waits for a notice.
func (l *lab) hear(told <-chan service.Notice) service.Notice {
	l.t.Helper()
	select {
	case n := <-told:
		return n
	case <-time.After(30 * time.Second):
		l.t.Fatalf("nothing is told; the log is\n%s", l.log.String())
		return service.Notice{}
	}
}

// What Slurm refuses for good stays promised for as long as the cause may be a moment's: an
// account that is gone for a while. Meanwhile what fails when is shown.
func TestRefusedForGoodForAMoment(t *testing.T) {
	t.Parallel()
	l := accounts(t)
	if err := l.host.Close(); err != nil {
		t.Fatal(err)
	}
	l.manager.GiveUpAfter = 15
	l.open()
	l.looked()
	promised := func(in berth.Duration) string {
		a, err := l.askAs("games", berth.Sharing{Account: "course"}, in, 60, 1)
		if err != nil || !isPromised(a.Reservation) {
			t.Fatal(a, err)
		}
		return a.Reservation.ID
	}
	back, gone := promised(horizon+5), promised(horizon+30)
	l.cluster.Account("delete account course")
	l.until("Slurm refuses it", func() bool { return l.get(back).Sites[0].Trouble != "" })
	if r := l.get(back); r.State != service.Confirmed || !strings.Contains(r.Sites[0].Trouble, "it fails at ") {
		t.Errorf("refused for good it is %s: %s", r.State, r.Sites[0].Trouble)
	}
	l.cluster.Account("add account course parent=project")
	l.cluster.Account("add user games account=course")
	l.made(back)
	if r := l.get(back); r.State != service.Confirmed || strings.Contains(r.Sites[0].Trouble, "fails") {
		t.Errorf("made it is %s: %s", r.State, r.Sites[0].Trouble)
	}
	if _, err := l.host.Release(t.Context(), l.by, back); err != nil {
		t.Fatal(err)
	}
	l.until("it is gone", func() bool { return strings.Contains(l.shown("reservation"), "No reservations") })
	l.cluster.Account("delete account course")
	l.until("the other one is refused too", func() bool { return l.get(gone).Sites[0].Trouble != "" })
	l.until("it has failed", func() bool { return l.get(gone).State == service.Failed })
	if no := l.get(gone).Refusal; no == nil || no.Reason != berth.SiteRefused || !strings.Contains(no.Words, "nvalid account") {
		t.Errorf("it has failed for %+v", no)
	}
	if late := l.get(gone).Changed - (l.get(gone).Request.Ready - horizon); late < 15 {
		t.Errorf("it failed %d s after it was due at the site, want 15 at least", late)
	}
}

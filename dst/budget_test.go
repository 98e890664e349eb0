package dst

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/service"
)

// An account has a budget for all time and one for each month. Seeds with budgets begin five hours before a month ends, so that both months count.
const (
	charged     = "phys"
	budgetAll   = 60_000
	budgetMonth = 40_000
	beforeMonth = 5 * time.Hour
)

// budgetLimits are the rows of the table. Operators have none.
func budgetLimits() policy.Limits {
	scope := policy.Scope{Role: string(service.User), Account: charged}
	return policy.Limits{{Scope: scope, Name: policy.LimitBudget, Value: budgetAll}, {Scope: scope, Name: policy.LimitMonthBudget, Value: budgetMonth}}
}

// nearMonth lets the time pass until shortly before the month ends.
func nearMonth() {
	now := time.Now().UTC()
	time.Sleep(time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, time.UTC).Add(-beforeMonth).Sub(now))
}

// chargeTo has a request of a user be charged to the account, now and then. That of an operator is not, who has no limits; one
// with variants may be placed as a larger one later.
func (w *world) chargeTo(c *call) {
	if !w.plan.has(featureBudget) || w.accounts.IntN(3) == 0 || c.user == "operator" || c.wants == nil || c.wants.qos != "" || strings.Contains(c.body, `"variants"`) || strings.Contains(c.body, `"kind"`) {
		return
	}
	c.wants.account, c.features = charged, append(c.features, featureBudget)
	c.body = fmt.Sprintf(`{"account":%q,`, charged) + c.body[1:]
}

// chargeFlow has a workflow of a user be charged to the account, now and then. Its client gives it an id, so that its reservations are known by theirs.
func (w *world) chargeFlow(c *call) {
	if !w.plan.has(featureBudget) || c.path != "/v1/workflows" || c.user == "operator" || w.flowing.IntN(3) == 0 {
		return
	}
	c.account, c.features = charged, append(c.features, featureFlowBudget)
	c.body = fmt.Sprintf(`{"id":"f%d","account":%q,`, c.number, charged) + c.body[1:]
}

// asker returns the call that asked for a reservation, by the name that its client gave it or its workflow; nil if none is known.
func (w *world) asker(r *berth.Request) *call {
	name := r.Name
	if r.Task != nil {
		of, is := strings.CutPrefix(r.Task.Workflow, "f")
		if name = "c" + of; !is {
			return nil
		}
	}
	n, named := number(name)
	if !named || n < 1 || n > len(w.calls) || r.Task != nil && name != fmt.Sprint("c", n) {
		return nil
	}
	return w.calls[n-1]
}

// named returns the account that a call names for the reservations that it asks for.
func (c *call) named() string {
	if c.wants != nil {
		return c.wants.account
	}
	return c.account
}

// bill is what the service says that the account is charged for.
type bill struct {
	all, month int64 // PE-seconds
	held       int64 // of all, for what is live
}

// bill asks for it. Where nothing has been asked for it is nothing.
func (w *world) bill() (b bill, err error) {
	time.Sleep(w.pause("bill"))
	ctx, cancel := context.WithTimeout(w.life.ctx, 10*time.Second) // while what is asked for is on no record yet it is not answered, and the driver alone ends that
	defer cancel()
	ready := w.life.host.Ready() == nil
	status, answer := w.life.send(ctx, "operator", http.MethodGet, "/v1/quotas", "", "", 0)
	time.Sleep(w.pause("bill", "answer")) // what was answered at the same instant goes on first
	if status == 0 || status >= 500 {
		return b, errNoBill
	}
	if answer == w.charges.answer {
		return w.charges.bill, nil
	}
	_, body, _ := strings.Cut(answer, "\n")
	var said struct {
		Shared []struct {
			Account string
			Limits  []struct {
				Limit string
				Used  *float64
				Held  float64
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &said); err != nil {
		return b, fmt.Errorf("quotas: %d %s: %w", status, answer, err)
	}
	seconds := func(hours float64) int64 { return int64(math.Round(hours * 3600)) }
	rows := 0
	for i := range said.Shared {
		for _, l := range said.Shared[i].Limits {
			switch {
			case said.Shared[i].Account != charged:
			case l.Used == nil && (l.Limit == string(policy.LimitBudget) || l.Limit == string(policy.LimitMonthBudget)):
				return b, errNoBill // while the disk is full it is not counted
			case l.Limit == string(policy.LimitBudget):
				b.all, b.held = seconds(*l.Used), seconds(l.Held)
				rows++
			case l.Limit == string(policy.LimitMonthBudget):
				b.month = seconds(*l.Used)
				rows++
			}
		}
	}
	if rows == 0 && (!ready || w.life.host.Ready() != nil) {
		return b, errNoBill // while the disk is full what is on record is told, and the configuration is not yet
	}
	if rows != 2 {
		return b, fmt.Errorf("account %s has %d budgets, want 2", charged, rows)
	}
	w.charges = charges{answer, b}
	return b, nil
}

// charges is the last answer that told of them, and the bill in it: it is often the same again.
type charges struct {
	answer string
	bill   bill
}

// tab is what the account was charged for when the records were read last.
type tab struct {
	life  *life
	bill  bill
	month policy.Month
}

var errNoBill = errors.New("nothing is said")

// debit is what a reservation is charged, and in which month.
type debit struct {
	area  int64
	month policy.Month
	again bool // a task that is tried again
}

// debited returns what the live reservations of the account come to, as clients see those that they asked for.
func (w *world) debited(list []service.Reservation) map[string]debit {
	of := map[string]debit{}
	for i := range list {
		r := &list[i]
		if w.asker(&r.Request) == nil || r.Request.Account != charged || r.State.Over() || r.State == service.Pending {
			continue
		}
		d := debit{month: policy.MonthOf(r.Allotments[0].Start), again: r.Request.Task != nil && r.Request.Task.Try > 1}
		for _, a := range r.Allotments {
			d.area += berth.Area(a.NPE, a.End.Sub(a.Start))
		}
		of[r.ID] = d
	}
	return of
}

// grants reports whether one of the last group of calls has granted a user more, and whether something else may have changed what the account is
// charged for: an operator, or what happened by itself.
func (w *world) grants(was, now map[string]debit) (granted, others bool) {
	asked := map[string]bool{}
	for _, c := range w.calls[w.group:] {
		root := w.root(c)
		if c.account != "" {
			root = c
		}
		if root == nil || root.named() != charged {
			continue
		}
		asked[c.about] = true
		switch {
		case c.user == "operator":
			others = true
		case c.status == 0 || c.status >= 300 || c.method == http.MethodDelete || strings.Contains(c.answer, `"decision":"refused"`):
		case c.wants != nil, c.account != "", c.method == http.MethodPatch, strings.HasSuffix(c.path, "/extend"), strings.HasSuffix(c.path, "/hold"), strings.HasSuffix(c.path, "/modify"):
			granted = true
		}
	}
	operated := func(series string) bool {
		return slices.ContainsFunc(w.calls, func(c *call) bool { return c.user == "operator" && c.about == series && c.wants == nil })
	}
	for id, d := range now {
		before, there := was[id]
		if there && before != d && !asked[id] && !asked[whole(id)] || !there && (d.again || operated(whole(id))) {
			others = true // what prolongs a series is asked for as who changed it last
		}
	}
	return granted, others
}

// budgets judges what the account is charged for. Clients know what is live, the records of the journal what is over; and what was just
// granted to a user keeps to both budgets, unless something else grew meanwhile.
func (w *world) budgets() error {
	if !w.plan.has(featureBudget) {
		return nil
	}
	before, err := w.bill()
	if errors.Is(err, errNoBill) {
		return nil
	} else if err != nil {
		return err
	}
	list, err := w.list()
	if err != nil {
		return nil //nolint:nilerr // the service is about to end
	}
	was, now, month := w.debits, w.debited(list), policy.MonthOf(w.life.host.Now())
	settled := tab{life: w.life, bill: before, month: month}
	same := settled == w.settled && maps.Equal(was, now) // then the records tell what they told before
	var used service.UsedSince
	if !same {
		if used, _, err = w.life.host.Usage(context.Background(), operator, policy.MonthOf(0), policy.MonthOf(berth.TimeLimit-1)); err != nil {
			return nil //nolint:nilerr // likewise
		}
	}
	if after, err := w.bill(); err != nil || after != before {
		return nil //nolint:nilerr // it has changed meanwhile
	}
	live := int64(0)
	for _, d := range now {
		live += d.area
	}
	w.debits = now
	asking := slices.ContainsFunc(list, func(r service.Reservation) bool {
		return r.State == service.Pending && r.Request.Account == charged && !r.Request.IsJob()
	})
	if asking { // what a site is asked about first is charged by then, and not shown
		return nil
	}
	if before.held != live {
		return fmt.Errorf("account %s is charged %d PE-seconds for what is live, and its reservations come to %d", charged, before.held, live)
	}
	if same {
		return nil
	}
	all, of := int64(0), map[policy.Month]int64{}
	for i := range used.List {
		if u := &used.List[i]; u.Account == charged {
			of[u.Month] += u.Charged + u.Held
			all += u.Charged + u.Held
		}
	}
	next := w.plan.has(faultClock) && of[month+1] == before.month // it may have begun already by a clock that was ahead
	if used.Since == 0 && (all != before.all || of[month] != before.month && !next) {
		return fmt.Errorf("account %s is charged %d PE-seconds, %d in this month; by the records %d and %d", charged, before.all, before.month, all, of[month])
	}
	w.settled = settled
	if granted, others := w.grants(was, now); !granted || others {
		return nil
	}
	if before.all > budgetAll {
		return fmt.Errorf("account %s is charged %d PE-seconds after a grant, and its budget is %d", charged, before.all, budgetAll)
	}
	for _, id := range slices.Sorted(maps.Keys(now)) {
		if d := now[id]; d.area > was[id].area && used.Since == 0 && of[d.month] > budgetMonth { // an operator may have gone beyond that of another month
			return fmt.Errorf("account %s is charged %d PE-seconds in month %d after a grant, and its budget is %d", charged, of[d.month], d.month, budgetMonth)
		}
	}
	return nil
}

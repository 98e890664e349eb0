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

// bill is what the service says that the account is charged for.
type bill struct {
	all, month int64 // PE-seconds
	held       int64 // of all, for what is live
}

// bill asks for it. Where nothing has been asked for it is nothing.
func (w *world) bill() (b bill, err error) {
	time.Sleep(w.pause("bill"))
	status, answer := w.life.send(w.life.ctx, "operator", http.MethodGet, "/v1/quotas", "", "", 0)
	time.Sleep(w.pause("bill", "answer")) // what was answered at the same instant goes on first
	if status == 0 || status >= 500 {
		return b, errNoBill
	}
	_, body, _ := strings.Cut(answer, "\n")
	var said struct {
		Shared []struct {
			Account string
			Limits  []struct {
				Limit      string
				Used, Held float64
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
			case l.Limit == string(policy.LimitBudget):
				b.all, b.held = seconds(l.Used), seconds(l.Held)
				rows++
			case l.Limit == string(policy.LimitMonthBudget):
				b.month = seconds(l.Used)
				rows++
			}
		}
	}
	if rows != 2 {
		return b, fmt.Errorf("account %s has %d budgets, want 2", charged, rows)
	}
	return b, nil
}

var errNoBill = errors.New("nothing is said")

// debit is what a reservation is charged, and in which month.
type debit struct {
	area  int64
	month policy.Month
}

// debits returns what the live reservations of the account come to, as clients see those that they asked for.
func debits(list []service.Reservation) map[string]debit {
	of := map[string]debit{}
	for i := range list {
		r := &list[i]
		if _, named := number(r.Request.Name); !named || r.Request.Account != charged || r.State.Over() || r.State == service.Pending {
			continue
		}
		d := debit{month: policy.MonthOf(r.Allotments[0].Start)}
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
		if root == nil || root.wants == nil || root.wants.account != charged {
			continue
		}
		asked[c.about] = true
		switch {
		case c.user == "operator":
			others = true
		case c.status == 0 || c.status >= 300 || c.method == http.MethodDelete || strings.Contains(c.answer, `"decision":"refused"`):
		case c.wants != nil, c.method == http.MethodPatch, strings.HasSuffix(c.path, "/extend"), strings.HasSuffix(c.path, "/hold"), strings.HasSuffix(c.path, "/modify"):
			granted = true
		}
	}
	for id, d := range now {
		if before, there := was[id]; there && before != d && !asked[id] && !asked[whole(id)] {
			others = true
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
	used, _, err := w.life.host.Usage(context.Background(), operator, policy.MonthOf(0), policy.MonthOf(berth.TimeLimit-1))
	if err != nil {
		return nil //nolint:nilerr // likewise
	}
	if after, err := w.bill(); err != nil || after != before {
		return nil //nolint:nilerr // it has changed meanwhile
	}
	was, now, live := w.debits, debits(list), int64(0)
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
	month := policy.MonthOf(w.life.host.Now())
	all, of := int64(0), map[policy.Month]int64{}
	for i := range used.List {
		if u := &used.List[i]; u.Account == charged {
			of[u.Month] += u.Charged + u.Held
			all += u.Charged + u.Held
		}
	}
	if used.Since == 0 && (all != before.all || of[month] != before.month) {
		return fmt.Errorf("account %s is charged %d PE-seconds, %d in this month; by the records %d and %d", charged, before.all, before.month, all, of[month])
	}
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

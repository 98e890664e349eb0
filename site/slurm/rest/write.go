package rest

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// order is a reservation as it is to be. What is empty stays as it is.
type order struct {
	Name      string   `json:"name"`
	Start     *amount  `json:"start_time,omitempty"`
	End       *amount  `json:"end_time,omitempty"`
	Nodes     []string `json:"node_list,omitempty"`
	NodeCount *amount  `json:"node_count,omitempty"`
	Cores     *amount  `json:"core_count,omitempty"`
	Partition string   `json:"partition,omitempty"`
	Users     []string `json:"users,omitempty"`
	Accounts  []string `json:"accounts,omitempty"`
	Groups    []string `json:"groups,omitempty"`
	Licences  []string `json:"licenses,omitempty"`
}

// order reads what scontrol would be told. Pairs that it does not know it refuses: to leave one out
// would be to make something else.
func (a *API) order(q *asked) (*order, error) {
	o := &order{}
	for _, p := range q.pairs {
		var err error
		switch p.key {
		case "ReservationName":
			o.Name = p.value
		case "StartTime":
			o.Start, err = a.time(p.value)
		case "EndTime":
			o.End, err = a.time(p.value)
		case "Nodes":
			o.Nodes, err = nodesOf(p.value)
		case "NodeCnt":
			o.NodeCount, err = number(p.value)
		case "CoreCnt":
			if strings.Contains(p.value, ",") {
				return nil, refuse("array for CoreCnt is no longer valid") // as scontrol says after 22.05
			}
			o.Cores, err = number(p.value)
		case "PartitionName":
			o.Partition = p.value
		case "Users":
			o.Users = list(p.value)
		case "Accounts":
			o.Accounts = list(p.value)
		case "Groups":
			o.Groups = list(p.value)
		case "Licenses":
			o.Licences = list(p.value)
		default:
			return nil, notAsked("a reservation with " + p.key + "=")
		}
		if err != nil {
			return nil, err
		}
	}
	return o, nil
}

func list(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

func number(text string) (*amount, error) {
	n, err := strconv.ParseInt(text, 10, 31)
	if err != nil || n < 0 {
		return nil, refuse("%.40q is no number", text)
	}
	return is(n), nil
}

func (a *API) time(text string) (*amount, error) {
	switch text {
	case "now":
		return is(a.now().Unix()), nil
	case "now+1hour":
		return is(a.now().Add(time.Hour).Unix()), nil
	}
	t, err := time.Parse(timeForm, text)
	if err != nil {
		return nil, refuse("Invalid time specified: %.40q", text)
	}
	return is(t.Unix()), nil
}

// create makes a reservation unless there is one of its name: slurmrestd itself would change that.
func (a *API) create(ctx context.Context, q *asked) error {
	o, err := a.order(q)
	if err != nil {
		return err
	}
	there, err := a.exists(ctx, o.Name)
	switch {
	case err != nil:
		return err
	case there:
		return refuse("Duplicate reservation name")
	}
	return a.wire.ask(ctx, a.now(), http.MethodPost, "reservation", o, nil)
}

// probe begins names of reservations that cannot exist, by which callers learn what they may do.
const probe = "berth-probe-"

// update changes a reservation that is there: slurmrestd itself would make one that is not. Whether one
// that cannot exist could be changed it asks by deleting it: slurmctld looks at rights before it looks for it.
func (a *API) update(ctx context.Context, q *asked) error {
	o, err := a.order(q)
	if err != nil {
		return err
	}
	if strings.HasPrefix(o.Name, probe) {
		return a.remove(ctx, o.Name)
	}
	there, err := a.exists(ctx, o.Name)
	switch {
	case err != nil:
		return err
	case !there:
		return refuse("Requested reservation is invalid")
	}
	return a.wire.ask(ctx, a.now(), http.MethodPost, "reservation", o, nil)
}

func (a *API) remove(ctx context.Context, name string) error {
	return a.wire.ask(ctx, a.now(), http.MethodDelete, "reservation/"+escaped(name), nil, nil)
}

// updateNode takes a node out of use or puts it back.
func (a *API) updateNode(ctx context.Context, q *asked) error {
	body := struct {
		State  []string `json:"state"`
		Reason string   `json:"reason,omitempty"`
	}{}
	name := ""
	for _, p := range q.pairs {
		switch p.key {
		case "NodeName":
			name = p.value
		case "State":
			body.State = []string{p.value}
		case "Reason":
			body.Reason = p.value
		default:
			return notAsked("a node with " + p.key + "=")
		}
	}
	return a.wire.ask(ctx, a.now(), http.MethodPost, "node/"+escaped(name), body, nil)
}

package api

import (
	"context"
	"net/http"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
)

// Others are the services that share a journal, as one of them sees them.
type Others interface {
	// Elsewhere returns nil while this service leads, and why it changes nothing otherwise.
	Elsewhere() error
	// Leader returns where the service is reached that leads instead of this one; empty if
	// this one leads, or that is not known. While the lease is handed over it waits until
	// that is done, or ctx ends.
	Leader(ctx context.Context) string
	// Leading returns who leads and who stands by, as it was seen last.
	Leading() form.Leading
	// HandOver has the service of an address lead, empty for the one that is furthest, and
	// returns where it is reached. Errors: Conflict, none stands by there, or this service cannot
	// stand by itself; Unavailable, it cannot take over now.
	HandOver(ctx context.Context, by, to string) (string, error)
}

// elsewhere returns why an endpoint is not served here, nil if it is. What is not read goes
// to the service that leads: it looks like reading, and may write.
func (c *call) elsewhere(e *endpoint) error {
	if c.others == nil || e.method == http.MethodGet {
		return nil
	}
	if err := c.others.Elsewhere(); err != nil {
		c.undone = true
		return err
	}
	return nil
}

// mayAskAgain reports whether a call that was answered with 503 may be sent to the service
// that leads without being done twice.
func (c *call) mayAskAgain(e *endpoint) bool {
	return c.undone || e.method == http.MethodGet || e.keyed && !e.siteKeys && c.r.Header.Get("Idempotency-Key") != ""
}

// handOver is what is asked of a service that leads.
type handOver struct {
	to  string
	any bool
}

var leadBody = body[handOver]{
	{"to", "The address of the service that is to lead, as /readyz names it.", text("https://b.example.org:7117"), func(h *handOver, v value) (err error) {
		h.to, err = v.text()
		return err
	}},
	{"any", "Whether it may be any that stands by: the one that is furthest.", truth(), func(h *handOver, v value) (err error) {
		h.any, err = v.truth()
		return err
	}},
}

// lead hands over to another service. Only operators of all sites may.
func (c *call) lead() error {
	var in handOver
	ask, err := read(c, leadBody, &in)
	switch {
	case err != nil:
		return err
	case !ask.By.Sites.All():
		return berth.Errorf(berth.Denied, "sites", "only an operator of all sites has another service lead")
	case in.any == (in.to != ""):
		return berth.Errorf(berth.Invalid, "to", "want the address of a service, or any: true")
	case c.others == nil:
		return berth.Errorf(berth.Conflict, "to", "this service has its journal to itself; others stand by with berth serve --standby")
	}
	_ = http.NewResponseController(c.w).SetWriteDeadline(time.Time{}) // a recorder of a test has none
	leader, err := c.others.HandOver(c.r.Context(), ask.By.User, in.to)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, form.Led{Leader: leader})
}

// ready answers whether the service takes requests, and who leads.
func (c *call) ready() error {
	if err := c.Ready(); err != nil {
		return berth.Errorf(berth.Unavailable, "", "%v", err)
	}
	health := form.Health{Status: "ready", Time: form.TimeOf(c.Now())}
	if p := c.provider(); p != nil {
		health.OIDC = "reachable"
		if p.Reachable() != nil {
			health.OIDC = "unreachable"
		}
	}
	if c.others != nil {
		health.Leading = new(c.others.Leading())
	}
	return c.answer(http.StatusOK, health)
}

package api

import (
	"net/http"
	"net/netip"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/api/identity"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/service"
)

// came returns how a browser has come, for its user to recognise a session by. Behind a proxy that is named, what the proxy nearest to the service says of
// the address is taken; nothing is decided by it.
func (c *call) came() token.Came {
	from := token.Came{Address: c.address(), Agent: c.r.UserAgent()}
	if c.door.public != nil {
		list := strings.Split(strings.Join(c.r.Header.Values("X-Forwarded-For"), ","), ",")
		if at, err := netip.ParseAddr(strings.TrimSpace(list[len(list)-1])); err == nil {
			from.Address = at.WithZone("").String() // a zone is of any length, and says nothing on another machine
		}
	}
	return from
}

var sessionsParams = []param{{"user", "Only those of this user, for operators; your own, if you are none.", text("alice")}}

// whose returns whose sessions are meant; "" is those of all users. The error is of code Denied for those of others, if who asks is
// no operator.
func (c *call) whose() (string, error) {
	query, err := c.query(sessionsParams)
	if err != nil {
		return "", err
	}
	user := query["user"]
	switch {
	case c.by.Can(service.Operator):
		return user, nil
	case user != "" && user != c.by.User:
		return "", berth.Errorf(berth.Denied, "user", "%.70q; only an operator has to do with sessions of others", user)
	}
	return c.by.User, nil
}

// hasSession reports whether who asks may see and end a session: their own, and operators those with whose tokens they have to do.
func (c *call) hasSession(e *token.Entry) bool {
	return e.User == c.by.User || c.by.Can(service.Operator) && c.administers(e)
}

func (c *call) listSessions() error {
	user, err := c.whose()
	if err != nil {
		return err
	}
	f := form.Sessions{Sessions: []form.Session{}}
	for _, s := range c.tokens.Sessions(c.Now()) {
		if c.hasSession(&s.Entry) && (user == "" || s.User == user) {
			f.Sessions = append(f.Sessions, c.sessionForm(&s))
		}
	}
	return c.answer(http.StatusOK, &f)
}

func (c *call) sessionForm(s *token.Session) form.Session {
	f := form.Session{
		ID: s.ID, User: s.User, Created: form.TimeOf(s.Created), Used: form.TimeOf(s.Used), Expires: form.TimeOf(s.Expires), Address: s.Address, Agent: s.Agent,
		Scopes: s.Scopes.Names(), Current: c.token.IsSession() && s.ID == c.token.ID,
	}
	switch {
	case s.OfMachine():
		f.Way = "machine"
	case s.OfProvider():
		f.Way = string(identity.OIDC)
	default:
		f.Way, f.Token = "token", s.Parent
	}
	return f
}

// endOneSession ends a session of a user; of one's own too.
func (c *call) endOneSession() error {
	id := c.r.PathValue("id")
	ended, err := c.tokens.EndSessions(func(e *token.Entry) bool { return e.ID == id && c.hasSession(e) })
	switch {
	case err != nil:
		return err
	case ended == 0:
		return berth.Errorf(berth.NotFound, "id", "no session %.40q", id)
	}
	c.log.Info("session ended", "id", id, "by", c.by.User)
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// endSessions ends all sessions of a user but that of the call.
func (c *call) endSessions() error {
	user, err := c.whose()
	if err != nil {
		return err
	}
	if user == "" {
		user = c.by.User
	}
	ended, err := c.tokens.EndSessions(func(e *token.Entry) bool { return e.User == user && c.hasSession(e) && e.ID != c.token.ID })
	if err != nil {
		return err
	}
	c.log.Info("sessions ended", "user", user, "sessions", ended, "by", c.by.User)
	return c.answer(http.StatusOK, form.EndedSessions{Ended: ended})
}

package api

import (
	"net/http"

	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/service"
)

// endpoint is one thing that clients can do.
type endpoint struct {
	method, path string
	id           string
	about        string
	role         service.Role // the least that will do; empty lets everybody
	body         *schema      // nil if there is none
	bare         bool         // does without the body too
	params       []param
	status       int
	answer       any  // a zero value of what is answered; nil if nothing is
	keyed        bool // takes an Idempotency-Key
	conditional  bool // takes If-Match
	stream       bool // of events, in the place of one answer
	do           func(c *call) error
}

// param is a parameter of a query.
type param struct {
	name  string
	about string
	form  *schema
}

// endpoints is all that clients can do, but for /metrics. It is filled here
// because what is done refers to it.
var endpoints = []endpoint{
	{
		method: http.MethodPost, path: "/v1/requests", id: "request", role: service.User,
		about: "Ask for a reservation, or for an array of them. A refusal is an answer too, with offers that can be held.",
		body:  object(submitBody), keyed: true, status: http.StatusCreated, answer: form.Answer{}, do: (*call).request,
	},
	{
		method: http.MethodPost, path: "/v1/offers", id: "offers", role: service.User,
		about: "Ask what could be had, without asking for it.",
		body:  object(requestBody), params: []param{mostParam}, status: http.StatusOK, answer: form.Offers{}, do: (*call).offers,
	},
	{
		method: http.MethodPost, path: "/v1/offers/{id}/hold", id: "hold", role: service.User,
		about: "Ask for what was offered, held until it is confirmed, but not beyond its end. Another request may have been faster; an offer is taken once.",
		body:  object(holdBody), bare: true, keyed: true, status: http.StatusCreated, answer: form.Answer{}, do: (*call).hold,
	},
	{
		method: http.MethodGet, path: "/v1/reservations", id: "list", role: service.Viewer,
		about:  "List reservations by id, page by page.",
		params: listParams, status: http.StatusOK, answer: form.Page{}, do: (*call).list,
	},
	{
		method: http.MethodGet, path: "/v1/reservations/{id}", id: "get", role: service.Viewer,
		about:  "Look at one reservation.",
		status: http.StatusOK, answer: form.Reservation{}, do: (*call).get,
	},
	{
		method: http.MethodPatch, path: "/v1/reservations/{id}", id: "modify", role: service.User,
		about: "Ask for something else in its place: all of what is given, or nothing. null takes a field back to its default.",
		body:  object(patchBody), keyed: true, conditional: true, status: http.StatusOK, answer: form.Answer{}, do: (*call).modify,
	},
	{
		method: http.MethodDelete, path: "/v1/reservations/{id}", id: "cancel", role: service.User,
		about: "Give it back: what has not started is cancelled, what runs ends now.",
		keyed: true, conditional: true, status: http.StatusOK, answer: form.Reservation{}, do: (*call).release,
	},
	{
		method: http.MethodPost, path: "/v1/reservations/{id}/confirm", id: "confirm", role: service.User,
		about: "Make a held reservation a confirmed one.",
		keyed: true, conditional: true, status: http.StatusOK, answer: form.Reservation{}, do: (*call).confirm,
	},
	{
		method: http.MethodPost, path: "/v1/reservations/{id}/extend", id: "extend", role: service.User,
		about: "Let it go on, on the PEs that it has, until a later end or for longer.",
		body:  object(extendBody), keyed: true, conditional: true, status: http.StatusOK, answer: form.Answer{}, do: (*call).extend,
	},
	{
		method: http.MethodPost, path: "/v1/reservations/{id}/release", id: "release", role: service.User,
		about: "Give back what is left of it.",
		keyed: true, conditional: true, status: http.StatusOK, answer: form.Reservation{}, do: (*call).release,
	},
	{
		method: http.MethodPost, path: "/v1/reservations/{id}/check-in", id: "checkIn", role: service.User,
		about: "Say that it is in use, so that it is not given up as a no-show.",
		keyed: true, conditional: true, status: http.StatusOK, answer: form.Reservation{}, do: (*call).checkIn,
	},
	{
		method: http.MethodPost, path: "/v1/reservations/{id}/run", id: "run", role: service.User,
		about: "Run a command or a script in it, at a site whose adapter runs things itself.",
		body:  object(taskBody), keyed: true, conditional: true, status: http.StatusCreated, answer: form.Job{}, do: (*call).run,
	},
	{
		method: http.MethodGet, path: "/v1/reservations/{id}/history", id: "history", role: service.Viewer,
		about:  "Tell what has happened to a reservation and who asked for it, as far as the journal goes back. Tokens and addresses are told to operators.",
		status: http.StatusOK, answer: form.History{}, do: (*call).history,
	},
	{
		method: http.MethodGet, path: "/v1/reservations/{id}/tasks", id: "tasks", role: service.Viewer,
		about: "List the tasks of a reservation and how they ended, page by page. Sites remember ended tasks for a time: a local one for a day, " +
			"Slurm for MinJobAge, 5 minutes by default.",
		params: tasksParams, status: http.StatusOK, answer: form.Tasks{}, do: (*call).tasks,
	},
	{
		method: http.MethodGet, path: "/v1/sites", id: "sites", role: service.Viewer,
		about:  "List the sites.",
		status: http.StatusOK, answer: form.Sites{}, do: (*call).sites,
	},
	{
		method: http.MethodGet, path: "/v1/sites/{name}", id: "site", role: service.Viewer,
		about:  "Look at one site.",
		status: http.StatusOK, answer: form.Site{}, do: (*call).site,
	},
	{
		method: http.MethodGet, path: "/v1/sites/{name}/occupation", id: "occupation", role: service.Viewer,
		about:  "See what holds PEs of a site when, page by page. Whose it is only the owner and operators see.",
		params: occupationParams, status: http.StatusOK, answer: form.Occupation{}, do: (*call).occupation,
	},
	{
		method: http.MethodGet, path: "/v1/sites/{name}/doctor", id: "doctor", role: service.Operator,
		about:  "Examine how well the service can work with a site. That it cannot be reached is a finding.",
		status: http.StatusOK, answer: form.Findings{}, do: (*call).doctor,
	},
	{
		method: http.MethodGet, path: "/v1/sites/{name}/shadow", id: "shadow", role: service.Operator,
		about:  "Compare what would have been promised at a site that is only watched with what happened there.",
		params: shadowParams, status: http.StatusOK, answer: form.Shadow{}, do: (*call).shadow,
	},
	{
		method: http.MethodPut, path: "/v1/sites/{name}/forecast", id: "forecast", role: service.Operator,
		about: "Say how fast data can be moved to a site. Promises whose data would come too late are placed anew.",
		body:  object(forecastBody), status: http.StatusNoContent, do: (*call).forecast,
	},
	{
		method: http.MethodPost, path: "/v1/sites/{name}/nodes/{node}/drain", id: "drain", role: service.Operator,
		about: "Let nothing new start on a node.",
		body:  object(drainBody), bare: true, keyed: true, status: http.StatusNoContent, do: (*call).drain,
	},
	{
		method: http.MethodPost, path: "/v1/sites/{name}/nodes/{node}/resume", id: "resume", role: service.Operator,
		about: "Let a node be used again.",
		keyed: true, status: http.StatusNoContent, do: (*call).resume,
	},
	{
		method: http.MethodGet, path: "/v1/events", id: "events", role: service.Viewer,
		about: "Listen to what happens, as server-sent events, from now on or behind the Last-Event-ID. " +
			"An event gap says that what followed is no longer kept: look at everything anew.",
		params: []param{{"after", "The event to begin behind, like the header Last-Event-ID.", whole(0, 1<<53)}},
		status: http.StatusOK, answer: form.Event{}, stream: true, do: (*call).events,
	},
	{
		method: http.MethodGet, path: "/v1/me", id: "me", role: service.Viewer,
		about:  "Say whose token this is.",
		status: http.StatusOK, answer: form.Me{}, do: (*call).me,
	},
	{
		method: http.MethodGet, path: "/v1/tokens", id: "tokens", role: service.Operator,
		about:  "List the tokens, without their secrets.",
		status: http.StatusOK, answer: form.Tokens{}, do: (*call).listTokens,
	},
	{
		method: http.MethodPost, path: "/v1/tokens", id: "add-token", role: service.Operator,
		about: "Make a token. Its secret is in this answer and nowhere else.",
		body:  object(tokenBody), status: http.StatusCreated, answer: form.Token{}, do: (*call).addToken,
	},
	{
		method: http.MethodDelete, path: "/v1/tokens/{id}", id: "revoke-token", role: service.Operator,
		about:  "Make a token worthless.",
		status: http.StatusNoContent, do: (*call).revokeToken,
	},
	{
		method: http.MethodPost, path: "/v1/clock/accept", id: "accept-clock", role: service.Operator,
		about:  "Believe the machine's clock as it is, after a jump that /readyz tells of. What is over by it ends.",
		status: http.StatusNoContent, do: (*call).acceptClock,
	},
	{
		method: http.MethodGet, path: "/healthz", id: "health",
		about:  "Answers if the process is alive.",
		status: http.StatusOK, answer: form.Health{}, do: (*call).health,
	},
	{
		method: http.MethodGet, path: "/readyz", id: "ready",
		about:  "Answers whether the service takes requests.",
		status: http.StatusOK, answer: form.Health{}, do: (*call).ready,
	},
	{
		method: http.MethodGet, path: "/openapi.json", id: "openapi",
		about:  "This description.",
		status: http.StatusOK, do: (*call).describe,
	},
}

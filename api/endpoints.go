package api

import (
	"net/http"
	"strings"

	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/internal/icalendar"
	"github.com/berth-hpc/berth/service"
)

// endpoint is one thing that clients can do.
type endpoint struct {
	method, path string
	id           string
	about        string
	role         service.Role // the least that will do; empty lets everybody
	scope        token.Scopes // that the token has to be good for; none is read for what is looked at, else a token of all scopes
	anyScope     bool         // the token may be good for whichever scope
	body         *schema      // nil if there is none
	bare         bool         // does without the body too
	sends        string       // the media type of a body that is no JSON, which it reads itself
	params       []param
	status       int
	media        string // of an answer that is not JSON
	answer       any    // a zero value of what is answered; nil if nothing is
	keyed        bool   // takes an Idempotency-Key
	siteKeys     bool   // which the site remembers, not the service
	conditional  bool   // takes If-Match
	stream       bool   // answers with events instead of one answer
	costly       bool   // looks at much, so each user has it done one at a time
	do           func(c *call) error
}

// pattern is the path as routes have it, whose last part is matched whole.
func (e *endpoint) pattern() string { return strings.TrimSuffix(e.path, feedEnd) }

// scopes is what the token of a caller has to be good for.
func (e *endpoint) scopes() token.Scopes {
	if e.scope == 0 && e.method == http.MethodGet {
		return token.ScopeRead
	}
	return e.scope
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
		method: http.MethodPost, path: "/v1/requests", id: "request", role: service.User, scope: token.ScopeReserve,
		about: "Request a reservation, or an array of them. A refusal is an answer too: it has a reason, and offers that can be held.",
		body:  object(submitBody), keyed: true, status: http.StatusCreated, answer: form.Answer{}, do: (*call).request,
	},
	{
		method: http.MethodPost, path: "/v1/offers", id: "offers", role: service.User, scope: token.ScopeRead,
		about: "List offers for a request without making it.",
		body:  object(requestBody), params: offersParams, status: http.StatusOK, answer: form.Offers{}, do: (*call).offers,
	},
	{
		method: http.MethodPost, path: "/v1/rectangles", id: "rectangles", role: service.User, scope: token.ScopeRead,
		about: "List when a request of one part would be promised now, by pool and variant, and what is short at other times and until when, without making it. " +
			"Nothing is held, and what others are promised meanwhile may be in it or not.",
		body: object(requestBody), params: rectanglesParams, status: http.StatusOK, answer: form.Rectangles{}, do: (*call).rectangles,
	},
	{
		method: http.MethodPost, path: "/v1/offers/{id}/hold", id: "hold", role: service.User, scope: token.ScopeReserve,
		about: "Hold an offer until it is confirmed or the hold expires, at the latest at the end of the reservation. An offer can be taken once, and not if another request has taken its place.",
		body:  object(holdBody), bare: true, keyed: true, status: http.StatusCreated, answer: form.Answer{}, do: (*call).hold,
	},
	{
		method: http.MethodGet, path: "/v1/reservations", id: "list", role: service.Viewer,
		about:  "List reservations, ordered by id, in pages.",
		params: listParams, status: http.StatusOK, answer: form.Page{}, costly: true, do: (*call).list,
	},
	{
		method: http.MethodGet, path: "/v1/reservations/{id}", id: "get", role: service.Viewer,
		about: "Get one reservation: by its id, by its name, or by the first or last letters of its id, at least three of them. One's own come before those of others, " +
			"and those that are not over before those that are; of several the answer is 409 and names them. Other paths take ids alone.",
		status: http.StatusOK, answer: form.Reservation{}, do: (*call).get,
	},
	{
		method: http.MethodPatch, path: "/v1/reservations/{id}", id: "modify", role: service.User, scope: token.ScopeReserve,
		about: "Change a reservation: all fields given, or nothing. null resets a field to its default.",
		body:  object(patchBody), keyed: true, conditional: true, status: http.StatusOK, answer: form.Answer{}, do: (*call).modify,
	},
	{
		method: http.MethodDelete, path: "/v1/reservations/{id}", id: "cancel", role: service.User, scope: token.ScopeCancel,
		about: "Give a reservation back: cancel it if it has not started, else end it now.",
		keyed: true, conditional: true, status: http.StatusOK, answer: form.Reservation{}, do: (*call).release,
	},
	{
		method: http.MethodPost, path: "/v1/reservations/{id}/confirm", id: "confirm", role: service.User, scope: token.ScopeReserve,
		about: "Confirm a held reservation.",
		keyed: true, conditional: true, status: http.StatusOK, answer: form.Reservation{}, do: (*call).confirm,
	},
	{
		method: http.MethodPost, path: "/v1/reservations/{id}/extend", id: "extend", role: service.User, scope: token.ScopeReserve,
		about: "Extend a reservation on its PEs, to a later end or by a duration.",
		body:  object(extendBody), keyed: true, conditional: true, status: http.StatusOK, answer: form.Answer{}, do: (*call).extend,
	},
	{
		method: http.MethodPost, path: "/v1/reservations/{id}/release", id: "release", role: service.User, scope: token.ScopeCancel,
		about: "Give back the rest of a reservation.",
		keyed: true, conditional: true, status: http.StatusOK, answer: form.Reservation{}, do: (*call).release,
	},
	{
		method: http.MethodPost, path: "/v1/reservations/{id}/check-in", id: "checkIn", role: service.User, scope: token.ScopeReserve,
		about: "Report that a reservation is in use, so that it is not released as a no-show.",
		keyed: true, conditional: true, status: http.StatusOK, answer: form.Reservation{}, do: (*call).checkIn,
	},
	{
		method: http.MethodPost, path: "/v1/reservations/{id}/prepare", id: "prepare", role: service.User, scope: token.ScopeReserve,
		about: "Have the sites of a reservation make it now instead of shortly before its start, and wait until they have. " +
			"Tasks can be handed in from then on, and wait there until it begins.",
		conditional: true, status: http.StatusOK, answer: form.Reservation{}, do: (*call).prepare,
	},
	{
		method: http.MethodPost, path: "/v1/reservations/{id}/run", id: "run", role: service.User, scope: token.ScopeRun,
		about: "Run a command or a script in a reservation, at its start or now, at a site whose adapter runs tasks itself.",
		body:  object(taskBody), keyed: true, siteKeys: true, conditional: true, status: http.StatusCreated, answer: form.Job{}, do: (*call).run,
	},
	{
		method: http.MethodGet, path: "/v1/reservations/{id}/history", id: "history", role: service.Viewer,
		about:  "List what happened to a reservation and who requested it, from the oldest record that the journal keeps. Only operators see tokens and addresses.",
		status: http.StatusOK, answer: form.History{}, costly: true, do: (*call).history,
	},
	{
		method: http.MethodGet, path: "/v1/reservations/{id}/tasks", id: "tasks", role: service.Viewer,
		about: "List the tasks of a reservation and how they ended, in pages. A local site remembers ended tasks for a day, " +
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
		about:  "Get one site.",
		status: http.StatusOK, answer: form.Site{}, do: (*call).site,
	},
	{
		method: http.MethodGet, path: "/v1/sites/{name}/occupation", id: "occupation", role: service.Viewer,
		about:  "List what holds PEs of a site and when, in pages. Only owners and operators see the names.",
		params: occupationParams, status: http.StatusOK, answer: form.Occupation{}, costly: true, do: (*call).occupation,
	},
	{
		method: http.MethodGet, path: "/v1/sites/{name}/spans/{number}", id: "spans", role: service.Viewer,
		about:  "Get what a bar of a picture stands for: the parts of a promise or a job, or an outage. Only owners and operators see the names.",
		status: http.StatusOK, answer: form.Occupation{}, costly: true, do: (*call).spans,
	},
	{
		method: http.MethodGet, path: "/v1/gantt", id: "gantt", role: service.Viewer,
		about: "Get the picture of a pool in a window of time: bars, or cells where there are more bars than asked for, and the least number of free PEs over time. " +
			"It contains no names. The form is in docs/api.md.",
		params: ganttParams, status: http.StatusOK, media: form.GanttType, costly: true, do: (*call).gantt,
	},
	{
		method: http.MethodGet, path: "/v1/gantt/rows", id: "gantt-rows", role: service.Viewer,
		about:  "Get what the rows of the picture of a pool stand for.",
		params: poolParams, status: http.StatusOK, answer: form.Rows{}, do: (*call).rows,
	},
	{
		method: http.MethodGet, path: "/v1/gantt/named", id: "gantt-named", role: service.Viewer,
		about:  "Get the numbers of bars whose user, name or id contains a text, of those whose owner you see.",
		params: namedParams, status: http.StatusOK, answer: form.Named{}, costly: true, do: (*call).named,
	},
	{
		method: http.MethodPost, path: "/v1/session", id: "open-session",
		about: "Open a session for a browser: the answer sets a cookie. Takes a bearer token, or the code of a login link. Needs https or a loopback address.",
		body:  object(sessionBody), bare: true, status: http.StatusCreated, answer: form.Me{}, do: (*call).openSession,
	},
	{
		method: http.MethodDelete, path: "/v1/session", id: "end-session", role: service.Viewer, anyScope: true,
		about:  "End the session of the cookie.",
		status: http.StatusNoContent, do: (*call).endSession,
	},
	{
		method: http.MethodPost, path: "/v1/session/links", id: "login-link", role: service.Viewer, anyScope: true,
		about: "Make the code of a login link, for one use within two minutes from the same machine. Takes a bearer token.",
		body:  object(linkBody), bare: true, status: http.StatusCreated, answer: form.Link{}, do: (*call).loginLink,
	},
	{
		method: http.MethodGet, path: "/v1/sessions", id: "sessions", role: service.Viewer, scope: token.ScopeTokens,
		about:  "List your sessions in browsers, for operators those of all users: when each was opened and used last, and from where. That of the call is marked.",
		params: sessionsParams, status: http.StatusOK, answer: form.Sessions{}, do: (*call).listSessions,
	},
	{
		method: http.MethodDelete, path: "/v1/sessions", id: "end-sessions", role: service.Viewer, scope: token.ScopeTokens,
		about:  "End all your sessions but that of the call; for operators those of a user.",
		params: sessionsParams, status: http.StatusOK, answer: form.EndedSessions{}, do: (*call).endSessions,
	},
	{
		method: http.MethodDelete, path: "/v1/sessions/{id}", id: "end-one-session", role: service.Viewer, scope: token.ScopeTokens,
		about:  "End one of your sessions; for operators that of any user. Its streams of events end.",
		status: http.StatusNoContent, do: (*call).endOneSession,
	},
	{
		method: http.MethodGet, path: "/v1/login", id: "logins",
		about:  "Say how users can log in, beside tokens of the service: by which OpenID provider, and as which client of it.",
		status: http.StatusOK, answer: form.Logins{}, do: (*call).logins,
	},
	{
		method: http.MethodGet, path: "/login/oidc", id: "sign-in",
		about:  "Send a browser to the OpenID provider, from where it comes back with a session. What cannot be done is answered with a page for people.",
		params: signInParams, status: http.StatusSeeOther, do: (*call).signIn,
	},
	{
		method: http.MethodGet, path: "/login/oidc/callback", id: "signed-in",
		about:  "Open a session for a browser that the OpenID provider has sent back, and show the page to which its user wanted to go.",
		status: http.StatusSeeOther, do: (*call).signedIn,
	},
	{
		method: http.MethodGet, path: "/v1/sites/{name}/doctor", id: "doctor", role: service.Operator, scope: token.ScopeOperate,
		about:  "Check how well the service works with a site. An unreachable site is a finding, not an error.",
		status: http.StatusOK, answer: form.Findings{}, do: (*call).doctor,
	},
	{
		method: http.MethodGet, path: "/v1/sites/{name}/shadow", id: "shadow", role: service.Operator,
		about:  "For a watched site, compare what the service would have promised with what happened.",
		params: shadowParams, status: http.StatusOK, answer: form.Shadow{}, do: (*call).shadow,
	},
	{
		method: http.MethodPut, path: "/v1/sites/{name}/forecast", id: "forecast", role: service.Operator, scope: token.ScopeOperate,
		about: "Update how fast data reach a site. Promises whose data would arrive too late are placed again.",
		body:  object(forecastBody), status: http.StatusNoContent, do: (*call).forecast,
	},
	{
		method: http.MethodPost, path: "/v1/sites/{name}/nodes/{node}/drain", id: "drain", role: service.Operator, scope: token.ScopeOperate,
		about: "Drain a node: nothing new starts on it.",
		body:  object(drainBody), bare: true, status: http.StatusNoContent, do: (*call).drain,
	},
	{
		method: http.MethodPost, path: "/v1/sites/{name}/nodes/{node}/resume", id: "resume", role: service.Operator, scope: token.ScopeOperate,
		about:  "Resume a node after a drain.",
		status: http.StatusNoContent, do: (*call).resume,
	},
	{
		method: http.MethodGet, path: "/v1/outages", id: "outages", role: service.Viewer,
		about:  "List what is out of use, and what is announced to be.",
		status: http.StatusOK, answer: form.Outages{}, do: (*call).outages,
	},
	{
		method: http.MethodPost, path: "/v1/maintenance", id: "addMaintenance", role: service.Operator, scope: token.ScopeOperate,
		about: "Take nodes of a managed site out of use at times that are known before: once, or as it repeats. Reservations in its way move within their windows or are degraded, their owners are told, and nothing is promised then any more. Asked again for the same times it answers the same.",
		body:  object(maintenanceBody), status: http.StatusCreated, answer: form.MaintenanceAnswer{}, do: (*call).addMaintenance,
	},
	{
		method: http.MethodGet, path: "/v1/maintenance", id: "maintenance", role: service.User,
		about:  "List maintenance that is to come or goes on, with its times.",
		status: http.StatusOK, answer: form.MaintenanceList{}, do: (*call).listMaintenance,
	},
	{
		method: http.MethodDelete, path: "/v1/maintenance/{name}", id: "removeMaintenance", role: service.Operator, scope: token.ScopeOperate,
		about:  "Call maintenance off, or one time of it. What goes on ends at once.",
		params: removeMaintenanceParams, status: http.StatusNoContent, do: (*call).removeMaintenance,
	},
	{
		method: http.MethodGet, path: "/v1/outbox", id: "outbox", role: service.Operator,
		about:  "List what sites have not done yet about promises, and why, the oldest first.",
		status: http.StatusOK, answer: form.Outbox{}, costly: true, do: (*call).outbox,
	},
	{
		method: http.MethodGet, path: "/v1/audit", id: "audit", role: service.Operator,
		about:  "List who asked for what, with token, address and call, in the order of the journal's records, in pages. Only for operators of all sites.",
		params: auditParams, status: http.StatusOK, answer: form.Audit{}, costly: true, do: (*call).audit,
	},
	{
		method: http.MethodPost, path: "/v1/workflows/plans", id: "plans", role: service.User, scope: token.ScopeRead,
		about: "Plan a workflow among what is held at a pool, with several planners or for several deadlines, without booking anything. " +
			"The answer is a line of JSON for the workflow, then one for each plan as soon as it is made; a problem in a line ends it early.",
		body: object(plansBody), status: http.StatusOK, media: form.PlansType, answer: form.PlanLine{}, costly: true, do: (*call).plans,
	},
	{
		method: http.MethodGet, path: "/v1/lab", id: "laboratory", role: service.User,
		about:  "List your comparisons of schedulers and the logs that you have sent; for operators the comparisons of all users.",
		status: http.StatusOK, answer: form.Laboratory{}, do: (*call).laboratory,
	},
	{
		method: http.MethodPost, path: "/v1/lab/logs", id: "send-log", role: service.User, scope: token.ScopeRun,
		about: "Send a log for comparisons, packed by gzip or not: SWF, JSON Lines, JDL or what sacct -P prints. It is kept for a day.",
		sends: logType, params: logParams, status: http.StatusCreated, answer: form.Log{}, do: (*call).sendLog,
	},
	{
		method: http.MethodPost, path: "/v1/lab/comparisons", id: "compare", role: service.User, scope: token.ScopeRun,
		about: "Compare schedulers on a log that was sent, or on what was requested of this service, as berth lab does. It runs at low priority, one of a user at a time.",
		body:  object(compareBody), status: http.StatusCreated, answer: form.Comparison{}, do: (*call).compare,
	},
	{
		method: http.MethodGet, path: "/v1/lab/comparisons/{id}", id: "comparison", role: service.User,
		about:  "Get how far a comparison is.",
		status: http.StatusOK, answer: form.Comparison{}, do: (*call).comparison,
	},
	{
		method: http.MethodDelete, path: "/v1/lab/comparisons/{id}", id: "cancel-comparison", role: service.User, scope: token.ScopeRun,
		about:  "Cancel a comparison. One that is over stays as it is.",
		status: http.StatusOK, answer: form.Comparison{}, do: (*call).cancelComparison,
	},
	{
		method: http.MethodGet, path: "/v1/lab/comparisons/{id}/results", id: "comparison-results", role: service.User,
		about:  "Get what came of a comparison.",
		status: http.StatusOK, answer: form.ComparisonResults{}, do: (*call).comparisonResults,
	},
	{
		method: http.MethodGet, path: "/v1/lab/comparisons/{id}/files/{name}", id: "comparison-file", role: service.User,
		about:  "Get a file of the report of a comparison: report.html, drawings as SVG and CSV, all figures and runs.",
		status: http.StatusOK, media: "application/octet-stream", do: (*call).comparisonFile,
	},
	{
		method: http.MethodPost, path: "/v1/series", id: "submitSeries", role: service.User, scope: token.ScopeReserve,
		about: "Request a reservation that repeats: at least as many occurrences as at_least says are promised, or none is. A refusal is an answer too: it says which occurrences cannot be, and what could be held instead.",
		body:  object(seriesBody), keyed: true, status: http.StatusCreated, answer: form.SeriesAnswer{}, do: (*call).submitSeries,
	},
	{
		method: http.MethodGet, path: "/v1/series", id: "listSeries", role: service.User,
		about:  "List series without their occurrences, ordered by id, in pages.",
		params: seriesParams, status: http.StatusOK, answer: form.SeriesList{}, costly: true, do: (*call).listSeries,
	},
	{
		method: http.MethodGet, path: "/v1/series/{id}", id: "series", role: service.User,
		about:  "Get one series with its occurrences: by its id, by its name, or by the first or last letters of its id, as with reservations. Other paths take ids alone.",
		status: http.StatusOK, answer: form.Series{}, do: (*call).getSeries,
	},
	{
		method: http.MethodPost, path: "/v1/series/{id}/modify", id: "modifySeries", role: service.User, scope: token.ScopeReserve,
		about: "Change occurrences of a series that are to come, in one step: all that are named, or none. A refusal is an answer too: it says what stands in the way of each.",
		body:  object(seriesModifyBody), keyed: true, status: http.StatusOK, answer: form.SeriesAnswer{}, do: (*call).modifySeries,
	},
	{
		method: http.MethodPost, path: "/v1/series/{id}/cancel", id: "cancelSeries", role: service.User, scope: token.ScopeCancel,
		about: "Give occurrences of a series back: one, some or all. What runs ends now, and what was to run is cancelled.",
		body:  object(seriesCancelBody), bare: true, keyed: true, status: http.StatusOK, answer: form.SeriesAnswer{}, do: (*call).cancelSeries,
	},
	{
		method: http.MethodPost, path: "/v1/workflows", id: "submitWorkflow", role: service.User, scope: token.ScopeReserve | token.ScopeRun,
		about: "Submit a workflow: all of its tasks are promised, or none is. A refusal is an answer too: it has a reason, and offers, which are deadlines with what they cost.",
		body:  object(workflowBody), keyed: true, status: http.StatusCreated, answer: form.WorkflowAnswer{}, do: (*call).submitWorkflow,
	},
	{
		method: http.MethodPost, path: "/v1/workflows/offers", id: "offerWorkflow", role: service.User, scope: token.ScopeRead,
		about: "List offers for a workflow without submitting it: the tightest deadline that was found, and later ones with what they cost.",
		body:  object(workflowBody), status: http.StatusOK, answer: form.WorkflowOffers{}, costly: true, do: (*call).offerWorkflow,
	},
	{
		method: http.MethodGet, path: "/v1/workflows", id: "workflows", role: service.User,
		about:  "List workflows without their tasks, ordered by id, in pages.",
		params: workflowsParams, status: http.StatusOK, answer: form.Workflows{}, costly: true, do: (*call).listWorkflows,
	},
	{
		method: http.MethodGet, path: "/v1/workflows/{id}", id: "workflow", role: service.User,
		about:  "Get one workflow with its tasks.",
		status: http.StatusOK, answer: form.Workflow{}, do: (*call).getWorkflow,
	},
	{
		method: http.MethodPost, path: "/v1/workflows/{id}/confirm", id: "confirmWorkflow", role: service.User, scope: token.ScopeReserve | token.ScopeRun,
		about: "Confirm all tasks of a held workflow. Those that should have started meanwhile are moved.",
		keyed: true, conditional: true, status: http.StatusOK, answer: form.WorkflowAnswer{}, do: (*call).confirmWorkflow,
	},
	{
		method: http.MethodDelete, path: "/v1/workflows/{id}", id: "cancelWorkflow", role: service.User, scope: token.ScopeCancel,
		about: "Cancel a workflow: stop what runs, and give back what was to run.",
		keyed: true, conditional: true, status: http.StatusOK, answer: form.WorkflowAnswer{}, do: (*call).cancelWorkflow,
	},
	{
		method: http.MethodPost, path: "/v1/workflows/{id}/retry", id: "retryWorkflow", role: service.User, scope: token.ScopeReserve | token.ScopeRun,
		about: "Submit again what has not succeeded of a workflow that is over, under the same id.",
		body:  object(retryBody), bare: true, keyed: true, conditional: true, status: http.StatusOK, answer: form.WorkflowAnswer{}, do: (*call).retryWorkflow,
	},
	{
		method: http.MethodGet, path: "/v1/events", id: "events", role: service.Viewer,
		about: "Listen to what happens to reservations and to the tasks in them, as server-sent events, from now on or behind the Last-Event-ID. " +
			"An event gap says that what followed is no longer kept: look at everything anew.",
		params: eventsParams,
		status: http.StatusOK, answer: form.Event{}, stream: true, do: (*call).events,
	},
	{
		method: http.MethodGet, path: "/v1/me", id: "me", role: service.Viewer, anyScope: true,
		about:  "Say whose token this is.",
		status: http.StatusOK, answer: form.Me{}, do: (*call).me,
	},
	{
		method: http.MethodGet, path: "/v1/quotas", id: "quotas", role: service.User,
		about:  "Show your limits and what is used of them; for operators those of all users who have something that is not over.",
		params: quotasParams, status: http.StatusOK, answer: form.Quotas{}, costly: true, do: (*call).quotas,
	},
	{
		method: http.MethodGet, path: "/v1/usage", id: "usage", role: service.User,
		about:  "Show what your reservations came to, by account and month, from the records of the journal; for operators those of all users.",
		params: usageParams, status: http.StatusOK, answer: form.Usage{}, costly: true, do: (*call).usage,
	},
	{
		method: http.MethodGet, path: "/v1/tokens", id: "tokens", role: service.Operator, scope: token.ScopeTokens,
		about:  "List the tokens, without their secrets.",
		status: http.StatusOK, answer: form.Tokens{}, do: (*call).listTokens,
	},
	{
		method: http.MethodPost, path: "/v1/tokens", id: "add-token", role: service.Operator, scope: token.ScopeTokens,
		about: "Create a token. Only this answer has its secret.",
		body:  object(tokenBody), status: http.StatusCreated, answer: form.Token{}, do: (*call).addToken,
	},
	{
		method: http.MethodPatch, path: "/v1/tokens/{id}", id: "change-token", role: service.Operator, scope: token.ScopeTokens,
		about: "Change the scopes of a token, with those of the sessions that were opened with it. Their streams of events end.",
		body:  object(tokenChange), status: http.StatusOK, answer: form.Token{}, do: (*call).changeToken,
	},
	{
		method: http.MethodDelete, path: "/v1/tokens/{id}", id: "revoke-token", role: service.Operator, scope: token.ScopeTokens,
		about:  "Revoke a token.",
		status: http.StatusNoContent, do: (*call).revokeToken,
	},
	{
		method: http.MethodGet, path: "/v1/service-accounts", id: "service-accounts", role: service.User, scope: token.ScopeTokens,
		about:  "List your service accounts with their tokens, for operators those of all users, without their secrets.",
		status: http.StatusOK, answer: form.ServiceAccounts{}, do: (*call).listAccounts,
	},
	{
		method: http.MethodPost, path: "/v1/service-accounts", id: "add-service-account", role: service.User, scope: token.ScopeTokens,
		about: "Create a service account: a principal for programs, as which no person logs in, and which may do no more than its owner.",
		body:  object(accountBody), status: http.StatusCreated, answer: form.ServiceAccount{}, do: (*call).addAccount,
	},
	{
		method: http.MethodDelete, path: "/v1/service-accounts/{name}", id: "remove-service-account", role: service.User, scope: token.ScopeTokens,
		about:  "Remove a service account with its tokens and calendar feeds. What it has reserved stays.",
		status: http.StatusNoContent, do: (*call).removeAccount,
	},
	{
		method: http.MethodPost, path: "/v1/service-accounts/{name}/tokens", id: "add-service-account-token", role: service.User, scope: token.ScopeTokens,
		about: "Create a token of a service account, which expires: after 90 days if nothing is said. Only this answer has its secret.",
		body:  object(accountTokenBody), bare: true, status: http.StatusCreated, answer: form.Token{}, do: (*call).addAccountToken,
	},
	{
		method: http.MethodDelete, path: "/v1/service-accounts/{name}/tokens/{id}", id: "revoke-service-account-token", role: service.User, scope: token.ScopeTokens,
		about:  "Revoke a token of a service account.",
		status: http.StatusNoContent, do: (*call).revokeAccountToken,
	},
	{
		method: http.MethodGet, path: "/v1/calendar", id: "calendar", role: service.Viewer,
		about:  "Get your own promises and workflows, or what is promised and out of use at a site, as a calendar (RFC 5545). The same ETag in If-None-Match is answered 304.",
		params: calendarParams, status: http.StatusOK, media: icalendar.Type, do: (*call).ownCalendar,
	},
	{
		method: http.MethodPost, path: "/v1/feeds", id: "add-feed", role: service.Viewer, scope: token.ScopeFeeds,
		about: "Create a calendar feed: an address that programs read a calendar from without a token. Only this answer has it. Without a site it takes the role of user.",
		body:  object(feedBody), bare: true, status: http.StatusCreated, answer: form.Feed{}, do: (*call).addFeed,
	},
	{
		method: http.MethodGet, path: "/v1/feeds", id: "feeds", role: service.Viewer, scope: token.ScopeFeeds,
		about:  "List your calendar feeds, for operators those of all users, without their addresses.",
		status: http.StatusOK, answer: form.Feeds{}, do: (*call).listFeeds,
	},
	{
		method: http.MethodDelete, path: "/v1/feeds/{id}", id: "revoke-feed", role: service.Viewer, scope: token.ScopeFeeds,
		about:  "Revoke a calendar feed.",
		status: http.StatusNoContent, do: (*call).revokeFeed,
	},
	{
		method: http.MethodGet, path: "/calendar/{secret}" + feedEnd, id: "feed",
		about:  "Get the calendar of a feed, with what its user may see now. Whatever is wrong with the address, the answer is the same 404. The same ETag in If-None-Match is answered 304.",
		status: http.StatusOK, media: icalendar.Type, do: (*call).readFeed,
	},
	{
		method: http.MethodGet, path: "/v1/hooks", id: "hooks", role: service.User, scope: token.ScopeFeeds,
		about:  "List your receivers of notices, for operators of all sites those of all users, without their addresses and secrets.",
		status: http.StatusOK, answer: form.Hooks{}, do: (*call).listHooks,
	},
	{
		method: http.MethodPost, path: "/v1/hooks", id: "add-hook", role: service.User, scope: token.ScopeFeeds,
		about: "Add a receiver of notices about your reservations and workflows. Only this answer has the secret with which its notices are signed.",
		body:  object(hookBody), status: http.StatusCreated, answer: form.Hook{}, do: (*call).addHook,
	},
	{
		method: http.MethodPatch, path: "/v1/hooks/{id}", id: "change-hook", role: service.User, scope: token.ScopeFeeds,
		about: "Change a receiver of notices, disable it, or enable it again.",
		body:  object(hookChange), status: http.StatusOK, answer: form.Hook{}, do: (*call).changeHook,
	},
	{
		method: http.MethodDelete, path: "/v1/hooks/{id}", id: "remove-hook", role: service.User, scope: token.ScopeFeeds,
		about:  "Remove a receiver with the notices that it was not sent.",
		status: http.StatusNoContent, do: (*call).removeHook,
	},
	{
		method: http.MethodPost, path: "/v1/hooks/{id}/test", id: "test-hook", role: service.User, scope: token.ScopeFeeds,
		about:  "Send a receiver a test, like any other notice. What came of it is among its deliveries.",
		status: http.StatusNoContent, do: (*call).testHook,
	},
	{
		method: http.MethodPost, path: "/v1/hooks/{id}/rotate", id: "rotate-hook", role: service.User, scope: token.ScopeFeeds,
		about:  "Give a receiver another secret, which only this answer has. The one before signs beside it for a day.",
		status: http.StatusOK, answer: form.Hook{}, do: (*call).rotateHook,
	},
	{
		method: http.MethodGet, path: "/v1/hooks/{id}/deliveries", id: "deliveries", role: service.User, scope: token.ScopeFeeds,
		about:  "List the notices of a receiver with each try: those that wait, dead letters, and the latest that were delivered.",
		status: http.StatusOK, answer: form.Deliveries{}, do: (*call).deliveries,
	},
	{
		method: http.MethodPost, path: "/v1/hooks/{id}/resend", id: "resend-hook", role: service.User, scope: token.ScopeFeeds,
		about: "Send dead letters, or notices that were delivered, again, with the ids that they had.",
		body:  object(resendBody), bare: true, status: http.StatusNoContent, do: (*call).resendHook,
	},
	{
		method: http.MethodPost, path: "/v1/clock/accept", id: "accept-clock", role: service.Operator, scope: token.ScopeOperate,
		about:  "Accept the machine's clock after a jump that /readyz reports. Reservations whose end has passed finish.",
		status: http.StatusNoContent, do: (*call).acceptClock,
	},
	{
		method: http.MethodPost, path: "/v1/journal/compact", id: "compact", role: service.Operator, scope: token.ScopeOperate,
		about: "Drop the records of the journal that are older than a time, and give their room back. It is answered when that is done; everybody else is answered meanwhile. " +
			"What is promised, and what is remembered of what is over, stays.",
		body: object(compactBody), bare: true, status: http.StatusOK, answer: form.Compacted{}, do: (*call).compact,
	},
	{
		method: http.MethodPost, path: "/v1/lead", id: "lead", role: service.Operator, scope: token.ScopeOperate,
		about: "Have a service that stands by lead instead of this one, which stands by from then on. Calls are held meanwhile, for less than a second as a rule; " +
			"it is answered when the other one has the journal.",
		body: object(leadBody), status: http.StatusOK, answer: form.Led{}, do: (*call).lead,
	},
	{
		method: http.MethodGet, path: "/healthz", id: "health",
		about:  "Check that the process is alive.",
		status: http.StatusOK, answer: form.Health{}, do: (*call).health,
	},
	{
		method: http.MethodGet, path: "/readyz", id: "ready",
		about:  "Check whether the service accepts requests, and who leads of those that share a journal. One that stands by answers 503.",
		status: http.StatusOK, answer: form.Health{}, do: (*call).ready,
	},
	{
		method: http.MethodGet, path: "/openapi.json", id: "openapi",
		about:  "This description.",
		status: http.StatusOK, do: (*call).describe,
	},
}

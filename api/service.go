package api

import (
	"context"
	"iter"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
)

// Service is what the API makes accessible. It checks roles and ownership
// itself, and answers nothing that is not durable; errors that are the asker's
// are *berth.Error.
type Service interface {
	requester
	workflower
	repeater
	keeper
	watcher
	harbour
	notifier
}

var _ Service = (*service.Host)(nil)

// requester decides about requests.
type requester interface {
	Submit(ctx context.Context, ask service.Ask, r berth.Request) (service.Answer, error)
	SubmitArray(ctx context.Context, ask service.Ask, r berth.Request, parts int) ([]service.Answer, error)
	Offers(ctx context.Context, ask service.Ask, r berth.Request, most int) ([]service.Offer, error)
	Chances(ctx context.Context, ask service.Ask, r berth.Request) (list []service.Chance, looked int, err error)
	Starts(ctx context.Context, ask service.Ask, r berth.Request, w service.Window) ([]service.Starts, error)
	Recall(ctx context.Context, ask service.Ask, parts int) ([]service.Answer, error)
	Refuse(ctx context.Context, ask service.Ask, why error) error
	Hold(ctx context.Context, ask service.Ask, offer string, hold berth.Duration) (service.Answer, error)
}

// workflower decides about workflows and knows how far they are.
type workflower interface {
	SubmitWorkflow(ctx context.Context, ask service.Ask, w berth.Workflow) (service.FlowAnswer, error)
	WorkflowOffers(ctx context.Context, ask service.Ask, w berth.Workflow) ([]engine.WorkflowOffer, error)
	RecallWorkflow(ctx context.Context, ask service.Ask) (*service.FlowAnswer, error)
	ConfirmWorkflow(ctx context.Context, ask service.Ask, id string) (service.FlowAnswer, error)
	CancelWorkflow(ctx context.Context, ask service.Ask, id string) (service.FlowAnswer, error)
	RetryWorkflow(ctx context.Context, ask service.Ask, id string, deadline berth.Time) (service.FlowAnswer, error)
	Workflow(ctx context.Context, by service.Principal, id string) (service.Workflow, error)
	Workflows(ctx context.Context, by service.Principal, f service.FlowFilter) (list []service.Workflow, looked int, err error)
}

// repeater decides about series and knows what became of them.
type repeater interface {
	SubmitSeries(ctx context.Context, ask service.Ask, s berth.Series) (service.SeriesAnswer, error)
	RecallSeries(ctx context.Context, ask service.Ask) (*service.SeriesAnswer, error)
	ModifySeries(ctx context.Context, ask service.Ask, id string, x service.SeriesEdit) (service.SeriesAnswer, error)
	CancelSeries(ctx context.Context, ask service.Ask, id string, from, to int) (service.SeriesAnswer, error)
	GetSeries(ctx context.Context, by service.Principal, id string) (service.Series, error)
	FindSeries(ctx context.Context, by service.Principal, word string) (s service.Series, looked int, err error)
	ListSeries(ctx context.Context, by service.Principal, f service.SeriesFilter) (list []service.Series, looked int, err error)
}

// keeper changes what was promised.
type keeper interface {
	Confirm(ctx context.Context, ask service.Ask, id string) (service.Reservation, error)
	Modify(ctx context.Context, ask service.Ask, id string, r berth.Request) (service.Answer, error)
	Extend(ctx context.Context, ask service.Ask, id string, until berth.Time) (service.Answer, error)
	CheckIn(ctx context.Context, ask service.Ask, id string) (service.Reservation, error)
	Release(ctx context.Context, ask service.Ask, id string) (service.Reservation, error)
	Prepare(ctx context.Context, ask service.Ask, id string) (service.Reservation, error)
	Run(ctx context.Context, ask service.Ask, id string, task site.Task) (site.JobID, error)
}

// watcher tells what there is and what happens.
type watcher interface {
	Get(ctx context.Context, by service.Principal, id string) (service.Reservation, error)
	Find(ctx context.Context, by service.Principal, word string) (r service.Reservation, looked int, err error)
	List(ctx context.Context, by service.Principal, f service.Filter) (list []service.Reservation, looked int, err error)
	Tasks(ctx context.Context, by service.Principal, id string) (service.Tasks, error)
	History(ctx context.Context, by service.Principal, id string) (past service.History, looked int, err error)
	Audit(ctx context.Context, by service.Principal, f service.AuditFilter) (list []service.Audited, next uint64, looked int, err error)
	Asked(ctx context.Context, by service.Principal, from, to berth.Time) (requests []berth.Request, looked int, err error)
	FeedGeneration(by service.Principal, site string) (service.FeedGeneration, error)
	Feed(ctx context.Context, by service.Principal, site string) (feed service.Feed, looked int, err error)
	LastEvent() uint64
	Listen(ctx context.Context, by service.Principal, after uint64) iter.Seq2[service.Notice, error]
	SharedQuotas(ctx context.Context, by service.Principal) ([]service.SharedQuota, error)
	Usage(ctx context.Context, by service.Principal, from, to policy.Month) (used service.UsedSince, looked int, err error)
	AccountQuotas(ctx context.Context, by service.Principal) ([]service.SharedQuota, error)
	OwnProjects(ctx context.Context, user string) (service.OwnProjects, error)
	Quotas(ctx context.Context, by service.Principal, of []service.Principal) ([]service.Quota, error)
	Occupied(ctx context.Context, by service.Principal) iter.Seq2[service.Occupied, error]
	Users(ctx context.Context, by service.Principal) ([]string, error)
	Now() berth.Time
	AcceptClock(ctx context.Context, ask service.Ask) error
	Compact(ctx context.Context, ask service.Ask, keep berth.Duration) (service.Compacted, error)
	Ready() error
}

// harbour knows the sites.
type harbour interface {
	Sites(ctx context.Context, by service.Principal) ([]service.SiteView, error)
	Occupation(ctx context.Context, by service.Principal, site string, from, to berth.Time, after service.Mark, limit int) ([]service.Span, error)
	Gantt(ctx context.Context, by service.Principal, pool berth.ResourceID) (service.Picture, error)
	GanttGeneration(by service.Principal, pool berth.ResourceID) (uint64, error)
	Rows(ctx context.Context, by service.Principal, pool berth.ResourceID) (service.PoolRows, error)
	Named(ctx context.Context, by service.Principal, pool berth.ResourceID, text string) ([]uint32, error)
	Spans(ctx context.Context, by service.Principal, site string, number uint32) ([]service.Span, error)
	Score(ctx context.Context, by service.Principal, site string, most int) (service.Score, error)
	UpdateForecast(ctx context.Context, ask service.Ask, f service.Forecast) error
	Drain(ctx context.Context, ask service.Ask, site, node, reason string) error
	Resume(ctx context.Context, ask service.Ask, site, node string) error
	Outages(ctx context.Context, by service.Principal) ([]service.PoolOutage, error)
	AddMaintenance(ctx context.Context, ask service.Ask, m service.Maintenance, try bool) (is service.Maintenance, inTheWay []string, err error)
	ListMaintenance(ctx context.Context, by service.Principal) ([]service.Maintenance, error)
	RemoveMaintenance(ctx context.Context, ask service.Ask, name string, only berth.Time) error
	Outbox(ctx context.Context, by service.Principal) ([]service.Errand, error)
	Doctor(ctx context.Context, by service.Principal, site string) ([]site.Finding, error)
}

// notifier knows the receivers of notices.
type notifier interface {
	AddHook(ctx context.Context, ask service.Ask, hook service.Hook) (service.Hook, error)
	Hooks(ctx context.Context, by service.Principal) ([]service.HookView, error)
	ChangeHook(ctx context.Context, ask service.Ask, id string, change func(*service.Hook) error) (service.Hook, error)
	RemoveHook(ctx context.Context, ask service.Ask, id string) error
	TestHook(ctx context.Context, ask service.Ask, id string) error
	Deliveries(ctx context.Context, by service.Principal, id string) (service.Deliveries, error)
	Resend(ctx context.Context, ask service.Ask, id string, numbers []uint64) error
}

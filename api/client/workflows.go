package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strings"

	"github.com/berth-hpc/berth/api/form"
)

// SubmitWorkflow asks for a workflow. A refusal is an answer.
func (c *Client) SubmitWorkflow(ctx context.Context, w *form.WorkflowRequest, action Action) (answer form.WorkflowAnswer, err error) {
	err = c.send(ctx, http.MethodPost, "/v1/workflows", action, w, &answer)
	return answer, err
}

// OfferWorkflow asks what deadlines of a workflow cost, without asking for it.
func (c *Client) OfferWorkflow(ctx context.Context, w *form.WorkflowRequest) ([]form.WorkflowOffer, error) {
	var answer form.WorkflowOffers
	err := c.send(ctx, http.MethodPost, "/v1/workflows/offers", Action{}, w, &answer)
	return answer.Offers, err
}

func workflowPath(id string) string { return "/v1/workflows/" + url.PathEscape(id) }

// Workflow looks at a workflow.
func (c *Client) Workflow(ctx context.Context, id string) (w form.Workflow, err error) {
	err = c.send(ctx, http.MethodGet, workflowPath(id), Action{}, nil, &w)
	return w, err
}

// Workflows yields workflows without their tasks, of a user and in some states if these are
// given, page after page.
func (c *Client) Workflows(ctx context.Context, user string, states []string) iter.Seq2[form.Workflow, error] {
	query := url.Values{}
	if user != "" {
		query.Set("user", user)
	}
	if len(states) > 0 {
		query.Set("state", strings.Join(states, ","))
	}
	return pages(ctx, c, "/v1/workflows", query, func(p *form.Workflows) ([]form.Workflow, string) { return p.Workflows, p.Next })
}

// ConfirmWorkflow confirms a held workflow.
func (c *Client) ConfirmWorkflow(ctx context.Context, id string, action Action) (answer form.WorkflowAnswer, err error) {
	err = c.send(ctx, http.MethodPost, workflowPath(id)+"/confirm", action, nil, &answer)
	return answer, err
}

// CancelWorkflow stops what runs of a workflow, and gives the rest back.
func (c *Client) CancelWorkflow(ctx context.Context, id string, action Action) (answer form.WorkflowAnswer, err error) {
	err = c.send(ctx, http.MethodDelete, workflowPath(id), action, nil, &answer)
	return answer, err
}

// RetryWorkflow asks again for what has not succeeded of a workflow that is over.
func (c *Client) RetryWorkflow(ctx context.Context, id string, r form.WorkflowRetry, action Action) (answer form.WorkflowAnswer, err error) {
	err = c.send(ctx, http.MethodPost, workflowPath(id)+"/retry", action, r, &answer)
	return answer, err
}

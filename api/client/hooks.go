package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
)

// HookChange is a receiver of notices to be added, or what is to be changed of one: nil fields are left as
// they are, or as they are by default.
type HookChange struct {
	URL     *string         `json:"url,omitempty"`
	Form    string          `json:"form,omitempty"`
	Kinds   []string        `json:"kinds,omitempty"`
	Site    *string         `json:"site,omitempty"`
	Note    *string         `json:"note,omitempty"`
	Text    *string         `json:"text,omitempty"`
	Starts  *berth.Duration `json:"starts,omitempty"` // seconds, as Ends and Unused
	Ends    *berth.Duration `json:"ends,omitempty"`
	Unused  *berth.Duration `json:"unused,omitempty"`
	Enabled *bool           `json:"enabled,omitempty"` // of a change alone
}

// AddHook adds a receiver of notices; the secret with which they are signed is in the answer and nowhere else.
func (c *Client) AddHook(ctx context.Context, in HookChange) (h form.Hook, err error) {
	err = c.send(ctx, http.MethodPost, "/v1/hooks", Action{}, in, &h)
	return h, err
}

// Hooks lists the receivers of who asks, for operators of all sites those of all users.
func (c *Client) Hooks(ctx context.Context) ([]form.Hook, error) {
	var answer form.Hooks
	err := c.send(ctx, http.MethodGet, "/v1/hooks", Action{}, nil, &answer)
	return answer.Hooks, err
}

func hookPath(id string) string { return "/v1/hooks/" + url.PathEscape(id) }

// ChangeHook changes a receiver.
func (c *Client) ChangeHook(ctx context.Context, id string, in HookChange) (h form.Hook, err error) {
	err = c.send(ctx, http.MethodPatch, hookPath(id), Action{}, in, &h)
	return h, err
}

// RemoveHook removes a receiver.
func (c *Client) RemoveHook(ctx context.Context, id string) error {
	return c.send(ctx, http.MethodDelete, hookPath(id), Action{}, nil, nil)
}

// TestHook sends a receiver a test.
func (c *Client) TestHook(ctx context.Context, id string) error {
	return c.send(ctx, http.MethodPost, hookPath(id)+"/test", Action{}, nil, nil)
}

// RotateHook gives a receiver another secret, which is in the answer and nowhere else.
func (c *Client) RotateHook(ctx context.Context, id string) (h form.Hook, err error) {
	err = c.send(ctx, http.MethodPost, hookPath(id)+"/rotate", Action{}, nil, &h)
	return h, err
}

// Deliveries lists the notices of a receiver with each try.
func (c *Client) Deliveries(ctx context.Context, id string) ([]form.Delivery, error) {
	var answer form.Deliveries
	err := c.send(ctx, http.MethodGet, hookPath(id)+"/deliveries", Action{}, nil, &answer)
	return answer.Deliveries, err
}

// ResendHook sends notices of a receiver again, all dead letters if no ids are given.
func (c *Client) ResendHook(ctx context.Context, id string, notices []string) error {
	in := struct {
		Notices []string `json:"notices,omitempty"`
	}{notices}
	return c.send(ctx, http.MethodPost, hookPath(id)+"/resend", Action{}, in, nil)
}

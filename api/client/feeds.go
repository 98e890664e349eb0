package client

import (
	"context"
	"io"
	"net/http"
	"net/url"

	"github.com/berth-hpc/berth/api/form"
)

// NewFeed is a calendar feed to be made.
type NewFeed struct {
	Site string `json:"site,omitempty"` // that it shows; what the user has if it is empty
	Note string `json:"note,omitempty"`
}

// AddFeed makes a calendar feed; its secret and its address are in the answer and nowhere else.
func (c *Client) AddFeed(ctx context.Context, in NewFeed) (f form.Feed, err error) {
	err = c.send(ctx, http.MethodPost, "/v1/feeds", Action{}, in, &f)
	return f, err
}

// Feeds lists the calendar feeds of who asks, for operators those of all users, without their secrets.
func (c *Client) Feeds(ctx context.Context) ([]form.Feed, error) {
	var answer form.Feeds
	err := c.send(ctx, http.MethodGet, "/v1/feeds", Action{}, nil, &answer)
	return answer.Feeds, err
}

// RevokeFeed ends a calendar feed.
func (c *Client) RevokeFeed(ctx context.Context, id string) error {
	return c.send(ctx, http.MethodDelete, "/v1/feeds/"+url.PathEscape(id), Action{}, nil, nil)
}

// Calendar returns what who asks has reserved, or with a site what is promised and out of use there, in the form of
// RFC 5545.
func (c *Client) Calendar(ctx context.Context, site string) ([]byte, error) {
	path := "/v1/calendar"
	if site != "" {
		path += "?" + url.Values{"site": {site}}.Encode()
	}
	r, err := c.request(ctx, http.MethodGet, path, http.NoBody)
	if err != nil {
		return nil, err
	}
	answer, err := c.do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }() // only read from
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	return data, nil
}

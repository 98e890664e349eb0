package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"github.com/berth-hpc/berth/api/form"
)

// SubmitSeries asks for a request that repeats. A refusal is an answer.
func (c *Client) SubmitSeries(ctx context.Context, s *form.SeriesRequest, action Action) (answer form.SeriesAnswer, err error) {
	err = c.send(ctx, http.MethodPost, "/v1/series", action, s, &answer)
	return answer, err
}

func seriesPath(id string) string { return "/v1/series/" + url.PathEscape(id) }

// Series looks at a series.
func (c *Client) Series(ctx context.Context, id string) (s form.Series, err error) {
	err = c.send(ctx, http.MethodGet, seriesPath(id), Action{}, nil, &s)
	return s, err
}

// SeriesList yields series without their occurrences, of a user if one is given, page after page.
func (c *Client) SeriesList(ctx context.Context, user string) iter.Seq2[form.Series, error] {
	query := url.Values{}
	if user != "" {
		query.Set("user", user)
	}
	return pages(ctx, c, "/v1/series", query, func(p *form.SeriesList) ([]form.Series, string) { return p.Series, p.Next })
}

// ModifySeries changes occurrences of a series: from one to another, or all. A refusal is an answer.
func (c *Client) ModifySeries(ctx context.Context, id string, x form.SeriesModify, action Action) (answer form.SeriesAnswer, err error) {
	err = c.send(ctx, http.MethodPost, seriesPath(id)+"/modify", action, x, &answer)
	return answer, err
}

// CancelSeries gives back occurrences of a series: from one to another, or all.
func (c *Client) CancelSeries(ctx context.Context, id string, which form.SeriesCancel, action Action) (answer form.SeriesAnswer, err error) {
	err = c.send(ctx, http.MethodPost, seriesPath(id)+"/cancel", action, which, &answer)
	return answer, err
}

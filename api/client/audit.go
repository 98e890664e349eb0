package client

import (
	"context"
	"iter"
	"net/url"

	"github.com/berth-hpc/berth/api/form"
)

// AuditFilter chooses from what was asked for. Zero fields choose all.
type AuditFilter struct {
	User, Token, Address, Kind, ID string
	Since, Until                   form.Time
}

// Audit yields who asked for what, in order, fetching it page by page. An error ends it.
func (c *Client) Audit(ctx context.Context, f AuditFilter) iter.Seq2[form.Audited, error] {
	query := url.Values{}
	for name, text := range map[string]string{"user": f.User, "token": f.Token, "address": f.Address, "kind": f.Kind, "id": f.ID} {
		if text != "" {
			query.Set(name, text)
		}
	}
	for name, at := range map[string]form.Time{"since": f.Since, "until": f.Until} {
		if at != 0 {
			query.Set(name, at.String())
		}
	}
	query.Set("limit", "999")
	return pages(ctx, c, "/v1/audit", query, func(p *form.Audit) ([]form.Audited, string) { return p.Records, p.Next })
}

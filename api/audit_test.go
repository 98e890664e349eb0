package api_test

import (
	"testing"

	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/form"
)

// Who asked for what is told in pages; values that are none are named.
func TestAudit(t *testing.T) {
	w := newWorld(t, api.Options{})
	page := into[form.Audit](t, w.do("root", "GET", "/v1/audit?user=alice&kind=submit&limit=1&since=2026-01-01T00:00:00Z", ""), 200)
	if len(page.Records) != 1 || page.Records[0].User != "alice" || page.Records[0].Kind != "submit" || page.Next == "" {
		t.Fatalf("%+v", page)
	}
	last := into[form.Audit](t, w.do("root", "GET", "/v1/audit?user=alice&limit=1&cursor="+page.Next, ""), 200)
	if len(last.Records) != 1 || last.Records[0].Number != page.Records[0].Number+1 || last.Next != "" {
		t.Errorf("%+v", last)
	}
	for query, field := range map[string]string{
		"kind=steal": "kind: ", "since=yesterday": "since: ", "until=2026-01-01T00:00": "until: ", "limit=0": "limit: ", "limit=1000": "limit: ", "cursor=%25": "cursor: ", "cursor=YQ": "cursor: ", "who=alice": "who: ",
	} {
		wantProblem(t, w.do("root", "GET", "/v1/audit?"+query, ""), 422, field)
	}
}

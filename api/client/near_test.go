package client_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/api/form"
)

// A service on this machine is asked not to pack what it answers to a change. Lists may come through a
// tunnel, so they may be packed.
func TestAnswersToChangesAreNotPackedNearby(t *testing.T) {
	var takes []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		takes = append(takes, r.Header.Get("Accept-Encoding"))
		fmt.Fprint(w, "{}")
	}))
	defer server.Close()
	c, err := client.New(server.URL, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.SubmitWorkflow(t.Context(), &form.WorkflowRequest{}, client.Action{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Get(t.Context(), "r1"); err != nil {
		t.Fatal(err)
	}
	if want := []string{"identity", "gzip"}; !slices.Equal(takes, want) {
		t.Errorf("asked for %q, want %q", takes, want)
	}
}

package main

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestServePages has the real program serve the pages.
func TestServePages(t *testing.T) {
	t.Parallel()
	serves(t, "testdata/serve/pages.txtar", "")
}

// fetch gets a path of the service, and wants a status and a text in the answer.
func fetch(ts *testscript.TestScript, _ bool, args []string) {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, ts.Getenv(serverVar)+args[0], http.NoBody)
	ts.Check(err)
	answer, err := http.DefaultClient.Do(request)
	ts.Check(err)
	defer func() { _ = answer.Body.Close() }() // it was read
	text, err := io.ReadAll(answer.Body)
	ts.Check(err)
	if strconv.Itoa(answer.StatusCode) != args[1] || !matches(args[2], string(text)) {
		ts.Fatalf("%s: status %d, want %s and %q: %.2000s", args[0], answer.StatusCode, args[1], args[2], text)
	}
}

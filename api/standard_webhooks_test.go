package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/courier"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/internal/nodetest"
	"github.com/berth-hpc/berth/notice"
	"github.com/berth-hpc/berth/service"
)

// signatureLibrary returns a folder with Standard Webhooks' library of npm, of the version that its lock file has.
// Where it cannot be had the test is skipped, or fails, as nodetest.Need says.
func signatureLibrary(t *testing.T) string {
	t.Helper()
	nodetest.Need(t)
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(filepath.Join("testdata", "standardwebhooks"))); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		nodetest.Absent(t, fmt.Sprintf("no library standardwebhooks: npm ci: %v: %.500s", err, out))
	}
	return folder
}

// The library that Standard Webhooks has for npm takes what is sent, with either secret while one is rotated, and refuses it
// with another secret, another body, another id, or another time.
func TestLibraryOfStandardWebhooksTakesNotices(t *testing.T) {
	folder := signatureLibrary(t)
	url, received, m, store := receiver(t, 204)
	m.Now = func() berth.Time { return berth.Time(time.Now().Unix()) }
	_, entry, err := store.Add(token.Wanted{User: "alice", Role: service.User}, start)
	if err != nil {
		t.Fatal(err)
	}
	fresh, old := []byte("0123456789abcdef01234567"), []byte("76543210fedcba9876543210")
	target := courier.Target{URL: url, Secrets: []courier.Secret{{Key: fresh}, {Key: old, Until: m.Now() + 3600}}}
	hook := service.Hook{ID: "h1", User: "alice", Form: service.WebhookForm, Parent: entry.ID, Sealed: m.Courier.Seal("h1", &target)}
	o := &service.Owed{Number: 4711, At: start, Kind: notice.Moved, Flow: &service.FlowNews{ID: "w1", Name: "Zölle <&> \u2028", User: "alice", State: service.FlowPromised, End: start + 100}}
	if sent := m.Send(context.Background(), &hook, o); sent != (service.Sent{Status: 204}) {
		t.Fatalf("%+v", sent)
	}
	r := (*received)[0]
	type message struct {
		Secret  string            `json:"secret"`
		Headers map[string]string `json:"headers"`
		Body    string            `json:"body"`
	}
	with := func(secret []byte, body string, change func(headers map[string]string)) message {
		headers := map[string]string{}
		for _, name := range []string{notice.HeaderID, notice.HeaderTimestamp, notice.HeaderSignature} {
			headers[name] = r.header.Get(name)
		}
		change(headers)
		return message{notice.Secret(secret), headers, body}
	}
	as := func(map[string]string) {}
	body := string(r.body)
	var in bytes.Buffer
	for _, one := range []message{
		with(fresh, body, as),
		with(old, body, as),
		with([]byte("another key of 24 bytes."), body, as),
		with(fresh, body+" ", as),
		with(fresh, body, func(h map[string]string) { h[notice.HeaderID] += "0" }),
		with(fresh, body, func(h map[string]string) {
			at := m.Now() - 3600
			h[notice.HeaderTimestamp], h[notice.HeaderSignature] = fmt.Sprint(at), notice.Signature(h[notice.HeaderID], at, r.body, fresh)
		}),
	} {
		if err := json.NewEncoder(&in).Encode(one); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "node", "check.cjs")
	cmd.Dir, cmd.Stdin = folder, &in
	out, err := cmd.CombinedOutput()
	const no = "refused No matching signature found\n"
	if want := "taken workflow.moved\ntaken workflow.moved\n" + no + no + no + "refused Message timestamp too old\n"; err != nil || string(out) != want {
		t.Errorf("%s\nwant\n%s%v", out, want, err)
	}
}

package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/internal/browser"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
	"github.com/berth-hpc/berth/web"
)

// In front of a real Slurm a promise is booked on the page and made real at the cluster, and
// when a node of it goes away there the page shows it without being asked.
func TestHarbourOnSlurm(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	cluster := slurmtest.Start(t, slurmtest.Options{Nodes: 4})
	b := browser.Start(t)
	dir := t.TempDir()
	config := filepath.Join(dir, "berth.yaml")
	var out, messages bytes.Buffer
	if code := run([]string{"sites", "add", "cluster", "--config", config, "--conf", cluster.Conf, "--every", "1s"}, strings.NewReader(""), &out, &messages); code != 0 {
		t.Fatalf("exit %d: %s%s", code, &out, &messages)
	}
	f := openFleet(t, config, filepath.Join(dir, "data"))
	defer f.close()
	q := &quay{t: t, host: f.host, links: &api.Links{}}
	var err error
	if q.tokens, err = token.Open(t.TempDir(), "olga", q.host.Now()); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(api.New(api.Options{
		Service: q.host, Tokens: q.tokens, Links: q.links, Root: web.Handler("", http.HandlerFunc(api.NotFound)), Log: slog.New(slog.DiscardHandler),
	}))
	defer func() {
		server.CloseClientConnections()
		server.Close()
	}()
	q.url = server.URL
	f.until(t, "the cluster is there", func(v map[string]service.SiteView) bool { return v["cluster"].Reachable })

	p := b.Open(wide)
	p.Visit(q.link("root", service.User, "book")) // who has an account at the cluster
	offered(p, "As asked")
	p.Eval(`(() => { const e = [...document.querySelectorAll('input')].find((e) => e.labels?.[0]?.innerText === 'PEs'); e.focus(); e.select() })()`)
	p.Type("2")
	p.Eval(`(() => { const e = [...document.querySelectorAll('input')].find((e) => e.labels?.[0]?.innerText === 'Not before'); e.focus(); e.select() })()`)
	p.Type("now+10m")
	p.Wait(`document.querySelector('ul[aria-label=Offers] li')?.innerText.includes('2 PEs')`)
	p.Press("Promise it")
	p.Wait(`document.querySelector('[data-testid=promised]')?.innerText.includes('2 PEs at cluster')`)
	list := q.of("root", service.Confirmed)
	if len(list) != 1 {
		t.Fatalf("%+v", list)
	}
	f.until(t, "it is made real", func(map[string]service.SiteView) bool {
		r, err := f.host.Get(t.Context(), service.Principal{User: "root", Role: service.User}, list[0].ID)
		return err == nil && len(r.Sites) == 1 && r.Sites[0].Made
	})
	if said, err := cluster.Command("scontrol", "show", "reservation"); err != nil || !strings.Contains(said, "NodeCnt=2") {
		t.Errorf("the cluster says %q, %v", said, err)
	}
	p.Press("Harbour")
	painted(p, 1)
	if n := colours(p, mineBlue); n < 100 {
		t.Errorf("%d pixels of one's own", n)
	}
	shot(p, "slurm")
	if said, err := cluster.Command("scontrol", "update", "nodename="+cluster.Nodes()[0], "state=drain", "reason=fire"); err != nil {
		t.Fatal(said, err)
	}
	p.Wait(fmt.Sprintf(`(() => { const d = %s; let ink = 0; for (let i = 0; i < d.length; i += 4) if (d[i] === %d && d[i+1] === %d) ink++; return ink > 200 })()`, pixelsOf, outageInk[0], outageInk[1]))
	if n := colours(p, mineBlue); n < 100 { // it is moved to other nodes
		t.Errorf("%d pixels of one's own when a node is gone", n)
	}
	shot(p, "slurm-drained")

	// A promise that needs every node has nowhere else to go, so it is degraded, and whole again
	// when the node is back.
	administer := func(args ...string) {
		t.Helper()
		if said, err := cluster.Command("scontrol", args...); err != nil {
			t.Fatal(args, said, err)
		}
	}
	lost := cluster.Nodes()[0]
	administer("update", "nodename="+lost, "state=resume")
	f.until(t, "the node is back", func(v map[string]service.SiteView) bool { return v["cluster"].Loads[0].Free == 4 })
	by := service.Ask{By: service.Principal{User: "root", Role: service.Operator}} // no user may have all of a pool
	if _, err := f.host.Release(t.Context(), by, list[0].ID); err != nil {
		t.Fatal(err)
	}
	now := f.host.Now()
	whole, err := f.host.Submit(t.Context(), by, berth.Rigid("whole", now, now+600, now+4200, 4, 3600))
	if err != nil || whole.Reservation.State != service.Confirmed {
		t.Fatalf("%+v, %v", whole.Reservation, err)
	}
	f.until(t, "all of it is made real", func(map[string]service.SiteView) bool {
		r, err := f.host.Get(t.Context(), by.By, "whole")
		return err == nil && len(r.Sites) == 1 && r.Sites[0].Made
	})
	administer("update", "nodename="+lost, "state=down", "reason=x")
	f.until(t, "it is degraded", func(map[string]service.SiteView) bool {
		r, err := f.host.Get(t.Context(), by.By, "whole")
		return err == nil && r.State == service.Degraded && r.Missing == 1
	})
	orange := fmt.Sprintf(`(() => { const d = %s; let n = 0; for (let i = 0; i < d.length; i += 4) if (d[i] === %d && d[i+1] === %d && d[i+2] === %d) n++; return n })()`, pixelsOf, degradedOrange[0], degradedOrange[1], degradedOrange[2])
	p.Wait(orange + ` > 200`)
	shot(p, "slurm-down")
	administer("update", "nodename="+lost, "state=resume")
	p.Wait(orange + ` === 0`)
	if n := colours(p, mineBlue); n < 100 {
		t.Errorf("%d pixels of one's own when the node is back", n)
	}
	noFaults(t, p)
}

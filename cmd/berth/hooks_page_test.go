package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/browser"
	"github.com/berth-hpc/berth/service"
)

// A receiver of notices is added on the page, its secret shown once; it is sent a test and what happens, disabled,
// enabled, given another secret, changed by mouse and by keys, and removed.
func TestNoticesInABrowser(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	q := newQuay(t, "harbour")
	got := make(chan string, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("webhook-signature") == "" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		got <- r.URL.Path + " " + string(body)
	}))
	defer receiver.Close()
	p := b.Open(wide)
	p.Visit(q.link("alice", service.User, "promises"))
	p.Wait(`document.querySelector('[data-testid=none]')`)
	p.Press("Notices")
	p.Wait(`document.querySelector('[data-testid=hooks]')?.innerText.includes('No receiver is told yet')`)
	p.Press("Add a receiver")
	p.Wait(`document.activeElement.labels?.[0]?.innerText === 'Address'`)
	enter(p, "Address", "https://10.1.2.3/x")
	p.Press("Add it")
	p.Wait(`document.querySelector('[data-testid=hooks] form [role=alert]')`)
	enter(p, "Address", receiver.URL+"/secretpath")
	enter(p, "What it is for", "on call")
	p.Press("promised")
	p.Press("starts soon")
	enter(p, "How long before the start", "1h")
	p.Wait(`document.querySelector('[data-testid=hooks] form').innerText.includes("--starts 1h --note 'on call'")`)
	shot(p, "notices-add-light")
	p.Press("Add it")
	p.Wait(`document.querySelector('[data-testid=secret] code')?.innerText.startsWith('whsec_')`)
	secret := p.Eval(`document.querySelector('[data-testid=secret] code').innerText`).(string)
	p.Press("Put it away")
	if page := p.Eval(`document.documentElement.outerHTML`).(string); strings.Contains(page, secret) || strings.Contains(page, "secretpath") {
		t.Error("the secret or the address is still there once it is put away")
	}
	p.Wait(`document.querySelector('[data-testid=hooks] section').innerText.includes('Told of: promised')`)
	p.Press("Details: on call")
	p.Press("Send a test")
	p.Wait(`document.querySelector('[data-testid=hooks] [data-testid=done]')?.innerText.includes('The test has arrived')`)
	if body := <-got; !strings.Contains(body, "hook.test") {
		t.Errorf("the test is %s", body)
	}
	q.reserve("alice", "harbour", "hers", 2, 7200, 3600, 0)
	if body := <-got; !strings.Contains(body, "reservation.granted") || !strings.Contains(body, `"hers"`) {
		t.Errorf("it is told %s", body)
	}
	p.Wait(`[...document.querySelectorAll('[data-testid=deliveries] tbody tr')].some((r) => r.innerText.includes('hers') && r.innerText.includes('delivered'))`)
	shot(p, "notices-light")
	p.Press("Make another secret")
	p.Wait(fmt.Sprintf(`((s) => s?.startsWith('whsec_') && s !== %q)(document.querySelector('[data-testid=secret] code')?.innerText)`, secret))
	p.Press("Put it away")
	p.Press("Disable")
	p.Wait(`document.querySelector('[data-testid=hooks] section').innerText.includes('Nothing is sent: disabled by alice')`)
	p.Wait(`/berth notify change \w+ --disable/.test(document.querySelector('[data-testid=hooks] [data-testid=done]').innerText)`)
	p.Press("Enable")
	p.Wait(`!document.querySelector('[data-testid=hooks] section').innerText.includes('Nothing is sent')`)
	p.Press("Change")
	p.Wait(`document.activeElement.labels?.[0]?.innerText === 'New address' && document.querySelector('[data-testid=hooks] form').innerText.includes('Nothing is changed yet')`)
	p.Press("cancelled")
	enter(p, "How long before the start", "2h")
	enter(p, "What it is for", "the night shift")
	p.Wait(`/berth notify change \w+ --kinds \S*cancelled --starts 2h --note 'the night shift'/.test(document.querySelector('[data-testid=hooks] form').innerText)`)
	shot(p, "notices-change-light")
	p.Press("Change it")
	p.Wait(`!document.querySelector('[data-testid=hooks] form') && /Changed[^]*--note 'the night shift'/.test(document.querySelector('[data-testid=hooks] [data-testid=done]')?.innerText)`)
	p.Wait(`document.querySelector('[data-testid=hooks] section').innerText.includes('the night shift') && /Told of: .*cancelled/.test(document.querySelector('[data-testid=hooks] section').innerText)`)
	if _, err := q.host.Release(t.Context(), q.ask("alice"), "hers"); err != nil {
		t.Fatal(err)
	}
	if body := <-got; !strings.HasPrefix(body, "/secretpath ") || !strings.Contains(body, "reservation.cancelled") {
		t.Errorf("at the address that it had it is told %s", body)
	}
	h := &hands{t, p}
	h.back("Change")
	h.Key("Enter")
	h.on("New address")
	h.Type("https://10.1.2.3/x")
	h.Key("Enter")
	p.Wait(`document.querySelector('[data-testid=hooks] form [role=alert]')`)
	h.retype(receiver.URL + "/elsewhere")
	p.Wait(`/berth notify change \w+ --url "\$URL"$/m.test(document.querySelector('[data-testid=hooks] form').innerText.replaceAll('\nCopy', ''))`)
	h.Key("Enter")
	p.Wait(`!document.querySelector('[data-testid=hooks] form')`)
	h.on("Receiver the night shift")
	p.Press("Send a test")
	p.Wait(`document.querySelector('[data-testid=hooks] [data-testid=done]')?.innerText.includes('The test has arrived')`)
	if body := <-got; !strings.HasPrefix(body, "/elsewhere ") || !strings.Contains(body, "hook.test") {
		t.Errorf("at the new address arrives %s", body)
	}
	if page := p.Eval(`document.documentElement.outerHTML`).(string); strings.Contains(page, "elsewhere") {
		t.Error("the new address is still there")
	}
	p.Press("Remove")
	p.Press("Yes, remove it")
	p.Wait(`document.querySelector('[data-testid=hooks]').innerText.includes('No receiver is told yet')`)
	p.Faults() // of the address that was refused
}

// A mailbox is added on the page and told by e-mail, which it is called there; it is given an address of another kind and back.
func TestAMailboxInABrowser(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour")
	p := b.Open(wide)
	p.Visit(q.link("alice", service.User, "promises"))
	p.Wait(`document.querySelector('[data-testid=none]')`)
	p.Press("Notices")
	p.Press("Add a receiver")
	enter(p, "Address", "alice@example.org") // is known for what it is
	p.Wait(`document.activeElement.labels?.[0]?.innerText === 'E-mail address' && [...document.querySelectorAll('[data-testid=hooks] form input')].some((e) => e.value === 'e-mail')`)
	enter(p, "E-mail address", "alice@")
	p.Wait(`document.querySelector('[data-testid=hooks] form').innerText.includes('Want an address such as ann@example.org')`)
	enter(p, "E-mail address", "alice@example.com")
	p.Press("Add it")
	p.Wait(`document.querySelector('[data-testid=hooks] form [role=alert]')?.innerText.includes('example.com is not allowed here')`)
	enter(p, "E-mail address", "alice@example.org")
	p.Wait(`document.querySelector('[data-testid=hooks] form').innerText.includes('berth notify add alice@example.org')`)
	shot(p, "notices-mail-light")
	p.Press("Add it")
	p.Wait(`document.querySelector('[data-testid=secret]')?.innerText.includes('The receiver is there') && !document.querySelector('[data-testid=secret] code')`)
	p.Press("Put it away")
	p.Wait(`/example\.org\s+e-mail/.test(document.querySelector('[data-testid=hooks] section').innerText) && !document.querySelector('[data-testid=hooks]').innerText.includes('Standard Webhooks')`)
	p.Press("Details: example.org")
	p.Press("Send a test")
	p.Wait(`document.querySelector('[data-testid=hooks] [data-testid=done]')?.innerText.includes('The test has arrived')`)
	if text, err := os.ReadFile(q.mailed); err != nil || !strings.Contains(string(text), "To: <alice@example.org>") || !strings.Contains(string(text), "a test, as you asked for") {
		t.Errorf("the mailbox has %s %v", text, err)
	}
	p.Wait(`![...document.querySelectorAll('[data-testid=hooks] button')].some((e) => e.innerText === 'Make another secret')`)
	p.Press("Change")
	enter(p, "New address", "alice@mail.example.org")
	p.Wait(`/berth notify change \w+ --url alice@mail.example.org/.test(document.querySelector('[data-testid=hooks] form').innerText)`)
	p.Press("Leave it as it is")
	p.Faults() // of the address that was refused
}

// Dead letters are looked at and sent again, one or all; a receiver that fails says since when and why.
func TestDeadLettersInABrowser(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour")
	h := &hands{t, b.Open(wide)}
	// A letter is dead after a day of tries, so the page is answered in place of the service.
	h.Before(`(() => {
		const real = window.fetch, tries = [{ at: '2026-11-20T09:00:00Z', status: 503, trouble: 'Service Unavailable' }, { at: '2026-11-21T09:00:00Z', trouble: 'it does not answer' }];
		const letters = { deliveries: [
			{ id: 'evt_1_h', kind: 'degraded', at: '2026-11-20T09:00:00Z', state: 'dead', reservation: 'hers', tries }, { id: 'evt_2_h', kind: 'lost', at: '2026-11-20T10:00:00Z', state: 'dead', reservation: 'his', tries },
			{ id: 'evt_3_h', kind: 'moved', at: '2026-11-20T11:00:00Z', state: 'waiting', reservation: 'hers', next: '2026-11-28T00:00:00Z', tries },
		] };
		const hooks = { hooks: [{ id: 'h', user: 'alice', form: 'webhook', host: 'hooks.example.org', kinds: ['degraded', 'lost'], starts: 900, ends: 600, unused: 600, created: '2026-11-01T00:00:00Z', failing: '2026-11-20T09:00:00Z', missed: 4, waiting: 1, dead: 2, last: tries[1] }] };
		window.sent = [];
		window.fetch = (path, how) => {
			const is = (data) => Promise.resolve(new Response(data === null ? null : JSON.stringify(data), { status: data === null ? 204 : 200 }));
			if (path === 'v1/hooks') return is(hooks);
			if (path === 'v1/hooks/h/deliveries') return is(letters);
			if (path === 'v1/hooks/h/resend') { window.sent.push(how.body); return is(null) }
			return real(path, how);
		};
	})()`)
	h.Visit(q.link("alice", service.User, "promises"))
	h.Wait(`document.querySelector('[data-testid=none]')`)
	h.to("Notices")
	h.Key("Enter")
	h.Wait(`document.querySelector('[data-testid=hooks] section')?.innerText.includes('Each try has failed since')`)
	h.Wait(`document.querySelector('[data-testid=hooks] section').innerText.includes('1 waiting, 2 dead letters.') && document.querySelector('[data-testid=hooks] section').innerText.includes('4 notices were not sent')`)
	h.to("Details: hooks.example.org")
	h.Key("Enter")
	h.Wait(`document.querySelectorAll('[data-testid=deliveries] tbody tr').length === 3`)
	h.Wait(`document.querySelector('tr[data-notice=evt_1_h]').innerText.includes('status 503: Service Unavailable')`)
	shot(h.Page, "notices-dead-light")
	h.to("Send again: degraded, hers")
	h.Key("Enter")
	h.Wait(`window.sent.join() === '{"notices":["evt_1_h"]}'`)
	h.Wait(`document.querySelector('[data-testid=hooks] [data-testid=done]').innerText.includes('berth notify resend h evt_1_h')`)
	h.back("Send 2 dead letters again")
	h.Key("Enter")
	h.Wait(`window.sent.at(-1) === '{}'`)
	noFaults(t, h.Page)
}

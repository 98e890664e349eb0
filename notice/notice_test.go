package notice_test

import (
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/notice"
)

// The example of the specification of Standard Webhooks, as its libraries test it.
func TestSignatureOfTheSpecification(t *testing.T) {
	key, err := notice.ParseSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	const want = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	body := []byte(`{"test": 2432232314}`)
	if got := notice.Signature("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body, key); got != want {
		t.Errorf("the signature is %s, want %s", got, want)
	}
	if got := notice.Signature("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body, key, key); got != want+" "+want {
		t.Errorf("two signatures are %s", got)
	}
	if text := notice.Secret(key); text != "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" {
		t.Errorf("the secret is written as %s", text)
	}
	for _, text := range []string{"", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_!"} {
		if _, err := notice.ParseSecret(text); err == nil {
			t.Errorf("%q is taken for a secret", text)
		}
	}
}

// A notice is tried nine more times, the last time a day after the first, and then no more.
func TestTriesGoOnForADay(t *testing.T) {
	const first berth.Time = 1_000_000
	last := first
	tries := 1
	for ; ; tries++ {
		at, again := notice.Next(first, tries, 4711)
		if !again {
			break
		}
		if at <= last {
			t.Errorf("try %d at %d, the one before at %d", tries+1, at, last)
		}
		last = at
	}
	if tries != 10 || last.Sub(first) < 86_400 || last.Sub(first) > 86_400*11/10 {
		t.Errorf("%d tries, the last %d s after the first", tries, last.Sub(first))
	}
	if at, again := notice.Next(first, 0, 1); at != first || !again {
		t.Error("what was not tried is not due")
	}
}

func TestKindsOfChanges(t *testing.T) {
	found := map[notice.Kind]bool{}
	for _, kind := range change.Kinds() {
		for lacked := range berth.Count(2) {
			for missing := range berth.Count(2) {
				if k, told := notice.OfChange(kind, lacked, missing); told {
					found[k] = true
				}
			}
		}
	}
	for _, a := range notice.Kinds() {
		byTime := a.Kind == notice.Starting || a.Kind == notice.Unused || a.Kind == notice.Ending || a.Kind == notice.Deadline
		if found[a.Kind] == byTime || !notice.Known(a.Kind) {
			t.Errorf("%s follows from a change of a reservation: %t", a.Kind, found[a.Kind])
		}
		delete(found, a.Kind)
	}
	if len(found) > 0 || notice.Known(notice.Test) {
		t.Errorf("kinds that cannot be chosen: %v", found)
	}
}

// A promise that never lacked a PE is not whole again: it has other PEs.
func TestKindsOfResized(t *testing.T) {
	for _, c := range []struct {
		lacked, missing berth.Count
		want            notice.Kind
	}{{0, 0, notice.Moved}, {0, 1, notice.Degraded}, {2, 1, notice.Degraded}, {1, 0, notice.Whole}} {
		if got, told := notice.OfChange(change.Resized, c.lacked, c.missing); got != c.want || !told {
			t.Errorf("lacked %d, lacks %d: %s, want %s", c.lacked, c.missing, got, c.want)
		}
	}
}

func TestTextsOfChats(t *testing.T) {
	f := notice.Facts{Kind: "granted", ID: "01J", Name: "a<b|c>&", PEs: "8", Site: "cm5", Start: "S", End: "E", URL: "https://hpc.example.org/#/promises/01J"}
	if got, want := notice.Text(notice.DefaultText, &f), "<https://hpc.example.org/#/promises/01J|a&lt;b¦c&gt;&amp;> granted: 8 PEs at cm5, S to E"; got != want {
		t.Errorf("%s; want %s", got, want)
	}
	f.URL, f.Name = "", ""
	if got := notice.Text("{link}/{id}", &f); got != "01J/01J" {
		t.Errorf("%s", got)
	}
	for text, good := range map[string]bool{"": true, "x": true, "{kind} {url}": true, "{secret}": false, "{kind": false, "{": false, "}": true} {
		if err := notice.CheckText(text); (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestLetters(t *testing.T) {
	f := notice.Facts{Kind: "moved", ID: "01J", Name: "weekly\r\nBcc: x\u0085run", User: "ann", State: "confirmed", Site: "cm5", PEs: "8", Start: "S", End: "E", URL: "https://hpc.example.org/#/promises/01J"}
	subject, text := notice.Letter(&f, "h1")
	const want = `weekly Bcc: x run: moved
A promise has another place, other PEs, another time or length.

id     01J
user   ann
state  confirmed
site   cm5
PEs    8
start  S
end    E

https://hpc.example.org/#/promises/01J

-- 
You asked Berth for this: berth notify show h1
No more of it: berth notify remove h1
`
	if subject != "[Berth] weekly Bcc: x run" || text != want {
		t.Errorf("%q\n%s", subject, text)
	}
	f = notice.Facts{Kind: "lost", ID: "01J", Name: strings.Repeat("ü", 300)}
	if subject, _ = notice.Letter(&f, "h1"); subject != "[Berth] "+strings.Repeat("ü", 99)+"…" {
		t.Errorf("%q", subject)
	}
	f.Name = " \t"
	if subject, _ = notice.Letter(&f, "h1"); subject != "[Berth] 01J" {
		t.Errorf("%q", subject)
	}
}

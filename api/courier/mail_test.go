package courier_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"mime"
	"net"
	netmail "net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/courier"
)

// relay is an SMTP server on this machine that writes down what it is sent.
type relay struct {
	*smtp.Server
	address  string
	user     string // that it wants; empty is none
	password string

	sender, rcpt, data error // what it answers; nil is that it takes it
	cuts               bool  // it closes the connection in the middle of a message

	mu    sync.Mutex
	got   []string
	froms []string
	tos   []string
}

// serve has a relay take connections; with a certificate it offers STARTTLS.
func (r *relay) serve(t *testing.T, certificate *tls.Certificate) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.Server = smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) { return &session{r, c}, nil }))
	r.Domain, r.AllowInsecureAuth, r.ErrorLog = "relay.example.org", false, quiet{}
	if certificate != nil {
		r.TLSConfig = &tls.Config{Certificates: []tls.Certificate{*certificate}, MinVersion: tls.VersionTLS12}
	}
	r.address = listener.Addr().String()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = r.Serve(listener)
	}()
	t.Cleanup(func() {
		_ = r.Close()
		_ = listener.Close() // which Close does not know of until Serve has begun
		<-ended
	})
	return r
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}
func (quiet) Println(...any)        {}

type session struct {
	*relay
	conn *smtp.Conn
}

func (s *session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != s.user || password != s.password {
			return smtp.ErrAuthFailed
		}
		return nil
	}), nil
}

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.froms = append(s.froms, from)
	return s.sender
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tos = append(s.tos, to)
	return s.rcpt
}

func (s *session) Data(from io.Reader) error {
	if s.cuts {
		_ = s.conn.Conn().Close()
		return io.ErrUnexpectedEOF
	}
	text, err := io.ReadAll(from)
	if err != nil {
		return err
	}
	if s.data == nil {
		s.mu.Lock()
		s.got = append(s.got, string(text))
		s.mu.Unlock()
	}
	return s.data
}

func (*session) Reset()        {}
func (*session) Logout() error { return nil }

// authority makes a certificate for 127.0.0.1, and who vouches for it.
func authority(t *testing.T) (*tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	raw, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return &tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, pool
}

func letter() *courier.Letter {
	return &courier.Letter{User: "ann", To: "mailto:ann@example.org", ID: "evt_7_h", Subject: "[Berth] job", Text: "job: moved\n.\nend\n", At: time.Unix(1_795_262_400, 0).UTC(), Agent: "Berth/test"}
}

func mails(t *testing.T, o courier.Relay) *courier.Courier {
	t.Helper()
	if o.From == "" {
		o.From = "berth@example.org"
	}
	return open(t, courier.Options{Relay: &o})
}

// A letter comes whole through STARTTLS and a login, as one of a thread, and whatever a name has is in its subject alone.
func TestLettersAreBrought(t *testing.T) {
	certificate, roots := authority(t)
	r := (&relay{user: "berth", password: "pass word"}).serve(t, certificate)
	c := mails(t, courier.Relay{Address: r.address, User: "berth", Password: "pass word", Roots: roots})
	l := letter()
	l.First = "evt_5_h"
	l.Subject = "Re: [Berth] Zölle\r\nBcc: eve@example.net\r\n\r\nX: " + strings.Repeat("ü ", 90)
	if status, words, final := c.Mail(t.Context(), l); status != 250 || words != "" || final {
		t.Fatalf("%d %q %t", status, words, final)
	}
	if len(r.got) != 1 || len(r.tos) != 1 || r.tos[0] != "ann@example.org" || r.froms[0] != "berth@example.org" {
		t.Fatalf("%q from %q to %q", r.got, r.froms, r.tos)
	}
	m, err := netmail.ReadMessage(strings.NewReader(r.got[0]))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"From": "<berth@example.org>", "To": "<ann@example.org>", "Message-Id": "<evt_7_h@example.org>", "In-Reply-To": "<evt_5_h@example.org>", "References": "<evt_5_h@example.org>",
		"Auto-Submitted": "auto-generated", "User-Agent": "Berth/test", "Date": "Sat, 21 Nov 2026 12:00:00 +0000", "Bcc": "", "X": "",
	} {
		if got := m.Header.Get(name); got != want || len(m.Header[name]) > 1 {
			t.Errorf("%s: %q, want %q", name, m.Header[name], want)
		}
	}
	subject, err := (&mime.WordDecoder{}).DecodeHeader(m.Header.Get("Subject"))
	if want := "Re: [Berth] Zölle  Bcc: eve@example.net    X: " + strings.TrimSpace(strings.Repeat("ü ", 90)); err != nil || strings.TrimSpace(subject) != want {
		t.Errorf("%q, want %q: %v", subject, want, err)
	}
	body, err := io.ReadAll(m.Body)
	if err != nil || strings.ReplaceAll(string(body), "\r\n", "\n") != l.Text || !strings.HasPrefix(m.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("%q: %v", body, err)
	}
	for line := range strings.SplitSeq(r.got[0], "\r\n") {
		if len(line) > 998 {
			t.Errorf("a line of %d bytes", len(line))
		}
	}
}

// What a relay refuses for good is not tried again; what it refuses for now, what keeps it from being asked, and what an
// operator can mend is.
func TestRelaysThatDoNotTakeIt(t *testing.T) {
	certificate, roots := authority(t)
	down, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := down.Close(); err != nil {
		t.Fatal(err)
	}
	hangs, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hangs.Close() })
	refuse := func(code int, text string) error { return &smtp.SMTPError{Code: code, Message: text} }
	for name, x := range map[string]struct {
		relay  *relay // nil takes everything
		at     string
		with   courier.Relay
		plain  bool // the relay has no TLS
		status int
		words  string
		final  bool
	}{
		"unknown address":    {relay: &relay{rcpt: refuse(550, "ann@example.org: no such user")}, status: 550, words: "the address: no such user", final: true},
		"full mailbox":       {relay: &relay{rcpt: refuse(452, "full")}, status: 452, words: "full"},
		"a long answer":      {relay: &relay{rcpt: refuse(451, strings.Repeat("ä", 400))}, status: 451, words: "ä"},
		"content refused":    {relay: &relay{data: refuse(554, "spam")}, status: 554, words: "spam", final: true},
		"content later":      {relay: &relay{data: refuse(451, "later")}, status: 451, words: "later"},
		"sender refused":     {relay: &relay{sender: refuse(550, "who")}, status: 550, words: "who"},
		"cut in the middle":  {relay: &relay{cuts: true}, words: "EOF"},
		"wrong password":     {relay: &relay{user: "berth", password: "x"}, with: courier.Relay{User: "berth", Password: "y"}, words: "Authentication failed"},
		"no TLS":             {plain: true, words: "STARTTLS"},
		"no login offered":   {plain: true, with: courier.Relay{TLS: courier.TLSNone, User: "berth", Password: "y"}, words: "AUTH"},
		"unknown authority":  {with: courier.Relay{Roots: x509.NewCertPool()}, words: "certificate"},
		"down":               {at: down.Addr().String(), words: "refused"},
		"hangs":              {at: hangs.Addr().String(), with: courier.Relay{Patience: 200 * time.Millisecond}, words: "no answer in time"},
		"domain not allowed": {with: courier.Relay{Domains: []string{"hpc.example.org"}}, words: "hpc.example.org", final: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := x.relay
			if r == nil {
				r = &relay{}
			}
			offer := certificate
			if x.plain {
				offer = nil
			}
			r.serve(t, offer)
			x.with.Address = r.address
			if x.at != "" {
				x.with.Address = x.at
			}
			if x.with.Roots == nil {
				x.with.Roots = roots
			}
			began := time.Now()
			status, words, final := mails(t, x.with).Mail(t.Context(), letter())
			if status != x.status || !strings.Contains(words, x.words) || final != x.final || words == "" || len(words) > 300 {
				t.Errorf("%d %q %t, want %d, %q, %t", status, words, final, x.status, x.words, x.final)
			}
			if strings.Contains(words, "ann@") {
				t.Errorf("%q tells the address", words)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// A service that ends waits for no relay, neither before its first line nor behind a later one.
func TestAHangingRelayDelaysNoEnd(t *testing.T) {
	for _, hangsAfter := range []int{0, 1, 2, 3, 4} { // lines that it takes
		hangs, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			one, err := hangs.Accept()
			if err != nil {
				return
			}
			lines := bufio.NewReader(one)
			if _, err := io.WriteString(one, "220 relay.example.org\r\n"); err != nil {
				t.Error(err)
			}
			for range hangsAfter {
				if line, _ := lines.ReadString('\n'); line == "DATA\r\n" {
					_, _ = io.WriteString(one, "354 go on\r\n") // the client may have gone
				} else {
					_, _ = io.WriteString(one, "250 relay.example.org\r\n")
				}
			}
			_, _ = lines.ReadString('\n') // to which there is no answer
			stop()
			_, _ = io.Copy(io.Discard, one)
			_ = one.Close()
		}()
		c := mails(t, courier.Relay{Address: hangs.Addr().String(), TLS: courier.TLSNone, Patience: time.Hour})
		if status, words, final := c.Mail(ctx, letter()); status != 0 || words == "" || final {
			t.Errorf("after %d lines: %d %q %t", hangsAfter, status, words, final)
		}
		<-ended
		_ = hangs.Close()
	}
}

// An offer of TLS is taken, and done without where there is none.
func TestTLSThatIsOfferedIsTaken(t *testing.T) {
	certificate, roots := authority(t)
	for _, offer := range []*tls.Certificate{nil, certificate} {
		r := (&relay{}).serve(t, offer)
		c := mails(t, courier.Relay{Address: r.address, TLS: courier.TLSOffered, Roots: roots})
		if status, words, _ := c.Mail(t.Context(), letter()); status != 250 || len(r.got) != 1 {
			t.Errorf("offered %t: %d %q", offer != nil, status, words)
		}
	}
}

// What is no address, or is not allowed, is refused before anything is kept.
func TestAddressesOfEMail(t *testing.T) {
	free := courier.Relay{Address: "127.0.0.1:25", Domains: []string{courier.AnyDomain}}
	own := courier.Relay{Address: "127.0.0.1:25", Own: true}
	for _, x := range []struct {
		relay courier.Relay
		text  string
		code  berth.Code
	}{
		{free, "mailto:ann@Example.ORG", ""},
		{free, "mailto:a.n-n+x@sub.example.net", ""},
		{free, "mailto:ann", berth.Invalid},
		{free, "mailto:ann@", berth.Invalid},
		{free, "mailto:@example.org", berth.Invalid},
		{free, "mailto:ann@example.org,bob@example.org", berth.Invalid},
		{free, "mailto:ann@example.org?subject=x", berth.Invalid},
		{free, "mailto:Ann <ann@example.org>", berth.Invalid},
		{free, "mailto:\"a b\"@example.org", berth.Invalid},
		{free, "mailto:ann@example.org\r\nRCPT TO:<eve@example.net>", berth.Invalid},
		{free, "mailto:änn@example.org", berth.Invalid},
		{free, "mailto:ann@[127.0.0.1]", berth.Invalid},
		{free, "mailto:" + strings.Repeat("a", 300) + "@example.org", berth.Invalid},
		{free, "ann@example.org", berth.Invalid},
		{free, "https://example.org/ann@example.org", berth.Invalid},
		{own, "mailto:ann@example.org", ""},
		{own, "mailto:Ann@example.org", ""},
		{own, "mailto:bob@example.org", berth.Denied},
		{own, "mailto:ann@example.net", berth.Denied},
		{own, "mailto:ann@evil.example.org", berth.Denied},
	} {
		_, err := mails(t, x.relay).MailsTo("ann", x.text)
		if e, _ := errors.AsType[*berth.Error](err); (err == nil) != (x.code == "") || e != nil && e.Code != x.code {
			t.Errorf("%q: %v, want %q", x.text, err, x.code)
		}
	}
	if _, err := open(t, courier.Options{}).MailsTo("ann", "mailto:ann@example.org"); err == nil || !strings.Contains(err.Error(), "no e-mail") {
		t.Error(err)
	}
	for _, r := range []courier.Relay{
		{Address: "relay", From: "b@example.org"},
		{Address: "relay:0", From: "b@example.org"},
		{Address: ":25", From: "b@example.org"},
		{Address: "relay:25", From: "example.org"},
		{Address: "relay:25", From: "b@example.org", TLS: "maybe"},
	} {
		if err := r.Check(); err == nil {
			t.Errorf("%+v is a relay", r)
		}
	}
}

package courier

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	netmail "net/mail"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/wneessen/go-mail"

	"github.com/berth-hpc/berth"
)

// What of TLS (STARTTLS, RFC 3207) a relay has to have: it is required, taken if it is offered, or not used.
const (
	TLSRequired = "required"
	TLSOffered  = "offered"
	TLSNone     = "none"
)

// AnyDomain in a list of domains stands for all of them.
const AnyDomain = "*"

const (
	// MailScheme begins the address of a receiver by e-mail.
	MailScheme = "mailto:"
	maxAddress = 254 // RFC 5321, section 4.5.3.1.3, without the brackets
	// mailPatience is for how long a relay may take for one message. RFC 5321 allows it minutes for each command: such
	// a message is tried again.
	mailPatience = 30 * time.Second
	// atRelay is how many messages are brought to the relay at a time: what relays take from one client (postfix: 50) is
	// shared with others.
	atRelay = 8
	// mostWords is how many bytes of what a relay says are kept.
	mostWords = 200
)

// Relay says how messages get to addresses of e-mail.
type Relay struct {
	Address        string // host and port of the SMTP relay
	TLS            string // TLSRequired, TLSOffered or TLSNone; empty is TLSRequired
	User, Password string // empty if the relay wants none
	From           string // address that messages come from
	// Patience is for how long the relay may take for a message; 0 is 30 s.
	Patience time.Duration
	// Domains are those of the addresses that messages may be sent to; none is the domain of From, and AnyDomain all.
	Domains []string
	// Own allows a user only the addresses that have their name before the @.
	Own bool
	// Roots are the authorities of the relay's certificate; nil are those of the machine. Only tests set it.
	Roots *x509.CertPool
}

// Check returns an error of code Invalid for a relay that cannot be one. It asks nothing of the relay itself.
func (r *Relay) Check() error {
	_, err := newMailer(*r)
	return err
}

// mailer brings messages to a relay.
type mailer struct {
	Relay
	host    string
	port    int
	domains []string
	free    chan struct{}
}

func newMailer(r Relay) (*mailer, error) {
	host, text, err := net.SplitHostPort(r.Address)
	port, bad := strconv.ParseUint(text, 10, 16)
	if err != nil || bad != nil || host == "" || port == 0 {
		return nil, berth.Errorf(berth.Invalid, "mail", "relay %.80q: want host and port, such as smtp.example.org:587", r.Address)
	}
	r.TLS, r.Patience = cmp.Or(r.TLS, TLSRequired), cmp.Or(r.Patience, mailPatience)
	if !slices.Contains([]string{TLSRequired, TLSOffered, TLSNone}, r.TLS) {
		return nil, berth.Errorf(berth.Invalid, "mail", "tls %.80q: want %s, %s or %s", r.TLS, TLSRequired, TLSOffered, TLSNone)
	}
	from, why := plainAddress(r.From)
	if why != "" {
		return nil, berth.Errorf(berth.Invalid, "mail", "from %.80q: %s", r.From, why)
	}
	r.From = from
	m := &mailer{Relay: r, host: host, port: int(port), free: make(chan struct{}, atRelay)}
	for _, domain := range r.Domains {
		m.domains = append(m.domains, strings.ToLower(domain))
	}
	if len(m.domains) == 0 {
		m.domains = []string{domainOf(from)}
	}
	return m, nil
}

// plainAddress returns an address of e-mail with its domain in small letters, or why a text is none: only
// what needs no quotes and no extension of SMTP is taken.
func plainAddress(text string) (address, why string) {
	const want = "want an address of e-mail such as ann@example.org"
	switch {
	case len(text) > maxAddress:
		return "", fmt.Sprintf("%d bytes; want at most %d", len(text), maxAddress)
	case strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c >= 0x7f || strings.ContainsRune(`"(),:;<>[\]`, c) }):
		return "", want + ", of ASCII letters without spaces, quotes and brackets"
	}
	parsed, err := netmail.ParseAddress(text)
	if err != nil || parsed.Address != text || strings.Count(text, "@") != 1 {
		return "", want
	}
	local, domain, _ := strings.Cut(text, "@")
	if strings.ContainsFunc(domain, func(c rune) bool { return c != '-' && c != '.' && !unicode.IsLetter(c) && !unicode.IsDigit(c) }) {
		return "", want
	}
	return local + "@" + strings.ToLower(domain), ""
}

func domainOf(address string) string { return address[strings.IndexByte(address, '@')+1:] }

// MailsTo reads an address of e-mail for messages to a user: mailto:ann@example.org. Errors: Unavailable
// if the service sends no e-mail, Denied for an address that the operator does not allow the user.
func (c *Courier) MailsTo(user, text string) (address string, err error) {
	if c.mail == nil {
		return "", berth.Errorf(berth.Unavailable, "url", "this service sends no e-mail: its operator has named no relay (mail in the configuration)")
	}
	bare, is := strings.CutPrefix(text, MailScheme)
	if !is {
		return "", berth.Errorf(berth.Invalid, "url", "want an address of e-mail such as %sann@example.org", MailScheme)
	}
	address, why := plainAddress(bare)
	if why != "" {
		return "", berth.Errorf(berth.Invalid, "url", "%s", why)
	}
	return address, c.mail.allows(user, address)
}

// allows returns an error of code Denied for an address that a user may not have messages sent to.
func (m *mailer) allows(user, address string) error {
	if domain := domainOf(address); !slices.Contains(m.domains, domain) && !slices.Contains(m.domains, AnyDomain) {
		return berth.Errorf(berth.Denied, "url", "e-mail to addresses of %s is not allowed here; an operator allows domains with mail.domains, now: %s", domain, strings.Join(m.domains, ", "))
	}
	local, _, _ := strings.Cut(address, "@")
	if m.Own && !strings.EqualFold(local, user) && !strings.EqualFold(address, user) {
		return berth.Errorf(berth.Denied, "url", "%s may have e-mail sent only to the address with their own name, such as %s@%s (mail.own_only)", user, user, domainOf(address))
	}
	return nil
}

// Letter is a message by e-mail.
type Letter struct {
	User string // who it is for
	To   string // as MailsTo takes it
	// ID names the message, the same in each try, and First the first one of its thread, empty if this is the first.
	ID, First     string
	Subject, Text string
	At            time.Time // what it tells has happened then
	Agent         string    // the program that sends it
}

// Mail sends a letter by the relay. The status is the relay's last answer, 0 if there was none; words say
// why it failed, without the address, and are empty if the relay has taken it. Final says that it is in
// vain to try it again: the relay has refused the address or the letter for good, or the operator has.
func (c *Courier) Mail(ctx context.Context, l *Letter) (status int, words string, final bool) {
	to, err := c.MailsTo(l.User, l.To)
	if err != nil {
		e, is := errors.AsType[*berth.Error](err)
		return 0, err.Error(), is && e.Code == berth.Denied
	}
	m := c.mail
	select {
	case m.free <- struct{}{}:
		defer func() { <-m.free }()
	case <-ctx.Done():
		return 0, "it was not sent: the service ends", false
	}
	msg, err := m.write(l, to)
	if err != nil {
		return 0, err.Error(), true
	}
	return m.send(ctx, msg, to)
}

// write writes a letter. Values of headers are encoded (RFC 2047), so that no line of them becomes another header.
func (m *mailer) write(l *Letter, to string) (*mail.Msg, error) {
	msg := mail.NewMsg(mail.WithNoDefaultUserAgent(), mail.WithEncoding(mail.EncodingQP))
	if err := errors.Join(msg.From(m.From), msg.To(to)); err != nil {
		return nil, fmt.Errorf("it cannot be written: %w", err)
	}
	at := "@" + domainOf(m.From)
	msg.SetMessageIDWithValue(l.ID + at)
	if l.First != "" {
		msg.SetGenHeaderPreformatted(mail.HeaderInReplyTo, "<"+l.First+at+">")
		msg.SetGenHeaderPreformatted(mail.HeaderReferences, "<"+l.First+at+">")
	}
	msg.SetDateWithValue(l.At)
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834
	msg.SetGenHeader("X-Auto-Response-Suppress", "All")  // what Exchange asks instead
	msg.SetUserAgent(l.Agent)
	msg.Subject(oneLine(l.Subject))
	msg.SetBodyString(mail.TypeTextPlain, l.Text)
	return msg, nil
}

// oneLine replaces what is not to be shown of a text.
func oneLine(text string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsControl(c) || c == '\u2028' || c == '\u2029' {
			return ' '
		}
		return c
	}, text)
}

// send brings a message to the relay, within its patience.
func (m *mailer) send(ctx context.Context, msg *mail.Msg, to string) (status int, words string, final bool) {
	ctx, cancel := context.WithTimeout(ctx, m.Patience)
	defer cancel()
	hangUp := func() {}
	defer func() { hangUp() }() // what is of interest has been answered
	options := []mail.Option{
		mail.WithPort(m.port), mail.WithTimeout(m.Patience), mail.WithoutNoop(), mail.WithoutRset(),
		mail.WithTLSConfig(&tls.Config{ServerName: m.host, RootCAs: m.Roots, MinVersion: tls.VersionTLS12}),
		mail.WithTLSPolicy(map[string]mail.TLSPolicy{TLSRequired: mail.TLSMandatory, TLSOffered: mail.TLSOpportunistic, TLSNone: mail.NoTLS}[m.TLS]),
		mail.WithDialContextFunc(func(dialled context.Context, network, address string) (net.Conn, error) {
			plain, err := (&net.Dialer{}).DialContext(dialled, network, address)
			if err != nil {
				return nil, err //nolint:wrapcheck // it is what failed
			}
			hangUp = func() { _ = plain.Close() }
			context.AfterFunc(ctx, hangUp) // what hangs fails then
			return &bounded{plain}, plain.SetDeadline(time.Now().Add(m.Patience))
		}),
	}
	if m.User != "" {
		options = append(options, mail.WithUsername(m.User), mail.WithPassword(m.Password), mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover))
	}
	client, err := mail.NewClient(m.host, options...)
	if err != nil {
		return 0, "the relay cannot be asked: " + err.Error(), false
	}
	talks, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return 0, said(ctx, "the relay is not ready: ", err, to), false
	}
	err = client.SendWithSMTPClient(talks, msg)
	if msg.IsDelivered() {
		_ = client.CloseWithSMTPClient(talks) // it has taken the message, however it parts
		return statusTaken, "", false
	}
	refused, is := errors.AsType[*mail.SendError](err)
	if !is {
		return 0, said(ctx, "", err, to), false
	}
	if status = refused.ErrorCode(); status >= statusNever {
		final = slices.Contains([]mail.SendErrReason{mail.ErrSMTPRcptTo, mail.ErrSMTPData, mail.ErrSMTPDataClose}, refused.Reason)
	}
	return status, said(ctx, "", err, to), final
}

// The answers of SMTP (RFC 5321, section 4.2): a message is taken, and one from this on is a refusal for good.
const (
	statusTaken = 250
	statusNever = 500
)

// said says why a message was not taken, in one line without the address it is for.
func said(ctx context.Context, before string, err error, to string) string {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return before + "no answer in time"
	}
	if t, is := errors.AsType[net.Error](err); is && t.Timeout() || strings.Contains(err.Error(), "i/o timeout") {
		return before + "no answer in time"
	}
	text, _, _ := strings.Cut(err.Error(), ", affected recipient(s): ")
	text, _, _ = strings.Cut(text, ", affected message ID: ")
	text = strings.ToValidUTF8(oneLine(strings.ReplaceAll(text, to, "the address")), "?")
	if len(text) > mostWords {
		text = strings.ToValidUTF8(text[:mostWords], "")
	}
	return before + text
}

// bounded is a connection whose deadline is not put off.
type bounded struct{ net.Conn }

func (*bounded) SetDeadline(time.Time) error { return nil }

// Package courier brings messages to addresses that users have named: bounded in time and size, to no
// address inside the network unless that is allowed, and without following where an answer points. It keeps
// addresses and secrets sealed. It does not know what messages say, nor when they are to be tried again.
package courier

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/wholefile"
)

// KeyFile has the key of sealed addresses and secrets in a data folder.
const KeyFile = "notices.key"

const (
	keyBytes = 32 // AES-256
	// patience is how long a receiver may take for an answer, as the specification of Standard Webhooks
	// recommends (15 to 30 s).
	patience = 15 * time.Second
	// maxAnswer is how much of an answer is read: no more than to use the connection again.
	maxAnswer = 4096
	maxURL    = 2048
	// idleAtHost is how many connections to a host are kept for some seconds: each receiver is sent up to four notices at a
	// time, and many may be at one host, such as that of a chat. idleInAll bounds them for all hosts.
	idleAtHost, idleInAll = 16, 256
)

// Options says what a courier works with.
type Options struct {
	// Folder keeps the key, which is made there if there is none.
	Folder string
	// Place keeps it instead of the folder, if it is not nil.
	Place Place
	// Allow are ranges inside the network that messages may be sent to, also without TLS.
	Allow []netip.Prefix
	// Relay is how messages get to addresses of e-mail; nil is not at all.
	Relay *Relay
	// Patience is how long a receiver may take; 0 is 15 s. Only tests set it.
	Patience time.Duration
	// Transport has the authorities of receivers; nil has those of the machine. Only tests set it.
	Transport *http.Transport
}

// Place keeps files, each whole.
type Place interface {
	// Load returns a file. The error is an fs.ErrNotExist if there is none.
	Load(name string) ([]byte, error)
	Save(name string, data []byte) error
}

// Courier sends messages. It may be used by many at once.
type Courier struct {
	seal    cipher.AEAD
	allow   []netip.Prefix
	secured *http.Client // https, to public and allowed addresses
	plain   *http.Client // http, to allowed addresses alone
	mail    *mailer      // nil if no e-mail is sent
}

// Open opens a courier.
func Open(o Options) (*Courier, error) {
	if o.Place == nil {
		o.Place = folder(o.Folder)
	}
	key, err := openKey(o.Place)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", KeyFile, err)
	}
	c := &Courier{allow: o.Allow}
	if c.seal, err = cipher.NewGCM(block); err != nil {
		return nil, fmt.Errorf("%s: %w", KeyFile, err)
	}
	c.secured, c.plain = c.client(&o, c.mayDial), c.client(&o, c.allows)
	if o.Relay != nil {
		if c.mail, err = newMailer(*o.Relay); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func openKey(in Place) ([]byte, error) {
	key, err := in.Load(KeyFile)
	if errors.Is(err, fs.ErrNotExist) {
		key = make([]byte, keyBytes)
		_, _ = rand.Read(key) // never fails
		return key, in.Save(KeyFile, key)
	}
	if err != nil {
		return nil, err
	}
	if len(key) != keyBytes {
		return nil, berth.Errorf(berth.Invalid, "notices", "%s has %d bytes, want %d; put it back from a backup, or move it away: the receivers of notices have to be added anew then", KeyFile, len(key), keyBytes)
	}
	return key, nil
}

// folder is the place of a service that has its files to itself.
type folder string

func (f folder) Load(name string) ([]byte, error) {
	path := filepath.Join(string(f), name)
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("notices: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, berth.Errorf(berth.Denied, "notices", "%s has mode %04o; only its owner may read it, so: chmod 600", path, info.Mode().Perm())
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("notices: %w", err)
	}
	return data, nil
}

func (f folder) Save(name string, data []byte) error {
	return wholefile.Write(filepath.Join(string(f), name), data)
}

// client returns a client that dials the addresses that may says, and no others, whatever a name
// has become since it was looked at.
func (c *Courier) client(o *Options, may func(netip.Addr) bool) *http.Client {
	dialer := &net.Dialer{Timeout: patience, Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil || !may(at.Addr()) {
			return &inside{at.Addr()}
		}
		return nil
	}}
	transport := &http.Transport{}
	if o.Transport != nil {
		transport = o.Transport.Clone()
	}
	transport.Proxy, transport.DialContext = nil, dialer.DialContext
	transport.ForceAttemptHTTP2 = true
	transport.MaxIdleConnsPerHost, transport.MaxIdleConns, transport.IdleConnTimeout = idleAtHost, idleInAll, 30*time.Second
	transport.MaxResponseHeaderBytes = 1 << 14
	transport.DisableCompression = true
	client := &http.Client{
		Transport: transport, Timeout: patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	if o.Patience > 0 {
		client.Timeout = o.Patience
	}
	return client
}

// inside is the error about an address that nothing is sent to.
type inside struct{ at netip.Addr }

func (e *inside) Error() string {
	return fmt.Sprintf("%s is an address inside the network, or one that is not allowed without TLS; an operator can allow it with notices_to", e.at)
}

// closed are ranges that are no addresses of the public internet, beside those that package netip knows:
// RFC 6890, and ranges that carry an IPv4 address which may be any.
var closed = prefixes("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
	"::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "fec0::/10")

func prefixes(list ...string) (all []netip.Prefix) {
	for _, text := range list {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func within(list []netip.Prefix, at netip.Addr) bool {
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(at) })
}

// allows reports whether an address inside the network is allowed.
func (c *Courier) allows(at netip.Addr) bool { return within(c.allow, at.Unmap().WithZone("")) }

// mayDial reports whether a message may be sent to an address: to a public one, or one that is allowed.
func (c *Courier) mayDial(at netip.Addr) bool {
	at = at.Unmap().WithZone("")
	return c.allows(at) || at.IsGlobalUnicast() && !at.IsPrivate() && !within(closed, at)
}

// Target is where messages go, and the secrets that sign them, the newest first.
type Target struct {
	URL     string   `json:"url"`
	Secrets []Secret `json:"secrets,omitempty"`
}

// Secret signs messages until a time, 0 for ever.
type Secret struct {
	Key   []byte     `json:"key"`
	Until berth.Time `json:"until,omitempty"`
}

// Keys returns the keys that are good at a time.
func (t *Target) Keys(now berth.Time) (keys [][]byte) {
	for _, s := range t.Secrets {
		if s.Until == 0 || now < s.Until {
			keys = append(keys, s.Key)
		}
	}
	return keys
}

// Seal writes down a target so that only who has the key can read it, for the receiver of an id alone.
func (c *Courier) Seal(id string, t *Target) []byte {
	text, err := json.Marshal(t)
	if err != nil {
		panic("courier: a target cannot be written: " + err.Error())
	}
	nonce := make([]byte, c.seal.NonceSize(), c.seal.NonceSize()+len(text)+c.seal.Overhead())
	_, _ = rand.Read(nonce) // never fails
	return c.seal.Seal(nonce, nonce, text, []byte(id))
}

// Open reads what Seal wrote. The error is of code Unavailable: it was sealed with another key.
func (c *Courier) Open(id string, sealed []byte) (Target, error) {
	var t Target
	n := c.seal.NonceSize()
	if len(sealed) < n {
		return t, errOtherKey
	}
	text, err := c.seal.Open(nil, sealed[:n], sealed[n:], []byte(id))
	if err != nil || json.Unmarshal(text, &t) != nil {
		return t, errOtherKey
	}
	return t, nil
}

var errOtherKey = berth.Errorf(berth.Unavailable, "notices", "its address and secrets were sealed with another %s than the service has now; put that back from a backup, or give the address anew", KeyFile)

// CheckURL reads an address that messages are to be sent to. What its name stands for is looked at whenever
// something is sent.
func (c *Courier) CheckURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case len(text) > maxURL:
		return nil, berth.Errorf(berth.Invalid, "url", "%d bytes; want at most %d", len(text), maxURL)
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "":
		return nil, berth.Errorf(berth.Invalid, "url", "not an address such as https://hooks.example.org/berth")
	case u.User != nil || u.Fragment != "":
		return nil, berth.Errorf(berth.Invalid, "url", "it has a user or a fragment, which are not sent; want an address such as https://hooks.example.org/berth")
	}
	at, notIP := netip.ParseAddr(u.Hostname())
	switch {
	case notIP == nil && u.Scheme == "https" && !c.mayDial(at), notIP == nil && u.Scheme == "http" && !c.allows(at):
		return nil, berth.Errorf(berth.Denied, "url", "%v", &inside{at})
	case u.Scheme == "http" && len(c.allow) == 0:
		return nil, berth.Errorf(berth.Invalid, "url", "http: want https, so that what is told cannot be read on the way")
	}
	return u, nil
}

// Post sends a message. The status is that of the answer, 0 if there was none; words say why it
// failed, without the address, which may be a secret, and are empty if the receiver has taken it.
func (c *Courier) Post(ctx context.Context, to string, header http.Header, body []byte) (status int, words string) {
	u, err := c.CheckURL(to)
	if err != nil {
		return 0, err.Error()
	}
	client := c.secured
	if u.Scheme == "http" {
		client = c.plain
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(body))
	if err != nil {
		return 0, "the address cannot be asked"
	}
	request.Header = header
	answer, err := client.Do(request)
	if err != nil {
		return 0, why(err)
	}
	defer func() { _ = answer.Body.Close() }()                           // only read from
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxAnswer+1)) // the answer is its status
	switch status = answer.StatusCode; {
	case status >= 200 && status < 300:
		return status, ""
	case status >= 300 && status < 400:
		return status, "a redirection, which is not followed: " + http.StatusText(status)
	}
	return status, strings.TrimSpace(fmt.Sprintf("%d %s", status, http.StatusText(status)))
}

// why says why there was no answer.
func why(err error) string {
	if in, is := errors.AsType[*inside](err); is {
		return in.Error()
	}
	if t, is := errors.AsType[net.Error](err); is && t.Timeout() {
		return "no answer in time"
	}
	if of, is := errors.AsType[*url.Error](err); is {
		err = of.Err
	}
	return fmt.Sprintf("%.200s", err.Error())
}

// Package client speaks to a service of this kind over HTTP. It sends what it is
// told, and turns what comes back into forms and errors; it decides nothing and
// keeps nothing but connections.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
)

// Client speaks to one service as the owner of one token. It is safe for
// concurrent use.
//
// The errors of its methods are *berth.Error, several joined if several fields
// are at fault, with the code of the service; of code Unavailable if it does not
// answer; and those of the context.
type Client struct {
	base   string
	server string // base, or the path of a Unix socket as a URL
	near   bool   // it is on this machine
	token  string
	http   *http.Client
	renew  func(ctx context.Context) (string, error) // instead of token; nil for token
	sign   Signer
	asked  atomic.Pointer[string] // the challenge that Signer has met
}

// Call is what a Signer makes a credential for.
type Call struct {
	Method, URI string // as the service sees them
	Body        []byte
	Bound       bool // the body is known
}

// Signer makes a credential for a call: the value of the header Authorization for a challenge of the
// service, which is a value of WWW-Authenticate. ok is false if the challenge is not for it.
type Signer func(ctx context.Context, challenge string, call Call) (header string, ok bool, err error)

// Sign has calls of a client without a token make a credential each if the service asks for one. It is
// to be called before the first of them.
func (c *Client) Sign(s Signer) { c.sign = s }

// Renew has calls carry the token that a function returns, instead of that of New: one that expires and is renewed. It is
// called for each of them, at once by several if calls are, and is to be set before the first.
func (c *Client) Renew(token func(ctx context.Context) (string, error)) { c.renew = token }

// New returns a client of the service at a URL such as http://127.0.0.1:7117, or at a Unix socket, such
// as unix:///run/berth/berth.sock. h may be nil. The error is of code Invalid: no such URL.
func New(server, token string, h *http.Client) (*Client, error) {
	if path, is := strings.CutPrefix(server, "unix://"); is && strings.HasPrefix(path, "/") {
		c, err := New("http://localhost", token, socketClient(path)) // the name of this machine for itself
		if err == nil {
			c.server = server
		}
		return c, err
	}
	u, err := url.Parse(server)
	switch {
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" || u.User != nil:
		return nil, berth.Errorf(berth.Invalid, "server", "%q; want a URL such as http://127.0.0.1:7117, or unix:///run/berth/berth.sock", server)
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return nil, berth.Errorf(berth.Invalid, "token", "holds a space or a control character; want one word")
	case h == nil:
		h = http.DefaultClient
	}
	base := strings.TrimSuffix(u.String(), "/")
	return &Client{base: base, server: base, near: Loopback(u.Hostname()), token: token, http: h}, nil
}

// socketClient returns what speaks HTTP over a Unix socket.
func socketClient(path string) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}}
}

// Server returns the URL of the service, without a slash at its end.
func (c *Client) Server() string { return c.server }

// Exposed reports whether the client sends a token where others can read it: over
// http:// to something else than this machine itself.
func (c *Client) Exposed() bool {
	u, err := url.Parse(c.base)
	return err == nil && (c.token != "" || c.renew != nil) && u.Scheme == "http" && !Loopback(u.Hostname())
}

// Loopback reports whether a host is this machine to itself alone. An empty one, which
// is every address to listen on, is not.
func Loopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.Unmap().IsLoopback()
}

// Action is how something is done. The zero value does it whatever the version,
// and perhaps twice if it is sent twice.
type Action struct {
	Key     string // makes asking twice the same as asking once
	Version uint64 // that was seen; of another one nothing is done, with code Conflict
}

func (a Action) set(h http.Header) {
	if a.Key != "" {
		h.Set("Idempotency-Key", a.Key)
	}
	if a.Version != 0 {
		h.Set("If-Match", `"`+strconv.FormatUint(a.Version, 10)+`"`)
	}
}

// maxAnswer bounds what is read of an answer: a page of 999 reservations of a
// thousand nodes each has 30 MB.
const maxAnswer = 64 << 20

// maxWhole is the longest answer for which there is memory before it comes.
const maxWhole = 1 << 20

// send sends something and reads the answer into out, unless that is nil.
func (c *Client) send(ctx context.Context, method, path string, action Action, in, out any) error {
	var body io.Reader = http.NoBody
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("%s %s: %w", method, path, err)
		}
		body = bytes.NewReader(data)
	}
	r, err := c.request(ctx, method, path, body)
	if err != nil {
		return err
	}
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	action.set(r.Header)
	answer, err := c.do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }() // only read from
	data, err := read(answer)
	switch {
	case err != nil:
		return c.unreachable(ctx, err)
	case out == nil || len(data) == 0:
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return berth.Errorf(berth.Unavailable, "", "%s answers something else than this service would (%v)", c.server, err)
	}
	return nil
}

// read returns what is read of an answer.
func read(answer *http.Response) ([]byte, error) {
	if n := answer.ContentLength; 0 < n && n <= maxWhole {
		data := make([]byte, n+1) // one more, to see the end, behind which the connection may be used again
		got, err := io.ReadFull(answer.Body, data)
		if int64(got) == n && errors.Is(err, io.ErrUnexpectedEOF) {
			err = nil
		}
		return data[:got], err
	}
	return io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
}

func (c *Client) request(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	token := c.token
	if c.renew != nil {
		if token, err = c.renew(ctx); err != nil {
			return nil, err
		}
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if c.near && method != http.MethodGet {
		// To pack and unpack an answer takes longer than to pass it on. Lists may be long, and may come through a tunnel.
		r.Header.Set("Accept-Encoding", "identity")
	}
	return r, nil
}

// do sends a request; the answer is none of a problem.
func (c *Client) do(r *http.Request) (*http.Response, error) {
	if err := c.seal(r, nil); err != nil {
		return nil, err
	}
	answer, err := c.http.Do(r) //nolint:bodyclose // the caller closes it
	if err != nil {
		return nil, c.unreachable(r.Context(), err)
	}
	if answer.StatusCode == http.StatusUnauthorized && c.sign != nil && c.asked.Load() == nil {
		again := r.Clone(r.Context())
		if r.GetBody != nil {
			if again.Body, err = r.GetBody(); err != nil {
				return nil, fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, err)
			}
		}
		if err := c.seal(again, answer.Header.Values("WWW-Authenticate")); err != nil {
			_ = answer.Body.Close() // only read from
			return nil, err
		}
		if c.asked.Load() != nil {
			_ = answer.Body.Close()                         // only read from
			if answer, err = c.http.Do(again); err != nil { //nolint:bodyclose // the caller closes it
				return nil, c.unreachable(r.Context(), err)
			}
		}
	}
	if answer.StatusCode == http.StatusServiceUnavailable {
		if answer, err = c.atLeader(r, answer); err != nil {
			return nil, err
		}
	}
	return c.judged(r, answer)
}

// judged returns an answer that is none of a problem.
func (c *Client) judged(r *http.Request, answer *http.Response) (*http.Response, error) {
	if answer.StatusCode < 300 {
		return answer, nil
	}
	defer func() { _ = answer.Body.Close() }() // only read from
	data, err := read(answer)
	if err != nil {
		return nil, c.unreachable(r.Context(), err)
	}
	var p form.Problem
	if err := json.Unmarshal(data, &p); err != nil || p.Code == "" {
		return nil, berth.Errorf(berth.Unavailable, "", "%s answers %s; is a service of Berth there?", c.server, answer.Status)
	}
	return nil, p.Err()
}

// seal adds a credential to a request of a client without a token, by the challenge that it has met or one
// of those given; if there is none, nothing.
func (c *Client) seal(r *http.Request, challenges []string) error {
	if c.sign == nil || c.token != "" || c.renew != nil {
		return nil
	}
	if met := c.asked.Load(); met != nil {
		challenges = []string{*met}
	}
	call := Call{Method: r.Method, URI: strings.TrimPrefix(r.URL.RequestURI(), c.prefix())}
	if r.GetBody != nil || r.Body == nil || r.Body == http.NoBody {
		call.Bound = true
		if r.GetBody != nil {
			body, err := r.GetBody()
			if err == nil {
				call.Body, err = io.ReadAll(body)
			}
			if err != nil {
				return fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, err)
			}
		}
	}
	for i := range challenges {
		header, is, err := c.sign(r.Context(), challenges[i], call)
		if err != nil {
			return err
		}
		if is {
			r.Header.Set("Authorization", header)
			c.asked.Store(&challenges[i])
			return nil
		}
	}
	return nil
}

// prefix is what all paths of the service have in common.
func (c *Client) prefix() string {
	u, err := url.Parse(c.base)
	if err != nil {
		return ""
	}
	return u.EscapedPath()
}

// unreachable says that the service does not answer, or that the caller no
// longer waits.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil {
		return fmt.Errorf("%s: %w", c.server, ended)
	}
	if u, is := errors.AsType[*url.Error](err); is {
		err = u.Err
	}
	return berth.Errorf(berth.Unavailable, "", "%s does not answer: %v; is berth serve running there?", c.server, err)
}

package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/berth-hpc/berth/api/form"
)

// mostHops is how often a client asks again at the service that is said to lead: while one
// takes over from another, both may name a third.
const mostHops = 3

// atLeader asks again at the service that leads, if the one that was asked stands by and
// says where that is, and as the owner of a token. That is sent over plain HTTP to
// another machine only if the first call was sent so too. Else it returns the answer.
func (c *Client) atLeader(r *http.Request, answer *http.Response) (*http.Response, error) {
	for range mostHops {
		if answer.StatusCode != http.StatusServiceUnavailable {
			break
		}
		data, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
		_ = answer.Body.Close() // only read from
		if err != nil {
			return nil, c.unreachable(r.Context(), err)
		}
		answer.Body = io.NopCloser(bytes.NewReader(data))
		to := c.leaderOf(data, r)
		if to == nil {
			break
		}
		again := r.Clone(r.Context())
		again.URL, again.Host = to, to.Host
		if r.GetBody != nil {
			if again.Body, err = r.GetBody(); err != nil {
				return nil, fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, err)
			}
		}
		led, err := c.http.Do(again) //nolint:bodyclose // the caller closes it
		switch {
		case err == nil:
			answer = led
			continue
		case r.Context().Err() != nil:
			return nil, c.unreachable(r.Context(), err)
		}
		break // the answer says who leads; it cannot be reached from here
	}
	return answer, nil
}

// leaderOf returns where a request is to be sent by an answer; nil if that is nowhere.
func (c *Client) leaderOf(answer []byte, r *http.Request) *url.URL {
	var p form.Problem
	if err := json.Unmarshal(answer, &p); err != nil || p.Leader == "" || c.token == "" {
		return nil
	}
	to, err := url.Parse(strings.TrimSuffix(p.Leader, "/") + strings.TrimPrefix(r.URL.RequestURI(), c.prefix()))
	if err != nil || to.Host == "" || to.Scheme != "https" && (to.Scheme != "http" || !Loopback(to.Hostname()) && !c.Exposed()) {
		return nil
	}
	return to
}

package rest

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-hpc/berth"
)

// version is the API that is asked. Slurm offers one for two years or so beside its newer ones.
const version = "v0.0.45"

const (
	// maxAnswer bounds an answer, which is read as it comes: a job is 9 kB of JSON, and a queue
	// may have 100,000.
	maxAnswer = 1 << 30
	// maxWords bounds what is read of an answer that is no JSON.
	maxWords = 4 << 10
	// maxSmall bounds the files of a token, which is some hundred bytes long, and of authorities, of which each
	// takes about two thousand.
	maxSmall = 256 << 10
	// atOnce is how many connections are kept, as many as there are makers of reservations.
	atOnce = 4
)

// wire carries questions to slurmrestd.
type wire struct {
	client  *http.Client
	base    string // of every address
	address string // as configured
	token   string // path of its file
	ca      string // path of the file with the authority of its certificate; empty for those of the machine
}

// newWire checks an address: a token must not cross a network in the clear.
func newWire(o Options) (*wire, error) {
	wrong := func(why string) error {
		return berth.Errorf(berth.Invalid, "rest", "%q: %s; want unix:///PATH, https://HOST:PORT or, on this machine, http://127.0.0.1:PORT", o.Address, why)
	}
	at, err := url.Parse(o.Address)
	if err != nil {
		return nil, wrong("it is no address")
	}
	transport := &http.Transport{MaxConnsPerHost: atOnce, MaxIdleConnsPerHost: atOnce}
	w := &wire{client: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, address: o.Address, token: o.JWT, ca: o.CA}
	transport.DialTLSContext = w.dialTLS
	switch {
	case o.CA != "" && at.Scheme != "https":
		return nil, berth.Errorf(berth.Invalid, "ca", "%q: a certificate authority is for https; %q is no such address", o.CA, o.Address)
	case at.RawQuery != "" || at.Fragment != "" || at.User != nil:
		return nil, wrong("it has more than a place")
	case at.Scheme == "unix":
		if at.Host != "" || !filepath.IsAbs(at.Path) {
			return nil, wrong("the path of a socket begins with a slash, so there are three")
		}
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", at.Path)
		}
		w.base = "http://slurmrestd"
	case at.Scheme != "https" && at.Scheme != "http" || at.Hostname() == "":
		return nil, wrong("it says neither unix:// nor https:// with a host")
	case at.Path != "" && at.Path != "/":
		return nil, wrong("it has a path; Berth knows the paths of slurmrestd")
	case o.JWT == "":
		return nil, berth.Errorf(berth.Invalid, "jwt", "missing: slurmrestd at %s wants a token; give the path of a file with one, as scontrol token writes it", o.Address)
	case at.Scheme == "http" && !here(at.Hostname()):
		return nil, wrong("the token would be sent to another machine in the clear")
	default:
		w.base = at.Scheme + "://" + at.Host
	}
	return w, nil
}

// dialTLS opens a connection to a slurmrestd that proves who it is, by a certificate of an authority of the
// machine or, if one is given, of that alone. Its file is read each time, so that who renews it tells nobody. If the
// proof fails nothing was asked.
func (w *wire) dialTLS(ctx context.Context, network, address string) (net.Conn, error) {
	const doubt = "slurmrestd does not prove who it is: "
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
	if w.ca != "" {
		text, err := readSmall(w.ca)
		if err != nil {
			return nil, refuse(doubt+"%v", err)
		}
		if config.RootCAs = x509.NewCertPool(); !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, refuse(doubt+"%s holds no certificate in PEM", w.ca)
		}
	}
	raw, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	conn := tls.Client(raw, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close() // it was not used
		if _, is := errors.AsType[tls.RecordHeaderError](err); is {
			return nil, refuse(doubt+"at %s it speaks no TLS", w.address)
		}
		return nil, refuse(doubt+"%v (at %s)", err, w.address)
	}
	return conn, nil
}

// readSmall reads a file with a token or certificates, bounded.
func readSmall(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	return io.ReadAll(io.LimitReader(file, maxSmall))
}

// here reports whether a host is this machine.
func here(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// token is a JSON web token and whom it is of.
type token struct{ text, user string }

// readToken reads the token of now. It may stand behind SLURM_JWT=, as scontrol writes it. That it is
// genuine slurmctld knows; that it is none, or is over, is told here, with its file.
func (w *wire) readToken(now time.Time) (token, error) {
	if w.token == "" {
		return token{}, nil
	}
	const renew = "; write one there with scontrol token username=USER lifespan=SECONDS, and a new one before it expires"
	text, err := readSmall(w.token)
	if err != nil {
		return token{}, refuse("slurmrestd needs a token: %v%s", err, renew)
	}
	t := token{text: strings.TrimPrefix(strings.TrimSpace(string(text)), "SLURM_JWT=")}
	parts := strings.Split(t.text, ".")
	var claims struct {
		Sun string `json:"sun"`
		Exp int64  `json:"exp"`
	}
	if len(parts) != 3 || !claimsOf(parts[1], &claims) || claims.Sun == "" {
		return token{}, refuse("slurmrestd needs a token: %s holds none of a user of Slurm%s", w.token, renew)
	}
	if claims.Exp != 0 && now.Unix() >= claims.Exp {
		return token{}, refuse("slurmrestd needs a token: that of %s in %s expired at %s%s", claims.Sun, w.token, time.Unix(claims.Exp, 0).UTC().Format(time.RFC3339), renew)
	}
	t.user = claims.Sun
	return t, nil
}

func claimsOf(part string, into any) bool {
	text, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(part, "="))
	return err == nil && json.Unmarshal(text, into) == nil
}

// trouble is one error in an answer.
type trouble struct {
	Description string `json:"description"`
	Number      int    `json:"error_number"`
	Error       string `json:"error"`
}

// words are Slurm's words for an error, which its commands say too, and what slurmrestd adds.
func (t *trouble) words() string {
	switch {
	case t.Error == "":
		return t.Description
	case t.Description == "":
		return t.Error
	}
	return t.Error + " (" + t.Description + ")"
}

// parts reads those members of an answer that are wanted, by name. All others are skipped as they come.
type parts map[string]func(*json.Decoder) error

// whole reads a member into a value.
func whole(into any) func(*json.Decoder) error {
	return func(d *json.Decoder) error { return d.Decode(into) }
}

// each reads the elements of a member, which is an array or null, one at a time.
func each[T any](take func(*T)) func(*json.Decoder) error {
	return func(d *json.Decoder) error {
		open, err := d.Token()
		if err != nil || open == nil {
			return err
		}
		if open != json.Delim('[') {
			return fmt.Errorf("%v is no list", open)
		}
		for d.More() {
			var one T
			if err := d.Decode(&one); err != nil {
				return err
			}
			take(&one)
		}
		_, err = d.Token()
		return err
	}
}

// read reads an answer.
func (p parts) read(from io.Reader) error {
	d := json.NewDecoder(from)
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return fmt.Errorf("it begins with %v: %w", open, err)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		key, _ := name.(string) // names are strings
		if take := p[key]; take != nil {
			err = take(d)
		} else {
			err = d.Decode(&json.RawMessage{})
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	_, err := d.Token()
	return err
}

// ask asks for a path below the version of the API, with a body if there is one, and reads what is wanted
// of the answer. What slurmrestd says no to is a refusedError; every other error leaves open what was done.
func (w *wire) ask(ctx context.Context, now time.Time, method, path string, body any, want parts) error {
	t, err := w.readToken(now)
	if err != nil {
		return err
	}
	var sent io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, w.base+"/slurm/"+version+"/"+path, sent)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/json")
	if sent != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if t.text != "" {
		request.Header.Set("X-SLURM-USER-NAME", t.user)
		request.Header.Set("X-SLURM-USER-TOKEN", t.text)
	}
	response, err := w.client.Do(request)
	if err != nil {
		var dial *net.OpError
		if errors.As(err, &dial) && dial.Op == "dial" {
			return refuse("slurmrestd does not answer at %s: %v", w.address, dial.Err)
		}
		return fmt.Errorf("slurmrestd at %s: %w", w.address, err)
	}
	defer func() { _ = response.Body.Close() }() // what was wanted is read
	from := &io.LimitedReader{R: response.Body, N: maxAnswer}
	if !strings.HasPrefix(response.Header.Get("Content-Type"), "application/json") {
		return w.plain(ctx, response, t)
	}
	var errs []trouble
	all := parts{"errors": whole(&errs)}
	if response.StatusCode < http.StatusBadRequest {
		maps.Copy(all, want)
	}
	if err := all.read(from); err != nil {
		if from.N <= 0 {
			return fmt.Errorf("slurmrestd wrote more than %d bytes", maxAnswer)
		}
		return fmt.Errorf("cannot read what slurmrestd says: %w", err)
	}
	switch {
	case len(errs) > 0:
		return refuse("%s", errs[0].words())
	case response.StatusCode >= http.StatusBadRequest:
		return refuse("slurmrestd says %s and not why", response.Status)
	}
	return nil
}

// plain explains an answer that is no JSON: slurmrestd has no such address, or it does not know us.
func (w *wire) plain(ctx context.Context, response *http.Response, t token) error {
	said, _ := io.ReadAll(io.LimitReader(response.Body, maxWords)) // what there is
	words := strings.Join(strings.Fields(string(said)), " ")
	switch response.StatusCode {
	case http.StatusNotFound:
		return w.elsewhere(ctx, t, words)
	case http.StatusUnauthorized, http.StatusForbidden:
		who := "its own user's connection"
		if t.user != "" {
			who = "the token of " + t.user + " in " + w.token
		}
		return refuse("slurmrestd does not take %s: %.200s", who, words)
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout: // it may have been asked all the same
		return refuse("slurmrestd is not reached behind %s, which says %s", w.address, response.Status)
	}
	return refuse("slurmrestd says %s and no JSON: %.200s", response.Status, words)
}

// offered finds versions of the API in the addresses that slurmrestd offers, newer and older ones.
var offered = regexp.MustCompile(`/slurm/(v0\.0\.([0-9]{1,4}))/`)

// elsewhere tells which versions slurmrestd does offer, which is for people: the kind of the answer is
// that ours is not there.
func (w *wire) elsewhere(ctx context.Context, t token, words string) error {
	const ours = "slurmrestd has no API " + version
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.base+"/openapi/v3", nil)
	if err != nil {
		return err
	}
	if t.text != "" {
		request.Header.Set("X-SLURM-USER-NAME", t.user)
		request.Header.Set("X-SLURM-USER-TOKEN", t.text)
	}
	response, err := w.client.Do(request)
	if err != nil {
		return refuse("%s: %.200s", ours, words)
	}
	defer func() { _ = response.Body.Close() }() // what was wanted is read
	const enough = 16 << 20
	text, err := io.ReadAll(io.LimitReader(response.Body, enough))
	if err != nil || response.StatusCode != http.StatusOK {
		return refuse("%s: %.200s", ours, words)
	}
	var known []int
	for _, m := range offered.FindAllSubmatch(bytes.ReplaceAll(text, []byte(`\/`), []byte("/")), -1) {
		n, _ := strconv.Atoi(string(m[2])) // at most four digits
		known = append(known, n)
	}
	if len(known) == 0 {
		return refuse("%s, nor any other that can be recognised", ours)
	}
	slices.Sort(known)
	names := make([]string, 0, len(known))
	for _, n := range slices.Compact(known) {
		names = append(names, fmt.Sprintf("v0.0.%d", n))
	}
	list := strings.Join(names, ", ")
	own, _ := strconv.Atoi(strings.TrimPrefix(version, "v0.0."))
	if known[len(known)-1] < own {
		return refuse("%s: it offers %s, with which nobody can make a reservation and read the configuration", ours, list)
	}
	return refuse("%s: it offers %s", ours, list)
}

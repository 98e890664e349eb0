package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/identity"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/service"
)

// call is one request of a client on its way.
type call struct {
	*api
	w    http.ResponseWriter
	r    *http.Request
	id   string // as it is on record
	by   service.Principal
	body []byte

	working  bool            // at the desk
	seat     string          // in whose turn: the owner of a service account for that
	secret   string          // with which it came, of a token or of a session
	token    token.Entry     // whose secret that is
	outdated <-chan struct{} // closed once tokens have changed

	undone    bool            // nothing was done, since another service leads
	caller    identity.Caller // who the machine or the site says that it is; zero with a token
	challenge string          // what may be shown beside a token, of a call without a good one
}

const (
	// bodyTime is how long a client may take to send one.
	bodyTime = 10 * time.Second
	maxKey   = 255
)

// readBody reads the body. It must be JSON, which a page of another site cannot
// make a browser send unasked.
func (c *call) readBody() error {
	kind, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return &statusError{http.StatusUnsupportedMediaType, berth.Errorf(berth.Invalid, "Content-Type", "%q; want application/json", c.r.Header.Get("Content-Type"))}
	}
	most := c.maxBody()
	if c.r.ContentLength > most {
		return tooLarge(most)
	}
	control := http.NewResponseController(c.w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTime)) // a recorder of a test has none
	var body []byte
	if c.r.ContentLength >= 0 {
		body = make([]byte, c.r.ContentLength)
		_, err = io.ReadFull(c.r.Body, body) // the server gives no more
	} else {
		body, err = io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, most))
	}
	_ = control.SetReadDeadline(time.Time{})
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return tooLarge(most)
	case err != nil:
		return &statusError{http.StatusRequestTimeout, berth.Errorf(berth.Invalid, "body", "cut off or not sent within %s", bodyTime)}
	}
	c.body = body
	if c.caller.BodyBound && sha256.Sum256(c.body) != c.caller.Body {
		return &statusError{http.StatusUnauthorized, berth.Errorf(berth.Denied, "Authorization", "munge credential: made for another body")}
	}
	c.rates.charge(c.asker(), len(c.body)/bytesAtOnce)
	if len(c.body) > lightBody {
		if err := c.begin(); err != nil {
			return err
		}
	}
	return valid(c.body)
}

func tooLarge(most int64) error {
	return &statusError{http.StatusRequestEntityTooLarge, berth.Errorf(berth.Invalid, "body", "larger than %d bytes", most)}
}

// statusError is a mistake with a status of its own.
type statusError struct {
	status int
	err    *berth.Error
}

func (e *statusError) Error() string { return e.err.Error() }

func (e *statusError) Unwrap() error { return e.err }

// ask returns what the headers say about an action: its key, and which version
// the client has seen.
func (c *call) ask() (service.Ask, error) {
	a := service.Ask{By: c.by, Key: c.r.Header.Get("Idempotency-Key"), Token: c.token.ID, Scopes: c.token.Scopes.String(), Address: c.address(), Request: c.id}
	if a.Key != "" {
		if len(a.Key) > maxKey || strings.ContainsFunc(a.Key, func(r rune) bool { return r < 0x20 || r > 0x7e }) {
			return a, berth.Errorf(berth.Invalid, "Idempotency-Key", "%.40q; want at most %d printable ASCII characters", a.Key, maxKey)
		}
		a.Body = digest(c.r.Method, c.r.URL.Path, c.body)
	}
	var err error
	a.IfVersion, err = parseMatch(c.r.Header.Get("If-Match"))
	return a, err
}

// digest returns the SHA-256 of what is asked under a key. Processors have instructions for
// this hash. Another hash without known collisions is not cheaper, nor is a shorter digest.
func digest(method, path string, body []byte) (sum [sha256.Size]byte) {
	var room [1024]byte // on the stack; most bodies fit into it
	begin := append(append(append(append(room[:0], method...), ' '), path...), '\n')
	if len(begin)+len(body) <= len(room) {
		return sha256.Sum256(append(begin, body...))
	}
	hash := sha256.New()
	_, _ = hash.Write(begin) // a hash takes everything
	_, _ = hash.Write(body)
	hash.Sum(sum[:0])
	return sum
}

// address returns where a call comes from, without its port.
func (c *call) address() string {
	if identity.OverSocket(c.r.Context()) {
		return string(identity.Socket)
	}
	host, _, err := net.SplitHostPort(c.r.RemoteAddr)
	if err != nil {
		return c.r.RemoteAddr // of a test, or of no network
	}
	return host
}

// parseMatch reads If-Match: 0 if any version will do.
func parseMatch(text string) (uint64, error) {
	if text == "" || text == "*" {
		return 0, nil
	}
	inner, begins := strings.CutPrefix(text, `"`)
	inner, ends := strings.CutSuffix(inner, `"`)
	version, err := strconv.ParseUint(inner, 10, 64)
	if !begins || !ends || err != nil || version == 0 {
		return 0, berth.Errorf(berth.Invalid, "If-Match", `%.40q; want the ETag of the reservation, such as "3", or *`, text)
	}
	return version, nil
}

func etag(version uint64) string { return `"` + strconv.FormatUint(version, 10) + `"` }

// buffers holds room for answers.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// maxPooled is the largest buffer that is kept; pages are larger, and rare.
const maxPooled = 1 << 16

// answer writes an answer.
func (c *call) answer(status int, v any) error {
	buffer := buffers.Get().(*bytes.Buffer)
	buffer.Reset()
	encoder := json.NewEncoder(buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return err
	}
	err := c.send(status, "application/json", buffer.Bytes())
	if buffer.Cap() <= maxPooled {
		buffers.Put(buffer)
	}
	return err
}

// query reads the query, and refuses what is no parameter of the endpoint and
// what is given twice.
func (c *call) query(params []param) (map[string]string, error) {
	if c.r.URL.RawQuery == "" {
		return nil, nil
	}
	var wrong faults
	given := map[string]string{}
	all, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil { // what of it can be read would be another question
		return nil, berth.Errorf(berth.Invalid, "query", "%v", err)
	}
	for name, values := range all {
		known := false
		for i := range params {
			known = known || params[i].name == name
		}
		switch {
		case !known:
			wrong.add(name, errors.New("unknown parameter"))
		case len(values) > 1:
			wrong.add(name, errors.New("given twice"))
		default:
			given[name] = values[0]
		}
	}
	wrong.sort()
	return given, wrong.err()
}

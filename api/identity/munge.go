package identity

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/berth-hpc/berth"
)

const (
	// mungeScheme is that of the header Authorization.
	mungeScheme = "Munge"
	// mungeLasts is how old a credential may be, and what its TTL is. Clocks of nodes differ by
	// a few seconds.
	mungeLasts = 60 * time.Second
	// maxCredential bounds what is given to unmunge; ours have about 400 bytes.
	maxCredential = 4096
	// decoders is how many unmunge run at once: junk from the network gets no more processes.
	decoders = 4
	// unbound stands where a credential is for any body.
	unbound = "-"
	// sealedAs begins the payload: a credential that was made for another program is no good here.
	sealedAs = "berth-1"
)

// Decoded is what munge says of a credential.
type Decoded struct {
	UID     uint32
	Encoded time.Time // by the clock of the node where it was made
	Decoded time.Time // by the clock of this one
	Payload string
}

// Unmunge decodes credentials. A credential that is no good is a *Refused; every other error says that
// munge cannot be asked.
type Unmunge func(ctx context.Context, credential string) (Decoded, error)

// Refused says why munge does not take a credential.
type Refused struct{ Why string }

func (r *Refused) Error() string { return r.Why }

// Credentials takes those of munge that were made for one service. It is safe for concurrent use.
type Credentials struct {
	realm  string
	decode Unmunge
	room   chan struct{}
	mu     sync.Mutex
	used   map[[sha256.Size]byte]time.Time // credential → when it is too old anyway
}

// NewCredentials returns what takes credentials for a realm, the name of the service in them. decode nil
// runs unmunge of this machine.
func NewCredentials(realm string, decode Unmunge) *Credentials {
	if decode == nil {
		decode = runUnmunge
	}
	return &Credentials{realm: realm, decode: decode, room: make(chan struct{}, decoders), used: map[[sha256.Size]byte]time.Time{}}
}

// sealed is what a credential says.
type sealed struct {
	uid   uint32
	body  [sha256.Size]byte
	bound bool
}

// open opens a credential for a call. Each is good once. Munge refuses those that it has decoded already;
// they are refused here too, as long as they are young enough, since munged forgets them when it is
// started again.
func (m *Credentials) open(ctx context.Context, credential, method, uri string) (sealed, error) {
	credential = strings.TrimSpace(credential)
	if len(credential) > maxCredential || !strings.HasPrefix(credential, "MUNGE:") {
		return sealed{}, noCredential("not a credential of munge")
	}
	select {
	case m.room <- struct{}{}:
	case <-ctx.Done():
		return sealed{}, berth.Errorf(berth.Unavailable, "Authorization", "too many credentials at once; try again")
	}
	said, err := m.decode(ctx, credential)
	<-m.room
	var refused *Refused
	switch {
	case errors.As(err, &refused):
		return sealed{}, noCredential(refused.Why)
	case err != nil:
		return sealed{}, berth.Errorf(berth.Unavailable, "Authorization", "munge does not answer on the machine of the service: %v", err)
	}
	if age := said.Decoded.Sub(said.Encoded); age > mungeLasts || age < -mungeLasts {
		return sealed{}, noCredential(fmt.Sprintf("made %s ago; want at most %s: look at the clocks of both machines", age, mungeLasts))
	}
	words := strings.Split(said.Payload, " ")
	const wanted = 5
	switch {
	case len(words) != wanted || words[0] != sealedAs:
		return sealed{}, noCredential("made for another program")
	case words[1] != m.realm:
		return sealed{}, noCredential(fmt.Sprintf("made for realm %.70q; this one is %q", words[1], m.realm))
	case words[2] != method || words[3] != uri:
		return sealed{}, noCredential(fmt.Sprintf("made for another call, %.10s %.100s", words[2], words[3]))
	}
	s := sealed{uid: said.UID}
	if words[4] != unbound {
		raw, err := hex.DecodeString(words[4])
		if err != nil || len(raw) != len(s.body) {
			return sealed{}, noCredential("made for a body of an unknown hash")
		}
		copy(s.body[:], raw)
		s.bound = true
	}
	if !m.first(sha256.Sum256([]byte(credential)), said.Decoded) {
		return sealed{}, noCredential("used before; each is good once")
	}
	return s, nil
}

// first notes a credential, and reports whether it was not used before.
func (m *Credentials) first(hash [sha256.Size]byte, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for other, until := range m.used {
		if now.After(until) {
			delete(m.used, other)
		}
	}
	if _, again := m.used[hash]; again {
		return false
	}
	m.used[hash] = now.Add(2 * mungeLasts)
	return true
}

// noCredential is the error about a credential that is no good. It has its own field, by which the answer
// is 401.
func noCredential(why string) error {
	return berth.Errorf(berth.Denied, "Authorization", "munge credential: %s", why)
}

// Seal returns the payload of a credential for a call, with the hash of its body; bound is false if the
// body is not known yet.
func Seal(realm, method, uri string, body []byte, bound bool) string {
	hash := unbound
	if bound {
		sum := sha256.Sum256(body)
		hash = hex.EncodeToString(sum[:])
	}
	return strings.Join([]string{sealedAs, realm, method, uri, hash}, " ")
}

// Realm returns the realm of a value of WWW-Authenticate, and false if it asks for no munge credential.
func Realm(challenge string) (string, bool) {
	rest, is := strings.CutPrefix(challenge, mungeScheme+` realm="`)
	realm, ends := strings.CutSuffix(rest, `"`)
	return realm, is && ends
}

// MakeHeader makes a credential with munge of this machine and returns the value of the header
// Authorization.
func MakeHeader(ctx context.Context, payload string) (string, error) {
	cmd := exec.CommandContext(ctx, "munge", "--ttl="+strconv.Itoa(int(mungeLasts/time.Second)))
	cmd.Stdin = strings.NewReader(payload)
	out, err := cmd.Output()
	if err != nil {
		return "", berth.Errorf(berth.Unavailable, "Authorization", "munge makes no credential: %s", said(err))
	}
	return mungeScheme + " " + strings.TrimSpace(string(out)), nil
}

// said is what a command wrote about its error.
func said(err error) string {
	if ended, is := errors.AsType[*exec.ExitError](err); is && len(ended.Stderr) > 0 {
		line, _, _ := bytes.Cut(ended.Stderr, []byte{'\n'})
		return string(line)
	}
	return err.Error()
}

// Exit codes of unmunge that are about the machine and not the credential: EMUNGE_SNAFU, _BAD_ARG,
// _OVERFLOW, _NO_MEMORY, _SOCKET, _TIMEOUT.
var mungeTroubles = map[int]bool{1: true, 2: true, 4: true, 5: true, 6: true, 7: true}

// Exit codes of unmunge about which it writes nothing: EMUNGE_CRED_EXPIRED, _REWOUND, _REPLAYED.
var mungeRefusals = map[int]string{
	15: "expired; make another one, and look at the clocks of both machines",
	16: "made in the future; look at the clocks of both machines",
	17: "used before; each is good once",
}

// runUnmunge decodes a credential with unmunge of this machine.
func runUnmunge(ctx context.Context, credential string) (Decoded, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "unmunge", "--numeric", "--keys=STATUS,ENCODE_TIME,DECODE_TIME,UID")
	cmd.Env = append(cmd.Environ(), "LC_ALL=C")
	cmd.WaitDelay = time.Second
	cmd.Stdin = strings.NewReader(credential)
	out, err := cmd.Output()
	if err != nil {
		ended, is := errors.AsType[*exec.ExitError](err)
		if !is || mungeTroubles[ended.ExitCode()] || ended.ExitCode() < 0 {
			return Decoded{}, errors.New(said(err))
		}
		if why, known := mungeRefusals[ended.ExitCode()]; known {
			return Decoded{}, &Refused{why}
		}
		return Decoded{}, &Refused{strings.TrimPrefix(said(err), "unmunge: Error: ")}
	}
	head, payload, found := bytes.Cut(out, []byte("\n\n"))
	if !found {
		return Decoded{}, errors.New("unmunge answers in an unknown form")
	}
	d := Decoded{Payload: string(payload)}
	given := map[string]string{}
	for line := range strings.SplitSeq(string(head), "\n") {
		name, value, _ := strings.Cut(line, ":")
		given[name] = strings.TrimSpace(value)
	}
	uid, err := strconv.ParseUint(given["UID"], 10, 32)
	encoded, wrong := strconv.ParseInt(given["ENCODE_TIME"], 10, 64)
	decoded, bad := strconv.ParseInt(given["DECODE_TIME"], 10, 64)
	if err = errors.Join(err, wrong, bad); err != nil {
		return Decoded{}, fmt.Errorf("unmunge answers in an unknown form: %w", err)
	}
	d.UID, d.Encoded, d.Decoded = uint32(uid), time.Unix(encoded, 0), time.Unix(decoded, 0)
	return d, nil
}

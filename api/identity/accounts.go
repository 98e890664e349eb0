package identity

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

// Account is a user of the machine.
type Account struct {
	Name   string
	UID    uint32
	Groups []string
}

// Directory answers about accounts: by a name or a number, false if there is none. The error says
// that it cannot be known now.
type Directory func(ctx context.Context, key string) (Account, bool, error)

const (
	// remembered is for how long an answer of the directory counts: a new group takes effect
	// within that time.
	remembered = 30 * time.Second
	// maxRemembered bounds the memory.
	maxRemembered = 10_000
	// lookupTime is how long the directory may take.
	lookupTime = 10 * time.Second
)

// Accounts looks accounts up and remembers them for half a minute. It is safe for concurrent use.
type Accounts struct {
	ask  Directory
	mu   sync.Mutex
	seen map[string]looked
}

type looked struct {
	account Account
	known   bool
	until   time.Time
}

// NewAccounts returns accounts by a directory; nil is the machine's, through getent and id, which know
// the same users as all other programs.
func NewAccounts(ask Directory) *Accounts {
	if ask == nil {
		ask = machine
	}
	return &Accounts{ask: ask, seen: map[string]looked{}}
}

// ByID returns the account of a number.
func (a *Accounts) ByID(ctx context.Context, uid uint32) (Account, error) {
	account, known, err := a.look(ctx, strconv.FormatUint(uint64(uid), 10))
	if err == nil && !known {
		err = berth.Errorf(berth.Denied, "user", "uid %d has no account on the machine of the service", uid)
	}
	return account, err
}

// ByName returns the account of a name.
func (a *Accounts) ByName(ctx context.Context, name string) (Account, error) {
	if !site.ValidUser(name) {
		return Account{}, berth.Errorf(berth.Denied, "user", "%.70q is not a valid user name", name)
	}
	account, known, err := a.look(ctx, name)
	if err == nil && (!known || account.Name != name) { // a name of digits is looked up as a number
		return Account{}, berth.Errorf(berth.Denied, "user", "%s has no account on the machine of the service", name)
	}
	return account, err
}

func (a *Accounts) look(ctx context.Context, key string) (Account, bool, error) {
	now := time.Now()
	a.mu.Lock()
	was, is := a.seen[key]
	a.mu.Unlock()
	if is && now.Before(was.until) {
		return was.account, was.known, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	account, known, err := a.ask(ctx, key)
	if err != nil {
		return Account{}, false, berth.Errorf(berth.Unavailable, "user", "the directory of users does not answer: %v", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.seen) >= maxRemembered {
		clear(a.seen)
	}
	a.seen[key] = looked{account, known, now.Add(remembered)}
	return account, known, nil
}

// machine asks the directories of this machine.
func machine(ctx context.Context, key string) (Account, bool, error) {
	out, err := output(ctx, "getent", "passwd", "--", key)
	var ended *exec.ExitError
	const noSuchKey = 2
	switch {
	case errors.As(err, &ended) && ended.ExitCode() == noSuchKey:
		return Account{}, false, nil
	case err != nil:
		return Account{}, false, err
	}
	line, _, _ := bytes.Cut(out, []byte{'\n'})
	fields := strings.Split(string(line), ":")
	if len(fields) < 4 || !site.ValidUser(fields[0]) {
		return Account{}, false, nil
	}
	uid, err := strconv.ParseUint(fields[2], 10, 32)
	if err != nil {
		return Account{}, false, berth.Errorf(berth.Unavailable, "user", "getent says uid %q", fields[2])
	}
	// Names of groups may have spaces, which -z leaves alone.
	groups, err := output(ctx, "id", "-Gnz", "--", fields[0])
	if err != nil {
		return Account{}, false, err
	}
	a := Account{Name: fields[0], UID: uint32(uid)}
	for name := range strings.SplitSeq(string(groups), "\x00") {
		if name != "" {
			a.Groups = append(a.Groups, name)
		}
	}
	return a, true, nil
}

func output(ctx context.Context, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = time.Second
	return cmd.Output()
}

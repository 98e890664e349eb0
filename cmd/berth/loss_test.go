package main

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/journaltest"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/journal/sqlite/lossy"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/fake"
)

var lossSeeds = flag.Int("loss.seeds", 1, "from how many seeds services that are asked over HTTP lose power")

// within hands calls to a service in this process.
type within struct{ http.Handler }

func (w within) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := httptest.NewRecorder()
	w.ServeHTTP(answer, r)
	return answer.Result(), nil
}

// servesOn starts a service on a journal: the sites of the test of kills, the managed one
// a fake. Close stops it.
func servesOn(t *testing.T, store journal.Store, tokens *token.Store) (host *service.Host, calls http.RoundTripper) {
	t.Helper()
	description := fake.Nodes(4, 1)
	here, layout, err := site.Import("here", &description, site.UnitNode, berth.Early)
	if err != nil {
		t.Fatal(err)
	}
	here.Managed = true
	adapter := fake.New(fake.Config{Name: "here", Description: description}, berth.Time(time.Now().Unix()))
	host, err = service.Open(t.Context(), service.Options{
		Config: engine.Config{Sites: []berth.Site{
			{Name: "licensed", Pools: []berth.Pool{{Name: "p", PEs: 16, Binding: berth.Late}}, Software: []berth.Software{{Name: "solver", Licences: 2}}},
			{Name: "there", Pools: []berth.Pool{{Name: "p", PEs: 8, Binding: berth.Early}}},
			here,
		}},
		Journal: store, Version: "test", SnapshotEvery: 300,
		Managers: map[string]service.Manager{"here": {Kind: "fake", Adapter: adapter, Layout: layout, Every: time.Second}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return host, within{api.New(api.Options{Service: host, Tokens: tokens})}
}

// newAsker returns a caller with tokens of an operator, a user and a viewer.
func newAsker(t *testing.T, seed uint64) (*asker, *token.Store) {
	t.Helper()
	tokens, err := token.Open(t.TempDir(), "operator", berth.Time(time.Now().Unix()))
	if err != nil {
		t.Fatal(err)
	}
	a := &asker{url: "http://service", rng: rand.New(rand.NewPCG(seed, 4)), tokens: map[string]string{}, pairs: map[string]int{}}
	for user, role := range map[string]service.Role{"operator": service.Operator, "alice": service.User, "vera": service.Viewer} {
		secret, _, err := tokens.Add(token.Wanted{User: user, Role: role}, berth.Time(time.Now().Unix()))
		if err != nil {
			t.Fatal(err)
		}
		a.tokens[user] = secret
	}
	return a, tokens
}

// replayed asks all over again, and returns how many answers are as they were and what is
// wrong with the others.
func (a *asker) replayed(calls []*keyedCall) (same int, wrong error) {
	for _, c := range calls {
		status, answer, err := a.plain(c.user, c.method, c.path, c.body, c.key)
		switch {
		case err != nil:
			wrong = errors.Join(wrong, err)
		case status != c.status || answer != c.answer:
			wrong = errors.Join(wrong, fmt.Errorf("%s %s %s under %s: %d %s\nwas answered %d %s", c.method, c.path, c.body, c.key, status, answer, c.status, c.answer))
		default:
			same++
		}
	}
	return same, wrong
}

// httpLosses is how many times the power fails in a run.
const httpLosses = 5

// losePower has a service asked over HTTP, under keys, on a disk that forgets what was not
// synced. At some moments in the middle of writing it takes what a loss of power would
// leave; a service that starts from that must give every answer that was given by then
// again. It returns what is wrong, and how many answers were compared.
func losePower(t *testing.T, seed uint64, wrap func(journal.Store) journal.Store) (compared int, wrong error) {
	t.Helper()
	disk, err := lossy.New()
	if err != nil {
		t.Fatal(err)
	}
	place, left := t.TempDir(), t.TempDir()
	store, err := sqlite.Open(place, sqlite.Options{VFS: disk.Name()})
	if err != nil {
		t.Fatal(err)
	}
	disk.Loose(filepath.Join(place, "mark"))
	a, tokens := newAsker(t, seed)
	host, calls := servesOn(t, wrap(store), tokens)
	a.through = calls
	rng := rand.New(rand.NewPCG(seed, 5))
	var answered [][]*keyedCall // by the loss, of before it
	enough := make(chan struct{})
	next := disk.Ops() + 100 + rng.IntN(100)
	disk.Before(func(op int) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if op < next || len(answered) == httpLosses {
			return
		}
		next = op + 1 + rng.IntN(300)
		answered = append(answered, slices.Clone(a.answered))
		if err := disk.Image(place, filepath.Join(left, fmt.Sprint(len(answered))), rng); err != nil {
			t.Error(err)
		}
		if len(answered) == httpLosses {
			close(enough)
		}
	})
	var asking sync.WaitGroup
	for range 6 {
		asking.Go(func() {
			for {
				select {
				case <-enough:
					return
				default:
				}
				if !a.ask(a.draw()) {
					t.Error("no answer at all")
					return
				}
			}
		})
	}
	asking.Wait()
	if err := errors.Join(host.Close(), store.Close(), disk.Close()); err != nil {
		t.Fatal(err)
	}
	for i, calls := range answered {
		store, err := sqlite.Open(filepath.Join(left, fmt.Sprint(i+1)), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		host, through := servesOn(t, store, tokens)
		a.through = through
		same, differs := a.replayed(calls)
		if compared += same; differs != nil {
			wrong = errors.Join(wrong, fmt.Errorf("loss %d, after %d answers: %w", i+1, len(calls), differs))
		}
		wrong = errors.Join(wrong, host.Close())
		if _, err := service.Verify(t.Context(), store, nil); err != nil {
			wrong = errors.Join(wrong, err)
		}
		wrong = errors.Join(wrong, store.Close())
	}
	return compared, wrong
}

// Every call under a key is answered as it was, word for word, by a service that starts
// after a loss of power which took all that was not synced.
func TestLossOfPowerKeepsAnswersOverHTTP(t *testing.T) {
	for seed := range uint64(*lossSeeds) {
		compared, wrong := losePower(t, seed, func(s journal.Store) journal.Store { return s })
		if wrong != nil {
			t.Errorf("seed %d: %v", seed, wrong)
		}
		if t.Logf("seed %d: %d answers compared", seed, compared); compared < 100 {
			t.Errorf("seed %d: only %d answers were compared", seed, compared)
		}
	}
}

// An answer that is given before its record is on disk does not pass.
func TestAnEarlyAnswerOverHTTPIsFoundOut(t *testing.T) {
	for seed := range uint64(5) {
		if _, wrong := losePower(t, seed, func(s journal.Store) journal.Store { return &journaltest.Early{Store: s} }); wrong != nil {
			t.Logf("seed %d: %.300s", seed, wrong.Error())
			return
		}
	}
	t.Error("nothing was lost")
}

// A whole service on a disk where one operation fails, or from which on all of them
// do: every call is answered, by what it asked for or by a refusal that says to ask again,
// and what was answered is answered again, after a restart and after a loss of power.
func TestAFailingDiskLosesNoAnswer(t *testing.T) {
	for _, how := range []string{lossy.NoRoom, lossy.ReadOnly, lossy.BadWrite, lossy.ShortWrite, lossy.BadRead} {
		for _, at := range []int{3, 20, 45} {
			t.Run(fmt.Sprint(how, " at ", at), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { failDisk(t, at, how) })
			})
		}
	}
}

func failDisk(t *testing.T, at int, how string) {
	t.Helper()
	disk, err := lossy.New()
	if err != nil {
		t.Fatal(err)
	}
	place, left := t.TempDir(), t.TempDir()
	open := func(at, vfs string) *sqlite.Store {
		store, err := sqlite.Open(at, sqlite.Options{VFS: vfs})
		if err != nil {
			t.Fatal(err)
		}
		return store
	}
	store := open(place, disk.Name())
	a, tokens := newAsker(t, uint64(at))
	host, calls := servesOn(t, store, tokens)
	a.through = calls
	var asked []*keyedCall
	ask := func(n int) {
		for range n {
			c := a.draw()
			asked = append(asked, c)
			status, answer, err := a.plain(c.user, c.method, c.path, c.body, c.key)
			if err != nil || status == http.StatusInternalServerError {
				t.Errorf("%s %s: %d %s, %v", c.method, c.path, status, answer, err)
			}
			a.learn(answer)
			a.mu.Lock()
			last := append([]string{"none"}, a.ids...)
			a.mu.Unlock()
			status, answer, err = a.plain("operator", http.MethodGet, "/v1/reservations/"+last[len(last)-1]+"/history", "", "") // reads the journal
			if err != nil || status == http.StatusInternalServerError {
				t.Errorf("a history: %d %s, %v", status, answer, err)
			}
		}
	}
	ask(20)
	if how == lossy.BadRead {
		at /= 10 // of reads, which are fewer
	}
	disk.Fail(at, how)
	var asking sync.WaitGroup
	asking.Go(func() { ask(40) })
	time.Sleep(2 * time.Minute) // of the bubble: the failure is met, and retried
	met := disk.Failed()
	disk.Fail(0, "") // room is made, or the disk is exchanged
	asking.Wait()
	time.Sleep(2 * time.Second) // the journal is tried every second
	if !met {
		t.Error("the fault was not met")
	}
	for _, c := range asked { // what was refused is asked again
		a.ask(c)
	}
	if len(a.answered) < len(asked)/2 { // the others are mistakes, or of a role that may not
		t.Errorf("only %d of %d calls have an answer", len(a.answered), len(asked))
	}
	if err := disk.Image(place, left, nil); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(host.Close(), store.Close()); err != nil {
		t.Error(err)
	}
	for _, folder := range []string{left, place} {
		store := open(folder, "")
		host, through := servesOn(t, store, tokens)
		a.through = through
		if _, wrong := a.replayed(a.answered); wrong != nil {
			t.Errorf("in %s: %v", filepath.Base(folder), wrong)
		}
		if err := errors.Join(host.Close(), store.Close()); err != nil {
			t.Error(err)
		}
	}
	if err := disk.Close(); err != nil {
		t.Error(err)
	}
}

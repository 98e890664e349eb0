package service_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/check"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/effort"
	"github.com/berth-hpc/berth/internal/hugepages"
	"github.com/berth-hpc/berth/internal/withparent"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/postgres"
	"github.com/berth-hpc/berth/journal/postgres/postgrestest"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
)

var rounds = effort.Flag("service.rounds", 20, "how many times the service is killed")

// crashPlace tells a child process where its journal is.
const crashPlace = "BERTH_SERVICETEST_PLACE"

// crashCompact tells it to drop its history all the time.
const crashCompact = "BERTH_SERVICETEST_COMPACT"

func TestMain(m *testing.M) {
	effort.Waits()
	hugepages.Advise(1 << 30)
	place := os.Getenv(crashPlace)
	if place == "" {
		beginDay()
		os.Exit(m.Run())
	}
	fmt.Fprintln(os.Stderr, serveForever(place))
	os.Exit(1)
}

// serveForever runs a service under load and tells each answer on standard
// output, until it is killed. It returns if something fails.
func serveForever(place string) error {
	store, err := openPlace(place)
	if err != nil {
		return err
	}
	h, err := service.Open(context.Background(), crashOptions(store))
	if err != nil {
		return err
	}
	if os.Getenv(crashCompact) != "" {
		go func() {
			for {
				if _, err := h.Compact(context.Background(), root, 0); err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
			}
		}()
	}
	var told sync.Mutex
	out := bufio.NewWriter(os.Stdout)
	if os.Getenv(crashHooks) != "" {
		if err := tellNotices(h, &told, out); err != nil {
			return err
		}
	}
	return load(context.Background(), h, uint64(os.Getpid()), func(line string) error {
		told.Lock()
		defer told.Unlock()
		_, _ = out.WriteString(line + "\n") // the error stays for Flush
		return out.Flush()
	})
}

// crashStore is a journal of either kind.
type crashStore interface {
	journal.Store
	journal.Compactor
}

// openPlace opens the journal of a folder or of a URL.
func openPlace(place string) (crashStore, error) {
	if postgres.IsURL(place) {
		s, err := postgres.Open(context.Background(), place, postgres.Options{})
		if err != nil {
			return nil, err
		}
		return s, nil
	}
	s, err := sqlite.Open(place, sqlite.Options{})
	if err != nil {
		return nil, err
	}
	return s, nil
}

func crashOptions(store journal.Store) service.Options {
	config := engine.Config{Sites: []berth.Site{{Name: "site", Pools: []berth.Pool{
		{Name: "early", PEs: 64, Binding: berth.Early}, {Name: "late", PEs: 64, Binding: berth.Late},
	}}}}
	return service.Options{Config: config, Journal: store, Version: "test", SnapshotEvery: 300, Keep: 1_000_000}
}

// load has eight clients ask, give back and confirm, and tells what each was
// answered once it was, until telling fails or ctx ends.
func load(ctx context.Context, h *service.Host, seed uint64, tell func(line string) error) error {
	failed := make(chan error, 8)
	for client := range uint64(8) {
		go func() { failed <- oneClient(ctx, h, rand.New(rand.NewPCG(seed, client)), tell) }()
	}
	var first error
	for range 8 {
		first = errors.Join(first, <-failed)
	}
	return first
}

func oneClient(ctx context.Context, h *service.Host, rng *rand.Rand, tell func(line string) error) error {
	for {
		ready := h.Now() + 3600 + berth.Time(rng.IntN(500_000)) // so far ahead that none starts meanwhile
		d := berth.Duration(1 + rng.IntN(5000))
		r := berth.Rigid("", 0, ready, ready.Add(2*d), berth.Count(1+rng.IntN(32)), d)
		if rng.IntN(4) == 0 {
			r.Hold = 1800
		}
		a, err := h.Submit(ctx, ann, r)
		if err != nil {
			return err
		}
		got := a.Reservation
		if err := tell(said(&got)); err != nil {
			return err
		}
		switch {
		case got.State == service.Held && rng.IntN(2) == 0:
			got, err = h.Confirm(ctx, ann, got.ID)
		case got.State == service.Confirmed && rng.IntN(5) == 0:
			got, err = h.Release(ctx, ann, got.ID)
		default:
			continue
		}
		if err != nil {
			return err
		}
		if err := tell(said(&got)); err != nil {
			return err
		}
	}
}

// said is an answer in a line: the id, then all that was promised.
func said(r *service.Reservation) string {
	line := fmt.Sprintf("%s %d %s", r.ID, r.Version, r.State)
	for _, a := range r.Allotments {
		line += fmt.Sprintf(" %s/%s:%d-%d:%d:%s", a.Resource.Site, a.Resource.Name, a.Start, a.End, a.NPE, a.PEs)
	}
	return line
}

// answers are the lines that were told, by id; of one id the last one.
type answers map[string]string

func (a answers) add(line string) {
	if id, rest, ok := strings.Cut(line, " "); ok {
		a[id] = rest
	}
}

// missed returns what is wrong with a journal after a service on it has ended
// somehow: it does not recover, an answer is not there as it was given, a PE is
// promised twice, or its events decided again say something else.
func missed(ctx context.Context, store journal.Store, told answers) error {
	options := crashOptions(store)
	core, err := service.Recover(ctx, store, options.Config, options.Version, options.Keep)
	if err != nil {
		return err
	}
	if err := core.Check(); err != nil {
		return err
	}
	if _, err := service.Verify(ctx, store, nil); err != nil {
		return err
	}
	h, err := service.Open(ctx, options)
	if err != nil {
		return err
	}
	there, err := everything(ctx, h)
	if err := errors.Join(err, h.Close()); err != nil {
		return err
	}
	for id, line := range told {
		if r, is := there[id]; !is || !follows(line, &r) {
			return fmt.Errorf("%s was answered %q, there is %q", id, line, said(&r))
		}
	}
	return scheduled(ctx, store)
}

// everything returns all reservations, by id.
func everything(ctx context.Context, h *service.Host) (map[string]service.Reservation, error) {
	there := map[string]service.Reservation{}
	for after := ""; ; {
		page, _, err := h.List(ctx, root.By, service.Filter{After: after})
		if err != nil || len(page) == 0 {
			return there, err
		}
		for _, r := range page {
			if _, twice := there[r.ID]; twice {
				return nil, fmt.Errorf("%s is listed twice", r.ID)
			}
			there[r.ID] = r
		}
		after = page[len(page)-1].ID
	}
}

// follows reports whether a reservation is as it was answered, or has gone on
// from there in the same place: the client was not told any more.
func follows(line string, r *service.Reservation) bool {
	var version uint64
	var state service.State
	if _, err := fmt.Sscan(line, &version, &state); err != nil {
		return false
	}
	_, place, _ := strings.Cut(line, string(state))
	_, now, _ := strings.Cut(said(r), string(r.State))
	return place == now && (r.Version == version && r.State == state || r.Version > version)
}

// scheduled returns what the validator says of what a journal holds.
func scheduled(ctx context.Context, store journal.Store) error {
	lines, err := service.Schedule(ctx, store)
	if err != nil {
		return err
	}
	var file bytes.Buffer
	encoder := json.NewEncoder(&file)
	for i := range lines {
		if err := encoder.Encode(&lines[i]); err != nil {
			return err
		}
	}
	report, err := check.File(&file, "journal", check.Options{PEs: 64})
	if err != nil || len(report.Violations) > 0 {
		return fmt.Errorf("the schedule is not valid: %v, %w", report, err)
	}
	return nil
}

// A service killed at any moment under load has kept whatever it answered, round
// after round on one journal.
func TestKilledServiceKeepsWhatItAnswered(t *testing.T) {
	killAgain(t, t.TempDir(), nil, func(crashStore) bool { return true })
}

// So has one whose journal is in PostgreSQL.
func TestKilledServiceOnPostgreSQLKeepsWhatItAnswered(t *testing.T) {
	killAgain(t, postgrestest.Start(t).URL(""), nil, func(crashStore) bool { return true })
}

// So has one that drops its history all the time, in rounds enough that it did at least twice.
func TestServiceKilledWhileItCompactsKeepsWhatItAnswered(t *testing.T) {
	var begins []uint64
	killAgain(t, t.TempDir(), []string{crashCompact + "=yes"}, func(store crashStore) bool {
		begin, err := store.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(begins) == 0 || begin.Number > begins[len(begins)-1] {
			begins = append(begins, begin.Number)
		}
		return len(begins) >= 3
	})
	t.Logf("the journal began after the records %d", begins)
}

// killAgain kills a service in rounds on one journal, until there were enough and
// enough says so of the journal that is left, which it asks after each.
func killAgain(t *testing.T, place string, env []string, enough func(crashStore) bool) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	told := answers{}
	rng := rand.New(rand.NewPCG(5, 20))
	n := rounds()
	if testing.Short() {
		n = min(n, 3)
	}
	for round := 0; ; round++ {
		if err := killed(t.Context(), program, append(env, crashPlace+"="+place), 1+rng.IntN(150), time.Duration(rng.IntN(3000))*time.Microsecond, told); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		store, err := openPlace(place)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		ended := enough(store) && round+1 >= n
		if err := errors.Join(missed(t.Context(), store, told), store.Close()); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if ended {
			t.Logf("%d answers kept over %d rounds", len(told), round+1)
			return
		}
		if round > 100*n {
			t.Fatalf("not enough after %d rounds", round+1)
		}
	}
}

// killed runs a service until it has given n answers, and some time longer,
// and kills it. What it told before it died counts.
func killed(ctx context.Context, program string, env []string, count int, longer time.Duration, told interface{ add(line string) }) error {
	child := exec.CommandContext(ctx, program)
	child.Env = append(os.Environ(), env...)
	child.SysProcAttr = withparent.Attr()
	var complaints strings.Builder
	child.Stderr = &complaints
	out, err := child.StdoutPipe()
	if err != nil {
		return err
	}
	if err := child.Start(); err != nil {
		return err
	}
	var kill sync.Once
	for lines := bufio.NewReader(out); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			break // what is cut off was not told
		}
		told.add(strings.TrimSuffix(line, "\n"))
		if count--; count <= 0 {
			kill.Do(func() { time.AfterFunc(longer, func() { _ = child.Process.Kill() }) })
		}
	}
	err = child.Wait()
	var exit *exec.ExitError
	if count > 0 || !errors.As(err, &exit) || exit.Exited() {
		return fmt.Errorf("the child ended by itself: %w\n%s", err, complaints.String())
	}
	return nil
}

package service

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/record"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/notice"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/site"
)

// Golden journals are journals that versions of this program have written. Each later
// version reads them to the same state. testdata/golden/README.md says how one is made.

var goldenWrite = flag.String("golden.write", "", "the `NAME` of a golden journal to write into testdata/golden")

// golden is what every later version must read in a journal.
type golden struct {
	Records uint64           `json:"records"`
	Last    journal.Position `json:"last"`
	// Cards is the hash of all that is known of requests, in the form of an export.
	Cards string `json:"cards"`
	// Keys is the hash of what is remembered under keys; empty in what was noted before answers
	// could refer to reservations.
	Keys string `json:"keys,omitempty"`
	// Hooks is the hash of the receivers of notices and what they are owed; empty if there are none.
	Hooks string `json:"hooks,omitempty"`
	// Maintenance is the hash of the maintenance that is known; empty if there is none.
	Maintenance string `json:"maintenance,omitempty"`
	// State is the hash of the engine's state, and Export that of the records as lines:
	// what this version says of them.
	State  string `json:"state"`
	Export string `json:"export"`
	// Verified is what deciding again says; empty if it decides alike.
	Verified string `json:"verified,omitempty"`
	Inputs   string `json:"inputs"`
	Events   string `json:"events"`
	Changes  string `json:"changes"`
}

const goldenFolder = "testdata/golden"

// unpack puts a golden journal into a folder.
func unpack(t *testing.T, path string) (folder string) {
	t.Helper()
	packed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	folder = t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "journal.db"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

// goldenOf returns what a journal says, read from its newest snapshot if there is one, and
// again from its first record.
func goldenOf(t *testing.T, store journal.Store) (g golden) {
	t.Helper()
	ctx := t.Context()
	last, err := store.Last(ctx)
	if err != nil {
		t.Fatal(err)
	}
	g.Records, g.Last = last.Number, last
	core, err := Recover(ctx, store, engine.Config{}, "test", 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	if err := core.Check(); err != nil {
		t.Fatal(err)
	}
	whole, err := history(ctx, store)
	if err != nil {
		t.Fatal(err)
	}
	g.State, g.Cards, g.Keys, g.Hooks, g.Maintenance = core.engine.Hash(), cardsHash(t, core), keysHash(core), hooksHash(core), maintenanceHash(core)
	if maintenance := maintenanceHash(whole); maintenance != g.Maintenance {
		t.Errorf("from the first record maintenance is %s, from the snapshot %s", maintenance, g.Maintenance)
	}
	if hooks := hooksHash(whole); hooks != g.Hooks {
		t.Errorf("from the first record hooks are %s, from the snapshot %s", hooks, g.Hooks)
	}
	if keys := keysHash(whole); keys != g.Keys {
		t.Errorf("from the first record what is remembered under keys is %s, from the snapshot %s", keys, g.Keys)
	}
	if state, cards := whole.engine.Hash(), cardsHash(t, whole); state != g.State || cards != g.Cards {
		t.Errorf("from the first record the state is %s and %s, from the snapshot %s and %s", state, cards, g.State, g.Cards)
	}
	if a, b := core.savedTasks(), whole.savedTasks(); !reflect.DeepEqual(a, b) {
		t.Errorf("from the first record the tasks are %+v, from the snapshot %+v", b, a)
	}
	if a, b := core.savedSeries(), whole.savedSeries(); !reflect.DeepEqual(a, b) {
		t.Errorf("from the first record the series are %+v, from the snapshot %+v", b, a)
	}
	if a, b := core.savedDelivered(), whole.savedDelivered(); !reflect.DeepEqual(a, b) {
		t.Errorf("from the first record what sites have is %+v, from the snapshot %+v", b, a)
	}
	if _, err := Verify(ctx, store, nil); err != nil {
		g.Verified = err.Error()
	}
	sum := sha256.New()
	if _, err := Export(ctx, store, 1, sum); err != nil {
		t.Fatal(err)
	}
	g.Export = hex.EncodeToString(sum.Sum(nil))
	inputs, events, changes := kindsOf(t, store)
	g.Inputs, g.Events, g.Changes = list(inputs), list(events), list(changes)
	return g
}

func list[K comparable](kinds map[K]int) string {
	var words []string
	for kind := range maps.Keys(kinds) {
		words = append(words, fmt.Sprint(kind))
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

func cardsHash(t *testing.T, c *Core) string {
	t.Helper()
	sum := sha256.New()
	encoder := json.NewEncoder(sum)
	c.cards.Scan(func(k *card) bool {
		if err := encoder.Encode(k.view()); err != nil {
			t.Fatal(err)
		}
		return true
	})
	return hex.EncodeToString(sum.Sum(nil))
}

func keysHash(c *Core) string {
	sum := sha256.New()
	for _, k := range c.keys.saved() {
		w := wire.Writer(nil)
		k.code(w)
		_, _ = sum.Write(w.Bytes()) // a hash takes everything
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func hooksHash(c *Core) string {
	return listHash(c.savedHooks(), func(c *wire.Coder, h *savedHook) { h.code(c) })
}

func maintenanceHash(c *Core) string {
	return listHash(c.savedMaintenance(), func(c *wire.Coder, m *Maintenance) { m.code(c) })
}

// listHash returns the hash of a list as it is written; empty if it is.
func listHash[T any](list []T, code func(*wire.Coder, *T)) string {
	sum := sha256.New()
	for i := range list {
		w := wire.Writer(nil)
		code(w, &list[i])
		_, _ = sum.Write(w.Bytes()) // a hash takes everything
	}
	if len(list) == 0 {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// kindsOf counts the forms of inputs, and the kinds of events and of changes in a journal.
func kindsOf(t *testing.T, store journal.Reader) (inputs map[byte]int, events map[engine.EventKind]int, changes map[change.Kind]int) {
	t.Helper()
	inputs, events, changes = map[byte]int{}, map[engine.EventKind]int{}, map[change.Kind]int{}
	var decoder record.Decoder
	for rec, err := range store.Read(t.Context(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		in, err := parseInput(rec.Event, &decoder)
		if err != nil {
			t.Fatal(err)
		}
		inputs[rec.Event[0]]++
		if in.event != nil {
			events[in.event.Kind]++
		}
		list, err := decoder.Changes(rec.Changes)
		if err != nil {
			t.Fatal(err)
		}
		for i := range list {
			changes[list[i].Kind]++
		}
	}
	return inputs, events, changes
}

// Every golden journal is read to the state that it was read to first, from its snapshot
// and from its first record, and is exported and verified as then.
func TestGoldenJournalsAreReadAsEver(t *testing.T) {
	oneGoroutine(t)
	files, err := filepath.Glob(goldenFolder + "/*.db.gz")
	if err != nil || len(files) == 0 {
		t.Fatal("no golden journal", err)
	}
	inputs := map[string]bool{}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			var want golden
			data, err := os.ReadFile(strings.TrimSuffix(path, ".db.gz") + ".json")
			if err == nil {
				err = json.Unmarshal(data, &want)
			}
			if err != nil {
				t.Fatal(err)
			}
			folder := unpack(t, path)
			store, err := sqlite.Open(folder, sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			got := goldenOf(t, store)
			if want.Keys == "" {
				got.Keys = ""
			}
			if got != want {
				t.Errorf("it is read as\n%+v, was\n%+v", got, want)
			}
			for form := range strings.FieldsSeq(want.Inputs) {
				inputs[form] = true
			}
			// A service goes on from it, unless it is that of a watch, for which a site is needed.
			core, err := Recover(t.Context(), store, engine.Config{}, "test", 1<<30)
			if err != nil {
				t.Fatal(err)
			}
			if len(core.shadows) > 0 {
				return
			}
			h, err := Open(t.Context(), Options{Config: core.config, Journal: store, Version: "test"})
			if err != nil {
				t.Fatal(err)
			}
			if err := h.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
	if len(inputs) != maintenanceInput {
		t.Errorf("forms of inputs in all of them: %v, want 1 to %d", slices.Sorted(maps.Keys(inputs)), maintenanceInput)
	}
}

// TestWriteGolden writes what a golden journal says, and the journal if there is none: a service's core is asked for everything by
// chance, under several configurations, until every kind of event and of change came.
func TestWriteGolden(t *testing.T) {
	if *goldenWrite == "" {
		t.Skip("-golden.write NAME writes a golden journal")
	}
	path := filepath.Join(goldenFolder, *goldenWrite)
	if _, err := os.Stat(path + ".db.gz"); err != nil {
		pack(t, path+".db.gz")
	}
	store, err := sqlite.Open(unpack(t, path+".db.gz"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	g := goldenOf(t, store)
	text, err := json.MarshalIndent(&g, "", "  ")
	if err == nil {
		err = os.WriteFile(path+".json", append(text, '\n'), 0o644) //nolint:gosec // as git has it
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d records", g.Records)
}

// pack writes a new journal.
func pack(t *testing.T, path string) {
	t.Helper()
	folder := t.TempDir()
	store, err := sqlite.Open(folder, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := goldenWriter{t: t, store: store, rng: rand.New(rand.NewPCG(2026, 18)), now: 1_800_000_000}
	w.write()
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(folder, "journal.db"))
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err == nil {
		_, err = z.Write(data)
	}
	if err == nil {
		err = z.Close()
	}
	if err == nil {
		err = os.WriteFile(path, packed.Bytes(), 0o644) //nolint:gosec // as git has it
	}
	if err != nil {
		t.Fatal(err)
	}
}

// goldenWriter asks a core for everything by chance.
type goldenWriter struct {
	t     *testing.T
	store journal.Store
	rng   *rand.Rand
	core  *Core
	now   berth.Time
	ids   []string
	flows int // workflows so far
	told  int // answers about them
	// series are the series so far, and seriesTold the answers about them.
	series, seriesTold int
	// foreseen is how many events were foreseen to cost jobs something.
	foreseen int
	// hauled is how many live tasks that move data were seen, between events.
	hauled   int
	charged  int // answers that tell a charge
	overTold int // how many promises ended while their sites were asked about them, and are told
	timely   int // how often a notice was told that follows from the time alone, and its request was not over
}

func (w *goldenWriter) append(rec *journal.Record) {
	if rec == nil {
		return
	}
	w.core.takeShown()
	if err := w.store.Append(context.Background(), *rec); err != nil {
		w.t.Fatal(err)
	}
}

func (w *goldenWriter) configs() []engine.Config {
	sites := []berth.Site{
		{
			Name: "managed", Managed: true, StorageMB: 5000, Pools: []berth.Pool{{Name: "early", PEs: 8, Binding: berth.Early}},
			Software: []berth.Software{{Name: "solver", Version: "2.1", Licences: 3}}, Link: berth.Link{KilobytesPerSecond: 2000},
		},
		{Name: "plain", Pools: []berth.Pool{{Name: "late", PEs: 6, Binding: berth.Late}}},
	}
	ahead := slices.Clone(sites)
	ahead[1].Pools = []berth.Pool{{Name: "late", PEs: 6, Binding: berth.Late, NameAhead: 200}}
	costs := policy.Limits{
		{Scope: policy.Scope{User: "bob"}, Name: policy.LimitDelay, Value: 900},
		{Scope: policy.Scope{User: "bob"}, Name: policy.LimitIdle, Value: 20_000},
		{Scope: policy.Scope{QOS: policy.Every}, Name: policy.LimitLength, Value: 500},
		{Scope: policy.Scope{User: "ann"}, Name: policy.LimitBudget, Value: 1 << 40},
		{Scope: policy.Scope{User: policy.Every}, Name: policy.LimitMonthBudget, Value: 1 << 40},
	}
	prices := func(factor int64) policy.Prices { return policy.Prices{{Site: "plain", Factor: factor}} }
	return []engine.Config{
		{Prices: prices(1500), Sites: sites, Staging: engine.StagingBefore, Explain: true, Jobs: "easy", Preempt: true, Immediate: engine.ImmediateQueue, Limits: costs},
		{Prices: prices(3000), Sites: sites, Trigger: engine.TriggerOnPeriod, Period: 60, Jobs: "conservative", Preempt: true, Overrun: engine.OverrunRunOn, Uplink: 1500},
		{Sites: ahead, Order: "edf", Trigger: engine.TriggerOnInstant, Jobs: "conservative", Immediate: engine.ImmediateQueue, Users: []berth.User{{ID: "ann", Priority: 2}}},
	}
}

func (w *goldenWriter) write() {
	var err error
	if w.core, err = newCore(w.configs()[0], "golden", 1<<30); err != nil {
		w.t.Fatal(err)
	}
	w.core.shows = true // as in a service, where answers refer to what is shown
	for round, config := range w.configs() {
		rec, err := w.core.Configure(w.now, config)
		if err != nil {
			w.t.Fatal(err)
		}
		w.append(rec)
		if round == 0 {
			w.hook(&hookNews{by: Origin{User: "ann", Role: User, Token: "t1"}, put: []Hook{
				{ID: "h1", User: "ann", Form: WebhookForm, Host: "hooks.example.org", Note: "on-call", Kinds: everyKind(), Starts: 900, Ends: 600, Unused: 600, Created: w.now, Dated: true, Parent: "t1", Sealed: []byte{1, 2, 3}},
				{ID: "h2", Form: ChatForm, Host: "chat.example.org", Kinds: everyKind(), Site: "managed", Text: "{link} {kind}", Created: w.now, Rotated: w.now, Parent: "socket", Sites: "managed,plain"},
				{ID: "h3", User: "ann", Form: WebhookForm, Kinds: []notice.Kind{notice.Granted}},
				{ID: "h4", User: "ann", Form: MailForm, Kinds: everyKind(), Created: w.now, Dated: true, Exchanged: true},
			}})
			w.maintain()
			w.move()
		}
		w.send()
		for i := range 200 {
			if w.step(); i%20 == 0 {
				w.send()
			}
		}
		if round == 1 { // so that records follow a snapshot
			w.task(site.Running, TaskStarted)
			for _, id := range w.ids {
				w.deliver(&delivery{site: "managed", news: []delivered{{id, 1}}})
			}
			data, err := w.core.Snapshot()
			if err == nil {
				err = w.store.SaveSnapshot(context.Background(), w.core.position, data)
			}
			if err != nil {
				w.t.Fatal(err)
			}
			w.maintenance(&maintenanceNews{by: Origin{User: "olga", Role: Operator, Token: "t2"}, removed: "disks"})
			less := *w.core.maintenance["cooling"]
			less.Times = less.Times[1:]
			w.maintenance(&maintenanceNews{by: Origin{User: "olga", Role: Operator, Scopes: "operate"}, removed: "cooling", put: &less})
		}
	}
	for _, gone := range []bool{false, true} {
		w.append(w.core.See(w.now, sighting{site: "plain", job: &ShadowJob{ID: "seen", Job: "17", User: "eve", NPE: 2, Limit: 600, Asked: w.now, Ready: w.now}, gone: gone}))
	}
	w.task(site.Ended, TaskEnded)
	w.deliver(&delivery{site: "managed", news: []delivered{{w.id(), 3}, {w.id(), 0}}})
	w.wakeAll()
	w.send()
	w.hook(&hookNews{disabled: []disabledHook{{"h3", "410 Gone"}}, tests: []string{"h1", "h3"}})
	again := w.core.hooks.byID["h3"].Hook
	again.Disabled = ""
	w.hook(&hookNews{put: []Hook{again}})
	w.hook(&hookNews{removed: []string{"h2"}})
	if s := w.core.hooks.byID["h1"]; len(s.owed) == 0 || len(s.dead) == 0 || len(s.done) == 0 || w.timely == 0 {
		w.t.Errorf("hook h1 waits for %d notices, %d are dead, %d done, and %d were by the time; want some of each", len(s.owed), len(s.dead), len(s.done), w.timely)
	}
	if whole, err := history(context.Background(), w.store); err != nil || hooksHash(whole) != hooksHash(w.core) || maintenanceHash(whole) != maintenanceHash(w.core) {
		w.t.Errorf("hooks or maintenance are others when the records are followed (%v)", err)
	}
	if w.told == 0 || w.hauled == 0 || w.seriesTold == 0 || w.foreseen == 0 || w.overTold == 0 || w.charged == 0 {
		w.t.Errorf("%d answers are about workflows, %d about series, %d tell a charge, %d tasks move data, %d events cost jobs something, %d promises ended while they were asked about; want some", w.told, w.seriesTold, w.charged, w.hauled, w.foreseen, w.overTold)
	}
}

func everyKind() (list []notice.Kind) {
	for _, a := range notice.Kinds() {
		list = append(list, a.Kind)
	}
	return list
}

func (w *goldenWriter) hook(n *hookNews) { w.append(w.core.hookRecord(w.now, n)) }

func (w *goldenWriter) maintenance(n *maintenanceNews) {
	w.append(w.core.maintenanceRecord(w.now, n))
}

// maintain adds maintenance of all nodes and of some, that repeats and that does not, and is over at once.
func (w *goldenWriter) maintain() {
	by, day := Origin{User: "olga", Role: Operator, Token: "t2", Address: "10.0.0.1", Request: "r1"}, berth.Duration(86_400)
	cooling := Maintenance{Name: "cooling", Site: "managed", Rule: "every day", Zone: "Europe/Berlin", Reason: "pumps", By: "olga", Created: w.now}
	for n := range 400 {
		cooling.Times = append(cooling.Times, berth.Interval{Start: w.now.Add(berth.Duration(n) * day), End: w.now.Add(berth.Duration(n)*day + 3600)})
	}
	disks := Maintenance{Name: "disks", Site: "managed", Nodes: []string{"n1", "n2"}, Times: cooling.Times[:1], By: "olga", Created: w.now}
	short := Maintenance{Name: "short", Site: "plain", Times: []berth.Interval{{Start: w.now, End: w.now + 1}}, By: "olga", Created: w.now}
	for _, m := range []*Maintenance{&cooling, &disks, &short} {
		w.maintenance(&maintenanceNews{by: by, put: m})
	}
}

// send has notices be due by the time, tried, delivered, given up and sent again.
func (w *goldenWriter) send() {
	n := hookNews{}
	for _, id := range slices.Sorted(maps.Keys(w.core.hooks.byID)) {
		s := w.core.hooks.byID[id]
		w.core.cards.Scan(func(k *card) bool {
			for _, kind := range byTime() {
				n.due = append(n.due, dueNotice{id, k.id, kind})
			}
			return true
		})
		for i, o := range s.owed {
			t := Try{At: w.now + berth.Time(i), Status: 200}
			if i%2 == 1 {
				t = Try{At: w.now, Words: "connection refused"}
			}
			n.tried = append(n.tried, tried{id, o.Number, t})
			if i == 1 {
				for range 12 {
					n.tried = append(n.tried, tried{id, o.Number, t})
				}
			}
		}
		for _, o := range s.done[:len(s.done)/2] {
			n.again = append(n.again, sentAgain{id, o.Number})
		}
	}
	w.hook(&n)
	for _, s := range w.core.hooks.byID {
		w.timely += len(s.told)
	}
}

// deliver tells what a site has, which some of what was asked about agrees with.
func (w *goldenWriter) deliver(d *delivery) {
	for _, n := range d.news {
		if k := w.core.card(n.id); k != nil && k.asking && k.end == "" && w.rng.IntN(2) == 0 {
			d.agreed = append(d.agreed, n.id)
		}
	}
	rec := w.core.deliver(w.now, d)
	for _, id := range d.agreed {
		w.core.agree(rec.Number, id)
	}
	w.core.oweAgreed(rec.Number, rec.At, d.agreed)
	w.append(rec)
}

// task tells of a task at a site.
func (w *goldenWriter) task(stage site.Stage, what string) {
	task := Task{Site: "managed", Report: site.Report{Stage: stage, Job: site.Job{
		ID: "5_1", Array: "5", Key: "k", Name: "solve", User: "ann", Submitted: w.now - 9, Start: w.now - 5, End: w.now, Reason: "exit", Output: "/home/ann/out",
		Result: site.Result{Ending: site.Failed, Code: 3, Signal: 9},
	}}}
	other := task
	other.ID = "6"
	rec, _ := w.core.seeTasks(w.now, &taskLook{site: "managed", events: []taskEvent{
		{reservation: w.id(), task: task, what: what, pes: 3}, {reservation: w.id(), task: other, gone: what == TaskEnded},
	}})
	w.append(rec)
}

// move promises something with data, which a forecast then expects at another time.
func (w *goldenWriter) move() {
	r := berth.Rigid("data", w.now, w.now+900, w.now+9000, 2, 300)
	r.Site, r.StorageMB = "managed", 400
	rate := func(kilobytes int64) engine.Event {
		return engine.UpdateForecast(&berth.Forecast{Site: "managed", From: w.now, Period: 100, Kilobytes: []int64{kilobytes}})
	}
	for _, event := range []engine.Event{rate(100_000), engine.Submit(&r), rate(70_000)} {
		w.append(w.core.seal(w.core.apply(w.now, &event), &asked{id: r.ID}))
		w.now += 10
	}
}

// step lets some time pass and one thing happen.
func (w *goldenWriter) step() {
	w.now += berth.Time(w.rng.IntN(90))
	event := w.draw()
	if w.core.engine.BoundsCost(&event) {
		if foreseen, err := w.core.engine.Foresee(&event, engine.Foresight{From: w.now}); err == nil {
			foreseen.Record, foreseen.Admitted = w.core.position.Number, w.rng.IntN(8) == 0
			if event.Foreseen = foreseen; foreseen.Cost.Delayed > 0 {
				w.foreseen++
			}
		}
	}
	a := asked{id: subject(&event)}
	done := w.core.apply(w.now, &event)
	for _, n := range done.news {
		if change.Kind(n.what) == change.Accepted && w.rng.IntN(4) == 0 {
			a.asking = append(a.asking, n.card.id)
			w.core.card(n.card.id).asking = true
		}
	}
	w.over(&a, done.news)
	if w.rng.IntN(3) == 0 {
		a.by = Origin{User: "ann", Role: User, Token: "t1", Address: "192.0.2.1", Request: fmt.Sprint("call-", len(w.ids))}
		a.key = Key{User: "ann", Name: fmt.Sprint("key-", w.now), Body: [32]byte{1, 2, 3}}
		flow := w.core.flows.byID[a.id]
		if event.Workflow != nil {
			flow = w.core.flows.byID[event.Workflow.ID]
		}
		if k := w.core.card(a.id); k != nil {
			r := k.priced(&w.core.config)
			if r.Charge != nil {
				w.charged++
			}
			w.core.tell(&a, keyName{}, &outcome{Answer: Answer{Reservation: r}})
		} else if flow != nil {
			w.core.tell(&a, keyName{}, &outcome{Flow: &FlowAnswer{
				Workflow: flow.view(w.core.card), Offers: []engine.WorkflowOffer{{Workflow: berth.Workflow{Deadline: w.now + 99, Algorithm: "bd-cpar"}, End: w.now + 98, PESeconds: 97, Critical: []string{"a"}}},
			}})
			w.told++
		} else if s := w.core.series.byID[a.id]; s != nil {
			w.core.tell(&a, keyName{}, &outcome{Series: &SeriesAnswer{
				Series: s.view(w.core.card, &w.core.config), Offers: []OccurrenceOffers{{Number: 2, Offers: []Offer{{ID: "5d1c", Expires: w.now + 9, Offer: engine.Offer{Difference: engine.OfferLater, Request: s.s.Requests()[0]}, Charge: new(int64(4500)), Cost: &engine.Cost{Delayed: 2, Sum: 90, Largest: 60, Idle: 3600, Followed: 7, Complete: true}}}}},
			}})
			w.seriesTold++
		} else {
			w.core.tell(&a, keyName{}, &outcome{Failed: berth.Errorf(berth.Conflict, "id", "an answer")})
		}
	}
	w.append(w.core.seal(done, &a))
	if next, due := w.core.engine.Next(); due && next <= w.now {
		event := engine.Wake()
		done, a := w.core.apply(w.now, &event), asked{}
		w.over(&a, done.news)
		w.append(w.core.seal(done, &a))
	}
}

// over has what ended while its site was asked about it told, but for some that are to be placed anew.
func (w *goldenWriter) over(a *asked, list []news) {
	for _, id := range askedUntilOver(list) {
		if w.rng.IntN(3) == 0 {
			a.asking = append(a.asking, id)
		} else if a.over = append(a.over, id); w.core.tells(w.core.card(id)) {
			w.t.Errorf("%s is told of, and is asked about", id)
		} else {
			w.overTold++
		}
	}
}

// wakeAll lets everything come to its end.
func (w *goldenWriter) wakeAll() {
	for range 300 {
		next, due := w.core.engine.Next()
		if !due {
			return
		}
		w.now = max(w.now, next)
		event := engine.Wake()
		w.append(w.core.seal(w.core.apply(w.now, &event), &asked{}))
	}
}

func (w *goldenWriter) id() string {
	if len(w.ids) == 0 {
		return "none"
	}
	return w.ids[max(0, len(w.ids)-1-w.rng.IntN(12))]
}

func (w *goldenWriter) request(id string) *berth.Request {
	ready := w.now + berth.Time(max(0, w.rng.IntN(600)-200))
	d := berth.Duration(60 + w.rng.IntN(600))
	r := berth.Rigid(id, w.now, ready, ready.Add(d)+berth.Time(w.rng.IntN(900)), berth.Count(1+w.rng.IntN(7)), d)
	if r.User = []string{"ann", "bob", ""}[w.rng.IntN(3)]; r.User == "" && w.now%2 == 0 {
		r.User, r.Owner = "svc-ann", "ann"
	}
	switch w.rng.IntN(8) {
	case 0, 7:
		r.Hold = 100
	case 1:
		r.NoShow = 50
	case 2:
		r.Parts[0].Variants = append(r.Parts[0].Variants, berth.Variant{NPE: 1, Duration: 2 * d})
	case 3:
		r.Parts = append(r.Parts, berth.Part{Variants: []berth.Variant{{NPE: 2, Duration: d}}})
	case 4, 6:
		r.Software, r.Version, r.Licences, r.StorageMB = "solver", "2.0", 1, int64(300+w.rng.IntN(700))
		r.Deadline += 6000
		r.Ready += 600
	case 5:
		r.Site = "managed"
		r.Nodelist, r.Exclude = "n[0-5]", "n2"
		r.Parts[0].Only = []berth.PoolPEs{{Resource: berth.PoolID("managed", "early"), PEs: berth.NewPESet(berth.Run{Lo: 0, Hi: 6})}}
		r.QOS = "high"
		r.Parts[0].Never = []berth.PoolPEs{{Resource: berth.PoolID("managed", "early"), PEs: berth.PEsOf(2)}}
	}
	return &r
}

// submitFlow submits a workflow, some with a plan that was made beside, or with its refusal.
func (w *goldenWriter) submitFlow() engine.Event {
	f := w.workflow()
	if w.rng.IntN(2) == 0 {
		return engine.SubmitWorkflow(f)
	}
	if w.rng.IntN(3) == 0 {
		f.Deadline = f.Arrival + 1
	}
	plan, _, err := w.core.engine.PlanWorkflow(f, engine.PlanOptions{From: w.now + 2})
	if err != nil {
		return engine.SubmitWorkflow(f)
	}
	plan.Last = w.rng.IntN(2) == 0
	return engine.SubmitPlanned(f, plan)
}

// workflow draws a workflow of three tasks; the second depends on the first.
func (w *goldenWriter) workflow() *berth.Workflow {
	f := &berth.Workflow{
		ID: fmt.Sprint("w", w.flows), Name: "three", User: "ann", Role: "user", Arrival: w.now, Deadline: berth.Forever, Algorithm: berth.BestAlgorithm,
		Repair: berth.Repairs()[w.rng.IntN(3)], Free: []berth.Average{{Resource: berth.PoolID("plain", "late"), NPE: 4}},
		Tasks: []berth.WorkflowTask{
			{ID: "first", Seconds: 100.25, Alpha: .125, Retries: 1, Work: berth.Work{Command: []string{"echo", "one"}, Dir: "/home/ann", Env: []string{"A=b"}, Output: "one.out"}},
			{ID: "second", Seconds: 200, Alpha: 1, After: []int{0}, Work: berth.Work{Script: "#!/bin/sh\ntrue\n"}},
			{ID: "third", Seconds: 30, Alpha: .5, Requirements: berth.Requirements{MemoryMB: 10}},
		},
	}
	switch w.rng.IntN(5) {
	case 0:
		f.Hold = 200
	case 1:
		f.Deadline = w.now + berth.Time(150+150*w.rng.IntN(2))
	case 2:
		f.Tasks[0].Done, f.Tasks[0].Tries = true, 1
	case 3:
		f.Site, f.Sites = "managed", []string{"managed", "plain"}
	case 4: // the second moves what the first writes at another site
		f.Tasks[0].Site, f.Tasks[1].Site, f.Tasks[1].Reads = "plain", "managed", []int64{100_000_000}
		if w.rng.IntN(3) == 0 {
			f.Tasks[0].Done, f.Tasks[0].Tries = true, 1
		}
		if w.core.config.Uplink == 0 { // which the next configuration does not have
			f.Routes = []berth.Route{{From: "plain", To: "managed"}}
		}
	}
	if w.rng.IntN(2) == 0 {
		f.Account, f.QOS, f.Tasks[2].Account, f.Tasks[2].QOS = "bio", "low", "chem", "high"
	}
	w.flows++
	return f
}

// report says how a task that runs has ended.
func (w *goldenWriter) report() engine.Event {
	for r := range w.core.engine.Reservations() {
		if r.Request.Task != nil && r.State == berth.Active && w.rng.IntN(2) == 0 {
			return engine.Report(r.Request.ID, []berth.Outcome{berth.Succeeded, berth.Succeeded, berth.FailedForGood}[w.rng.IntN(3)], "exit code 0 or not")
		}
	}
	return engine.Report(w.id(), berth.Succeeded, "")
}

// submitSeries submits a series of up to five occurrences. Some overlap.
func (w *goldenWriter) submitSeries() engine.Event {
	s := &berth.Series{ID: fmt.Sprint("s", w.series), Rule: "every 10 minutes", Zone: "Europe/Berlin", Request: *w.request("")}
	n := 1 + w.rng.IntN(5)
	s.Least = []int{1, n, n/2 + 1}[w.rng.IntN(3)]
	ready, length := s.Request.Ready, s.Request.Deadline-s.Request.Ready
	for i := range n {
		s.Occurrences = append(s.Occurrences, berth.Occurrence{Ready: max(w.now, ready), Deadline: max(w.now, ready) + length, Shift: berth.Shifts()[i%3]})
		ready = max(w.now, ready) + berth.Time(100+w.rng.IntN(900))
	}
	if w.rng.IntN(2) == 0 {
		s.Ahead = s.Occurrences[0].Ready.Sub(w.now) + berth.Duration(1+w.rng.IntN(500))
		s.Least = min(s.Least, s.Due(w.now))
	}
	w.series++
	return engine.SubmitSeries(s)
}

// cancelSeries gives back some of one of the last series.
func (w *goldenWriter) cancelSeries() engine.Event {
	s := w.core.series.byID[fmt.Sprint("s", max(0, w.series-1-w.rng.IntN(3)))]
	if s == nil {
		return engine.Wake()
	}
	var of []string
	for _, id := range s.reservations[w.rng.IntN(len(s.reservations)):] {
		if id != "" {
			of = append(of, id)
		}
	}
	first := 1 + w.rng.IntN(len(s.reservations))
	if w.rng.IntN(2) == 0 {
		return w.modifySeries(s, first)
	}
	return engine.CancelSeries(s.id, of, first, first+w.rng.IntN(3))
}

// modifySeries changes what is to come of a series from an occurrence on.
func (w *goldenWriter) modifySeries(s *seriesCard, first int) engine.Event {
	x := SeriesEdit{By: berth.Duration(w.rng.IntN(200) - 50)}
	var list []berth.Request
	for _, id := range s.reservations[first-1:] {
		if k := w.core.card(id); id != "" && k != nil && k.end == "" && k.promise != nil && k.promise.State != berth.Active {
			r, _ := x.request(k.request, w.now) // which has no other shape
			r.Deadline = max(r.Deadline, r.Ready+1)
			list = append(list, r)
		}
	}
	next, _ := x.next(s, first, len(s.reservations))
	if next != nil && next.Validate() != nil {
		next = nil
	}
	return engine.ModifySeries(s.id, list, next)
}

func (w *goldenWriter) draw() engine.Event {
	early, late := berth.PoolID("managed", "early"), berth.PoolID("plain", "late")
	for r := range w.core.engine.Reservations() {
		if r.Request.Task != nil && len(r.Transfers) > 0 {
			w.hauled++
		}
	}
	pes := berth.NewPESet(berth.Run{Lo: berth.PE(w.rng.IntN(3)), Hi: berth.PE(4 + w.rng.IntN(3))})
	switch w.rng.IntN(40) {
	case 36, 37, 38:
		return w.submitSeries()
	case 39:
		return w.cancelSeries()
	case 26, 27, 28:
		return w.submitFlow()
	case 29, 30, 31, 32, 33:
		return w.report()
	case 34:
		return engine.ConfirmWorkflow(fmt.Sprint("w", max(0, w.flows-1-w.rng.IntN(3))))
	case 35:
		return engine.CancelWorkflow(fmt.Sprint("w", max(0, w.flows-1-w.rng.IntN(3))))
	case 0, 1, 2, 3, 4:
		w.ids = append(w.ids, fmt.Sprint("r", len(w.ids)))
		return engine.Submit(w.request(w.ids[len(w.ids)-1]))
	case 5, 6:
		w.ids = append(w.ids, fmt.Sprint("j", len(w.ids)))
		r := berth.Job(w.ids[len(w.ids)-1], w.now, berth.Count(1+w.rng.IntN(6)), berth.Duration(50+w.rng.IntN(500)))
		return engine.Submit(&r)
	case 7:
		return engine.Cancel(w.id())
	case 25:
		return engine.Reject(w.id(), &berth.Refusal{Reason: berth.SiteRefused, Resource: early, Wanted: 2, Words: "no such user"})
	case 8, 23:
		return engine.Confirm(w.id())
	case 9, 10:
		return engine.Modify(w.request(w.id()))
	case 11:
		return engine.Extend(w.id(), w.now+berth.Time(w.rng.IntN(1500)))
	case 12:
		return engine.CheckIn(w.id())
	case 13, 14:
		return engine.Finish(w.id())
	case 15:
		return engine.Relocate(w.id(), early, pes)
	case 16:
		return engine.Down(berth.Outage{Resource: early, PEs: pes, Until: w.now + 300})
	case 17:
		return engine.Down(berth.Outage{Resource: early, PEs: pes, From: w.now + 200, Until: w.now + 500, Name: "service"})
	case 18:
		return engine.Down(berth.Outage{Resource: late, PEs: pes, Until: berth.Forever})
	case 19:
		return engine.Up([]berth.ResourceID{early, late}[w.rng.IntN(2)], berth.NewPESet(berth.Run{Lo: 0, Hi: 6}))
	case 20, 24:
		return engine.UpdateForecast(&berth.Forecast{Site: "managed", From: w.now, Period: 100, Kilobytes: []int64{int64(60_000 + w.rng.IntN(200_000)), 300_000}})
	}
	for _, effect := range w.core.engine.Outbox() {
		return engine.Settle(effect.Number)
	}
	return engine.Wake()
}

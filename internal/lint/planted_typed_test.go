package lint

import (
	"go/types"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/source"
)

// texts returns what is wrong, without the places.
func texts(faults []fault) []string {
	var all []string
	for _, f := range faults {
		all = append(all, strings.TrimPrefix(f.text, "the order of a map matters: "))
	}
	return all
}

// lines splits a text.
func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

func TestMapOrderRuleSeesPlantedFaults(t *testing.T) {
	const (
		unsorted = "list is not sorted before it is used"
		shared   = `package p
			type item struct { n int; f float64; next *item; list []int }
			func (i *item) size() int { return i.n }
			func (i *item) move() bool { i.n++; return true }
			type sizer interface { size() int }
			type mover interface { move() bool }`
		header = `package p
			import ("cmp"; "maps"; "slices"; "sort"; "strings")
			var _, _, _, _, _ = maps.Keys[map[int]int], slices.Sort[[]int], sort.Ints, strings.Join, cmp.Or[int]
			`
	)
	for _, c := range []struct{ src, want string }{
		// What commutes.
		{`func f(m map[int]int) (n int) { for _, v := range m { n += v; n-- }; return n }`, ""},
		{`func f(m map[int]int) (n int) { for range m { n++ }; return n }`, ""},
		{`func f(m map[int]int) int { n := 9; for _, v := range m { n = min(n, 2*v, 5) }; return n }`, ""},
		{`func f(m map[int]bool) bool { any := false; for _, v := range m { any = any || v }; return any }`, ""},
		{`func f(m map[int]int) map[int]int { n := map[int]int{}; for k, v := range m { n[k] = v + 1; delete(m, k) }; return n }`, ""},
		{`func f(m map[int][]int, n map[int][]int) { for k, v := range m { n[k] = append(n[k], v...) } }`, ""},
		{`func f(m map[int]int) [3]int { var n [3]int; for _, v := range m { n[v%3]++ }; return n }`, ""},
		{`func f(m map[int]item) (n int) { for _, v := range m { for _, w := range v.list { x := w; x *= 2; n += x } }; return n }`, ""},
		{`func f(m map[int]*item) { for k, v := range m { if k == 0 { continue }; v.n = k; v.next = nil } }`, ""},
		{`func f(m map[int]*item) (n int) { for _, v := range m { n += v.size() }; return n }`, ""},
		{`func f(m map[int]sizer) (n int) { for _, v := range m { n += v.size() }; return n }`, ""},
		{`func f(l []item, m map[int]int) { for _, v := range m { i := &l[v]; if v > 1 { i.n++ } } }`, ""},
		{`func f(m map[int]int) bool { for _, v := range m { if v > 3 { return true } }; return false }`, ""},
		{`func f(m map[int]int) (found bool) { for _, v := range m { if v > 3 { found = true; break } }; return found }`, ""},
		{`func f(m map[int]int) { for k, v := range m { if v < 0 { panic(k) } } }`, ""},
		{`func f(m map[int]item) (n int) { for _, v := range m { if slices.ContainsFunc(v.list, func(x int) bool { return x > 1 }) { n++ } }; return n }`, ""},
		{`func f(m []int) (list []int) { for _, v := range m { list = append(list, v) }; return list }`, ""},

		{`func f(m map[int]int) (n int) { for _, v := range m { var l []int; l = append(l, v); n += len(l) }; return n }`, ""},
		{`func g(n int) int { out := []int{}; out = append(out, n); out[0] = 2; return out[0] }
			func f(m map[int]int) (n int) { for _, v := range m { n += g(v) }; return n }`, ""},
		{`func g(l []int) int { out := append([]int(nil), l...); out[0] = 2; return out[0] }
			func f(m map[int][]int) (n int) { for _, v := range m { n += g(v) }; return n }`, ""},

		// Slices that are sorted.
		{`func f(m map[int]int) []int { var list []int; for k := range m { list = append(list, k) }; slices.Sort(list); return list }`, ""},
		{`func f(m map[int]int) []int { var list []int; for k := range m { list = append(list, k) }; if len(list) > 1 { sort.Ints(list) }; return list }`, ""},
		{`func f(m map[int]int) (i item) { for k := range m { i.list = append(i.list, k) }; i.n = 3; slices.Sort(i.list); return i }`, ""},
		{`func f(m map[int]int) []int { return slices.Sorted(maps.Keys(m)) }`, ""},
		{`func f(m map[int]int) []int { list := slices.Collect(maps.Keys(m)); slices.SortFunc(list, func(a, b int) int { return cmp.Compare(b, a) }); return list }`, ""},
		{`func f(m map[int]int) (n int) { for k := range maps.Keys(m) { n += k }; return n }`, ""},
		{`func f(m map[int]int) map[int]int { return maps.Collect(maps.All(m)) }`, ""},

		// Slices that are not.
		{`func f(m map[int]int) (list []int) { for k := range m { list = append(list, k) }; return list }`, unsorted},
		{`func f(m map[int]int) []int { var list []int; for k := range m { list = append(list, k) }; print(list[0]); slices.Sort(list); return list }`, unsorted},
		{`func f(m map[int]int) []int { var list, l []int; for k := range m { list = append(list, k) }; slices.Sort(l); return list }`, unsorted},
		{`func f(m map[int]int) []int { var list []int; for k := range m { list = append(list, k) }; l := slices.Clone(list); slices.Sort(l); return list }`, unsorted},
		{`func f(m map[int]int) []int { var list []int; for k := range m { list = append(list, k) }; slices.SortStableFunc(list, cmp.Compare[int]); return list }`, unsorted},
		{`func f(m map[int]int, n []int) int { var list []int; for k := range m { list = append(list, k) }; n[list[0]]++; sort.Ints(list); return list[0] }`, unsorted},
		{`func g(*item); func f(m map[int]int) (i item) { for k := range m { i.list = append(i.list, k) }; g(&i); slices.Sort(i.list); return i }`, "i.list is not sorted before it is used"},
		{`func f(m map[int]int) []int { list := slices.Collect(maps.Keys(m)); return list }`, unsorted},
		{`func f(m map[int]int) []int { return slices.Collect(maps.Keys(m)) }`, "maps.Keys is neither sorted nor ranged over"},
		{`func f(m map[int]int) []int { return slices.AppendSeq([]int(nil), maps.Values(m)) }`, "maps.Values is neither sorted nor ranged over"},
		{`func f(m map[int]int) func(func(int) bool) { return maps.Keys(m) }`, "maps.Keys is neither sorted nor ranged over"},
		{`func f(m map[int]int) (list []int) { for k := range maps.Keys(m) { list = append(list, k) }; return list }`, unsorted},
		{`func f[M ~map[K]V, K comparable, V any](m M) (list []K) { for k := range m { list = append(list, k) }; return list }`, unsorted},

		// What one turn leaves to the next.
		{`func f(m map[int]int) (last int) { for k := range m { last = k }; return last }`, "the loop writes last"},
		{`func f(m map[int]int) (last int) { for last = range m { _ = 1 }; return last }`, "the loop's variables outlive it"},
		{`func f(m map[int]int) (best, which int) { for k, v := range m { if v > best { best, which = v, k } }; return }`, "the loop writes best\nthe loop writes which"},
		{`func f(m map[int]float64) (n float64) { for _, v := range m { n += v }; return n }`, "the loop writes n"},
		{`func f(m map[int]string) (s string) { for _, v := range m { s += v }; return s }`, "the loop writes s"},
		{`func f(m map[int]int) (n int) { for _, v := range m { n += v; n *= 2 }; return n }`, "the loop changes n in two ways"},
		{`func f(m map[int]int) (n int) { for _, v := range m { n = 1; if v > 2 { n = 2 } }; return n }`, "the loop changes n in two ways"},
		{`func f(m map[int]int) (n, s int) { for _, v := range m { n += v; s = max(s, n) }; return }`, "the loop reads n, which another turn has changed"},
		{`func f(m map[int]int) (n int) { for _, v := range m { n = min(n, v-n) }; return n }`, "the loop reads n, which another turn has changed"},
		{`func f(m map[int]int, n map[int]int) { for k, v := range m { n[k] = n[v] } }`, "the loop reads n[v], which another turn has changed"},
		{`func f(m map[int]int, n map[int]int) { for k, v := range m { n[v] = k } }`, "the loop writes n[v]"},
		{`func f(m map[int]int, n map[int]int) { for _, v := range m { delete(n, v) } }`, "delete changes n"},
		{`func f(m map[int]int, l []int) { for k := range m { l[k] = len(l) } }`, "the loop writes l[k]"},
		{`func f(l []item, m map[int]int) { for _, v := range m { i := &l[v]; if l[v].n < 3 { i.n++ } } }`, "the loop reads l[v].n, which another turn has changed"},
		{`func f(m map[int][]int) (a []int) { for _, v := range m { copy(a, v) }; return a }`, "copy changes a"},

		{`func f(m map[int]int) (l, o []int) { for k := range m { l, o = append(l, k), append(o, k) }; slices.Sort(l); return l, o }`, "the loop writes l\nthe loop writes o\nappend changes l\nappend changes o"},
		{`func f(m map[int]int, a []int) []int { var l []int; for k := range m { l = append(l, k); b := append(a, k); _ = b }; slices.Sort(l); return l }`, "append changes a"},

		// Ways out, and calls.
		{`func f(m map[int]int) int { for k := range m { return k }; return 0 }`, "the loop returns from one of its turns"},
		{`func f(m map[int]int) int { for _, v := range m { if v > 2 { return 1 }; return 2 }; return 0 }`, "the loop returns from one of its turns"},
		{`func f(m map[int]int) (n int) { for _, v := range m { if n += v; v > 2 { break } }; return n }`, "the loop ends early, after a part of its turns"},
		{`func f(m map[int]int) (n int) { for _, v := range m { switch { case v > 2: break }; for { break }; n++ }; return n }`, ""},
		{`func f(m map[int]int) (n int) { outer: for range 2 { for _, v := range m { if n++; v > 2 { continue outer } } }; return n }`, "the loop ends early, after a part of its turns"},
		{`func f(m map[int]int, g func(int)) { for k := range m { g(k) } }`, "the loop calls g, which may write"},
		{`func f(m map[int]*item) (n int) { for _, v := range m { if v.move() { n++ } }; return n }`, "the loop calls move, which may write"},
		{`func g(l []int) int { clear(l[1:]); return 0 }; func f(m map[int][]int) (n int) { for _, v := range m { n += g(v) }; return n }`, "the loop calls g, which may write"},
		{`func f(m map[int]mover) (n int) { for _, v := range m { if v.move() { n++ } }; return n }`, "the loop calls move, which may write"},
		{`var total int; func g(n int) int { total += n; return total }; func f(m map[int]int) (n int) { for _, v := range m { n += g(v) }; return n }`, "the loop calls g, which may write"},
		{`func a(n int) int { if n > 0 { return b(n-1) }; return 0 }; func b(n int) int { x++; return a(n) }; var x int
			func f(m map[int]int) (n int) { for _, v := range m { n += a(v) }; return n }`, "the loop calls a, which may write"},
		{`func f(m map[int]int, c chan int) { for k := range m { c <- k } }`, "the loop calls SendStmt, which may write"},
		{`func f(m map[int]int, s *strings.Builder) { for range m { s.WriteByte(1) } }`, "the loop calls WriteByte, which may write"},
	} {
		t.Run(c.src, func(t *testing.T) {
			p := plantTyped(t, "p", shared, header+c.src)
			expect(t, texts(orderFaults(typed(t).Fset, p, newQuiet([]*source.Package{p}))), lines(c.want)...)
			p = plantTyped(t, "p", shared, "test:"+header+c.src)
			expect(t, texts(orderFaults(typed(t).Fset, p, newQuiet([]*source.Package{p}))))
		})
	}
	p := plantTyped(t, "p", "package p\n\nfunc (*item) f(m map[int]int) (last int) {\n\tfor last = range m {\n\t}\n\treturn last\n}\n\ntype item int\n")
	for _, f := range orderFaults(typed(t).Fset, p, newQuiet([]*source.Package{p})) {
		expect(t, []string{f.String(), f.where}, "p/x.go:4: the order of a map matters: the loop's variables outlive it", "p/x.go (*item).f")
	}
}

func TestVariableRuleSeesPlantedFaults(t *testing.T) {
	const (
		shared = `package p
			type row struct { name string; sizes []int }; func (r row) get() string { return r.name }; func (r *row) set() { r.name = "" }
			var rows, numbers, byName, count, single = []row{{"a", nil}}, []int{1}, map[string]int{"a": 1}, 0, row{}`
		header = `package p
			import ("slices"; "sort"); var _, _ = slices.Sort[[]int], sort.Ints
			`
	)
	for _, c := range []struct{ src, want string }{
		{`var Doubled = append(slices.Clone(numbers), 2)`, ""},
		{`func f() int { for i, r := range rows { rows := i; rows++; _ = r }; return byName["a"] + count + len(single.get()) }`, ""},
		{`func f(count int) { count++; single := row{}; single.name = ""; single.set() }`, ""},
		{`func f() row { r := rows[0]; r.name = "b"; return r }`, ""},
		{`func f() { count = 1 }`, "count"},
		{`func f() { count++ }`, "count"},
		{`func f() { for count = range 3 { _ = 1 } }`, "count"},
		{`func f() { rows[0].name = "b" }`, "rows"},
		{`func f() { rows[0].sizes[1] = 2 }`, "rows"},
		{`func f() { rows = nil }`, "rows"},
		{`func f() []int { return append(numbers, 1) }`, "numbers"},
		{`func f() { slices.Sort(numbers[1:]) }`, "numbers"},
		{`func f() { sort.Ints(numbers) }`, "numbers"},
		{`func f() { delete(byName, "a") }`, "byName"},
		{`func f() *int { return &count }`, "count"},
		{`func f() *row { return &rows[0] }`, "rows"},
		{`func f() { single.set() }`, "single"},
		{`func f() func() { return single.set }`, "single"},
	} {
		for _, test := range []string{"", "test:"} {
			t.Run(test+c.src, func(t *testing.T) {
				p := plantTyped(t, "p", shared, test+header+c.src)
				var want []string
				if c.want != "" {
					want = []string{"writes the package variable " + c.want + " of a pure room"}
				}
				expect(t, texts(variableFaults(typed(t).Fset, p, []*types.Package{p.Types})), want...)
				expect(t, texts(variableFaults(typed(t).Fset, p, nil)))
			})
		}
	}
}

// The rule sees writes from other packages too.
func TestVariableRuleSeesOtherPackages(t *testing.T) {
	policy, err := typed(t).Package("policy")
	if err != nil {
		t.Fatal(err)
	}
	p := plantTyped(t, "p", `package p
		import "`+module+`/policy"
		func f() int { return len(policy.Matches) }
		func g() { policy.Matches[0].Name = "none" }`)
	expect(t, texts(variableFaults(typed(t).Fset, p, []*types.Package{policy.Types})), "writes the package variable Matches of a pure room")
}

func TestSurfaceRuleSeesPlantedFaults(t *testing.T) {
	const (
		shared = `package p
			import "` + module + `/internal/stream"
			type Alias = stream.Stream
			type hidden struct { Shown int; shy stream.Stream }
			func (h hidden) look() stream.Stream { return h.shy }
			type open struct { Door stream.Stream }
			func (o *open) Walk(stream.Source) {}
			type box[T any] struct { t T }
			`
		header = `package p
			import ("` + module + `/internal/stream"; "io"); var _ io.Reader; var _ stream.Stream
			`
		isStream, isSource = " names " + module + "/internal/stream.Stream, of an internal package", " names " + module + "/internal/stream.Source, of an internal package"
	)
	for _, c := range []struct{ src, want string }{
		{`func f(stream.Stream) {}`, ""},
		{`type t struct { S stream.Stream }`, ""},
		{`type T struct { s stream.Stream }; func (t T) get() stream.Stream { return t.s }`, ""},
		{`func F() { var s stream.Stream; _ = s }`, ""},
		{`func F(r io.Reader) (n int, err error) { return }`, ""},
		{`type T struct { A Alias; H *hidden }; func F(Alias) []Alias { return nil }`, ""},
		{`var V = hidden{}`, ""},
		{`type I interface { get() stream.Stream }`, ""},

		{`func F(stream.Stream) {}`, "F" + isStream},
		{`func F() (*stream.Stream, error) { return nil, nil }`, "F" + isStream},
		{`func F(func(...stream.Stream)) {}`, "F" + isStream},
		{`func F(map[string]chan<- []*[2]stream.Stream) {}`, "F" + isStream},
		{`func F[S interface{ ~int; Draw() stream.Stream }](S) {}`, "F.Draw" + isStream},
		{`func F[S stream.Stream | int](S) {}`, "F" + isStream},
		{`func F(box[stream.Stream]) {}`, "F" + isStream},
		{`var V = stream.New(1, "a")`, "V" + isStream},
		{`var V, W = map[stream.Stream]int{}, 3`, "V" + isStream},
		{`type T struct { S stream.Stream }`, "T.S" + isStream},
		{`type T struct { a int; In struct { S []stream.Stream } }`, "T.In.S" + isStream},
		{`type T struct { stream.Stream }`, "T.Stream" + isStream},
		{`type T struct { s stream.Stream }; func (t *T) Get() stream.Stream { return t.s }`, "T.Get" + isStream},
		{`type T []stream.Stream`, "T" + isStream},
		{`type T = []stream.Stream`, "T" + isStream},
		{`type t = stream.Stream; func F(t) {}`, "F" + isStream},
		{`type T[S stream.Stream] struct{}`, "T" + isStream},
		{`type T[S any] struct { s S }; func F() T[stream.Stream] { return T[stream.Stream]{} }`, "F" + isStream},
		{`type I interface { Get() stream.Stream }`, "I.Get" + isStream},
		{`type i interface { Get() stream.Stream }; type I interface { i }`, "I.Get" + isStream},
		{`type T struct { open }`, "T.open.Door" + isStream + "\nT.open.Walk" + isSource},
		{`func F() *open { return nil }`, "F.Door" + isStream + "\nF.Walk" + isSource},
	} {
		t.Run(c.src, func(t *testing.T) {
			p := plantTyped(t, "p", shared, header+c.src)
			var want []string
			for _, line := range lines(c.want) {
				want = append(want, "the exported "+line)
			}
			expect(t, texts(surfaceFaults(typed(t).Fset, p)), append([]string{"the exported Alias.Source" + isSource}, want...)...)
			for folder, sources := range map[string][]string{
				"p/internal/q": {shared, header + c.src}, "main": {strings.Replace(shared, "package p", "package main", 1), strings.Replace(header, "package p", "package main", 1) + c.src},
			} {
				expect(t, texts(surfaceFaults(typed(t).Fset, plantTyped(t, folder, sources...))))
			}
			expect(t, texts(surfaceFaults(typed(t).Fset, plantTyped(t, "p", "test:"+shared, "test:"+header+c.src))))
		})
	}
}

const stateSource = `package state
	type State struct { now int; entries map[string]*entry; list queue; log []int; rows []row; set numbers; by map[int]finder }
	type row struct { n int }
	type numbers struct { of []int }
	func (n *numbers) put(i int) { n.of[0] = i }
	func (n *numbers) has(i int) bool { return n.of[0] == i }
	func (n *numbers) find(i int) bool { n.of[1] = i; return n.has(i) }
	type finder interface { find(int) bool; put(int) }
	type entry struct { end int; note string }
	type queue struct { first *entry }
	func (q *queue) add(e *entry) { q.first = e }
	func (q *queue) peek() *entry { return q.first }
	func New() *State { return &State{entries: map[string]*entry{}} }
	func (s *State) Fold(id string) { s.now++; s.insert(id) }
	func (s *State) insert(id string) { e := s.entries[id]; s.list.add(e) }
	func (s *State) look(id string) *entry { return s.entries[id] }
	`

func TestOwnerRuleSeesPlantedFaults(t *testing.T) {
	o := owner{
		room: "state", types: []string{"State", "entry", "queue"},
		writers: []string{"(*State).Fold", "(*State).insert", "(*queue)"}, doors: []string{"(*State).Fold"}, readers: []string{"find"},
	}
	for _, c := range []struct{ src, want string }{
		{`func f(s *State) int { s.Fold("a"); return s.now + s.list.peek().end + s.look("a").end }`, ""},
		{`func f(s *State) entry { e := *s.look("a"); e.end = 3; fresh := &entry{}; fresh.end = 4; var q queue; q.add(fresh); return e }`, "f calls add, which writes the state"},
		{`func f(s *State) (n int) { e := &s.list; n = s.now; s = nil; _ = e; return n }`, ""},
		{`func f(s *State, x any) int { switch x := x.(type) { case int: return x }; return s.now }`, ""},
		{`func f(s *State) { s.now = 1 }`, "f writes s.now, the state's now"},
		{`func f(s *State) { s.now++ }`, "f writes s.now, the state's now"},
		{`func f(s *State) { s.log[0] = 1 }`, "f writes s.log[0], the state's log"},
		{`func f(s *State) { s.log = append(s.log, 1) }`, "f writes s.log, the state's log\nf writes s.log, the state's log"},
		{`func f(s *State) { delete(s.entries, "a") }`, "f writes s.entries, the state's entries"},
		{`func f(s *State) { s.entries["a"].end = 3 }`, `f writes s.entries["a"].end, the state's end`},
		{`func f(s *State) { e := s.look("a"); e.note = "" }`, "f writes e.note, the state's note"},
		{`func f(s *State) { *s = State{} }`, "f writes *s, the state's *s"},
		{`func f(s *State) (n int) { r := &s.rows[0]; n = r.n; r = nil; rows := s.rows; rows = rows[1:]; first := s.rows[0]; first.n = 2; return n }`, ""},
		{`func f(s *State) { r := &s.rows[0]; r.n = 2 }`, "f writes r.n, the state's rows"},
		{`func f(s *State) { var r = &s.now; *r = 2 }`, "f writes *r, the state's now"},
		{`func f(s *State) { l := s.log; l[0] = 2 }`, "f writes l[0], the state's log"},
		{`func f(s *State) { l := s.log; m := l[1:]; _ = append(m, 1) }`, "f writes m, the state's log"},
		{`func f(s *State) bool { return s.set.has(2) }`, ""},
		{`func f(s *State) { s.set.put(2) }`, "f writes s.set, the state's set"},
		{`func f(s *State) { n := &s.set; n.put(2) }`, "f writes n, the state's set"},
		{`func f(s *State) bool { return s.set.find(2) && s.by[1].find(3) }`, ""},
		{`func f(s *State) { s.by[1].put(2) }`, "f writes s.by[1], the state's by"},
		{`func f(s *State) { s.list.add(nil) }`, "f calls add, which writes the state"},
		{`func f(s *State) func(string) { return s.insert }`, "f calls insert, which writes the state"},
		{`func (s *State) tick() { func() { s.now++ }() }`, "(*State).tick writes s.now, the state's now"},
	} {
		t.Run(c.src, func(t *testing.T) {
			p := plantTyped(t, "state", stateSource+c.src)
			expect(t, texts(ownerFaults(typed(t).Fset, []*source.Package{p}, newQuiet([]*source.Package{p}), o)), lines(c.want)...)

			test := plantTyped(t, "state", stateSource, "test:package state\n"+c.src)
			expect(t, texts(ownerFaults(typed(t).Fset, []*source.Package{test}, newQuiet([]*source.Package{test}), o)))
			file := path.Base(p.Files[0].Name)
			all := owner{room: "state", types: o.types, writers: []string{file}}
			expect(t, texts(ownerFaults(typed(t).Fset, []*source.Package{p}, newQuiet([]*source.Package{p}), all)))
		})
	}
	o.writers = append(o.writers, "trial.go")
	p := plantTyped(t, "state", stateSource)
	expect(t, texts(ownerFaults(typed(t).Fset, []*source.Package{p}, newQuiet([]*source.Package{p}), o)), "the table of owners names trial.go, which is not there")
}

func TestExceptionsCoverNamedPlacesAlone(t *testing.T) {
	x := exceptions{table: []exception{{"p/x.go f", "a reason"}, {"p/x.go g", "a reason"}}}
	expect(t, x.remaining([]fault{
		{file: "p/x.go", line: 2, where: "p/x.go f", text: "one"},
		{file: "p/x.go", line: 3, where: "p/x.go h", text: "two"},
		{file: "p/x.go", line: 4, where: "p/x.go f", text: "three"},
		{file: "q/x.go", line: 5, where: "q/x.go f", text: "four"},
	}), "p/x.go:3: two", "q/x.go:5: four")
	expect(t, x.stale(), `the exception "p/x.go g" covers no fault; delete its row`)
}

// What is planted in the state of the engine itself is seen, with the table as it is.
func TestOwnerRuleSeesFaultsPlantedInTheEngine(t *testing.T) {
	src := "package state\nimport (\"github.com/berth-hpc/berth\"; \"github.com/berth-hpc/berth/calendar\")\nvar _, _ = berth.Forever, calendar.Earliest\n"
	var want []string
	for _, c := range []struct{ src, want string }{
		{`func (s *State) Skip() { s.now++ }`, "(*State).Skip writes s.now, the state's now"},
		{`func (e *Entry) Drop() { e.r.Stocks = nil }`, "(*Entry).Drop writes e.r.Stocks, the state's r"},
		{`func (s *State) Lose() { s.outages[0].Until = 0 }`, "(*State).Lose writes s.outages[0].Until, the state's Until"},
		{`func (s *State) Take(b calendar.Block) error { return s.pools[0].calendar.Add(b) }`, "(*State).Take writes s.pools[0].calendar, the state's calendar"},
		{`func (s *State) Later(e *Entry) error { return s.extend(e, nil) }`, "(*State).Later calls extend, which writes the state"},
		{`func (t *Trial) Keep() { t.log = nil }`, "(*Trial).Keep writes t.log, the state's log"},
		{`func (s *State) When(e *Entry) berth.Time { return max(s.now, e.Start()) }`, ""},
	} {
		src += c.src + "\n"
		want = append(want, lines(c.want)...)
	}
	pkgs := slices.Clone(rooms(t))
	i := slices.IndexFunc(pkgs, func(p *source.Package) bool { return p.Path == owned[0].room })
	files := append(slices.Clone(pkgs[i].Files), parsed(t, path.Join(owned[0].room, "planted.go"), src))
	planted, err := typed(t).Check(owned[0].room, files)
	if err != nil {
		t.Fatal(err)
	}
	pkgs[i] = planted
	expect(t, texts(ownerFaults(typed(t).Fset, []*source.Package{planted}, newQuiet(pkgs), owned[0])), want...)
}

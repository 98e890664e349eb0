package journal

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
)

// memory is a store in memory that may have been compacted.
type memory struct {
	begin     Position
	records   []Record
	snapshots []Snapshot // the newest last
	batches   []int      // the sizes of what was appended
	failing   error      // of each append, if it is one
}

func (m *memory) Append(_ context.Context, records ...Record) error {
	if m.failing != nil {
		return m.failing
	}
	last, _ := m.Last(context.Background())
	fresh, _, err := Fresh(last, records, func(n uint64) (Hash, error) { return m.records[n-m.begin.Number-1].Hash, nil })
	m.records, m.batches = append(m.records, fresh...), append(m.batches, len(fresh))
	return err
}

func (m *memory) Read(_ context.Context, from uint64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		if from <= m.begin.Number {
			yield(Record{}, NotKept(from, m.begin))
			return
		}
		for i := int(from - m.begin.Number - 1); i < len(m.records); i++ {
			if !yield(m.records[i], nil) {
				return
			}
		}
	}
}

func (m *memory) Last(context.Context) (Position, error) {
	if len(m.records) == 0 {
		return m.begin, nil
	}
	return m.records[len(m.records)-1].Position(), nil
}

func (m *memory) Close() error { return nil }

func (m *memory) SaveSnapshot(_ context.Context, at Position, data []byte) error {
	m.snapshots = append(m.snapshots, Snapshot{Position: at, Data: data})
	return nil
}

func (m *memory) Snapshot(_ context.Context, upTo uint64) (found Snapshot, err error) {
	for _, s := range m.snapshots {
		if s.Number <= upTo {
			found = s
		}
	}
	return found, nil
}

func (m *memory) Begin(context.Context) (Position, error) { return m.begin, nil }
func (m *memory) Compact(context.Context, uint64) error   { return errors.ErrUnsupported }
func (m *memory) Size() (int64, error)                    { return 0, nil }
func (m *memory) Found(_ context.Context, at Position, data []byte) error {
	m.begin, m.snapshots = at, []Snapshot{{Position: at, Data: data}}
	return nil
}

// founding hides that a store can begin where another one does.
type founding struct{ Store }

// historyOf returns a store with n records, the first of them dropped with begin, and snapshots of some.
func historyOf(n, begin int, snapshots ...int) *memory {
	list := chain(n)
	m := &memory{records: slices.Clone(list[begin:])}
	if begin > 0 {
		m.begin = list[begin-1].Position()
	}
	for _, s := range snapshots {
		m.snapshots = append(m.snapshots, Snapshot{Position: list[s-1].Position(), Data: fmt.Append(nil, "state ", s)})
	}
	return m
}

// A copy has all that there is, whatever it had of it before, and says how much is new.
func TestACopyHasAllThatThereIs(t *testing.T) {
	for _, c := range []struct {
		name     string
		to, from *memory
		records  int // copied
	}{
		{"of nothing", &memory{}, &memory{}, 0},
		{"without a snapshot", &memory{}, historyOf(7, 0), 7},
		{"with a snapshot", &memory{}, historyOf(7, 0, 3, 5), 7},
		{"of what begins later", &memory{}, historyOf(7, 3, 3, 5), 4},
		{"of what begins later and has no other snapshot", &memory{}, historyOf(7, 3, 3), 4},
		{"of a snapshot alone", &memory{}, historyOf(3, 3, 3), 0},
		{"that was cut short", historyOf(4, 0), historyOf(7, 0, 5), 3},
		{"that was cut short before its last record", historyOf(6, 0), historyOf(7, 0, 5), 1},
		{"that was complete but for the snapshot", historyOf(7, 0), historyOf(7, 0, 5), 0},
		{"that has as much as is compacted", historyOf(3, 0), historyOf(7, 3, 3, 5), 4},
		{"that has more than is compacted", historyOf(5, 0), historyOf(7, 3, 3, 6), 2},
		{"that began as this does", historyOf(5, 3, 3), historyOf(7, 3, 3), 2},
	} {
		copied, err := Copy(t.Context(), c.to, c.from)
		if err != nil {
			t.Errorf("a copy %s: %v", c.name, err)
			continue
		}
		last, _ := c.from.Last(t.Context())
		if end, _ := c.to.Last(t.Context()); copied.Last != last || end != last || copied.Records != c.records || copied.Begin != c.from.begin {
			t.Errorf("a copy %s: %+v and ends with record %d; want %d records up to %d", c.name, copied, end.Number, c.records, last.Number)
		}
		for i, r := range c.from.records {
			if at := int(r.Number - c.to.begin.Number - 1); !reflect.DeepEqual(c.to.records[at], r) {
				t.Errorf("a copy %s has another record %d", c.name, i)
			}
		}
		want, _ := c.from.Snapshot(t.Context(), last.Number)
		if got, _ := c.to.Snapshot(t.Context(), last.Number); got.Position != want.Position && want.Number > c.to.begin.Number || c.to.begin.Number > 0 && string(got.Data) != string(want.Data) {
			t.Errorf("a copy %s has the snapshot of record %d, want that of %d", c.name, got.Number, want.Number)
		}
	}
}

// What is not a beginning of the journal is not continued, and nothing is written to it.
func TestACopyOfAnotherHistoryIsRefused(t *testing.T) {
	other := func(n int) *memory {
		m := &memory{}
		var last Position
		for i := range n {
			r := Record{At: berth.Time(100 + i)}
			last = r.Seal(last)
			m.records = append(m.records, r)
		}
		return m
	}
	for _, c := range []struct {
		name     string
		to       Store
		from     *memory
		code     berth.Code
		msg      string
		complete *memory // what is written to
	}{
		{"another history", other(4), historyOf(7, 0), berth.Conflict, "the copy has another history: its record 4 is not one of what is to be copied", nil},
		{"a longer one", historyOf(9, 0), historyOf(7, 0), berth.Conflict, "the copy has another history: its record 9 is not one of what is to be copied", nil},
		{"one that ends before this begins", historyOf(2, 0), historyOf(7, 4, 4), berth.Conflict, "the copy ends with record 2, and what is to be copied begins with record 5: copy it to an empty one", nil},
		{"one that cannot begin there", founding{&memory{}}, historyOf(7, 4, 4), berth.Invalid, "it cannot begin with record 5", nil},
	} {
		_, err := Copy(t.Context(), c.to, c.from)
		if coded, is := errors.AsType[*berth.Error](err); !is || coded.Code != c.code || coded.Msg != c.msg {
			t.Errorf("%s: %v", c.name, err)
		}
		if m, is := c.to.(*memory); is && len(m.batches) > 0 {
			t.Errorf("%s: %d batches were written", c.name, len(m.batches))
		}
	}
	begins := historyOf(7, 3, 3)
	begins.snapshots = nil
	if _, err := Copy(t.Context(), &memory{}, begins); err == nil {
		t.Error("a journal was copied whose first snapshot is not there")
	} else if d, is := errors.AsType[*Damage](err); !is || d.After != begins.begin || d.Offset != -1 {
		t.Errorf("the first snapshot is not there: %v", err)
	}
	broken := errors.New("broken")
	if c, err := Copy(t.Context(), &memory{failing: broken}, historyOf(7, 0)); !errors.Is(err, broken) || c.Records != 0 {
		t.Errorf("nothing can be written: %+v, %v", c, err)
	}
}

// What is copied at once is bounded by number and by size.
func TestACopyIsMadeInBoundedBatches(t *testing.T) {
	to := &memory{}
	if _, err := Copy(t.Context(), to, &memory{records: chain(2*copyRecords + 5)}); err != nil || !slices.Equal(to.batches, []int{copyRecords, copyRecords, 5}) {
		t.Errorf("batches of %d, %v", to.batches, err)
	}
	to = &memory{}
	if _, err := Copy(t.Context(), to, &memory{records: chain(2 * copyRecords)}); err != nil || !slices.Equal(to.batches, []int{copyRecords, copyRecords}) {
		t.Errorf("batches of %d where nothing is left, %v", to.batches, err)
	}
	var last Position
	large := &memory{}
	for i := range 5 {
		r := Record{}
		*[]*[]byte{&r.Event, &r.Changes, &r.Effects}[i%3] = make([]byte, copyBytes/2)
		last = r.Seal(last)
		large.records = append(large.records, r)
	}
	to = &memory{}
	if _, err := Copy(t.Context(), to, large); err != nil || !slices.Equal(to.batches, []int{2, 2, 1}) {
		t.Errorf("batches of %d large records, %v", to.batches, err)
	}
}

// Records that a log has already are passed over if they are the same.
func TestOnlyFreshRecordsAreAppended(t *testing.T) {
	list := chain(8)
	last := list[4].Position()
	at := func(n uint64) (Hash, error) {
		if n < 1 || n > 5 {
			return Hash{}, fmt.Errorf("record %d was looked up in a log of 5", n)
		}
		return list[n-1].Hash, nil
	}
	for _, c := range []struct{ from, to, fresh int }{{6, 8, 3}, {5, 8, 3}, {3, 8, 3}, {1, 8, 3}, {1, 5, 0}, {2, 4, 0}, {5, 5, 0}, {6, 6, 1}, {8, 7, 0}} {
		records, bodies, err := Fresh(last, list[c.from-1:c.to], at)
		if err != nil || len(records) != c.fresh || len(bodies) != c.fresh || c.fresh > 0 && records[0].Number != 6 {
			t.Errorf("records %d to %d behind 5: %d are fresh, want %d; %v", c.from, c.to, len(records), c.fresh, err)
		}
		for i := range bodies {
			if string(bodies[i]) != string(records[i].AppendBody(nil)) {
				t.Errorf("records %d to %d behind 5: another body of record %d", c.from, c.to, records[i].Number)
			}
		}
	}
	changed := slices.Clone(list)
	changed[4].Hash[0]++
	for name, c := range map[string]struct {
		records []Record
		at      func(uint64) (Hash, error)
		code    berth.Code
	}{
		"another content of the last":    {changed[2:], at, berth.Conflict},
		"another content of the latest":  {changed[4:5], at, berth.Conflict},
		"a gap":                          {list[6:], at, berth.Conflict},
		"records without their numbers":  {make([]Record, 1), at, berth.Conflict},
		"a gap among them":               {[]Record{list[5], list[7]}, at, berth.Invalid},
		"another record among them":      {[]Record{list[5], {Number: 7, At: 99}}, at, berth.Invalid},
		"the first of another history":   {[]Record{{Number: 6, At: 99}}, at, berth.Conflict},
		"a record that is much too long": {tooLong(last), at, berth.Invalid},
	} {
		_, _, err := Fresh(last, c.records, c.at)
		if coded, is := errors.AsType[*berth.Error](err); !is || coded.Code != c.code {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
	_, _, err := Fresh(last, list[6:], at)
	if coded, is := errors.AsType[*berth.Error](err); !is || coded.Msg != "record 7 after record 5; it must be 6" {
		t.Errorf("a gap: %v", err)
	}
	world := errors.New("no answer")
	if _, _, err := Fresh(last, list[2:], func(uint64) (Hash, error) { return Hash{}, world }); !errors.Is(err, world) {
		t.Errorf("the log cannot be asked: %v", err)
	}
}

// tooLong returns a record after a place whose body is longer than a body may be.
func tooLong(after Position) []Record {
	r := Record{Event: make([]byte, MaxBody)}
	r.Seal(after)
	return []Record{r}
}

package journal

import (
	"bytes"
	"errors"
	"testing"

	"github.com/berth-hpc/berth"
)

// keptOf returns the row of a snapshot and its data in parts of three bytes.
func keptOf(at Position, data []byte) (row KeptSnapshot, parts [][]byte) {
	row = KeptSnapshot{At: at, Size: int64(len(data)), Sum: DigestSnapshot(at, data)}
	for rest := data; len(rest) > 0; {
		n := min(3, len(rest))
		parts, rest = append(parts, rest[:n]), rest[n:]
	}
	return row, parts
}

// shown calls visit for each part, and ends with an error, if there is one.
func shown(parts [][]byte, err error) func(visit func([]byte)) error {
	return func(visit func([]byte)) error {
		for _, p := range parts {
			visit(p)
		}
		return err
	}
}

func TestASnapshotIsLoadedAsItWasSaved(t *testing.T) {
	at := chain(2)[1].Position()
	for _, content := range []string{"", "a", "abc", "abcdefgh"} {
		row, parts := keptOf(at, []byte(content))
		for _, hash := range []*Hash{nil, &at.Hash} {
			var data []byte
			if damage, err := row.Load(hash, "f", &data, shown(parts, nil)); damage != nil || err != nil || string(data) != content {
				t.Errorf("%q is loaded as %q: %v, %v", content, data, damage, err)
			}
			if damage, err := row.Load(hash, "f", nil, shown(parts, nil)); damage != nil || err != nil {
				t.Errorf("%q without its data: %v, %v", content, damage, err)
			}
		}
	}
}

// What is not as it was saved is a damage, with its place, file and cause; a failure of the world is
// an error and no damage.
func TestASnapshotThatIsNotWhatWasSaved(t *testing.T) {
	list := chain(2)
	at, other := list[1].Position(), list[0].Hash
	row, parts := keptOf(at, []byte("abcdefgh"))
	changed := func(change func(k *KeptSnapshot)) KeptSnapshot {
		k := row
		change(&k)
		return k
	}
	cause, world := errors.New("a bad page"), errors.New("no answer")
	for _, c := range []struct {
		name  string
		row   KeptSnapshot
		hash  *Hash
		each  func(visit func([]byte)) error
		cause error
	}{
		{"another record", row, &other, shown(parts, nil), nil},
		{"a negative size", changed(func(k *KeptSnapshot) { k.Size = -1 }), nil, shown(nil, nil), nil},
		{"a size beyond every snapshot", changed(func(k *KeptSnapshot) { k.Size = maxSnapshot + 1 }), nil, shown(parts, nil), nil},
		{"a size that is less", changed(func(k *KeptSnapshot) { k.Size-- }), nil, shown(parts, nil), nil},
		{"a size that is more", changed(func(k *KeptSnapshot) { k.Size++ }), nil, shown(parts, nil), nil},
		{"another checksum", changed(func(k *KeptSnapshot) { k.Sum = DigestSnapshot(at, []byte("abcdefgi")) }), nil, shown(parts, nil), nil},
		{"another place", changed(func(k *KeptSnapshot) { k.At.Number++ }), nil, shown(parts, nil), nil},
		{"a part that is missing", row, nil, shown(parts[1:], nil), nil},
		{"parts in another order", row, nil, shown([][]byte{parts[1], parts[0], parts[2]}, nil), nil},
		{"a part that cannot be read", row, nil, shown(parts, &Damage{Cause: cause}), cause},
	} {
		var data []byte
		damage, err := c.row.Load(c.hash, "snapshots", &data, c.each)
		if err != nil || damage == nil || damage.After != c.row.At || damage.File != "snapshots" || damage.Offset != -1 || damage.Reason == "" || !errors.Is(damage.Cause, c.cause) {
			t.Errorf("%s: %+v, %v", c.name, damage, err)
		}
		if int64(len(data)) > max(c.row.Size, 0) {
			t.Errorf("%s: %d bytes are kept of %d", c.name, len(data), c.row.Size)
		}
	}
	if damage, err := row.Load(nil, "snapshots", nil, shown(parts, world)); damage != nil || !errors.Is(err, world) {
		t.Errorf("a failure of the world: %v, %v", damage, err)
	}
	if largest := (KeptSnapshot{Size: maxSnapshot}); largest.At == at {
		t.Fatal("the places are the same")
	} else if damage, err := largest.Load(nil, "", nil, shown(nil, world)); damage != nil || !errors.Is(err, world) {
		t.Errorf("the largest snapshot is not read: %v, %v", damage, err)
	}
}

func TestASnapshotIsSavedAlready(t *testing.T) {
	list := chain(3)
	at := list[1].Position()
	data := []byte("abcdefgh")
	row, _ := keptOf(at, data)
	digest, world := DigestSnapshot(at, data), errors.New("no answer")
	sound := func(*KeptSnapshot, *[]byte) (*Damage, error) { return nil, nil }
	for _, c := range []struct {
		name   string
		rows   []KeptSnapshot
		at     Position
		size   int
		digest []byte
		load   func(*KeptSnapshot, *[]byte) (*Damage, error)
		want   bool
		err    error
	}{
		{"it is", []KeptSnapshot{row}, at, 8, digest, sound, true, nil},
		{"there is none", nil, at, 8, digest, sound, false, nil},
		{"the newest is of another place", []KeptSnapshot{{At: list[2].Position()}, row}, at, 8, digest, sound, false, nil},
		{"another size", []KeptSnapshot{row}, at, 9, digest, sound, false, nil},
		{"another content", []KeptSnapshot{row}, at, 8, DigestSnapshot(at, []byte("abcdefgi")), sound, false, nil},
		{"it is damaged", []KeptSnapshot{row}, at, 8, digest, func(*KeptSnapshot, *[]byte) (*Damage, error) { return &Damage{}, nil }, false, nil},
		{"the world fails", []KeptSnapshot{row}, at, 8, digest, func(*KeptSnapshot, *[]byte) (*Damage, error) { return &Damage{}, world }, false, world},
	} {
		if got, err := IsSaved(c.rows, c.at, c.size, c.digest, c.load); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %v, %v", c.name, got, err)
		}
	}
}

// The newest snapshot that is sound is loaded, and those that are newer and damaged are told of; what is
// before the first record kept is not looked at.
func TestNewestSnapshot(t *testing.T) {
	list := chain(9)
	row := func(n int) KeptSnapshot { return KeptSnapshot{At: list[n-1].Position()} }
	damaged := map[uint64]bool{}
	world := errors.New("no answer")
	var loaded []uint64
	load := func(k *KeptSnapshot, data *[]byte) (*Damage, error) {
		loaded = append(loaded, k.At.Number)
		if k.At.Number == 9 {
			return nil, world
		}
		if damaged[k.At.Number] {
			return &Damage{After: k.At}, nil
		}
		*data = []byte{byte(k.At.Number)}
		return nil, nil
	}
	for _, c := range []struct {
		name    string
		rows    []KeptSnapshot
		begin   uint64
		damaged []uint64
		want    uint64 // 0 is none
		told    []uint64
	}{
		{"none", nil, 0, nil, 0, nil},
		{"the newest", []KeptSnapshot{row(6), row(4), row(2)}, 0, nil, 6, nil},
		{"the newest is damaged", []KeptSnapshot{row(6), row(4), row(2)}, 0, []uint64{6}, 4, []uint64{6}},
		{"two are damaged", []KeptSnapshot{row(6), row(4), row(2)}, 0, []uint64{6, 4}, 2, []uint64{6, 4}},
		{"all are damaged", []KeptSnapshot{row(6), row(4)}, 0, []uint64{6, 4}, 0, []uint64{6, 4}},
		{"the one where the chain begins", []KeptSnapshot{row(6), row(4), row(2)}, 4, []uint64{6}, 4, []uint64{6}},
		{"those before are gone", []KeptSnapshot{row(6), row(4), row(2)}, 5, []uint64{6}, 0, []uint64{6}},
	} {
		loaded, damaged = nil, map[uint64]bool{}
		for _, n := range c.damaged {
			damaged[n] = true
		}
		found, err := NewestSnapshot(c.rows, c.begin, load)
		if err != nil || found.Number != c.want || len(found.Damaged) != len(c.told) {
			t.Errorf("%s: %+v, %v", c.name, found, err)
			continue
		}
		for i, n := range c.told {
			if found.Damaged[i].After != list[n-1].Position() {
				t.Errorf("%s: damage %d is after record %d, want %d", c.name, i, found.Damaged[i].After.Number, n)
			}
		}
		if c.want > 0 && (found.Position != list[c.want-1].Position() || !bytes.Equal(found.Data, []byte{byte(c.want)})) || c.want == 0 && found.Data != nil {
			t.Errorf("%s: %+v", c.name, found)
		}
		for _, n := range loaded {
			if n < c.begin {
				t.Errorf("%s: the snapshot of record %d is loaded, and the chain begins with %d", c.name, n, c.begin)
			}
		}
	}
	if _, err := NewestSnapshot([]KeptSnapshot{row(9), row(4)}, 0, load); !errors.Is(err, world) {
		t.Errorf("a failure of the world: %v", err)
	}
}

// A record that is not there is still to come, dropped, or lost.
func TestWhyARecordIsMissing(t *testing.T) {
	list := chain(9)
	world := errors.New("no answer")
	at := func(n int, err error) func() (Position, error) {
		return func() (Position, error) {
			if n == 0 {
				return Position{}, err
			}
			return list[n-1].Position(), err
		}
	}
	if err := Missing(list[6].Position(), "f", at(7, nil), at(0, world)); err != nil {
		t.Errorf("the record after the last one: %v", err)
	}
	if err := Missing(list[7].Position(), "f", at(7, nil), at(0, world)); err != nil {
		t.Errorf("a record beyond the last one: %v", err)
	}
	if err := Missing(list[3].Position(), "f", at(7, world), at(0, nil)); !errors.Is(err, world) {
		t.Errorf("the last place is unknown: %v", err)
	}
	if err := Missing(list[3].Position(), "f", at(7, nil), at(0, world)); !errors.Is(err, world) {
		t.Errorf("the first place is unknown: %v", err)
	}
	err := Missing(list[3].Position(), "f", at(7, nil), at(5, nil))
	if coded, is := errors.AsType[*berth.Error](err); !is || coded.Code != berth.NotFound || coded.Msg != "record 5 is no longer kept; the first record kept is 6" {
		t.Errorf("a record that was dropped: %v", err)
	}
	for _, begin := range []int{0, 4} { // of those behind the first one none is dropped
		err := Missing(list[3].Position(), "f", at(7, nil), at(begin, nil))
		if d, is := errors.AsType[*Damage](err); !is || d.After != list[3].Position() || d.File != "f" || d.Offset != -1 || d.Acknowledged != 7 || d.Reason != "record 5 is missing" {
			t.Errorf("a record that is lost, where the chain begins after %d: %v", begin, err)
		}
	}
}

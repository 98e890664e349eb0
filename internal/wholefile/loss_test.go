package wholefile

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
)

// losing is a file system of one folder that loses what was not synced. Of a file's
// content that is any part of what was written; of the names those that were changed
// last, since file systems write changes of names down in their order.
type losing struct {
	made    int
	content map[int]string // by file
	durable map[int]string
	names   []map[string]int // which file a name is: as it was synced, then after each change
	before  func(op string)  // called before each operation
	fails   string           // the operation that fails
}

var errDisk = errors.New("input/output error")

func newLosing(name, content string) *losing {
	return &losing{content: map[int]string{0: content}, durable: map[int]string{0: content}, names: []map[string]int{{name: 0}}}
}

func (d *losing) op(name string) error {
	if d.before != nil {
		d.before(name)
	}
	if d.fails == name {
		return errDisk
	}
	return nil
}

// change changes the names.
func (d *losing) change(f func(names map[string]int)) {
	now := maps.Clone(d.names[len(d.names)-1])
	f(now)
	d.names = append(d.names, now)
}

type losingFile struct {
	d    *losing
	id   int
	name string
}

func (d *losing) createTemp(_, pattern string) (file, error) {
	if err := d.op("create"); err != nil {
		return nil, err
	}
	d.made++
	f := &losingFile{d, d.made, strings.Replace(pattern, "*", fmt.Sprint(d.made), 1)}
	d.content[f.id], d.durable[f.id] = "", ""
	d.change(func(names map[string]int) { names[f.name] = f.id })
	return f, nil
}

func (f *losingFile) Name() string { return f.name }

func (f *losingFile) Write(data []byte) (int, error) {
	if err := f.d.op("write"); err != nil {
		f.d.content[f.id] += string(data[:len(data)/2])
		return len(data) / 2, err
	}
	f.d.content[f.id] += string(data)
	return len(data), nil
}

func (f *losingFile) Sync() error {
	if err := f.d.op("sync"); err != nil {
		return err
	}
	f.d.durable[f.id] = f.d.content[f.id]
	return nil
}

func (f *losingFile) Close() error { return f.d.op("close") }

func (d *losing) rename(from, to string) error {
	if err := d.op("rename"); err != nil {
		return err
	}
	d.change(func(names map[string]int) {
		names[to[strings.LastIndex(to, "/")+1:]] = names[from]
		delete(names, from)
	})
	return nil
}

func (d *losing) remove(path string) error {
	d.change(func(names map[string]int) { delete(names, path) })
	return nil
}

func (d *losing) syncFolder(string) error {
	if err := d.op("sync the folder"); err != nil {
		return err
	}
	d.names = d.names[len(d.names)-1:]
	return nil
}

// left returns every content that a file may have if the power fails now.
func (d *losing) left(name string) []string {
	var all []string
	for _, names := range d.names {
		id, is := names[name]
		if !is {
			all = append(all, "(no file)")
			continue
		}
		durable, now := d.durable[id], d.content[id]
		for n := len(durable); n <= len(now); n++ {
			all = append(all, now[:n], now[:n]+strings.Repeat("\x00", len(now)-n))
		}
	}
	return all
}

// hasty is a file system that leaves something out.
type hasty struct {
	*losing
	omits string
}

func (d hasty) createTemp(folder, pattern string) (file, error) {
	f, err := d.losing.createTemp(folder, pattern)
	return hastyFile{f, d.omits == "sync"}, err
}

type hastyFile struct {
	file
	omits bool
}

func (f hastyFile) Sync() error {
	if f.omits {
		return nil
	}
	return f.file.Sync()
}

func (d hasty) syncFolder(path string) error {
	if d.omits == "sync the folder" {
		return nil
	}
	return d.losing.syncFolder(path)
}

// lost returns what is wrong with a file that is replaced on a file system that loses, of
// which one operation may fail: at any moment it must be the old one or the new one,
// whole, and the new one once Write has said so.
func lost(omits, fails string) (wrong []string) {
	const older, newer = "an old content", "new"
	d := newLosing("name", older)
	d.fails = fails
	look := func(when string, allowed ...string) {
		for _, left := range d.left("name") {
			ok := false
			for _, content := range allowed {
				ok = ok || left == content
			}
			if !ok {
				wrong = append(wrong, fmt.Sprintf("%s: %q", when, left))
			}
		}
	}
	d.before = func(op string) { look("before "+op, older, newer) }
	err := write(hasty{d, omits}, "folder/name", []byte(newer))
	if d.before = nil; err == nil {
		look("after it was written", newer)
	} else {
		look("after an error", older, newer)
	}
	if (err != nil) != (fails != "") {
		wrong = append(wrong, fmt.Sprintf("the error is %v", err))
	}
	return wrong
}

// After a loss of power at any moment a file is the old one or the new one, and never part
// of it, whichever operation failed; once it is said to be written it is the new one.
func TestLossOfPowerLeavesAWholeFile(t *testing.T) {
	for _, fails := range []string{"", "create", "write", "sync", "close", "rename", "sync the folder"} {
		if wrong := lost("", fails); len(wrong) > 0 {
			t.Errorf("%s fails: %q", fails, wrong)
		}
	}
}

// A Write that left out a sync would be found.
func TestAMissingSyncIsFoundOut(t *testing.T) {
	for _, omits := range []string{"sync", "sync the folder"} {
		if wrong := lost(omits, ""); len(wrong) == 0 {
			t.Errorf("without %s nothing is lost", omits)
		}
	}
}

package sweep

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/berth-hpc/berth"
)

// squares is a plan of n cells; taken counts how often each was measured.
func squares(n int, taken []atomic.Int64) *Plan {
	p := &Plan{Name: "squares", Version: 2, Settings: []Setting{{"seed", "1"}, {"scale", "quick"}}}
	for i := range n {
		p.Cells = append(p.Cells, Cell{Key: fmt.Sprintf("i=%d", i), Run: func(context.Context) ([]float64, error) {
			taken[i].Add(1)
			return []float64{float64(i * i), math.Sqrt(float64(i)), math.NaN()}, nil
		}})
	}
	return p
}

func run(t *testing.T, p *Plan, o Options) *Results {
	t.Helper()
	r, err := Run(t.Context(), p, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func invalid(t *testing.T, err error, field, words string) {
	t.Helper()
	e, is := errors.AsType[*berth.Error](err)
	if !is || e.Code != berth.Invalid || e.Field != field || !strings.Contains(e.Msg, words) {
		t.Errorf("error %v; want one about %s with %q", err, field, words)
	}
}

func TestEveryCellIsTakenOnce(t *testing.T) {
	taken := make([]atomic.Int64, 100)
	var told, begun atomic.Int64
	r := run(t, squares(100, taken), Options{Begin: func(todo []int) { begun.Add(int64(len(todo))) }, Progress: func(done, total int) {
		if done < 1 || done > total || total != 100 {
			t.Errorf("told %d of %d", done, total)
		}
		told.Add(1)
	}})
	if !r.Complete() || r.Len() != 100 || told.Load() != 100 || begun.Load() != 100 {
		t.Errorf("%d cells, told %d times", r.Len(), told.Load())
	}
	for i := range taken {
		if n := taken[i].Load(); n != 1 {
			t.Errorf("cell %d was taken %d times", i, n)
		}
	}
	if v := r.Of("i=7"); v[0] != 49 || !math.IsNaN(v[2]) || r.Of("i=100") != nil {
		t.Errorf("values %v", v)
	}
}

// What was interrupted goes on where it stopped, and its bytes are those of a
// sweep without disturbance. A line cut off in the midst is measured again.
func TestInterruptedSweepGoesOn(t *testing.T) {
	taken := make([]atomic.Int64, 40)
	whole := run(t, squares(40, taken), Options{})
	path := filepath.Join(t.TempDir(), "cells.jsonl")
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Run(ctx, squares(40, make([]atomic.Int64, 40)), Options{File: path, Progress: func(done, _ int) {
		if done == 10 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	kept, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Count(string(kept), "\n") - 1
	if lines < 10 || lines >= 40 {
		t.Fatalf("%d measurements are kept", lines)
	}
	if err := os.WriteFile(path, kept[:len(kept)-5], 0o666); err != nil { // as a kill may leave it
		t.Fatal(err)
	}
	again := make([]atomic.Int64, 40)
	var asked atomic.Int64
	r := run(t, squares(40, again), Options{File: path, Progress: func(_, total int) { asked.Store(int64(total)) }})
	if asked.Load() != int64(40-lines+1) || !slices.Equal(r.Bytes(), whole.Bytes()) {
		t.Errorf("%d cells were measured again, want %d, and the same bytes", asked.Load(), 40-lines+1)
	}
	// What is there is not measured again, and the file is as good as another.
	none := make([]atomic.Int64, 40)
	if r = run(t, squares(40, none), Options{File: path}); !slices.Equal(r.Bytes(), whole.Bytes()) {
		t.Error("a complete file gives other bytes")
	}
	for i := range none {
		if none[i].Load() != 0 {
			t.Errorf("cell %d was measured again", i)
		}
	}
}

func TestShardsMakeTheWhole(t *testing.T) {
	taken := make([]atomic.Int64, 41)
	whole := run(t, squares(41, taken), Options{})
	folder := t.TempDir()
	var files []string
	parts := make([]atomic.Int64, 41)
	for i := 1; i <= 4; i++ {
		path := filepath.Join(folder, fmt.Sprintf("%d.jsonl", i))
		r := run(t, squares(41, parts), Options{File: path, Shard: Shard{i, 4}})
		if r.Complete() {
			t.Errorf("shard %d is all", i)
		}
		files = append(files, path)
	}
	for i := range parts {
		if n := parts[i].Load(); n != 1 {
			t.Errorf("cell %d was taken in %d shards", i, n)
		}
	}
	// All but one is not all.
	if r := run(t, squares(2, make([]atomic.Int64, 2)), Options{File: filepath.Join(folder, "half"), Shard: Shard{2, 2}}); r.Complete() || r.Len() != 1 {
		t.Errorf("one of two cells is all, or %d", r.Len())
	}
	slices.Reverse(files)
	// A file given twice counts once.
	r := run(t, squares(41, nil), Options{From: append(files, files[0])})
	if r.Len() != 41 || !slices.Equal(r.Bytes(), whole.Bytes()) {
		t.Error("the shards together are not the whole")
	}
	_, err := Run(t.Context(), squares(41, nil), Options{From: files[1:]})
	invalid(t, err, "merge", "10 of 41 measurements are in none of the files, i=3 the first")
}

// What does not belong together is not mixed.
func TestMixedUpFiles(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "cells.jsonl")
	good := string(run(t, squares(5, make([]atomic.Int64, 5)), Options{}).Bytes())
	head, rest, _ := strings.Cut(good, "\n")
	for name, c := range map[string]struct{ content, words string }{
		"another sweep":    {strings.Replace(good, `"squares"`, `"cubes"`, 1), `measurements of "cubes", not of "squares"`},
		"another version":  {strings.Replace(good, `"version":2`, `"version":1`, 1), "version 1, and this berth makes version 2"},
		"another setting":  {strings.Replace(good, `"quick"`, `"full"`, 1), "scale full, and here it is quick"},
		"a setting less":   {strings.Replace(good, `,{"name":"scale","value":"quick"}`, "", 1), "without scale, and here it is quick"},
		"a setting more":   {strings.Replace(good, `"value":"quick"}`, `"value":"quick"},{"name":"x","value":"1"}`, 1), "5 cells and 3 settings"},
		"fewer cells":      {strings.Replace(good, `"cells":5`, `"cells":4`, 1), "4 cells"},
		"an unknown cell":  {strings.Replace(good, "i=3", "i=9", 1), `:5: the plan has no measurement "i=9"`},
		"another result":   {good + strings.Replace(strings.Split(rest, "\n")[2], "[4,", "[5,", 1) + "\n", "i=2 was measured before, with another result"},
		"a damaged line":   {head + "\n{\"cell\":\"i=0\"\n" + rest, ":2: not a measurement"},
		"no measurements":  {"id,verdict\nS1,held\n", ":1: no file of measurements"},
		"not even a line":  {"hello", ":1: no file of measurements"},
		"one without name": {strings.Replace(good, "squares", "", 1), ":1: no file of measurements"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, []byte(c.content), 0o666); err != nil {
				t.Fatal(err)
			}
			_, err := Run(t.Context(), squares(5, make([]atomic.Int64, 5)), Options{From: []string{path}})
			invalid(t, err, "merge", c.words)
			_, err = Run(t.Context(), squares(5, make([]atomic.Int64, 5)), Options{File: path})
			invalid(t, err, "cells", c.words)
			if left, _ := os.ReadFile(path); string(left) != c.content {
				t.Error("the file was changed")
			}
		})
	}
	_, err := Run(t.Context(), squares(5, nil), Options{From: []string{filepath.Join(folder, "none")}})
	invalid(t, err, "merge", "no such file")
	_, err = Run(t.Context(), squares(5, nil), Options{File: filepath.Join(folder, "none", "cells")})
	invalid(t, err, "cells", "cannot write")
}

// A folder, a device and a pipe are no files of measurements, and a file without
// lines is not read into memory as one line.
func TestFilesWithoutEnd(t *testing.T) {
	folder := t.TempDir()
	pipe := filepath.Join(folder, "pipe")
	if exec.Command("mkfifo", pipe).Run() != nil {
		pipe = os.DevNull // a system without them
	}
	long := filepath.Join(folder, "long")
	good := string(run(t, squares(5, make([]atomic.Int64, 5)), Options{}).Bytes())
	if err := os.WriteFile(long, []byte(good+strings.Repeat("x", maxLine+1<<16)), 0o666); err != nil {
		t.Fatal(err)
	}
	longer := filepath.Join(folder, "longer")
	if err := os.WriteFile(longer, []byte(strings.Repeat("x", maxLine+1<<16)), 0o666); err != nil {
		t.Fatal(err)
	}
	for path, words := range map[string]string{
		folder: ": a folder; want a file that --cells has made", pipe: "no regular file", os.DevNull: "no regular file",
		long: ":7: not a measurement; the file is damaged", longer: ":1: no file of measurements",
	} {
		_, err := Run(t.Context(), squares(5, nil), Options{From: []string{path}})
		invalid(t, err, "merge", words)
		_, err = Run(t.Context(), squares(5, make([]atomic.Int64, 5)), Options{File: path})
		invalid(t, err, "cells", words)
		if path != long {
			_, err = Describe(path)
			invalid(t, err, "merge", words)
		}
	}
}

// A file that gzip has packed is merged as it is, a damaged one is told of, and nothing is
// added to one.
func TestPackedFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cells.jsonl.gz")
	pack := func(text string) []byte {
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		if _, err := z.Write([]byte(text)); err != nil || z.Close() != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	put := func(content []byte) {
		if err := os.WriteFile(path, content, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	whole := run(t, squares(50, make([]atomic.Int64, 50)), Options{})
	packed := pack(string(whole.Bytes()))
	put(packed)
	if r := run(t, squares(50, nil), Options{From: []string{path}}); !bytes.Equal(r.Bytes(), whole.Bytes()) {
		t.Errorf("of a packed file it is\n%s", r.Bytes())
	}
	if d, err := Describe(path); err != nil || d.Name != "squares" || d.Cells != 50 {
		t.Errorf("%+v, %v", d, err)
	}
	_, err := Run(t.Context(), squares(50, nil), Options{File: path})
	invalid(t, err, "cells", "packed by gzip; want it unpacked")
	if left, _ := os.ReadFile(path); !bytes.Equal(left, packed) {
		t.Error("the file was changed")
	}
	for words, content := range map[string][]byte{
		": unpacking: ":                         packed[:6],
		"unexpected EOF; the file is damaged":   packed[:len(packed)-12],
		"invalid checksum; the file is damaged": append(bytes.Clone(packed[:len(packed)-8]), 1, 2, 3, 4, 5, 6, 7, 8),
		":1: no file of measurements":           pack("id,verdict\n"),
		":3: not a measurement":                 pack(strings.Replace(string(whole.Bytes()), "i=1\"", "", 1)),
	} {
		put(content)
		_, err := Run(t.Context(), squares(50, nil), Options{From: []string{path}})
		invalid(t, err, "merge", words)
	}
	put(packed[:6])
	_, err = Describe(path)
	invalid(t, err, "merge", ": unpacking: ")
}

// Two processes do not write to the same file.
func TestAFileIsWrittenByOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cells.jsonl")
	p := squares(2, make([]atomic.Int64, 2))
	measure := p.Cells[0].Run
	p.Cells[0].Run = func(ctx context.Context) ([]float64, error) {
		_, err := Run(ctx, squares(2, make([]atomic.Int64, 2)), Options{File: path})
		if e, is := errors.AsType[*berth.Error](err); !is || e.Code != berth.Conflict || !strings.Contains(e.Msg, "another process is writing to it") {
			t.Errorf("error %v", err)
		}
		return measure(ctx)
	}
	if r := run(t, p, Options{File: path}); !r.Complete() {
		t.Error("the first did not end")
	}
	if r := run(t, squares(2, nil), Options{From: []string{path}}); !r.Complete() {
		t.Error("the file is not whole")
	}
}

// A file says of what plan it is, to those who have none.
func TestDescribe(t *testing.T) {
	folder := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	whole := string(run(t, squares(3, make([]atomic.Int64, 3)), Options{}).Bytes())
	d, err := Describe(write("whole", whole))
	if err != nil || d.Name != "squares" || d.Version != 2 || d.Cells != 3 || !slices.Equal(d.Settings, squares(0, nil).Settings) {
		t.Errorf("%+v, %v", d, err)
	}
	for words, path := range map[string]string{
		"no such file":                        filepath.Join(folder, "none"),
		"empty; its shard was interrupted":    write("empty", ""),
		":1: no file of measurements":         write("text", "id,verdict\n"),
		"cut:1: no file of measurements":      write("cut", whole[:40]),
		"nameless:1: no file of measurements": write("nameless", "{}\n"),
	} {
		_, err := Describe(path)
		invalid(t, err, "merge", words)
	}
	// A reader with the plan from a file is told so.
	p := squares(3, nil)
	p.Source, p.Settings[0].Value = "first.jsonl", "7"
	_, err = Run(t.Context(), p, Options{From: []string{filepath.Join(folder, "whole")}})
	invalid(t, err, "merge", "measurements with seed 1, and in first.jsonl it is 7")
}

func TestOptions(t *testing.T) {
	some := make([]atomic.Int64, 5)
	for words, c := range map[string]struct {
		field string
		plan  *Plan
		o     Options
	}{
		"nothing to measure": {"sweep", squares(0, nil), Options{}},
		"want --cells FILE":  {"shard", squares(5, some), Options{Shard: Shard{1, 2}}},
		"only 5":             {"shard", squares(5, some), Options{Shard: Shard{1, 6}, File: "x"}},
		"want I/N":           {"shard", squares(5, some), Options{Shard: Shard{3, 2}, File: "x"}},
		"no shard besides":   {"merge", squares(5, some), Options{Shard: Shard{1, 2}, From: []string{"x"}}},
		"nothing to keep":    {"merge", squares(5, some), Options{File: "x", From: []string{"x"}}},
	} {
		_, err := Run(t.Context(), c.plan, c.o)
		invalid(t, err, c.field, words)
	}
	for _, text := range []string{"", "1", "0/2", "3/2", "1/0", "0/0", "a/b", "1/2/3", "-1/2", "1/9999999"} {
		if _, err := ParseShard(text); err == nil {
			t.Errorf("%q is a shard", text)
		}
	}
	if s, err := ParseShard("2/8"); err != nil || s != (Shard{2, 8}) || s.String() != "2/8" {
		t.Errorf("%v, %v", s, err)
	}
}

func TestOne(t *testing.T) {
	p := squares(5, make([]atomic.Int64, 5))
	if v, err := One(t.Context(), p, "i=3"); err != nil || v[0] != 9 {
		t.Errorf("%v, %v", v, err)
	}
	_, err := One(t.Context(), p, "i=5")
	if e, is := errors.AsType[*berth.Error](err); !is || e.Code != berth.NotFound || !strings.Contains(e.Msg, "5 from i=0 to i=4") {
		t.Errorf("error %v", err)
	}
	_, err = One(t.Context(), squares(0, nil), "i=5")
	invalid(t, err, "sweep", "nothing to measure")
}

func TestTheFirstFailureEndsTheSweep(t *testing.T) {
	fault := errors.New("broken")
	p := squares(1000, make([]atomic.Int64, 1000))
	var done atomic.Int64
	for i := range p.Cells {
		p.Cells[i].Run = func(context.Context) ([]float64, error) {
			done.Add(1)
			if i == 3 {
				return nil, fault
			}
			return []float64{1}, nil
		}
	}
	if _, err := Run(t.Context(), p, Options{}); !errors.Is(err, fault) || done.Load() == 1000 {
		t.Errorf("error %v after %d cells", err, done.Load())
	}
}

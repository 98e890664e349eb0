package workload_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/workload"
)

func zipped(t *testing.T, text string) string {
	t.Helper()
	var buf bytes.Buffer
	zip := gzip.NewWriter(&buf)
	if _, err := io.WriteString(zip, text); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

const oneRequest = `{"id":"a","arrival":0,"ready":0,"deadline":60,"duration":60,"npe":8}` + "\n"

// Compression is told by content, the form by name and else by content.
func TestOpenTellsTheForm(t *testing.T) {
	for name, c := range map[string]struct {
		file, content string
		want          workload.Form
	}{
		"swf":                  {"log.swf", job(1, 0, 60, 8), workload.SWF},
		"swf.gz":               {"log.swf.gz", zipped(t, job(1, 0, 60, 8)), workload.SWF},
		"capitals":             {"LOG.SWF.GZ", zipped(t, job(1, 0, 60, 8)), workload.SWF},
		"gz without gzip":      {"log.swf.gz", job(1, 0, 60, 8), workload.SWF},
		"gzip without gz":      {"log.swf", zipped(t, job(1, 0, 60, 8)), workload.SWF},
		"two gzip members":     {"log.swf.gz", zipped(t, job(1, 0, 60, 8)) + zipped(t, job(2, 0, 60, 8)), workload.SWF},
		"jsonl":                {"requests.jsonl", oneRequest, workload.JSONL},
		"jsonl.gz":             {"requests.jsonl.gz", zipped(t, oneRequest), workload.JSONL},
		"no ending, log":       {"log", "\n\n; MaxProcs: 8\n" + job(1, 0, 60, 8), workload.SWF},
		"no ending, requests":  {"requests", "\n \t\r\n " + oneRequest, workload.JSONL},
		"other ending, zipped": {"requests.txt", zipped(t, oneRequest), workload.JSONL},
		"mark before brace":    {"requests", "\xef\xbb\xbf" + oneRequest, workload.JSONL},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), c.file)
			if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			w, err := workload.Open(path, workload.Options{Strict: true})
			if err != nil {
				t.Fatal(err)
			}
			if w.Form != c.want || len(w.Records)+len(w.Requests) == 0 {
				t.Errorf("form %q with %d records and %d requests, want %q", w.Form, len(w.Records), len(w.Requests), c.want)
			}
		})
	}
}

func TestReadUnusableFiles(t *testing.T) {
	zip := zipped(t, strings.Repeat(job(1, 0, 60, 8), 5000))
	flipped := []byte(zip)
	flipped[len(flipped)-6] ^= 0xff // in the checksum
	for name, c := range map[string]struct {
		file, content string
		words         []string
	}{
		"empty":               {"log.swf", "", []string{"log.swf", "no record"}},
		"empty requests":      {"r.jsonl", "", []string{"r.jsonl", "no record"}},
		"empty, no ending":    {"file", "", []string{"file", "no record"}},
		"empty gzip":          {"log.swf.gz", zipped(t, ""), []string{"log.swf.gz", "no record"}},
		"only blanks":         {"file", strings.Repeat(" \n", 100_000), []string{"file", "no record"}},
		"only comments":       {"log.swf", "; MaxProcs: 8\n", []string{"log.swf", "no record"}},
		"all skipped":         {"log.swf", job(1, 0, 0, 8) + job(2, 0, 0, 8), []string{"no usable record", "log.swf", "2 skipped"}},
		"all bad":             {"log.swf", "a\nb\n", []string{"no usable record", "2 bad", "log.swf:1: "}},
		"requests as a log":   {"log.swf", oneRequest, []string{"no usable record", "log.swf:1: "}},
		"log as requests":     {"r.jsonl", job(1, 0, 60, 8), []string{"no usable record", "r.jsonl:1: ", "JSON object"}},
		"only bookings":       {"r.jsonl", `{"id":"b","kind":"booking","npe":1,"start":0,"end":1}`, []string{"no usable record", "1 skipped (not a request)"}},
		"gzip cut":            {"log.swf.gz", zip[:len(zip)/2], []string{"log.swf.gz:", "truncated"}},
		"gzip cut in trailer": {"log.swf.gz", zip[:len(zip)-3], []string{"log.swf.gz:5001", "truncated"}},
		"gzip magic alone":    {"log.swf.gz", zip[:2], []string{"log.swf.gz:1", "truncated"}},
		"gzip checksum":       {"log.swf.gz", string(flipped), []string{"log.swf.gz:5001", "damaged"}},
		"gzip then text":      {"log.swf.gz", zip + "more", []string{"log.swf.gz:5001", "gzip"}},
		"gzip of nonsense":    {"log.swf.gz", "\x1f\x8b\x08" + strings.Repeat("\x00\xff", 50), []string{"log.swf.gz:1", "damaged"}},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := workload.Read(strings.NewReader(c.content), c.file, workload.Options{})
			if w != nil {
				t.Errorf("a workload beside the error: %+v", w.Report)
			}
			wantMistake(t, err, "workload", c.words...)
		})
	}
}

func TestOpenMissingFile(t *testing.T) {
	folder := t.TempDir()
	_, err := workload.Open(filepath.Join(folder, "missing.swf"), workload.Options{})
	wantMistake(t, err, "workload", "missing.swf", "no such file")
	_, err = workload.Open(folder, workload.Options{})
	wantMistake(t, err, "workload", folder, "directory")
}

// What the system fails at is wrapped, not blamed on the caller.
func TestReadWrapsFailures(t *testing.T) {
	for _, name := range []string{"log.swf", "r.jsonl", "file"} {
		r := io.MultiReader(strings.NewReader(" "), iotest.ErrReader(fs.ErrClosed))
		_, err := workload.Read(r, name, workload.Options{})
		var mistake *berth.Error
		if !errors.Is(err, fs.ErrClosed) || errors.As(err, &mistake) || !strings.Contains(err.Error(), name+":1") {
			t.Errorf("error is %v, want the reader's with %s:1", err, name)
		}
	}
}

// However small the pieces that arrive, the content is the same.
func TestReadFromSlowReader(t *testing.T) {
	text := "; MaxProcs: 8\n" + strings.Repeat(" ", 200_000) + job(1, 0, 60, 8) + job(2, 0, 60, 8)
	for _, content := range []string{text, zipped(t, text)} {
		w, err := workload.Read(iotest.OneByteReader(strings.NewReader(content)), "log.swf", workload.Options{Strict: true})
		if err != nil || len(w.Records) != 2 || w.PEs() != 8 {
			t.Errorf("%d bytes: %v, %+v", len(content), err, w)
		}
	}
}

package reproduce

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/sweep"
	"github.com/berth-hpc/berth/workload"
)

// archiveLog is a log of the Parallel Workloads Archive that experiments read.
type archiveLog struct {
	name      string // in keys and tables
	file      string // without .swf.gz
	thanks    string // whom the archive asks to acknowledge
	pes       berth.Count
	partition int32 // whose jobs are taken; 0 for all
	completed bool  // only jobs that completed are taken
}

// openLog is a log that is there.
type openLog struct {
	*archiveLog
	digest  string
	records []workload.Record
}

// find looks for a log in the folder of the options, or in its subfolder swf, and
// reads it. It is false if it is not there, which is no error, for then what needs it is not
// testable.
func (s *session) find(log *archiveLog) (*openLog, bool, error) {
	if s.Data == "" {
		return nil, false, nil
	}
	for _, name := range []string{log.file + ".swf.gz", log.file + ".swf"} {
		for _, folder := range []string{s.Data, filepath.Join(s.Data, "swf")} {
			path := filepath.Join(folder, name)
			digest, err := digestOf(path)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, false, fmt.Errorf("reading a log: %w", err)
			}
			content, err := log.open(path)
			if err != nil {
				return nil, false, err
			}
			return &openLog{log, digest, content.Records}, true, nil
		}
	}
	return nil, false, nil
}

// checkData makes sure that the folder of logs is there, if one is given.
func (s *session) checkData() error {
	if s.Data == "" {
		return nil
	}
	switch info, err := os.Stat(s.Data); {
	case err != nil:
		return berth.Errorf(berth.Invalid, "data", "%s: no such folder", s.Data)
	case !info.IsDir():
		return berth.Errorf(berth.Invalid, "data", "%s: a file; want the folder of the logs", s.Data)
	}
	return nil
}

// digestOf returns the SHA-256 by which a file is known again.
func digestOf(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }() // only read from: nothing can be lost
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// open reads the log.
func (l *archiveLog) open(path string) (*workload.Workload, error) {
	options := workload.Options{}
	if l.partition > 0 || l.completed {
		const completed = 1
		options.Keep = func(r *workload.Record) bool {
			return (l.partition == 0 || r.Partition == l.partition) && (!l.completed || r.Status == completed)
		}
	}
	log, err := workload.Open(path, options)
	if err != nil {
		return nil, err
	}
	if log.Form != workload.SWF {
		return nil, berth.Errorf(berth.Invalid, "data", "%s: not a log in the Standard Workload Format", path)
	}
	return log, nil
}

// scaled returns the log on a machine of another size; each job takes the same part of it,
// rounded to whole processors and at least one.
func (l *openLog) scaled(pes berth.Count) *openLog {
	machine := *l.archiveLog
	machine.pes = pes
	smaller := &openLog{&machine, l.digest, slices.Clone(l.records)}
	for i := range smaller.records {
		r := &smaller.records[i]
		r.Procs = max(1, berth.Count((int64(r.Size())*int64(pes)+int64(l.pes)/2)/int64(l.pes)))
	}
	return smaller
}

// setting identifies the log among the settings of a sweep.
func (l *openLog) setting() sweep.Setting {
	return sweep.Setting{Name: "log " + l.name, Value: l.digest}
}

// absent says in words which logs are not there, empty if all are.
func absent(logs []archiveLog, there []*openLog) string {
	have := map[string]bool{}
	for _, l := range there {
		have[l.name] = true
	}
	var names []string
	for i := range logs {
		if !have[logs[i].name] {
			names = append(names, logs[i].file+".swf.gz")
		}
	}
	return strings.Join(names, ", ")
}

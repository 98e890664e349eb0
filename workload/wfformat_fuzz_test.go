package workload_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/workload"
)

// Whatever the bytes: no panic, a mistake that names the file, or a workflow
// that the counts describe and that reads back equal from every version.
func FuzzReadWorkflow(f *testing.F) {
	for _, seed := range []string{
		"", diamond, diamond[:300], "\xef\xbb\xbf" + diamond, "\x1f\x8b\x08", "{}", `{"schemaVersion":"1.3"}`, "{\"a\":NaN}",
		old(`{"name":"a","runtime":3,"cores":2},{"name":"b","parents":["a"]}`),
		spec(`{"id":"a","parents":["b"]},{"id":"b","parents":["a"]}`, `{"id":"a","runtimeInSeconds":-0}`),
		spec(`{"id":"\u00e4\ud800","alpha":0.1e1}`, "null"), strings.Repeat("[", 200), `{"a":` + strings.Repeat("[", 20_000),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		w, err := workload.ReadWorkflow(bytes.NewReader(data), "w.json", workload.WorkflowOptions{Alpha: .5})
		if err != nil {
			checkInvalid(t, err)
			if !strings.Contains(err.Error(), "w.json") {
				t.Errorf("no file in %v", err)
			}
			return
		}
		r := w.Report
		if r.Tasks != w.Flow.Len() || r.Edges != w.Flow.Edges() || r.NoRunTime+r.ZeroRunTime > r.Tasks || r.NoAlpha > r.Tasks || r.OneSided > r.Edges {
			t.Errorf("%+v", r)
		}
		_ = r.Notes()
		for _, version := range workload.WfVersions() {
			checkRoundTrip(t, w.Flow, version)
		}
	})
}

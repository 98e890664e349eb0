package workload_test

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/berth-hpc/berth/workload"
)

// BenchmarkReadSWF reads logs of the model's jobs without compression. The
// baseline splits the same bytes into lines and fields, and does nothing with
// them.
func BenchmarkReadSWF(b *testing.B) {
	m, err := workload.NewModel("lublin:lanl-cm5", workload.Params{})
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{1_000, 10_000, 100_000} {
		var file bytes.Buffer
		if err := workload.WriteSWF(&file, m.Header(n, 1), m.Generate(n, 1)); err != nil {
			b.Fatal(err)
		}
		text := file.Bytes()
		w, err := workload.ReadSWF(bytes.NewReader(text), "log.swf", workload.Options{Strict: true})
		if err != nil || len(w.Records) != n {
			b.Fatalf("%v, %+v", err, w)
		}
		b.Run(fmt.Sprintf("records=%d", n), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := workload.ReadSWF(bytes.NewReader(text), "log.swf", workload.Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("baseline=fields/records=%d", n), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				fields := 0
				for line := range bytes.Lines(text) {
					for range bytes.FieldsSeq(line) {
						fields++
					}
				}
				if fields < 18*n {
					b.Fatal("fields are missing")
				}
			}
		})
	}
}

func BenchmarkReadJSONL(b *testing.B) {
	m, err := workload.NewModel("lublin:lanl-cm5", workload.Params{})
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{1_000, 10_000, 100_000} {
		transform := workload.NewTransform(1)
		requests, err := transform.Requests(m.Generate(n, 1), true, nil)
		if err != nil {
			b.Fatal(err)
		}
		var file bytes.Buffer
		if err := workload.WriteJSONL(&file, requests); err != nil {
			b.Fatal(err)
		}
		text := file.Bytes()
		b.Run(fmt.Sprintf("requests=%d", n), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				w, err := workload.ReadJSONL(bytes.NewReader(text), "r.jsonl", workload.Options{})
				if err != nil || len(w.Requests) != n {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkGenerate(b *testing.B) {
	for _, info := range workload.Models() {
		m, err := workload.NewModel(info.Name, workload.Params{})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("model=%s/jobs=10000", info.Name), func(b *testing.B) {
			for b.Loop() {
				if got := m.Generate(10_000, 1); len(got) != 10_000 {
					b.Fatal("jobs are missing")
				}
			}
		})
	}
}

func BenchmarkTransform(b *testing.B) {
	m, err := workload.NewModel("lublin:lanl-cm5", workload.Params{})
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{1_000, 10_000, 100_000} {
		records := m.Generate(n, 1)
		b.Run(fmt.Sprintf("records=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				transform := workload.NewTransform(1)
				if got, err := transform.Requests(records, false, nil); err != nil || len(got) != n {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkWriteSWF(b *testing.B) {
	m, err := workload.NewModel("lublin:lanl-cm5", workload.Params{})
	if err != nil {
		b.Fatal(err)
	}
	records := m.Generate(100_000, 1)
	for b.Loop() {
		if err := workload.WriteSWF(io.Discard, nil, records); err != nil {
			b.Fatal(err)
		}
	}
}

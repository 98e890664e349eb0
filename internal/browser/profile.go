package browser

import (
	"cmp"
	"encoding/json"
	"slices"
)

// Share is a part of the time of the page's main thread.
type Share struct {
	Name         string
	Milliseconds float64
}

// Profile returns where the main thread of a page is while something is done, the largest part first: functions of scripts and calls of the browser that they make by
// their own time, "(program)" what the browser does by itself, "(garbage collector)" and "(idle)".
func (p *Page) Profile(do func()) []Share {
	p.t.Helper()
	p.must("Profiler.enable", nil, nil)
	p.must("Profiler.setSamplingInterval", map[string]any{"interval": 100}, nil)
	p.must("Profiler.start", nil, nil)
	do()
	var got struct {
		Profile struct {
			Nodes []struct {
				ID        int
				CallFrame struct{ FunctionName string }
			}
			Samples    []int
			TimeDeltas []float64
		}
	}
	p.must("Profiler.stop", nil, &got)
	names := map[int]string{}
	for _, n := range got.Profile.Nodes {
		names[n.ID] = cmp.Or(n.CallFrame.FunctionName, "(anonymous)")
	}
	times := map[string]float64{}
	for i, id := range got.Profile.Samples {
		if i+1 < len(got.Profile.TimeDeltas) { // a sample lasts until the next one
			times[names[id]] += got.Profile.TimeDeltas[i+1] / 1000
		}
	}
	return shares(times)
}

// Tasks returns what the main thread of a page works at while something is done, as the browser traces it, the largest part first: each kind of event by its own CPU time.
func (p *Page) Tasks(do func()) []Share {
	p.t.Helper()
	p.mu.Lock()
	p.traced, p.tracedAll = nil, make(chan struct{})
	done := p.tracedAll
	p.mu.Unlock()
	p.must("Tracing.start", map[string]any{"traceConfig": map[string]any{"includedCategories": []string{"devtools.timeline", "toplevel", "cc", "viz", "disabled-by-default-devtools.timeline", "__metadata"}}, "transferMode": "ReportEvents"}, nil)
	do()
	p.must("Tracing.end", nil, nil)
	<-done
	p.mu.Lock()
	defer p.mu.Unlock()
	return ownTimes(p.traced)
}

// traceEvent is one of the browser's trace, with microseconds.
type traceEvent struct {
	Name     string
	Ph       string
	Pid, Tid int
	Ts       float64
	Tts      float64
	Tdur     float64
	Args     json.RawMessage
}

// ownTimes returns the CPU time of events by thread and name, without that of those inside.
func ownTimes(list []traceEvent) []Share {
	type thread struct{ pid, tid int }
	threads, processes := map[thread]string{}, map[int]string{}
	of := map[thread][]traceEvent{}
	for _, e := range list {
		var args struct{ Name string }
		switch {
		case e.Name == "thread_name" && json.Unmarshal(e.Args, &args) == nil:
			threads[thread{e.Pid, e.Tid}] = args.Name
		case e.Name == "process_name" && json.Unmarshal(e.Args, &args) == nil:
			processes[e.Pid] = args.Name
		case e.Ph == "X" && e.Tdur > 0:
			of[thread{e.Pid, e.Tid}] = append(of[thread{e.Pid, e.Tid}], e)
		}
	}
	times := map[string]float64{}
	for t, events := range of {
		slices.SortStableFunc(events, func(a, b traceEvent) int { return cmp.Or(cmp.Compare(a.Tts, b.Tts), cmp.Compare(b.Tdur, a.Tdur)) })
		name := func(e traceEvent) string { return processes[t.pid] + " " + threads[t] + ": " + e.Name }
		var open []traceEvent
		for _, e := range events {
			for len(open) > 0 && open[len(open)-1].Tts+open[len(open)-1].Tdur <= e.Tts {
				open = open[:len(open)-1]
			}
			times[name(e)] += e.Tdur / 1000
			if len(open) > 0 {
				times[name(open[len(open)-1])] -= e.Tdur / 1000
			}
			open = append(open, e)
		}
	}
	return shares(times)
}

func shares(times map[string]float64) []Share {
	var all []Share
	for name, ms := range times {
		all = append(all, Share{name, ms})
	}
	slices.SortFunc(all, func(a, b Share) int {
		return cmp.Or(cmp.Compare(b.Milliseconds, a.Milliseconds), cmp.Compare(a.Name, b.Name))
	})
	return all
}

package sim

import "github.com/berth-hpc/berth"

// FlowSummary is what became of the workflows of a simulation together.
type FlowSummary struct {
	Workflows int `json:"workflows"`
	Promised  int `json:"promised"`
	Succeeded int `json:"succeeded"`
	// Kept is how many ended by their deadline; a workflow without one keeps it by succeeding.
	Kept int `json:"kept"`
	// KeptRate is Kept over Promised, nil of none.
	KeptRate *float64 `json:"kept_rate"`
	// MeanTurnaround is from arrival to the last end, of those that succeeded, in seconds.
	MeanTurnaround *float64 `json:"mean_turnaround"`
	// CPUHours is what tasks held, tries that failed with them; PlannedCPUHours what was
	// promised first.
	CPUHours        float64 `json:"cpu_hours"`
	PlannedCPUHours float64 `json:"planned_cpu_hours"`
	Replans         int     `json:"replans"`
	Moved           int     `json:"moved"`
	Retries         int     `json:"retries"`
	LostTasks       int     `json:"lost_tasks"` // failed for good, or skipped
}

// SummarizeFlows sums up workflows; nil of none.
func SummarizeFlows(results []FlowResult) *FlowSummary {
	if len(results) == 0 {
		return nil
	}
	s := &FlowSummary{Workflows: len(results)}
	turnaround := 0.0
	held, planned := int64(0), int64(0)
	for i := range results {
		r := &results[i]
		if r.Promised {
			s.Promised++
		}
		if r.Outcome == berth.Succeeded {
			s.Succeeded++
			turnaround += float64(r.End.Sub(r.Workflow.Arrival))
		}
		if r.Kept() {
			s.Kept++
		}
		held, planned = held+r.PESeconds, planned+r.PlannedPESeconds
		s.Replans, s.Moved, s.Retries, s.LostTasks = s.Replans+r.Replans, s.Moved+r.Moved, s.Retries+r.Retries, s.LostTasks+r.FailedTasks
	}
	s.CPUHours, s.PlannedCPUHours = float64(held)/3600, float64(planned)/3600
	if s.Promised > 0 {
		rate := float64(s.Kept) / float64(s.Promised)
		s.KeptRate = &rate
	}
	if s.Succeeded > 0 {
		mean := turnaround / float64(s.Succeeded)
		s.MeanTurnaround = &mean
	}
	return s
}

package engine

// IsReady reports whether a plan is followed beside the engine that decides.
func (p *WorkflowPlan) IsReady() bool { return p.ready != nil }

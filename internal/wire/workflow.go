package wire

import "github.com/berth-hpc/berth"

// TaskRef is the form of the task of a workflow that a request is.
func TaskRef(c *Coder, t *berth.TaskRef) {
	Name(c, 1, &t.Workflow)
	String(c, 2, &t.Task)
	Int(c, 3, &t.Try)
	c.End()
}

// Workflow is the form of a workflow.
func Workflow(c *Coder, w *berth.Workflow) {
	String(c, 1, &w.ID)
	Name(c, 2, &w.Name)
	Name(c, 3, &w.User)
	Name(c, 4, &w.Role)
	Int(c, 5, &w.Arrival)
	Int(c, 6, &w.Deadline)
	Name(c, 7, &w.Algorithm)
	Name(c, 8, &w.Repair)
	Name(c, 9, &w.Site)
	Name(c, 10, &w.Pool)
	List(c, 11, &w.Sites, func(c *Coder, name *string) {
		Name(c, 1, name)
		c.End()
	})
	Int(c, 12, &w.Hold)
	List(c, 13, &w.Free, func(c *Coder, a *berth.Average) {
		Struct(c, 1, &a.Resource, a.Resource == berth.ResourceID{}, ResourceID)
		Int(c, 2, &a.NPE)
		c.End()
	})
	List(c, 14, &w.Tasks, workflowTask)
	Bool(c, 15, &w.Spread)
	List(c, 16, &w.Routes, func(c *Coder, r *berth.Route) {
		Name(c, 1, &r.From)
		Name(c, 2, &r.To)
		c.End()
	})
	Name(c, 17, &w.Account)
	Name(c, 18, &w.QOS)
	Name(c, 19, &w.Owner)
	c.End()
}

func workflowTask(c *Coder, t *berth.WorkflowTask) {
	String(c, 1, &t.ID)
	Float(c, 2, &t.Seconds)
	Float(c, 3, &t.Alpha)
	List(c, 4, &t.After, BareInt[int])
	Int(c, 5, &t.Retries)
	Bool(c, 6, &t.Done)
	Int(c, 7, &t.Tries)
	Struct(c, 8, &t.Work, t.Work.Empty() && t.Work.Dir == "" && len(t.Work.Env) == 0 && t.Work.Output == "" && len(t.Work.Inputs)+len(t.Work.Outputs) == 0, func(c *Coder, r *berth.Work) {
		List(c, 1, &r.Command, BareText[string])
		String(c, 2, &r.Script)
		Name(c, 3, &r.Dir)
		List(c, 4, &r.Env, BareText[string])
		String(c, 5, &r.Output)
		List(c, 6, &r.Inputs, BareText[string])
		List(c, 7, &r.Outputs, BareText[string])
		c.End()
	})
	Struct(c, 9, &t.Requirements, t.RequiresNothing(), Requirements)
	Int(c, 10, &t.Few)
	Int(c, 11, &t.Most)
	List(c, 12, &t.Measured, func(c *Coder, m *berth.Measurement) {
		Int(c, 1, &m.NPE)
		Float(c, 2, &m.Seconds)
		c.End()
	})
	Name(c, 13, &t.Site)
	List(c, 14, &t.Reads, BareInt[int64])
	Name(c, 15, &t.Account)
	Name(c, 16, &t.QOS)
	c.End()
}

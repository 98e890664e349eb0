package scenario

import (
	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/workload"
)

// The kinds that the records of a log or a model become.
const (
	AsRequests = "requests"
	AsJobs     = "jobs"
	AsMixed    = "mixed"
)

// Where run times come from.
const (
	RunsReserved = "reserved"
	RunsActual   = "actual"
)

// Conservative is the pass for jobs that compression is about.
const Conservative = "conservative"

// Kinds lists what the records of a log or a model may become.
func Kinds() []string { return []string{AsRequests, AsJobs, AsMixed} }

// RunTimes lists where run times may come from.
func RunTimes() []string { return []string{RunsReserved, RunsActual} }

// Presets lists the schedulers by name.
func Presets() []string {
	return namesOf(engine.Presets(), func(preset engine.Preset) string { return preset.Name })
}

// Placements lists the placements, the default first.
func Placements() []string {
	return namesOf(policy.Placements, func(row policy.NamedPlacement) string { return row.Name })
}

// Orders lists who may be decided first.
func Orders() []string {
	return namesOf(policy.Queues, func(row policy.NamedQueue) string { return row.Name })
}

// Matches lists the matches, those of a whole batch last.
func Matches() []string {
	return append(namesOf(policy.Matches, func(row policy.NamedMatch) string { return row.Name }), Batches()...)
}

// Batches lists the matches of several requests at once.
func Batches() []string {
	return namesOf(policy.Batches, func(row policy.NamedBatch) string { return row.Name })
}

// Triggers lists when it may be decided.
func Triggers() []string { return texts(engine.Triggers()) }

// Choices lists how a variant of a moldable request may be chosen, the default first.
func Choices() []string { return texts(policy.Choices()) }

// JobPasses lists the passes for ordinary jobs, the default first.
func JobPasses() []string {
	return namesOf(engine.JobPasses(), func(pass engine.JobPass) string { return pass.Name })
}

// Calendars lists the structures that hold bookings, the default first.
func Calendars() []string {
	return namesOf(calendar.Forms, func(form calendar.Form) string { return form.Name })
}

// Bindings lists when PEs may get their numbers, the default first.
func Bindings() []string { return texts([]berth.Binding{berth.Early, berth.Late}) }

// Horizons lists where free rectangles may end, the default first.
func Horizons() []string { return []string{engine.HorizonCapped, engine.HorizonUnbounded} }

// Immediates lists what may become of a request for now that finds no room.
func Immediates() []string {
	return texts([]engine.Immediate{engine.ImmediateRefuse, engine.ImmediateQueue})
}

// Overruns lists what may become of what reaches its limit.
func Overruns() []string {
	return texts([]engine.Overrun{engine.OverrunKill, engine.OverrunRunOn, engine.OverrunDelay})
}

// noStaging is the name of the staging that is none.
const noStaging = "none"

// Stagings lists what PEs may do while data are moved.
func Stagings() []string {
	return []string{noStaging, string(engine.StagingBefore), string(engine.StagingHold)}
}

// Models lists the models that generate a workload.
func Models() []string {
	return namesOf(workload.Models(), func(m workload.ModelInfo) string { return m.Name })
}

func stagingNamed(name string) engine.Staging {
	if name == noStaging {
		return engine.StagingNone
	}
	return engine.Staging(name)
}

// namesOf returns the names of the rows of a table.
func namesOf[T any](rows []T, name func(T) string) []string {
	var names []string
	for _, row := range rows {
		names = append(names, name(row))
	}
	return names
}

func texts[T ~string](words []T) []string {
	return namesOf(words, func(w T) string { return string(w) })
}

package engine

import "github.com/berth-hpc/berth"

// Plainly runs f with the passes for jobs in their plain form: engines made
// meanwhile decide so.
func Plainly(f func()) {
	plainPasses = true
	defer func() { plainPasses = false }()
	f()
}

// ProgramAt returns the index of the program that a request would use at the
// i-th site; -1 if there is none, -2 if it has too few licences.
func (e *Engine) ProgramAt(site int, r *berth.Request) int {
	return int(e.state.programs.at(site, r))
}

// CompareVersions compares two versions of a program.
func CompareVersions(a, b string) int { return compareVersions(a, b) }

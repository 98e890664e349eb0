package engine

// Plainly runs f with the passes for jobs in their plain form: engines made
// meanwhile decide so.
func Plainly(f func()) {
	plainPasses = true
	defer func() { plainPasses = false }()
	f()
}

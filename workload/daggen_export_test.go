package workload

// Levels returns the first task of each level, and the number of tasks.
func (d *Daggen) Levels(seed uint64) []int { return d.levels(seed) }

// Package jobs starts ordinary jobs beside the promises: strictly in order, with
// backfilling, by plans, or lazily. It looks at the pending jobs and at what is
// free, and says by changes which of them start where. It keeps no promise of its
// own: a job starts only where it fits until its limit.
package jobs

// Package workload turns logs, models and request files into requests: it reads
// and writes the Standard Workload Format and JSON Lines, reads the Grid Workload
// Format, exports of Slurm and the grid's Job Description Language, generates jobs from the Lublin-Feitelson model, and adds
// ready times and deadlines to jobs that have none. For planning it reads, writes
// and draws workflows and the bookings around which they are planned. It
// schedules nothing and knows no policy.
package workload

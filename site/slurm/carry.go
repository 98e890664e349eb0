package slurm

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/site"
)

// Retire takes a reservation down unless jobs are in it. Slurm looks for them and
// takes it down in one step.
func (s *Site) Retire(ctx context.Context, name site.Name) error {
	const op = "retire"
	if _, _, ours := name.Promise(s.name); !ours {
		return notOurs(op, name)
	}
	_, err := s.delete(ctx, op, name)
	return err
}

// Carry moves the pending jobs of a reservation to another one. A job that has ended
// meanwhile is none of them any more.
func (s *Site) Carry(ctx context.Context, from, to site.Name) error {
	const op = "carry"
	for _, name := range []site.Name{from, to} {
		if _, _, ours := name.Promise(s.name); !ours {
			return notOurs(op, name)
		}
	}
	ids, err := s.jobsIn(ctx, op, from, "--states=PENDING")
	if err != nil {
		return err
	}
	left, err := s.leftBy(ctx, op, from)
	if err != nil {
		return err
	}
	var first error
	for i, id := range slices.Concat(ids, left) {
		result, err := s.run(ctx, op, "scontrol", "update", "JobId="+id, "ReservationName="+string(to))
		if err == nil && result.Exit == 0 && i >= len(ids) {
			result, err = s.run(ctx, op, "scontrol", "release", id)
		}
		if err != nil {
			return err
		}
		if result.Exit == 0 || first != nil {
			continue
		}
		said := explain(op, "scontrol", firstLine(result))
		if site.KindOf(said) == site.NotFound {
			continue
		}
		first = &site.Error{
			Kind: site.KindOf(said), Op: op, Msg: "job " + id + " waits in " + string(from) + " and cannot be moved to " + string(to), Err: errors.New(firstLine(result)),
			Hint: "its owner can: scontrol update JobId=" + id + " ReservationName=" + string(to),
		}
	}
	return first
}

// leftBy returns the ids of the jobs that a reservation has left behind when Slurm took it down.
func (s *Site) leftBy(ctx context.Context, op string, name site.Name) ([]string, error) {
	mark, list := newMark(), []jobField{fieldID, fieldState, fieldReason}
	out, err := s.read(ctx, op, "squeue", jobsArgs(mark, list, leftBehind)...)
	if err != nil {
		return nil, err
	}
	jobs, err := parseJobs(out, mark, list)
	if err != nil {
		return nil, odd(op, "squeue", err)
	}
	var ids []string
	for i := range jobs {
		id := jobs[i].at(fieldID)
		if _, err := strconv.ParseUint(id, 10, 63); err != nil {
			return nil, odd(op, "squeue", err)
		}
		if jobs[i].left() == string(name) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// jobsIn returns the ids of the jobs of a reservation.
func (s *Site) jobsIn(ctx context.Context, op string, name site.Name, filter ...string) ([]string, error) {
	out, err := s.read(ctx, op, "squeue", append([]string{"--noheader", "--reservation=" + string(name), "--format=%A"}, filter...)...)
	if err != nil {
		return nil, err
	}
	ids := strings.Fields(out)
	for _, id := range ids {
		if _, err := strconv.ParseUint(id, 10, 63); err != nil {
			return nil, odd(op, "squeue", err)
		}
	}
	return ids, nil
}

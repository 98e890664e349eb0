package fake

import (
	"context"
	"slices"
	"strconv"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

type job struct {
	site.Job
	running bool
	length  berth.Duration
	limit   berth.Duration
	result  site.Result // with which it will end by itself
}

// submitted is the task that was submitted under a key.
type submitted struct {
	job    site.JobID
	digest string
}

func (j *job) over() bool { return j.Result.Ending != "" }

func decimal(n int) string { return strconv.Itoa(n) }

// Submit takes a task in, unless a fault befalls it.
func (s *Site) Submit(ctx context.Context, task site.Task) (site.JobID, error) {
	if err := task.Check(); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.begin(ctx, Submit)
	if err != nil {
		return "", err
	}
	if c.fault.What == Refuse || c.fault.What == Lie {
		return "", site.Errorf(site.Conflict, Submit, "refused on command")
	}
	if s.late(c, func() { _, _ = s.submit(task) }) {
		return "", s.end(c)
	}
	id, err := s.submit(task)
	if err != nil {
		return "", err
	}
	return id, s.end(c)
}

// Recall implements site.Recaller.
func (s *Site) Recall(_ context.Context, task site.Task) (site.JobID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.recall(&task)
}

func (s *Site) recall(task *site.Task) (site.JobID, error) {
	was, known := s.keys[task.KeyAt(s.config.Name, task.User)]
	if known && was.digest != task.Digest() {
		return "", site.ErrKeyTaken(task.Key)
	}
	return was.job, nil
}

func (s *Site) submit(task site.Task) (site.JobID, error) {
	key, digest := task.KeyAt(s.config.Name, task.User), task.Digest()
	if was, err := s.recall(&task); err != nil || was != "" {
		return was, err
	}
	b := s.bookings[string(task.Reservation)]
	if b == nil {
		return "", site.Errorf(site.NotFound, Submit, "no reservation %s", task.Reservation)
	}
	if task.User != "" && !slices.Contains(b.Users, task.User) && len(b.Users) > 0 {
		return "", site.Errorf(site.Denied, Submit, "%s is not for user %s", task.Reservation, task.User)
	}
	s.lastJob++
	id := site.JobID(decimal(s.lastJob))
	s.keys[key] = submitted{id, digest}
	length, result := s.config.Run(task)
	add := func(id, array site.JobID) {
		s.jobs = append(s.jobs, &job{
			Job: site.Job{
				ID: id, Array: array, Key: task.Key, Name: task.Name, User: task.User, Account: task.Account, Partition: task.Partition,
				Reservation: string(task.Reservation), Reason: "Reservation",
			},
			length: length, limit: task.Limit, result: result,
		})
	}
	if task.Array.Empty() {
		add(id, "")
	}
	for _, r := range task.Array.Runs() {
		for pe := r.Lo; pe < r.Hi; pe++ {
			add(id+"_"+site.JobID(decimal(int(pe))), id)
		}
	}
	s.start(b)
	return id, nil
}

// start runs what waits in a reservation, if it is open and a node of it is up.
func (s *Site) start(b *booking) {
	if b.Start > s.now || (s.config.NeedsLaunch && !b.launched) {
		return
	}
	up := slices.ContainsFunc(b.Shares, func(share site.Share) bool { return s.nodes[share.Node].Condition == site.Up })
	for _, j := range s.jobs {
		if !up || j.running || j.over() || j.Reservation != b.Name {
			continue
		}
		end := b.End
		if j.limit > 0 {
			end = min(end, s.now.Add(j.limit))
		}
		j.running, j.Start, j.End, j.Shares, j.Cores, j.Reason = true, s.now, end, b.Shares, b.Cores, ""
	}
}

func (s *Site) finish(j *job, result site.Result, at berth.Time) {
	j.running, j.Result, j.End = false, result, at
	if j.Start == 0 {
		j.Start = at
	}
}

// Cancel ends a job, or all of an array, unless a fault befalls it.
func (s *Site) Cancel(ctx context.Context, id site.JobID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.begin(ctx, Cancel)
	if err != nil {
		return err
	}
	found := false
	for _, j := range s.jobs {
		if j.ID == id || j.Array == id {
			found = true
			if !j.over() {
				s.finish(j, site.Result{Ending: site.Cancelled}, s.now)
			}
		}
	}
	if !found {
		return site.Errorf(site.NotFound, Cancel, "no job %s", id)
	}
	return s.end(c)
}

// Launch opens a reservation, unless a fault befalls it.
func (s *Site) Launch(ctx context.Context, name site.Name, shares []site.Share) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.begin(ctx, Launch)
	if err != nil {
		return err
	}
	b := s.bookings[string(name)]
	if b == nil {
		return site.Errorf(site.NotFound, Launch, "no reservation %s", name)
	}
	if !s.late(c, func() { s.launch(b, shares) }) {
		s.launch(b, shares)
	}
	return s.end(c)
}

func (s *Site) launch(b *booking, shares []site.Share) {
	b.launched = true
	if len(shares) > 0 {
		b.Shares = shares
	}
	s.start(b)
}

// Drain takes a node out of use, unless a fault befalls it.
func (s *Site) Drain(ctx context.Context, node, reason string) error {
	return s.turn(ctx, Drain, node, site.Drained, reason)
}

// Resume puts a node back into use, unless a fault befalls it.
func (s *Site) Resume(ctx context.Context, node string) error {
	return s.turn(ctx, Resume, node, site.Up, "")
}

func (s *Site) turn(ctx context.Context, op, node string, to site.Condition, reason string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.begin(ctx, op)
	if err != nil {
		return err
	}
	if s.nodes[node] == nil {
		return site.Errorf(site.NotFound, op, "no node %s", node)
	}
	if !s.config.Description.Rights.Drain {
		return site.Errorf(site.Denied, op, "no right to do this")
	}
	s.set(node, to, reason)
	return s.end(c)
}

func (s *Site) set(node string, to site.Condition, reason string) {
	n := s.nodes[node]
	if n == nil {
		panic("fake: no node " + node)
	}
	n.Condition, n.Reason, n.Since = to, reason, s.now
	if to == site.Up {
		n.Since = 0
		for _, b := range s.all() {
			s.start(s.bookings[b.Name])
		}
	}
}

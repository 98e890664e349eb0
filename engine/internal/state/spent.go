package state

import "github.com/berth-hpc/berth"

// spent is the memory of jobs and reservations that are over: most of a long history needs
// no more of it than what is live at once. After a change one may still look at what
// it ended, so that it waits until time moves on.
type spent struct {
	entries, over []*Entry
	jobs, gone    []*Job
}

// entry returns room for a reservation: a new one is in one piece of memory with what it keeps.
func (m *spent) entry() *Entry {
	if len(m.entries) > 0 {
		return last(&m.entries)
	}
	room := &struct {
		entry Entry
		kept  kept
	}{}
	room.kept.Allotments = room.kept.own[:0]
	room.entry.r = &room.kept.Reservation
	return &room.entry
}

// job returns room for a pending job.
func (m *spent) job() *Job { return last(&m.jobs) }

// last takes the last of what is over, or makes one where there is none.
func last[T any](list *[]*T) *T {
	n := len(*list) - 1
	if n < 0 {
		return new(T)
	}
	one := (*list)[n]
	(*list)[n] = nil
	*list = (*list)[:n]
	return one
}

// leave gives back a reservation that is over. Tasks are not, which their workflows look
// back at.
func (m *spent) leave(e *Entry) {
	if e.r.Request.Task == nil {
		m.over = append(m.over, e)
	}
}

// spare returns the memory of its reservation, emptied; nil if others have it.
func (e *Entry) spare() *berth.Reservation {
	if e.r == nil || e.lent {
		return nil
	}
	own := e.r.Allotments
	clear(own)
	*e.r = berth.Reservation{Allotments: own[:0]}
	return e.r
}

// moveOn makes room of what was over before time moved on.
func (m *spent) moveOn() {
	for i, e := range m.over {
		*e = Entry{r: e.spare(), rare: e.rare}
		if e.rare != nil {
			*e.rare = rare{}
		}
		m.entries = append(m.entries, e)
		m.over[i] = nil
	}
	for i, j := range m.gone {
		*j = Job{}
		m.jobs = append(m.jobs, j)
		m.gone[i] = nil
	}
	m.over, m.gone = m.over[:0], m.gone[:0]
}

package calendar

// spare is memory of a tree that is not in use: of leaves that are no more, and of arrays that their
// pieces outgrew. A calendar whose bookings come and go then asks for none.
type spare struct {
	leaves []*leaf
	sets   []pieces
}

// spares is the most leaves, and the most arrays, that are kept.
const spares = 8

// leaf returns a leaf without records, whose base is to be set.
func (s *spare) leaf(words int) *leaf {
	n := len(s.leaves)
	if n == 0 {
		return newLeaf(words)
	}
	l := s.leaves[n-1]
	s.leaves[n-1] = nil
	s.leaves = s.leaves[:n-1]
	return l
}

// put takes back a leaf that is no more in the tree.
func (s *spare) put(l *leaf) {
	s.putSet(l.set)
	if len(s.leaves) < spares {
		l.n, l.before, l.set, l.seams = 0, 0, nil, l.seams[:0]
		s.leaves = append(s.leaves, l)
	}
}

// putSet takes back an array, in place of the smallest if there are enough.
func (s *spare) putSet(set pieces) {
	switch {
	case cap(set) == 0:
	case len(s.sets) < spares:
		s.sets = append(s.sets, set[:0])
	default:
		least := 0
		for i := range s.sets {
			if cap(s.sets[i]) < cap(s.sets[least]) {
				least = i
			}
		}
		if cap(s.sets[least]) < cap(set) {
			s.sets[least] = set[:0]
		}
	}
}

// copy returns a copy of a set, with room for at least n pieces, which is no less.
func (s *spare) copy(set pieces, n int) pieces {
	for i, to := range s.sets {
		if cap(to) >= n && cap(to) <= 2*n {
			last := len(s.sets) - 1
			s.sets[i], s.sets[last] = s.sets[last], nil
			s.sets = s.sets[:last]
			return append(to, set...)
		}
	}
	return append(make(pieces, 0, n), set...)
}

package calendar

import (
	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/bitset"
)

// words is a set of PEs as a bit set, with the operations that the fast form
// of early binding needs beside those of bitset.
type words bitset.Set

func wordsFor(size berth.Count) int { return int(size+63) / 64 }

func (w words) fill(size berth.Count)         { bitset.Set(w).Fill(size) }
func (w words) count() berth.Count            { return bitset.Set(w).Count() }
func (w words) pes(n berth.Count) berth.PESet { return bitset.Set(w).Lowest(n) }

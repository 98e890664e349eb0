package form

// Compacted is what was dropped of a journal, and what is left.
type Compacted struct {
	First   uint64 `json:"first"`        // number of the first record kept
	At      Time   `json:"at,omitzero"`  // when it is of
	Dropped uint64 `json:"dropped"`      // records
	Before  int64  `json:"bytes_before"` // that the journal took
	After   int64  `json:"bytes_after"`
}

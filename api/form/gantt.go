package form

import "github.com/berth-hpc/berth"

// GanttType is the type of the picture of a pool. All numbers are little-endian. A header
// of 64 bytes: "BGT1", u32 form (1 bars, 2 cells), i64 t0 in seconds since 1970, u32 step
// in seconds, u32 width, u32 height, u32 count, u32 lo, u32 group, u64 generation, u64
// event, u32 PEs of the pool, u32 zero. Then columns of count bars: i32 start behind t0,
// u32 length in seconds, u32 first PE, u32 PEs, u32 number, u8 class, u8 flags; or height
// rows of width cells, one byte each. Then, aligned to 4 bytes, width u32: the least
// number of free PEs in each step.
//
// Classes: 1 promise, 2 job, 3 degraded, 4 outage. Flags: 1 the PEs are provisional, 2
// begins earlier, 4 ends later or at an unknown time, 8 held, 16 active, 32 your own, 64
// over. A first PE that is the number of PEs of the pool: no PE can be assigned now. The
// high half of a cell is its class, the low half the share that is held, in fifteenths,
// rounded up.
const GanttType = "application/vnd.berth.gantt"

// Rows is what the rows of the picture of a pool stand for.
type Rows struct {
	Site    string      `json:"site"`
	Pool    string      `json:"pool"`
	PEs     berth.Count `json:"pes"`
	Binding string      `json:"binding"`
	// Rows are the nodes in the order of their PEs; empty if the service knows of none.
	Rows []Row `json:"rows"`
}

// Named is the numbers of bars in pictures of a pool.
type Named struct {
	Numbers []uint32 `json:"numbers"`
}

// Row is a node: its PEs begin with First.
type Row struct {
	Name  string      `json:"name"`
	First berth.PE    `json:"first"`
	PEs   berth.Count `json:"pes"`
}

// Occupied says that what holds PEs of a pool may have changed, from one time to another,
// without an end if To is zero.
type Occupied struct {
	Site       string `json:"site"`
	Pool       string `json:"pool"`
	From       Time   `json:"from"`
	To         Time   `json:"to,omitzero"`
	Generation uint64 `json:"generation"`
}

// Link is a secret that opens a session in a browser on the same machine, once.
type Link struct {
	Code    string `json:"code"`
	Expires Time   `json:"expires"`
	// At is where a browser on the machine of the service finds the pages.
	At string `json:"at,omitempty"`
}

package berth

// Outage is PEs of a pool that cannot be used throughout [From, Until). What is
// out of use is the union of all outages.
type Outage struct {
	Number uint64 `json:"number"` // in the order in which the engine learned of them, from 1
	// Name is the name under which it was announced, empty for none. A pool has at
	// most one outage of a name.
	Name     string     `json:"name,omitempty"`
	Resource ResourceID `json:"resource"`
	PEs      PESet      `json:"pes"`
	// From is the beginning of an outage that has not begun, 0 once it has.
	From Time `json:"from,omitempty"`
	// Until is the end if it is known, else Forever.
	Until Time `json:"until"`
}

package journal

import (
	"fmt"
	"strings"
)

// Damage says where a journal stops being what was written to it. It is an
// error: nothing after After can be relied on, and nothing is cut unless
// it is asked for.
type Damage struct {
	After  Position // the last place known to be good
	File   string   // where the damage lies; empty if it cannot be told
	Offset int64    // in bytes from the file's begin; -1 if it cannot be told
	// Acknowledged is the number of the last record known to have been durable
	// once; 0 if it cannot be told. Those after After are lost to a repair.
	Acknowledged uint64
	Reason       string
	Cause        error // of the world, if any
}

// Error names the number, the place and the reason.
func (d *Damage) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "journal: damaged after record %d", d.After.Number)
	if d.File != "" {
		b.WriteString(", in " + d.File)
		if d.Offset >= 0 {
			fmt.Fprintf(&b, " at byte %d", d.Offset)
		}
	}
	b.WriteString(": " + d.Reason)
	if d.Cause != nil {
		b.WriteString(": " + d.Cause.Error())
	}
	if d.Acknowledged > d.After.Number {
		fmt.Fprintf(&b, "; record %d had been acknowledged", d.Acknowledged)
	}
	return b.String()
}

// Unwrap returns the cause.
func (d *Damage) Unwrap() error { return d.Cause }

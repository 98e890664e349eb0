package api

import (
	"cmp"
	"strings"
)

// goneReasons has for people why a task has no reservation any more, by the kind of change that is on record.
var goneReasons = map[string]string{
	"failed":   "its reservation had no PE in use at its start",
	"lost":     "the PEs of its reservation went out of use, and no others were free for it",
	"no_show":  "its reservation was not used in time",
	"rejected": "its site refused its reservation",
}

// whyOf returns in words why a task or a workflow came out as it did.
func whyOf(recorded string) string {
	if kind, gone := strings.CutPrefix(recorded, "its reservation is gone: "); gone {
		return cmp.Or(goneReasons[kind], recorded)
	}
	return recorded
}

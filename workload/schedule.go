package workload

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"iter"

	"github.com/berth-hpc/berth"
)

// WriteSchedule writes the lines of a schedule as JSON Lines, in their order. Failures of
// w are wrapped.
func WriteSchedule(w io.Writer, lines iter.Seq[*berth.Line]) error {
	out := bufio.NewWriterSize(w, bufferSize)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for line := range lines {
		if err := enc.Encode(line); err != nil {
			return fmt.Errorf("write schedule: %w", err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write schedule: %w", err)
	}
	return nil
}

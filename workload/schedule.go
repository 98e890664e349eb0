package workload

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"

	"github.com/berth-hpc/berth"
)

// WriteSchedule writes the lines of a schedule as JSON Lines, in their order. Failures of
// w are wrapped.
func WriteSchedule(w io.Writer, lines []berth.Line) error {
	out := bufio.NewWriterSize(w, bufferSize)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for i := range lines {
		if err := enc.Encode(&lines[i]); err != nil {
			return fmt.Errorf("write schedule: %w", err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write schedule: %w", err)
	}
	return nil
}

package main

import (
	"io"
	"os"
	"strings"

	"github.com/berth-hpc/berth/api/form"
)

// palette says whether words may be coloured. What colours tell stands in the words too.
type palette bool

// paletteOf returns whether people watch the stream on a terminal that shows colours, and have not asked for none (https://no-color.org).
func paletteOf(w io.Writer) palette {
	return palette(isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb")
}

const (
	red, green, yellow = "31", "32", "33"
)

func (c palette) in(colour, text string) string {
	if !c || colour == "" || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// marks colours the letters of nodeMarks.
func (c palette) marks(line string) string {
	if !c {
		return line
	}
	var text strings.Builder
	for len(line) > 0 {
		same := len(line) - len(strings.TrimLeft(line, line[:1]))
		text.WriteString(c.in(map[byte]string{'-': green, '+': yellow, '#': red}[line[0]], line[:same]))
		line = line[same:]
	}
	return text.String()
}

// free colours how many PEs are free of all.
func (c palette) free(free, of int, text string) string {
	switch free {
	case of:
		return c.in(green, text)
	case 0:
		return c.in(red, text)
	}
	return text
}

// state colours the state of a reservation.
func (c palette) state(r *form.Reservation) string {
	state := stateOf(r)
	switch {
	case r.Missing > 0 || r.State == "degraded" || r.State == "failed" || r.State == "no_show":
		return c.in(red, state)
	case r.State == "active":
		return c.in(green, state)
	case r.State == "held" || r.State == "pending":
		return c.in(yellow, state)
	}
	return state
}

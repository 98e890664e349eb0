// Package berth holds the nouns of advance reservation: times, processor sets,
// requests, rectangles, offers, reservations, refusals and the lines of a
// schedule file. It decides nothing, keeps no state and imports nothing of
// this module; every other package speaks in its words.
package berth

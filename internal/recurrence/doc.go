// Package recurrence reads how a request repeats, as people say it or as an RRULE of RFC 5545, and works out
// when it occurs by the clock of a time zone. It reads no clock, and knows zones as they are given.
package recurrence

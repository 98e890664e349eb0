// Package hpctime reads and writes lengths of time and points in time as people
// at clusters write them. It reads no clock: now, with its zone, is an argument.
package hpctime

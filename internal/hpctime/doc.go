// Package hpctime reads and writes lengths of time as people at clusters write
// them. It knows no points in time and no zones.
package hpctime

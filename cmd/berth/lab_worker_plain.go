//go:build !unix

package main

// lowPriority does nothing: priorities here are not those of Unix.
func lowPriority() error { return nil }

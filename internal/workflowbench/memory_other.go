//go:build !linux

package main

import "errors"

// mostMemory does not know.
func mostMemory() (int64, error) { return 0, errors.New("only told by Linux") }

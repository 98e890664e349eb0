//go:build !linux

package withparent

import "syscall"

// Attr returns no attributes.
func Attr() *syscall.SysProcAttr { return nil }

// End does nothing.
func End() {}

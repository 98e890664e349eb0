//go:build !linux

package postgrestest

import "syscall"

func ordinary() (*account, error) { return nil, &Absent{"tests start it on Linux alone"} }

func (*Server) attributes() *syscall.SysProcAttr { return nil }

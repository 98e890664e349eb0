// Package withparent has processes that tests start end with the test's process,
// also if that is killed or times out. It does so on Linux alone; elsewhere it does
// nothing. Programs that are not tests do not use it.
package withparent

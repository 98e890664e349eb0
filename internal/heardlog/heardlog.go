// Package heardlog gathers what is logged while a test looks at it. Only tests import it;
// it reads nothing out of what it gathers.
package heardlog

import (
	"bytes"
	"sync"
)

// Log is what was written so far. The zero value is empty. It is safe for concurrent use.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write adds to the log. It never fails.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns what was written so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

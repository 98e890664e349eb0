// Package tokentest keeps tokens for tests: in memory, since each file that is written waits for the disk.
package tokentest

import (
	"io/fs"
	"slices"
	"sync"

	"github.com/berth-hpc/berth"
)

// Shelf is a token.Place in memory, which stores may share. The zero value is an empty one.
type Shelf struct {
	mu     sync.Mutex
	files  map[string][]byte
	closed bool
}

// Load returns a file, or fs.ErrNotExist.
func (s *Shelf) Load(name string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, is := s.files[name]
	if !is {
		return nil, fs.ErrNotExist
	}
	return slices.Clone(data), nil
}

// Save replaces a file. The error is of code Unavailable while the shelf is closed.
func (s *Shelf) Save(name string, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return berth.Errorf(berth.Unavailable, "service", "closed")
	}
	if s.files == nil {
		s.files = map[string][]byte{}
	}
	s.files[name] = slices.Clone(data)
	return nil
}

// Remove has a file be there no more.
func (s *Shelf) Remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.files, name)
}

// Close has the shelf take no file, or take them again.
func (s *Shelf) Close(closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = closed
}

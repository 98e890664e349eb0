package api

import (
	"container/list"
	"net"
	"net/http"
	"sync"
)

// Bound bounds how many connections a server has that is not serving yet. One too many
// closes the one that has been without a request for the longest time.
func Bound(server *http.Server, connections int) {
	server.ConnState = newConnections(connections).changed
}

// connections limits the number of open connections. Each takes a file descriptor, and
// the journal needs some too. Above the limit the connection that has been idle longest
// is closed, so that idle connections do not keep other clients out. If none is idle,
// the new connection is closed.
type connections struct {
	most int

	mu    sync.Mutex
	open  map[net.Conn]*list.Element // its place among the quiet ones; nil if it has a request
	quiet *list.List                 // of net.Conn, the one quiet for the longest time first
}

func newConnections(most int) *connections {
	return &connections{most: most, open: map[net.Conn]*list.Element{}, quiet: list.New()}
}

// changed is told of each connection what becomes of it. Cost: O(1).
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	place, known := c.open[conn]
	if !known && state != http.StateNew {
		return // it was closed here
	}
	if place != nil {
		c.quiet.Remove(place)
	}
	switch state {
	case http.StateNew, http.StateIdle:
		c.open[conn] = c.quiet.PushBack(conn)
	case http.StateActive:
		c.open[conn] = nil
	default:
		delete(c.open, conn)
	}
	if len(c.open) <= c.most {
		return
	}
	if longest := c.quiet.Front(); longest != nil {
		last := c.quiet.Remove(longest).(net.Conn)
		delete(c.open, last)
		_ = last.Close() // its client sees that
	}
}

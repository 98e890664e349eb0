package workload

import "io"

// ahead reads what a reader has, and what it makes of that, in a goroutine of its own while the
// one that asks works on what came before: a compressed log is read on two cores.
type ahead struct {
	full chan block
	free chan []byte
	quit chan struct{}
	gone chan struct{}

	now  block
	read int // of its bytes
}

// block is bytes and the error behind them.
type block struct {
	bytes []byte
	err   error
}

const (
	// aheadBlocks is how many blocks there are: one that is read from, one that is full and one
	// that is filled.
	aheadBlocks = 3
	aheadBytes  = 128 << 10
)

// readAhead begins to read. stop must be called before the reader is closed.
func readAhead(r io.Reader) *ahead {
	a := &ahead{
		full: make(chan block, aheadBlocks), free: make(chan []byte, aheadBlocks),
		quit: make(chan struct{}), gone: make(chan struct{}),
	}
	for range aheadBlocks {
		a.free <- make([]byte, aheadBytes)
	}
	go a.fill(r)
	return a
}

// fill fills blocks until there is an error, such as the end.
func (a *ahead) fill(r io.Reader) {
	defer close(a.gone)
	for {
		select {
		case <-a.quit:
			return
		case buffer := <-a.free:
			n, err := 0, error(nil)
			for n < len(buffer) && err == nil {
				var more int
				more, err = r.Read(buffer[n:])
				n += more
			}
			a.full <- block{buffer[:n], err} // has room for all blocks
			if err != nil {
				return
			}
		}
	}
}

// stop ends the goroutine, and waits until it has.
func (a *ahead) stop() {
	close(a.quit)
	<-a.gone
}

// Read returns what was read ahead, and then its error again and again.
func (a *ahead) Read(p []byte) (int, error) {
	for a.read == len(a.now.bytes) {
		if a.now.err != nil {
			return 0, a.now.err
		}
		if a.now.bytes != nil {
			a.free <- a.now.bytes[:cap(a.now.bytes)]
		}
		a.now, a.read = <-a.full, 0
	}
	n := copy(p, a.now.bytes[a.read:])
	a.read += n
	return n, nil
}

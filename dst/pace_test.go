package dst

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"math/rand/v2"
	"runtime"
	"testing/synctest"
	"time"

	"github.com/berth-hpc/berth/journal"
)

// What happens at one instant of a bubble happens in an order that Go's scheduler chooses, which may differ each
// time: timers that are due together go off in any order, and a goroutine that has run for long makes way for others.
// So no two things of the world happen at one instant: whatever a client, a site, a disk or the driver does takes
// a time of its own, to the nanosecond, and virtual time goes on only when all that follows from it has been done.

// pause returns for how long something takes, up to about a millisecond: it follows from the seed, what it is and
// when alone, so no source is shared by those who draw.
func (w *world) pause(what ...string) time.Duration {
	w.plant.shake()
	sum := fnv.New64a()
	var now [16]byte
	binary.LittleEndian.PutUint64(now[:], w.seed)
	binary.LittleEndian.PutUint64(now[8:], uint64(time.Now().UnixNano())) //nolint:gosec // bits
	_, _ = sum.Write(now[:])
	for _, s := range what {
		_, _ = sum.Write([]byte(s))
		_, _ = sum.Write([]byte{0})
	}
	x := sum.Sum64()
	x ^= x >> 32 // the lowest bits of the hash depend on few of its bytes
	return 20*time.Microsecond + time.Duration(x%uint64(time.Millisecond))
}

// shake has its caller make way for others, as on a machine that has other work: nothing may come of it.
func (f *plant) shake() {
	if !f.shaken {
		return
	}
	for range rand.IntN(4) {
		runtime.Gosched()
	}
}

// moment lets the service do what it does at once.
func (w *world) moment() {
	time.Sleep(10*time.Millisecond + w.pause("driver"))
	synctest.Wait()
}

// pacedStore is a journal whose records take their time. Snapshots take none: they are made under a lock, and time
// stands still in a bubble while others wait for one.
type pacedStore struct {
	journal.Store
	l *life
}

// compactingStore is one of these that can be compacted.
type compactingStore struct {
	pacedStore
	journal.Compactor
}

func paced(l *life, s journal.Store) journal.Store {
	if c, can := s.(journal.Compactor); can {
		return compactingStore{pacedStore{s, l}, c}
	}
	return pacedStore{s, l}
}

// Gather has a batch be all that was decided at one instant, in whatever order goroutines ran then.
func (s pacedStore) Gather() { time.Sleep(s.l.w.pause("gather")) }

func (s pacedStore) Append(ctx context.Context, records ...journal.Record) error {
	s.l.mu.Lock()
	takes := s.l.slow
	s.l.mu.Unlock()
	time.Sleep(takes + s.l.w.pause("append"))
	return s.Store.Append(ctx, records...)
}

// Package stream draws random numbers by address: the value for a seed, a
// purpose and a sequence number is a pure function of the three. It keeps no
// generator state beyond a counter, reads no clock and has no globals, and it
// offers no distributions.
package stream

import (
	"math/bits"
	"math/rand/v2"
)

// Stream is one named sequence of random 64-bit words. Streams of different
// seed or purpose are independent, so one more draw in one shifts no other.
// Seed 0 is a seed like any other. The zero value is the stream whose seed and
// purpose hash are 0.
//
// The generator is Philox2x64 with ten rounds (Salmon, Moraes, Dror, Shaw,
// "Parallel random numbers: as easy as 1, 2, 3", SC 2011, section 4.3): the
// seed is the key, the counter's low word is the sequence number and its high
// word the hash of the purpose. It differs from the paper's usual use in
// handing out only the first of a block's two words, so that sequence i is
// block i.
type Stream struct{ seed, purpose uint64 }

// New returns the stream of a seed and a purpose. Two purposes share a stream
// only if their 64-bit FNV-1a hashes collide.
func New(seed uint64, purpose string) Stream {
	return Stream{seed: seed, purpose: fnv1a(purpose)}
}

// Uint64 returns the word at sequence i. Cost: ten multiplications.
func (s Stream) Uint64(i uint64) uint64 {
	word, _ := philox2x64(i, s.purpose, s.seed)
	return word
}

// Float64 returns the draw at sequence i as a number in [0,1), a multiple of
// 2^-53. It equals the i-th Float64 of Rand.
func (s Stream) Float64(i uint64) float64 {
	return float64(s.Uint64(i)<<11>>11) / (1 << 53)
}

// Source returns a source that reads the stream from sequence 0 on.
func (s Stream) Source() *Source { return &Source{stream: s} }

// Rand returns a generator that reads the stream from sequence 0 on.
func (s Stream) Rand() *rand.Rand { return rand.New(s.Source()) }

// Source reads a stream in order of sequence; its whole state is the sequence
// number of the next word. It is not safe for concurrent use.
type Source struct {
	stream Stream
	next   uint64
}

var _ rand.Source = (*Source)(nil)

// Uint64 returns the next word.
func (s *Source) Uint64() uint64 {
	word := s.stream.Uint64(s.next)
	s.next++
	return word
}

// Next returns the sequence number of the word that Uint64 will return.
func (s *Source) Next() uint64 { return s.next }

// Seek moves the source to sequence i. A rand.Rand over the source follows it,
// for it buffers nothing.
func (s *Source) Seek(i uint64) { s.next = i }

// blockBits leaves every block of SeekBlock 2^32 words, and a stream 2^32
// blocks.
const blockBits = 32

// SeekBlock moves the source to the first word of block b. Blocks are for jobs
// that need an unknown number of draws each: if job b draws from block b, no
// job's draws depend on how many another one took.
func (s *Source) SeekBlock(b uint32) { s.next = uint64(b) << blockBits }

// The multiplier and the key increment of Philox2x64, from the paper; the
// increment is the golden ratio in 64 bits.
const (
	philoxMul  = 0xD2B74407B1CE6E93
	philoxWeyl = 0x9E3779B97F4A7C15
	rounds     = 10
)

// philox2x64 encrypts the two-word counter under the key.
func philox2x64(c0, c1, key uint64) (uint64, uint64) {
	for range rounds {
		hi, lo := bits.Mul64(philoxMul, c0)
		c0, c1 = hi^key^c1, lo
		key += philoxWeyl
	}
	return c0, c1
}

// fnv1a is the 64-bit Fowler-Noll-Vo hash, variant 1a, with its published
// offset and prime.
func fnv1a(text string) uint64 {
	h := uint64(0xcbf29ce484222325)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 0x100000001b3
	}
	return h
}

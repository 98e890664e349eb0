package stream

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// The known answers of Philox2x64 with ten rounds, from the vectors that
// accompany the reference implementation (Random123, kat_vectors).
func TestPhiloxKnownAnswers(t *testing.T) {
	const ones = math.MaxUint64
	for _, v := range []struct{ c0, c1, key, want0, want1 uint64 }{
		{0, 0, 0, 0xca00a0459843d731, 0x66c24222c9a845b5},
		{ones, ones, ones, 0x65b021d60cd8310f, 0x4d02f3222f86df20},
		{0x243f6a8885a308d3, 0x13198a2e03707344, 0xa4093822299f31d0, 0x0a5e742c2997341c, 0xb0f883d38000de5d},
	} {
		got0, got1 := philox2x64(v.c0, v.c1, v.key)
		if got0 != v.want0 || got1 != v.want1 {
			t.Errorf("philox2x64(%x, %x, %x) = %x, %x, want %x, %x", v.c0, v.c1, v.key, got0, got1, v.want0, v.want1)
		}
	}
}

// The published test vectors of the 64-bit FNV-1a hash.
func TestFNVKnownAnswers(t *testing.T) {
	for text, want := range map[string]uint64{
		"":       0xcbf29ce484222325,
		"a":      0xaf63dc4c8601ec8c,
		"foobar": 0x85944171f73967e8,
	} {
		if got := fnv1a(text); got != want {
			t.Errorf("fnv1a(%q) = %x, want %x", text, got, want)
		}
	}
}

// Stored schedules depend on these draws: they may never change.
func TestDrawsAreFixedForever(t *testing.T) {
	for _, v := range []struct {
		seed    uint64
		purpose string
		want    [3]uint64
	}{
		{0, "artime", [3]uint64{0x39da7472b1002acd, 0x3d50ef195b796cf9, 0xc2756d05044f3edc}},
		{1, "artime", [3]uint64{0x519a1853a66079d1, 0xbd6fe846b8577b34, 0x37d64cba5c870f14}},
		{1, "deadline", [3]uint64{0x25f17d14bf793afb, 0x78a03d41db981ec2, 0xaaecf0c12f7c3e36}},
	} {
		s := New(v.seed, v.purpose)
		for i, want := range v.want {
			if got := s.Uint64(uint64(i)); got != want {
				t.Errorf("seed %d, %q, draw %d = %#x, want %#x", v.seed, v.purpose, i, got, want)
			}
		}
	}
}

func TestDrawByIndexEqualsDrawInOrder(t *testing.T) {
	s := New(7, "order")
	rng, src := s.Rand(), s.Source()
	for i := range uint64(1000) {
		if got, want := rng.Float64(), s.Float64(i); got != want {
			t.Fatalf("draw %d in order is %v, by index %v", i, got, want)
		}
		if src.Next() != i {
			t.Fatalf("next is %d, want %d", src.Next(), i)
		}
		if got, want := src.Uint64(), s.Uint64(i); got != want {
			t.Fatalf("word %d in order is %x, by index %x", i, got, want)
		}
	}
	src.Seek(17)
	if got, want := src.Uint64(), s.Uint64(17); got != want {
		t.Errorf("after Seek(17) the word is %x, want %x", got, want)
	}
	src.SeekBlock(3)
	if got, want := src.Uint64(), s.Uint64(3<<32); got != want {
		t.Errorf("after SeekBlock(3) the word is %x, want %x", got, want)
	}
}

// The fifty streams of neighbouring seeds, seed 0 among them, and of similar
// purposes share no word and correlate no more than chance allows.
func TestStreamsAreIndependent(t *testing.T) {
	const draws = 2000
	var samples [][]float64
	seen := make(map[uint64]bool)
	for seed := range uint64(10) {
		for _, purpose := range []string{"", "a", "b", "artime", "deadline"} {
			s := New(seed, purpose)
			sample := make([]float64, draws)
			for i := range sample {
				word := s.Uint64(uint64(i))
				if seen[word] {
					t.Fatalf("seed %d, %q, draw %d appeared before", seed, purpose, i)
				}
				seen[word] = true
				sample[i] = s.Float64(uint64(i))
			}
			samples = append(samples, sample)
		}
	}
	// 1,225 pairs: 4.5 standard deviations are exceeded by chance in one run
	// of a hundred, and the seeds are fixed.
	limit := 4.5 / math.Sqrt(draws)
	for i := range samples {
		for j := range i {
			if r := stat.Correlation(samples[i], samples[j], nil); math.Abs(r) > limit {
				t.Errorf("streams %d and %d correlate by %.3f", i, j, r)
			}
		}
	}
}

func TestDrawsAreUniform(t *testing.T) {
	const draws, cells = 100_000, 100
	limit := distuv.ChiSquared{K: cells - 1}.Quantile(0.9999)
	for _, purpose := range []string{"artime", "deadline", "lublin size"} {
		for _, stride := range []uint64{1, 1 << 32} {
			s := New(0, purpose)
			var seen [cells]float64
			for i := range uint64(draws) {
				u := s.Float64(i * stride)
				if u < 0 || u >= 1 {
					t.Fatalf("%q draw %d is %v, outside [0,1)", purpose, i, u)
				}
				seen[int(u*cells)]++
			}
			chi := 0.0
			for _, n := range seen {
				chi += (n - draws/cells) * (n - draws/cells) / (draws / cells)
			}
			if chi > limit {
				t.Errorf("%q by strides of %d: chi-square %.1f above %.1f", purpose, stride, chi, limit)
			}
		}
	}
}

func BenchmarkFloat64(b *testing.B) {
	s := New(1, "benchmark")
	sum, i := 0.0, uint64(0)
	for b.Loop() {
		sum += s.Float64(i)
		i++
	}
	if sum <= 0 {
		b.Fatal("draws sum to nothing")
	}
}

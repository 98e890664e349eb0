package measure_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/measure"
)

func manyLines(n int) []berth.Line {
	lines := make([]berth.Line, n)
	for i := range lines {
		t := berth.Time(i)
		if i%4 == 0 {
			lines[i] = refused(strconv.Itoa(i), t, t, 64, 30, berth.NoCapacity)
			continue
		}
		lines[i] = accepted(strconv.Itoa(i), t, t+3, berth.Count(1+i%64), 30, t+berth.Time(i%90)+3)
		lines[i].PEs = berth.NewPESet(berth.Run{Lo: 0, Hi: 1}, berth.Run{Lo: 2, Hi: berth.PE(2 + i%64)})
	}
	return lines
}

func BenchmarkOf(b *testing.B) {
	for _, n := range []int{2_500, 25_000, 250_000} {
		b.Run(fmt.Sprintf("lines=%d", n), func(b *testing.B) {
			lines := manyLines(n)
			if m := measure.Of(lines, 64); m.Jobs != n || m.Accepted != n*3/4 {
				b.Fatal(m)
			}
			for b.Loop() {
				measure.Of(lines, 64)
			}
		})
	}
}

func BenchmarkHash(b *testing.B) {
	for _, n := range []int{2_500, 25_000, 250_000} {
		b.Run(fmt.Sprintf("lines=%d", n), func(b *testing.B) {
			lines := manyLines(n)
			if measure.Hash(lines) == measure.Hash(lines[1:]) {
				b.Fatal("the same hash for another schedule")
			}
			for b.Loop() {
				measure.Hash(lines)
			}
		})
	}
}

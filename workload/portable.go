package workload

import "math"

// The functions here give the same bits on every machine, which math.Exp and
// math.Log do not promise: they use only operations that IEEE 754 rounds
// exactly, in a written order, and every product is converted to float64 so
// that no compiler fuses it with an addition. (A product with a power of two may
// be fused, for it is exact anyway.) They are accurate to a few units in the
// last place.

// ln 2 in two parts; the first has its low bits 0, so that its product with a
// small integer is exact.
const (
	ln2Hi = 0x1.62e42feep-1
	ln2Lo = 0x1.a39ef35793c76p-33
)

// exp returns e^x for |x| ≤ 700.
//
// x = k·ln 2 + r with |r| ≤ ln 2 / 2, and e^r by its Taylor series, whose
// fifteenth term is below 2^-64.
func exp(x float64) float64 {
	k := math.Floor(float64(x*(1/math.Ln2)) + 0.5)
	r := x - float64(k*ln2Hi)
	r -= float64(k * ln2Lo)
	sum := 1.0
	for n := 14; n >= 1; n-- {
		sum = 1 + float64(float64(r*sum)/float64(n))
	}
	return math.Ldexp(sum, int(k))
}

// log returns the natural logarithm of a finite x > 0.
//
// x = 2^k·f with f in [√½, √2), and ln f = 2·artanh(s) with
// s = (f−1)/(f+1), |s| < 0.172, whose thirteenth term is below 2^-60.
func log(x float64) float64 {
	f, k := math.Frexp(x)
	if f < math.Sqrt2/2 {
		f *= 2
		k--
	}
	s := (f - 1) / (f + 1)
	z := float64(s * s)
	sum := 0.0
	for n := 25; n >= 1; n -= 2 {
		sum = 1/float64(n) + float64(z*sum)
	}
	low := float64(float64(2*s)*sum) + float64(float64(k)*ln2Lo)
	return float64(float64(k)*ln2Hi) + low
}

// log2 returns the logarithm to base 2 of a finite x > 0; it is exact for
// powers of two.
func log2(x float64) float64 {
	f, k := math.Frexp(x)
	if f == 0.5 {
		return float64(k - 1)
	}
	return float64(k) + log(f)/math.Ln2
}

package workload

import (
	"strconv"

	"github.com/berth-hpc/berth"
)

// number is a decimal as written: whole is its integer part with the sign
// applied, fraction tells whether any digit behind the point is not 0.
type number struct {
	whole    int64
	fraction bool
	negative bool // including -0.5, whose whole is 0
}

// maxDigits is how many digits surely fit an int64.
const maxDigits = 18

// parseNumber reads an optional minus, digits, and optionally a point with
// digits. ok is false for anything else, exponents included. Numbers of more
// than 18 digits before the point come back as the largest that has 18, which
// is beyond every limit here. Cost: one pass, no allocation.
func parseNumber(text []byte) (n number, ok bool) {
	i := 0
	if i < len(text) && text[i] == '-' {
		n.negative = true
		i++
	}
	first := i
	significant := 0
	for ; i < len(text) && isDigit(text[i]); i++ {
		if significant > 0 || text[i] != '0' {
			significant++
		}
		if significant <= maxDigits {
			n.whole = n.whole*10 + int64(text[i]-'0')
		}
	}
	digits := i - first
	if significant > maxDigits {
		n.whole = 999_999_999_999_999_999
	}
	if i < len(text) && text[i] == '.' {
		for i++; i < len(text) && isDigit(text[i]); i++ {
			digits++
			if text[i] != '0' {
				n.fraction = true
			}
		}
	}
	if i < len(text) || digits == 0 {
		return number{}, false
	}
	if n.negative {
		n.whole = -n.whole
		n.negative = n.whole != 0 || n.fraction
	}
	return n, true
}

// ceil rounds towards plus infinity.
func (n number) ceil() int64 {
	if n.fraction && !n.negative {
		return n.whole + 1
	}
	return n.whole
}

// isUnknown reports whether the number is -1, the format's word for unknown.
func (n number) isUnknown() bool { return n.whole == -1 && !n.fraction }

// within reports whether the rounded value of a number lies inside ±limit.
func within(v int64, limit int64) bool { return -limit < v && v < limit }

// parseFloat returns the float64 nearest to text, which parseNumber accepted.
func parseFloat(text []byte) float64 {
	// Up to 15 digits and 22 places both operands of the division are exact,
	// so the quotient is correctly rounded (Clinger, "How to read floating
	// point numbers accurately", PLDI 1990).
	const exactDigits = 15
	var mantissa int64
	digits, places := 0, 0
	point := false
	for _, c := range text {
		switch {
		case c == '.':
			point = true
		case isDigit(c):
			mantissa = mantissa*10 + int64(c-'0')
			digits++
			if point {
				places++
			}
		}
		if digits > exactDigits {
			// Accepted text is never out of range: it has no exponent
			// and the caller bounded its integer part.
			v, _ := strconv.ParseFloat(string(text), 64)
			return v
		}
	}
	v := float64(mantissa) / powersOfTen[places]
	if text[0] == '-' {
		return -v
	}
	return v
}

var powersOfTen = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

// maxNumber bounds the numbers of a log that are neither times nor sizes: job
// numbers and kilobytes. It is far above anything real and exact in a float64.
const maxNumber = 1 << 53

// timeLimit is berth.TimeLimit as an int64.
const timeLimit int64 = berth.TimeLimit

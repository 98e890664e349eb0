// Package bytesize reads amounts of data with their units, exactly. It formats
// none.
package bytesize

import (
	"math/big"
	"strings"

	"github.com/berth-hpc/berth"
)

// units in bytes: powers of 1000, and with an i powers of 1024.
var units = map[string]int64{
	"MB": 1e6, "GB": 1e9, "TB": 1e12, "PB": 1e15,
	"MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40, "PiB": 1 << 50,
}

// Offered reads an amount such as "64GiB" or "1.5 TB" into whole megabytes of
// 10^6 bytes, rounded down: what is there is not overstated. Errors are of code
// Invalid without a field. The result is at least 1 and below
// berth.MaxMegabytes.
func Offered(text string) (int64, error) { return read(text, 1e6, false, megabytes) }

// Needed is Offered for a demand: rounded up.
func Needed(text string) (int64, error) { return read(text, 1e6, true, megabytes) }

// Bytes reads an amount such as "1MiB" into bytes, rounded down. The result is at
// least 1 and below 2^42.
func Bytes(text string) (int64, error) {
	return read(text, 1, false, "want at least a byte and less than 2^42 bytes")
}

const megabytes = "want at least 1MB and less than 2^42 MB"

const wantUnit = "want a size with its unit, such as 64GiB or 1.5 TB; units are MB, GB, TB, PB (powers of 1000) and MiB, GiB, TiB, PiB (powers of 1024)"

// read reads an amount as a multiple of unit bytes; bounds says which are possible.
func read(text string, of int64, up bool, bounds string) (int64, error) {
	amount, unit, ok := Split(text)
	bytes, known := units[unit]
	if !ok || !known {
		return 0, berth.Errorf(berth.Invalid, "", wantUnit)
	}
	n, ok := Scaled(amount, bytes, of, up)
	if !ok || n < 1 || n >= berth.MaxMegabytes {
		return 0, berth.Errorf(berth.Invalid, "", "%s", bounds)
	}
	return n, nil
}

// Split reads plain digits with an optional fraction, at most one space, and
// what follows, the unit. ok is false if the number is none.
func Split(text string) (amount *big.Rat, unit string, ok bool) {
	end := strings.IndexFunc(text, func(c rune) bool { return (c < '0' || c > '9') && c != '.' })
	if end < 0 {
		end = len(text)
	}
	number := text[:end]
	const most = 20 // digits: more than any amount needs
	before, behind, hasPoint := strings.Cut(number, ".")
	if before == "" || (hasPoint && behind == "") || strings.Contains(behind, ".") || len(number) > most {
		return nil, "", false
	}
	amount, ok = new(big.Rat).SetString(number)
	return amount, strings.TrimPrefix(text[end:], " "), ok
}

// Scaled returns amount·factor/divisor, rounded to a whole number up or down,
// and false if that does not fit.
func Scaled(amount *big.Rat, factor, divisor int64, up bool) (int64, bool) {
	product := new(big.Rat).Mul(amount, big.NewRat(factor, divisor))
	n, rest := new(big.Int).QuoRem(product.Num(), product.Denom(), new(big.Int))
	if up && rest.Sign() > 0 {
		n.Add(n, big.NewInt(1))
	}
	return n.Int64(), n.IsInt64()
}

package sites

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/bytesize"
	"github.com/berth-hpc/berth/internal/hpctime"
)

// thousandths reads plain digits with at most three behind a point, and an
// optional minus, times 1000.
func thousandths(text string) (int64, bool) {
	digits, minus := strings.CutPrefix(text, "-")
	before, behind, hasPoint := strings.Cut(digits, ".")
	if !isDigits(before) || len(before) > 12 || (hasPoint && !isDigits(behind)) || len(behind) > 3 {
		return 0, false
	}
	n, _ := strconv.ParseInt(before+(behind + "000")[:3], 10, 64) // at most 15 digits
	if minus {
		n = -n
	}
	return n, true
}

// thousandthsText returns the number as people write it.
func thousandthsText(n int64) string {
	text := strconv.FormatInt(n/1000, 10)
	if n%1000 != 0 {
		text += strings.TrimRight(fmt.Sprintf(".%03d", n%1000), "0")
	}
	return text
}

// integer reads plain digits without leading zeros, and an optional minus.
func integer(text string) (int64, bool) {
	digits := strings.TrimPrefix(text, "-")
	if !isDigits(digits) || (len(digits) > 1 && digits[0] == '0') {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

func isDigits(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return text != ""
}

const sizeExample = "a size with its unit, such as 64GiB or 1.5 TB"

// rateUnits are the units of bandwidth, in thousandths of a byte per second;
// eight bits are a byte.
var rateUnits = map[string]int64{
	"kB/s": 1e6, "MB/s": 1e9, "GB/s": 1e12,
	"kbit/s": 125e3, "Mbit/s": 125e6, "Gbit/s": 125e9, "Tbit/s": 125e12,
}

const rateExample = "a speed with its unit, such as 10Gbit/s or 125 MB/s"

// bandwidth reads a speed into whole kilobytes (10^3 bytes) per second, rounded
// down.
func bandwidth(text string) (int64, error) {
	amount, name, ok := bytesize.Split(text)
	unit, known := rateUnits[name]
	if !ok || !known {
		return 0, berth.Errorf(berth.Invalid, "", "want %s; units are kB/s, MB/s, GB/s (bytes) and kbit/s, Mbit/s, Gbit/s, Tbit/s (bits)", rateExample)
	}
	n, ok := bytesize.Scaled(amount, unit, 1e6, false)
	if !ok || n < 1 || n >= 1<<42 {
		return 0, berth.Errorf(berth.Invalid, "", "want at least 1kB/s and less than 2^42 kB/s")
	}
	return n, nil
}

const delayExample = "a delay with its unit, such as 20ms or 2s"

// delay reads a delay into milliseconds.
func delay(text string) (int64, error) {
	if digits, isMS := strings.CutSuffix(text, "ms"); isMS {
		n, ok := integer(digits)
		if !ok || n < 0 || n >= berth.TimeLimit {
			return 0, berth.Errorf(berth.Invalid, "", "want %s", delayExample)
		}
		return n, nil
	}
	if isDigits(text) {
		return 0, berth.Errorf(berth.Invalid, "", "want %s", delayExample)
	}
	d, err := hpctime.Parse(text)
	if err != nil {
		return 0, err
	}
	return int64(d) * 1000, nil
}

const durationExample = "a duration such as 2h30m or 02:30:00"

// duration reads a duration of at least a second.
func duration(text string) (berth.Duration, error) {
	d, err := hpctime.Parse(text)
	if err == nil && d < 1 {
		return 0, berth.Errorf(berth.Invalid, "", "want at least 1 s")
	}
	return d, err
}

// derivedSpeed is a node's speed by its cores, against the standard node of
// 2 sockets of 6 cores of 2.0 GHz:
//
//	(sockets · cores · GHz) / (2 · 6 · 2.0)
//
// (application-aware scheduling paper, equation 3), in thousandths, rounded down
// so that no duration is understated. ok is false for what no Speed can hold.
func derivedSpeed(n berth.Node) (berth.Speed, bool) {
	product := int64(n.Sockets) * int64(n.Cores) * int64(n.MHz) / 24 // below 2^63: each is bounded
	return berth.Speed(product), product >= 1 && product <= maxSpeed
}

// maxSpeed bounds the speed of a PE: a thousand standard ones.
const maxSpeed = 1000 * int64(berth.StandardSpeed)

package slurm

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/hpctime"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/hostlist"
)

// timeForm is how Slurm writes times; no zone, so every command runs in UTC.
const timeForm = "2006-01-02T15:04:05"

func formatTime(t berth.Time) string { return time.Unix(int64(t), 0).UTC().Format(timeForm) }

func parseTime(text string) (berth.Time, error) {
	if t, ok := quickTime(text); ok {
		return t, nil
	}
	t, err := time.Parse(timeForm, text)
	if err != nil {
		return 0, fmt.Errorf("%.40q is no time", text)
	}
	return berth.Time(t.Unix()), nil
}

// quickTime reads a time of the first 28 days of a month, which need no calendar. time.Parse takes ten times as long, and a look reads
// hundreds of thousands of times.
func quickTime(text string) (berth.Time, bool) {
	if len(text) != len(timeForm) {
		return 0, false
	}
	digits := func(at, n int) (value int) {
		for _, c := range []byte(text[at : at+n]) {
			if c < '0' || c > '9' {
				return -1
			}
			value = 10*value + int(c-'0')
		}
		return value
	}
	year, month, day, hour, minute, second := digits(0, 4), digits(5, 2), digits(8, 2), digits(11, 2), digits(14, 2), digits(17, 2)
	if text[4] != '-' || text[7] != '-' || text[10] != 'T' || text[13] != ':' || text[16] != ':' ||
		year < 0 || month < 1 || month > 12 || day < 1 || day > 28 || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59 {
		return 0, false
	}
	return berth.Time(time.Date(year, time.Month(month), day, hour, minute, second, 0, time.UTC).Unix()), true
}

// null is what Slurm writes where there is nothing.
func null(text string) bool { return text == "" || text == "(null)" || text == "N/A" || text == "NONE" }

func nodeList(text string) ([]string, error) {
	if null(text) {
		return nil, nil
	}
	return hostlist.Expand(text)
}

func wordList(text string) []string {
	if null(text) {
		return nil
	}
	return strings.Split(text, ",")
}

// parseLimit reads [days-]hours:minutes:seconds; 0 if there is no limit.
func parseLimit(text string) (berth.Duration, error) {
	if null(text) || text == "UNLIMITED" || text == "INFINITE" {
		return 0, nil
	}
	return hpctime.Parse(text)
}

// parseCount reads a number; 0 if there is no limit.
func parseCount(text string) (berth.Count, error) {
	if null(text) || text == "UNLIMITED" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%.40q is no number", text)
	}
	return berth.Count(n), nil
}

// asOf is the name under which parseConfig has the time at which slurmctld answered.
const asOf = "Configuration data as of"

// silent is the name under which parseConfig has the controllers that do not answer.
const silent = "controllers that are DOWN"

// controller matches what Slurm writes of a controller, here and for scontrol ping.
var controller = regexp.MustCompile(`(?m)^Slurmctld\([a-z0-9]+\) at (\S+) is (UP|DOWN)\s*$`)

// controllers returns which controllers answer and which do not.
func controllers(text string) (up, down []string) {
	for _, m := range controller.FindAllStringSubmatch(text, -1) {
		if m[2] == "UP" {
			up = append(up, m[1])
		} else {
			down = append(down, m[1])
		}
	}
	return up, down
}

// parseConfig reads what "scontrol show config" writes: lines of Key = Value.
// The first of several of one name counts.
func parseConfig(text string) map[string]string {
	settings := map[string]string{}
	for line := range strings.Lines(text) {
		if then, is := strings.CutPrefix(line, asOf+" "); is && settings[asOf] == "" {
			settings[asOf] = strings.TrimSpace(then)
		}
		key, value, ok := strings.Cut(line, "=")
		key = strings.TrimSpace(key)
		if _, twice := settings[key]; ok && !twice && !strings.Contains(key, " ") {
			settings[key] = strings.TrimSpace(value)
		}
	}
	if _, down := controllers(text); len(down) > 0 {
		settings[silent] = strings.Join(down, ",")
	}
	return settings
}

// field is one Key=Value of a record.
type field struct{ key, value string }

// fields reads a record that "scontrol -o" writes on one line: Key=Value parted
// by spaces. A word without "=" belongs to the value before it.
func fields(line string) []field {
	return appendFields(make([]field, 0, strings.Count(line, "=")), line)
}

// appendFields appends the fields of a record to some, in whose memory they are where there is room.
func appendFields(all []field, line string) []field {
	first, begins, ends := len(all), 0, 0 // of the last value in the line
	for word, at := nextWord(line, 0); word != ""; word, at = nextWord(line, at) {
		key, value, ok := strings.Cut(word, "=")
		switch {
		case ok && isKey(key):
			all = append(all, field{key, value})
			begins, ends = at-len(value), at
		case len(all) == first: // behind no key
		case ends == at-len(word)-1 && line[ends] == ' ': // as it stands there
			all[len(all)-1].value, ends = line[begins:at], at
		default:
			all[len(all)-1].value += " " + word
			ends = len(line) // nothing more stands as it is
		}
	}
	return all
}

// nextWord returns the first word of a line from a byte on, and where it ends; nothing if there is none. Words are
// those of strings.Fields.
func nextWord(line string, from int) (word string, end int) {
	for from < len(line) {
		size, is := spaceAt(line, from)
		if !is {
			break
		}
		from += size
	}
	for end = from; end < len(line); {
		if c := line[end]; c > ' ' && c < utf8.RuneSelf { // as nearly all are
			end++
			continue
		}
		size, is := spaceAt(line, end)
		if is {
			break
		}
		end += size
	}
	return line[from:end], end
}

// spaceAt returns how many bytes a character has, and whether it is white space.
func spaceAt(line string, at int) (size int, is bool) {
	switch c := line[at]; {
	case c == ' ' || c >= '\t' && c <= '\r':
		return 1, true
	case c < utf8.RuneSelf:
		return 1, false
	}
	r, size := utf8.DecodeRuneInString(line[at:])
	return size, unicode.IsSpace(r)
}

func isKey(text string) bool {
	for i := range len(text) {
		if c := text[i] | 0x20; (c < 'a' || c > 'z') && text[i] != '_' {
			return false
		}
	}
	return text != ""
}

// get returns the first value of a key, and nothing if there is none.
func get(all []field, key string) string {
	for i := range all {
		if all[i].key == key {
			return all[i].value
		}
	}
	return ""
}

// parsePartitions reads what "scontrol show partition -o" writes.
func parsePartitions(text string) ([]site.Partition, error) {
	var partitions []site.Partition
	for line := range strings.Lines(text) {
		all := fields(line)
		if len(all) == 0 || strings.HasPrefix(line, "No partitions") {
			continue
		}
		value := func(key string) string { return get(all, key) }
		p := site.Partition{Name: all[0].value, Default: value("Default") == "YES", Up: value("State") == "UP"}
		if !p.Up {
			p.State = value("State")
		}
		for _, list := range []struct {
			key string
			to  *[]string
		}{
			{"AllowGroups", &p.Groups}, {"AllowAccounts", &p.Accounts}, {"DenyAccounts", &p.DeniedAccounts}, {"AllowQos", &p.QOS}, {"DenyQos", &p.DeniedQOS},
		} {
			if text := value(list.key); text != "ALL" {
				*list.to = wordList(text)
			}
		}
		if qos := value("QoS"); !null(qos) {
			p.LimitsQOS = qos
		}
		var errs [3]error
		p.Nodes, errs[0] = nodeList(value("Nodes"))
		p.MaxTime, errs[1] = parseLimit(value("MaxTime"))
		p.MaxNodes, errs[2] = parseCount(value("MaxNodes"))
		if all[0].key != "PartitionName" || !site.ValidWord(p.Name) {
			return nil, fmt.Errorf("no partition: %.80q", line)
		}
		for _, err := range errs {
			if err != nil {
				return nil, fmt.Errorf("partition %s: %w", p.Name, err)
			}
		}
		partitions = append(partitions, p)
	}
	return partitions, nil
}

// parseReservations reads what "scontrol show reservation -o" writes.
func parseReservations(text string) ([]site.Booking, error) {
	var bookings []site.Booking
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line == "No reservations in the system" {
			continue
		}
		b, err := parseReservation(line)
		if err != nil {
			return nil, fmt.Errorf("reservation %.80q: %w", line, err)
		}
		bookings = append(bookings, b)
	}
	return bookings, nil
}

// periods are the flags of reservations that come again.
var periods = map[string]site.Period{
	"HOURLY": site.Hourly, "DAILY": site.Daily, "WEEKDAY": site.Weekdays, "WEEKEND": site.Weekends, "WEEKLY": site.Weekly,
}

// parseReservation reads one reservation. Names are written as they are and may
// hold spaces and even "StartTime=": the name ends at the last of those.
func parseReservation(line string) (site.Booking, error) {
	var b site.Booking
	const nameKey, startKey = "ReservationName=", " StartTime="
	rest, ok := strings.CutPrefix(line, nameKey)
	at := strings.LastIndex(rest, startKey)
	if !ok || at < 0 {
		return b, fmt.Errorf("no name and start")
	}
	b.Name = rest[:at]
	all := fields(rest[at:])
	value := func(key string) string { return get(all, key) }
	var err error
	if b.Start, err = parseTime(value("StartTime")); err != nil {
		return b, err
	}
	if b.End, err = parseTime(value("EndTime")); err != nil {
		return b, err
	}
	if b.Cores, err = parseCount(value("CoreCnt")); err != nil {
		return b, err
	}
	nodes, err := nodeList(value("Nodes"))
	if err != nil {
		return b, err
	}
	for _, node := range nodes {
		b.Shares = append(b.Shares, site.Share{Node: node})
	}
	if err := coreShares(&b, all); err != nil {
		return b, err
	}
	if p := value("PartitionName"); !null(p) {
		b.Partition = p
	}
	b.Users, b.Accounts, b.Groups, b.Flags = wordList(value("Users")), wordList(value("Accounts")), wordList(value("Groups")), wordList(value("Flags"))
	if b.Licences, err = parseLicences(value("Licenses")); err != nil {
		return b, err
	}
	for _, flag := range b.Flags {
		b.Repeat.Each = cmp.Or(b.Repeat.Each, periods[flag])
		b.Floats = b.Floats || flag == "TIME_FLOAT"
	}
	switch state := value("State"); state {
	case "ACTIVE", "INACTIVE":
		b.Active = state == "ACTIVE"
	default:
		return b, fmt.Errorf("state %.20q", state)
	}
	return b, nil
}

// parseLicences reads licences such as matlab:4,ansys, where no number is one.
func parseLicences(text string) ([]site.Licence, error) {
	var all []site.Licence
	for _, word := range wordList(text) {
		name, count, counted := strings.Cut(strings.TrimSpace(word), ":")
		l := site.Licence{Name: name, Count: 1}
		if counted {
			n, err := parseCount(count)
			if err != nil {
				return nil, fmt.Errorf("licence %.40q: %w", word, err)
			}
			l.Count = n
		}
		all = append(all, l)
	}
	return all, nil
}

// coreShares reads the pairs NodeName=n1 CoreIDs=0-1 of a reservation of cores.
func coreShares(b *site.Booking, all []field) error {
	shares := map[string]int{}
	for i := range b.Shares {
		shares[b.Shares[i].Node] = i
	}
	for i := range all {
		if all[i].key != "CoreIDs" {
			continue
		}
		if i == 0 || all[i-1].key != "NodeName" {
			return fmt.Errorf("cores of no node")
		}
		cores, err := berth.ParsePESet(all[i].value)
		at, known := shares[all[i-1].value]
		if err != nil || !known {
			return fmt.Errorf("cores %.40q of node %.40q", all[i].value, all[i-1].value)
		}
		b.Shares[at].Cores = cores
	}
	return nil
}

// parseGRES reads the countable things of a node, such as gpu:a100:4(S:0-1),nic:2.
func parseGRES(text string) ([]site.GRES, error) {
	if null(text) {
		return nil, nil
	}
	var all []site.GRES
	depth, start := 0, 0
	for i := 0; i <= len(text); i++ {
		switch {
		case i < len(text) && text[i] == '(':
			depth++
		case i < len(text) && text[i] == ')':
			depth--
		case i == len(text) || (text[i] == ',' && depth == 0):
			g, err := parseOneGRES(text[start:i])
			if err != nil {
				return nil, err
			}
			all = append(all, g)
			start = i + 1
		}
	}
	return all, nil
}

func parseOneGRES(text string) (site.GRES, error) {
	plain, _, _ := strings.Cut(text, "(")
	parts := strings.Split(plain, ":")
	g := site.GRES{Name: parts[0], Count: 1}
	if len(parts) > 1 {
		n, isCount := gresCount(parts[len(parts)-1])
		if isCount {
			g.Count = n
			parts = parts[:len(parts)-1]
		}
	}
	if len(parts) == 2 {
		g.Type = parts[1]
	}
	if len(parts) > 2 || !site.ValidWord(g.Name) {
		return g, fmt.Errorf("%.40q is no GRES", text)
	}
	return g, nil
}

// gresCount reads a number with an optional unit of powers of 1024.
func gresCount(text string) (int64, bool) {
	digits := strings.TrimRight(text, "KMGTkmgt")
	n, err := strconv.ParseInt(digits, 10, 40)
	if err != nil || n < 0 || len(text)-len(digits) > 1 {
		return 0, false
	}
	if len(digits) < len(text) {
		shift := 10 * (strings.IndexByte("kmgt", text[len(text)-1]|0x20) + 1)
		if n > berth.TimeLimit>>shift {
			return 0, false
		}
		n <<= shift
	}
	return n, true
}

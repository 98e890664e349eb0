package site

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// Name is what a reservation of ours is called at a site:
// berth_<site>_<hash of site and id>_<generation>, of letters, digits, dashes
// and underscores alone. The same promise always has the same name, which makes
// booking it twice harmless; a promise that was placed anew has the next
// generation.
type Name string

const (
	namePrefix = "berth_"
	// hashDigits makes 64 bits: among the 10^6 reservations of a busy year two
	// ids meet with a probability of 3·10^-8.
	hashDigits = 16
	// maxSitePart bounds the readable part; the hash tells longer names apart.
	maxSitePart = 32
)

// Names are the names of the reservations of one site: what is the same for all of them is found out once.
type Names struct{ site, prefix string }

// NamesAt returns the names of a site.
func NamesAt(siteName string) Names { return Names{siteName, sitePrefix(siteName)} }

// Of returns the name of a reservation. The id may be any text.
func (n Names) Of(id string, generation uint64) Name {
	text := n.promise(id, make([]byte, 0, 64))
	return Name(strconv.AppendUint(append(text, '_'), generation, 10))
}

// Promise returns the name of a promise about an id, the same for all its generations.
func (n Names) Promise(id string) string { return string(n.promise(id, make([]byte, 0, 64))) }

func (n Names) promise(id string, text []byte) []byte {
	var room [128]byte
	sum := sha256.Sum256(append(append(append(room[:0], n.site...), 0), id...))
	return hex.AppendEncode(append(text, n.prefix...), sum[:hashDigits/2])
}

// Split returns a name without its generation, the same for all generations of one promise,
// and the generation. ok is false if the name is not of the form of Of, so not ours.
func (n Names) Split(name Name) (promise string, generation uint64, ok bool) {
	rest, ours := strings.CutPrefix(string(name), n.prefix)
	if !ours || len(rest) < hashDigits+2 || rest[hashDigits] != '_' {
		return "", 0, false
	}
	for i := range hashDigits {
		if c := rest[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return "", 0, false
		}
	}
	number := rest[hashDigits+1:]
	generation, err := strconv.ParseUint(number, 10, 64)
	if err != nil || number[0] == '0' && len(number) > 1 {
		return "", 0, false
	}
	return string(name)[:len(name)-len(number)-1], generation, true
}

// NameOf returns the name of a reservation at a site. The id may be any text.
func NameOf(siteName, id string, generation uint64) Name { return NamesAt(siteName).Of(id, generation) }

// sitePrefix is what all names of a site begin with. What names may not hold
// becomes a dash.
func sitePrefix(siteName string) string {
	part := strings.Map(func(c rune) rune {
		if c < 0x80 && (isAlphanumeric(byte(c)) || c == '-' || c == '_') {
			return c
		}
		return '-'
	}, siteName)
	return namePrefix + part[:min(len(part), maxSitePart)] + "_"
}

// Promise returns the name without its generation, the same for all generations
// of one promise, and the generation. ok is false if the name is not of the form
// of NameOf for the site, so not ours.
func (n Name) Promise(siteName string) (promise string, generation uint64, ok bool) {
	return NamesAt(siteName).Split(n)
}

// ValidUser reports whether text is a name of a user that may be handed to a resource manager. Beside
// what ValidWord takes, directories of users have names such as alice@EXAMPLE.ORG and EXAMPLE\alice.
func ValidUser(text string) bool {
	if text == "" || text[0] == '@' || text[0] == '\\' {
		return false
	}
	return ValidWord(strings.NewReplacer("@", "_", `\`, "_").Replace(text))
}

// UserForm says in messages what ValidUser takes.
const UserForm = `want 1 to 64 letters, digits, dashes, underscores, points, @ and \, with a letter, a digit or an underscore first`

// ValidWord reports whether text is a name that may be handed to a resource
// manager as an account, partition or reservation: 1 to 64 letters,
// digits, dashes, underscores and points, not beginning with a dash or a point.
func ValidWord(text string) bool {
	if text == "" || len(text) > maxWord || text[0] == '-' || text[0] == '.' {
		return false
	}
	for i := range len(text) {
		if c := text[i]; !isAlphanumeric(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

const maxWord = 64

func isAlphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// Superseded returns the name of a later generation of the same promise among
// the bookings, and false if there is none: a request for the earlier one
// has been overtaken.
func Superseded(siteName string, name Name, bookings []Booking) (string, bool) {
	promise, generation, ok := name.Promise(siteName)
	if !ok {
		return "", false
	}
	for i := range bookings {
		other, g, ours := Name(bookings[i].Name).Promise(siteName)
		if ours && other == promise && g > generation {
			return bookings[i].Name, true
		}
	}
	return "", false
}

// Split parts bookings into ours, by name, and the rest.
func Split(siteName string, bookings []Booking) (ours, foreign []Booking) {
	names := NamesAt(siteName)
	for i := range bookings {
		if _, _, ok := names.Split(Name(bookings[i].Name)); ok {
			ours = append(ours, bookings[i])
		} else {
			foreign = append(foreign, bookings[i])
		}
	}
	sortBookings(ours)
	sortBookings(foreign)
	return ours, foreign
}

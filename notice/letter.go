package notice

import (
	"slices"
	"strings"
)

// subjectLength is how many characters of a name a subject has: two lines of a header.
const subjectLength = 100

// Letter writes a notice as plain text for e-mail, for a receiver of an id. The subject is the same for all
// notices about one reservation or workflow, by which programs for e-mail keep a thread together. It has
// one line, whatever the name has.
func Letter(f *Facts, hook string) (subject, text string) {
	named := strings.Join(strings.Fields(f.Name), " ")
	if named == "" {
		named = f.ID
	}
	subject = named
	if long := []rune(subject); len(long) > subjectLength {
		subject = string(long[:subjectLength-1]) + "…"
	}
	var b strings.Builder
	b.WriteString(named + ": " + f.Kind + "\n")
	if at := slices.IndexFunc(table, func(a About) bool { return string(a.Kind) == f.Kind }); at >= 0 {
		about := table[at].About
		b.WriteString(strings.ToUpper(about[:1]) + about[1:] + ".\n")
	}
	b.WriteByte('\n')
	for _, row := range [][2]string{{"id", f.ID}, {"user", f.User}, {"state", f.State}, {"site", f.Site}, {"PEs", f.PEs}, {"start", f.Start}, {"end", f.End}} {
		if row[1] != "" {
			b.WriteString(row[0] + strings.Repeat(" ", len("state")+2-len(row[0])) + row[1] + "\n")
		}
	}
	if f.URL != "" {
		b.WriteString("\n" + f.URL + "\n")
	}
	b.WriteString("\n-- \nYou asked Berth for this: berth notify show " + hook + "\nNo more of it: berth notify remove " + hook + "\n")
	return "[Berth] " + subject, b.String()
}

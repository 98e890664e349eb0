package notice

import (
	"slices"
	"strings"

	"github.com/berth-hpc/berth"
)

// Facts is what texts can say of a notice, as people read it.
type Facts struct {
	Kind, ID, Name, User, State, Site, Start, End, PEs, URL string
}

// DefaultText is the text of a chat that has none of its own. Values that a notice does not have
// are empty.
const DefaultText = "{link} {kind}: {pes} PEs at {site}, {start} to {end}"

// Placeholders lists what a text may have in braces.
func Placeholders() []string {
	return []string{"kind", "id", "name", "user", "state", "site", "start", "end", "pes", "url", "link"}
}

// CheckText returns an error of code Invalid for a text with braces around anything else.
func CheckText(text string) error {
	_, err := expand(text, func(string) string { return "" })
	return err
}

// Text writes a notice by a template that CheckText takes, for Slack and Mattermost: values are
// escaped as these want it, {link} is the name, or the id, with the address behind it where it is known.
func Text(template string, f *Facts) string {
	escape := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace
	text, _ := expand(template, func(name string) string {
		switch name {
		case "kind":
			return f.Kind
		case "id":
			return escape(f.ID)
		case "name":
			return escape(f.Name)
		case "user":
			return escape(f.User)
		case "state":
			return escape(f.State)
		case "site":
			return escape(f.Site)
		case "start":
			return f.Start
		case "end":
			return f.End
		case "pes":
			return f.PEs
		case "url":
			return f.URL
		}
		shown := f.Name
		if shown == "" {
			shown = f.ID
		}
		if f.URL == "" {
			return escape(shown)
		}
		return "<" + f.URL + "|" + strings.ReplaceAll(escape(shown), "|", "¦") + ">"
	})
	return text
}

// expand replaces what stands in braces.
func expand(text string, value func(name string) string) (string, error) {
	var out strings.Builder
	for {
		before, rest, braced := strings.Cut(text, "{")
		out.WriteString(before)
		if !braced {
			return out.String(), nil
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed || !slices.Contains(Placeholders(), name) {
			return "", berth.Errorf(berth.Invalid, "text", "{%.20s: want one of {%s}", rest, strings.Join(Placeholders(), "}, {"))
		}
		out.WriteString(value(name))
		text = after
	}
}

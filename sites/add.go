package sites

import (
	"bytes"
	"strings"

	"github.com/berth-hpc/berth"
)

// Add returns the text of a sites file with one more site behind the last one.
// The entry is the site's keys in YAML, one a line, not indented. Everything
// else stays as it is, comments too; an empty file becomes one with this site.
// Errors are of code Invalid: the file or the entry has mistakes, or its sites
// are written so that nothing can be added, in brackets. name stands in messages.
func Add(text []byte, name, entry string) ([]byte, error) {
	fresh := blank(text)
	at, indent := len(text), "  "
	if fresh {
		entry = "sites:\n" + item(entry, indent)
	} else {
		_, err := Read(bytes.NewReader(text), name)
		if err != nil {
			return nil, err
		}
		if at, indent, err = behindSites(text, name); err != nil {
			return nil, err
		}
		entry = item(entry, indent)
	}
	var out bytes.Buffer
	out.Write(text[:at])
	if at > 0 && text[at-1] != '\n' {
		out.WriteByte('\n')
	}
	out.WriteString(entry)
	out.Write(text[at:])
	if _, err := Read(bytes.NewReader(out.Bytes()), name); err != nil {
		if fresh {
			return nil, err
		}
		return nil, berth.Errorf(berth.Invalid, "sites", "%s: a site cannot be added to a file written like this; add it by hand: %v", name, err)
	}
	return out.Bytes(), nil
}

// behindSites returns the offset behind the last line of the list of sites, and
// by how much its dashes are indented.
func behindSites(text []byte, name string) (at int, indent string, err error) {
	tree, err := parse(text, name)
	if err != nil {
		return 0, "", err
	}
	lines := bytes.SplitAfter(text, []byte{'\n'})
	end := len(lines) // the line behind the list, from 0
	var list *value
	for _, m := range tree.Members {
		switch {
		case m.Key == "sites":
			list = m.Value
		case list != nil:
			end = min(end, m.Line-1)
		}
	}
	dash := string(lines[list.Line-1])
	if indent = dash[:len(dash)-len(strings.TrimLeft(dash, " "))]; !strings.HasPrefix(dash[len(indent):], "-") {
		return 0, "", berth.Errorf(berth.Invalid, "sites", "%s:%d:%d: the sites are written in brackets; write them as a list with dashes, or add the site by hand", name, list.Line, list.Column)
	}
	// What stands before the next key at the margin is about that key.
	for end > 0 && (blank(lines[end-1]) && !bytes.HasPrefix(lines[end-1], []byte(" "))) {
		end--
	}
	for _, line := range lines[:end] {
		at += len(line)
	}
	return at, indent, nil
}

// blank reports whether text says nothing: it is comments and white space.
func blank(text []byte) bool {
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}

// item makes an entry of a list of keys.
func item(keys, indent string) string {
	var out strings.Builder
	lead := "- "
	for line := range strings.Lines(keys) {
		out.WriteString(indent + lead + line)
		lead = "  "
	}
	return out.String()
}

package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"strings"

	"github.com/berth-hpc/berth/internal/source"
)

// separator divides the fields of a line of a list. No Go program contains it
// outside of its texts.
const separator = " :: "

// named is a line of the list of named mutants.
type named struct {
	line     int
	name     string
	file     string
	within   string
	old, new string
	about    string
}

// argued is a line of the list of mutants that no test can kill.
type argued struct {
	line int
	key  string
}

// lines yields the lines of a list, with their numbers. Empty ones and those
// that begin with # are no part of it.
func lines(content []byte) func(func(int, string) bool) {
	return func(yield func(int, string) bool) {
		n := 0
		for line := range bytes.Lines(content) {
			n++
			text := strings.TrimSpace(string(line))
			if text != "" && !strings.HasPrefix(text, "#") && !yield(n, text) {
				return
			}
		}
	}
}

// readNamed reads a list of named mutants. A line is
//
//	NAME :: FILE :: DECLARATION :: OLD => NEW :: WHAT IT BREAKS
//
// where OLD is a piece of the declaration's source that is there exactly once,
// with any white space between its words written as one blank, and NEW stands
// for it in the mutant; {} is a statement that does nothing.
func readNamed(file string) ([]named, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var list []named
	seen := map[string]bool{}
	for n, line := range lines(content) {
		fields := strings.Split(line, separator)
		if len(fields) != 5 {
			return nil, fmt.Errorf("%s:%d: %d fields between %q; give name, file, declaration, edit and what it breaks", file, n, len(fields), strings.TrimSpace(separator))
		}
		before, after, ok := strings.Cut(fields[3], " => ")
		if !ok || before == "" {
			return nil, fmt.Errorf("%s:%d: the edit %q; give OLD => NEW", file, n, fields[3])
		}
		if seen[fields[0]] {
			return nil, fmt.Errorf("%s:%d: %s is there twice", file, n, fields[0])
		}
		seen[fields[0]] = true
		list = append(list, named{n, fields[0], fields[1], fields[2], oneLine(before), after, fields[4]})
	}
	return list, nil
}

// readArgued reads a list of mutants that no test can kill. A line is a
// mutant's key and the argument:
//
//	FILE :: DECLARATION :: KIND :: OLD => NEW :: WHY NO TEST CAN TELL
func readArgued(file string) ([]argued, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var list []argued
	seen := map[string]bool{}
	for n, line := range lines(content) {
		i := strings.LastIndex(line, separator)
		if i < 0 || strings.Count(line[:i], separator) != 3 || strings.TrimSpace(line[i+len(separator):]) == "" {
			return nil, fmt.Errorf("%s:%d: give file, declaration, kind, edit and the argument, divided by %q", file, n, strings.TrimSpace(separator))
		}
		key := line[:i]
		if seen[key] {
			return nil, fmt.Errorf("%s:%d: the mutant is there twice", file, n)
		}
		seen[key] = true
		list = append(list, argued{n, key})
	}
	return list, nil
}

// mutant finds the place of a named mutant in its package. The error says what
// does not match.
func (m *named) mutant(fset *token.FileSet, p *source.Package) (*Mutant, error) {
	for _, file := range p.Files {
		if file.Name != m.file {
			continue
		}
		for _, decl := range file.Syntax.Decls {
			if declarationName(decl) == m.within {
				return m.in(fset, file, decl)
			}
		}
		return nil, fmt.Errorf("%s: %s has no declaration %s", m.name, m.file, m.within)
	}
	return nil, fmt.Errorf("%s: there is no file %s", m.name, m.file)
}

func (m *named) in(fset *token.FileSet, file *source.File, decl ast.Decl) (*Mutant, error) {
	begin, end := fset.Position(decl.Pos()).Offset, fset.Position(decl.End()).Offset
	places := occurrences(file.Source[begin:end], m.old)
	if len(places) != 1 {
		return nil, fmt.Errorf("%s: %q is %d times in %s of %s, not once", m.name, m.old, len(places), m.within, m.file)
	}
	at := places[0]
	return &Mutant{
		Name: m.name, About: m.about, Kind: Named, File: file, Within: m.within, Start: begin + at[0], End: begin + at[1], Text: m.new,
		Line: 1 + bytes.Count(file.Source[:begin+at[0]], []byte("\n")), Old: m.old, New: m.new, Nth: 1,
	}, nil
}

// occurrences returns where a piece of source is, whatever white space is
// between its words.
func occurrences(src []byte, piece string) [][2]int {
	// The source without white space but for one blank between words, and where
	// each of its bytes comes from.
	var flat []byte
	var from []int
	for i, c := range src {
		if c == ' ' || c == '\t' || c == '\n' || c == '\r' {
			if len(flat) > 0 && flat[len(flat)-1] != ' ' {
				flat, from = append(flat, ' '), append(from, i)
			}
			continue
		}
		flat, from = append(flat, c), append(from, i)
	}
	var places [][2]int
	for at := 0; ; at++ {
		i := bytes.Index(flat[at:], []byte(piece))
		if i < 0 {
			return places
		}
		at += i
		places = append(places, [2]int{from[at], from[at+len(piece)-1] + 1})
	}
}

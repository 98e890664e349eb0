package main

import (
	"bufio"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/berth-hpc/berth"
)

// The long options of sbatch of Slurm 22.05, 24.11 and 26.05, by what follows them: a value, maybe one behind a =, or nothing.
var (
	sbatchValues = strings.Fields(`account acctg-freq array batch bb bbf begin chdir cluster-constraint clusters cluster comment constraint container container-id
		container-type core-spec cores-per-socket cpu-freq cpus-per-gpu cpus-per-task deadline delay-boot dependency distribution error exclude
		export export-file extra extra-node-info gid gpu-bind gpu-freq gpus gpus-per-node gpus-per-socket gpus-per-task gres gres-flags hint
		input job-name kill-on-invalid-dep licenses mail-type mail-user mcs-label mem mem-bind mem-per-cpu mem-per-gpu mincpus network nodefile
		nodelist nodes ntasks ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket open-mode output partition power prefer priority
		profile qos reservation segment signal sockets-per-node switches tasks-per-node thread-spec threads-per-core time time-min tmp
		tres-bind tres-per-task uid wait-all-nodes wckey wrap`)
	sbatchMaybe = strings.Fields(`consolidate-segments exclusive get-user-env nice oom-kill-step propagate requeue stepmgr`)
	sbatchFlags = strings.Fields(`contiguous help hold ignore-pbs no-kill no-requeue overcommit oversubscribe parsable quiet reboot resv-ports share
		spread-job spread-segments test-only usage use-min-nodes verbose version wait`)
)

// sbatchShort are its short options by their long ones.
var sbatchShort = map[byte]string{
	'a': "array", 'A': "account", 'b': "begin", 'B': "extra-node-info", 'c': "cpus-per-task", 'C': "constraint", 'd': "dependency", 'D': "chdir", 'e': "error",
	'F': "nodefile", 'G': "gpus", 'h': "help", 'H': "hold", 'i': "input", 'J': "job-name", 'k': "no-kill", 'L': "licenses", 'm': "distribution", 'M': "clusters",
	'n': "ntasks", 'N': "nodes", 'o': "output", 'O': "overcommit", 'p': "partition", 'q': "qos", 'Q': "quiet", 's': "oversubscribe", 'S': "core-spec", 't': "time",
	'v': "verbose", 'V': "version", 'w': "nodelist", 'W': "wait", 'x': "exclude",
}

// sbatchLine is a command line of sbatch, or one of its lines in a script, taken apart.
type sbatchLine struct {
	options map[string]string // by long names; the last one counts
	args    []string          // all options as they were, without those that Berth takes for itself
	script  []string          // the script and its arguments
}

// takeApart reads words as sbatch does, by getopt: options end at the first other word or behind --. What kept
// names is left out of the args. An option that is not known is handed on; where it is unclear whether the next word is its value
// or the script, it is refused.
func takeApart(words []string, kept ...string) (*sbatchLine, error) {
	line := &sbatchLine{options: map[string]string{}}
	for len(words) > 0 {
		word := words[0]
		switch {
		case word == "--":
			line.script = words[1:]
			return line, nil
		case word == ":":
			return nil, berth.Errorf(berth.Invalid, "", "jobs of several components, with : between them, cannot be promised; use berth reserve and sbatch --reservation=NAME")
		case !strings.HasPrefix(word, "-") || word == "-":
			line.script = words
			return line, nil
		}
		took, name, value, err := takeOption(words)
		if err != nil {
			return nil, err
		}
		if name != "" {
			line.options[name] = value
		}
		if !slices.Contains(kept, name) {
			line.args = append(line.args, words[:took]...)
		}
		words = words[took:]
	}
	return line, nil
}

// takeOption reads the option in the first word, and its value. A word of several short options is one of them alone if
// that takes a value, and otherwise none that Berth reads.
func takeOption(words []string) (took int, name, value string, err error) {
	word := words[0]
	if !strings.HasPrefix(word, "--") {
		for i := 1; i < len(word); i++ {
			name = sbatchShort[word[i]]
			switch {
			case !slices.Contains(sbatchValues, name):
			case i+1 < len(word):
				return alone(words, 1, name, word[i+1:], i)
			case len(words) < 2:
				return 0, "", "", berth.Errorf(berth.Invalid, "", "%s: missing value", word)
			default:
				return alone(words, 2, name, words[1], i)
			}
		}
		return 1, name, "", nil
	}
	text, value, hasValue := strings.Cut(word[2:], "=")
	name, known := wholeOption(text)
	if !known {
		if !hasValue && len(words) > 1 && !strings.HasPrefix(words[1], "-") {
			return 0, "", "", berth.Errorf(berth.Invalid, "", "--%s is not an option that Berth knows; write --%s=VALUE, or put it in the script as #SBATCH", text, text)
		}
		return 1, text, value, nil
	}
	if !slices.Contains(sbatchValues, name) || hasValue {
		return 1, name, value, nil
	}
	if len(words) < 2 {
		return 0, "", "", berth.Errorf(berth.Invalid, "", "--%s: missing value", text)
	}
	return 2, name, words[1], nil
}

// alone refuses an option of Berth's behind other letters in one word, from which it could not be taken out.
func alone(words []string, took int, name, value string, at int) (int, string, string, error) {
	if at > 1 && (name == "begin" || name == "deadline") {
		return 0, "", "", berth.Errorf(berth.Invalid, "", "%s: write --%s=%s by itself", words[0], name, value)
	}
	return took, name, value, nil
}

// wholeOption returns the long option that a text is the beginning of, as getopt has it.
func wholeOption(text string) (name string, known bool) {
	for _, list := range [][]string{sbatchValues, sbatchMaybe, sbatchFlags} {
		for _, o := range list {
			switch {
			case o == text:
				return o, true
			case !strings.HasPrefix(o, text) || text == "":
			case name != "":
				return text, false // of several
			default:
				name = o
			}
		}
	}
	if name == "" {
		return text, false
	}
	return name, true
}

// scriptLines are the options in the head of a script: those for sbatch, and those for Berth.
type scriptLines struct{ sbatch, berth []string }

const (
	// longestScript is how much of a script is looked through for options; Slurm takes 4 MB as it comes.
	longestScript = 8 << 20
	longestLine   = 64 << 10
)

// readHead reads the lines of a script before its first command: from there on sbatch looks for no options.
func readHead(script io.Reader) (scriptLines, error) {
	var found scriptLines
	lines := bufio.NewScanner(io.LimitReader(script, longestScript))
	lines.Buffer(make([]byte, 0, 4096), longestLine)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line != "" && line[0] != '#' {
			break
		}
		for prefix, into := range map[string]*[]string{"#SBATCH": &found.sbatch, "#BERTH": &found.berth} {
			rest, is := strings.CutPrefix(line, prefix)
			if !is || rest != "" && rest[0] != ' ' && rest[0] != '\t' {
				continue
			}
			words, err := splitWords(rest)
			if err != nil {
				return found, berth.Errorf(berth.Invalid, "", "%.80q: %v", line, err)
			}
			if prefix == "#SBATCH" && len(words) == 1 && (words[0] == "hetjob" || words[0] == "packjob") {
				words = []string{":"}
			}
			*into = append(*into, words...)
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) { // which is no line of options
		return found, nil
	}
	return found, lines.Err()
}

// splitWords splits a line of a script as sbatch does: by blanks outside of quotes, up to a comment.
func splitWords(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord, quote := false, byte(0)
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case c == '\\' && quote != '\'' && i+1 < len(line):
			i++
			word.WriteByte(line[i])
			inWord = true
		case quote != 0:
			word.WriteByte(c)
		case c == '"' || c == '\'':
			quote, inWord = c, true
		case c == ' ' || c == '\t':
			if inWord {
				words, inWord = append(words, word.String()), false
				word.Reset()
			}
		case c == '#' && !inWord:
			return words, nil
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, berth.Errorf(berth.Invalid, "", "a %c is not closed", quote)
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}

// ofComment returns the options for Berth in a comment such as berth:deadline=now+2h,users=bob,carol; asked is false for any
// other comment.
func ofComment(comment string) (words []string, asked bool, err error) {
	rest, asked := strings.CutPrefix(comment, "berth")
	if !asked || rest != "" && rest[0] != ':' {
		return nil, false, nil
	}
	if rest = strings.TrimPrefix(rest, ":"); rest == "" {
		return nil, true, nil
	}
	for part := range strings.SplitSeq(rest, ",") {
		key, _, is := strings.Cut(part, "=")
		switch {
		case is && isOptionName(key):
			words = append(words, "--"+part)
		case len(words) > 0: // a comma of the value before it
			words[len(words)-1] += "," + part
		default:
			return nil, true, berth.Errorf(berth.Invalid, "", "--comment: %.80q; want berth:KEY=VALUE such as berth:deadline=now+2h", comment)
		}
	}
	return words, true, nil
}

func isOptionName(text string) bool {
	return text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz-") == "" && text[0] != '-'
}

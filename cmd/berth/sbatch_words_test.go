package main

import (
	"errors"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

func TestCommandLinesOfSbatchAreTakenApart(t *testing.T) {
	for _, test := range []struct {
		words   string // with | between them
		options map[string]string
		args    string
		script  string
	}{
		{"-N2|-t|10|job.sh|-N3|x", map[string]string{"nodes": "2", "time": "10"}, "-N2|-t|10", "job.sh|-N3|x"},
		{"--deadline=now+2h|--begin|now|--nodes|2|--|-odd.sh", map[string]string{"nodes": "2", "deadline": "now+2h", "begin": "now"}, "--nodes|2", "-odd.sh"},
		{"-b|18:00|-HQ|-vvNn|--|j", map[string]string{"begin": "18:00", "quiet": "", "nodes": "n"}, "-HQ|-vvNn", "j"},
		{"--dead=a|--ntasks-per-n=3|--exclusive|j", map[string]string{"deadline": "a", "ntasks-per-node": "3", "exclusive": ""}, "--ntasks-per-n=3|--exclusive", "j"},
		{"--new=5|--newer|-N1|-", map[string]string{"new": "5", "newer": "", "nodes": "1"}, "--new=5|--newer|-N1", "-"},
		{"--comment=a=b|--wrap|a b; c", map[string]string{"comment": "a=b", "wrap": "a b; c"}, "--comment=a=b|--wrap|a b; c", ""},
		{"--time=1|--time=2", map[string]string{"time": "2"}, "--time=1|--time=2", ""},
	} {
		got, err := takeApart(strings.Split(test.words, "|"), "begin", "deadline")
		if err != nil {
			t.Errorf("%s: %v", test.words, err)
			continue
		}
		if diff := cmp.Diff(test.options, got.options); diff != "" || strings.Join(got.args, "|") != test.args || strings.Join(got.script, "|") != test.script {
			t.Errorf("%s: args %q, script %q\n%s", test.words, got.args, got.script, diff)
		}
	}
	for words, want := range map[string]string{
		"-N": "-N: missing value", "--nodes": "--nodes: missing value", "-N1|:|-N2|j": "several components", "--newer|job.sh": "--newer is not an option that Berth knows",
		"-Hb18:00|j": "write --begin=18:00 by itself", "--n|2": "--n is not an option",
	} {
		if _, err := takeApart(strings.Split(words, "|"), "begin"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", words, err, want)
		}
	}
}

func TestHeadsOfScripts(t *testing.T) {
	const text = "#!/bin/sh\n# a comment\n#SBATCH -N2 --comment='a \"b' # rest\n\n#BERTH\t--deadline=\"tomorrow 08:00\" --name=a\\ b\n#BERTHING --no\n #BERTH -n 3\ntrue\n#BERTH --late\n"
	got, err := readHead(strings.NewReader(text))
	want := scriptLines{[]string{"-N2", `--comment=a "b`}, []string{"--deadline=tomorrow 08:00", "--name=a b", "-n", "3"}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(scriptLines{})); diff != "" || err != nil {
		t.Error(err, diff)
	}
	if got, err := readHead(strings.NewReader("#!/bin/sh\n#SBATCH hetjob\n")); err != nil || !slices.Equal(got.sbatch, []string{":"}) {
		t.Error(got, err)
	}
	if _, err := readHead(strings.NewReader("#BERTH 'x\n")); err == nil || !strings.Contains(err.Error(), "a ' is not closed") {
		t.Error(err)
	}
	if got, err := readHead(strings.NewReader("#BERTH -n 1\n" + strings.Repeat("x", 5<<20))); err != nil || len(got.berth) != 2 {
		t.Error(got, err)
	}
	broken := errors.New("broken")
	if _, err := readHead(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Error(err)
	}
	// Only what is looked at is read, so the rest of a long script is left for sbatch.
	long := strings.NewReader("#!/bin/sh\ntrue\n" + strings.Repeat("x", 1<<20))
	if _, err := readHead(long); err != nil || long.Len() < 1<<19 {
		t.Errorf("%d bytes are left: %v", long.Len(), err)
	}
}

func TestCommentsAskForPromises(t *testing.T) {
	for comment, want := range map[string]string{
		"berth": "", "berth:": "", "berth:deadline=now+2h": "--deadline=now+2h",
		"berth:users=bob,carol,deadline=fri 18:00": "--users=bob,carol|--deadline=fri 18:00", "berth:window=next tue 14:00–18:00,npe=4": "--window=next tue 14:00–18:00|--npe=4",
	} {
		got, asked, err := ofComment(comment)
		if strings.Join(got, "|") != want || !asked || err != nil {
			t.Errorf("%s: %q, %t, %v", comment, got, asked, err)
		}
	}
	for _, comment := range []string{"", "berthing", "at berth:x=1", "Berth"} {
		if got, asked, err := ofComment(comment); asked || err != nil || got != nil {
			t.Errorf("%s: %q, %t, %v", comment, got, asked, err)
		}
	}
	for _, comment := range []string{"berth:soon", "berth:=2", "berth:a,b=2"} {
		if _, _, err := ofComment(comment); err == nil {
			t.Errorf("%s is taken", comment)
		}
	}
}

// What was quoted for a line of a script is read back as it was.
func TestWordsOfScriptsAreReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOf(rapid.StringOfN(rapid.RuneFrom([]rune(`ab"'\ #=	é`)), 1, 8, -1)).Draw(t, "words")
		var line strings.Builder
		for _, word := range words {
			line.WriteString(` "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(word) + `"`)
		}
		got, err := splitWords(line.String() + " # and a comment")
		if err != nil || !slices.Equal(got, words) {
			t.Fatalf("%q became %q: %v", words, got, err)
		}
	})
}

func TestSizesOfJobs(t *testing.T) {
	for _, test := range []struct {
		options     string
		least, most int
		want        int64
	}{
		{"nodes=3", 4, 8, 3},
		{"nodes=2-5 ntasks=9", 4, 4, 2},
		{"", 4, 8, 1},
		{"ntasks=9", 4, 4, 3},
		{"ntasks=9 cpus-per-task=2", 4, 4, 5},
		{"ntasks=9 ntasks-per-node=2", 4, 8, 5},
		{"cpus-per-task=4", 4, 8, 1},
		{"ntasks=9", 1, 1, 9},
		{"nodes=2 ntasks-per-node=3 cpus-per-task=2", 1, 1, 12},
	} {
		job := &batchJob{options: optionsOf(test.options), ask: &ask{}}
		if got, err := job.processors(test.most == 1, test.least, test.most); err != nil || int64(got) != test.want {
			t.Errorf("%s of nodes with %d to %d cores: %d, %v; want %d", test.options, test.least, test.most, got, err, test.want)
		}
	}
	for options, want := range map[string]string{
		"ntasks=9": "give the number of nodes", "nodes=0": "--nodes=0", "nodes=1k": "--nodes=1k", "nodes=1,3": "--nodes=1,3", "cpus-per-task=-1": "--cpus-per-task=-1", "ntasks=99999999999": "--ntasks",
	} {
		job := &batchJob{options: optionsOf(options), ask: &ask{}}
		if got, err := job.processors(false, 4, 8); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %d, %v", options, got, err)
		}
	}
	for text, want := range map[string]int64{"": 0, "0": 0, "100": 105, "4G": 4295, "1K": 1, "2T": 2199024} {
		if got, err := megabytesOf(text); err != nil || got != want {
			t.Errorf("%s: %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"x", "4GB", "-1", "99999999T"} {
		if got, err := megabytesOf(text); err == nil {
			t.Errorf("%s is %d", text, got)
		}
	}
}

func optionsOf(text string) map[string]string {
	options := map[string]string{}
	for word := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(word, "=")
		options[name] = value
	}
	return options
}

// What a job says to sbatch fills what it does not say to Berth, and what cannot be promised is refused.
func TestWhatJobsSayToSbatchAndToBerth(t *testing.T) {
	a := &app{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard}
	read := func(words ...string) (*form.Request, error) {
		line, err := takeApart(words, "begin", "deadline")
		if err != nil {
			t.Fatal(err)
		}
		job, err := a.readJob(a.sbatchCommand(), line, true)
		if err != nil {
			return nil, err
		}
		return &job.ask.Request, a.settle(a.sbatchCommand(), job.ask)
	}
	q, err := read("--time=1:30", "-pmain", "-Aproject", "-qlow", "-Cintel", "-wn[1-2]", "-xn3", "-Lmatlab:4", "--deadline=now+600", "--comment=berth:no-show=5m,qos=high")
	if err != nil {
		t.Fatal(err)
	}
	if q.Duration != 180 || q.NoShow != 300 || q.DeadlineIn < 598 || q.DeadlineIn > 600 || q.Partition != "main" || q.Account != "project" || q.QOS != "high" ||
		q.Constraint != "intel" || q.Nodelist != "n[1-2]" || q.Exclude != "n3" || q.Software != "matlab" || q.Licences != 4 {
		t.Errorf("asked for is %+v", q)
	}
	for words, says := range map[string]string{
		"--reservation=a": "--reservation=a", "-Mother": "--clusters=other", "--array=1-3": "--array", "--time=UNLIMITED": "--time=UNLIMITED", "--time=0": "--time=0",
		"--comment=berth:npe=4": "", "--comment=berth:npe=-4": "npe", "--constraint=a&&": "--constraint", "--deadline=whenever": "whenever",
	} {
		if _, err := read(words); says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: %v", words, err)
		}
	}
}

var helpLine = regexp.MustCompile(`(?m)^ {2,6}(?:-(\w),? +)?--([a-z-]+)(\[?=)?`)

// The real sbatch takes values and flags as the tables say.
func TestOptionsOfSbatchAreThoseOfTheRealOne(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	c := slurmtest.Start(t, slurmtest.Options{Nodes: 1})
	cmd := exec.CommandContext(t.Context(), "sbatch", "--help")
	cmd.Env = append(cmd.Environ(), "SLURM_CONF="+c.Conf)
	help, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	found := helpLine.FindAllStringSubmatch(string(help), -1)
	if len(found) < 80 {
		t.Fatalf("%d options in\n%s", len(found), help)
	}
	for _, m := range found {
		list := map[string][]string{"=": sbatchValues, "[=": sbatchMaybe, "": sbatchFlags}[m[3]]
		switch name := m[2]; {
		case slices.Contains([]string{"export", "wrap", "container", "container-id"}, name): // their help is not precise
			list = sbatchValues
		case name == "requeue" || name == "get-user-env":
			list = sbatchMaybe
		}
		if !slices.Contains(list, m[2]) {
			t.Errorf("%q: --%s is elsewhere in the tables", m[0], m[2])
		}
		if m[1] != "" && sbatchShort[m[1][0]] != m[2] {
			t.Errorf("-%s is --%s, not --%s", m[1], m[2], sbatchShort[m[1][0]])
		}
	}
}

package hostlist_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site/hostlist"
)

func TestExpand(t *testing.T) {
	for text, want := range map[string]string{
		"n1": "n1", "n[1-3]": "n1 n2 n3", "node[08-10]": "node08 node09 node10", "node[01-02,20],login": "node01 node02 node20 login",
		"rack[1-2]n[1-2]": "rack1n1 rack1n2 rack2n1 rack2n2", "node[1-2]-ib": "node1-ib node2-ib", "a.b-c_d": "a.b-c_d",
		"7": "7", "n[5]": "n5", "n[000-001]": "n000 n001", "n[99-101]": "n99 n100 n101",
	} {
		got, err := hostlist.Expand(text)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q is %q %v, want %q", text, got, err, want)
		}
	}
}

func TestExpandRefuses(t *testing.T) {
	for _, text := range []string{
		"", ",", "n1,", "n 1", "n[", "n]", "n[]", "n[1-]", "n[-1]", "n[2-1]", "n[1-2", "n[a]", "n[1,,2]", "n[[1]]", "n1,n1", "n[1,1]",
		"n[1-3],n2", "n[0-1048576]", "n[0-1024]m[0-1024]", "n[10-9]", "n[100-20]", "n;m", "$(x)", "-x", "_x", ".x", "(null)", "n[0000000001]",
		strings.Repeat("x", 256), "n[1-1000][1-1000][1-1000]", "ä1",
	} {
		got, err := hostlist.Expand(text)
		var wrong *berth.Error
		if !errors.As(err, &wrong) || wrong.Code != berth.Invalid {
			t.Errorf("%q is %q %v, want an error of code invalid", text, got, err)
		}
	}
}

func TestFold(t *testing.T) {
	for names, want := range map[string]string{
		"": "", "n1": "n1", "n2 n1 n3": "n[1-3]", "n1 n3 n4": "n[1,3-4]", "n01 n1 n02 n2": "n[1-2],n[01-02]", "login n1 n2": "login,n[1-2]",
		"n1 n1 n2": "n[1-2]", "7 8": "7,8", "a-ib b": "a-ib,b", "n12345678901 n12345678902": "n12[345678901-345678902]",
	} {
		if got := hostlist.Fold(strings.Fields(names)); got != want {
			t.Errorf("%q is folded to %q, want %q", names, got, want)
		}
	}
}

func TestExpandUndoesFold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfDistinct(rapid.StringMatching(`[a-z][a-z.-]{0,2}[0-9]{0,4}(-ib)?`), rapid.ID[string]).Draw(t, "names")
		if len(names) == 0 {
			return
		}
		got, err := hostlist.Expand(hostlist.Fold(names))
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(got)
		slices.Sort(names)
		if !slices.Equal(got, names) {
			t.Fatalf("%q became %q by way of %q", names, got, hostlist.Fold(names))
		}
	})
}

func FuzzExpand(f *testing.F) {
	for _, seed := range []string{"node[01-16,20]", "rack[1-2]n[08-10],login", "n[1-2]-ib", "a,b", "[", "n[1-", "(null)"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		names, err := hostlist.Expand(text)
		if err != nil {
			return
		}
		for _, name := range names {
			if !hostlist.ValidName(name) {
				t.Fatalf("%q gave the name %q", text, name)
			}
		}
		again, err := hostlist.Expand(hostlist.Fold(names))
		slices.Sort(names)
		slices.Sort(again)
		if err != nil || !slices.Equal(names, again) {
			t.Fatalf("%q: %q became %q %v", text, names, again, err)
		}
	})
}

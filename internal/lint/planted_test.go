package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// Every rule is shown a fault it must see and a neighbour it must let pass.

func TestTableRulesSeePlantedFaults(t *testing.T) {
	expect(t, tableFaults([]room{
		{path: "low", pure: true},
		{path: "middle", imports: []string{"low", "high"}},
		{path: "high", pure: true, imports: []string{"low", "middle"}},
		{path: "low"},
	}),
		"table: middle may import high, which is not above it in the table",
		"table: high is pure and may import middle, which is not",
		"table: low is named twice")
	expect(t, presenceFaults([]room{{path: "a"}, {path: "stale"}}, []*pkg{{path: "a"}, {path: "new"}}),
		"new: the package has no row in the import table",
		"table: stale has a row but no package")
}

func TestImportRuleSeesPlantedFaults(t *testing.T) {
	p := plant(t, "policy", `package policy
		import (
			_ "fmt"
			_ "`+module+`"
			_ "`+module+`/calendar"
			_ "`+module+`/sim"
			_ "`+module+`x/other"
		)`)
	expect(t, importFaults(room{path: "policy", imports: []string{".", "calendar"}}, p),
		"policy/x.go: policy must not import "+module+"/sim")
	expect(t, importFaults(room{path: "policy", imports: []string{"calendar", "sim"}}, p),
		"policy/x.go: policy must not import "+module)
}

func TestPurityRuleSeesPlantedFaults(t *testing.T) {
	for _, c := range []struct {
		src  string
		want []string
	}{
		{`package p; import _ "time"`, []string{"import of time"}},
		{`package p; import clock "time"; var _ = clock.Now`, []string{"import of time"}},
		{`package p; import _ "os/exec"`, []string{"import of os/exec"}},
		{`package p; import _ "net/http"`, []string{"import of net/http"}},
		{`package p; import _ "sync/atomic"`, []string{"import of sync/atomic"}},
		{`package p; import _ "log/slog"`, []string{"import of log/slog"}},
		{`package p; import _ "context"`, []string{"import of context"}},
		{`package p; import _ "testing"`, []string{"import of testing"}},
		{`package p; import _ "io/fs"`, []string{"import of io/fs"}},
		{`package p; import _ "crypto/rand"`, []string{"import of crypto/rand"}},
		{`package p; import _ "unsafe"`, []string{"import of unsafe"}},
		{`package p; import (_ "io"; _ "strings"; _ "crypto/sha256"; _ "timeless")`, nil},

		{`package p; import "math/rand/v2"; var x = rand.IntN(6)`, []string{"global random source rand.IntN"}},
		{`package p; import "math/rand/v2"; var x = rand.N(6)`, []string{"global random source rand.N"}},
		{`package p; import dice "math/rand"; func f() { dice.Shuffle(2, nil) }`, []string{"global random source dice.Shuffle"}},
		{`package p; import "math/rand/v2"; var f = rand.Float64`, []string{"global random source rand.Float64"}},
		{`package p; import . "math/rand"; var x = Int()`, []string{"dot import of math/rand"}},
		{`package p; import "math/rand/v2"; var x = rand.New(rand.NewPCG(1, 2)).IntN(6)`, nil},
		{`package p; import "math/rand/v2"; func f(r *rand.Rand) int { return r.IntN(6) }`, nil},
		{`package p; import r "math/rand/v2"; func f(rand *r.Rand) int { return rand.IntN(6) }`, nil},
		{`package p; import rand "math/rand/v2"; func f(rand *rand.Rand) int { return rand.IntN(6) }`, nil},

		{`package p; func f() { go f() }`, []string{"go statement"}},
		{`package p; func f() { defer func() { go func() {}() }() }`, []string{"go statement"}},

		{`package p; import "fmt"; func f() { fmt.Println(1) }`, []string{"output by fmt.Println"}},
		{`package p; import out "fmt"; var f = out.Printf`, []string{"output by out.Printf"}},
		{`package p; import . "fmt"; func f() { Println(1) }`, []string{"dot import of fmt"}},
		{`package p; import "fmt"; func f() { fmt.Fprintln(nil, fmt.Sprint(1)) }`, nil},
		{`package p; func f() { print(1) }`, []string{"output by print"}},
		{`package p; func f() { println(1) }`, []string{"output by println"}},
		{`package p; func println(int) {}; func f() { println(1); print := f; print() }`, nil},

		{`package p; func f(a, b chan int) { select { case <-a: case b <- 1: } }`, []string{"select among 2 channels"}},
		{`package p; func f(a chan int) { select { case <-a: default: } }`, nil},
	} {
		var want []string
		for _, w := range c.want {
			want = append(want, "p/x.go: "+w+" in a pure room")
		}
		t.Run(c.src, func(t *testing.T) { expect(t, purityFaults(plant(t, "p", c.src)), want...) })
	}
}

func TestWholeFileRuleSeesPlantedFaults(t *testing.T) {
	expect(t, wholeFaults(plant(t, "p", `package p; import "os"; func f() { _ = os.WriteFile("x", nil, 0); move := os.Rename; _, _ = os.ReadFile("x") }`)),
		"p/x.go: os.WriteFile; want wholefile.Write, which leaves a file whole after a loss of power",
		"p/x.go: os.Rename; want wholefile.Write, which leaves a file whole after a loss of power")
}

func TestCommentRuleSeesPlantedFaults(t *testing.T) {
	const bare, said = "package p", "// Package p has a duty.\npackage p"
	expect(t, commentFaults(plant(t, "p", bare)), "p: no package comment")
	expect(t, commentFaults(plant(t, "p", "// A licence, cut off by an empty line.\n\npackage p")), "p: no package comment")
	expect(t, commentFaults(plant(t, "p", bare, said)))
	expect(t, commentFaults(plant(t, "p", said, said)), "p: package comments in p/x.go and p/xx.go")
}

func TestLengthRuleSeesPlantedFaults(t *testing.T) {
	long := strings.Repeat("\n", maxLines+1)
	for _, c := range []struct{ name, src, want string }{
		{"p/x.go", "package p" + long, "p/x.go: 701 lines, more than 700"},
		{"p/x.go", "package p" + long[1:], ""},
		{"p/x_test.go", "package p" + long, ""},
		{"p/x.go", "// Code generated by a tool. DO NOT EDIT.\n\npackage p" + long, ""},
	} {
		fset := token.NewFileSet()
		file := parse(t, fset, c.src)
		var want []string
		if c.want != "" {
			want = []string{c.want}
		}
		expect(t, lengthFaults(c.name, file, fset), want...)
	}
}

func TestForeignRuleSeesPlantedFaults(t *testing.T) {
	// Written in pieces, so that this file does not break the rule it tests.
	expect(t, foreignFaults("f", []byte("a\nsee /wo"+"rk/main\nb")), `f:2: names "/wo`+`rk/"`)
	expect(t, foreignFaults("f", []byte("/ro"+"ot/go\n\"/fa"+"rm/x\"")), `f:1: names "/ro`+`ot/"`, `f:2: names "\"/fa`+`rm/"`)
	expect(t, foreignFaults("f", []byte("cd /tm"+"p/scratch/x")), `f:1: names "/tm`+`p/scratch/"`)
	expect(t, foreignFaults("f", []byte("GOPROXY=https://proxy.go"+"lang.org")), `f:1: names "proxy.go`+`lang."`)
	expect(t, foreignFaults("f", []byte("https://registry.np"+"mjs.org/x")), `f:1: names "registry.np`+`mjs."`)
	expect(t, foreignFaults("f", []byte("net/work/x a/work/b /workload/ pkg.go.dev golang.org")))
	expect(t, foreignFaults("f", []byte("\x00 /wo"+"rk/main")))
}

func TestLinkRuleSeesPlantedFaults(t *testing.T) {
	exists := func(name string) bool { return name == "docs/a.md" || name == "README.md" }
	expect(t, linkFaults("docs/b.md", "[a](a.md) [a](a.md#part) [r](../README.md) [h](https://x.org/y) [p](#part)", exists))
	expect(t, linkFaults("docs/b.md", "`[c](c.md)`\n```\n[c](c.md)\n```\n", exists))
	expect(t, linkFaults("docs/b.md", "[c](c.md#x) and ![d](../d.svg)", exists),
		"docs/b.md: link to c.md#x leads nowhere",
		"docs/b.md: link to ../d.svg leads nowhere")
}

// plant returns a package of the given files, named x.go, xx.go and so on.
func plant(t *testing.T, folder string, sources ...string) *pkg {
	t.Helper()
	p := &pkg{path: folder, files: map[string]*ast.File{}}
	for i, src := range sources {
		p.files[folder+"/"+strings.Repeat("x", i+1)+".go"] = parse(t, token.NewFileSet(), src)
	}
	return p
}

func parse(t *testing.T, fset *token.FileSet, src string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(fset, "x.go", src, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestTestNameRuleSeesPlantedFaults(t *testing.T) {
	expect(t, testNameFaults("x.md", "`TestA`, `TestGone` and `FuzzGone`; Testing is no name.", map[string]bool{"TestA": true}), "x.md: no test is called TestGone", "x.md: no test is called FuzzGone")
}

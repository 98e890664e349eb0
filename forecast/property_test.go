package forecast

import (
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"math"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// hourly has a whole number of hours in a day and a week, so that all seasonal
// models find their seasons.
var hourly = Context{Period: 3600}

// daily returns hours with a profile of the day, a walk and noise.
func dailySeries(n int, seed uint64) []float64 {
	x := simulated(n, []float64{0.8}, nil, 100, seed)
	for i := range x {
		x[i] += 10 * math.Sin(2*math.Pi*float64(i)/24)
	}
	return x
}

// What comes after an origin changes nothing of what was forecast there: not the
// fit, not the forecasts, not their spread.
func TestNoLookAhead(t *testing.T) {
	for _, entry := range Models {
		t.Run(entry.Name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				n := rapid.IntRange(40, 90).Draw(t, "length")
				x := dailySeries(n, rapid.Uint64().Draw(t, "seed"))
				last := rapid.IntRange(10, n-1).Draw(t, "last origin")
				y := append([]float64(nil), x...)
				for i := last; i < n; i++ {
					y[i] = rapid.Float64Range(-1e5, 1e5).Draw(t, "other future")
				}
				context := Context{Period: 3 * 3600} // eight periods a day
				trials := Trials{First: max(1, last-15), Step: 15, Horizons: []int{1, 12}, Level: 90}
				said := func(values []float64) (all []any) {
					origin := trials.First
					trials.Each(entry.New(context), &Series{Values: values}, func(trial Trial) {
						if origin <= last {
							all = append(all, origin, trial.Known, trial.Fit.String(), trial.Steps)
						}
						origin += trials.Step
					})
					return all
				}
				before, after := said(x), said(y)
				if len(before) == 0 {
					t.Fatal("no origin was tried")
				}
				if !reflect.DeepEqual(before, after) {
					t.Fatalf("forecasts up to %d depend on what came after:\n%v\n%v", last, before, after)
				}
			})
		})
	}
}

// psi is what a linear model says it is: by how much an innovation of 1 moves
// the forecast of each later period.
func TestPsiIsTheAnswerToAnInnovation(t *testing.T) {
	for _, name := range []string{"last", "ses", "theta", "damped", "seasonal", "daily", "arima", "arima:2,1,2", "arima:1,2,1", "arima:0,0,3", "arima:3,0,1"} {
		entry, _ := ModelNamed(name)
		x := dailySeries(250, 5)
		fit := entry.New(hourly).Fit(x)
		without := fit.From(append(append([]float64(nil), x...), 100)).Steps(60)
		with := fit.From(append(append([]float64(nil), x...), 101)).Steps(60)
		path := fit.From(x)
		if _, psi := path.next(); psi != 1 {
			t.Errorf("%s: the first psi is %v, want 1", name, psi)
		}
		for h := range without {
			_, psi := path.next()
			near(t, name+" psi", psi, with[h].Mean-without[h].Mean, 1e-9)
		}
	}
}

// Steps adds up what the paths say, and spreads grow from the psi weights as
// written out here.
func TestSpreads(t *testing.T) {
	psis := []float64{1, 0.5, -0.25, 0.125, 2}
	j := -1
	path := &Path{sigma2: 4, base2: 0.25, cycle: 1, next: func() (float64, float64) {
		j++
		return float64(10 + j), psis[j]
	}}
	sum := 0.0
	for h, step := range path.Steps(len(psis)) {
		sum += float64(10 + h)
		one, all := 0.0, 0.0
		for k := 0; k <= h; k++ {
			one += psis[k] * psis[k]
			reached := 0.0 // what an innovation k periods before the end adds to the sum
			for i := 0; i <= k; i++ {
				reached += psis[i]
			}
			all += reached * reached
		}
		n := float64(h + 1)
		near(t, "mean", step.Mean, float64(10+h), 0)
		near(t, "sum", step.Sum, sum, 0)
		near(t, "spread", step.SD, math.Sqrt(4*one+0.25), 1e-12)
		near(t, "spread of the sum", step.SumSD, math.Sqrt(4*all+0.25*n*n), 1e-12)
	}
}

// Of what an autoregression does, nine tenths lie inside intervals of 90 %, and
// sums too.
func TestIntervalsCover(t *testing.T) {
	for _, name := range []string{"arima:1,0,0", "arima", "blend"} {
		covered, sums, n := 0.0, 0.0, 0.0
		for seed := range uint64(4) {
			entry, _ := ModelNamed(name)
			s := &Series{Values: simulated(400, []float64{0.7}, nil, 100, 40+seed)}
			for _, score := range (Trials{First: 200, Step: 10, Horizons: []int{1, 3, 10}, Level: 90}).Evaluate(entry.New(Context{}), s) {
				covered += score.Covered * float64(score.N)
				sums += score.SumCovered * float64(score.N)
				n += float64(score.N)
			}
		}
		near(t, name+" covered", covered/n, 0.89, 0.05)
		near(t, name+" sums covered", sums/n, 0.88, 0.07)
	}
}

// A past of any length up to several seasons, and of any size of values, gives
// finite forecasts, and the same ones again; a constant one its constant.
func TestEveryModelOnEveryPast(t *testing.T) {
	for _, entry := range Models {
		t.Run(entry.Name, func(t *testing.T) {
			model := entry.New(Context{Period: 3 * 3600, Nominal: 5})
			for _, n := range []int{0, 1, 2, 9, 10, 19, 20, 21, 29, 30, 31, 44, 60, 130, 200, 300} {
				for what, x := range map[string][]float64{
					"walk": dailySeries(n, 1), "zeros": constantSeries(n, 0), "constant": constantSeries(n, 0.3),
					"large": constantSeries(n, 1e17), "spike": append(constantSeries(max(0, n-1), 1), 1e12)[:n],
				} {
					fit := model.Fit(x)
					for h, step := range fit.From(x).Steps(70) {
						for _, v := range []float64{step.Mean, step.SD, step.Sum, step.SumSD} {
							if math.IsNaN(v) || math.IsInf(v, 0) {
								t.Fatalf("%d values, %s: step %d is %+v", n, what, h, step)
							}
						}
						want := map[string]float64{"zeros": 0, "constant": 0.3, "large": 1e17}[what]
						if n == 0 {
							want = 5
						}
						if (n == 0 || what != "walk" && what != "spike") && math.Abs(step.Mean-want) > 1e-9*want {
							t.Fatalf("%d values, %s: %v is forecast, want %v (%s)", n, what, step.Mean, want, fit)
						}
					}
					if again := model.Fit(x); !reflect.DeepEqual(again.From(x).Steps(70), fit.From(x).Steps(70)) {
						t.Fatalf("%d values, %s: another forecast the second time", n, what)
					}
				}
			}
		})
	}
}

// Plain models, by hand.
func TestBaselines(t *testing.T) {
	x := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 18}
	for name, want := range map[string][3]float64{
		"last": {18, 18, 18}, "mean": {8.625, 8.625, 8.625}, "recent": {11.7, 11.7, 11.7},
		"seasonal": {9, 10, 11}, // eight periods a day
	} {
		entry, _ := ModelNamed(name)
		steps := entry.New(Context{Period: 3 * 3600}).Fit(x).From(x).Steps(3)
		for h := range want {
			near(t, name, steps[h].Mean, want[h], 1e-12)
		}
	}
	// A week beats a day where weekdays differ, and a day a week where they do not.
	week, plain := make([]float64, 5*56), make([]float64, 5*56)
	for i := range week {
		week[i] = float64(i%8 + 3*(i/8%7))
		plain[i] = float64(i%8) + float64(i)/100
	}
	for season, x := range map[int][]float64{56: week, 8: plain} {
		if fit := (seasonal{Context{Period: 3 * 3600}}).Fit(x).(seasonalFit); fit.season != season {
			t.Errorf("a season of %d periods was chosen, want %d", fit.season, season)
		}
	}
	// A straight line: theta goes on with half its slope once the lag is made up for.
	line := make([]float64, 100)
	for i := range line {
		line[i] = float64(2 * i)
	}
	steps := theta{}.Fit(line).From(line).Steps(3)
	near(t, "theta's slope", steps[2].Mean-steps[1].Mean, 1, 1e-9)
	// Smoothing of a level with independent noise finds a small alpha, of a walk a large one.
	noise, walk := simulated(280, nil, nil, 50, 3), simulated(280, []float64{1}, nil, 50, 3)
	if a := (smoothing{}).Fit(noise).(smoothingFit).alpha; a > 0.15 {
		t.Errorf("alpha of noise is %v", a)
	}
	if a := (smoothing{}).Fit(walk).(smoothingFit).alpha; a < 0.8 {
		t.Errorf("alpha of a walk is %v", a)
	}
	// A trend that fades: damped is right where smoothing lags.
	near(t, "damped on a line", damped{}.Fit(line).From(line).Steps(1)[0].Mean, 200, 1)
}

// The blend is the weighted mean of its members, and leans to the right ones.
func TestBlend(t *testing.T) {
	x := dailySeries(400, 8)
	fit := blend{hourly}.Fit(x).(blendFit)
	steps := fit.From(x).Steps(30)
	for _, h := range []int{0, 1, 3, 29} {
		want, total := 0.0, 0.0
		for i, name := range fit.names {
			entry, _ := ModelNamed(name)
			weight := fit.weights[i][band(h)]
			total += weight
			want += weight * entry.New(hourly).Fit(x).From(x).Steps(30)[h].Mean
		}
		near(t, "weights", total, 1, 1e-12)
		near(t, "blend", steps[h].Mean, want, 1e-9)
	}
	far := map[string]float64{}
	for i, name := range fit.names {
		far[name] = fit.weights[i][band(12)]
	}
	if far["daily"] < 3*far["last"] || far["daily"] < 3*far["mean"] {
		t.Errorf("twelve hours ahead of a daily wave the weights are %v", far)
	}
}

func TestLn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := math.Pow(10, rapid.Float64Range(-300, 300).Draw(t, "exponent"))
		want := math.Log(x)
		if got := ln(x); math.Abs(got-want) > 1e-15*max(1, math.Abs(want)) {
			t.Fatalf("ln(%v) = %v, want %v", x, got, want)
		}
	})
	near(t, "ln 1", ln(1), 0, 0)
}

// No product of floats is left without a conversion, so that no compiler may fuse
// it with a sum; and no function of math is called that machines compute in
// different ways.
func TestNoFusedOperations(t *testing.T) {
	fset := token.NewFileSet()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, entry := range entries {
		if name := entry.Name(); strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			file, err := parser.ParseFile(fset, name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, file)
		}
	}
	faults := fusible(t, fset, files)
	for _, fault := range faults {
		t.Error(fault)
	}

	planted, err := parser.ParseFile(fset, "planted.go", `package forecast
		import "math"
		func f(a, b, c float64, n int) float64 {
			a += b * c
			b = a*c + 1
			c = float64(a*b) + float64(2*a*b)/c + float64(n*n)
			a *= b
			return math.Exp(a) + math.Sqrt(b)
		}`, 0)
	if err != nil {
		t.Fatal(err)
	}
	if faults := fusible(t, fset, []*ast.File{planted}); len(faults) != 4 {
		t.Errorf("of four planted faults these are seen: %v", faults)
	}
}

func fusible(t *testing.T, fset *token.FileSet, files []*ast.File) (faults []string) {
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
	if build.Default.GOROOT == "" { // compiled with -trimpath
		out, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
		if err != nil {
			t.Fatal(err)
		}
		build.Default.GOROOT = strings.TrimSpace(string(out))
	}
	config := types.Config{Importer: importer.ForCompiler(fset, "source", nil)}
	if _, err := config.Check("forecast", fset, files, info); err != nil {
		t.Fatal(err)
	}
	exact := map[string]bool{"Sqrt": true, "Abs": true, "Frexp": true, "Inf": true, "IsNaN": true, "IsInf": true}
	isFloat := func(e ast.Expr) bool {
		basic, ok := info.Types[e].Type.Underlying().(*types.Basic)
		return ok && basic.Info()&types.IsFloat != 0 && info.Types[e].Value == nil
	}
	say := func(n ast.Node, what string) {
		faults = append(faults, fset.Position(n.Pos()).String()+": "+what)
	}
	for _, file := range files {
		converted := map[ast.Expr]bool{}
		// converts marks the products that a conversion or a further * or / rounds.
		var converts func(e ast.Expr)
		converts = func(e ast.Expr) {
			switch e := e.(type) {
			case *ast.ParenExpr:
				converts(e.X)
			case *ast.BinaryExpr:
				if e.Op == token.MUL || e.Op == token.QUO {
					converted[e] = true
					converts(e.X)
					converts(e.Y)
				}
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if name, ok := n.Fun.(*ast.Ident); ok && name.Name == "float64" {
					converts(n.Args[0])
				}
			case *ast.BinaryExpr:
				if n.Op == token.QUO {
					converts(n) // what is divided is rounded
				}
				if n.Op == token.MUL && isFloat(n) && !converted[n] {
					say(n, "a product that is not converted")
				}
			case *ast.AssignStmt:
				if n.Tok == token.MUL_ASSIGN && isFloat(n.Lhs[0]) {
					say(n, "a product that is not converted")
				}
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok {
					if p, is := info.Uses[x].(*types.PkgName); is && p.Imported().Path() == "math" && !exact[n.Sel.Name] && info.Types[n].Value == nil {
						say(n, "math."+n.Sel.Name+" differs between machines")
					}
				}
			}
			return true
		})
	}
	return faults
}

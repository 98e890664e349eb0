package forecast

import (
	"fmt"
	"testing"
)

// The link of the application-aware paper's specification: 288 periods of 5 s.
const benchLength = 288

// Choosing among all 16 orders and fitting them, and one order alone.
func BenchmarkARIMA(b *testing.B) {
	for _, name := range []string{"arima", "arima:1,0,1", "arima:3,0,3"} {
		entry, _ := ModelNamed(name)
		for _, n := range []int{100, benchLength} {
			b.Run(fmt.Sprintf("model=%s/points=%d", name, n), func(b *testing.B) {
				x := simulated(n, []float64{0.9, -0.3}, []float64{0.4}, 100, 1)
				model := entry.New(Context{Period: 5})
				if fit, is := model.Fit(x).(arimaFit); !is || !fit.admissible() {
					b.Fatal("no fit")
				}
				for b.Loop() {
					model.Fit(x)
				}
			})
		}
	}
}

// What a scheduler does with its links from time to time: fit every one and turn
// the forecasts into bytes.
func BenchmarkRefresh(b *testing.B) {
	const links = 20
	for _, entry := range Models {
		b.Run(fmt.Sprintf("model=%s/links=%d", entry.Name, links), func(b *testing.B) {
			var series [links][]float64
			for i := range series {
				series[i] = simulated(benchLength, []float64{0.9, -0.3}, []float64{0.4}, 100, uint64(i))
			}
			model := entry.New(Context{Period: 5})
			link := Link{Period: 5, BytesPerUnit: 5e6, LeastBytes: 500_000}
			for b.Loop() {
				for _, x := range series {
					volumes := link.Volumes(model.Fit(x).From(x))
					if _, ok := volumes.Time(1e12); !ok {
						b.Fatal("no end")
					}
				}
			}
		})
	}
}

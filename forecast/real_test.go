package forecast_test

import (
	"compress/gzip"
	"encoding/csv"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/forecast"
	"github.com/berth-hpc/berth/internal/realdata"
)

// rows reads a CSV file of other people's measurements without its first line.
func rows(t *testing.T, name string) [][]string {
	t.Helper()
	file, err := os.Open(realdata.File(t, "bandwidth", name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var in io.Reader = file
	if strings.HasSuffix(name, ".gz") {
		if in, err = gzip.NewReader(file); err != nil {
			t.Fatal(err)
		}
	}
	all, err := csv.NewReader(in).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return all[1:]
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// errorsOf returns the mean absolute errors of some models by horizon.
func errorsOf(trials forecast.Trials, s *forecast.Series, names ...string) map[string][]float64 {
	all := map[string][]float64{}
	for _, name := range names {
		entry, _ := forecast.ModelNamed(name)
		for _, score := range trials.Evaluate(entry.New(forecast.Context{Period: s.Period}), s) {
			all[name] = append(all[name], score.MAE)
		}
	}
	return all
}

// Traffic with days and weeks: ARIMA beats the last value an hour ahead, the
// blend beats ARIMA there and by far more 6 and 12 hours ahead.
func TestBlendBeatsARIMAOnHourlyTraffic(t *testing.T) {
	s := &forecast.Series{Period: 3600}
	for _, row := range rows(t, "isp_transatlantic_hourly_2005.csv") {
		s.Values = append(s.Values, number(t, row[1]))
	}
	mae := errorsOf(forecast.Trials{First: 700, Step: 15, Horizons: []int{1, 6, 12}, Level: 90}, s, "last", "arima", "blend")
	for h, atMost := range []float64{1, 0.8, 0.8} {
		if ratio := mae["blend"][h] / mae["arima"][h]; !(ratio < atMost) {
			t.Errorf("horizon %d: the blend's error is %.3f of ARIMA's, want less than %v", h, ratio, atMost)
		}
	}
	if ratio := mae["arima"][0] / mae["last"][0]; !(ratio < 0.9) {
		t.Errorf("an hour ahead ARIMA's error is %.3f of that of the last value", ratio)
	}
}

// Throughput between clouds in bursts: over all links with 60 measurements and
// more the blend beats ARIMA, and one period ahead ARIMA the last value, by the
// geometric mean of the ratios of errors. Farther ahead it depends on the origins
// whether ARIMA beats the last value.
func TestBlendBeatsARIMABetweenClouds(t *testing.T) {
	links := map[string][]forecast.Sample{}
	for _, row := range rows(t, "cloudpilot_wan_iperf3.csv.gz") {
		link := row[1] + " " + row[2] + " " + row[7]
		links[link] = append(links[link], forecast.Sample{At: berth.Time(number(t, row[0])), Value: number(t, row[3])})
	}
	horizons := []int{1, 3, 6}
	sums := map[string][]float64{"blend/arima": make([]float64, 3), "arima/last": make([]float64, 3)}
	n := 0.0
	for name, samples := range links {
		slices.SortStableFunc(samples, func(a, b forecast.Sample) int { return int(a.At - b.At) })
		s, err := forecast.Resample(samples, forecast.Spacing(samples), 5)
		if err != nil {
			t.Fatal(name, err)
		}
		if len(s.Values) < 90 {
			continue
		}
		n++
		mae := errorsOf(forecast.Trials{First: 60, Step: 7, Horizons: horizons, Level: 90}, &s, "last", "arima", "blend")
		for h := range horizons {
			sums["blend/arima"][h] += math.Log(mae["blend"][h] / mae["arima"][h])
			sums["arima/last"][h] += math.Log(mae["arima"][h] / mae["last"][h])
		}
	}
	if n < 15 {
		t.Fatalf("only %v links are long enough", n)
	}
	for h := range horizons {
		for what, sum := range sums {
			if ratio := math.Exp(sum[h] / n); !(ratio < 0.97) && (what == "blend/arima" || h == 0) {
				t.Errorf("%d periods ahead: %s is %.3f, want less than 0.97", horizons[h], what, ratio)
			}
		}
	}
}

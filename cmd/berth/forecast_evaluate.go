package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/forecast"
)

// evaluationOutput is what forecast --evaluate -o json writes.
type evaluationOutput struct {
	Column string        `json:"column"`
	Level  int           `json:"level"`
	Scores []scoreOutput `json:"scores"`
}

// scoreOutput is how right a model was on one series at one horizon. What has no
// trial, or no last value to compare with, is null.
type scoreOutput struct {
	Series        string   `json:"series,omitempty"`
	Model         string   `json:"model"`
	Horizon       int      `json:"horizon"` // periods ahead
	N             int      `json:"n"`
	MAE           *float64 `json:"mae"`
	RMSE          *float64 `json:"rmse"`
	SMAPE         *float64 `json:"smape"`
	MASE          *float64 `json:"mase"`
	VersusLast    *float64 `json:"mae_versus_last"` // the model's MAE divided by that of the last value
	Covered       *float64 `json:"covered"`
	SumMAE        *float64 `json:"sum_mae"`
	SumCovered    *float64 `json:"sum_covered"`
	Transfers     int      `json:"transfers"`
	TransferError *float64 `json:"transfer_error"`
}

// horizons returns the distances that an evaluation scores: 1, a quarter, half
// and all of the horizon.
func (flags *forecastFlags) horizons() []int {
	h := []int{1, max(1, flags.horizon/4), max(1, flags.horizon/2), flags.horizon}
	return slices.Compact(h)
}

// trials returns from where a series is forecast.
func (flags *forecastFlags) trials(r *regularSeries) forecast.Trials {
	t := forecast.Trials{First: flags.first, Step: flags.every, Horizons: flags.horizons(), Level: flags.level}
	if t.First == 0 {
		t.First = max(1, len(r.Values)/2)
	}
	if t.Step == 0 {
		t.Step = max(1, (len(r.Values)-t.First+mostOrigins-1)/mostOrigins)
	}
	return t
}

// evaluateForecasts lets the models forecast every series from many points and
// writes how right they were.
func (a *app) evaluateForecasts(cmd *cobra.Command, file string, data *measurements, regular []regularSeries, flags *forecastFlags) error {
	ctx, stop := untilInterrupt(cmd.Context())
	defer stop()
	out := evaluationOutput{Column: data.column, Level: flags.level}
	origins, short := 0, 0
	for i := range regular {
		r := &regular[i]
		trials := flags.trials(r)
		if trials.First >= len(r.Values) {
			short++
			continue
		}
		plain := trials.Evaluate(forecast.Models[0].New(r.context()), &r.Series)
		origins += len(trials.Origins(&r.Series))
		for _, entry := range flags.models {
			if ctx.Err() != nil {
				return &interrupted{kept: "nothing was written"}
			}
			for k, s := range trials.Evaluate(entry.New(r.context()), &r.Series) {
				out.Scores = append(out.Scores, scored(r.name, entry.Name, &s, &plain[k]))
			}
		}
	}
	switch {
	case len(out.Scores) == 0:
		return berth.Errorf(berth.Invalid, "first", "%s: no series has more values than the first origin is to know; want a smaller --first or a longer series", file)
	case short > 0:
		a.say("berth: %s: %d of %d series left out: they have no more values than the first origin is to know", file, short, len(regular))
	}
	var err error
	switch flags.format {
	case "json":
		err = writeJSON(a.stdout, out)
	case "csv":
		err = printScoresCSV(a.stdout, &out)
	default:
		title := fmt.Sprintf("%s, %s: %d series, %d origins", file, data.title, len(regular)-short, origins)
		if len(regular) == 1 {
			title = fmt.Sprintf("%s, %s%s: %s; %d origins", file, data.title, comma(regular[0].name), regular[0].amounts(), origins)
		}
		err = printTitled(a.stdout, title, scoreTable(&out, flags))
	}
	if err != nil {
		return fmt.Errorf("writing the scores: %w", err)
	}
	return nil
}

func comma(name string) string {
	if name == "" {
		return ""
	}
	return ", " + name
}

// scored returns a score as JSON has it; plain is that of the last value.
func scored(series, model string, s, plain *forecast.Score) scoreOutput {
	known := func(x float64) *float64 {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil
		}
		return &x
	}
	return scoreOutput{
		Series: series, Model: model, Horizon: s.Horizon, N: s.N, MAE: known(s.MAE), RMSE: known(s.RMSE), SMAPE: known(s.SMAPE), MASE: known(s.MASE),
		VersusLast: known(s.MAE / plain.MAE), Covered: known(s.Covered), SumMAE: known(s.SumMAE), SumCovered: known(s.SumCovered),
		Transfers: s.Transfers, TransferError: known(s.TransferError),
	}
}

func printScoresCSV(w io.Writer, o *evaluationOutput) error {
	out := csv.NewWriter(w)
	_ = out.Write([]string{ // errors stay with the writer until Flush
		"series", "model", "horizon", "n", "mae", "rmse", "smape", "mase", "mae_versus_last", "covered", "sum_mae", "sum_covered", "transfers", "transfer_error",
	})
	for _, s := range o.Scores {
		_ = out.Write([]string{
			s.Series, s.Model, strconv.Itoa(s.Horizon), strconv.Itoa(s.N), number(s.MAE), number(s.RMSE), number(s.SMAPE), number(s.MASE),
			number(s.VersusLast), number(s.Covered), number(s.SumMAE), number(s.SumCovered), strconv.Itoa(s.Transfers), number(s.TransferError),
		})
	}
	out.Flush()
	return out.Error()
}

// figures is numbers to take a mean of: the geometric one if they are ratios.
type figures struct {
	sum   float64
	n     int
	ratio bool
}

func (f *figures) add(x *float64) {
	switch {
	case x == nil, f.ratio && *x <= 0:
	case f.ratio:
		f.sum += math.Log(*x)
		f.n++
	default:
		f.sum += *x
		f.n++
	}
}

func (f *figures) mean() *float64 {
	if f.n == 0 {
		return nil
	}
	mean := f.sum / float64(f.n)
	if f.ratio {
		mean = math.Exp(mean)
	}
	return &mean
}

// scoreTable compares models, horizon by horizon. Over several series it tells
// means: of ratios the geometric one, and on how many series the error was less
// than that of the last value.
func scoreTable(o *evaluationOutput, flags *forecastFlags) table.Writer {
	several := slices.ContainsFunc(o.Scores, func(s scoreOutput) bool { return s.Series != o.Scores[0].Series })
	out := newTable("")
	header := table.Row{"model", "ahead", "MAE", "RMSE", "sMAPE", "MASE", "MAE/last", "covered", "sum covered", "transfer off by"}
	if several {
		header = table.Row{"model", "ahead", "series", "sMAPE", "MASE", "MAE/last", "better", "covered", "sum covered", "transfer off by"}
	}
	out.AppendHeader(header)
	for i, entry := range flags.models {
		if i > 0 {
			out.AppendSeparator()
		}
		for _, h := range flags.horizons() {
			ratio := figures{ratio: true}
			var mae, rmse, smape, mase, covered, sums, transfer figures
			n, better := 0, 0
			for k := range o.Scores {
				s := &o.Scores[k]
				if s.Model != entry.Name || s.Horizon != h || s.N == 0 {
					continue
				}
				n++
				if s.VersusLast != nil && *s.VersusLast < 1 {
					better++
				}
				mae.add(s.MAE)
				rmse.add(s.RMSE)
				smape.add(s.SMAPE)
				mase.add(s.MASE)
				ratio.add(s.VersusLast)
				covered.add(s.Covered)
				sums.add(s.SumCovered)
				transfer.add(s.TransferError)
			}
			row := table.Row{entry.Name, h}
			if several {
				row = append(row, n, percent(smape.mean()), decimals(mase.mean()), decimals(ratio.mean()), fmt.Sprintf("%d of %d", better, n))
			} else {
				row = append(row, orNothing(mae.mean()), orNothing(rmse.mean()), percent(smape.mean()), decimals(mase.mean()), decimals(ratio.mean()))
			}
			out.AppendRow(append(row, percent(covered.mean()), percent(sums.mean()), percent(transfer.mean())))
		}
	}
	out.SetCaption("intervals are of %d %%; MAE/last is the error divided by that of the last value", flags.level)
	return out
}

func orNothing(x *float64) string {
	if x == nil {
		return nothing
	}
	return fiveDigits(*x)
}

// printTitled writes a table under a title, which may be wider than it.
func printTitled(w io.Writer, title string, out table.Writer) error {
	for line := range strings.Lines(title + "\n\n" + out.Render() + "\n") {
		if _, err := io.WriteString(w, strings.TrimRight(line, " \n")+"\n"); err != nil {
			return err
		}
	}
	return nil
}

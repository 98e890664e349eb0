package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/forecast"
	"github.com/berth-hpc/berth/workload"
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

// evaluateForecasts lets the models forecast every series from many points and
// writes how right they were.
func (a *app) evaluateForecasts(cmd *cobra.Command, data *workload.Measurements, regular []regularSeries, flags *forecastFlags) error {
	ctx, stop := untilInterrupt(cmd.Context())
	defer stop()
	file, column := data.Report.Name, columnTitle(data)
	out := evaluationOutput{Column: data.Column, Level: flags.level}
	var scores []forecast.Scored
	origins, short := 0, 0
	for i := range regular {
		r := &regular[i]
		trials := forecast.DefaultTrials(&r.Series, flags.horizon, flags.level, flags.first, flags.every)
		if trials.First >= len(r.Values) {
			short++
			continue
		}
		origins += len(trials.Origins(&r.Series))
		for s := range trials.Compare(flags.models, r.context(), &r.Series) {
			if ctx.Err() != nil {
				return &interrupted{kept: "nothing was written"}
			}
			scores = append(scores, s)
			out.Scores = append(out.Scores, scored(r.name, &s))
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
		title := fmt.Sprintf("%s, %s: %d series, %d origins", file, column, len(regular)-short, origins)
		if len(regular) == 1 {
			title = fmt.Sprintf("%s, %s%s: %s; %d origins", file, column, comma(regular[0].name), regular[0].amounts(), origins)
		}
		err = printTitled(a.stdout, title, scoreTable(forecast.Averages(scores), len(regular)-short > 1, flags.level))
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

// scored returns a score as JSON has it.
func scored(series string, s *forecast.Scored) scoreOutput {
	known := func(x float64) *float64 {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil
		}
		return &x
	}
	return scoreOutput{
		Series: series, Model: s.Model, Horizon: s.Horizon, N: s.N, MAE: known(s.MAE), RMSE: known(s.RMSE), SMAPE: known(s.SMAPE), MASE: known(s.MASE),
		VersusLast: known(s.VersusLast), Covered: known(s.Covered), SumMAE: known(s.SumMAE), SumCovered: known(s.SumCovered),
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

// scoreTable compares models, horizon by horizon. Over several series it tells
// means: of ratios the geometric one, and on how many series the error was less
// than that of the last value.
func scoreTable(averages []forecast.Average, several bool, level int) table.Writer {
	out := newTable("")
	header := table.Row{"model", "ahead", "MAE", "RMSE", "sMAPE", "MASE", "MAE/last", "covered", "sum covered", "transfer off by"}
	if several {
		header = table.Row{"model", "ahead", "series", "sMAPE", "MASE", "MAE/last", "better", "covered", "sum covered", "transfer off by"}
	}
	out.AppendHeader(header)
	for i := range averages {
		s := &averages[i]
		if i > 0 && s.Model != averages[i-1].Model {
			out.AppendSeparator()
		}
		var ratio *float64
		if s.LogVersusLast != nil {
			ratio = new(math.Exp(*s.LogVersusLast))
		}
		row := table.Row{s.Model, s.Horizon}
		if several {
			row = append(row, s.Series, percent(s.SMAPE), decimals(s.MASE), decimals(ratio), fmt.Sprintf("%d of %d", s.Better, s.Series))
		} else {
			row = append(row, orNothing(s.MAE), orNothing(s.RMSE), percent(s.SMAPE), decimals(s.MASE), decimals(ratio))
		}
		out.AppendRow(append(row, percent(s.Covered), percent(s.SumCovered), percent(s.TransferError)))
	}
	out.SetCaption("intervals are of %d %%; MAE/last is the error divided by that of the last value", level)
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

package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/forecast"
	"github.com/berth-hpc/berth/internal/plot"
	"github.com/berth-hpc/berth/workload"
)

// forecastOutput is what forecast -o json writes.
type forecastOutput struct {
	Column string           `json:"column"`
	Unit   string           `json:"unit,omitempty"`
	Level  int              `json:"level"` // of the intervals, in percent
	Series []forecastSeries `json:"series"`
}

// forecastSeries is one series and what each model says of it.
type forecastSeries struct {
	Series        string          `json:"series,omitempty"`
	Values        int             `json:"values"`
	Held          int             `json:"held"`
	Breaks        int             `json:"breaks"`
	PeriodSeconds berth.Duration  `json:"period_seconds"`
	From          string          `json:"from"` // when the first forecast period begins
	Models        []forecastModel `json:"models"`
}

// forecastModel is what one model says.
type forecastModel struct {
	Model    string          `json:"model"`
	Fit      string          `json:"fit"`
	Steps    []forecastStep  `json:"steps"`
	Transfer *transferOutput `json:"transfer,omitempty"`
}

// forecastStep is one period. Bytes is what has been moved by its end.
type forecastStep struct {
	Ahead int     `json:"ahead"`
	Until string  `json:"until"`
	Mean  float64 `json:"mean"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	Bytes *int64  `json:"bytes,omitempty"`
}

// transferOutput is how long moving the data takes; null where it never ends.
type transferOutput struct {
	Bytes           int64           `json:"bytes"`
	Seconds         *berth.Duration `json:"seconds"`
	CautiousSeconds *berth.Duration `json:"cautious_seconds"`
}

// stamp writes a time for people and programs, in UTC.
func stamp(t berth.Time) string { return time.Unix(int64(t), 0).UTC().Format(time.RFC3339) }

// said returns what one model says of a series.
func (flags *forecastFlags) said(entry forecast.Entry, r *regularSeries) forecastModel {
	fit := entry.New(r.context()).Fit(r.Values)
	out := forecastModel{Model: entry.Name, Fit: fit.String()}
	z, _ := forecast.Quantile(flags.level)
	var volumes forecast.Volumes
	link := flags.unit.Link(r.Period, flags.leastRate)
	least := math.Inf(-1)
	if flags.unit.Name != "" {
		volumes, least = link.Volumes(fit.From(r.Values)), 0
	}
	for i, s := range fit.From(r.Values).Steps(flags.horizon) {
		step := forecastStep{
			Ahead: i + 1, Until: stamp(r.End.Add(berth.Duration(i+1) * r.Period)),
			Mean: max(s.Mean, least), Low: max(s.Mean-float64(z*s.SD), least), High: max(s.Mean+float64(z*s.SD), least),
		}
		if flags.unit.Name != "" {
			step.Bytes = new(volumes.After(int64(i + 1)))
		}
		out.Steps = append(out.Steps, step)
	}
	if flags.megabytes > 0 {
		out.Transfer = &transferOutput{Bytes: flags.megabytes * 1_000_000}
		out.Transfer.Seconds = took(&volumes, out.Transfer.Bytes)
		link.Cautious = z
		cautious := link.Volumes(fit.From(r.Values))
		out.Transfer.CautiousSeconds = took(&cautious, out.Transfer.Bytes)
	}
	return out
}

// took returns the seconds a transfer takes, nil if it never ends.
func took(v *forecast.Volumes, bytes int64) *berth.Duration {
	transfer, ok := v.Time(bytes)
	if !ok {
		return nil
	}
	return new(transfer.Seconds())
}

// printForecasts forecasts every series and writes what the models say. It fails
// if a transfer never ends.
func (a *app) printForecasts(data *workload.Measurements, regular []regularSeries, flags *forecastFlags) error {
	file, title := data.Report.Name, columnTitle(data)
	out := forecastOutput{Column: data.Column, Unit: flags.unit.Name, Level: flags.level}
	for i := range regular {
		r := &regular[i]
		series := forecastSeries{
			Series: r.name, Values: len(r.Values), Held: r.Held, Breaks: len(r.Breaks), PeriodSeconds: r.Period, From: stamp(r.End),
		}
		for _, entry := range flags.models {
			series.Models = append(series.Models, flags.said(entry, r))
		}
		out.Series = append(out.Series, series)
	}
	if flags.plot != "" {
		if err := a.drawForecast(flags, title, &out, &regular[0]); err != nil {
			return err
		}
	}
	var err error
	switch flags.format {
	case "json":
		err = writeJSON(a.figuresTo(flags.plot), out)
	case "csv":
		err = printForecastsCSV(a.figuresTo(flags.plot), &out)
	default:
		err = printForecastTables(a.figuresTo(flags.plot), file+", "+title, &out, regular, flags)
	}
	if err != nil {
		return fmt.Errorf("writing the forecasts: %w", err)
	}
	for _, s := range out.Series {
		for _, m := range s.Models {
			if m.Transfer != nil && m.Transfer.Seconds == nil {
				return berth.Errorf(berth.Invalid, "bytes", "%s%s, %s: by %s %d bytes take more than a million periods, or for ever; want less, or a larger --least-rate",
					file, comma(s.Series), title, m.Model, m.Transfer.Bytes)
			}
		}
	}
	return nil
}

func writeJSON(w io.Writer, out any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(out)
}

// allDigits writes a number as JSON and CSV have it.
func allDigits(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

func printForecastsCSV(w io.Writer, o *forecastOutput) error {
	out := csv.NewWriter(w)
	_ = out.Write([]string{"series", "model", "ahead", "until", "mean", "low", "high", "bytes"}) // errors stay with the writer until Flush
	for _, s := range o.Series {
		for _, m := range s.Models {
			for _, step := range m.Steps {
				bytes := ""
				if step.Bytes != nil {
					bytes = strconv.FormatInt(*step.Bytes, 10)
				}
				_ = out.Write([]string{
					s.Series, m.Model, strconv.Itoa(step.Ahead), step.Until, allDigits(step.Mean), allDigits(step.Low), allDigits(step.High), bytes,
				})
			}
		}
	}
	out.Flush()
	return out.Error()
}

// fiveDigits writes a value with five digits, more than any can be known.
func fiveDigits(x float64) string { return strconv.FormatFloat(x, 'g', 5, 64) }

// printForecastTables writes the forecasts for people: one model with its bounds,
// several side by side.
func printForecastTables(w io.Writer, about string, o *forecastOutput, regular []regularSeries, flags *forecastFlags) error {
	for i := range o.Series {
		s := &o.Series[i]
		title := about
		if o.Unit != "" {
			title += " in " + o.Unit
		}
		title += comma(s.Series) + ": " + regular[i].amounts()
		out := newTable("")
		if len(s.Models) == 1 {
			oneForecast(out, &s.Models[0], flags)
		} else {
			severalForecasts(out, s, flags)
		}
		if i > 0 {
			title = "\n" + title
		}
		if err := printTitled(w, title, out); err != nil {
			return err
		}
	}
	return nil
}

// oneForecast tells what one model says.
func oneForecast(out table.Writer, m *forecastModel, flags *forecastFlags) {
	header := table.Row{"ahead", "until", "forecast", fmt.Sprintf("low %d %%", flags.level), "high"}
	if flags.unit.Name != "" {
		header = append(header, "moved by then")
	}
	out.AppendHeader(header)
	for _, step := range m.Steps {
		row := table.Row{step.Ahead, step.Until, fiveDigits(step.Mean), fiveDigits(step.Low), fiveDigits(step.High)}
		if step.Bytes != nil {
			row = append(row, gigabytes(*step.Bytes))
		}
		out.AppendRow(row)
	}
	facts := m.Model + ": " + m.Fit
	if m.Transfer != nil {
		facts += fmt.Sprintf("\n%s take %s; in %s of 100 cases no more than %s", gigabytes(m.Transfer.Bytes),
			ending(m.Transfer.Seconds), allDigits(50+float64(flags.level)/2), ending(m.Transfer.CautiousSeconds))
	}
	out.SetCaption("%s", facts)
}

// ending writes how long something takes.
func ending(d *berth.Duration) string {
	if d == nil {
		return "for ever"
	}
	return seconds(int64(*d))
}

func gigabytes(n int64) string { return strconv.FormatFloat(float64(n)/1e9, 'g', 6, 64) + " GB" }

// severalForecasts puts what models say side by side.
func severalForecasts(out table.Writer, s *forecastSeries, flags *forecastFlags) {
	header := table.Row{"ahead"}
	for _, m := range s.Models {
		header = append(header, m.Model)
	}
	out.AppendHeader(header)
	for i := range s.Models[0].Steps {
		row := table.Row{s.Models[0].Steps[i].Ahead}
		for _, m := range s.Models {
			row = append(row, fiveDigits(m.Steps[i].Mean))
		}
		out.AppendRow(row)
	}
	if flags.megabytes == 0 {
		return
	}
	out.AppendSeparator()
	row := table.Row{gigabytes(flags.megabytes*1_000_000) + " take"}
	for _, m := range s.Models {
		row = append(row, ending(m.Transfer.Seconds))
	}
	out.AppendRow(row)
}

// drawForecast draws the end of a series and what the first model says of it.
func (a *app) drawForecast(flags *forecastFlags, title string, o *forecastOutput, r *regularSeries) error {
	s, m := &o.Series[0], &o.Series[0].Models[0]
	unit := title
	title += comma(s.Series)
	if o.Unit != "" {
		unit = o.Unit
	}
	figure := plot.Outlook{
		Title: fmt.Sprintf("%s: forecast by %s, with intervals of %d %%", title, m.Model, flags.level), Unit: unit, Period: r.Period,
		// As much of the past as is a few times what lies ahead.
		Past: r.Values[max(0, len(r.Values)-max(100, 4*flags.horizon)):],
	}
	for _, step := range m.Steps {
		figure.Ahead = append(figure.Ahead, plot.Band{Mean: step.Mean, Low: step.Low, High: step.High})
	}
	out, err := a.create("plot", flags.plot)
	if err != nil {
		return err
	}
	defer out.Drop()
	format, _ := figureFormat(flags.plot)
	if err := plot.WriteOutlook(out, format, figure); err != nil {
		return fmt.Errorf("drawing %s: %w", flags.plot, err)
	}
	return out.Keep()
}

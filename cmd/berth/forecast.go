package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/forecast"
	"github.com/berth-hpc/berth/internal/bytesize"
	"github.com/berth-hpc/berth/internal/nearest"
	"github.com/berth-hpc/berth/internal/plot"
	"github.com/berth-hpc/berth/internal/wholefile"
	"github.com/berth-hpc/berth/workload"
)

// forecastFlags is what the command line of forecast says.
type forecastFlags struct {
	column, time string
	by           []string
	only         string
	strict       bool
	unit         forecast.Unit

	period  berth.Duration // 0 if the measurements are to tell
	gap     int
	horizon int
	models  []forecast.Entry // nil if none was named
	level   int

	megabytes int64 // to move; 0 if none
	leastRate float64

	evaluate bool
	first    int // values that the first origin knows; 0 for half
	every    int // 0 for as many as are needed

	plot   string
	format string
}

// What the flags say by themselves.
const (
	defaultForecastModel = "blend"
	// defaultLeastRate, in MB/s, is MinRate of the application-aware paper's
	// specification, section a.2.
	defaultLeastRate = 0.1
	// mostHorizon is how far a forecast may be printed, and defaultGap how many
	// empty periods in a row repeat the last value.
	mostHorizon = 10_000
	defaultGap  = 5
)

// forecastCommand returns berth forecast.
func (a *app) forecastCommand() *cobra.Command {
	flags := &forecastFlags{gap: defaultGap, horizon: 12, level: 90, leastRate: defaultLeastRate, format: formats[0]}
	cmd := &cobra.Command{
		Use:   "forecast FILE.csv",
		Short: "Forecast a measured series, and how long moving data takes",
		Long:  forecastLong(),
		Example: `  berth forecast link.csv
  berth forecast link.csv --unit Mbit/s --bytes 500GB --plot link.svg
  berth forecast link.csv --model all --horizon 24 -o csv
  berth forecast link.csv --evaluate
  berth forecast links.csv.gz --by src,dst --column recv_mbit_s --unit Mbit/s --evaluate`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef(cmd, "want one FILE.csv (or - for stdin), got %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.forecast(cmd, args[0], flags) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&flags.column, "column", "", "`NAME` of the column of values (needed if there are several besides the times)")
	f.StringVar(&flags.time, "time", "", "`NAME` of the column of times (default: time, timestamp, unix_time, datetime, date or at, else the first)")
	f.Var(&columnList{&flags.by}, "by", "columns whose values tell several series of the file apart, between commas")
	f.StringVar(&flags.only, "only", "", "take only the series with these `VALUES` of --by, between commas")
	f.BoolVar(&flags.strict, "strict", false, "end at the first bad row")
	f.Var(&unitOfSeries{&flags.unit}, "unit", "what a value is: "+strings.Join(unitNames(), ", ")+", where the last two are amounts in each period")
	f.Var(&length{&flags.period, 1}, "period", "length of a period (default: the median distance of the measurements)")
	f.Var(&whole[int]{&flags.gap, 0, math.MaxInt32}, "gap", "empty periods in a row that repeat the last value; more are a break")
	f.Var(&whole[int]{&flags.horizon, 1, mostHorizon}, "horizon", "periods to forecast")
	f.Var(&forecasterList{&flags.models}, "model", "one of the models above, several between commas, or all (default "+defaultForecastModel+"; with --evaluate all)")
	f.Var(&percentOf{&flags.level}, "level", "intervals: 50, 80, 90, 95 or 99 %")
	f.Var(&amount{&flags.megabytes}, "bytes", "say how long it takes to move this much, such as 500GB (needs --unit)")
	f.Var(&factor{&flags.leastRate, false}, "least-rate", "MB/s that are moved at least, however low the forecast")
	f.BoolVar(&flags.evaluate, "evaluate", false, "compare the models by rolling origin instead of forecasting")
	f.Var(&whole[int]{&flags.first, 1, math.MaxInt32}, "first", "values that the first origin of --evaluate knows (default: half of them)")
	f.Var(&whole[int]{&flags.every, 1, math.MaxInt32}, "every", "values from one origin to the next (default: as needed for at most 250)")
	f.StringVar(&flags.plot, "plot", "", "draw the series and its forecast: `FILE`.svg or .png")
	f.VarP(&choice{&flags.format, "format", formats}, "output", "o", "table, json or csv")
	complete(cmd, "model", append(namesOf(forecast.Models, func(e forecast.Entry) string { return e.Name }), "all"))
	complete(cmd, "unit", unitNames())
	complete(cmd, "level", namesOf(forecast.Levels(), strconv.Itoa))
	complete(cmd, "output", formats)
	_ = cmd.MarkFlagFilename("plot", plot.Formats()...) // fails for unknown flags only
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{"csv", "gz"}, cobra.ShellCompDirectiveFilterFileExt
	}
	return cmd
}

// forecastLong is the text over the flags.
func forecastLong() string {
	var text strings.Builder
	text.WriteString(`Reads measurements from a CSV file, compressed or not (- is stdin), whose first
line names the columns; brings them to regular periods; and says for the periods
ahead what is expected and between which bounds. With --unit and --bytes it also
says how long moving that much takes: the expected time, and the pessimistic bound
(95 % at level 90).

Times are seconds since 1970 or dates, in UTC unless they have a zone. A period
has the mean of its measurements. An empty field, NA or NaN is no measurement; 0
is one; a bad row is told and passed over, unless --strict. A period without any repeats the one before, up to --gap times in a row;
a longer pause is a break, behind which the series simply goes on.

Models:

`)
	for _, e := range forecast.Models {
		fmt.Fprintf(&text, "    %-12s %s\n", e.Name, e.About)
	}
	text.WriteString(`    arima:p,d,q  ARIMA of a given order

Short pasts fall back: ARIMA needs 20 values, smoothing 10, blend 30, a season
three of its kind; the fall-back is the mean of the last ten.

--evaluate lets each model forecast from many points of the series, knowing only
what came before, and tells how right it was at several horizons.`)
	return text.String()
}

func unitNames() []string {
	return namesOf(forecast.Units, func(u forecast.Unit) string { return u.Name })
}

// unitOfSeries reads a unit.
type unitOfSeries struct{ value *forecast.Unit }

var _ pflag.Value = (*unitOfSeries)(nil)

func (u *unitOfSeries) Type() string { return "UNIT" }

func (u *unitOfSeries) String() string {
	if u.value == nil {
		return ""
	}
	return u.value.Name
}

func (u *unitOfSeries) Set(text string) error {
	unit, ok := forecast.UnitNamed(text)
	if !ok {
		return errors.New(nearest.Unknown("unit", text, unitNames()))
	}
	*u.value = unit
	return nil
}

// columnList is names of columns between commas.
type columnList struct{ value *[]string }

var _ pflag.Value = (*columnList)(nil)

func (l *columnList) Type() string { return "COLUMNS" }

func (l *columnList) String() string {
	if l.value == nil {
		return ""
	}
	return strings.Join(*l.value, ",")
}

func (l *columnList) Set(text string) error {
	*l.value = nil
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		if name == "" {
			return fmt.Errorf("%q; want names of columns between commas", text)
		}
		*l.value = append(*l.value, name)
	}
	return nil
}

// forecasterList is one or more models, or all.
type forecasterList struct{ value *[]forecast.Entry }

var _ pflag.Value = (*forecasterList)(nil)

func (l *forecasterList) Type() string { return "NAME" }

func (l *forecasterList) String() string {
	if l.value == nil {
		return ""
	}
	return strings.Join(namesOf(*l.value, func(e forecast.Entry) string { return e.Name }), ",")
}

func (l *forecasterList) Set(text string) error {
	if text == "all" {
		*l.value = slices.Clone(forecast.Models)
		return nil
	}
	known := append(namesOf(forecast.Models, func(e forecast.Entry) string { return e.Name }), "arima:p,d,q", "all")
	var chosen []forecast.Entry
	words := strings.Split(text, ",")
	for i := 0; i < len(words); i++ {
		name := strings.TrimSpace(words[i])
		if strings.HasPrefix(name, "arima:") && i+2 < len(words) { // its commas are not those of the list
			name += "," + strings.TrimSpace(words[i+1]) + "," + strings.TrimSpace(words[i+2])
			i += 2
		}
		e, ok := forecast.ModelNamed(name)
		switch {
		case !ok && strings.HasPrefix(name, "arima:"):
			return fmt.Errorf("%q; want arima:p,d,q with p and q from 0 to 3 and d from 0 to 2", name)
		case !ok:
			return fmt.Errorf("%s", nearest.Unknown("model", name, known))
		case slices.ContainsFunc(chosen, func(c forecast.Entry) bool { return c.Name == e.Name }):
			return fmt.Errorf("model %q stands there twice", name)
		}
		chosen = append(chosen, e)
	}
	*l.value = chosen
	return nil
}

// percentOf is one of the levels that intervals may have.
type percentOf struct{ value *int }

var _ pflag.Value = (*percentOf)(nil)

func (p *percentOf) Type() string { return "N" }

func (p *percentOf) String() string {
	if p.value == nil {
		return ""
	}
	return strconv.Itoa(*p.value)
}

func (p *percentOf) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || !slices.Contains(forecast.Levels(), n) {
		return fmt.Errorf("%q; want %s", text, nearest.OneOf(namesOf(forecast.Levels(), strconv.Itoa)))
	}
	*p.value = n
	return nil
}

// amount is an amount of data in megabytes, rounded up.
type amount struct{ value *int64 }

var _ pflag.Value = (*amount)(nil)

func (m *amount) Type() string { return "SIZE" }

func (m *amount) String() string {
	if m.value == nil || *m.value == 0 {
		return ""
	}
	return fmt.Sprintf("%dMB", *m.value)
}

func (m *amount) Set(text string) error {
	n, err := bytesize.Needed(text)
	if err != nil {
		return fmt.Errorf("%q; %w", text, err)
	}
	*m.value = n
	return nil
}

// validate finds what no single flag can see.
func (flags *forecastFlags) validate(cmd *cobra.Command) error {
	switch {
	case flags.megabytes > 0 && flags.unit.Name == "":
		return usagef(cmd, "--bytes: needs --unit, which says what a value is; want one of %s", strings.Join(unitNames(), ", "))
	case cmd.Flags().Changed("least-rate") && flags.unit.Name == "":
		return usagef(cmd, "--least-rate: needs --unit, which says what a value is")
	case flags.only != "" && flags.by == nil:
		return usagef(cmd, "--only: needs --by, which names the columns it is about")
	case flags.evaluate && flags.megabytes > 0:
		return usagef(cmd, "--bytes: does not go with --evaluate, which chooses amounts itself")
	case flags.evaluate && flags.plot != "":
		return usagef(cmd, "--plot: draws a forecast; does not go with --evaluate")
	case flags.plot != "":
		if _, ok := figureFormat(flags.plot); !ok {
			return usagef(cmd, "--plot: %q does not tell a format; want a name ending in .%s",
				flags.plot, strings.Join(plot.Formats(), " or ."))
		}
	}
	return refuseIdle(cmd, []need{
		{flags.evaluate, "--evaluate", []string{"first", "every"}},
		{!flags.evaluate, "a forecast; --evaluate moves nothing", []string{"least-rate"}},
	})
}

// forecast runs the command.
func (a *app) forecast(cmd *cobra.Command, path string, flags *forecastFlags) error {
	if err := flags.validate(cmd); err != nil {
		return err
	}
	files := claims{cmd: cmd}
	files.reads("FILE.csv", path)
	files.writes("--plot", flags.plot)
	files.shows()
	if err := files.apart(); err != nil {
		return err
	}
	if flags.plot != "" {
		if err := wholefile.Writable("plot", flags.plot); err != nil {
			return err
		}
	}
	data, err := a.measurements(path, flags)
	if err != nil {
		return err
	}
	if flags.plot != "" && len(data.Series) > 1 {
		return usagef(cmd, "--plot: draws one series, and %s has %d; want --only", data.Report.Name, len(data.Series))
	}
	a.tell(&data.Report)
	if data.Missing > 0 {
		a.say("berth: %s: %d values are missing", data.Report.Name, data.Missing)
	}
	if data.Sorted {
		a.say("berth: %s: not in order of time; sorted", data.Report.Name)
	}
	if flags.models == nil {
		flags.models = slices.Clone(forecast.Models)
		if !flags.evaluate {
			entry, _ := forecast.ModelNamed(defaultForecastModel)
			flags.models = []forecast.Entry{entry}
		}
	}
	var regular []regularSeries
	for _, m := range data.Series {
		series, err := data.Regular(m, flags.period, flags.gap)
		if err != nil {
			return err
		}
		if len(series.Values) < leastForecast && !flags.evaluate {
			_, _ = fmt.Fprintf(a.stderr, "berth: %s: %s of %s is too little to tell how far values vary, and the intervals are not to be relied on; want more measurements or a shorter --period\n",
				data.Report.Name, counted(len(series.Values), "period", "periods"), seconds(int64(series.Period)))
		}
		regular = append(regular, regularSeries{series, m.Name})
	}
	if flags.evaluate {
		return a.evaluateForecasts(cmd, data, regular, flags)
	}
	return a.printForecasts(data, regular, flags)
}

// leastForecast is how many periods an interval needs: one says nothing of how far values vary.
const leastForecast = 2

// measurements reads what a file, or stdin, holds.
func (a *app) measurements(path string, flags *forecastFlags) (*workload.Measurements, error) {
	options := workload.MeasurementOptions{
		Column: flags.column, Time: flags.time, By: flags.by, Only: flags.only, Unit: flags.unit.Name, Strict: flags.strict,
	}
	return readInput(a, path,
		func(path string) (*workload.Measurements, error) { return workload.OpenMeasurements(path, options) },
		func(r io.Reader, name string) (*workload.Measurements, error) {
			return workload.ReadMeasurements(r, name, options)
		})
}

// regularSeries is a series of a file in regular periods.
type regularSeries struct {
	forecast.Series
	name string
}

// context is what a model may know of a series.
func (r *regularSeries) context() forecast.Context { return forecast.Context{Period: r.Period} }

// amounts writes how many values a series has, and of what.
func (r *regularSeries) amounts() string {
	text := fmt.Sprintf("%s of %s", counted(len(r.Values), "period", "periods"), seconds(int64(r.Period)))
	if r.Held > 0 {
		text += fmt.Sprintf(", %d of them repeated", r.Held)
	}
	if n := len(r.Breaks); n > 0 {
		text += ", " + counted(n, "break", "breaks")
	}
	return text
}

// mostTitle is how many letters of a column's name a title shows.
const mostTitle = 40

// columnTitle is the column that was read, cut short.
func columnTitle(data *workload.Measurements) string {
	if runes := []rune(data.Column); len(runes) > mostTitle {
		return string(runes[:mostTitle]) + "…"
	}
	return data.Column
}

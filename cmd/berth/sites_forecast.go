package main

import (
	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/forecast"
)

// sitesForecast returns berth sites forecast.
func (a *app) sitesForecast() *cobra.Command {
	var r *remote
	flags := &forecastFlags{gap: defaultGap, leastRate: defaultLeastRate}
	cmd := &cobra.Command{
		Use:   "forecast SITE FILE.csv --unit UNIT",
		Short: "Update how fast data reach a site, from measurements",
		Long: `Forecasts a measured series as berth forecast does and tells the service what it
means for a site. Promises whose data would come too late are placed anew in
their windows; where that cannot be, their owners are told. Run it whenever there
are new measurements.`,
		Example: "  berth sites forecast far link.csv --unit Mbit/s",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usagef(cmd, "want SITE and FILE.csv, got %d words", len(args))
			}
			if flags.unit.Name == "" {
				return usagef(cmd, "--unit: missing; want what a value is, such as Mbit/s")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.sendForecast(cmd, r, args[0], args[1], flags) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&flags.column, "column", "", "`NAME` of the column of values (needed if there are several besides the times)")
	f.StringVar(&flags.time, "time", "", "`NAME` of the column of times")
	f.Var(&unitOfSeries{&flags.unit}, "unit", "what a value is, as berth forecast has it")
	f.Var(&length{&flags.period, 1}, "period", "length of a period (default: the median distance of the measurements)")
	f.Var(&forecasterList{&flags.models}, "model", "how to forecast (default "+defaultForecastModel+")")
	f.Var(&factor{&flags.leastRate, false}, "least-rate", "MB/s that are moved at least, however low the forecast")
	r = remoteFlags(cmd)
	return cmd
}

func (a *app) sendForecast(cmd *cobra.Command, r *remote, site, path string, flags *forecastFlags) error {
	data, err := a.measurements(path, flags)
	if err != nil {
		return err
	}
	series, err := data.Regular(data.Series[0], flags.period, flags.gap)
	if err != nil {
		return err
	}
	regular := regularSeries{Series: series}
	entry, _ := forecast.ModelNamed(defaultForecastModel)
	switch len(flags.models) {
	case 0:
	case 1:
		entry = flags.models[0]
	default:
		return usagef(cmd, "--model: %d models; want one", len(flags.models))
	}
	fit := entry.New(regular.context()).Fit(regular.Values)
	volumes := flags.unit.Link(regular.Period, flags.leastRate).Volumes(fit.From(regular.Values))
	kilobytes := make([]int64, 0, len(volumes.Bytes))
	for _, n := range volumes.Bytes {
		kilobytes = append(kilobytes, n/1000)
	}
	ctx, stop, c, err := r.connect(cmd)
	if err != nil {
		return err
	}
	defer stop()
	if err := c.UpdateForecast(ctx, site, volumes.Period, kilobytes); err != nil {
		return err
	}
	length := volumes.Period * berth.Duration(len(kilobytes))
	a.say("%s: %s; %.3g MB/s in the next %s, %.3g MB/s over %s", site, fit.String(),
		perSecond(kilobytes[0], volumes.Period), seconds(int64(volumes.Period)),
		perSecond(kilobytes[len(kilobytes)-1], length), seconds(int64(length)))
	return nil
}

// perSecond returns megabytes a second.
func perSecond(kilobytes int64, d berth.Duration) float64 {
	return float64(kilobytes) / 1000 / float64(d)
}

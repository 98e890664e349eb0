package api

import (
	"fmt"
	"net/http"

	"github.com/berth-hpc/berth/service"
)

// maxForecast is how many periods a forecast has at most: a week of minutes.
const maxForecast = 10_080

var forecastBody = body[service.Forecast]{
	{"from", "When the first period begins; now if it is not given.", instant(), func(f *service.Forecast, v value) (err error) {
		f.From, err = v.instant(down)
		return err
	}},
	{"period", "How long each period is.", duration(), func(f *service.Forecast, v value) (err error) {
		f.Period, err = v.length(1)
		return err
	}},
	{"kilobytes", "How many thousand bytes will have been moved by the end of each period, from the first on.", listOf(whole(0, 1<<62)), func(f *service.Forecast, v value) error {
		items, err := v.items()
		if err == nil && (len(items) == 0 || len(items) > maxForecast) {
			err = fmt.Errorf("%d periods; want 1 to %d", len(items), maxForecast)
		}
		if err != nil {
			return err
		}
		for _, item := range items {
			n, err := item.whole(0, 1<<62)
			if err != nil {
				return err
			}
			f.Kilobytes = append(f.Kilobytes, n)
		}
		return nil
	}},
}

func (c *call) forecast() error {
	f := service.Forecast{Site: c.r.PathValue("name")}
	ask, err := read(c, forecastBody, &f)
	if err != nil {
		return err
	}
	if err := c.UpdateForecast(c.r.Context(), ask, f); err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

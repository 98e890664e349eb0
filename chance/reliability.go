package chance

// Reliability is how right forecasts were.
type Reliability struct {
	Untold   int // for want of history
	Told     int
	Happened int // of those told
	// Deciles holds the forecasts by their share: from 0 to 0.1, and so on.
	Deciles [10]Decile
	// Brier is the mean square of what forecasts were off by, and Base that of forecasts that
	// always say the share that came true in the end.
	Brier, Base float64
}

// Decile is the forecasts whose shares were alike.
type Decile struct {
	N, Happened int
	Said        float64 // the mean share
}

// Off returns by how much more came true than was said, as a share.
func (d *Decile) Off() float64 { return float64(d.Happened)/float64(d.N) - d.Said }

// Judge returns how right forecasts were.
func Judge(forecasts []Forecast) Reliability {
	var r Reliability
	for i := range forecasts {
		f := &forecasts[i]
		if !f.Chance.Enough {
			r.Untold++
			continue
		}
		r.Told++
		d := &r.Deciles[min(int(f.Chance.Share*10), 9)]
		d.N++
		d.Said += f.Chance.Share
		off := f.Chance.Share
		if f.Happened {
			d.Happened++
			r.Happened++
			off = 1 - off
		}
		r.Brier += off * off
	}
	for i := range r.Deciles {
		if d := &r.Deciles[i]; d.N > 0 {
			d.Said /= float64(d.N)
		}
	}
	if r.Told > 0 {
		base := float64(r.Happened) / float64(r.Told)
		r.Brier /= float64(r.Told)
		r.Base = base * (1 - base)
	}
	return r
}

package service_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-hpc/berth/site"
)

// clocked is a site that goes by a clock that it is given.
type clocked struct {
	site.Observer
	clock site.Clock
}

func (c *clocked) SetClock(clock site.Clock) { c.clock = clock }

// A site that begins and ends things by itself goes by the service's time, and hears when
// that is not believed.
func TestSitesGoByTheClockOfTheService(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		if err := w.host.Close(); err != nil {
			t.Fatal(err)
		}
		m := w.options.Managers["harbour"]
		at := &clocked{Observer: m.Adapter}
		m.Adapter = at
		w.options.Managers["harbour"] = m
		began := time.Now()
		var jump time.Duration
		w.options.Clock = func() time.Time { return time.Now().Add(jump) }
		w.options.Monotonic = func() time.Duration { return time.Since(began) }
		w.open()
		if now, believed := at.clock(); !believed || now != w.host.Now() {
			t.Errorf("the site is told %d, believed: %t; the service's time is %d", now, believed, w.host.Now())
		}
		right := w.host.Now()
		jump = 72 * time.Hour
		if now, believed := at.clock(); believed || now < right || now > right+60 {
			t.Errorf("after a jump of three days the site is told %d, believed: %t; it is %d", now, believed, right)
		}
		jump = 0
		synctest.Wait()
		if now, believed := at.clock(); !believed || now > right+60 {
			t.Errorf("when the clock is right again the site is told %d, believed: %t", now, believed)
		}
	})
}

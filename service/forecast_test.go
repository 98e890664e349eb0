package service_test

import (
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/service"
)

// A worse forecast moves a promise whose data are on their way, and its owner
// hears of both.
func TestForecastMovesAPromise(t *testing.T) {
	c := &clock{}
	c.seconds.Store(1000)
	config := onePool(4)
	config.Staging = engine.StagingBefore
	config.Sites[0].Link.KilobytesPerSecond = 1000
	h := start(t, t.TempDir(), config, c)
	heavy := berth.Rigid("", 0, 1000, 5000, 2, 100)
	heavy.StorageMB = 50
	a := submit(t, h, ann, heavy).Reservation
	if a.Allotments[0].Start != 1050 || len(a.Data) != 1 || a.Data[0].End != 1050 {
		t.Fatalf("it starts at %d, its data are %+v", a.Allotments[0].Start, a.Data)
	}
	slow := berth.Forecast{Site: config.Sites[0].Name, Period: 10, Kilobytes: []int64{1000}}
	wantCode(t, h.UpdateForecast(t.Context(), ann, slow), berth.Denied)
	c.seconds.Store(1040)
	heard := make(chan service.Notice, 10)
	listening := make(chan struct{})
	go func() {
		close(listening)
		for n, err := range h.Listen(t.Context(), ann.By, 1) {
			if err != nil {
				break
			}
			heard <- n
		}
		close(heard)
	}()
	<-listening
	if err := h.UpdateForecast(t.Context(), root, slow); err != nil {
		t.Fatal(err)
	}
	// 10 MB are left, at 0.1 MB/s.
	if b, err := h.Get(t.Context(), ann.By, a.ID); err != nil || b.Allotments[0].Start != 1140 || b.Data[0].End != 1140 || b.Data[0].Start != 1000 {
		t.Fatalf("it starts at %+v, its data are %+v, %v", b.Allotments, b.Data, err)
	}
	var later berth.Duration
	for what := ""; what != "moved"; {
		n, ok := <-heard
		if !ok {
			t.Fatal("the move was not announced")
		}
		if what = n.What; what == "staged" {
			later = n.Later
		}
	}
	if later != 90 {
		t.Errorf("its data come %d s later, want 90", later)
	}
	if err := h.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

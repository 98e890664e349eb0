package engine

import (
	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/wire"
)

// The written form of the state: fields by number, as internal/wire has them.

// snapshotFormat begins every snapshot.
const snapshotFormat = 1

func encodeSaved(s *saved) []byte {
	c := wire.Writer(append(make([]byte, 0, 64+128*len(s.Reservations)), snapshotFormat))
	codeSaved(c, s)
	return c.Bytes()
}

func decodeSaved(data []byte, s *saved) error {
	if len(data) == 0 || data[0] != snapshotFormat {
		return berth.Errorf(berth.Invalid, "snapshot", "of another format")
	}
	c := wire.Reader(data[1:])
	codeSaved(c, s)
	return c.Done()
}

// The numbers of fields are the form of snapshots that exist.
func codeSaved(c *wire.Coder, s *saved) {
	wire.Int(c, 1, &s.Now)
	wire.Uint(c, 2, &s.Sequence)
	wire.Uint(c, 3, &s.Effects)
	wire.Uint(c, 4, &s.Decided)
	wire.Uint(c, 5, &s.Submitted)
	wire.List(c, 6, &s.Users, wire.BareText[string])
	wire.Pointer(c, 7, &s.Pass, wire.BareInt[berth.Time])
	wire.List(c, 8, &s.Pending, codePending)
	wire.List(c, 9, &s.Jobs, codeJob)
	wire.List(c, 10, &s.Reservations, codeReservation)
	wire.List(c, 11, &s.Outbox, codeEffect)
	wire.List(c, 12, &s.Outages, codeOutage)
	wire.Uint(c, 13, &s.OutageNumber)
	wire.List(c, 14, &s.Forecasts, func(c *wire.Coder, f **Forecast) {
		if c.Reading() {
			*f = new(Forecast)
		}
		CodeForecast(c, *f)
	})
	c.End()
}

// CodeForecast is the written form of a forecast: of the kilobytes each period's
// own.
func CodeForecast(c *wire.Coder, f *Forecast) {
	wire.String(c, 1, &f.Site)
	wire.Int(c, 2, &f.From)
	wire.Int(c, 3, &f.Period)
	steps := make([]int64, 0, len(f.Kilobytes))
	for i := range f.Kilobytes {
		steps = append(steps, f.by(i+1)-f.by(i))
	}
	if wire.List(c, 4, &steps, wire.BareInt[int64]); c.Reading() {
		sum := int64(0)
		for _, step := range steps {
			sum += step
			f.Kilobytes = append(f.Kilobytes, sum)
		}
	}
	c.End()
}

func codePending(c *wire.Coder, p *savedPending) {
	wire.Pointer(c, 1, &p.Request, wire.Request)
	wire.Uint(c, 2, &p.Number)
	c.End()
}

func codeJob(c *wire.Coder, j *savedJob) {
	wire.Pointer(c, 1, &j.Request, wire.Request)
	wire.Uint(c, 2, &j.Number)
	wire.Pointer(c, 3, &j.Plan, wire.Allotment)
	c.End()
}

func codeReservation(c *wire.Coder, r *savedReservation) {
	wire.Reservation(c, &r.Reservation)
	wire.List(c, 1, &r.Over, wire.BareInt[int])
	c.End()
}

func codeEffect(c *wire.Coder, e *Effect) {
	wire.Uint(c, 1, &e.Number)
	wire.Name(c, 2, &e.Kind)
	wire.Name(c, 3, &e.Site)
	wire.String(c, 4, &e.Reservation)
	wire.Uint(c, 5, &e.Generation)
	c.End()
}

func codeOutage(c *wire.Coder, o **Outage) {
	if c.Reading() {
		*o = new(Outage)
	}
	wire.Uint(c, 1, &(*o).Number)
	wire.Struct(c, 2, &(*o).Resource, (*o).Resource == berth.ResourceID{}, wire.ResourceID)
	wire.PESet(c, 3, &(*o).PEs)
	wire.Int(c, 4, &(*o).Until)
	wire.Int(c, 5, &(*o).From)
	c.End()
}

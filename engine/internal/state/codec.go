package state

import (
	"fmt"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/internal/wire"
)

// The written form of the state: fields by number, as internal/wire has them.

// snapshotFormat begins every snapshot. Of format 1 everything is read: what it does
// not have follows from the rest.
const snapshotFormat = 2

func encodeSaved(s *saved) []byte {
	c := wire.Writer(append(make([]byte, 0, 64+128*len(s.Reservations)), snapshotFormat))
	codeSaved(c, s)
	return c.Bytes()
}

func decodeSaved(data []byte, s *saved) error {
	if len(data) == 0 || data[0] < 1 || data[0] > snapshotFormat {
		return fmt.Errorf("it is not of format 1 to %d; a newer program may have written it", snapshotFormat)
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
	wire.List(c, 12, &s.Outages, func(c *wire.Coder, o **berth.Outage) {
		if c.Reading() {
			*o = new(berth.Outage)
		}
		wire.Outage(c, *o)
	})
	wire.Uint(c, 13, &s.OutageNumber)
	wire.List(c, 14, &s.Forecasts, func(c *wire.Coder, f **berth.Forecast) {
		if c.Reading() {
			*f = new(berth.Forecast)
		}
		wire.Forecast(c, *f)
	})
	wire.List(c, 15, &s.Workflows, codeWorkflow)
	wire.List(c, 16, &s.Unused, codeUnused)
	wire.List(c, 20, &s.Open, codeOpen)
	wire.List(c, 21, &s.Charged, codeCharge)
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
	wire.Uint(c, 4, &j.Generation)
	c.End()
}

func codeReservation(c *wire.Coder, r *savedReservation) {
	if c.Reading() {
		r.Reservation = newKept()
	}
	wire.Reservation(c, r.Reservation)
	wire.List(c, 1, &r.Over, wire.BareInt[int])
	c.End()
}

// codeEffect is the written form of an effect. The kind that it had in format 1 is
// passed over.
func codeEffect(c *wire.Coder, e *change.Effect) {
	wire.Uint(c, 1, &e.Number)
	var kind string // of format 1
	wire.Name(c, 2, &kind)
	wire.Name(c, 3, &e.Site)
	wire.String(c, 4, &e.Reservation)
	wire.Uint(c, 5, &e.Generation)
	c.End()
}

package api

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/service"
)

var eventsParams = []param{
	{"after", "The event to begin behind, like the header Last-Event-ID.", whole(0, 1<<53)},
	{
		"occupied", "With true also events named occupied: something in a pool changed, of any owner. They have no id and are not told again to a client that comes back.",
		oneOf("true", "false"),
	},
}

// wantsPools reports whether a listener wants to be told which pools change.
func (c *call) wantsPools() (bool, error) {
	query, err := c.query(eventsParams)
	if err != nil {
		return false, err
	}
	switch text := query["occupied"]; text {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	default:
		return false, berth.Errorf(berth.Invalid, "occupied", "%.40q; want true or false", text)
	}
}

// handPools hands on which pools change until ctx ends.
func handPools(ctx context.Context, pools iter.Seq2[service.Occupied, error], to chan<- happening) {
	for o, err := range pools {
		select {
		case to <- happening{occupied: &o, err: err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

func occupiedData(o *service.Occupied) []byte {
	data, err := json.Marshal(form.Occupied{Site: o.Site, Pool: o.Pool, From: form.TimeOf(o.From), To: form.TimeOf(o.To), Generation: o.Generation})
	if err != nil {
		panic("api: an event cannot be written: " + err.Error())
	}
	return data
}

// pool writes that a pool has changed; it leaves at once if it is the last for now.
func (s *stream) pool(data []byte, last bool) error {
	s.buffer = fmt.Appendf(s.buffer, "event: occupied\ndata: %s\n\n", data)
	if last || len(s.buffer) > maxPooled {
		return s.flush()
	}
	return nil
}

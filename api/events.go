package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
)

const (
	// maxStreams bounds the clients that listen at once: each costs a
	// connection, two goroutines and the buffers below and in the service.
	maxStreams = 1024
	// ahead is how many events wait for a client that is slow; then the service
	// holds them, until it cuts the client off.
	ahead = 64
	// patience is how long a write to a client may take before it is given up. It
	// can come back behind the last event that it got.
	patience = 10 * time.Second
)

// streams counts the clients that listen, by user: those of a service account for its owner too.
type streams struct {
	mu  sync.Mutex
	of  map[string]int
	all int
}

// take counts one more stream of those for whom it counts, of whom each may have most of them. Errors: Unavailable
// if the service has as many as it can, Exhausted if one of them has.
func (s *streams) take(by []asker, most func(asker) int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range by {
		if has, most := s.of[one.user], most(one); has >= most {
			return berth.Errorf(berth.Exhausted, "events", "%d clients of %s listen already; want at most %d, so end some", has, one.user, most)
		}
	}
	if s.all >= maxStreams {
		return berth.Errorf(berth.Unavailable, "events", "%d clients listen already", maxStreams)
	}
	for _, one := range by {
		s.of[one.user]++
	}
	s.all++
	return nil
}

func (s *streams) leave(by []asker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	for _, one := range by {
		if s.of[one.user]--; s.of[one.user] == 0 {
			delete(s.of, one.user)
		}
	}
}

// happening is a notice, a pool that has changed, or why there are no more.
type happening struct {
	notice   service.Notice
	occupied *service.Occupied
	err      error
	fault    *site.Panic // in what hands them over
}

// events answers with what happens, until the client goes away, is too slow, or
// the service stops. Events are numbered from 1, because some readers take 0
// for none.
func (c *call) events() error {
	after, err := c.after()
	if err != nil {
		return err
	}
	if after == 0 {
		after = c.LastEvent()
	}
	pools, err := c.wantsPools()
	if err != nil {
		return err
	}
	by := c.asker().all()
	if err := c.streams.take(by, c.rates.streams); err != nil {
		return err
	}
	defer c.streams.leave(by)
	c.counts.streams.Inc()
	defer c.counts.streams.Dec()
	ctx, cancel := context.WithCancel(c.r.Context())
	happenings := make(chan happening, ahead)
	gone := make(chan struct{})
	notices := c.Listen(ctx, c.by, after) // before the answer begins, which says that it listens
	var handing sync.WaitGroup
	begin := func(handOver func()) {
		handing.Go(func() {
			if p := site.Caught(handOver); p != nil {
				select {
				case happenings <- happening{fault: p}: // it is raised in the call
				case <-ctx.Done():
				}
			}
		})
	}
	begin(func() { hand(ctx, notices, happenings) })
	if pools {
		occupied := c.Occupied(ctx, c.by)
		begin(func() { handPools(ctx, occupied, happenings) })
	}
	go func() {
		defer close(gone)
		defer close(happenings)
		handing.Wait()
	}()
	defer func() {
		cancel()
		<-gone
	}()
	h := c.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // a proxy in between must not wait for more
	c.w.WriteHeader(http.StatusOK)
	s := &stream{w: c.w, control: http.NewResponseController(c.w)}
	// The id names where the stream begins, so that a client that loses it before the first event goes on from there.
	if err := s.send(fmt.Sprintf(": events\nretry: 1000\nid: %d\n\n", after)); err != nil {
		return nil // the client has gone
	}
	c.forward(s, happenings)
	return nil
}

// after returns the event to begin behind; 0 is from now on.
func (c *call) after() (uint64, error) {
	query, err := c.query(eventsParams)
	if err != nil {
		return 0, err
	}
	name, text := "after", query["after"]
	if last := c.r.Header.Get("Last-Event-ID"); last != "" { // a client that comes back knows better
		name, text = "Last-Event-ID", last
	}
	if text == "" {
		return 0, nil
	}
	after, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, berth.Errorf(berth.Invalid, name, "%.40q; want the id of an event", text)
	}
	return after, nil
}

// hand hands on what happens until ctx ends.
func hand(ctx context.Context, notices iter.Seq2[service.Notice, error], to chan<- happening) {
	for notice, err := range notices {
		select {
		case to <- happening{notice: notice, err: err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// forward writes events as they come, and a sign of life when none do.
func (c *call) forward(s *stream, happenings <-chan happening) {
	beat := time.NewTicker(c.beat)
	defer beat.Stop()
	expiry := time.NewTimer(c.untilExpiry())
	defer expiry.Stop()
	var owner <-chan time.Time // when to look at the owner of a service account again
	if c.token.OfAccount {
		each := time.NewTicker(c.beat) // of its own, since one of events alone never beats
		defer each.Stop()
		owner = each.C
	}
	for {
		var err error
		select {
		case h, open := <-happenings:
			if h.fault != nil {
				panic(h.fault)
			}
			if !open || h.err != nil {
				s.end(h.err)
				return
			}
			if no := c.worthless(); no != nil {
				s.end(no)
				return
			}
			if c.begin() != nil { // to encode an event is work, and a stream may have many
				return
			}
			if h.occupied != nil {
				data := occupiedData(h.occupied)
				c.rest()
				err = s.pool(data, len(happenings) == 0)
			} else {
				data := eventData(&h.notice)
				c.rest()
				err = s.event(&h.notice, data, len(happenings) == 0)
			}
			beat.Reset(c.beat)
		case <-c.outdated:
			if no := c.worthless(); no != nil {
				s.end(no)
				return
			}
		case <-expiry.C:
			if no := c.worthless(); no != nil {
				s.end(no)
				return
			}
			expiry.Reset(c.untilExpiry())
		case <-owner:
			if c.lessened() {
				s.end(errRevoked)
				return
			}
		case <-beat.C:
			if no := c.worthless(); no != nil {
				s.end(no)
				return
			}
			err = s.send(": alive\n\n")
		case <-c.r.Context().Done():
			return
		}
		if err != nil {
			return
		}
	}
}

var errRevoked = berth.Errorf(berth.Denied, "Authorization", "the token is worthless by now; ask with another one")

// worthless returns why the token with which a call came is good for nothing by now, nil
// if it is as good as it was. The time is the service's, which a jump of the machine's
// clock does not change.
func (c *call) worthless() error {
	switch {
	case c.revoked():
		return errRevoked
	case c.token.ExpiredAt(c.Now()):
		return expired(&c.token)
	}
	return nil
}

// untilExpiry returns for how long the token is good as the time is, at most a day, after
// which it is looked at again.
func (c *call) untilExpiry() time.Duration {
	if c.token.Expires == 0 {
		return 24 * time.Hour
	}
	left := time.Duration(min(c.token.Expires.Sub(c.Now()), 86_400)) * time.Second
	return max(left, time.Second)
}

// lessened reports whether a service account, or its owner, may do something else by now than when the call came, or nothing. While the directory of
// users does not answer nothing is known of that, and the stream goes on.
func (c *call) lessened() bool {
	if !c.token.OfAccount {
		return false
	}
	by, err := c.standings().narrowed(c.r.Context(), &c.token)
	if err != nil {
		return denied(err)
	}
	by.Sites = by.Sites.And(service.SitesOf(c.access, by))
	return by != c.by
}

// revoked reports whether the token with which a call came is worthless by now, or good
// for something else.
func (c *call) revoked() bool {
	select {
	case <-c.outdated:
	default:
		return false // they are as they were
	}
	var entry token.Entry
	var known bool
	entry, c.outdated, known = c.tokens.Check(c.secret)
	return !known || entry != c.token || c.lessened()
}

// stream writes server-sent events.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	buffer  []byte
}

// send writes text and sees to it that it leaves.
func (s *stream) send(text string) error {
	s.buffer = append(s.buffer, text...)
	return s.flush()
}

func (s *stream) flush() error {
	if err := s.control.SetWriteDeadline(time.Now().Add(patience)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	_, err := s.w.Write(s.buffer)
	s.buffer = s.buffer[:0]
	if err != nil {
		return err
	}
	return s.control.Flush()
}

// eventData writes down what an event tells.
func eventData(n *service.Notice) []byte {
	e := form.Event{ID: n.Number, At: form.TimeOf(n.At), What: n.What, Reservation: reservation(&n.Reservation), Refusal: refusal(n.Refusal, nil), Workflow: workflowEvent(n.Workflow), Trouble: n.Trouble}
	if n.Task != nil {
		e.Task = new(taskReport(n.Task))
	}
	data, err := json.Marshal(&e)
	if err != nil {
		panic("api: an event cannot be written: " + err.Error())
	}
	return data
}

// event writes an event; it leaves at once if it is the last for now.
func (s *stream) event(n *service.Notice, data []byte, last bool) error {
	s.buffer = fmt.Appendf(s.buffer, "id: %d\nevent: %s\ndata: %s\n\n", n.Number, n.What, data)
	if last || len(s.buffer) > maxPooled {
		return s.flush()
	}
	return nil
}

// end tells why there are no more events. If some were missed for good the empty
// id has the client begin anew, from then on.
func (s *stream) end(err error) {
	var coded *berth.Error
	switch {
	case err == nil:
		return
	case errors.As(err, &coded) && coded.Code == berth.NotFound:
		s.buffer = append(s.buffer, "id:\nevent: gap\n"...)
	default:
		s.buffer = append(s.buffer, "event: end\n"...)
	}
	p, _ := problemOf(err)
	data, err := json.Marshal(p)
	if err != nil {
		panic("api: a problem cannot be written: " + err.Error())
	}
	s.buffer = fmt.Appendf(s.buffer, "data: %s\n\n", data)
	_ = s.flush() // the stream is over, whether that arrives or not
}

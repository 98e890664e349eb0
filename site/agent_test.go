package site_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-hpc/berth/site"
)

// slow is a site that takes a second to answer.
type slow struct {
	asked atomic.Int64
	fails atomic.Bool
}

func (s *slow) Describe(context.Context) (*site.Description, error) {
	return nil, errors.ErrUnsupported
}

func (s *slow) Observe(ctx context.Context) (*site.State, error) {
	n := s.asked.Add(1)
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s.fails.Load() {
		return nil, errors.New("down")
	}
	return &site.State{Boot: 1, At: 0, Running: make([]site.Job, n)}, nil
}

func TestAgentAsksOnceForEverybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{}
		agent := site.NewAgent(s, 10*time.Second)
		var group sync.WaitGroup
		for range 100 {
			group.Go(func() {
				if _, err := agent.Observe(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		time.Sleep(8 * time.Second) // nine since it was asked
		if _, err := agent.Observe(t.Context()); err != nil || s.asked.Load() != 1 {
			t.Errorf("asked %d times %v, want once", s.asked.Load(), err)
		}
		time.Sleep(time.Second)
		if _, err := agent.Observe(t.Context()); err != nil || s.asked.Load() != 2 {
			t.Errorf("asked %d times %v after the interval, want twice", s.asked.Load(), err)
		}
	})
}

func TestAgentForgetsAnswersFromBeforeAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{}
		agent := site.NewAgent(s, time.Hour)
		go func() { _, _ = agent.Observe(context.Background()) }()
		synctest.Wait()
		agent.Forget()
		state, err := agent.Observe(t.Context())
		if err != nil || len(state.Running) != 2 {
			t.Errorf("%+v %v, want the second answer", state, err)
		}
	})
}

func TestAgentBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{}
		s.fails.Store(true)
		agent := site.NewAgent(s, 10*time.Second)
		var times []time.Duration
		began := time.Now()
		for asked := int64(0); len(times) < 8; time.Sleep(500 * time.Millisecond) {
			if _, err := agent.Observe(t.Context()); err == nil {
				t.Fatal("no failure")
			}
			if n := s.asked.Load(); n != asked {
				asked = n
				times = append(times, time.Since(began).Truncate(time.Second))
			}
		}
		for i, want := range []time.Duration{0, 20, 40, 80, 160, 160, 160} {
			if i == 0 {
				continue
			}
			if gap := times[i] - times[i-1]; gap < (want-2)*time.Second || gap > (want+2)*time.Second {
				t.Errorf("asked at %v: gap %d is %s, want about %d s", times, i, gap, want)
			}
		}
		s.fails.Store(false)
		agent.Forget()
		if _, err := agent.Observe(t.Context()); err != nil {
			t.Errorf("healed: %v", err)
		}
	})
}

func TestAgentLetsTheImpatientGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{}
		agent := site.NewAgent(s, time.Hour)
		hasty, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := agent.Observe(hasty); site.KindOf(err) != site.Unreachable {
			t.Errorf("%v, want unreachable", err)
		}
		if _, err := agent.Observe(t.Context()); err != nil || s.asked.Load() != 1 {
			t.Errorf("asked %d times %v, want that its question serves the patient", s.asked.Load(), err)
		}
	})
}

// A look that takes longer than the interval is an answer to who asked for it, and to who asked while it was under way the next.
func TestAgentOfASiteSlowerThanTheInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{}
		agent := site.NewAgent(s, 500*time.Millisecond)
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var group sync.WaitGroup
		for wait, want := range map[time.Duration]time.Duration{0: time.Second, 300 * time.Millisecond: 2 * time.Second} {
			group.Go(func() {
				time.Sleep(wait)
				if _, err := agent.Observe(ctx); err != nil || time.Since(began) != want {
					t.Errorf("asked after %s it is answered after %s, %v; want %s", wait, time.Since(began), err, want)
				}
			})
		}
		group.Wait()
		if n := s.asked.Load(); n != 2 {
			t.Errorf("asked %d times, want twice", n)
		}
	})
}

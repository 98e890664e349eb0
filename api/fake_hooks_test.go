package api_test

import (
	"context"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/notice"
	"github.com/berth-hpc/berth/service"
)

// hooked keeps hooks in memory: each is owed one notice, which is a dead letter.
type hooked struct{ hooks []service.Hook }

func (f *fake) hook(by service.Principal, id string) (*service.Hook, error) {
	at := slices.IndexFunc(f.hooks, func(h service.Hook) bool { return h.ID == id && by.Owns(h.User) })
	switch {
	case f.fails != nil:
		return nil, f.fails
	case at < 0:
		return nil, berth.Errorf(berth.NotFound, "id", "no hook %q", id)
	}
	return &f.hooks[at], nil
}

func (f *fake) AddHook(_ context.Context, ask service.Ask, hook service.Hook) (service.Hook, error) {
	defer f.lock()()
	hook.User, hook.Sites, hook.Created = ask.By.User, ask.By.Sites, f.now
	f.hooks = append(f.hooks, hook)
	return hook, f.fails
}

func (f *fake) Hooks(_ context.Context, by service.Principal) ([]service.HookView, error) {
	defer f.lock()()
	var list []service.HookView
	for i := range f.hooks {
		if by.Owns(f.hooks[i].User) {
			list = append(list, service.HookView{Hook: f.hooks[i], Dead: 1, Last: f.letter()})
		}
	}
	return list, f.fails
}

func (f *fake) letter() *service.Owed {
	return &service.Owed{Number: 4711, At: f.now, Kind: notice.Test, Tries: []service.Try{{At: f.now, Status: 500, Words: "500 Internal Server Error"}}, Dead: true}
}

func (f *fake) ChangeHook(_ context.Context, ask service.Ask, id string, change func(*service.Hook) error) (service.Hook, error) {
	defer f.lock()()
	h, err := f.hook(ask.By, id)
	if err != nil {
		return service.Hook{}, err
	}
	if err := change(h); err != nil {
		return service.Hook{}, err
	}
	return *h, nil
}

func (f *fake) RemoveHook(_ context.Context, ask service.Ask, id string) error {
	defer f.lock()()
	_, err := f.hook(ask.By, id)
	if err == nil {
		f.hooks = slices.DeleteFunc(f.hooks, func(h service.Hook) bool { return h.ID == id })
	}
	return err
}

func (f *fake) TestHook(_ context.Context, ask service.Ask, id string) error {
	defer f.lock()()
	_, err := f.hook(ask.By, id)
	return err
}

func (f *fake) Deliveries(_ context.Context, by service.Principal, id string) (service.Deliveries, error) {
	defer f.lock()()
	_, err := f.hook(by, id)
	return service.Deliveries{Dead: []*service.Owed{f.letter()}}, err
}

func (f *fake) Resend(_ context.Context, ask service.Ask, id string, numbers []uint64) error {
	defer f.lock()()
	_, err := f.hook(ask.By, id)
	if err == nil && len(numbers) > 0 && !slices.Equal(numbers, []uint64{4711}) {
		err = berth.Errorf(berth.NotFound, "number", "no notice %d", numbers[0])
	}
	return err
}

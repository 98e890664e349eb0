package api

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/courier"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/internal/nearest"
	"github.com/berth-hpc/berth/notice"
	"github.com/berth-hpc/berth/service"
)

// wantedHook is a hook to be made, or what is to be changed of one: nil fields are left as they are.
type wantedHook struct {
	url                  *string
	form                 string
	site, note, text     *string
	kinds                []notice.Kind
	starts, ends, unused *berth.Duration
	enabled              *bool
}

const (
	maxNote     = 200
	maxTemplate = 2000
	// The lengths of notice for what is told by the time, which are long enough to act.
	defaultStarts, defaultEnds, defaultUnused berth.Duration = 900, 600, 600
	// keptBeside is for how long the secret before signs beside a new one.
	keptBeside berth.Duration = 86_400
)

// idOfHook is how many bytes the id of a hook is.
const idOfHook = 8

// acting is the kinds that a hook has by default: those after which its user may want to act.
var acting = []notice.Kind{notice.Moved, notice.Degraded, notice.Lost, notice.Unused, notice.Ending, notice.Deadline}

func kindNames() []string {
	var names []string
	for _, a := range notice.Kinds() {
		names = append(names, string(a.Kind))
	}
	return names
}

func aboutKinds() string {
	var lines []string
	for _, a := range notice.Kinds() {
		lines = append(lines, string(a.Kind)+" ("+a.About+")")
	}
	return "What it is told: " + strings.Join(lines, ", ") + ". By default those after which its user may want to act: moved, degraded, lost, unused, ending, deadline."
}

func wordInto(to **string, most int) func(v value) error {
	return func(v value) error {
		word, err := v.word()
		if err == nil && len(word) > most {
			return fmt.Errorf("%d bytes; want at most %d", len(word), most)
		}
		*to = &word
		return err
	}
}

func leadInto(to **berth.Duration) func(v value) error {
	return func(v value) error {
		d, err := v.length(0)
		if err == nil && d > 30*86_400 {
			return errors.New("want at most 30 days")
		}
		*to = &d
		return err
	}
}

var hookBody = body[wantedHook]{
	{"url", "Where notices are sent: with POST an address with https, by e-mail one such as mailto:ann@example.org. It is kept sealed and is in no answer.", text("https://hooks.example.org/berth"), func(h *wantedHook, v value) error {
		return wordInto(&h.url, 4096)(v)
	}},
	{"form", "What is sent: a message of Standard Webhooks, a text for a chat (Slack, Mattermost), or e-mail, which is the default for mailto.", oneOf(service.HookForms()...), func(h *wantedHook, v value) (err error) {
		if h.form, err = v.word(); err == nil && !slices.Contains(service.HookForms(), h.form) {
			return fmt.Errorf("%.40q; want one of %s", h.form, strings.Join(service.HookForms(), ", "))
		}
		return err
	}},
	{"kinds", aboutKinds(), listOf(oneOf(kindNames()...)), func(h *wantedHook, v value) error {
		names, err := v.texts()
		if err != nil {
			return err
		}
		if len(names) == 0 {
			return errors.New("an empty list; want some kinds, or leave it out")
		}
		for _, name := range names {
			kind := notice.Kind(name)
			if !notice.Known(kind) {
				return fmt.Errorf("%.40q%s; want some of %s", name, nearest.Hint(name, kindNames()), strings.Join(kindNames(), ", "))
			}
			if !slices.Contains(h.kinds, kind) {
				h.kinds = append(h.kinds, kind)
			}
		}
		return nil
	}},
	{"site", "Only what has to do with this site; all if it is empty.", text("cm5"), func(h *wantedHook, v value) error { return wordInto(&h.site, 256)(v) }},
	{"note", "What it is for, for people.", text("on-call"), func(h *wantedHook, v value) error { return wordInto(&h.note, maxNote)(v) }},
	{"text", "The text of a chat, with values in braces: {" + strings.Join(notice.Placeholders(), "}, {") + "}.", text(notice.DefaultText), func(h *wantedHook, v value) error {
		if err := wordInto(&h.text, maxTemplate)(v); err != nil {
			return err
		}
		if e, is := errors.AsType[*berth.Error](notice.CheckText(*h.text)); is {
			return errors.New(e.Msg)
		}
		return nil
	}},
	{"starts", "How long before its start a promise is told of as starting; 15 minutes by default.", duration(), func(h *wantedHook, v value) error { return leadInto(&h.starts)(v) }},
	{"ends", "How long before its end a promise is told of as ending; 10 minutes by default.", duration(), func(h *wantedHook, v value) error { return leadInto(&h.ends)(v) }},
	{"unused", "How long after its start a promise in which nothing runs is told of as unused; 10 minutes by default.", duration(), func(h *wantedHook, v value) error { return leadInto(&h.unused)(v) }},
}

var hookChange = append(slices.Clone(hookBody), field[wantedHook]{
	"enabled", "Whether notices are sent. A hook that was disabled, by its owner or because it failed, is enabled with true; what it missed is told as a gap.",
	&schema{Type: "boolean"}, func(h *wantedHook, v value) error {
		is, err := v.truth()
		h.enabled = &is
		return err
	},
})

// takesHooks returns an error where the service sends no notices.
func (c *call) takesHooks() error {
	if c.courier == nil {
		return berth.Errorf(berth.Unavailable, "hooks", "this service sends no notices")
	}
	return nil
}

// fill has a hook be as is wanted.
func (c *call) fill(h *service.Hook, w *wantedHook) error {
	take := func(to, from *string) {
		if from != nil {
			*to = *from
		}
	}
	long := func(to, from *berth.Duration) {
		if from != nil {
			*to = *from
		}
	}
	switch {
	case w.form != "":
		h.Form = w.form
	case w.url != nil && strings.HasPrefix(*w.url, courier.MailScheme):
		h.Form = service.MailForm
	case w.url != nil && h.Form == service.MailForm:
		h.Form = service.WebhookForm
	}
	if w.kinds != nil {
		h.Kinds = w.kinds
	}
	take(&h.Site, w.site)
	take(&h.Note, w.note)
	take(&h.Text, w.text)
	long(&h.Starts, w.starts)
	long(&h.Ends, w.ends)
	long(&h.Unused, w.unused)
	switch {
	case w.enabled == nil:
	case *w.enabled:
		h.Disabled = ""
	case h.Disabled == "":
		h.Disabled = "by " + c.by.User
	}
	if h.Text != "" && h.Form != service.ChatForm {
		return berth.Errorf(berth.Invalid, "text", "form %s has none; want form chat, or no text", h.Form)
	}
	return nil
}

// aim seals an address with secrets for a hook.
func (c *call) aim(h *service.Hook, t *courier.Target) error {
	if h.Form == service.MailForm {
		to, err := c.courier.MailsTo(cmp.Or(h.User, c.by.User), t.URL)
		if err != nil {
			return err
		}
		t.Secrets = nil
		_, h.Host, _ = strings.Cut(to, "@")
		h.Sealed = c.courier.Seal(h.ID, t)
		return nil
	}
	u, err := c.courier.CheckURL(t.URL)
	if err != nil {
		return err
	}
	h.Host, h.Sealed = u.Host, c.courier.Seal(h.ID, t)
	return nil
}

func newSecret() []byte {
	key := make([]byte, notice.SecretBytes)
	_, _ = rand.Read(key) // never fails
	return key
}

func (c *call) addHook() error {
	var w wantedHook
	ask, err := read(c, hookBody, &w)
	if err == nil {
		err = c.takesHooks()
	}
	if err == nil && w.url == nil {
		err = berth.Errorf(berth.Invalid, "url", "missing; want an address such as https://hooks.example.org/berth")
	}
	if err == nil && w.site != nil && *w.site != "" {
		err = c.knownSites(service.NewSiteSet([]string{*w.site}))
	}
	if err != nil {
		return err
	}
	random := make([]byte, idOfHook)
	_, _ = rand.Read(random) // never fails
	h := service.Hook{ID: hex.EncodeToString(random), Form: service.WebhookForm, Kinds: acting, Starts: defaultStarts, Ends: defaultEnds, Unused: defaultUnused, Parent: c.token.ID}
	if c.token.IsSession() {
		h.Parent = c.token.Parent
	}
	if err := c.fill(&h, &w); err != nil {
		return err
	}
	target := courier.Target{URL: *w.url}
	if h.Form == service.WebhookForm {
		target.Secrets = []courier.Secret{{Key: newSecret()}}
	}
	if err := c.aim(&h, &target); err != nil {
		return err
	}
	if h, err = c.AddHook(c.r.Context(), ask, h); err != nil {
		return err
	}
	c.log.Info("receiver of notices added", "by", c.by.User, "id", h.ID, "host", h.Host)
	f := hookForm(&service.HookView{Hook: h})
	if len(target.Secrets) > 0 {
		f.Secret = notice.Secret(target.Secrets[0].Key)
	}
	return c.answer(http.StatusCreated, &f)
}

func hookForm(h *service.HookView) form.Hook {
	f := form.Hook{
		ID: h.ID, User: h.User, Form: h.Form, Host: h.Host, Note: h.Note, Site: h.Site, Text: h.Text, Starts: h.Starts, Ends: h.Ends, Unused: h.Unused,
		Created: form.TimeOf(h.Created), Rotated: form.TimeOf(h.Rotated), Disabled: h.Disabled, Failing: form.TimeOf(h.Failing), Missed: h.Missed, Waiting: h.Owed, Dead: h.Dead,
	}
	for _, k := range h.Kinds {
		f.Kinds = append(f.Kinds, string(k))
	}
	if h.Last != nil {
		tries := triesOf(h.Last)
		f.Last = &tries[len(tries)-1]
	}
	return f
}

func triesOf(o *service.Owed) []form.Try {
	list := make([]form.Try, len(o.Tries))
	for i, t := range o.Tries {
		list[i] = form.Try{At: form.TimeOf(t.At), Status: t.Status, Trouble: t.Words}
	}
	return list
}

func (c *call) listHooks() error {
	list, err := c.Hooks(c.r.Context(), c.by)
	if err != nil {
		return err
	}
	f := form.Hooks{Hooks: make([]form.Hook, len(list))}
	for i := range list {
		f.Hooks[i] = hookForm(&list[i])
	}
	return c.answer(http.StatusOK, &f)
}

// changed answers with a hook that was changed.
func (c *call) changed(ask service.Ask, change func(h *service.Hook) (secret string, err error)) error {
	if err := c.takesHooks(); err != nil {
		return err
	}
	var secret string
	h, err := c.ChangeHook(c.r.Context(), ask, c.r.PathValue("id"), func(h *service.Hook) (err error) {
		secret, err = change(h)
		return err
	})
	if err != nil {
		return err
	}
	list, err := c.Hooks(c.r.Context(), c.by)
	if err != nil {
		return err
	}
	view := service.HookView{Hook: h}
	if at := slices.IndexFunc(list, func(o service.HookView) bool { return o.ID == h.ID }); at >= 0 {
		view = list[at]
	}
	f := hookForm(&view)
	f.Secret = secret
	return c.answer(http.StatusOK, &f)
}

func (c *call) changeHook() error {
	var w wantedHook
	ask, err := read(c, hookChange, &w)
	if err == nil && w.site != nil && *w.site != "" {
		err = c.knownSites(service.NewSiteSet([]string{*w.site}))
	}
	if err != nil {
		return err
	}
	return c.changed(ask, func(h *service.Hook) (string, error) {
		if err := c.fill(h, &w); err != nil {
			return "", err
		}
		var target courier.Target
		if w.url == nil && w.form == "" {
			return "", nil
		}
		target, err := c.courier.Open(h.ID, h.Sealed)
		if err != nil && w.url == nil {
			return "", err
		}
		if w.url != nil {
			target.URL = *w.url
		}
		if h.Form == service.WebhookForm && len(target.Secrets) == 0 {
			target.Secrets = []courier.Secret{{Key: newSecret()}}
			return notice.Secret(target.Secrets[0].Key), c.aim(h, &target)
		}
		return "", c.aim(h, &target)
	})
}

// rotateHook gives a hook another secret. The one before signs beside it for a day.
func (c *call) rotateHook() error {
	ask, err := c.ask()
	if err != nil {
		return err
	}
	now := c.Now()
	return c.changed(ask, func(h *service.Hook) (string, error) {
		target, err := c.courier.Open(h.ID, h.Sealed)
		switch {
		case err != nil:
			return "", err
		case h.Form != service.WebhookForm:
			return "", berth.Errorf(berth.Conflict, "hook", "form %s has no secret", h.Form)
		}
		key := newSecret()
		secrets := []courier.Secret{{Key: key}}
		if len(target.Secrets) > 0 {
			secrets = append(secrets, courier.Secret{Key: target.Secrets[0].Key, Until: now.Add(keptBeside)})
		}
		target.Secrets, h.Rotated = secrets, now
		return notice.Secret(key), c.aim(h, &target)
	})
}

// done answers with nothing where something was done.
func (c *call) done(err error) error {
	if err == nil {
		c.w.WriteHeader(http.StatusNoContent)
	}
	return err
}

func (c *call) removeHook() error {
	ask, err := c.ask()
	if err != nil {
		return err
	}
	return c.done(c.RemoveHook(c.r.Context(), ask, c.r.PathValue("id")))
}

func (c *call) testHook() error {
	ask, err := c.ask()
	if err == nil {
		err = c.takesHooks()
	}
	if err != nil {
		return err
	}
	return c.done(c.TestHook(c.r.Context(), ask, c.r.PathValue("id")))
}

// maxResent is how many notices one call sends again, by their ids.
const maxResent = 1000

// resent is the ids of notices that are to be sent again.
type resent struct{ ids []string }

var resendBody = body[resent]{
	{"notices", "The ids of the notices, at most 1000; all dead letters if they are not given.", listOf(text("evt_4711-1795262400_1f2e3d4c5b6a7988")), func(r *resent, v value) (err error) {
		switch r.ids, err = v.texts(); {
		case err != nil:
			return err
		case len(r.ids) == 0:
			return errors.New("an empty list; want the ids of some notices, or leave it out")
		case len(r.ids) > maxResent:
			return fmt.Errorf("%d notices; want at most %d at a time, or leave it out for all dead letters", len(r.ids), maxResent)
		}
		return nil
	}},
}

func (c *call) resendHook() error {
	var w resent
	ask, err := read(c, resendBody, &w)
	if err == nil {
		err = c.takesHooks()
	}
	if err != nil {
		return err
	}
	id := c.r.PathValue("id")
	var numbers []uint64
	var wrong faults
	for _, text := range w.ids {
		number, err := noticeNumber(id, text)
		wrong.add("notices", err)
		numbers = append(numbers, number)
	}
	if len(wrong) > 0 {
		return wrong.err()
	}
	if err := c.areNotices(id, w.ids); err != nil {
		return err
	}
	return c.done(c.Resend(c.r.Context(), ask, id, numbers))
}

// areNotices refuses ids whose number another notice has, since that of their time was lost with a journal that a backup replaced.
func (c *call) areNotices(hook string, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	d, err := c.Deliveries(c.r.Context(), c.by, hook)
	if err != nil {
		return err
	}
	for _, list := range [][]*service.Owed{d.Owed, d.Dead, d.Done} {
		for _, o := range list {
			is := noticeID(hook, o.Number, o.NamedAt())
			if at := slices.IndexFunc(ids, func(id string) bool {
				number, err := noticeNumber(hook, id)
				return err == nil && number == o.Number && id != is
			}); at >= 0 {
				return berth.Errorf(berth.NotFound, "notices", "%s is no notice of this hook; want one that it has, such as %s", ids[at], is)
			}
		}
	}
	return nil
}

func (c *call) deliveries() error {
	id := c.r.PathValue("id")
	d, err := c.Deliveries(c.r.Context(), c.by, id)
	if err != nil {
		return err
	}
	f := form.Deliveries{Deliveries: []form.Delivery{}}
	for _, list := range [][]*service.Owed{d.Owed, d.Dead, d.Done} {
		for _, o := range list {
			f.Deliveries = append(f.Deliveries, delivery(id, o))
		}
	}
	slices.SortStableFunc(f.Deliveries, func(a, b form.Delivery) int { return cmp.Compare(a.At, b.At) })
	return c.answer(http.StatusOK, &f)
}

func delivery(hook string, o *service.Owed) form.Delivery {
	f := form.Delivery{ID: noticeID(hook, o.Number, o.NamedAt()), Kind: string(o.Kind), At: form.TimeOf(o.At), State: "waiting", Tries: triesOf(o)}
	if r, is := o.Reservation(); is {
		f.Reservation = r.ID
	}
	if o.Flow != nil {
		f.Workflow = o.Flow.ID
	}
	switch {
	case o.Dead:
		f.State = "dead"
	case o.Done != 0:
		f.State = "delivered"
	default:
		if at, more := o.Next(); more {
			f.Next = form.TimeOf(at)
		}
	}
	return f
}

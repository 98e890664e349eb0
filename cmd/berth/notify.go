package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/internal/hpctime"
	"github.com/berth-hpc/berth/notice"
)

// notifyCommand returns berth notify.
func (a *app) notifyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "notify", Short: "Have programs, chats and e-mail told of your reservations",
		Long: `Receivers of notices: addresses that are told, with POST or by e-mail, when something happens
to your reservations and workflows, or is about to. docs/notices.md says what they are sent and
how they check the signature.`,
	}
	cmd.AddCommand(a.notifyAdd(), a.notifyList(), a.notifyShow(), a.notifyChange(), a.notifyTest(), a.notifyRotate(), a.notifyResend(), a.notifyRemove())
	return cmd
}

// hookFlags are what a receiver is, as flags say it.
type hookFlags struct {
	url, site, note, text string
	chat                  bool
	kinds                 []string
	starts, ends, unused  berth.Duration
}

func (h *hookFlags) add(cmd *cobra.Command) {
	var names, abouts []string
	for _, k := range notice.Kinds() {
		names = append(names, string(k.Kind))
		abouts = append(abouts, string(k.Kind)+": "+k.About)
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.Var(&list{value: &h.kinds, what: "kind", names: names, all: "all"}, "kinds", "what it is told, with commas between, or all (default: moved,degraded,lost,unused,ending,deadline):\n  "+strings.Join(abouts, "\n  "))
	complete(cmd, "kinds", append(names, "all"))
	f.StringVar(&h.site, "site", "", "only what has to do with the site `NAME`")
	f.StringVar(&h.text, "text", "", "the `TEXT` of a chat, with values in braces: {"+strings.Join(notice.Placeholders(), "} {")+"}")
	f.Var(&span{value: &h.starts}, "starts", "how long before its start a promise is told of as starting (default: 15m)")
	f.Var(&span{value: &h.ends}, "ends", "how long before its end a promise is told of as ending (default: 10m)")
	f.Var(&span{value: &h.unused}, "unused", "how long after its start a promise in which nothing runs is told of (default: 10m)")
	f.StringVar(&h.note, "note", "", "what it is for (`TEXT`), for people")
}

// change returns what the flags say that were given.
func (h *hookFlags) change(cmd *cobra.Command) client.HookChange {
	c := client.HookChange{Kinds: h.kinds}
	text := func(flag string, value *string) *string {
		if cmd.Flags().Changed(flag) {
			return value
		}
		return nil
	}
	length := func(flag string, value *berth.Duration) *berth.Duration {
		if cmd.Flags().Changed(flag) {
			return value
		}
		return nil
	}
	c.URL, c.Site, c.Text, c.Note = text("url", &h.url), text("site", &h.site), text("text", &h.text), text("note", &h.note)
	c.Starts, c.Ends, c.Unused = length("starts", &h.starts), length("ends", &h.ends), length("unused", &h.unused)
	return c
}

func (a *app) notifyAdd() *cobra.Command {
	var r *remote
	var h hookFlags
	cmd := &cobra.Command{
		Use:   "add URL|ADDRESS",
		Short: "Add a receiver of notices and print its secret, once",
		Long: `Adds a receiver of notices: an address that is sent messages of Standard Webhooks, signed
with the secret that is printed to stdout, with --chat an incoming webhook of Slack or
Mattermost, which is sent texts, or an address of e-mail.`,
		Example: `  berth notify add ann@example.org
  berth notify add https://hooks.example.org/berth --kinds granted,moved,lost,ended
  berth notify add https://chat.example.org/hooks/x1y2z3 --chat --kinds all --text "{link} {kind} at {site}, {start}"`,
		Args: one("URL or address of e-mail that notices are sent to"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			in := h.change(cmd)
			to := receiverURL(args[0])
			if in.URL = &to; h.chat {
				in.Form = "chat"
			}
			made, err := c.AddHook(ctx, in)
			switch {
			case err != nil:
				return err
			case r.format == "json":
				return printForm(a.stdout, &made)
			}
			a.say("receiver %s at %s is told: %s", made.ID, made.Host, strings.Join(made.Kinds, ", "))
			a.say("try it: berth notify test %s", made.ID)
			if made.Secret == "" {
				return nil
			}
			return a.show(made.Secret + "\n")
		},
	}
	cmd.Flags().BoolVar(&h.chat, "chat", false, "an incoming webhook of Slack or Mattermost")
	h.add(cmd)
	r = remoteFlags(cmd)
	return cmd
}

// receiverURL returns the URL of a receiver, of an address of e-mail too.
func receiverURL(text string) string {
	if strings.Contains(text, "@") && !strings.ContainsAny(text, ":/") {
		return "mailto:" + text
	}
	return text
}

// hookState says how a receiver is.
func hookState(h *form.Hook) string {
	switch {
	case h.Disabled != "":
		return "disabled"
	case h.Failing != 0:
		return "fails"
	}
	return "works"
}

func (a *app) notifyList() *cobra.Command {
	var r *remote
	cmd := &cobra.Command{
		Use: "list", Short: "List your receivers of notices, for operators those of all users", Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			hooks, err := c.Hooks(ctx)
			switch {
			case err != nil:
				return err
			case r.format == "json":
				return printForm(a.stdout, form.Hooks{Hooks: hooks})
			case r.format == "csv":
				return hookRows(a.stdout, hooks)
			}
			out := newTable("receivers")
			out.AppendHeader(table.Row{"id", "user", "form", "host", "kinds", "site", "state", "waiting", "dead", "note"})
			for i := range hooks {
				h := &hooks[i]
				out.AppendRow(table.Row{h.ID, h.User, h.Form, h.Host, strings.Join(h.Kinds, " "), orDash(h.Site), hookState(h), h.Waiting, h.Dead, orDash(h.Note)})
			}
			if err := a.show(out.Render() + "\n"); err != nil {
				return err
			}
			for i := range hooks {
				if h := &hooks[i]; h.Disabled != "" {
					a.say("%s is disabled: %s. berth notify change %s --enable enables it again", h.ID, h.Disabled, h.ID)
				} else if h.Failing != 0 && h.Last != nil {
					a.say("%s fails since %s: %s", h.ID, localTime(h.Failing), h.Last.Trouble)
				}
			}
			return nil
		},
	}
	r = listFlags(cmd)
	return cmd
}

// hookRows writes a row for each receiver.
func hookRows(w io.Writer, hooks []form.Hook) error {
	rows := make([][]string, len(hooks))
	for i := range hooks {
		h := &hooks[i]
		rows[i] = []string{h.ID, h.User, h.Form, h.Host, strings.Join(h.Kinds, " "), h.Site, timeCell(h.Created), h.Disabled, timeCell(h.Failing), strconv.Itoa(h.Waiting), strconv.Itoa(h.Dead), h.Note}
	}
	return printRows(w, []string{"id", "user", "form", "host", "kinds", "site", "created", "disabled", "failing", "waiting", "dead", "note"}, rows)
}

var wantHook = one("ID of a receiver, as berth notify list has them")

func (a *app) notifyShow() *cobra.Command {
	var r *remote
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show the notices of a receiver: what waits, dead letters, what was delivered", Args: wantHook,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			list, err := c.Deliveries(ctx, args[0])
			switch {
			case err != nil:
				return err
			case r.format == "json":
				return printForm(a.stdout, form.Deliveries{Deliveries: list})
			case r.format == "csv":
				return deliveryRows(a.stdout, list)
			}
			out := newTable("notices")
			out.AppendHeader(table.Row{"id", "kind", "about", "at", "state", "tries", "next", "last answer"})
			for i := range list {
				d := &list[i]
				out.AppendRow(table.Row{d.ID, d.Kind, orDash(d.Reservation + d.Workflow), localTime(d.At), d.State, len(d.Tries), orDash(localTime(d.Next)), lastAnswer(d)})
			}
			return a.show(out.Render() + "\n")
		},
	}
	r = listFlags(cmd)
	return cmd
}

func lastAnswer(d *form.Delivery) string {
	if len(d.Tries) == 0 {
		return "-"
	}
	last := &d.Tries[len(d.Tries)-1]
	switch {
	case last.Trouble != "":
		return last.Trouble
	case last.Status == 0:
		return "not sent: its user may not see it any more"
	}
	return strconv.Itoa(last.Status)
}

// deliveryRows writes a row for each notice.
func deliveryRows(w io.Writer, list []form.Delivery) error {
	rows := make([][]string, len(list))
	for i := range list {
		d := &list[i]
		rows[i] = []string{d.ID, d.Kind, d.Reservation, d.Workflow, timeCell(d.At), d.State, strconv.Itoa(len(d.Tries)), timeCell(d.Next), lastAnswer(d)}
	}
	return printRows(w, []string{"id", "kind", "reservation", "workflow", "at", "state", "tries", "next", "answer"}, rows)
}

func (a *app) notifyChange() *cobra.Command {
	var r *remote
	var h hookFlags
	var enable, disable bool
	cmd := &cobra.Command{
		Use: "change ID", Short: "Change a receiver, disable it, or enable it again", Args: wantHook,
		Example: "  berth notify change 1f2e3d4c5b6a7988 --kinds all\n  berth notify change 1f2e3d4c5b6a7988 --enable",
		RunE: func(cmd *cobra.Command, args []string) error {
			h.url = receiverURL(h.url)
			in := h.change(cmd)
			switch {
			case enable && disable:
				return usagef(cmd, "--enable: given beside --disable; want one of the two")
			case enable || disable:
				in.Enabled = &enable
			}
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			changed, err := c.ChangeHook(ctx, args[0], in)
			switch {
			case err != nil:
				return err
			case r.format == "json":
				return printForm(a.stdout, &changed)
			}
			a.say("receiver %s at %s is told: %s", changed.ID, changed.Host, strings.Join(changed.Kinds, ", "))
			return nil
		},
	}
	cmd.Flags().BoolVar(&enable, "enable", false, "enable it again; what it missed is told as a gap")
	cmd.Flags().BoolVar(&disable, "disable", false, "send it nothing until it is enabled")
	cmd.Flags().StringVar(&h.url, "url", "", "another `URL`, or address of e-mail")
	h.add(cmd)
	r = remoteFlags(cmd)
	return cmd
}

// testWait is for how long a test is waited for: longer than a receiver may take.
const testWait = 35 * time.Second

func (a *app) notifyTest() *cobra.Command {
	var r *remote
	cmd := &cobra.Command{
		Use: "test ID", Short: "Send a receiver a test and say what it answers", Args: wantHook,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			before, err := c.Deliveries(ctx, args[0])
			if err != nil {
				return err
			}
			known := map[string]bool{}
			for i := range before {
				known[before[i].ID] = true
			}
			if err := c.TestHook(ctx, args[0]); err != nil {
				return err
			}
			for until := time.Now().Add(testWait); time.Now().Before(until); {
				list, err := c.Deliveries(ctx, args[0])
				if err != nil {
					return err
				}
				for i := range list {
					d := &list[i]
					if d.Kind != string(notice.Test) || known[d.ID] || len(d.Tries) == 0 {
						continue
					}
					switch d.State {
					case "dead":
						return berth.Errorf(berth.Unavailable, "receiver", "%s; it is not tried again", lastAnswer(d))
					case "waiting":
						return berth.Errorf(berth.Unavailable, "receiver", "%s; it is tried again", lastAnswer(d))
					}
					a.say("it has arrived: %s", lastAnswer(d))
					return nil
				}
				select {
				case <-time.After(100 * time.Millisecond):
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return berth.Errorf(berth.Unavailable, "receiver", "the test waits behind other notices; berth notify show %s says what came of it", args[0])
		},
	}
	r = serviceFlags(cmd)
	return cmd
}

func (a *app) notifyRotate() *cobra.Command {
	var r *remote
	cmd := &cobra.Command{
		Use: "rotate ID", Short: "Give a receiver another secret and print it, once", Args: wantHook,
		Long: `Gives a receiver another secret and prints it to stdout. For a day notices are signed with
the secret before too, so that the receiver can change over meanwhile.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			h, err := c.RotateHook(ctx, args[0])
			switch {
			case err != nil:
				return err
			case r.format == "json":
				return printForm(a.stdout, &h)
			}
			a.say("receiver %s: the secret before is good for %s more", h.ID, hpctime.Format(86_400))
			return a.show(h.Secret + "\n")
		},
	}
	r = remoteFlags(cmd)
	return cmd
}

func (a *app) notifyResend() *cobra.Command {
	var r *remote
	cmd := &cobra.Command{
		Use: "resend ID [NOTICE...]", Short: "Send dead letters of a receiver again, or some notices",
		Example: "  berth notify resend 1f2e3d4c5b6a7988\n  berth notify resend 1f2e3d4c5b6a7988 evt_4711-1795262400_1f2e3d4c5b6a7988",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef(cmd, "want the ID of a receiver, as berth notify list has them")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			if err := c.ResendHook(ctx, args[0], args[1:]); err != nil {
				return err
			}
			what := "all dead letters are"
			if n := len(args) - 1; n > 0 {
				what = fmt.Sprintf("%d notices are", n)
			}
			a.say("%s again on the way; berth notify show %s", what, args[0])
			return nil
		},
	}
	r = serviceFlags(cmd)
	return cmd
}

func (a *app) notifyRemove() *cobra.Command {
	var r *remote
	cmd := &cobra.Command{
		Use: "remove ID", Short: "Remove a receiver with the notices that it was not sent", Args: wantHook,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			if err := c.RemoveHook(ctx, args[0]); err != nil {
				return err
			}
			a.say("receiver %s is told no more", args[0])
			return nil
		},
	}
	r = serviceFlags(cmd)
	return cmd
}

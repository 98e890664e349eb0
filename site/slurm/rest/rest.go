// Package rest asks slurmrestd what Slurm's commands would be asked, and answers in their
// words and forms, so that whatever reads the commands reads it too. It speaks API v0.0.45,
// of Slurm 26.05, the first with which everything can be asked that Berth asks. It submits
// no jobs: those are of users, who have the commands.
package rest

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/berth-hpc/berth/site/slurm"
)

// API is a slurmrestd. It serves several callers at once.
type API struct {
	wire  *wire
	wrong error // of the options
	now   func() time.Time

	mu      sync.Mutex
	threads map[string]int // of a core, by node, as last heard
}

var _ slurm.Exec = (*API)(nil)

// Options says where slurmrestd is.
type Options struct {
	// Address is unix:///run/slurmrestd.socket, https://HOST:PORT or, on this machine,
	// http://127.0.0.1:PORT.
	Address string
	// JWT is the path of a file with a JSON web token, as scontrol token writes it. It is read
	// for each question, so that it can be renewed without notice. Empty asks without one, which a
	// Unix socket takes from its own user (rest_auth/local).
	JWT string
	// CA is the path of a file in PEM with the certificate of the authority, or authorities, that alone may
	// vouch for an https address. It is read for each connection. Empty takes those of the machine.
	CA string
}

// New returns an API. It asks nothing yet. With options that Check refuses it refuses every question, in the
// same words.
func New(o Options) *API {
	w, err := newWire(o)
	return &API{wire: w, wrong: err, now: time.Now, threads: map[string]int{}}
}

// Check tells which of the options cannot be right, by a *berth.Error with the name of its key in a sites file.
func Check(o Options) error {
	_, err := newWire(o)
	return err
}

// asked is a question in the words of a command: those that do not begin with a dash, the
// values of its options, and its pairs Key=Value.
type asked struct {
	words   []string
	options map[string]string
	pairs   []pair
}

type pair struct{ key, value string }

func parse(args []string) asked {
	q := asked{options: map[string]string{}}
	for _, arg := range args {
		switch key, value, both := strings.Cut(arg, "="); {
		case strings.HasPrefix(arg, "-"):
			q.options[key] = value
		case both:
			q.pairs = append(q.pairs, pair{key, value})
		default:
			q.words = append(q.words, arg)
		}
	}
	return q
}

// value returns what a pair says, and nothing if there is no such pair.
func (q *asked) value(key string) string {
	for _, p := range q.pairs {
		if p.key == key {
			return p.value
		}
	}
	return ""
}

// Run answers for scontrol, squeue, scancel and sdiag as slurm.Site starts them, and for id: whom
// the token is of. Its CPU time is how long slurmrestd took, which works for us meanwhile. An answer of
// slurmrestd that is an error is one of the command, in Slurm's words; that slurmrestd cannot be reached
// is one too, since nothing was done then. The error says that what was asked for may have been done.
func (a *API) Run(ctx context.Context, c slurm.Command) (slurm.Result, error) {
	name, q := path.Base(c.Argv[0]), parse(c.Argv[1:])
	began := a.now()
	text, err := a.answer(ctx, name, c, &q)
	if ctx.Err() != nil {
		return slurm.Result{}, ctx.Err()
	}
	result := slurm.Result{Stdout: text, CPU: a.now().Sub(began)}
	if no, is := errors.AsType[*refusedError](err); is {
		result.Exit, result.Stderr = 1, no.words
		return result, nil
	}
	return result, err
}

// refusedError is what slurmrestd said no with, or why it was not asked: nothing was done.
type refusedError struct{ words string }

func (e *refusedError) Error() string { return e.words }

func refuse(format string, args ...any) error {
	return &refusedError{fmt.Sprintf(format, args...)}
}

func (a *API) answer(ctx context.Context, name string, c slurm.Command, q *asked) (string, error) {
	if a.wrong != nil {
		return "", refuse("%v", a.wrong)
	}
	switch name {
	case "id":
		if slices.Equal(c.Argv[1:], []string{"-un"}) && a.wire.token != "" {
			token, err := a.wire.readToken(a.now())
			return token.user + "\n", err
		}
		result, err := slurm.Host{}.Run(ctx, c) // groups and this process's user are this machine's
		if err == nil && result.Exit != 0 {
			err = refuse("%s", strings.TrimSpace(result.Stderr))
		}
		return result.Stdout, err
	case "sdiag":
		return a.clock(ctx)
	case "squeue":
		return a.queue(ctx, q)
	case "scancel":
		return "", a.cancel(ctx, q.words)
	case "scontrol":
		return a.control(ctx, q)
	}
	return "", notAsked(name)
}

// notAsked answers for what slurmrestd is not asked.
func notAsked(what string) error { return refuse("%s is not asked of slurmrestd", what) }

func (a *API) control(ctx context.Context, q *asked) (string, error) {
	what := strings.Join(q.words, " ")
	switch {
	case what == "ping":
		return a.ping(ctx)
	case what == "show config":
		return a.config(ctx)
	case what == "show node":
		return a.nodes(ctx)
	case what == "show partition":
		return a.partitions(ctx)
	case what == "show reservation":
		return a.reservations(ctx)
	case what == "show job":
		return a.details(ctx)
	case len(q.words) == 3 && strings.HasPrefix(what, "show job "):
		return a.job(ctx, q.words[2])
	case len(q.words) == 2 && q.words[0] == "release":
		return "", a.releaseJob(ctx, q.words[1])
	case what == "create reservation":
		return "", a.create(ctx, q)
	case what == "update" && q.value("JobId") != "":
		return "", a.updateJob(ctx, q)
	case what == "update" && q.value("NodeName") != "":
		return "", a.updateNode(ctx, q)
	case what == "update" && q.value("ReservationName") != "":
		return "", a.update(ctx, q)
	case what == "delete" && q.value("ReservationName") != "":
		return "", a.remove(ctx, q.value("ReservationName"))
	}
	return "", notAsked("scontrol " + what)
}

package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/api/laboratory"
	"github.com/berth-hpc/berth/internal/nearest"
	"github.com/berth-hpc/berth/lab"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/sites"
	"github.com/berth-hpc/berth/workload"
)

const (
	// logType is the media type of a log. A page of another site cannot have a browser send
	// it unasked.
	logType = "application/octet-stream"
	// logTime is how long a client may take to send a log: its largest, at 1 Mbit/s.
	logTime = 10 * time.Minute
	// bytesOfLogAtOnce is how much of a log is read for the price of one call.
	bytesOfLogAtOnce = 1 << 20

	maxSweeps       = 6
	maxSwept        = 64
	maxReplications = 100
	maxLabText      = 200
)

var logParams = []param{{"name", "What the log is called, whose ending tells its form: .swf, .jsonl, .jdl or .sacct, or one of them and .gz.", text("log.swf.gz")}}

// settled are the settings of a comparison, which are flags of berth lab: none that names a
// file, or what a program does with one.
var settled = []string{
	"jobs", "as", "reserve-share", "umed", "arrival-factor", "artime-factor", "deadline-factor", "estimates", "waiting-limit", "pes", "bind", "failures", "preset", "policy",
	"choice", "horizon", "order", "match", "trigger", "every", "immediate", "backfill", "compress", "staging", "unaware", "preempt", "run-times", "noise", "overrun", "extension",
}

// wantedComparison is a comparison that is asked for.
type wantedComparison struct {
	log          string
	past         *period // of the service
	settings     []lab.Setting
	sweeps       []lab.Dimension
	replications int64
	seed         int64
	baseline     string
}

// period is a time of the past: all of it where nothing is given.
type period struct{ from, to *berth.Time }

var periodBody = body[period]{
	{"from", "Only what was requested at or after this time.", instant(), func(p *period, v value) error {
		t, err := v.instant(up)
		p.from = &t
		return err
	}},
	{"to", "Only what was requested before this time.", instant(), func(p *period, v value) error {
		t, err := v.instant(down)
		p.to = &t
		return err
	}},
}

var sweepBody = body[lab.Dimension]{
	{"name", "A setting.", oneOf(settled...), func(d *lab.Dimension, v value) (err error) {
		d.Name, err = v.settingName()
		return err
	}},
	{"values", "Its values, or all alone for every name that there is.", listOf(text("pe-worst")), func(d *lab.Dimension, v value) error {
		items, err := v.items()
		if err != nil {
			return err
		}
		if len(items) == 0 || len(items) > maxSwept {
			return fmt.Errorf("%d values; want 1 to %d", len(items), maxSwept)
		}
		for i, item := range items {
			text, err := item.setting()
			if err != nil {
				return berth.Errorf(berth.Invalid, fmt.Sprintf("[%d]", i), "%v", err)
			}
			d.Values = append(d.Values, text)
		}
		return nil
	}},
}

var compareBody = body[wantedComparison]{
	{"log", "The id of a log that was sent. Without it the comparison is about what was requested of this service.", text("k3vq7d2m-1"), func(w *wantedComparison, v value) (err error) {
		w.log, err = v.word()
		return err
	}},
	{"journal", "Which of the service's own past is replayed: of users what they requested, of operators what everybody did.", object(periodBody), func(w *wantedComparison, v value) error {
		w.past = &period{}
		var wrong faults
		periodBody.read(v, w.past, &wrong)
		return wrong.err()
	}},
	{"settings", "What is the same in all runs, by the names of the flags of berth lab.", &schema{Type: "object", AdditionalProperties: text("")}, func(w *wantedComparison, v value) error {
		members, err := membersOf(v)
		if err != nil {
			return err
		}
		var wrong faults
		for i := range members {
			name, err := value(fmt.Sprintf("%q", members[i].name)).settingName()
			if err != nil {
				wrong.add("", err)
				continue
			}
			text, err := members[i].value.setting()
			if slices.ContainsFunc(w.settings, func(s lab.Setting) bool { return s.Name == name }) {
				err = errors.New("given twice")
			}
			wrong.add(name, err)
			w.settings = append(w.settings, lab.Setting{Name: name, Value: text})
		}
		return wrong.err()
	}},
	{"sweep", "What is compared: every combination of the values of these settings.", listOf(object(sweepBody)), func(w *wantedComparison, v value) error {
		items, err := v.items()
		if err != nil {
			return err
		}
		if len(items) == 0 || len(items) > maxSweeps {
			return fmt.Errorf("%d settings; want 1 to %d, such as policy with first-fit and pe-worst", len(items), maxSweeps)
		}
		return each(v, func(item value, wrong *faults) {
			var d lab.Dimension
			sweepBody.read(item, &d, wrong)
			if len(*wrong) == 0 && (d.Name == "" || d.Values == nil) {
				wrong.add("", errors.New("incomplete; want name and values"))
			}
			w.sweeps = append(w.sweeps, d)
		})
	}},
	{"replications", "With how many seeds each is repeated; 1 has no intervals, and is taken if it is not given.", whole(1, maxReplications), func(w *wantedComparison, v value) (err error) {
		w.replications, err = v.whole(1, maxReplications)
		return err
	}},
	{"seed", "The first seed; 1 if it is not given.", whole(0, 1<<53), func(w *wantedComparison, v value) (err error) {
		w.seed, err = v.whole(0, 1<<53)
		return err
	}},
	{"baseline", "What the others are compared with, as berth lab --baseline has it.", text("first-fit"), func(w *wantedComparison, v value) (err error) {
		w.baseline, err = v.setting()
		return err
	}},
}

// settingName reads the name of a setting.
func (v value) settingName() (string, error) {
	name, err := v.word()
	if err == nil && !slices.Contains(settled, name) {
		err = errors.New(nearest.Unknown("setting", name, settled))
	}
	return name, err
}

// setting reads a value of a setting, which may be a number or a truth too.
func (v value) setting() (string, error) {
	text := string(v)
	if v[0] == '"' {
		var err error
		if text, err = v.word(); err != nil {
			return "", err
		}
	} else if v[0] == '{' || v[0] == '[' || v.null() {
		return "", fmt.Errorf("%s; want a string, a number, true or false", v.short())
	}
	if text == "" || len(text) > maxLabText {
		return "", fmt.Errorf("%d bytes; want 1 to %d", len(text), maxLabText)
	}
	return text, nil
}

// opened returns the laboratory, or why there is none.
func (c *call) opened() (*laboratory.Laboratory, error) {
	if c.lab == nil {
		return nil, berth.Errorf(berth.Unavailable, "", "this service has no laboratory; compare with berth lab")
	}
	return c.lab, nil
}

// all reports whether the caller may see the comparisons of other users.
func (c *call) all() bool { return c.by.Can(service.Operator) && c.by.Sites.All() }

func (c *call) laboratory() error {
	l, err := c.opened()
	if err != nil {
		return err
	}
	f := form.Laboratory{Comparisons: []form.Comparison{}, Logs: []form.Log{}, MaxBytes: laboratory.MaxUpload, KeptSeconds: int64(laboratory.Keep / time.Second)}
	for _, j := range l.Jobs(c.by.User, c.all()) {
		f.Comparisons = append(f.Comparisons, comparisonOf(&j))
	}
	for _, u := range l.Uploads(c.by.User) {
		f.Logs = append(f.Logs, logOf(&u))
	}
	return c.answer(http.StatusOK, &f)
}

func logOf(u *laboratory.Upload) form.Log {
	return form.Log{ID: u.ID, Name: u.Name, Bytes: u.Bytes, Expires: timeOf(u.Expires)}
}

func timeOf(t time.Time) form.Time {
	if t.IsZero() {
		return 0
	}
	return form.TimeOf(berth.Time(t.Unix()))
}

func comparisonOf(j *laboratory.Job) form.Comparison {
	return form.Comparison{
		ID: j.ID, User: j.User, State: string(j.State), Log: j.Source, Done: j.Step.Done, Runs: j.Step.Runs, Command: shellLine(j.Command), Notes: j.Notes, Trouble: j.Trouble,
		Made: timeOf(j.Made), Started: timeOf(j.Started), Ended: timeOf(j.Ended), Expires: timeOf(j.Expires), Files: j.Files,
	}
}

// shellLine writes a command as it is typed.
func shellLine(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = word
		if word == "" || strings.ContainsFunc(word, special) {
			quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// special reports whether a letter may mean something to a shell.
func special(r rune) bool {
	plain := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_=.,:/+@%", r)
	return !plain
}

// sendLog keeps a log, which goes to a file as it comes.
func (c *call) sendLog() error {
	l, err := c.opened()
	if err != nil {
		return err
	}
	query, err := c.query(logParams)
	if err != nil {
		return err
	}
	name := query["name"]
	if name == "" || len(name) > maxText {
		return berth.Errorf(berth.Invalid, "name", "%d bytes; want what the log is called, such as log.swf.gz", len(name))
	}
	if kind, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type")); err != nil || kind != logType {
		return &statusError{http.StatusUnsupportedMediaType, berth.Errorf(berth.Invalid, "Content-Type", "%.100q; want %s", c.r.Header.Get("Content-Type"), logType)}
	}
	if c.r.ContentLength > laboratory.MaxUpload {
		return tooLargeLog()
	}
	control := http.NewResponseController(c.w)
	_ = control.SetReadDeadline(time.Now().Add(logTime)) // a recorder of a test has none
	_ = control.SetWriteDeadline(time.Now().Add(logTime + time.Minute))
	u, err := l.Upload(c.by.User, name, &sent{from: c.r.Body})
	_ = control.SetReadDeadline(time.Time{})
	if coded, is := errors.AsType[*berth.Error](err); is && coded.Field == laboratory.TooLarge().Field {
		return tooLargeLog()
	}
	if err != nil {
		return err
	}
	c.rates.charge(c.asker(), int(u.Bytes/bytesOfLogAtOnce))
	f := logOf(&u)
	return c.answer(http.StatusCreated, &f)
}

func tooLargeLog() error {
	return &statusError{http.StatusRequestEntityTooLarge, laboratory.TooLarge()}
}

// sent tells what goes wrong with a sender apart from what goes wrong with us.
type sent struct{ from io.Reader }

func (s *sent) Read(into []byte) (int, error) {
	n, err := s.from.Read(into)
	if err != nil && !errors.Is(err, io.EOF) {
		err = &statusError{http.StatusRequestTimeout, berth.Errorf(berth.Invalid, "body", "cut off or not sent within %s", logTime)}
	}
	return n, err
}

// compare begins a comparison.
func (c *call) compare() error {
	l, err := c.opened()
	if err != nil {
		return err
	}
	w := wantedComparison{replications: 1, seed: 1}
	var wrong faults
	compareBody.read(c.body, &w, &wrong)
	if w.log != "" && w.past != nil {
		wrong.add("journal", errors.New("beside log; want one of them"))
	}
	if len(w.sweeps) == 0 && !slices.ContainsFunc(wrong, func(e *berth.Error) bool { return strings.HasPrefix(e.Field, "sweep") }) {
		wrong.add("sweep", errors.New("missing; want what is compared, such as policy with first-fit and pe-worst"))
	}
	for i := range w.sweeps {
		name := w.sweeps[i].Name
		if slices.ContainsFunc(w.settings, func(s lab.Setting) bool { return s.Name == name }) {
			wrong.add("settings."+name, errors.New("compared too; want one of them"))
		}
	}
	if w.log == "" && w.has("pes") {
		wrong.add("settings.pes", errors.New("the machine is that of the service; want no pes"))
	}
	if err := wrong.err(); err != nil {
		return err
	}
	wanted := laboratory.Wanted{User: c.by.User, Upload: w.log, Flags: w.flags()}
	if w.log == "" {
		wanted.Prepare = c.past(&w)
	}
	j, err := l.Start(wanted)
	if err != nil {
		return err
	}
	c.log.Info("comparison", "id", j.ID, "user", j.User)
	f := comparisonOf(&j)
	return c.answer(http.StatusCreated, &f)
}

// has reports whether a setting is given or compared.
func (w *wantedComparison) has(name string) bool {
	return slices.ContainsFunc(w.settings, func(s lab.Setting) bool { return s.Name == name }) ||
		slices.ContainsFunc(w.sweeps, func(d lab.Dimension) bool { return d.Name == name })
}

// flags returns what is asked for as flags of berth lab. Their values are behind an equals
// sign, where none is taken for another flag.
func (w *wantedComparison) flags() []string {
	var flags []string
	for _, s := range w.settings {
		flags = append(flags, "--"+s.Name+"="+s.Value)
	}
	for _, d := range w.sweeps {
		flags = append(flags, "--sweep="+d.Name+"="+lab.JoinValues(d.Values))
	}
	// Where nothing is drawn berth lab refuses a seed.
	if w.replications > 1 {
		flags = append(flags, fmt.Sprintf("--replications=%d", w.replications))
	}
	if w.seed != 1 {
		flags = append(flags, fmt.Sprintf("--seed=%d", w.seed))
	}
	if w.baseline != "" {
		flags = append(flags, "--baseline="+w.baseline)
	}
	return flags
}

// past returns a function that writes two files for a comparison: the requests that the
// service received, without those that the caller may not see, and the sites as they are now.
func (c *call) past(w *wantedComparison) func(context.Context, func(string) (io.WriteCloser, error)) ([]string, error) {
	from, to := berth.Time(0), berth.Forever
	if w.past != nil && w.past.from != nil {
		from = *w.past.from
	}
	if w.past != nil && w.past.to != nil {
		to = *w.past.to
	}
	preset := []string{"--preset=default"} // which is the service's
	if w.has("preset") {
		preset = nil
	}
	by, s, rates, who := c.by, c.Service, c.rates, c.asker()
	return func(ctx context.Context, create func(string) (io.WriteCloser, error)) ([]string, error) {
		views, err := s.Sites(ctx, by)
		if err != nil {
			return nil, err
		}
		requests, looked, err := s.Asked(ctx, by, from, to)
		rates.charge(who, looked/lookedAtOnce)
		if err != nil {
			return nil, err
		}
		if len(requests) == 0 {
			return nil, berth.Errorf(berth.NotFound, "journal", "nothing was requested in that time that you may see; take a longer time, or send a log")
		}
		list := make([]berth.Site, len(views))
		for i := range views {
			list[i] = views[i].Site
		}
		write := func(name string, how func(io.Writer) error) error {
			file, err := create(name)
			if err != nil {
				return err
			}
			return errors.Join(how(file), file.Close())
		}
		err = errors.Join(
			write(laboratory.HistoryFile, func(w io.Writer) error { return workload.WriteJSONL(w, requests) }),
			write(laboratory.SitesFile, func(w io.Writer) error { return sites.Write(w, list) }),
		)
		return append([]string{"--workload", laboratory.HistoryFile, "--sites", laboratory.SitesFile}, preset...), err
	}
}

func (c *call) comparison() error {
	l, err := c.opened()
	if err != nil {
		return err
	}
	j, err := l.Job(c.by.User, c.all(), c.r.PathValue("id"))
	if err != nil {
		return err
	}
	f := comparisonOf(&j)
	return c.answer(http.StatusOK, &f)
}

func (c *call) cancelComparison() error {
	l, err := c.opened()
	if err != nil {
		return err
	}
	j, err := l.Cancel(c.by.User, c.all(), c.r.PathValue("id"))
	if err != nil {
		return err
	}
	f := comparisonOf(&j)
	return c.answer(http.StatusOK, &f)
}

// maxAnswered bounds the files that are read into memory to be packed; larger ones are sent
// as they are.
const maxAnswered = 8 << 20

func (c *call) comparisonResults() error { return c.labFile("summary.json", "application/json") }

// labTypes are the media types of the files of a report by their endings.
var labTypes = map[string]string{
	".csv": "text/csv; charset=utf-8", ".svg": "image/svg+xml", ".html": "text/html; charset=utf-8", ".json": "application/json", ".jsonl": "application/x-ndjson", ".yaml": "application/yaml",
}

func (c *call) comparisonFile() error {
	name := c.r.PathValue("name")
	h := c.w.Header()
	// What a user called a log stands in a report: it is shown as what it is and runs nothing.
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox")
	if ending := filepath.Ext(name); ending != ".svg" {
		h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	}
	if err := c.labFile(name, labTypes[filepath.Ext(name)]); err != nil {
		h.Del("Content-Security-Policy")
		h.Del("Content-Disposition")
		return err
	}
	return nil
}

// labFile answers with a file of a comparison.
func (c *call) labFile(name, kind string) error {
	l, err := c.opened()
	if err != nil {
		return err
	}
	file, err := l.File(c.by.User, c.all(), c.r.PathValue("id"), name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // only read from: nothing can be lost
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Size() > maxAnswered {
		c.w.Header().Set("Content-Type", kind)
		c.w.WriteHeader(http.StatusOK)
		_, _ = io.Copy(c.w, file) // who has gone need not be told
		return nil
	}
	data, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	return c.send(http.StatusOK, kind, data)
}

package api

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/hpctime"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/hostlist"
)

// asked is a request as it was read: fields that were not given are nil. A null
// stands for the default, so it is as if it had not been given, and cleared.
type asked struct {
	berth.Request
	array    int     // how many such requests; 0 is one that is no array
	part     block   // of the request itself
	parts    []block // or its parts
	ready    when
	deadline when
}

// when is a time, or how long after the service has decided it is.
type when struct {
	at *berth.Time
	in *berth.Duration
}

// inField is the field that counts a time from when the service decides, instead of another field.
func inField[T any](name, about string, least berth.Duration, of func(*T) *when) field[T] {
	return field[T]{name + "_in", about + ", instead of " + name + ".", duration(), func(a *T, v value) error {
		d, err := v.length(least)
		of(a).in = &d
		return err
	}}
}

// count sets a time that is counted from now.
func (w *when) count(name string, now berth.Time, wrong *faults) {
	if w.in == nil {
		return
	}
	if w.at != nil {
		wrong.add(name+"_in", fmt.Errorf("given beside %s; want one of the two", name))
	}
	w.at = new(now.Add(*w.in))
}

// fromNow says which times are counted from when the service decides.
func (a *asked) fromNow() service.FromNow {
	return service.FromNow{Ready: a.ready.in != nil, Deadline: a.deadline.in != nil}
}

// count sets the times that are counted from now.
func (a *asked) count(now berth.Time, wrong *faults) {
	a.ready.count("ready", now, wrong)
	a.deadline.count("deadline", now, wrong)
}

// block is the shape of one part.
type block struct {
	npe      *berth.Count
	duration *berth.Duration
	variants []berth.Variant
	pes      *berth.PESet
	of       string // a constraint of this part
	names    berth.NodeNames
}

// shapeFields are what says how large and how long a part is.
func shapeFields[T any](of func(*T) *block) body[T] {
	return body[T]{
		{"npe", "How many PEs.", whole(1, berth.MaxPEs), func(a *T, v value) error {
			n, err := v.whole(1, berth.MaxPEs)
			of(a).npe = new(berth.Count(n))
			return err
		}},
		{"duration", "For how long.", duration(), func(a *T, v value) error {
			d, err := v.length(1)
			of(a).duration = &d
			return err
		}},
		{"variants", "Alternative shapes, instead of npe and duration.", listOf(object(variantBody)), func(a *T, v value) error {
			return each(v, func(item value, wrong *faults) {
				var variant berth.Variant
				variantBody.read(item, &variant, wrong)
				if len(*wrong) == 0 && (variant.NPE == 0 || variant.Duration == 0) {
					wrong.add("", errors.New("incomplete; want npe and duration"))
				}
				of(a).variants = append(of(a).variants, variant)
			})
		}},
		{"pes", "Only these PEs will do, such as 0-31,64-95; needs a pool of early binding.", text("0-31,64-95"), func(a *T, v value) error {
			if v.null() {
				of(a).pes = new(berth.PESet)
				return nil
			}
			set, err := v.peSet()
			of(a).pes = &set
			return err
		}},
	}
}

var variantBody = body[berth.Variant]{
	{"npe", "How many PEs.", whole(1, berth.MaxPEs), func(a *berth.Variant, v value) error {
		n, err := v.whole(1, berth.MaxPEs)
		a.NPE = berth.Count(n)
		return err
	}},
	{"duration", "For how long.", duration(), func(a *berth.Variant, v value) (err error) {
		a.Duration, err = v.length(1)
		return err
	}},
}

var partBody = append(append(shapeFields(func(b *block) *block { return b }), field[block]{
	"constraint", "Features that the PEs of this part have, beside those that all parts require.", text("gpu"), func(b *block, v value) (err error) {
		b.of, err = constraint(v)
		return err
	},
}), nodeFields(func(b *block) *berth.NodeNames { return &b.names })...)

// nodeFields are what names nodes.
func nodeFields[T any](of func(*T) *berth.NodeNames) body[T] {
	return body[T]{
		{"nodelist", "Only these nodes will do, in the form of Slurm; needs a pool of early binding.", text("n[01-03,07]"), func(a *T, v value) (err error) {
			of(a).Nodelist, err = nodelist(v)
			return err
		}},
		{"exclude", "These nodes will not do, in the form of Slurm.", text("n[04-06]"), func(a *T, v value) (err error) {
			of(a).Exclude, err = nodelist(v)
			return err
		}},
	}
}

// nodelist reads names of nodes.
func nodelist(v value) (string, error) {
	if v.null() {
		return "", nil
	}
	text, err := v.word()
	if err != nil || text == "" {
		return "", err
	}
	if _, err := hostlist.Expand(text); err != nil {
		return "", fmt.Errorf("%.80q: %w", text, err)
	}
	return text, nil
}

// constraint reads an expression over features.
func constraint(v value) (string, error) {
	if v.null() {
		return "", nil
	}
	text, err := v.word()
	if err != nil || text == "" {
		return "", err
	}
	if _, err := berth.ParseConstraint(text); err != nil {
		return "", fmt.Errorf("%q; want %s", text, berth.WantConstraint)
	}
	return text, nil
}

// maxList bounds the parts of one request, and the variants of all of them together.
const maxList = 1000

// each reads the items of a list, and says in which of them something is wrong.
func each(v value, read func(item value, wrong *faults)) error {
	items, err := v.items()
	switch {
	case err != nil:
		return err
	case len(items) == 0 || len(items) > maxList:
		return fmt.Errorf("%d items; want 1 to %d", len(items), maxList)
	}
	var all faults
	for i, item := range items {
		if all.full() {
			break
		}
		var wrong faults
		read(item, &wrong)
		all.add("["+strconv.Itoa(i)+"]", wrong.err())
	}
	return all.err()
}

// requestBody is what a request may say. The fields are those of a schedule
// file.
var requestBody = append(append(shapeFields(func(a *asked) *block { return &a.part }), nodeFields(func(a *asked) *berth.NodeNames { return &a.NodeNames })...), body[asked]{
	{"deadline", "By when it must have ended.", instant(), func(a *asked, v value) error {
		t, err := v.instant(down)
		a.deadline.at = &t
		return err
	}},
	{"ready", "The earliest start; now if it is not given or over.", instant(), func(a *asked, v value) error {
		if v.null() {
			a.ready.at = new(berth.Time(0))
			return nil
		}
		t, err := v.instant(up)
		a.ready.at = &t
		return err
	}},
	inField("ready", "How long after it is decided the earliest start is", 0, func(a *asked) *when { return &a.ready }),
	inField("deadline", "How long after it is decided it must have ended", 1, func(a *asked) *when { return &a.deadline }),
	{"parts", "Blocks of PEs that start together, instead of npe, duration, variants and pes.", listOf(object(partBody)), func(a *asked, v value) error {
		variants := 0
		err := each(v, func(item value, wrong *faults) {
			var b block
			partBody.read(item, &b, wrong)
			if len(*wrong) == 0 && b.variants == nil && (b.npe == nil || b.duration == nil) {
				wrong.add("", errors.New("incomplete; want npe and duration, or variants"))
			}
			variants += len(b.variants)
			a.parts = append(a.parts, b)
		})
		if err == nil && variants > maxList {
			err = fmt.Errorf("%d variants in all; want at most %d", variants, maxList)
		}
		return err
	}},
	{"kind", "A request, or a job, which gets no promise but waits in a queue.", oneOf(string(berth.KindRequest), string(berth.KindJob)), func(a *asked, v value) error {
		word, err := v.word()
		if a.Kind = berth.Kind(word); err == nil && a.Kind != berth.KindRequest && a.Kind != berth.KindJob {
			return fmt.Errorf("%q; want %q or %q", word, berth.KindRequest, berth.KindJob)
		}
		return err
	}},
	{"user", "In whose name; who asks, if it is not given. Others only operators may name.", text("alice"), func(a *asked, v value) (err error) {
		if a.User, err = v.word(); err == nil && !site.ValidUser(a.User) {
			return fmt.Errorf("%q; %s", a.User, site.UserForm)
		}
		return err
	}},
	{"hold", "Hold it instead of promising it: for so long, or true for half an hour.", holding(), func(a *asked, v value) (err error) {
		a.Hold, err = v.hold()
		return err
	}},
	{"no_show", "Release it if it is unused for this long after its start.", duration(), func(a *asked, v value) (err error) {
		if v.null() {
			a.NoShow = 0
			return nil
		}
		a.NoShow, err = v.length(0)
		return err
	}},
	{"name", "A name of one's own, by which GET /v1/reservations/{id} finds it too: up to 64 letters, digits, dashes, underscores and points, beginning with a letter.", text("weekly-run"), func(a *asked, v value) (err error) {
		if v.null() {
			a.Name = ""
			return nil
		}
		if a.Name, err = v.word(); err == nil && a.Name != "" && !berth.ValidName(a.Name) {
			return fmt.Errorf("%.80q; %s", a.Name, berth.WantName)
		}
		return err
	}},
	named("site", "The only site that will do.", func(a *asked) *string { return &a.Site }),
	named("pool", "The only pool that will do.", func(a *asked) *string { return &a.Pool }),
	named("software", "A program that the site must have.", func(a *asked) *string { return &a.Software }),
	named("version", "The least version of the software.", func(a *asked) *string { return &a.Version }),
	named("partition", "A partition of the site.", func(a *asked) *string { return &a.Partition }),
	{"constraint", "Features that its PEs have, such as intel&ib, or alternatives such as [rack1|rack2]: all PEs have the same one.", text("intel&ib"), func(a *asked, v value) (err error) {
		a.Constraint, err = constraint(v)
		return err
	}},
	word("account", "An account of the site. Only jobs in it may run there.", func(a *asked) *string { return &a.Account }),
	word("qos", "A QOS of the site, with which jobs run there.", func(a *asked) *string { return &a.QOS }),
	word("group", "A group of the site, whose members may run in it; who asks has to be one of them. Excludes users.", func(a *asked) *string { return &a.Group }),
	{"users", "Who may run in it too, beside the user. [\"*\"], with an account, are all who may run in that.", listOf(text("bob")), func(a *asked, v value) error {
		a.Users = nil
		if v.null() {
			return nil
		}
		return each(v, func(item value, wrong *faults) {
			name, err := item.word()
			if err == nil && name != berth.EveryUser && !site.ValidUser(name) {
				err = fmt.Errorf("%q; %s", name, site.UserForm)
			}
			wrong.add("", err)
			a.Users = append(a.Users, name)
		})
	}},
	counted("licences", "How many licences of the software it takes.", berth.MaxLicences, func(a *asked, n int64) { a.Licences = berth.Count(n) }),
	counted("memory_mb", "Memory of one PE in 10^6 bytes.", berth.MaxMegabytes-1, func(a *asked, n int64) { a.MemoryMB = n }),
	counted("storage_mb", "Size of its data in 10^6 bytes, which must be moved to the site and find room there.", berth.MaxMegabytes-1, func(a *asked, n int64) { a.StorageMB = n }),
	counted("accelerators", "Accelerators of one PE.", berth.MaxAccelerators, func(a *asked, n int64) { a.Accelerators = int(n) }),
}...)

// submitBody is what a new request may say: a request, or an array of such.
var submitBody = append(slices.Clone(requestBody), field[asked]{
	"array", "The number of equal, independent requests. Each gets an answer; some may be promised and others refused.",
	whole(1, service.MaxArray), func(a *asked, v value) error {
		n, err := v.whole(1, service.MaxArray)
		a.array = int(n)
		return err
	},
})

func named(name, about string, of func(*asked) *string) field[asked] {
	return field[asked]{name, about, text(""), func(a *asked, v value) (err error) {
		if v.null() {
			*of(a) = ""
			return nil
		}
		*of(a), err = v.word()
		return err
	}}
}

// word is named for a name that is handed to a site.
func word[T any](name, about string, of func(*T) *string) field[T] {
	return field[T]{name, about, text(""), func(a *T, v value) (err error) {
		if v.null() {
			*of(a) = ""
			return nil
		}
		if *of(a), err = v.word(); err == nil && !site.ValidWord(*of(a)) {
			return fmt.Errorf("%q; want 1 to 64 letters, digits, dashes, underscores and points", *of(a))
		}
		return err
	}}
}

func counted(name, about string, most int64, set func(*asked, int64)) field[asked] {
	return field[asked]{name, about, whole(0, most), func(a *asked, v value) error {
		if v.null() {
			set(a, 0)
			return nil
		}
		n, err := v.whole(0, most)
		set(a, n)
		return err
	}}
}

// request makes a request of what was asked at a time.
func (a *asked) request(now berth.Time) (berth.Request, error) {
	var wrong faults
	r := a.Request
	r.Arrival, r.Ready = now, now
	a.count(now, &wrong)
	if a.ready.at != nil && !r.IsJob() {
		r.Ready = max(now, *a.ready.at)
	}
	switch {
	case a.deadline.at != nil:
		r.Deadline = *a.deadline.at
	case r.IsJob():
		r.Deadline = berth.Forever
	default:
		wrong.add("deadline", errors.New("missing; "+wantTime+", by which it must have ended"))
	}
	switch {
	case a.parts != nil && a.part.given():
		wrong.add("parts", errors.New("given beside npe, duration, variants or pes; each part has its own"))
	case a.parts != nil:
		for i := range a.parts {
			r.Parts = append(r.Parts, a.parts[i].part(&wrong, "parts["+strconv.Itoa(i)+"]."))
		}
	default:
		r.Parts = []berth.Part{a.part.part(&wrong, "")}
	}
	a.checkWindow(&r, now, &wrong)
	return r, wrong.err()
}

func (b *block) given() bool {
	return b.npe != nil || b.duration != nil || b.variants != nil || b.pes != nil
}

// part makes a part of a shape.
func (b *block) part(wrong *faults, below string) berth.Part {
	var p berth.Part
	if p.Constraint, p.NodeNames = b.of, b.names; b.pes != nil {
		p.Eligible = *b.pes
	}
	if b.variants != nil {
		if b.npe != nil || b.duration != nil {
			wrong.add(below+"variants", errors.New("given beside npe or duration; each variant has its own"))
		}
		p.Variants = b.variants
		return p
	}
	if b.npe == nil {
		wrong.add(below+"npe", errors.New("missing; want how many PEs, at least 1"))
	}
	if b.duration == nil {
		wrong.add(below+"duration", errors.New("missing; "+wantLength))
	}
	if b.npe != nil && b.duration != nil {
		p.Variants = []berth.Variant{{NPE: *b.npe, Duration: *b.duration}}
	}
	return p
}

// checkWindow says in the words of people what Request.Validate says in
// seconds.
func (a *asked) checkWindow(r *berth.Request, now berth.Time, wrong *faults) {
	if len(*wrong) > 0 || r.IsJob() {
		return
	}
	for _, part := range r.Parts {
		shortest := part.Variants[0].Duration
		for _, v := range part.Variants {
			shortest = min(shortest, v.Duration)
		}
		earliest := r.Ready.Add(shortest)
		switch {
		case r.Deadline <= now:
			wrong.add("deadline", fmt.Errorf("%s is over, it is %s; want a time in the future", stamp(r.Deadline), stamp(now)))
			return
		case r.Deadline < earliest && a.deadline.in != nil:
			wrong.add("deadline_in", fmt.Errorf("%s is less than the time to ready and duration, %s + %s; want %s or more",
				hpctime.Format(*a.deadline.in), hpctime.Format(r.Ready.Sub(now)), hpctime.Format(shortest), hpctime.Format(earliest.Sub(now))))
			return
		case r.Deadline < earliest && r.Ready == now:
			wrong.add("deadline", fmt.Errorf("%s is before ready + duration, %s + %s; want %s or later, or now+%s, which is deadline_in",
				stamp(r.Deadline), stamp(r.Ready), hpctime.Format(shortest), stamp(earliest), hpctime.Format(shortest)))
			return
		case r.Deadline < earliest:
			wrong.add("deadline", fmt.Errorf("%s is before ready + duration, %s + %s; want %s or later",
				stamp(r.Deadline), stamp(r.Ready), hpctime.Format(shortest), stamp(earliest)))
			return
		}
	}
}

// modified makes the request that a reservation is for once what was asked is
// taken over; what was not given stays.
func (a *asked) modified(was *service.Reservation, now berth.Time) (berth.Request, error) {
	var wrong faults
	r := a.Request
	r.ID, r.Arrival = was.ID, now
	a.count(now, &wrong)
	if a.ready.at != nil {
		r.Ready = *a.ready.at
	}
	r.Ready = max(now, r.Ready)
	if a.deadline.at != nil {
		r.Deadline = *a.deadline.at
	}
	a.reshape(&r, &wrong)
	if keeps := a.keeps(); a.ready.at != nil || !keeps.Length || !keeps.Deadline { // else it is as it was promised
		window := r
		if keeps.Deadline && was.Extended > 0 && len(was.Allotments) > 0 {
			window.Deadline = max(r.Deadline, was.Allotments[0].End)
		}
		a.checkWindow(&window, now, &wrong)
	}
	return r, wrong.err()
}

// keeps says what of a reservation stays as it is.
func (a *asked) keeps() service.Keeps {
	return service.Keeps{Length: a.parts == nil && a.part.duration == nil && a.part.variants == nil, Deadline: a.deadline.at == nil && a.deadline.in == nil}
}

// reshape changes the parts whose shape was given.
func (a *asked) reshape(r *berth.Request, wrong *faults) {
	b := &a.part
	switch {
	case a.parts != nil && b.given():
		wrong.add("parts", errors.New("given beside npe, duration, variants or pes; each part has its own"))
	case a.parts != nil:
		r.Parts = nil
		for i := range a.parts {
			r.Parts = append(r.Parts, a.parts[i].part(wrong, "parts["+strconv.Itoa(i)+"]."))
		}
	case !b.given():
	case len(r.Parts) > 1:
		wrong.add("parts", errors.New("it has several; want all of them in parts"))
	default:
		part := r.Parts[0]
		full := *b
		if full.variants == nil && (full.npe != nil || full.duration != nil) {
			if len(part.Variants) > 1 && (full.npe == nil || full.duration == nil) {
				wrong.add("variants", errors.New("it has several; want variants, or npe and duration"))
				return
			}
			if full.npe == nil {
				full.npe = &part.Variants[0].NPE
			}
			if full.duration == nil {
				full.duration = &part.Variants[0].Duration
			}
		}
		if full.pes == nil {
			full.pes = &part.Eligible
		}
		if full.of, full.names = part.Constraint, part.NodeNames; full.npe == nil && full.variants == nil {
			full.variants = part.Variants
		}
		r.Parts = []berth.Part{full.part(wrong, "")}
	}
}

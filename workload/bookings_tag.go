package workload

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/stream"
)

// Thinning says how bookings get fewer the further they lie ahead.
type Thinning string

// The ways.
const (
	Linear Thinning = "linear" // starts per day fall along a line, to none after seven days
	Expo   Thinning = "expo"   // they fall exponentially, to one in a hundred on the seventh day
	Real   Thinning = "real"   // those that had not been submitted yet are left out
)

// Thinnings lists the ways, in the order of the paper.
func Thinnings() []Thinning { return []Thinning{Linear, Expo, Real} }

// Tagging makes a schedule of bookings, as it stands at a time Now, of a log of
// ordinary jobs: each job is tagged with probability Share, and a tagged one
// becomes a booking of its PEs from its actual start to its actual end. Aida
// and Casanova, section 3.2.1, made exact by specification 2, section c:
//
//   - real leaves out tagged jobs submitted after Now;
//   - linear and expo take r0, the mean number of tagged starts per day over
//     Past, and on the k-th day from Now, k = 1 to 7, leave
//     round(r0·(1−(k−½)/7)) or round(r0·e^(−0.658·(k−½))) starts: of too many
//     they remove random ones; for too few they add copies of random tagged
//     jobs, each at a uniformly drawn start of that day, if it fits. Nothing
//     starts after the seventh day, and what lasts longer is cut at its end.
//     Bookings that have started by Now are kept.
//
// Settled here: where the log began less than a day before Now, r0 is the number
// of starts since, rather than many times that. A try to add a copy draws a job and a start; after a hundred
// tries without room the copy is given up and counted. Removing comes before
// adding, and days are filled in order. A job whose wait is not recorded starts
// when it was submitted. Tagged jobs of a log may need more PEs than the machine
// has, where the machine is taken smaller than it was or the log is imprecise:
// in the order of their starts those that do not fit are left out and counted.
type Tagging struct {
	Share    float64 // in (0,1]
	Thinning Thinning
	Now      berth.Time
	PEs      berth.Count // of the machine
	Seed     uint64
}

// thinnedDays is for how many days from now linear and expo make bookings, and
// expoRate the rate of the latter, which leaves about 1 % on the seventh.
const (
	thinnedDays = 7
	expoRate    = 0.658
	copyTries   = 100
)

// Tagged is the schedule that a Tagging made, and how.
type Tagged struct {
	// Bookings are sorted by start, then in the order of the log, copies last.
	// They are those that end after the beginning of Past, so that the average
	// can be taken of them. A booking has the id of its job; its copies add a
	// point and a number from 1.
	Bookings []Booking
	Past     berth.Interval
	Free     berth.Count // the average of free PEs during Past: q

	Jobs    int // of the log
	Tagged  int
	NoWait  int // tagged, and their start not recorded
	Unfit   int // tagged and left out: they exceeded the machine
	Ended   int // tagged and left out: over before Past
	Later   int // left out: submitted too late (real), or starting beyond the last day
	Removed int // by linear and expo, to thin out
	Copied  int // added by them
	NoRoom  int // copies given up
	// PerDay is how many bookings start on each of the seven days from Now.
	PerDay [thinnedDays]int
}

// String tells in one line what became of the jobs.
func (t *Tagged) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%d bookings: %d of %d jobs tagged", len(t.Bookings), t.Tagged, t.Jobs)
	for _, part := range []struct {
		n    int
		what string
	}{
		{t.NoWait, "without a recorded start"},
		{t.Unfit, "beyond the machine"},
		{t.Ended, "over long before"},
		{t.Later, "left out as later"},
		{t.Removed, "removed to thin out"},
		{t.Copied, "copied in"},
		{t.NoRoom, "copies without room"},
	} {
		if part.n > 0 {
			fmt.Fprintf(&s, ", %d %s", part.n, part.what)
		}
	}
	fmt.Fprintf(&s, "; %d PEs free on average", t.Free)
	return s.String()
}

// Validate reports what cannot be right, as an *berth.Error with code Invalid.
func (t *Tagging) Validate() error {
	switch {
	case !(t.Share > 0 && t.Share <= 1):
		return berth.Errorf(berth.Invalid, "share", "%v; want a number above 0, at most 1", t.Share)
	case !slices.Contains(Thinnings(), t.Thinning):
		return berth.Errorf(berth.Invalid, "method", "%q; want linear, expo or real", t.Thinning)
	case !t.Now.Valid():
		return berth.Errorf(berth.Invalid, "now", "%d; beyond ±2^42 s", t.Now)
	case t.PEs < 1 || t.PEs > berth.MaxPEs:
		return berth.Errorf(berth.Invalid, "pes", "%d; want from 1 to %d", t.PEs, berth.MaxPEs)
	}
	return nil
}

// Bookings makes the schedule of the usable records of a log, sorted by submit
// time. The streams are named "tagging", one draw for each record, and
// "tagging day k", so that neither the method nor Now changes which jobs are
// tagged.
//
// Errors, of code Invalid: those of Validate, no records, a Now that is not
// between the first submission and the last end. Cost: O(n log n + b·s) for n
// records and b copies among s bookings ahead.
func (t *Tagging) Bookings(records []Record) (*Tagged, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	if len(records) == 0 {
		return nil, berth.Errorf(berth.Invalid, "workload", "no job to tag")
	}
	begin, last := records[0].Submit, berth.Time(0)
	for i := range records {
		_, end := records[i].held()
		last = max(last, end)
	}
	if t.Now <= begin || t.Now >= last {
		return nil, berth.Errorf(berth.Invalid, "now", "%d; want a time inside the log, after %d and before %d", t.Now, begin, last)
	}
	out := &Tagged{Jobs: len(records), Past: Past(begin, t.Now)}
	tagged := out.tag(t, records)
	kept := tagged
	if t.Thinning == Real {
		kept = slices.DeleteFunc(slices.Clone(tagged), func(b taggedJob) bool { return b.submit > t.Now })
		out.Later = len(tagged) - len(kept)
	} else {
		kept = out.thin(t, tagged)
	}
	for i := range kept {
		b := &kept[i]
		if b.End <= out.Past.Start {
			out.Ended++
			continue
		}
		if k := (b.Start - t.Now) / day; b.Start >= t.Now && k < thinnedDays {
			out.PerDay[k]++
		}
		out.Bookings = append(out.Bookings, b.Booking)
	}
	out.Free = AverageFree(out.Bookings, t.PEs, out.Past)
	return out, nil
}

// taggedJob is a tagged job as a booking.
type taggedJob struct {
	Booking
	submit berth.Time
}

// tag draws which jobs are bookings, and returns those that fit on the machine
// by start.
func (out *Tagged) tag(t *Tagging, records []Record) []taggedJob {
	draws := stream.New(t.Seed, "tagging")
	all := make([]taggedJob, 0, int(t.Share*float64(len(records)))*17/16+64) // seldom are there more
	for i := range records {
		rec := &records[i]
		if draws.Float64(uint64(i)) >= t.Share {
			continue
		}
		out.Tagged++
		if rec.Wait < 0 {
			out.NoWait++
		}
		start, end := rec.held()
		all = append(all, taggedJob{
			Booking{ID: strconv.FormatInt(rec.Job, 10), NPE: rec.Size(), Start: start, End: end}, rec.Submit,
		})
	}
	slices.SortStableFunc(all, func(a, b taggedJob) int { return cmp.Compare(a.Start, b.Start) })
	var running endings
	fit := all[:0]
	for _, job := range all {
		if !running.fits(job.Start, job.End, job.NPE, t.PEs) {
			out.Unfit++
			continue
		}
		fit = append(fit, job)
	}
	return fit
}

// thin makes the bookings of the days ahead as many as there should be.
func (out *Tagged) thin(t *Tagging, tagged []taggedJob) []taggedJob {
	until := t.Now + thinnedDays*day
	first, _ := slices.BinarySearchFunc(tagged, t.Now, func(b taggedJob, now berth.Time) int { return cmp.Compare(b.Start, now) })
	begun := 0
	for i := range tagged[:first] {
		if tagged[i].Start >= out.Past.Start {
			begun++
		}
	}
	var days [thinnedDays]thinnedDay
	for k := range days {
		days[k].wanted = wantedStarts(t.Thinning, begun, out.Past.Length(), k+1)
		days[k].rng = stream.New(t.Seed, "tagging day "+strconv.Itoa(k+1)).Rand()
	}
	for _, job := range tagged[first:] {
		if job.Start >= until {
			out.Later++
			continue
		}
		k := (job.Start - t.Now) / day
		days[k].jobs = append(days[k].jobs, job)
	}
	kept := slices.Clone(tagged[:first])
	for k := range days {
		d := &days[k]
		out.Removed += d.remove()
		kept = append(kept, d.jobs...)
	}
	var booked load
	for i := range kept {
		kept[i].End = min(kept[i].End, until)
		if kept[i].End > t.Now {
			booked.add(max(kept[i].Start, t.Now), kept[i].End, kept[i].NPE)
		}
	}
	copies := make(map[string]int)
	for k := range days {
		d := &days[k]
		for missing := d.wanted - len(d.jobs); missing > 0 && len(tagged) > 0; missing-- {
			job, ok := d.copyOf(tagged, t.Now+berth.Time(k*day), until, t.PEs, &booked)
			if !ok {
				out.NoRoom++
				continue
			}
			booked.add(job.Start, job.End, job.NPE)
			copies[job.ID]++
			job.ID += "." + strconv.Itoa(copies[job.ID])
			kept = append(kept, job)
			out.Copied++
		}
	}
	slices.SortStableFunc(kept, func(a, b taggedJob) int { return cmp.Compare(a.Start, b.Start) })
	return kept
}

// thinnedDay is what starts on one of the days ahead.
type thinnedDay struct {
	jobs   []taggedJob
	wanted int
	rng    *rand.Rand
}

// remove leaves no more jobs than are wanted, each with the same chance, in
// their order, and returns how many it removed.
func (d *thinnedDay) remove() int {
	removed := 0
	for len(d.jobs) > d.wanted {
		i := int(d.rng.Float64() * float64(len(d.jobs)))
		d.jobs = slices.Delete(d.jobs, i, i+1)
		removed++
	}
	return removed
}

// copyOf draws a copy of one of the jobs that starts on the day from morning
// and fits, or reports that no try did.
func (d *thinnedDay) copyOf(jobs []taggedJob, morning, until berth.Time, pes berth.Count, booked *load) (taggedJob, bool) {
	for range copyTries {
		job := jobs[int(d.rng.Float64()*float64(len(jobs)))]
		length := job.End.Sub(job.Start)
		job.Start = morning + berth.Time(d.rng.Float64()*day)
		job.End = min(job.Start.Add(length), until)
		if booked.peak(job.Start, job.End)+int64(job.NPE) <= int64(pes) {
			return job, true
		}
	}
	return taggedJob{}, false
}

// wantedStarts returns how many bookings start on the k-th day, given how many
// began during a past of that length, which counts as a day at least.
func wantedStarts(how Thinning, begun int, past berth.Duration, k int) int {
	past = max(past, day)
	if how == Linear {
		// round(begun·day/past·(1−(k−½)/7)), in whole numbers
		above := int64(begun) * day * (2*thinnedDays + 1 - 2*int64(k))
		below := int64(past) * 2 * thinnedDays
		return int((2*above + below) / (2 * below))
	}
	daily := float64(float64(begun)*day) / float64(past)
	return int(math.Floor(float64(daily*exp(-expoRate*(float64(k)-0.5))) + 0.5))
}

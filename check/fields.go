package check

import (
	"slices"

	"github.com/berth-hpc/berth"
)

// past is what came of a line before it was as it is.
type past struct {
	limit       int64
	promisedEnd int64 // of a staging: as it was expected
	transfer    int64 // how much of the duration data are moved in
	extended    int64 // how much of it was added to the promise
	former      []former
	replanned   []former // places of a task under earlier plans of its workflow
	stretches   []stretch
	poolPEs     int64 // the size of its pool, 0 if it does not tell
}

// former is a place that was given up.
type former struct {
	at, start, end int64
	staged         int64 // when data were expected, if they were the reason
	late           bool  // they were
	site, pool     string
	place          int32 // index into checker.places
	share
}

// stretch is a change of the PEs that a line has.
type stretch struct {
	from int64
	share
}

// share is what is told of the PEs of a former place or a stretch.
type share struct {
	npe   int64
	cause string
	runs  []run // the PEs named, if they are
	named bool
}

// pastField takes one field of what came of the line.
func (p *parser) pastField(rec *record, f field, name string, value []byte) (err error) {
	if rec.past == nil {
		rec.past = new(past)
	}
	switch f {
	case fLimit:
		rec.past.limit, err = wholeOf(name, value, berth.TimeLimit)
	case fPromisedEnd:
		rec.past.promisedEnd, err = wholeOf(name, value, berth.TimeLimit)
	case fTransfer:
		rec.past.transfer, err = wholeOf(name, value, berth.TimeLimit)
	case fExtended:
		rec.past.extended, err = wholeOf(name, value, berth.TimeLimit)
	case fPoolPEs:
		if rec.past.poolPEs, err = wholeOf(name, value, berth.MaxPEs+1); err == nil && rec.past.poolPEs < 1 {
			err = berth.Errorf(berth.Invalid, name, "%s; a pool has 1 to %d PEs", shorten(value), berth.MaxPEs)
		}
	case fMovedFrom, fReplannedFrom:
		err = elementsOf(name, value, func(element []byte) error {
			m := former{place: -1}
			given, err := objectOf(name, element, []string{"at", "start", "end", "npe", "site", "pool", "pes", "cause", "staged"}, func(inner string, value []byte) error {
				return p.formerField(&m, name, inner, value)
			})
			if err == nil && given&0xf != 0xf {
				err = berth.Errorf(berth.Invalid, name, "%s lacks at, start, end or npe", shorten(element))
			}
			if f == fReplannedFrom {
				rec.past.replanned = append(rec.past.replanned, m)
			} else {
				rec.past.former = append(rec.past.former, m)
			}
			return err
		})
	case fStretches:
		err = elementsOf(name, value, func(element []byte) error {
			var s stretch
			given, err := objectOf(name, element, []string{"from", "npe", "pes", "cause"}, func(inner string, value []byte) error {
				return p.stretchField(&s, name, inner, value)
			})
			if err == nil && given&0x3 != 0x3 {
				err = berth.Errorf(berth.Invalid, name, "%s lacks from or npe", shorten(element))
			}
			rec.past.stretches = append(rec.past.stretches, s)
			return err
		})
	}
	return err
}

func (p *parser) stretchField(s *stretch, outer, inner string, value []byte) (err error) {
	name := outer + "." + inner
	if inner == "from" {
		s.from, err = wholeOf(name, value, berth.TimeLimit)
		return err
	}
	return p.shareField(&s.share, name, inner, value)
}

func (p *parser) shareField(s *share, name, inner string, value []byte) (err error) {
	switch inner {
	case "npe":
		s.npe, err = wholeOf(name, value, berth.MaxPEs+1)
	case "pes":
		s.named = true
		s.runs, err = p.runsOf(name, value)
	case "cause":
		s.cause, err = p.shared(name, value)
	}
	return err
}

func (p *parser) formerField(m *former, outer, inner string, value []byte) (err error) {
	name := outer + "." + inner
	switch inner {
	case "at":
		m.at, err = wholeOf(name, value, berth.TimeLimit)
	case "start":
		m.start, err = wholeOf(name, value, berth.TimeLimit)
	case "end":
		m.end, err = wholeOf(name, value, berth.TimeLimit)
	case "site":
		m.site, err = p.shared(name, value)
	case "pool":
		m.pool, err = p.shared(name, value)
	case "staged":
		m.late = true
		m.staged, err = wholeOf(name, value, berth.TimeLimit)
	default:
		err = p.shareField(&m.share, name, inner, value)
	}
	return err
}

// objectOf checks that raw is an object and calls f with the members that have
// one of the names; given has a bit for each of these. A member that is null is
// absent.
func objectOf(field string, raw []byte, names []string, f func(inner string, value []byte) error) (given uint32, err error) {
	if raw[0] != '{' {
		return 0, berth.Errorf(berth.Invalid, field, "%s is not an object in braces", shorten(raw))
	}
	err = eachMember(raw, func(inner string, value []byte) error {
		k := slices.Index(names, inner)
		switch {
		case k < 0 || string(value) == "null":
			return nil
		case given>>k&1 != 0:
			return berth.Errorf(berth.Invalid, field+"."+inner, "given twice")
		}
		given |= 1 << k
		return f(inner, value)
	})
	return given, err
}

// constraint reads an expression over features.
func (p *parser) constraint(name string, value []byte) (string, error) {
	text, err := p.shared(name, value)
	if err != nil || text == "" {
		return "", err
	}
	if _, err := berth.ParseConstraint(text); err != nil {
		return "", berth.Errorf(berth.Invalid, name, "%s; want %s", shorten(value), berth.WantConstraint)
	}
	return text, nil
}

// placesOf reads a list of PEs by pool.
func (p *parser) placesOf(name string, value []byte) (list []placePEs, err error) {
	err = elementsOf(name, value, func(element []byte) error {
		var one placePEs
		given, err := objectOf(name, element, []string{"pes", "site", "pool"}, func(inner string, value []byte) (err error) {
			switch full := name + "." + inner; inner {
			case "pes":
				one.runs, err = p.runsOf(full, value)
			case "site":
				one.site, err = p.shared(full, value)
			case "pool":
				one.pool, err = p.shared(full, value)
			}
			return err
		})
		if err == nil && given&1 == 0 {
			err = berth.Errorf(berth.Invalid, name, "%s lacks pes", shorten(element))
		}
		list = append(list, one)
		return err
	})
	return list, err
}

// need takes one field of what the line asks for beside PEs.
func (p *parser) need(rec *record, f field, name string, value []byte) (err error) {
	if rec.needs == nil {
		rec.needs = new(needs)
	}
	switch n := rec.needs; f {
	case fSoftware:
		n.software, err = p.shared(name, value)
	case fVersion:
		n.version, err = p.shared(name, value)
	case fPartition:
		n.partition, err = p.shared(name, value)
	case fConstraint:
		n.constraint, err = p.constraint(name, value)
	case fPartConstraint:
		n.ofPart, err = p.constraint(name, value)
	case fWantSite:
		n.site, err = p.shared(name, value)
	case fWantPool:
		n.pool, err = p.shared(name, value)
	case fEligible:
		n.eligible, err = p.runsOf(name, value)
	case fWantSites:
		err = elementsOf(name, value, func(element []byte) error {
			site, err := p.shared(name, element)
			n.sites = append(n.sites, site)
			return err
		})
	case fOnly:
		n.only, err = p.placesOf(name, value)
	case fNever:
		n.never, err = p.placesOf(name, value)
	case fLicences:
		n.licences, err = wholeOf(name, value, berth.MaxLicences+1)
	case fAccelerators:
		n.accelerators, err = wholeOf(name, value, berth.MaxAccelerators+1)
	case fMemory:
		n.memory, err = wholeOf(name, value, berth.MaxMegabytes)
	case fStorage:
		n.storage, err = wholeOf(name, value, berth.MaxMegabytes)
	}
	return err
}

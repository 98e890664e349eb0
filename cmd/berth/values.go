package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/hpctime"
	"github.com/berth-hpc/berth/internal/nearest"
	"github.com/berth-hpc/berth/workload"
)

// The kinds of flag value. Each parses strictly and says what would have been
// right, so that every command's messages read alike.
var (
	_ pflag.Value = (*whole[int])(nil)
	_ pflag.Value = (*factor)(nil)
	_ pflag.Value = (*choice)(nil)
	_ pflag.Value = (*list)(nil)
	_ pflag.Value = (*portion)(nil)
	_ pflag.Value = (*length)(nil)
	_ pflag.Value = (*failures)(nil)
)

// whole is a whole number from least to most.
type whole[T ~int | ~int32 | ~uint64] struct {
	value       *T
	least, most uint64
}

func (w *whole[T]) Type() string { return "N" }

func (w *whole[T]) String() string {
	if w.value == nil || *w.value == 0 && w.least > 0 {
		return ""
	}
	return fmt.Sprint(*w.value)
}

func (w *whole[T]) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n < w.least || n > w.most {
		if w.most == math.MaxUint64 || w.most == math.MaxInt32 {
			return fmt.Errorf("%q; want a whole number of at least %d", text, w.least)
		}
		return fmt.Errorf("%q; want a whole number from %d to %d", text, w.least, w.most)
	}
	*w.value = T(n)
	return nil
}

// factor is a finite number, at least 0, or above 0 if positive.
type factor struct {
	value    *float64
	positive bool
}

func (f *factor) Type() string { return "X" }

func (f *factor) String() string {
	if f.value == nil || *f.value == 0 && f.positive {
		return ""
	}
	return strconv.FormatFloat(*f.value, 'g', -1, 64)
}

func (f *factor) Set(text string) error {
	x, err := strconv.ParseFloat(text, 64)
	switch {
	case err == nil && !math.IsInf(x, 0) && (x > 0 || x == 0 && !f.positive):
		*f.value = x
		return nil
	case f.positive:
		return fmt.Errorf("%q; want a number above 0, such as 0.75", text)
	}
	return fmt.Errorf("%q; want a number of at least 0, such as 1.5", text)
}

// portion is a number from 0 to 1.
type portion struct{ value *float64 }

func (p *portion) Type() string { return "X" }

func (p *portion) String() string {
	if p.value == nil {
		return ""
	}
	return strconv.FormatFloat(*p.value, 'g', -1, 64)
}

func (p *portion) Set(text string) error {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x >= 0 && x <= 1) {
		return fmt.Errorf("%q; want a number from 0 to 1, such as 0.2", text)
	}
	*p.value = x
	return nil
}

// length is a length of time: whole seconds, which are what simulations count
// in, or in one of the forms with a unit.
type length struct {
	value *berth.Duration
	least berth.Duration
}

func (l *length) Type() string { return "D" }

func (l *length) String() string {
	if l.value == nil || *l.value == 0 {
		return ""
	}
	return strconv.FormatInt(int64(*l.value), 10)
}

func (l *length) Set(text string) error {
	d, err := parseLength(text)
	if err != nil {
		return err
	}
	if d < l.least {
		return fmt.Errorf("%q; want at least %d s", text, l.least)
	}
	*l.value = d
	return nil
}

func parseLength(text string) (berth.Duration, error) {
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		if n >= berth.TimeLimit {
			return 0, fmt.Errorf("%q; want seconds below 2^42", text)
		}
		return berth.Duration(n), nil
	}
	d, err := hpctime.Parse(text)
	if coded, is := errors.AsType[*berth.Error](err); is {
		return 0, errors.New(coded.Msg + ", or seconds")
	}
	return d, err
}

// failures are means of how long a node works and of how long its repair takes,
// and its size.
type failures struct{ value *workload.Failures }

func (f *failures) Type() string { return "D,D[,N]" }

func (f *failures) String() string {
	if f.value == nil || f.value.PEs == 0 {
		return ""
	}
	return fmt.Sprintf("%d,%d,%d", f.value.MTBF, f.value.MTTR, f.value.PEs)
}

func (f *failures) Set(text string) error {
	fields := strings.Split(text, ",")
	if len(fields) < 2 || len(fields) > 3 {
		return fmt.Errorf("%q; want MTBF,MTTR or MTBF,MTTR,PEs, such as 30d,4h,16", text)
	}
	set := workload.Failures{PEs: 1}
	for i, mean := range []*berth.Duration{&set.MTBF, &set.MTTR} {
		if err := (&length{mean, 1}).Set(fields[i]); err != nil {
			return err
		}
	}
	if len(fields) == 3 {
		if err := (&whole[berth.Count]{&set.PEs, 1, berth.MaxPEs}).Set(fields[2]); err != nil {
			return err
		}
	}
	*f.value = set
	return nil
}

// choice is one of some names.
type choice struct {
	value *string
	what  string // what a name is, for messages
	names []string
}

func (c *choice) Type() string { return "NAME" }

func (c *choice) String() string {
	if c.value == nil {
		return ""
	}
	return *c.value
}

func (c *choice) Set(text string) error {
	if !slices.Contains(c.names, text) {
		return errors.New(nearest.Unknown(c.what, text, c.names))
	}
	*c.value = text
	return nil
}

// list is one or more of some names between commas, each once. If it has a
// word for all of them, that stands for the names in their order.
type list struct {
	value *[]string
	what  string // what one name is, for messages
	names []string
	all   string
}

func (l *list) Type() string { return "LIST" }

func (l *list) String() string {
	if l.value == nil {
		return ""
	}
	return strings.Join(*l.value, ",")
}

func (l *list) Set(text string) error {
	if l.all != "" && text == l.all {
		*l.value = slices.Clone(l.names)
		return nil
	}
	known := l.names
	if l.all != "" {
		known = append(slices.Clone(known), l.all)
	}
	var chosen []string
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		switch {
		case l.all != "" && name == l.all:
			return fmt.Errorf("%q already stands for every %s; want it alone", l.all, l.what)
		case !slices.Contains(l.names, name):
			return errors.New(nearest.Unknown(l.what, name, known))
		case slices.Contains(chosen, name):
			return fmt.Errorf("%s %q stands there twice", l.what, name)
		}
		chosen = append(chosen, name)
	}
	*l.value = chosen
	return nil
}

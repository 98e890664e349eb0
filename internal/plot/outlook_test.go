package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
)

func outlook() Outlook {
	o := Outlook{Title: "link", Unit: "Mbit/s", Period: 300}
	for i := range 50 {
		o.Past = append(o.Past, 800+10*math.Sin(float64(i)))
	}
	for i := range 12 {
		o.Ahead = append(o.Ahead, Band{Mean: 805, Low: 800 - float64(i), High: 810 + float64(i)})
	}
	return o
}

func TestOutlookIsWellFormedAndTheSameAgain(t *testing.T) {
	var first, again bytes.Buffer
	if err := WriteOutlook(&first, "svg", outlook()); err != nil {
		t.Fatal(err)
	}
	if err := WriteOutlook(&again, "svg", outlook()); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), again.Bytes()) {
		t.Error("the same outlook gives other bytes")
	}
	for _, want := range []string{">link<", ">Mbit/s<", ">measured<", ">forecast<", ">bounds<", ">hours<", ">785<", ">5<"} {
		if !strings.Contains(first.String(), want) {
			t.Errorf("the figure has no %s", want)
		}
	}
	decoder := xml.NewDecoder(&first)
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	var image bytes.Buffer
	if err := WriteOutlook(&image, "png", outlook()); err != nil {
		t.Fatal(err)
	}
	if _, err := png.Decode(&image); err != nil {
		t.Fatal(err)
	}
}

// The vertical axis holds every value and has at most nine marks.
func TestOutlookSpan(t *testing.T) {
	for _, c := range []struct{ low, high float64 }{
		{0, 0}, {5, 5}, {0, 1}, {790, 820}, {-3, 4}, {1e10, 9e10}, {1e-6, 3e-6}, {-5, -5}, {0, 1e18}, {999.9, 1000.1},
	} {
		o := Outlook{Past: []float64{c.low}, Ahead: []Band{{c.low, c.low, c.high}}}
		bottom, top, step := o.span()
		slack := 1e-9 * math.Abs(c.high)
		if !(bottom <= c.low+slack && c.high <= top+slack && bottom < top) || !((top-bottom)/step <= 10.001) {
			t.Errorf("%v to %v: the axis goes from %v to %v by %v", c.low, c.high, bottom, top, step)
		}
	}
}

func TestOutlookRefuses(t *testing.T) {
	bare := outlook()
	bare.Past, bare.Ahead = nil, nil
	for what, err := range map[string]error{
		"series": WriteOutlook(io.Discard, "svg", bare),
		"format": WriteOutlook(io.Discard, "gif", outlook()),
	} {
		var mistake *berth.Error
		if !errors.As(err, &mistake) || mistake.Code != berth.Invalid || mistake.Field != what {
			t.Errorf("%v, want a mistake in %s", err, what)
		}
	}
}

package service

import (
	"slices"
	"strconv"
	"testing"
)

func TestNumbersByTheirTexts(t *testing.T) {
	for _, n := range []int{0, 1, 9, 10, 11, 99, 100, 101, 1234, 10_000} {
		var got, want []string
		byDigits(n, func(number int) { got = append(got, strconv.Itoa(number)) })
		for i := range n {
			want = append(want, strconv.Itoa(i+1))
		}
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%d: %q", n, got)
		}
	}
}

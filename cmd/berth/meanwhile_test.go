package main

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"
)

// Who waits for something slow is told; who does not, is not.
func TestMeanwhile(t *testing.T) {
	for took, want := range map[time.Duration]string{time.Second: "", 3 * time.Second: "examining west\n"} {
		synctest.Test(t, func(t *testing.T) {
			var stderr bytes.Buffer
			done := (&app{stderr: &stderr}).meanwhile("examining %s", "west")
			time.Sleep(took)
			done()
			if got := stderr.String(); got != want {
				t.Errorf("%s: said %q, want %q", took, got, want)
			}
		})
	}
}

//go:build unix

package servicebench

import (
	"os"
	"testing"

	"github.com/berth-hpc/berth/internal/hugepages"
)

func TestMain(m *testing.M) {
	hugepages.Advise(2 << 30) // as berth serve does
	os.Exit(m.Run())
}

package engine_test

import (
	"os"
	"testing"

	"github.com/berth-hpc/berth/internal/hugepages"
)

func TestMain(m *testing.M) {
	hugepages.Advise(1 << 30)
	os.Exit(m.Run())
}

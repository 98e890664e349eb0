package slurm

import (
	"os"
	"testing"

	"github.com/berth-hpc/berth/internal/effort"
)

func TestMain(m *testing.M) {
	effort.Waits()
	os.Exit(m.Run())
}

package adapters_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
	"github.com/berth-hpc/berth/sites"
	"github.com/berth-hpc/berth/sites/adapters"
)

// A user who may not make reservations can watch a cluster, and serves none.
func TestWithoutTheRightNothingIsServed(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	if os.Getuid() != 0 {
		t.Skip("needs root, to run commands as another user")
	}
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		t.Skip("needs setpriv, to run commands as another user")
	}
	cluster := slurmtest.Start(t, slurmtest.Options{Nodes: 1})
	bin := t.TempDir()
	for _, name := range []string{"scontrol", "sinfo", "squeue"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		script := fmt.Sprintf("#!/bin/sh\nexec %s --reuid=65534 --regid=65534 --clear-groups %s \"$@\"\n", setpriv, path)
		slurmtest.Script(t, filepath.Join(bin, name), script)
	}
	open := func(watch bool) error {
		a := sites.Adapter{Kind: sites.Slurm, Conf: cluster.Conf, Bin: bin, Watch: watch}
		set, err := adapters.Open(t.Context(), adapters.Options{Data: t.TempDir(), Log: slog.New(slog.DiscardHandler)},
			[]berth.Site{{Name: "lab"}}, map[string]sites.Adapter{"lab": a})
		if err == nil {
			set.Close()
		}
		return err
	}
	var wrong *berth.Error
	if err := open(false); !errors.As(err, &wrong) || wrong.Code != berth.Denied || !strings.Contains(err.Error(), "may not make reservations") {
		t.Errorf("%v; want it denied", err)
	}
	if err := open(true); err != nil {
		t.Errorf("watching: %v", err)
	}
}

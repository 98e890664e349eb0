package slurm_test

import (
	"context"
	"testing"
	"time"

	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// confless runs commands where there is no slurm.conf.
type confless struct{ cluster *slurmtest.Cluster }

func (c confless) Run(ctx context.Context, command slurm.Command) (slurm.Result, error) {
	command.Argv = c.cluster.WithoutConf(command.Argv...)
	return slurm.Host{}.Run(ctx, command)
}

// In a configless cluster nodes and commands have no slurm.conf: where slurmctld gives one out is in the environment.
func TestConfigless(t *testing.T) { // not parallel: it changes the environment
	cluster := slurmtest.Start(t, slurmtest.Options{Configless: true, Nodes: 2})
	t.Setenv("SLURM_CONF_SERVER", cluster.ConfServer())
	o := options(cluster)
	o.Conf, o.Exec = "", confless{cluster}
	s, client := slurm.New(o), slurm.NewClient(o)
	if _, err := s.Describe(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := site.Reservation{Name: site.NameOf(siteName, t.Name(), 1), Start: now() + 1, End: now() + 600, Shares: []site.Share{{Node: "n2"}}, Users: []string{me(t)}}
	mustReserve(t, s, want, site.Made)
	id, err := client.Submit(t.Context(), site.Task{Reservation: want.Name, Key: "a", Dir: t.TempDir(), Command: []string{"true"}})
	if err != nil {
		t.Fatal(err)
	}
	if !eventually(time.Minute, func() bool {
		state, err := s.Observe(t.Context())
		return err == nil && len(state.Ended) == 1 && state.Ended[0].ID == id && state.Ended[0].Result.Ending == site.Completed && state.Ended[0].Shares[0].Node == "n2"
	}) {
		t.Errorf("%+v", observe(t, s).Ended)
	}
}

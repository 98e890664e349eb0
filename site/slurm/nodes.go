package slurm

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/hostlist"
)

// Drain takes a node out of use.
func (s *Site) Drain(ctx context.Context, node, reason string) error {
	if reason = strings.Join(strings.Fields(reason), " "); reason == "" {
		return berth.Errorf(berth.Invalid, "reason", "none; Slurm wants to be told why")
	}
	return s.turn(ctx, "drain", node, "State=DRAIN", "Reason="+reason)
}

// Resume puts a node back into use.
func (s *Site) Resume(ctx context.Context, node string) error {
	return s.turn(ctx, "resume", node, "State=RESUME")
}

func (s *Site) turn(ctx context.Context, op, node string, args ...string) error {
	if !hostlist.ValidName(node) {
		return berth.Errorf(berth.Invalid, "node", "%q is no node's name", node)
	}
	result, err := s.run(ctx, op, "scontrol", append([]string{"update", "NodeName=" + node}, args...)...)
	if err != nil || result.Exit == 0 {
		return err
	}
	return explain(op, "scontrol", firstLine(result))
}

// mayReserve reports whether a user may have the right to make reservations. It only reads: of
// users without the right slurmctld logs each attempt as a security violation, at which sites
// raise alarms.
func (s *Site) mayReserve(ctx context.Context, user string) (bool, error) {
	settings, err := s.settings(ctx)
	if err != nil {
		return false, err
	}
	slurmUser, _, _ := strings.Cut(settings["SlurmUser"], "(")
	if user == "root" || user == slurmUser {
		return true, nil
	}
	if !strings.Contains(settings["AccountingStorageType"], "slurmdbd") {
		return false, nil // no user has a level, which is kept there
	}
	result, err := s.run(ctx, "describe", "sacctmgr", "--noheader", "--parsable2", "show", "user", "name="+user, "format=AdminLevel")
	if err != nil || result.Exit != 0 {
		return true, nil //nolint:nilerr // it is not known without trying
	}
	level := strings.TrimSpace(result.Stdout)
	return level != "" && level != "None", nil
}

// newProbe returns a name that nothing has.
func newProbe() string {
	random := make([]byte, 8)
	_, _ = rand.Read(random) // never fails
	return "berth-probe-" + hex.EncodeToString(random)
}

// rights finds out what Berth may do, as Describe says.
func (s *Site) rights(ctx context.Context) (site.Rights, error) {
	rights := site.Rights{Submit: true}
	who, err := s.read(ctx, "describe", "id", "-un")
	if err != nil {
		return rights, err
	}
	rights.As = strings.TrimSpace(who)
	if may, err := s.mayReserve(ctx, rights.As); err != nil || !may {
		return rights, err
	}
	absent := newProbe()
	for _, probe := range []struct {
		may  *bool
		args []string
	}{
		{&rights.Reserve, []string{"update", "ReservationName=" + absent, "EndTime=now+1hour"}},
		{&rights.Drain, []string{"update", "NodeName=" + absent, "State=RESUME"}},
	} {
		result, err := s.run(ctx, "describe", "scontrol", probe.args...)
		if err != nil {
			return rights, err
		}
		switch err := explain("describe", "scontrol", firstLine(result)); site.KindOf(err) {
		case site.NotFound:
			*probe.may = true
		case site.Denied:
			return rights, nil // who may not make reservations may not drain nodes either
		default:
			return rights, err
		}
	}
	return rights, nil
}

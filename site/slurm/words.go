package slurm

import (
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

// What Slurm says from 22.05 to 26.05, in the words of its error strings. A row either refuses
// for a reason or is a failure of a kind.
var sayings = []struct {
	words  string
	reason berth.Reason
	kind   site.Kind
	doubt  bool // what was asked for may have been done all the same
	final  bool // it is refused for good: no other nodes and no other time would do
	hint   string
}{
	{words: "Duplicate reservation name", reason: berth.RefusedConflict},
	{words: "Requested nodes are busy", reason: berth.NoCapacity},
	{words: "Requested node configuration is not available", reason: berth.NoCapacity},
	{words: "Requested reservation overlaps with another reservation", reason: berth.NoCapacity},
	{words: "not supported for core-based reservations", reason: berth.RefusedConflict}, // since 24.11, before the next
	{words: "Core-based reservation can not be updated", reason: berth.RefusedConflict},
	{words: "Reservation already started", reason: berth.RefusedConflict},
	{words: "Invalid time specified", reason: berth.Expired},
	{words: "Requested reservation is in use", kind: site.Conflict},
	{words: "Requested reservation is invalid", kind: site.NotFound},
	{words: "Invalid node name specified", kind: site.NotFound, hint: "the nodes of the cluster have changed; import the site anew"},
	{words: "Invalid partition name specified", kind: site.NotFound, final: true, hint: "the partitions of the cluster have changed; import the site anew"},
	{words: "invalid partition specified", kind: site.NotFound, hint: "sinfo lists the partitions"}, // sbatch
	{words: "Invalid job id specified", kind: site.NotFound},
	{words: "Access denied to requested reservation", kind: site.Denied, hint: "only the users and accounts of the reservation may use it"},
	{words: "Access/permission denied", kind: site.Denied, final: true, hint: "make Berth's user SlurmUser or an operator"},
	{words: "Invalid user id", kind: site.Denied, final: true, hint: "make Berth's user SlurmUser or an operator; or a user of the reservation is unknown to slurmctld"},
	{words: "Invalid account or account/partition combination", kind: site.Invalid, final: true, hint: "the accounting database has no such association; add it with sacctmgr"},
	{words: "Invalid qos specification", kind: site.Invalid, final: true, hint: "the accounting database has no such QOS; add it with sacctmgr"},
	{words: "Invalid license specification", kind: site.Invalid, final: true, hint: "the licences of the cluster have changed; import the site anew"},
	{words: "Invalid group id", kind: site.Invalid, final: true, hint: "slurmctld knows no such group"},
	{words: "Job violates accounting/QOS policy", kind: site.Invalid, final: true, hint: "sacctmgr shows the limits of the association and of the QOS"},
	{words: "Invalid account", kind: site.Invalid, final: true, hint: "the accounting database has no such account; add it with sacctmgr"},
	{words: "Unable to contact slurm controller (connect failure)", kind: site.Unreachable, hint: "slurmctld is down or not at the address that slurm.conf gives"},
	// Without a slurm.conf the commands look for one in the DNS.
	{words: "resolve_ctls_from_dns_srv", kind: site.Unreachable, hint: "no slurm.conf is found here; say where it is, by the configuration or SLURM_CONF"},
	{words: "Could not establish a configuration source", kind: site.Unreachable, hint: "no slurm.conf is found here; say where it is, by the configuration or SLURM_CONF"},
	{words: "Unable to contact slurm controller", kind: site.Unreachable, doubt: true},
	{words: "Socket timed out on send/recv operation", kind: site.Unreachable, doubt: true, hint: "slurmctld is overloaded; sdiag tells by what"},
	{words: "Zero Bytes were transmitted or received", kind: site.Unreachable, doubt: true},
	{words: "Protocol authentication error", kind: site.Unreachable, hint: "munged is down here or there, or the keys differ"},
	// What scontrol create says if the controller does not answer.
	{words: "Unexpected message received", kind: site.Unreachable, doubt: true, hint: "slurmctld is down, or something else answers at its address"},
	{words: "Slurm backup controller in standby mode", kind: site.Unreachable},
	// What package rest says of slurmrestd.
	{words: "slurmrestd does not answer", kind: site.Unreachable, hint: "see that slurmrestd runs, and that rest gives its address"},
	{words: "slurmrestd is not reached behind", kind: site.Unreachable, doubt: true, hint: "the proxy runs and slurmrestd does not, or not where the proxy looks for it"},
	{words: "slurmrestd needs a token", kind: site.Unreachable, hint: "jwt gives the path of a file that Berth's user can read, with a token that has not expired"},
	{words: "slurmrestd does not take", kind: site.Unreachable, hint: "the token is of another cluster or key, or slurmrestd runs without rest_auth/jwt (rest_auth/local on a socket of its own user)"},
	{words: "slurmrestd does not prove who it is", kind: site.Unreachable, hint: "its certificate has to be valid, for the host that rest names, and of an authority of this machine or of the file that ca gives"},
	{words: "want unix:///PATH", kind: site.Invalid, hint: "rest is the address of slurmrestd"},
	{words: "slurmrestd has no API", kind: site.Invalid, hint: "use Slurm's commands: leave out rest and jwt, and have the commands and slurm.conf on this machine"},
	{words: "is not asked of slurmrestd", kind: site.Invalid, hint: "use Slurm's commands where this is needed: leave out rest and jwt"},
	{words: "slurmctld rebooting", kind: site.Unreachable, doubt: true},
}

// explain turns what a command said into an error.
func explain(op, command, said string) error {
	e := &site.Error{Kind: site.Invalid, Op: op, Msg: said, Hint: command + " said something that this adapter does not know"}
	for i := range sayings {
		s := &sayings[i]
		if !strings.Contains(said, s.words) {
			continue
		}
		e.Kind, e.Hint, e.Final = s.kind, s.hint, s.final
		if s.kind == "" {
			e.Kind = site.Conflict
		}
		if s.doubt {
			return &unfinishedError{e}
		}
		break
	}
	return e
}

// refusal turns what a command said into a refusal, and is false if it is none.
func refusal(said string) (site.Outcome, bool) {
	for i := range sayings {
		if s := &sayings[i]; strings.Contains(said, s.words) {
			return site.Outcome{Verdict: site.Refused, Reason: s.reason, Words: said}, s.reason != ""
		}
	}
	return site.Outcome{}, false
}

package slurm

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

const opAdmit = "admit"

// Admits asks this machine for the groups of a user, the accounting database for accounts
// and QOS, and slurmctld for their limits, if anything depends on them. A user needs
// one of the groups of the partition, and an association with an account and a QOS that it
// takes, in whose limits the job stays: those that are named, else any. Where Slurm does not
// enforce QOS, any user may name any that the partition takes. Root and SlurmUser are in every
// group of a partition to Slurm. Where Slurm does not enforce associations any user
// may name any account, and where it does not enforce limits there are none. What was heard in the
// last seconds is not asked again. Cost: nothing for what is open to everybody; else up to a command
// for groups, one for accounts and two for limits.
func (s *Site) Admits(ctx context.Context, partition *site.Partition, e *site.Entry) (site.Admission, error) {
	settings, err := s.lastSettings(ctx)
	if err != nil {
		return site.Admission{}, err
	}
	enforced := strings.Contains(settings["AccountingStorageEnforce"], "associations")
	limited := strings.Contains(settings["AccountingStorageEnforce"], "limits")
	byAccount := len(partition.Accounts)+len(partition.DeniedAccounts)+len(partition.QOS)+len(partition.DeniedQOS) > 0 || !e.Alone() || limited
	if !site.ValidUser(e.User) {
		if len(partition.Groups) == 0 && !byAccount {
			return site.Admission{}, nil
		}
		return site.Admission{No: "no such user"}, nil
	}
	name, _, _ := strings.Cut(settings["SlurmUser"], "(")
	everywhere := e.User == "root" || e.User == name
	if len(partition.Groups) > 0 && !everywhere || e.Group != "" {
		groups, err := s.groupsOf(ctx, e.User)
		switch {
		case err != nil:
			return site.Admission{}, err
		case e.Group != "" && !slices.Contains(groups, e.Group):
			return site.Admission{No: "they are no member of the group " + e.Group}, nil
		case len(partition.Groups) > 0 && !everywhere && !slices.ContainsFunc(groups, func(g string) bool { return slices.Contains(partition.Groups, g) }):
			return site.Admission{No: "it is for the members of " + strings.Join(partition.Groups, ", ") + " (AllowGroups)"}, nil
		}
	}
	if !byAccount || !enforced {
		return site.Admission{}, nil
	}
	own, no, err := s.associations(ctx, partition, e, settings)
	if err != nil || no != "" || !limited {
		return site.Admission{No: no}, err
	}
	return s.inLimits(ctx, partition, e, own)
}

func (s *Site) groupsOf(ctx context.Context, user string) ([]string, error) {
	result, err := s.run(ctx, opAdmit, "id", "-Gn", "--", user)
	return strings.Fields(result.Stdout), err
}

// lastSettings returns the configuration as last heard, if that was at all.
func (s *Site) lastSettings(ctx context.Context) (map[string]string, error) {
	if last := s.config.Load(); last != nil {
		return *last, nil
	}
	return s.settings(ctx)
}

// recent is what commands have written in the last seconds.
type recent struct {
	mu    sync.Mutex
	since berth.Time
	said  map[string]heard
}

type heard struct {
	out string
	err error
}

// fresh is for how long an answer is as good as a new one: as long as a look by default.
const fresh berth.Duration = 5

// admitWithin is how long a request for a promise waits for one command. An accounting
// database that does not answer must not stop promises: Slurm itself goes on without it.
const admitWithin = 3 * time.Second

// recall is read for a command where an answer, or none, of the last seconds will do.
func (s *Site) recall(ctx context.Context, name string, args ...string) (string, error) {
	key, now := strings.Join(append([]string{name}, args...), "\x00"), s.unix()
	s.heard.mu.Lock()
	if now >= s.heard.since.Add(fresh) || now < s.heard.since {
		s.heard.since, s.heard.said = now, map[string]heard{}
	}
	was, known := s.heard.said[key]
	s.heard.mu.Unlock()
	if known {
		return was.out, was.err
	}
	asked, cancel := context.WithTimeout(ctx, admitWithin)
	defer cancel()
	out, err := s.read(asked, opAdmit, name, args...)
	if ctx.Err() == nil { // else who asked has gone
		s.heard.mu.Lock()
		defer s.heard.mu.Unlock()
		s.heard.said[key] = heard{out, err}
	}
	return out, err
}

// association is an account that a user may use, with the QOS that they have there, the
// default first.
type association struct {
	account string
	qos     []string
}

// associations returns those that an entry may use in a partition, and why there are none.
func (s *Site) associations(ctx context.Context, partition *site.Partition, e *site.Entry, settings map[string]string) (own []association, no string, err error) {
	others := slices.DeleteFunc(slices.Clone(e.Users), func(user string) bool { return user == berth.EveryUser || user == e.User })
	out, err := s.recall(ctx, "sacctmgr", "--noheader", "--parsable2", "--readonly", "show", "associations",
		"user="+strings.Join(append([]string{e.User}, others...), ","), "cluster="+settings["ClusterName"], "format=User,Account,Partition,DefaultQOS,QOS")
	if err != nil {
		return nil, "", err
	}
	no = "they have no account there"
	if e.Account != "" {
		no = "they have no association with the account " + e.Account
	}
	for line := range strings.Lines(out) {
		row := strings.Split(strings.TrimSpace(line), "|")
		if len(row) < 5 || row[1] == "" || row[2] != "" && row[2] != partition.Name || e.Account != "" && row[1] != e.Account {
			continue
		}
		if others = slices.DeleteFunc(others, func(user string) bool { return user == row[0] }); row[0] != e.User {
			continue
		}
		a := association{account: row[1], qos: wordList(row[4])}
		if at := slices.Index(a.qos, row[3]); at > 0 {
			a.qos = append([]string{row[3]}, slices.Delete(a.qos, at, at+1)...)
		}
		list := strings.Join(a.qos, ",")
		some := len(a.qos) > 0 || len(partition.QOS) > 0
		if e.QOS != "" {
			if strings.Contains(settings["AccountingStorageEnforce"], "qos") && !slices.Contains(a.qos, e.QOS) {
				no = "they may not use the QOS " + e.QOS + " in the account " + a.account
				continue
			}
			a.qos, list, some = []string{e.QOS}, e.QOS, true
		}
		a.qos = slices.DeleteFunc(a.qos, func(qos string) bool { return !allowed(qos, partition.QOS, partition.DeniedQOS) })
		switch {
		case !allowed(a.account, partition.Accounts, partition.DeniedAccounts):
			no = "it does not take their account " + a.account + " (AllowAccounts, DenyAccounts)"
		case some && len(a.qos) == 0:
			no = "it does not take their QOS " + list + " (AllowQos, DenyQos)"
		default:
			own = append(own, a)
		}
	}
	switch {
	case len(own) == 0:
		return nil, no, nil
	case len(others) > 0 && e.Account != "":
		return nil, "user " + others[0] + " has no association with the account " + e.Account, nil
	case len(others) > 0:
		return nil, "user " + others[0] + " has no account there", nil
	}
	return own, "", nil
}

// Accounts asks the accounting database for the accounts of a user in this cluster, unless Slurm has none. What was heard in the last
// seconds is not asked again. Cost: a command.
func (s *Site) Accounts(ctx context.Context, user string) ([]string, error) {
	settings, err := s.lastSettings(ctx)
	if err != nil || !site.ValidUser(user) || !strings.HasSuffix(settings["AccountingStorageType"], "/slurmdbd") {
		return nil, err
	}
	out, err := s.recall(ctx, "sacctmgr", "--noheader", "--parsable2", "--readonly", "show", "user", "name="+user, "withassoc", "format=User,DefaultAccount,Cluster,Account")
	if err != nil {
		return nil, err
	}
	var list []string
	for line := range strings.Lines(out) {
		row := strings.Split(strings.TrimSpace(line), "|")
		if len(row) < 4 || row[0] != user || row[2] != settings["ClusterName"] || row[3] == "" || slices.Contains(list, row[3]) {
			continue
		}
		if list = append(list, row[3]); row[3] == row[1] {
			slices.Reverse(list) // which brings it to the front
			slices.Sort(list[1:])
		}
	}
	return list, nil
}

// allowed reports whether a name is in a list of those allowed or, where there is none, in
// none of those denied.
func allowed(name string, only, but []string) bool {
	if len(only) > 0 {
		return slices.Contains(only, name)
	}
	return !slices.Contains(but, name)
}

package slurm

import (
	"context"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/site"
)

const opAdmit = "admit"

// Admits asks this machine for the groups of a user, and the accounting database for the
// accounts and QOS that they may use, as far as a partition is not open to all: a user needs
// one of the groups, and an association with an account and a QOS that it takes. Root and
// SlurmUser are in every group to Slurm. Where Slurm does not enforce associations anybody
// may name any account, and nothing is asked about it. Cost: nothing for a partition that is
// open to everybody.
func (s *Site) Admits(ctx context.Context, partition *site.Partition, user string) (why string, err error) {
	byAccount := len(partition.Accounts)+len(partition.DeniedAccounts)+len(partition.QOS)+len(partition.DeniedQOS) > 0
	if len(partition.Groups) == 0 && !byAccount {
		return "", nil
	}
	if !site.ValidWord(user) {
		return "no such user", nil
	}
	settings, err := s.settings(ctx)
	if err != nil {
		return "", err
	}
	name, _, _ := strings.Cut(settings["SlurmUser"], "(")
	if len(partition.Groups) > 0 && user != "root" && user != name {
		result, err := s.run(ctx, opAdmit, "id", "-Gn", "--", user)
		if err != nil {
			return "", err
		}
		groups := strings.Fields(string(result.Stdout))
		if !slices.ContainsFunc(groups, func(g string) bool { return slices.Contains(partition.Groups, g) }) {
			return "it is for the members of " + strings.Join(partition.Groups, ", ") + " (AllowGroups)", nil
		}
	}
	if !byAccount || !strings.Contains(settings["AccountingStorageEnforce"], "associations") {
		return "", nil
	}
	return s.admitsAccounts(ctx, partition, user, settings["ClusterName"])
}

// admitsAccounts is Admits for accounts and QOS.
func (s *Site) admitsAccounts(ctx context.Context, partition *site.Partition, user, cluster string) (why string, err error) {
	out, err := s.read(ctx, opAdmit, "sacctmgr", "--noheader", "--parsable2", "--readonly", "show", "associations", "user="+user, "cluster="+cluster, "format=Account,QOS")
	if err != nil {
		return "", err
	}
	why = "they have no account there"
	for line := range strings.Lines(string(out)) {
		account, list, _ := strings.Cut(strings.TrimSpace(line), "|")
		switch takes := func(qos string) bool { return allowed(qos, partition.QOS, partition.DeniedQOS) }; {
		case account == "":
		case !allowed(account, partition.Accounts, partition.DeniedAccounts):
			why = "it does not take their account " + account + " (AllowAccounts, DenyAccounts)"
		case len(partition.QOS) > 0 && !slices.ContainsFunc(wordList(list), takes), list != "" && !slices.ContainsFunc(wordList(list), takes):
			why = "it does not take their QOS " + list + " (AllowQos, DenyQos)"
		default:
			return "", nil
		}
	}
	return why, nil
}

// allowed reports whether a name is in a list of those allowed or, where there is none, in
// none of those denied.
func allowed(name string, only, but []string) bool {
	if len(only) > 0 {
		return slices.Contains(only, name)
	}
	return !slices.Contains(but, name)
}

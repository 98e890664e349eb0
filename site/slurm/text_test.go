package slurm

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

// What Slurm 22.05.8 wrote.
const (
	twoReservations = `ReservationName=berth_x_1 StartTime=2026-11-21T10:59:19 EndTime=2026-11-21T11:59:19 Duration=01:00:00 Nodes=n[1-2] NodeCnt=2 CoreCnt=3 Features=(null) PartitionName=main Flags=SPEC_NODES   NodeName=n1 CoreIDs=0-1   NodeName=n2 CoreIDs=0 TRES=cpu=3 Users=root Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE BurstBuffer=(null) Watts=n/a MaxStartDelay=(null)
ReservationName=a b StartTime=2026-11-21T10:59:19 EndTime=2026-11-22T10:59:19 Duration=1-00:00:00 Nodes=n4 NodeCnt=1 CoreCnt=4 Features=(null) PartitionName=(null) Flags=MAINT,SPEC_NODES TRES=cpu=4 Users=root,nobody Groups=(null) Accounts=phys Licenses=(null) State=ACTIVE BurstBuffer=(null) Watts=n/a MaxStartDelay=(null)
`
	onePartition = `PartitionName=main AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL AllocNodes=ALL Default=YES QoS=N/A DefaultTime=NONE DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO MaxNodes=UNLIMITED MaxTime=1-12:00:00 MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED Nodes=n[1-4] PriorityJobFactor=1 PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=NO OverTimeLimit=NONE PreemptMode=OFF State=UP TotalCPUs=16 TotalNodes=4 SelectTypeParameters=NONE JobDefaults=(null) DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED TRES=cpu=16,mem=16G,node=4,billing=16
`
	someSettings = `Configuration data as of 2026-11-21T09:55:59
AccountingStorageEnforce = none
BOOT_TIME               = 2026-11-21T09:55:58
JobCredentialPrivateKey = (null)
SchedulerParameters     = bf_interval=1,bf_resolution=1
SlurmUser               = root(0)

Slurmctld(primary) at vm is UP
`
)

func TestParseReservations(t *testing.T) {
	got, err := parseReservations(twoReservations)
	if err != nil {
		t.Fatal(err)
	}
	const tenFiftyNine = 1795258759
	want := []site.Booking{
		{
			Name: "berth_x_1", Start: tenFiftyNine, End: tenFiftyNine + 3600, Cores: 3, Partition: "main", Users: []string{"root"}, Flags: []string{"SPEC_NODES"},
			Shares: []site.Share{{Node: "n1", Cores: berth.PEsOf(0, 1)}, {Node: "n2", Cores: berth.PEsOf(0)}},
		},
		{
			Name: "a b", Start: tenFiftyNine, End: tenFiftyNine + 86400, Cores: 4, Users: []string{"root", "nobody"}, Accounts: []string{"phys"},
			Flags: []string{"MAINT", "SPEC_NODES"}, Shares: []site.Share{{Node: "n4"}}, Active: true,
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got, err := parseReservations("No reservations in the system\n"); err != nil || len(got) != 0 {
		t.Errorf("none: %+v %v", got, err)
	}
}

// A name is written as it is. It can look like fields, and forges nothing.
func TestNamesForgeNothing(t *testing.T) {
	line := strings.Replace(twoReservations, "berth_x_1", "x StartTime=2000-01-01T00:00:00 Users=eve", 1)
	got, err := parseReservations(line)
	if err != nil {
		t.Fatal(err)
	}
	if b := got[0]; b.Name != "x StartTime=2000-01-01T00:00:00 Users=eve" || b.Start != 1795258759 || b.Users[0] != "root" {
		t.Errorf("%+v", b)
	}
}

func TestParseReservationsRefuses(t *testing.T) {
	good := strings.SplitAfter(twoReservations, "\n")[0]
	for _, spoil := range []struct{ old, by string }{
		{"ReservationName=", "Name="},
		{"StartTime=", "Begin="},
		{"2026-11-21T10:59:19", "Unknown"},
		{"EndTime=2026-11-21T11", "EndTime=11"},
		{"n[1-2]", "n[1-"},
		{"CoreCnt=3", "CoreCnt=many"},
		{"CoreCnt=3", "CoreCnt=-3"},
		{"State=INACTIVE", "State=ASLEEP"},
		{"CoreIDs=0-1", "CoreIDs=x"},
		{"NodeName=n1", "NodeName=n9"},
		{"NodeName=n1 ", ""},
	} {
		if got, err := parseReservations(strings.Replace(good, spoil.old, spoil.by, 1)); err == nil {
			t.Errorf("%q for %q: %+v, want an error", spoil.by, spoil.old, got)
		}
	}
}

func TestParsePartitions(t *testing.T) {
	got, err := parsePartitions(onePartition)
	want := []site.Partition{{Name: "main", Nodes: []string{"n1", "n2", "n3", "n4"}, Default: true, Up: true, MaxTime: 129600}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	for _, spoil := range []struct{ old, by string }{{"PartitionName=main", "PartitionName=a;b"}, {"n[1-4]", "n["}, {"1-12:00:00", "soon"}, {"MaxNodes=UNLIMITED", "MaxNodes=x"}} {
		if got, err := parsePartitions(strings.Replace(onePartition, spoil.old, spoil.by, 1)); err == nil {
			t.Errorf("%q for %q: %+v, want an error", spoil.by, spoil.old, got)
		}
	}
}

func TestParseConfig(t *testing.T) {
	want := map[string]string{
		"AccountingStorageEnforce": "none", "BOOT_TIME": "2026-11-21T09:55:58", asOf: "2026-11-21T09:55:59", "JobCredentialPrivateKey": "(null)",
		"SchedulerParameters": "bf_interval=1,bf_resolution=1", "SlurmUser": "root(0)",
	}
	if diff := cmp.Diff(want, parseConfig(someSettings)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestParseGRES(t *testing.T) {
	got, err := parseGRES("gpu:a100:4(S:0-1),nic:2,craynetwork,shard:2K(S:0,1)")
	want := []site.GRES{{Name: "gpu", Type: "a100", Count: 4}, {Name: "nic", Count: 2}, {Name: "craynetwork", Count: 1}, {Name: "shard", Count: 2048}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	for _, none := range []string{"", "(null)", "N/A"} {
		if got, err := parseGRES(none); err != nil || len(got) != 0 {
			t.Errorf("%q: %+v %v", none, got, err)
		}
	}
	for _, bad := range []string{"gpu:a:b:4", ":4", "gpu;x", "gpu:4,"} {
		if got, err := parseGRES(bad); err == nil {
			t.Errorf("%q: %+v, want an error", bad, got)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, seed := range []string{twoReservations, onePartition, someSettings, "gpu:a100:4(S:0-1),nic:2", "No reservations in the system"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		bookings, err := parseReservations(text)
		for _, b := range bookings {
			if err == nil && (!b.Start.Valid() || !b.End.Valid() || b.Cores < 0) {
				t.Fatalf("%+v", b)
			}
		}
		partitions, err := parsePartitions(text)
		for _, p := range partitions {
			if err == nil && (!site.ValidWord(p.Name) || p.MaxTime < 0 || p.MaxNodes < 0) {
				t.Fatalf("%+v", p)
			}
		}
		all, err := parseGRES(text)
		for _, g := range all {
			if err == nil && g.Count < 0 {
				t.Fatalf("%+v", g)
			}
		}
		_ = parseConfig(text)
	})
}

// What Slurm says tells what it refuses for good from what it refuses for now, and both from
// having said nothing.
func TestRefusalsForGood(t *testing.T) {
	for said, want := range map[string]bool{
		"Error creating the reservation: Invalid user id":                                                  true,
		"Error creating the reservation: Access/permission denied":                                         true,
		"Error creating the reservation: Invalid partition name specified":                                 true,
		"Error creating the reservation: Invalid account or account/partition combination specified":       true,
		"Error creating the reservation: Invalid qos specification":                                        true,
		"Error creating the reservation: Invalid license specification":                                    true,
		"Error creating the reservation: Invalid group id":                                                 true,
		"Error creating the reservation: Job violates accounting/QOS policy (job submit limit, user's …)":  true,
		"Error creating the reservation: Requested nodes are busy":                                         false,
		"Error creating the reservation: Requested node configuration is not available":                    false,
		"Error creating the reservation: Invalid node name specified":                                      false,
		"Error creating the reservation: Requested reservation overlaps with another reservation":          false,
		"slurm_load_reservations error: Unable to contact slurm controller (connect failure)":              false,
		"Error creating the reservation: Socket timed out on send/recv operation":                          false,
		"Error creating the reservation: a word of a Slurm that is not written yet":                        false,
		"Error creating the reservation: Protocol authentication error, because munged does not run there": false,
	} {
		if got := site.IsFinal(fmt.Errorf("behind another error: %w", explain("reserve", "scontrol", said))); got != want {
			t.Errorf("%s: for good is %t, want %t", said, got, want)
		}
	}
}

// A row is read only if no row before it has words that are in its own: the first that is found counts.
func TestEveryRowOfWordsIsReached(t *testing.T) {
	for i := range sayings {
		for j := range i {
			if strings.Contains(sayings[i].words, sayings[j].words) {
				t.Errorf("what row %d says, %q, row %d takes for %q", i, sayings[i].words, j, sayings[j].words)
			}
		}
	}
}

// Times of Slurm's form are read as time.Parse reads them, whatever else stands there.
func TestReadsTimesAsTheLibraryDoes(t *testing.T) {
	read := func(t interface {
		Errorf(format string, args ...any)
	}, text string,
	) {
		want, wrong := time.Parse(timeForm, text)
		got, err := parseTime(text)
		if (err == nil) != (wrong == nil) || err == nil && got != berth.Time(want.Unix()) {
			t.Errorf("%q is %d, %v; the library has %v, %v", text, got, err, want, wrong)
		}
	}
	for _, text := range []string{
		"2026-02-28T23:59:59", "2024-02-29T00:00:00", "2026-02-29T00:00:00", "2026-12-31T23:59:60", "0000-01-01T00:00:00", "9999-12-28T23:59:59", "2026-11-23 11:00:00",
		"2026-11-23T24:00:00", "2026-13-01T00:00:00", "2026-00-01T00:00:00", "2026-01-00T00:00:00", "2026-1-023T11:00:00", "2026-11-23T1a:00:00", "2026-11-23T11:00:00.5", "+026-11-23T11:00:00", "", "N/A", "Unknown",
	} {
		read(t, text)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(formatTime(berth.Time(rapid.Int64Range(-60_000_000_000, 250_000_000_000).Draw(t, "time"))))
		if rapid.Bool().Draw(t, "damaged") {
			text[rapid.IntRange(0, len(text)-1).Draw(t, "at")] = rapid.SampledFrom([]byte("0123456789-:T /x")).Draw(t, "byte")
		}
		read(t, string(text))
	})
}

// The words of a line are those of strings.Fields.
func TestWordsAreFields(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{"a", "=", "é", " ", "\t", "\v", "\u00a0", "\u0085", "\u2003", "\xc2", "\xa0", "\x1c", "\U0001f600"})).Draw(t, "line"), "")
		var got []string
		for word, at := nextWord(line, 0); word != ""; word, at = nextWord(line, at) {
			got = append(got, word)
		}
		if want := strings.Fields(line); !slices.Equal(want, got) {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	})
}

// Package slurmtest starts a private Slurm cluster for tests: munged, slurmctld
// and one slurmd for each virtual node, all on this machine, as this user, with
// everything they keep in a temporary folder. It asserts nothing about Slurm,
// and only tests may import it.
package slurmtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Options is what a cluster is made of.
type Options struct {
	Nodes int // 0 is 4: n1 to n4
	CPUs  int // of a node; 0 is 4
	// Hardware is what the CPUs of a node are, such as CoresPerSocket=4 ThreadsPerCore=2 for 8 of
	// them; empty makes each a socket of its own, as Slurm does.
	Hardware string
	// Select is what SelectTypeParameters is; empty is CR_CPU_Memory.
	Select string
	GPUs   int // how many nodes, the last ones, have two GPUs, which are empty files
	// Cloud makes nodes that are never powered up: any number of them, without
	// a slurmd, in which no job ever starts.
	Cloud bool
	// Partitions are the lines of slurm.conf for partitions; empty is one, main,
	// of all nodes with a limit of a day.
	Partitions string
	Extra      string // further lines of slurm.conf
	// Files are further files beside slurm.conf, by name.
	Files map[string]string
	// Accounting starts slurmdbd too, on a MariaDB of its own, and has Slurm enforce
	// associations, limits and QOS. Only root has an association at first.
	Accounting bool
	// REST starts slurmrestd too, as a user without rights in Slurm. It skips the test if this is not root: slurmrestd
	// refuses to run as SlurmUser.
	REST bool
	// Backup starts a second slurmctld on the same state, which takes over from the first. Each has a host name
	// of its own in a namespace of its own, which only root can make: else the test is skipped.
	Backup bool
	// Configless has each slurmd fetch its configuration from slurmctld. The commands of the cluster still have Conf. It
	// too is for root alone.
	Configless bool
	// Scheduler is the SchedulerParameters; empty looks at the queue as soon and as often as it can.
	Scheduler string
	// Zone is the time zone of slurmctld; empty is UTC, as that of the commands.
	Zone string
}

// Cluster is a running cluster.
type Cluster struct {
	Conf string // path of slurm.conf

	t       testing.TB
	dir     string
	options Options
	daemons map[string]*exec.Cmd

	database int // port of its database
	rest     int // port of its slurmrestd
	port     int // of its controllers
}

// readyWithin is how long a cluster may take to start; measured are 0.3 s for 4
// nodes and 7 s for 200.
const readyWithin = 60 * time.Second

// Start starts a cluster that stops when the test ends. Where Slurm is absent it
// is installed if $CI is true, this is root, and there is apt-get; else the test
// is skipped with the names of what is missing, or fails if $BERTH_REQUIRE, a
// list separated by commas, has "slurm".
//
// $BERTH_SLURM, if it is set, is a folder with the programs of another version of Slurm,
// such as newer.sh beside this file makes. They are then found first on the PATH of the
// whole test process.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	other()
	install(t, &o)
	if (o.Backup || o.Configless) && os.Getuid() != 0 {
		t.Skip("slurm: only root can give daemons namespaces of their own")
	}
	if o.REST && os.Getuid() != 0 {
		t.Skip("slurm: slurmrestd refuses to run as SlurmUser, who this is; only root can start it as another user")
	}
	if o.Nodes == 0 {
		o.Nodes = 4
	}
	if o.CPUs == 0 {
		o.CPUs = 4
	}
	if o.Scheduler == "" {
		o.Scheduler = "bf_interval=1,bf_resolution=1,sched_interval=1,batch_sched_delay=0,bf_max_job_test=1000,bf_window=20160"
	}
	if o.Select == "" {
		o.Select = "CR_CPU_Memory"
	}
	if o.Partitions == "" {
		o.Partitions = "PartitionName=main Nodes=ALL Default=YES MaxTime=1-00:00:00 State=UP"
	}
	// Other users must reach the sockets in it, and their paths must be short,
	// so t.TempDir will not do.
	dir, err := os.MkdirTemp("", "slurm")
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{t: t, dir: dir, options: o, daemons: map[string]*exec.Cmd{}}
	t.Cleanup(c.stop)
	// A port that was free a moment ago may be taken by then: try others.
	const attempts = 3
	for attempt := 1; ; attempt++ {
		err := c.start()
		if err == nil {
			return c
		}
		if attempt == attempts {
			t.Fatalf("slurm: %v\n%s", err, lastLines(c.Log(), 30))
		}
		c.stopDaemons()
	}
}

// other puts the version of Slurm that is asked for first on the PATH.
var other = sync.OnceFunc(func() {
	if bin := os.Getenv("BERTH_SLURM"); bin != "" {
		_ = os.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH")) // a path without a NUL
	}
})

func (c *Cluster) start() error {
	for _, folder := range []string{"etc", "state", "spool", "log", "run", pidFolder} {
		if err := os.MkdirAll(filepath.Join(c.dir, folder), 0o755); err != nil {
			return err
		}
	}
	if err := os.Chmod(c.dir, 0o755); err != nil {
		return err
	}
	if err := c.configure(); err != nil {
		return err
	}
	if err := c.run("munged", "munged", "--foreground", "--force", "--key-file="+c.path("etc/munge.key"), "--socket="+c.path("run/munge.socket"),
		"--pid-file="+c.path("run/munged.pid"), "--log-file="+c.path("log/munged.log"), "--seed-file="+c.path("run/munged.seed")); err != nil {
		return err
	}
	if !c.eventually(func() bool { _, err := os.Stat(c.path("run/munge.socket")); return err == nil }) {
		return errors.New("munged does not answer")
	}
	if c.options.Accounting {
		if err := c.startAccounting(); err != nil {
			return err
		}
	}
	if err := c.startController(); err != nil {
		return err
	}
	if !c.options.Cloud {
		for _, name := range c.Nodes() {
			if err := c.runNode(name); err != nil {
				return err
			}
		}
	}
	if c.options.REST {
		if err := c.startREST(); err != nil {
			return err
		}
	}
	return c.waitIdle()
}

// Grow gives a cluster of Cloud as many nodes as that: slurmctld ends, and is started again with all of them. It waits
// until slurmctld answers, for both together no longer than it is told: with many jobs that can be minutes. Jobs stay.
func (c *Cluster) Grow(nodes int, within time.Duration) {
	c.t.Helper()
	if !c.options.Cloud {
		c.t.Fatal("slurm: only a cluster without a slurmd for each node can grow")
	}
	text, err := os.ReadFile(c.Conf)
	if err == nil {
		line := "NodeName=n[1-%d] "
		grown := strings.Replace(string(text), fmt.Sprintf(line, c.options.Nodes), fmt.Sprintf(line, nodes), 1)
		err = os.WriteFile(c.Conf, []byte(grown), 0o644)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	c.options.Nodes = nodes
	end := time.Now().Add(within)
	c.killWithin("slurmctld", syscall.SIGTERM, within) // it saves its jobs first
	if err := c.startControllerWithin(time.Until(end)); err != nil {
		c.t.Fatalf("slurm: %v\n%s", err, lastLines(c.Log(), 30))
	}
}

func (c *Cluster) startController() error { return c.startControllerWithin(readyWithin) }

func (c *Cluster) startControllerWithin(within time.Duration) error {
	if err := c.runController("slurmctld", "ctl1"); err != nil {
		return err
	}
	if c.options.Backup && c.daemons[backup] == nil {
		// One that finds the name of the cluster half written ends.
		if !c.eventually(func() bool {
			name, _ := os.ReadFile(c.path("state/clustername")) // none yet is empty
			return len(name) > 0 || !c.alive("slurmctld")
		}) {
			return errors.New("slurmctld does not write the name of its cluster")
		}
		if err := c.runController(backup, "ctl2"); err != nil {
			return err
		}
	}
	if !c.eventuallyWithin(within, func() bool {
		out, _ := c.Command("scontrol", "ping")
		return strings.Contains(out, "is UP") || !c.alive("slurmctld")
	}) || !c.alive("slurmctld") {
		return errors.New("slurmctld does not answer")
	}
	return nil
}

// waitIdle waits until every node is up.
func (c *Cluster) waitIdle() error {
	if !c.eventually(func() bool {
		out, err := c.Command("sinfo", "--noheader", "--Node", "--states=idle", "--format=%N")
		return err == nil && len(strings.Fields(out)) >= c.options.Nodes
	}) {
		out, _ := c.Command("sinfo")
		said, _ := os.ReadFile(c.path("log/n1.out")) // none is as good as empty
		return fmt.Errorf("the nodes do not get idle: %s\n%s", out, lastLines(string(said), 5))
	}
	return nil
}

// Nodes returns the names of the nodes.
func (c *Cluster) Nodes() []string {
	names := make([]string, c.options.Nodes)
	for i := range names {
		names[i] = fmt.Sprintf("n%d", i+1)
	}
	return names
}

// Command runs one of Slurm's commands in this cluster, as this user, for at
// most 20 seconds, and returns what it wrote to stdout and stderr.
func (c *Cluster) Command(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = c.env()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// KillController kills slurmctld, which gets no chance to save anything.
func (c *Cluster) KillController() { c.kill("slurmctld", syscall.SIGKILL) }

// ForgetReservations loses what slurmctld, which must not run, has on its disk of reservations.
func (c *Cluster) ForgetReservations() {
	c.t.Helper()
	for _, name := range []string{"resv_state", "resv_state.old"} {
		if err := os.Remove(c.path("state/" + name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			c.t.Fatal(err)
		}
	}
}

// ControllerCPU returns the CPU time that slurmctld has used so far, in hundredths of a second.
func (c *Cluster) ControllerCPU() time.Duration {
	c.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.daemons["slurmctld"].Process.Pid))
	if err != nil {
		c.t.Fatal(err)
	}
	_, behind, _ := strings.Cut(string(text), ") ") // the name of the program
	var ticks time.Duration
	if words := strings.Fields(behind); len(words) > 12 {
		for _, word := range words[11:13] { // in user mode and in the kernel
			n, err := strconv.ParseInt(word, 10, 63)
			if err != nil {
				c.t.Fatal(err)
			}
			ticks += time.Duration(n)
		}
	}
	return ticks * 10 * time.Millisecond
}

// RestartController starts slurmctld again, in whatever state the nodes are, and waits until it
// answers.
func (c *Cluster) RestartController() {
	c.t.Helper()
	if err := c.startController(); err != nil {
		c.t.Fatalf("slurm: %v\n%s", err, lastLines(c.Log(), 30))
	}
}

// StartController starts slurmctld again and waits until it answers and all
// nodes are back.
func (c *Cluster) StartController() {
	c.t.Helper()
	err := c.startController()
	if err == nil {
		err = c.waitIdle()
	}
	if err != nil {
		c.t.Fatalf("slurm: %v\n%s", err, lastLines(c.Log(), 30))
	}
}

func (c *Cluster) env() []string {
	return []string{"SLURM_CONF=" + c.Conf, "TZ=UTC", "LC_ALL=C", "PATH=" + os.Getenv("PATH")}
}

func (c *Cluster) path(below string) string { return filepath.Join(c.dir, filepath.FromSlash(below)) }

// configure writes the key and slurm.conf.
func (c *Cluster) configure() error {
	me, err := user.Current()
	if err != nil {
		return err
	}
	key := make([]byte, 128)
	if _, err := io.ReadFull(rand.Reader, key); err != nil {
		return err
	}
	if err := os.WriteFile(c.path("etc/munge.key"), key, 0o600); err != nil {
		return err
	}
	ports, err := freePorts(1 + c.options.Nodes)
	if err != nil {
		return err
	}
	accounting := "AccountingStorageType=accounting_storage/none"
	if c.options.Accounting {
		if accounting, err = c.configureAccounting(me.Username); err != nil {
			return err
		}
	}
	hosts, timeout := "SlurmctldHost=localhost", 30
	if c.options.Backup {
		// Each listens at its own address alone, so that both have the same port, as Slurm wants.
		hosts, timeout = "SlurmctldHost=ctl1(127.0.0.2)\nSlurmctldHost=ctl2(127.0.0.3)\nCommunicationParameters=NoCtldInAddrAny", 5
	}
	if c.options.Configless {
		hosts += "\nSlurmctldParameters=enable_configless"
	}
	c.port = ports[0]
	// ReturnToService=2 would have a node that an administrator sets down return as soon as its
	// slurmd registers, which it does at times of its own.
	conf := fmt.Sprintf(`ClusterName=lab
%s
SlurmctldPort=%d
SlurmUser=%s
SlurmdUser=%s
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=%s/run/munge.socket
StateSaveLocation=%[5]s/state
SlurmdSpoolDir=%[5]s/spool/%%n
SlurmctldPidFile=%[5]s/run/pid/slurmctld.pid
SlurmdPidFile=%[5]s/run/slurmd.%%n.pid
SlurmctldLogFile=%[5]s/log/slurmctld.log
SlurmdLogFile=%[5]s/log/slurmd.%%n.log
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SwitchType=switch/none
ReturnToService=1
SlurmdParameters=config_overrides
SchedulerType=sched/backfill
SchedulerParameters=%s
SelectType=select/cons_tres
SelectTypeParameters=%s
DefMemPerCPU=128
%s
JobCompType=jobcomp/none
SlurmctldTimeout=%d
SlurmdTimeout=60
InactiveLimit=0
KillWait=2
MinJobAge=300
`, hosts, c.port, me.Username, me.Username, c.dir, c.options.Scheduler, c.options.Select, accounting, timeout)
	if c.options.Cloud {
		conf += fmt.Sprintf(`SuspendTime=INFINITE
SuspendProgram=/bin/true
ResumeProgram=/bin/true
ResumeTimeout=30
SlurmdTimeout=0
PrivateData=cloud
NodeName=n[1-%d] NodeHostname=localhost NodeAddr=127.0.0.1 Port=%d CPUs=%d RealMemory=256000 State=CLOUD
`, c.options.Nodes, ports[1], c.options.CPUs)
		conf = strings.Replace(conf, "SlurmdTimeout=60\n", "", 1)
	} else {
		for i, name := range c.Nodes() {
			if err := os.MkdirAll(c.path("spool/"+name), 0o755); err != nil {
				return err
			}
			gres := ""
			if i >= c.options.Nodes-c.options.GPUs {
				gres = " Gres=gpu:a100:2"
			}
			conf += fmt.Sprintf("NodeName=%s NodeHostname=localhost NodeAddr=127.0.0.1 Port=%d CPUs=%d %s RealMemory=4096%s State=UNKNOWN\n", name, ports[i+1], c.options.CPUs, c.options.Hardware, gres)
		}
		if c.options.GPUs > 0 {
			conf += "GresTypes=gpu\n"
			if err := c.configureGPUs(); err != nil {
				return err
			}
		}
	}
	if c.options.REST {
		keys, err := c.configureREST()
		if err != nil {
			return err
		}
		conf += keys
	}
	conf += c.options.Partitions + "\n" + c.options.Extra + "\n"
	if bin := os.Getenv("BERTH_SLURM"); bin != "" {
		if plugins, err := filepath.EvalSymlinks(filepath.Join(bin, "plugins")); err == nil {
			conf += "PluginDir=" + plugins + "\n"
		}
		// Newer ones want to know that there are no cgroups to manage, which 22.05 does not
		// understand.
		if err := os.WriteFile(c.path("etc/cgroup.conf"), []byte("CgroupPlugin=disabled\n"), 0o644); err != nil {
			return err
		}
	}
	for name, text := range c.options.Files {
		if err := os.WriteFile(c.path("etc/"+name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	c.Conf = c.path("etc/slurm.conf")
	return os.WriteFile(c.Conf, []byte(conf), 0o644)
}

// configureGPUs makes the files that stand for GPUs, and says which nodes have them.
func (c *Cluster) configureGPUs() error {
	var text strings.Builder
	for _, name := range c.Nodes()[c.options.Nodes-c.options.GPUs:] {
		for i := range 2 {
			file := c.path(fmt.Sprintf("run/%s.gpu%d", name, i))
			if err := os.WriteFile(file, nil, 0o666); err != nil {
				return err
			}
			fmt.Fprintf(&text, "NodeName=%s Name=gpu Type=a100 File=%s\n", name, file)
		}
	}
	return os.WriteFile(c.path("etc/gres.conf"), []byte(text.String()), 0o644)
}

// given are the ports of all clusters of this process: that of a controller that
// was killed must not go to another cluster.
var given sync.Map

// freePorts returns ports without a listener.
func freePorts(n int) ([]int, error) {
	var ports []int
	for len(ports) < n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }() // only held until all are found
		port := l.Addr().(*net.TCPAddr).Port
		if _, taken := given.LoadOrStore(port, true); !taken {
			ports = append(ports, port)
		}
	}
	return ports, nil
}

// Saved reports whether slurmctld has written a reservation of that name to its
// disk, so that it survives KillController.
func (c *Cluster) Saved(reservation string) bool {
	text, _ := os.ReadFile(c.path("state/resv_state")) // none yet holds no name
	return strings.Contains(string(text), reservation)
}

// SavedJob reports whether slurmctld has written a job of that name to its disk, and with it
// all that were submitted before.
func (c *Cluster) SavedJob(name string) bool {
	text, _ := os.ReadFile(c.path("state/job_state")) // none yet holds no name
	return strings.Contains(string(text), name)
}

// run starts a daemon.
func (c *Cluster) run(name, program string, args ...string) error {
	return c.runAs(ofDaemon(), nil, name, program, args...)
}

// runAs starts a daemon in a way of its own, with more in its environment.
func (c *Cluster) runAs(as *syscall.SysProcAttr, env []string, name, program string, args ...string) error {
	cmd := exec.Command(program, args...)
	cmd.Env, cmd.Dir = append(c.env(), env...), c.dir
	cmd.SysProcAttr = as
	log, err := os.OpenFile(c.path("log/"+name+".out"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the daemon has its own
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	c.daemons[name] = cmd
	return nil
}

func (c *Cluster) alive(name string) bool {
	return runs(c.daemons[name].Process.Pid)
}

func (c *Cluster) kill(name string, signal syscall.Signal) {
	c.killWithin(name, signal, 10*time.Second)
}

// killWithin waits no longer than that before it kills a daemon that does not end.
func (c *Cluster) killWithin(name string, signal syscall.Signal, within time.Duration) {
	cmd := c.daemons[name]
	if cmd == nil {
		return
	}
	delete(c.daemons, name)
	_ = cmd.Process.Signal(signal) // it may be gone already
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }()
	select {
	case <-ended:
	case <-time.After(within):
		_ = cmd.Process.Kill()
		<-ended
	}
}

// stopDaemons stops nodes first, so that they can still report.
func (c *Cluster) stopDaemons() {
	names := make([]string, 0, len(c.daemons))
	for name := range c.daemons {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return slices.Index(stopLast, a) - slices.Index(stopLast, b) })
	for _, name := range names {
		if !slices.Contains(stopLast, name) {
			_ = c.daemons[name].Process.Signal(syscall.SIGTERM)
		}
	}
	for _, name := range names {
		c.kill(name, syscall.SIGTERM)
	}
}

var stopLast = []string{"slurmctld", backup, "slurmdbd", "mariadbd", "munged"}

func (c *Cluster) stop() {
	if c.t.Failed() {
		c.t.Logf("the end of slurmctld.log:\n%s", lastLines(c.Log(), 30))
		if c.options.Backup {
			text, _ := os.ReadFile(c.path("log/" + backup + ".out")) // none is as good as empty
			c.t.Logf("the end of what the backup wrote:\n%s", lastLines(string(text), 30))
		}
	}
	c.cancelJobs()
	c.stopDaemons()
	_ = os.RemoveAll(c.dir) // a late file of a daemon is no failure of the test
}

// cancelJobs ends what a test left running, for the daemons would leave it
// behind. A test that kills the controller must not leave jobs.
func (c *Cluster) cancelJobs() {
	if c.daemons["slurmctld"] == nil || c.options.Cloud { // where no job has a process
		return
	}
	// What is not yet running is cancelled; what runs is killed at once.
	if !c.eventually(func() bool {
		out, err := c.Command("squeue", "--noheader", "--format=%A")
		if jobs := strings.Fields(out); err == nil && len(jobs) > 0 {
			_, _ = c.Command("scancel", append([]string{"--signal=KILL", "--full"}, jobs...)...)
			_, _ = c.Command("scancel", jobs...)
		}
		return err != nil || out == ""
	}) {
		c.t.Error("slurm: jobs do not end")
	}
}

// Log returns what slurmctld has logged so far, before it was killed too.
func (c *Cluster) Log() string {
	text, _ := os.ReadFile(c.path("log/slurmctld.log")) // none is as good as empty
	return string(text)
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// eventually waits for a condition without a signal, as long as a cluster may
// take to start.
func (c *Cluster) eventually(holds func() bool) bool { return c.eventuallyWithin(readyWithin, holds) }

func (c *Cluster) eventuallyWithin(within time.Duration, holds func() bool) bool {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(within); time.Now().Before(end); <-tick.C {
		if holds() {
			return true
		}
	}
	return false
}

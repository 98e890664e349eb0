package slurmtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ConfServer is where a slurmctld gives out the configuration of a configless cluster.
func (c *Cluster) ConfServer() string { return "localhost:" + strconv.Itoa(c.port) }

const backup = "slurmctld-backup"

// runController starts a slurmctld, the one of a pair under its own host name.
func (c *Cluster) runController(name, host string) error {
	if !c.options.Backup {
		var env []string
		if c.options.Zone != "" {
			env = append(env, "TZ="+c.options.Zone)
		}
		return c.runAs(ofDaemon(), env, name, "slurmctld", "-D")
	}
	known, err := os.ReadFile("/etc/hosts")
	if err != nil {
		return err
	}
	hosts := c.path("etc/hosts")
	if err := os.WriteFile(hosts, append(known, "\n127.0.0.2 ctl1\n127.0.0.3 ctl2\n"...), 0o644); err != nil {
		return err
	}
	own := c.path("run/" + host)
	if err := os.MkdirAll(own, 0o755); err != nil {
		return err
	}
	// It looks up the address of its own name, and ends a process whose number is in its file. That of
	// another version has a root of its own.
	script := []string{"hostname " + host}
	for from, to := range map[string]string{hosts: "/etc/hosts", own: c.path(pidFolder)} {
		script = append(script, "mount --bind "+from+" "+to)
		if bin := os.Getenv("BERTH_SLURM"); bin != "" {
			script = append(script, "mount --bind "+from+" "+filepath.Dir(bin)+to)
		}
	}
	return c.run(name, "unshare", "--uts", "--mount", "sh", "-c", strings.Join(append(script, "exec slurmctld -D"), " && "))
}

// runNode starts a slurmd. One that fetches its configuration also says to all commands of the machine where that is,
// by a link in /run, so it gets a /run of its own.
func (c *Cluster) runNode(name string) error {
	if !c.options.Configless {
		return c.run(name, "slurmd", "-D", "-N", name)
	}
	return c.run(name, "env", append([]string{"-u", "SLURM_CONF"}, c.WithoutConf("slurmd", "-D", "-N", name, "--conf-server", c.ConfServer())...)...)
}

// WithoutConf returns a command that runs another one where there is no slurm.conf, in a /run of its own with munge where
// it is before a slurm.conf has been read.
func (c *Cluster) WithoutConf(argv ...string) []string {
	roots := []string{""}
	if bin := os.Getenv("BERTH_SLURM"); bin != "" {
		roots = append(roots, filepath.Dir(bin))
	}
	var script []string
	for _, root := range roots {
		script = append(script, fmt.Sprintf("mount -t tmpfs none %[1]s/run && mkdir %[1]s/run/munge && ln -s %[2]s %[1]s/run/munge/munge.socket.2", root, c.path("run/munge.socket")))
	}
	return append([]string{"unshare", "--mount", "sh", "-c", strings.Join(append(script, `exec "$0" "$@"`), " && ")}, argv...)
}

// pidFolder is where each controller finds its own folder for its number.
const pidFolder = "run/pid"

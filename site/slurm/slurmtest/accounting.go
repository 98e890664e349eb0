package slurmtest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"strconv"
	"strings"
)

// configureAccounting writes slurmdbd.conf and returns what slurm.conf says of it.
func (c *Cluster) configureAccounting(me string) (string, error) {
	ports, err := freePorts(2)
	if err != nil {
		return "", err
	}
	c.database = ports[1]
	conf := fmt.Sprintf(`AuthType=auth/munge
AuthInfo=socket=%[1]s/run/munge.socket
DbdHost=localhost
DbdPort=%[2]d
SlurmUser=%[3]s
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=%[4]d
StorageUser=slurm
StoragePass=none
StorageLoc=slurm_acct
PidFile=%[1]s/run/slurmdbd.pid
LogFile=%[1]s/log/slurmdbd.log
`, c.dir, ports[0], me, c.database)
	if err := os.WriteFile(c.path("etc/slurmdbd.conf"), []byte(conf), 0o600); err != nil {
		return "", err
	}
	// Without its own password, the socket of munge, slurmctld asks the munged of the machine.
	return fmt.Sprintf(`AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=localhost
AccountingStoragePort=%d
AccountingStoragePass=%s/run/munge.socket
AccountingStorageEnforce=associations,limits,qos`, ports[0], c.dir), nil
}

// startAccounting starts the database and slurmdbd. The database asks for no password, and
// listens to this machine alone.
func (c *Cluster) startAccounting() error {
	me, err := user.Current()
	if err != nil {
		return err
	}
	as := "--user=" + me.Username // else root may not
	if out, err := c.Command("mariadb-install-db", "--no-defaults", as, "--datadir="+c.path("database"), "--skip-test-db", "--auth-root-authentication-method=normal"); err != nil {
		return fmt.Errorf("mariadb-install-db: %w: %s", err, lastLines(out, 5))
	}
	at := net.JoinHostPort("127.0.0.1", strconv.Itoa(c.database))
	args := []string{
		"--no-defaults", as, "--datadir=" + c.path("database"), "--socket=" + c.path("run/db.socket"), "--pid-file=" + c.path("run/db.pid"), "--bind-address=127.0.0.1",
		"--port=" + strconv.Itoa(c.database), "--skip-grant-tables", "--innodb-buffer-pool-size=64M", "--innodb-log-file-size=16M", "--innodb-lock-wait-timeout=900",
	}
	if err := c.run("mariadbd", "mariadbd", args...); err != nil {
		return err
	}
	if !c.eventually(func() bool { return answers(at) || !c.alive("mariadbd") }) || !c.alive("mariadbd") {
		return errors.New("the database does not answer")
	}
	if err := c.run("slurmdbd", "slurmdbd", "-D"); err != nil {
		return err
	}
	if !c.eventually(func() bool {
		out, err := c.Command("sacctmgr", "--immediate", "add", "cluster", "lab")
		return err == nil || strings.Contains(out, "already exists") || !c.alive("slurmdbd")
	}) || !c.alive("slurmdbd") {
		return errors.New("slurmdbd does not answer")
	}
	return nil
}

// Account changes the accounting by a command of sacctmgr, such as "add account project". The database may refuse one that meets
// another, of slurmctld, so one that fails is tried again; there may be nothing left to do then.
func (c *Cluster) Account(command string) {
	c.t.Helper()
	out, err := "", error(nil)
	if !c.eventually(func() bool {
		again := err != nil
		out, err = c.Command("sacctmgr", append([]string{"--immediate"}, strings.Fields(command)...)...)
		return err == nil || again && (strings.Contains(out, "Nothing new added") || strings.Contains(out, "Nothing deleted"))
	}) {
		text, _ := os.ReadFile(c.path("log/slurmdbd.log")) // none is as good as empty
		c.t.Fatalf("slurm: sacctmgr %s: %v: %s\n%s", command, err, out, lastLines(string(text), 10))
	}
}

// answers reports whether something listens at an address.
func answers(address string) bool {
	conn, err := net.Dial("tcp", address)
	if err == nil {
		_ = conn.Close() // nothing was said
	}
	return err == nil
}

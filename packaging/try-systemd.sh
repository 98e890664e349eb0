#!/bin/sh
# As root: tries the deb under a real systemd in a folder with a Debian: a task that outlives an upgrade, an upgrade that is interrupted, one
# whose configuration is refused, one that does not start, a unit that is started twice, and a removal with what is promised.
# Usage: packaging/try-systemd.sh ROOT DEB
set -eu
root=$1 deb=$2
. packaging/systemd.sh
trap halt EXIT
trap 'exit 1' INT TERM
cp "$deb" "$root/berth-1.deb"
for newer in 2 3 4 5; do # versions that differ in their number alone
	dpkg-deb -R "$deb" "$root/unpacked"
	sed -i "s/^Version: .*/&+$newer/" "$root/unpacked/DEBIAN/control"
	dpkg-deb --root-owner-group -Znone -b "$root/unpacked" "$root/berth-$newer.deb" >/dev/null
	rm -rf "$root/unpacked"
done
cat >"$root/try" <<'END_OF_TRY'
set -eu
say() { echo "  systemd: $*"; }
fail() { echo "FAILED: $*" >&2; systemctl status --no-pager --lines 30 berth >&2 || true; exit 1; }
must() { "$@" || fail "$*"; }
eventually() { # eventually WHAT COMMAND...
	what=$1 tries=0
	shift
	until "$@" >/dev/null 2>&1; do
		tries=$((tries + 1))
		[ $tries -lt 300 ] || fail "$what: not in 30 s"
		sleep 0.1
	done
}
main() { systemctl show --property=MainPID --value berth; }
as_berth() { setpriv --reuid=berth --regid=berth --init-groups env -i PATH="$PATH" HOME=/var/lib/berth "$@"; }
install() { dpkg -i "/berth-$1.deb" >/tmp/out 2>&1 || fail "$(cat /tmp/out)"; }
has() { # has FILE WORDS: what was printed
	grep -q -e "$2" "$1" || { cat "$1" >&2; fail "$1 does not say: $2"; }
}
status() { dpkg-query -W -f '${Status}' berth; }
task() { # task NAME: one that runs until /var/lib/berth/NAME is there
	as_berth berth submit -n 1 -t 30m --start now --dir /var/lib/berth --out task.out --parsable -- \
		sh -c 'echo $$ >"$0.pid"; until [ -e "$0" ]; do sleep 0.1; done; echo whole >>"$0.end"' "$1" 2>/tmp/submit || fail "$(cat /tmp/submit)"
	eventually "the task $1 begins" test -s "/var/lib/berth/$1.pid"
}
is() { [ "$(as_berth berth status "$1")" = "$2" ]; } # is JOB STATE

install 1
cat >/etc/berth/berth.yaml <<'END'
sites:
- {name: here, adapter: {kind: local, cores: 4, node: n1}}
- {name: cm5, pes: 64}
END
systemctl enable --now berth 2>/dev/null
eventually "it serves" berth whoami
say "$(systemctl --version | head -n 1); $(berth whoami)"
berth reserve -n 4 -t 1h --start now+2h --site cm5 >/tmp/promise 2>&1 || fail "$(cat /tmp/promise)"
id=$(sed -n 's/^reservation \([^ ]*\) .*/\1/p' /tmp/promise)

# An upgrade while a task runs.
one=$(task one)
task=$(cat /var/lib/berth/one.pid) before=$(main)
install 2
eventually "it serves after the upgrade" berth whoami
must [ "$(main)" != "$before" ]
must kill -0 "$task"
must is "$one" running
must berth show "$id" >/dev/null

# One that is interrupted before its postinst: the old program goes on.
before=$(main)
dpkg --unpack /berth-3.deb >/tmp/out 2>&1 || fail "$(cat /tmp/out)"
must [ "$(status)" = "install ok unpacked" ]
must [ "$(main)" = "$before" ]
must berth whoami >/dev/null
must kill -0 "$task"
two=$(task two) # kept by the new program, of a service that is the old one
dpkg --configure -a >/tmp/out 2>&1 || fail "$(cat /tmp/out)"
must [ "$(status)" = "install ok installed" ]
eventually "it serves when it is configured" berth whoami
must [ "$(main)" != "$before" ]
as_berth touch /var/lib/berth/one /var/lib/berth/two
eventually "the end of the task is told" is "$one" success
eventually "the end of the second task is told" is "$two" success
must [ "$(cat /var/lib/berth/one.end /var/lib/berth/two.end)" = "whole
whole" ]
say "a task outlives an upgrade, and one that was interrupted before its postinst; dpkg --configure -a completes that; its end is told"

# The new program refuses the configuration: the old one goes on.
before=$(main)
echo 'nonsense: 1' >>/etc/berth/berth.yaml
install 4
has /tmp/out 'the version before it still serves'
has /tmp/out 'nonsense: /etc/berth/berth.yaml:4:1: unknown key'
has /tmp/out 'systemctl restart berth$'
must [ "$(main)" = "$before" ]
must berth show "$id" >/dev/null
sed -i '/nonsense/d' /etc/berth/berth.yaml
must systemctl restart berth
eventually "it serves when that is corrected" berth show "$id"
must [ "$(main)" != "$before" ]

# Nor does one start in which cm5, where something is promised, is gone: the old one goes on, and the promise is named.
before=$(main)
sed -i.kept '/cm5/d' /etc/berth/berth.yaml
install 5
has /tmp/out 'the version before it still serves'
has /tmp/out "it has no place for all that is promised: reservation \"$id\""
must [ "$(status)" = "install ok installed" ]
must [ "$(main)" = "$before" ]
must berth show "$id" >/dev/null
mv /etc/berth/berth.yaml.kept /etc/berth/berth.yaml
must systemctl restart berth
eventually "it serves with its site" berth show "$id"
say "a configuration that is refused, or has no place for a promise, leaves the old service; corrected, the promise is there"

# A second service with the same data: by hand as root and as the account, and by a unit. The first is unharmed.
before=$(main)
! berth serve --config /etc/berth/berth.yaml --data /var/lib/berth >/tmp/out 2>&1 || fail "root starts a second service"
has /tmp/out 'belongs to user berth, and the service runs as root'
! as_berth berth serve --config /etc/berth/berth.yaml --data /var/lib/berth --listen 127.0.0.1:0 >/tmp/out 2>&1 || fail "a second service starts"
has /tmp/out "/var/lib/berth is in use by process $before on "
sed 's/^Restart=.*/Restart=no/' "$(systemctl show --property=FragmentPath --value berth)" >/etc/systemd/system/berth-two.service
systemctl daemon-reload
systemctl start berth-two || true
refused() { systemctl is-failed berth-two && journalctl --unit berth-two --no-pager | grep "in use by process $before on "; }
eventually "the second unit is refused" refused
rm /etc/systemd/system/berth-two.service
systemctl daemon-reload
must test -S /run/berth/berth.sock
systemctl start berth
must [ "$(main)" = "$before" ]
must berth show "$id" >/dev/null
say "a second service with the same data is refused and names the first, which is unharmed"

# Removal while something is promised and a task runs.
three=$(task three)
task=$(cat /var/lib/berth/three.pid)
berth list -o csv >/tmp/live
live=$(($(wc -l </tmp/live) - 1))
dpkg -r berth >/tmp/out 2>&1 || fail "$(cat /tmp/out)"
has /tmp/out "^berth: $live reservations are not over"
must kill -0 "$task"
must test -s /var/lib/berth/journal.db
must test ! -e /usr/bin/berth
must [ "$(systemctl is-active berth || true)" != active ]
as_berth touch /var/lib/berth/three
eventually "the task ends without Berth" test -s /var/lib/berth/three.end
install 5
systemctl enable --now berth 2>/dev/null
eventually "it serves when it is installed again" berth show "$id"
eventually "the end of the task is told" is "$three" success
say "a removal says that $live reservations are not over and leaves them: a task went on, and its end is told when the package is there again"
END_OF_TRY
boot "$root"
inside sh /try
halt
